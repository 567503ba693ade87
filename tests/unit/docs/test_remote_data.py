"""The guide to data elsewhere lists every variable that is read for it."""

from __future__ import annotations

import re
from pathlib import Path

from clickmill.store.remote.url import SCHEMES

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/guides/remote-data.md").read_text(encoding="utf-8")
SOURCES = "".join(
    path.read_text(encoding="utf-8")
    for path in (
        *(ROOT / "python/clickmill/store/remote").glob("*.py"),
        ROOT / "python/clickmill/train/uploads.py",
    )
)


def test_the_guide_lists_every_variable() -> None:
    read = set(re.findall(r'"((?:AWS|CLICKMILL|HADOOP)_\w+)"', SOURCES))
    assert {"CLICKMILL_CACHE", "CLICKMILL_UPLOAD", "AWS_ACCESS_KEY_ID"} <= read
    aliases = {"AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"}
    assert read - aliases - set(re.findall(r"`(\w+)(?:=\w+)?`", GUIDE)) == set()


def test_the_guide_lists_every_scheme() -> None:
    assert all(f"`{scheme}://" in GUIDE for scheme in SCHEMES)
