"""JSON that every reader takes: NaN and infinity, which JSON does not have, become null."""

from __future__ import annotations

import json
import math
from typing import Any


def plain_json(value: Any, *, indent: int | None = None) -> str:
    """The text of `value`; what JSON does not know, such as a path, becomes text."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=False, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
