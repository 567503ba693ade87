"""Files that are read whole."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from clickmill.store.whole_file import read_whole


def test_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"x" * 200_000)
    assert read_whole(tmp_path / "it", max_bytes=200_000) == b"x" * 200_000
    with pytest.raises(ValueError, match=r"^has more than 199999 bytes$"):
        read_whole(tmp_path / "it", max_bytes=199_999)


def test_device_that_never_ends_is_refused() -> None:
    with pytest.raises(ValueError, match="has more than"):
        read_whole("/dev/zero", max_bytes=100_000)


def test_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"^is a pipe that nobody writes to$"):
        read_whole(tmp_path / "pipe", max_bytes=10)


def test_pipe_is_read_until_its_writer_closes_it() -> None:
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as stream:
            stream.write(b"x" * 300_000)  # more than a pipe holds

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert len(read_whole(f"/dev/fd/{reader}", max_bytes=10**6)) == 300_000
    finally:
        os.close(reader)
        thread.join()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", "No such file"),
        (".", "Is a directory"),
        ("x" * 300, "File name too long"),
        ("a\0", "null byte"),
        ("/proc/self/mem", "Input/output error"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_whole(tmp_path / name, max_bytes=10)
