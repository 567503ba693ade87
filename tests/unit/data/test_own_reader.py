"""A user's reader class that fails: whose fault it is, and where."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.data.test_reader_records import schema

from clickmill.data.records import RecordSource
from clickmill.errors import DataError


class Reader:
    """Gives three samples, then raises what it is told to."""

    def __init__(self, files: Any, options: dict[str, Any]) -> None:
        self.error = options["error"]

    def __iter__(self) -> Any:
        for number in range(3):
            yield {"click": number % 2, "price": 1.0, "tags": ["a"]}
        raise self.error


def read_all(error: Exception, position: str | None = None) -> None:
    source = RecordSource(
        Reader,
        [],
        schema(),
        options={"error": error},
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
    assert "test_own_reader.py`, line 23, `__iter__`" in caught.value.hint
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_the_system_says_may_pass_and_stays_what_it_is():
    with pytest.raises(ConnectionResetError):
        read_all(ConnectionResetError())
