from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickmill.errors import StorageError
from clickmill.submit.private import write_private_folder

FILES = {"small": "a", "large": "a" * 10_000, "next": "a"}


@pytest.fixture
def _files_of_4096_bytes() -> Iterator[None]:
    """Longer ones cannot be written, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("_files_of_4096_bytes")
def test_a_folder_that_cannot_be_written_as_a_whole_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write `.*/plan/large`"):
        write_private_folder(tmp_path / "plan", FILES)
    assert not (tmp_path / "plan").exists()


@pytest.mark.usefixtures("_files_of_4096_bytes")
def test_a_folder_that_was_there_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    before = (tmp_path / "plan").stat().st_ino
    with pytest.raises(StorageError, match="cannot write"):
        write_private_folder(tmp_path / "plan", FILES)
    assert list((tmp_path / "plan").iterdir()) == []
    assert (tmp_path / "plan").stat().st_ino == before


def test_a_folder_that_was_there_is_filled(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    write_private_folder(tmp_path / "plan", FILES)
    assert {path.name: path.read_text() for path in (tmp_path / "plan").iterdir()} == FILES
