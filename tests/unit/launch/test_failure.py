from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from clickmill.cli.exits import exit_code
from clickmill.errors import ClickmillError
from clickmill.launch.failure import exit_words, failure, is_final, system_failure, told_error


def told(kind: str, hint: str | None = None, message: str = "no") -> str:
    return json.dumps({"error": {"kind": kind, "message": message, "hint": hint}, "exit_code": 1})


def log_of(name: str) -> Path:
    return Path("logs") / f"{name}.log"


def no_log(_name: str) -> None:
    return None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "ended with exit code 3"),
        (-9, "was killed by SIGKILL"),
        (137, "was killed by SIGKILL"),
        (255, "ended with exit code 255"),
        (128, "ended with exit code 128"),
    ],
)
def test_an_exit_code_is_said_in_words(code: int, words: str) -> None:
    assert exit_words(code) == words


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("ConfigError", 2),
        ("UsageError", 2),
        ("DataError", 3),
        ("FormatError", 4),
        ("StateError", 1),
        ("Odd", 1),
    ],
)
def test_a_run_fails_with_the_code_of_the_process_that_failed(kind: str, code: int) -> None:
    error = failure("trainer 1", 1, ["before", told(kind, "do"), "after"], log_of)
    assert exit_code(error) == code
    assert (str(error), error.hint) == ("trainer 1: no", "do; its log is `logs/trainer 1.log`")


def test_a_process_that_told_no_error_is_quoted() -> None:
    error = failure("pserver 0", -11, ["thread panicked at x.rs", "  ", ""], no_log)
    assert type(error) is ClickmillError
    assert str(error) == "pserver 0 was killed by SIGSEGV: thread panicked at x.rs"
    assert str(failure("pserver 0", 7, [], no_log)) == "pserver 0 ended with exit code 7"


SNAPSHOT = (
    "the last snapshot could not be committed: pserver 0: `a.rows`: No space left on device (os error 28)"
)


@pytest.mark.parametrize("message", [SNAPSHOT, f"the run has ended: {SNAPSHOT}"])
def test_the_end_of_the_whole_run_is_blamed_on_the_member_it_names(message: str) -> None:
    error = failure("pserver 1", 1, [told("RunFailedError", None, message)], log_of)
    assert str(error) == message
    assert error.hint is not None
    assert "the log of pserver 0 is `logs/pserver 0.log`" in error.hint
    assert "pserver 1" not in error.hint


def test_the_end_of_the_whole_run_is_blamed_on_nobody_where_it_names_none() -> None:
    message = "no trainer was there for 60 s"
    error = failure("pserver 1", 1, [told("RunFailedError", None, message)], log_of)
    assert (str(error), error.hint) == (message, "the logs are in `logs`")


@pytest.mark.parametrize("first", ["pserver 0", "pserver 1"])
def test_a_member_that_is_named_already_is_not_named_twice(first: str) -> None:
    message = "pserver 1: `a.rows`: block 0 is damaged"
    error = failure(first, 4, [told("FormatError", None, message)], log_of)
    assert (str(error), error.hint) == (message, "the log of pserver 1 is `logs/pserver 1.log`")


def test_another_member_in_the_words_of_one_does_not_take_its_blame() -> None:
    error = failure("trainer 1", 1, [told("StateError", None, "cannot load what pserver 0 sent")], log_of)
    assert str(error) == "trainer 1: cannot load what pserver 0 sent"
    assert error.hint == "its log is `logs/trainer 1.log`"


@pytest.mark.parametrize("reason", ["No space left on device", "Disk quota exceeded"])
def test_the_way_on_from_a_full_disk_is_told_once(reason: str) -> None:
    for own in (None, "free some space and go on with `--resume`"):
        error = failure("trainer 0", 1, [told("StorageError", own, f"cannot write `a`: {reason}")], no_log)
        assert error.hint == "free some space and go on with `--resume`"
    assert failure("trainer 0", 1, [told("StorageError", None, "cannot write `a`: no")], no_log).hint is None


def test_what_the_system_refuses_names_the_file_and_the_log() -> None:
    refused = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/token")
    error = system_failure("trainer 0", refused, Path("a.log"))
    assert str(error) == "trainer 0: `run/token`: No space left on device"
    assert error.hint == "free some space and go on with `--resume`; its log is `a.log`"
    other = system_failure("trainer 0", OSError(errno.EMFILE, os.strerror(errno.EMFILE)), Path("a.log"))
    assert (str(other), other.hint) == ("trainer 0: Too many open files", "its log is `a.log`")


@pytest.mark.parametrize(
    ("code", "words", "final"),
    [
        (2, [], True),
        (3, [], True),
        (1, [told("MissingExtra")], True),
        (1, [told("DivergedError")], True),
        (1, [told("RunFailedError")], True),
        (1, [told("StateError")], False),
        (-9, [], False),
        (1, ["Traceback"], False),
    ],
)
def test_only_what_may_pass_is_tried_again(code: int, words: list[str], final: bool) -> None:
    assert is_final(code, words) == final


@pytest.mark.parametrize(
    "line", ["", "{}", '{"error"', '{"error": 1}', '{"error": {"kind": "A"}}', "error: no"]
)
def test_other_lines_are_no_errors(line: str) -> None:
    assert told_error(line) is None
