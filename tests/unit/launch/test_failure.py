from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickmill.cli.exits import exit_code
from clickmill.errors import ClickmillError
from clickmill.launch.failure import exit_words, failure, is_final, told_error


def told(kind: str, hint: str | None = None) -> str:
    return json.dumps({"error": {"kind": kind, "message": "no", "hint": hint}, "exit_code": 1})


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
    error = failure("trainer 1", 1, ["before", told(kind, "do"), "after"], Path("a.log"))
    assert exit_code(error) == code
    assert (str(error), error.hint) == ("trainer 1: no", "do; its log is `a.log`")


def test_a_process_that_told_no_error_is_quoted() -> None:
    error = failure("pserver 0", -11, ["thread panicked at x.rs", "  ", ""], None)
    assert type(error) is ClickmillError
    assert str(error) == "pserver 0 was killed by SIGSEGV: thread panicked at x.rs"
    assert str(failure("pserver 0", 7, [], None)) == "pserver 0 ended with exit code 7"


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
