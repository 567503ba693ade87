"""How the data is cut for trainers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from clickmill.data.files import FileRange
from clickmill.train.cluster.units import cut_files, unit_bytes


@pytest.mark.parametrize("trainers", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [1000, 11_600_000, 200_000_000])
def test_every_trainer_has_a_piece_however_little_there_is(tmp_path: Path, trainers: int, size: int):
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.truncate(size)
    files = [FileRange(path, 0, None)]
    pieces = cut_files(files, unit_bytes(files, trainers, 0), can_cut=True)
    assert len(pieces) >= trainers
    assert pieces[0].start == 0
    assert pieces[-1].end is None
    assert all(piece.end == after.start for piece, after in pairwise(pieces))


def test_nothing_is_cut_where_there_is_nothing(tmp_path: Path):
    path = tmp_path / "log"
    path.touch()
    files = [FileRange(path, 0, None)]
    assert cut_files(files, unit_bytes(files, 4, 0), can_cut=True) == files
