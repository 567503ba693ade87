"""Manifests that we wrote, known by the labels of their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from clickmill.submit.kubernetes.names import MANAGER_LABEL, NAME_LABEL, Names

if TYPE_CHECKING:
    from collections.abc import Iterator

_LABELS = {key: value for key, value in Names("").labels.items() if key in {NAME_LABEL, MANAGER_LABEL}}
_FIRST_WORDS = "# Job `"
_WRITTEN_BY = "written by `clickmill submit"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def is_own_manifest(text: str) -> bool:
    """Whether a file has an object of a job, as `submit --dry-run -o yaml` or `-o json` writes them."""
    if MANAGER_LABEL not in text:
        return False
    try:
        return any(_is_own(item) for item in _objects(text))
    except (yaml.YAMLError, RecursionError):  # cut off, as where a disk was full
        first = text.partition("\n")[0]
        return first.startswith(_FIRST_WORDS) and _WRITTEN_BY in first


def _objects(text: str) -> Iterator[Any]:
    """Those of all documents, and those in lists."""
    for document in yaml.load_all(text, Loader=_LOADER):
        items = document.get("items") if isinstance(document, dict) else None
        yield from items if isinstance(items, list) else [document]


def _is_own(item: Any) -> bool:
    if not isinstance(item, dict) or "apiVersion" not in item or "kind" not in item:
        return False
    metadata = item.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return isinstance(labels, dict) and all(labels.get(key) == value for key, value in _LABELS.items())
