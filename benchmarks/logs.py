"""Logs that the benchmarks run on, made by `synth` when they are not there yet."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import ROOT

FOLDER = ROOT / ".peers" / "data"
SEED = 1


@dataclass(frozen=True)
class Log:
    files: tuple[str, ...]
    report: dict[str, Any]


def make(name: str, *, rows: int, start_row: int = 0, file_format: str = "criteo", parts: int = 1) -> Log:
    """Rows of the one benchmark log; two ranges of it share the hidden model."""
    from clickmill import _core

    config = {
        "rows": rows,
        "seed": SEED,
        "start_row": start_row,
        "format": file_format,
        "parts": parts,
    }
    # The generator is part of the key: a changed core must not meet an old log.
    key = json.dumps([config, core_digest(_core.__file__)], sort_keys=True)
    folder = FOLDER / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    done = folder / "report.json"
    if not done.exists():
        print(f"making {name}: {rows} rows", file=sys.stderr)
        path = folder / f"{name}.{'tsv' if file_format == 'criteo' else 'txt'}"
        text = _core.synth(json.dumps({**config, "path": str(path)}))
        done.write_text(text)
    report = json.loads(done.read_text())
    return Log(tuple(report["files"]), report)


def core_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
