"""The description of a click log as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.cli.output import bytes_text, can_print, number_text, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_FREQUENT = 3
MAX_VALUE_LENGTH = 24
BAR_LENGTH = 8


def print_description(description: Mapping[str, Any], files: Sequence[Any]) -> None:
    """Three tables: the whole, the columns, and the first bad lines where there are any."""
    print_table(("log", "value"), _summary(description, len(files)), numbers=("value",))
    columns = ("column", "coverage", "distinct", "min", "mean", "max", "values per row", "most frequent")
    rows = [_column_row(column) for column in description["columns"]]
    if rows:
        print_table(columns, rows, numbers=columns[2:7])
    bad = description["bad_lines"]["first"]
    if bad:
        places = [(f"{line['file']}:{line['line']}:{line['column']}", line["reason"]) for line in bad]
        print_table(("bad line", "reason"), places)


def _summary(description: Mapping[str, Any], num_files: int) -> list[tuple[str, str]]:
    label = description["label"]
    rows = [
        ("files", f"{num_files:,}"),
        ("read, unpacked", bytes_text(description["bytes"])),
        ("rows", f"{description['rows']:,}" + (" (not all)" if description["is_partial"] else "")),
        ("bad lines", f"{description['bad_lines']['count']:,}"),
    ]
    if label is not None:
        rows.append((f"mean of {label['column']}", f"{label['rate']:.4g}"))
    if description["num_other_columns"]:
        rows.append(("columns not shown", f"{description['num_other_columns']:,}"))
    return rows


def _column_row(column: Mapping[str, Any]) -> tuple[str, ...]:
    numbers = column["numbers"] or {}
    return (
        column["name"],
        f"{_bar(column['coverage'])} {column['coverage']:>6.1%}",
        f"{'' if column['is_exact'] else '~'}{column['distinct']:,}",
        number_text(numbers.get("min")),
        number_text(numbers.get("mean")),
        number_text(numbers.get("max")),
        f"{column['mean_length']:.1f}, at most {column['max_length']:,}" if column["max_length"] > 1 else "1",
        ", ".join(f"{_value(value)} {share:.1%}" for value, share in column["frequent"][:MAX_FREQUENT]),
    )


def _bar(share: float) -> str:
    filled = round(share * BAR_LENGTH)
    full, empty = "█░" if can_print("█░") else "#."
    return full * filled + empty * (BAR_LENGTH - filled)


def _value(value: str) -> str:
    if not value:
        return "(empty)"
    end = "…" if can_print("…") else "~"
    return value if len(value) <= MAX_VALUE_LENGTH else value[: MAX_VALUE_LENGTH - 1] + end
