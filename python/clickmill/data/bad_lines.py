"""Bad lines in words."""

from __future__ import annotations

from typing import Any


def bad_line_words(line: dict[str, Any]) -> str:
    """`train.tsv:101:13: ...`; a record of a reader, which has no lines, goes by its number."""
    if line["column"] is None:
        place = f"record {line['line']}"
        return f"{line['file']}: {place}: {line['reason']}" if line["file"] else f"{place}: {line['reason']}"
    return f"{line['file']}:{line['line']}:{line['column']}: {line['reason']}"
