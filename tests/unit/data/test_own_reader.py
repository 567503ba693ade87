"""A user's reader class that fails: whose fault it is, and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.data.test_reader_records import schema

from clickmill.data.records import RecordSource, load_reader_class
from clickmill.errors import ConfigError, DataError, Terminated


class Reader:
    """Gives three samples, then raises what it is told to."""

    def __init__(self, files: Any, options: dict[str, Any]) -> None:
        self.error = options["error"]

    def __iter__(self) -> Any:
        for number in range(3):
            yield {"click": number % 2, "price": 1.0, "tags": ["a"]}
        raise self.error


def read_all(error: BaseException, position: str | None = None) -> None:
    read(Reader, {"error": error}, position)


def read(
    reader_class: type[Any],
    options: dict[str, Any],
    position: str | None = None,
    files: tuple[str, ...] = (),
) -> None:
    source = RecordSource(
        reader_class,
        [Path(file) for file in files],
        schema(),
        options=options,
        batch_size=2,
        keep_last=True,
        require_slots=False,
        has_binary_label=True,
        max_bad_records=None,
        shuffle={"kind": "none"},
        pass_number=0,
        position=position,
    )
    while source.next() is not None:
        pass


def test_what_a_reader_raises_is_an_error_of_the_data_that_names_reader_and_line():
    with pytest.raises(DataError, match="reader `Reader` failed after 3 samples: ValueError: odd") as caught:
        read_all(ValueError("odd"))
    assert caught.value.hint is not None
    assert "test_own_reader.py`, line 26, `__iter__`" in caught.value.hint
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_the_system_says_may_pass_and_stays_what_it_is():
    with pytest.raises(ConnectionResetError):
        read_all(ConnectionResetError())


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (("a",), "`a`"),
        (("a", "b"), "`a` and `b`"),
        (("a", "b", "c", "d", "e"), "`a`, `b`, `c` and 2 more"),
    ],
)
def test_the_files_that_a_reader_was_given_are_named(files, named):
    with pytest.raises(DataError, match=f"failed after 3 samples of {named}: ValueError"):
        read(Reader, {"error": ValueError()}, files=files)


def test_a_reader_that_exits_has_failed():
    with pytest.raises(DataError, match="reader `Reader` failed after 3 samples: SystemExit: 7"):
        read_all(SystemExit(7))


def test_a_signal_that_comes_while_a_reader_runs_is_not_its_fault():
    with pytest.raises(Terminated):
        read_all(Terminated(143))


@pytest.fixture
def reader(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a reader file."""

    def write(text: str) -> Path:
        path = tmp_path / "reader.py"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "cause", "place"),
    [
        (
            "import json\nclass Reader:\n    def __init__(self):\n        json.loads('{')\n",
            "JSONDecodeError: Expecting property name",
            "line 4, `__init__`",
        ),
        (
            "class Reader:\n    def __iter__(self):\n        raise KeyError('user')\n",
            "KeyError: 'user'",
            "line 3, `__iter__`",
        ),
        ("class Reader:\n    pass\n", "TypeError: 'Reader' object is not iterable", "line 1"),
        (
            "\nclass Reader:\n    def __init__(self, a, b, c):\n        pass\n",
            "TypeError: Reader.__init__() missing 1 required positional argument: 'c'",
            "line 2",
        ),
    ],
    ids=["made", "iterated", "no-iterator", "arguments"],
)
def test_what_a_reader_raises_before_its_first_sample_names_its_own_line(reader, text, cause, place):
    path = reader(text)
    expected = f"reader `Reader` failed before its first sample: {cause}"
    with pytest.raises(DataError, match=re.escape(expected)) as caught:
        read(load_reader_class(path, "Reader"), {})
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"`{path}`, {place}")


@pytest.mark.parametrize(
    ("text", "cause", "place"),
    [
        ("\nimport jsonn\n", "ModuleNotFoundError: No module named 'jsonn'", "line 2, `<module>`"),
        ("\n\nclass Reader\n", "SyntaxError: expected ':'", "line 3"),
        ("limit = int('many')\n", "ValueError: invalid literal for int()", "line 1, `<module>`"),
        ("import sys\nsys.exit(7)\n", "SystemExit: 7", "line 2, `<module>`"),
    ],
    ids=["module", "syntax", "value", "exit"],
)
def test_a_reader_file_that_cannot_be_imported_is_an_error_of_the_configuration(reader, text, cause, place):
    path = reader(text)
    expected = f"reader file `{path}` cannot be imported: {cause}"
    with pytest.raises(ConfigError, match=re.escape(expected)) as caught:
        load_reader_class(path, "Reader")
    assert caught.value.hint == f"raised in `{path}`, {place}"
