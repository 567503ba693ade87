"""Reading the ready-made `1 label 13 dense… 1 id 1 id…` lines into arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NUM_DENSE = 13
NUM_SPARSE = 26
HASH_SIZE = 1_000_001
NUM_FIELDS = 2 + 1 + NUM_DENSE + 2 * NUM_SPARSE


def arrays(text: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels [B] f32, dense [B, 13] f32 and ids [B, 26] i64 of whole lines."""
    # Every number of a line is below 2^53, and the number of fields is the same in all lines.
    table = np.fromstring(text, dtype=np.float64, sep=" ").reshape(-1, NUM_FIELDS)
    label = table[:, 1].astype(np.float32)
    dense = np.ascontiguousarray(table[:, 3 : 3 + NUM_DENSE], dtype=np.float32)
    ids = np.ascontiguousarray(table[:, 3 + NUM_DENSE + 1 :: 2], dtype=np.int64)
    return label, dense, ids


def batches(path: Path, batch_size: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Batches of a file in order; the last may be short."""
    with path.open("rb") as file:
        lines: list[bytes] = []
        for line in file:
            lines.append(line)
            if len(lines) == batch_size:
                yield arrays(b"".join(lines))
                lines = []
        if lines:
            yield arrays(b"".join(lines))
