"""The description of a click log as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.cli.output import bytes_text, number_text, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_TOP = 3
MAX_VALUE_LENGTH = 24


def print_description(description: Mapping[str, Any], files: Sequence[Any]) -> None:
    """Three tables: the whole, the columns, and the first bad lines where there are any."""
    bad = description.get("bad_lines", {})
    num_bad = bad.get("count", 0) if isinstance(bad, dict) else bad
    summary = [
        ("files", f"{len(files):,}"),
        ("size", bytes_text(description.get("bytes", 0))),
        ("rows", f"{description.get('rows', 0):,}"),
        ("label rate", _share(description.get("label_rate"))),
        ("bad lines", f"{num_bad:,}"),
    ]
    print_table(("log", "value"), summary, numbers=("value",))
    columns = ("column", "coverage", "distinct", "min", "mean", "max", "most frequent")
    rows = [_column_row(column) for column in description.get("columns", [])]
    print_table(columns, rows, numbers=columns[1:6])
    first = bad.get("first", []) if isinstance(bad, dict) else []
    if first:
        places = [
            (f"{line['file']}:{line['line']}:{line.get('column') or 1}", line["reason"]) for line in first
        ]
        print_table(("bad line", "reason"), places)


def _column_row(column: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(column["name"]),
        _share(column.get("coverage")),
        number_text(column.get("distinct")),
        number_text(column.get("min")),
        number_text(column.get("mean")),
        number_text(column.get("max")),
        _top(column.get("top") or []),
    )


def _top(values: Sequence[Any]) -> str:
    shown = []
    for entry in values[:MAX_TOP]:
        value, count = (entry["value"], entry["count"]) if isinstance(entry, dict) else entry
        text = str(value) if str(value) else "(empty)"
        text = text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 1] + "…"
        shown.append(f"{text} ({count:,})")
    return ", ".join(shown)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
