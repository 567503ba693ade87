"""What of a job cannot change while it runs, as one number."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING

from clickmill.submit.kubernetes.names import TEMPLATE_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.submit.kubernetes.metadata import Object

_SCALABLE = ("minAvailable", "replicas", "completions", "parallelism", "priorityClassName")
"""Numbers that Volcano and Kubernetes let be changed; also of a task."""


def with_template_digest(item: Object) -> Object:
    """The object with an annotation by which a later one is known to be the same but for its numbers."""
    metadata = {**item["metadata"], "annotations": {TEMPLATE_ANNOTATION: template_digest(item)}}
    return {**item, "metadata": metadata}


def template_digest(item: Object) -> str:
    """Of the spec of a Volcano Job or batch Job without the numbers that may change."""
    text = json.dumps(fixed_part(item["spec"]), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def fixed_part(spec: Object) -> Object:
    """A copy of a job's spec without the numbers that may change."""
    fixed = copy.deepcopy(spec)
    for part in (fixed, *fixed.get("tasks", ())):
        for key in _SCALABLE:
            part.pop(key, None)
    return fixed


def differences(old: object, new: object, place: str = "") -> Iterator[str]:
    """Places at which two values differ, with both: `tasks.trainer.template...image: a -> b`.

    Lists of things that have names, as most lists in Kubernetes are, are compared by name.
    """
    old, new = _by_name(old), _by_name(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{place}.{index}")
    elif old != new:
        yield f"{place}: {_shown(old)} -> {_shown(new)}"


def _by_name(value: object) -> object:
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {str(item["name"]): item for item in value}
    return value


def _shown(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
