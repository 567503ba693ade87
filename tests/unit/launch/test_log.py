from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.launch.log import Log
from tests.small_files import small_files


def test_a_log_on_a_full_disk_is_told_of_once() -> None:
    log = Log(Path("/dev/full"))
    told = [log.write(b"a line") for _ in range(3)]
    log.close()
    words = "cannot write to `/dev/full`: No space left on device; lines are left out until it can be written"
    assert told == [words, None, None]


@pytest.mark.parametrize("room", [6, 9])
def test_a_log_goes_on_when_there_is_room_again_and_says_what_is_missing(tmp_path: Path, room: int) -> None:
    path = tmp_path / "a.log"
    log = Log(path)
    log.write(b"first")
    with small_files(room):
        assert log.write(b"second") is not None
        assert log.write(b"third") is None
    assert log.write(b"fourth") is None
    with small_files(path.stat().st_size):
        assert log.write(b"fifth") is not None, "a new streak is told of"
    log.close()
    cut = b"second\n"[: room - 6] + b"\n" if room > 6 else b""
    assert path.read_bytes() == b"first\n" + cut + b"log.gap lines=2\nfourth\n"
