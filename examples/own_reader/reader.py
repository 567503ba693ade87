"""A reader of our own: JSON lines, which clickmill does not know, as dicts, which it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reader:
    """Yields one dict for each sample; its keys are the columns of the schema."""

    def __init__(self, files: list[str], options: dict[str, Any]) -> None:
        self.files = files
        self.min_seconds = float(options.get("min_seconds", 0.0))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for file in self.files:
            with Path(file).open(encoding="utf-8") as lines:
                for line in lines:
                    event = json.loads(line)
                    yield {
                        "played": int(event["seconds"] >= self.min_seconds),
                        "user": event["user"]["id"],
                        "country": event["user"].get("country"),  # None: the value is absent
                        "song": event["song"],
                        "tags": event["tags"],
                        "volume": event["volume"],
                    }
