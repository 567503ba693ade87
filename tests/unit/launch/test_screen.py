from __future__ import annotations

import errno
import io
import json
import os

import pytest

from clickmill.launch.progress import ToldProgress, TotalProgress
from clickmill.launch.screen import Screen
from clickmill.train.observer import Interval, RunStart


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_prefixes_are_of_one_width() -> None:
    stream = io.StringIO()
    screen = Screen(["pserver 0", "trainer 10"], stream=stream)
    screen.line("pserver 0", "up")
    screen.line("trainer 10", "up")
    assert stream.getvalue() == "pserver 0  | up\ntrainer 10 | up\n"


def test_roles_have_colours_of_their_own_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    screen = Screen([], stream=stream)
    names = ["pserver 0", "pserver 1", "trainer 0", "trainer 1"]
    for name in names:
        screen.line(name, "")
    assert len({line.split("m")[0] for line in stream.getvalue().splitlines()}) == len(names)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    Screen([], stream=plain).line("trainer 0", "up")
    assert plain.getvalue() == "trainer 0 | up\n"


def test_an_error_that_was_told_as_json_is_shown_in_words() -> None:
    stream = io.StringIO()
    body = {"error": {"kind": "DataError", "message": "no label", "hint": "look"}, "exit_code": 3}
    Screen([], stream=stream).line("trainer 0", json.dumps(body))
    assert stream.getvalue() == "trainer 0 | error: no label\ntrainer 0 | hint: look\n"


def test_what_trainers_tell_adds_up() -> None:
    streams = {name: io.StringIO() for name in ("trainer 0", "trainer 1")}
    for number, stream in enumerate(streams.values()):
        observer = ToldProgress(stream)
        observer.run_start(RunStart("dnn", 1, 1, 2, None))
        for pass_number in (0, 1):
            observer.pass_start(pass_number, 100)
            observer.advance(10 + number, 20)
            observer.interval(Interval(0, 1, 1, 1, 0.5, 0.1, {"auc": 0.75}, 1.0))
            observer.advance(10, 40)
        observer.close()
    total = TotalProgress()
    begun = [
        (name, total.pass_number)
        for name, stream in streams.items()
        for line in stream.getvalue().splitlines()
        if total.add(name, json.loads(line)["progress"])
    ]
    assert begun == [("trainer 0", 0), ("trainer 0", 1)]
    assert (total.pass_number, total.passes, total.samples) == (1, 2, 41)
    assert (total.num_bytes, total.total_bytes) == (80, 100)
    assert total.words == "loss 0.5000  auc 0.7500"


@pytest.mark.parametrize("told", [{}, {"pass": "x"}, None, [], {"pass": 0, "samples": None}])
def test_progress_that_makes_no_sense_changes_nothing(told: object) -> None:
    total = TotalProgress()
    assert not total.add("trainer 0", told)
    assert (total.samples, total.pass_number) == (0, 0)


class Unread(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_stream_that_nobody_reads_any_more_is_no_error() -> None:
    screen = Screen(["trainer 0"], stream=Unread())
    screen.line("trainer 0", "one")
    screen.note("two")
    screen.close()


def test_a_stream_on_a_full_disk_is_written_again_when_there_is_room() -> None:
    class Full(io.StringIO):
        has_room = False

        def write(self, text: str) -> int:
            if not self.has_room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(text)

    stream = Full()
    screen = Screen([], stream=stream)
    screen.note("lost")
    stream.has_room = True
    screen.note("shown")
    assert stream.getvalue() == "shown\n"


def test_a_bar_that_cannot_be_drawn_any_more_is_no_error() -> None:
    class Gone:
        def line(self, text: str) -> None:
            raise OSError(errno.EIO, text)

        def progress(self, name: str, _told: object) -> None:
            raise OSError(errno.EIO, name)

        def close(self) -> None:
            raise OSError(errno.EIO, "close")

    Screen([], stream=io.StringIO(), display=Gone()).progress("trainer 0", {})
    Screen([], stream=io.StringIO(), display=Gone()).close()
