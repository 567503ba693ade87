"""The reference pages say what the code says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES: dict[Path, str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_reference_page_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path], "run `make docs`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_key_and_option_says_what_it_means(path: Path) -> None:
    for line in PAGES[path].splitlines():
        if line.startswith("| `") and path.parent.name == "reference":
            meaning = re.split(r"(?<!\\)\|", line)[-2].strip()
            assert meaning.endswith((".", "...")), line


@pytest.mark.parametrize("row", ["| `class` * | `Adam` |  |", "| `kind` * | `csv` |  |"])
def test_key_that_chooses_a_kind_is_required(row: str) -> None:
    assert row in PAGES[ROOT / "docs" / "reference" / "config.md"]


def test_format_pages_and_reference_agree_on_line_ends_in_quotes() -> None:
    assert "line ends inside quotes are not supported" in (ROOT / "docs/formats/samples.md").read_text()
    assert "may hold delimiters, but no line ends" in PAGES[ROOT / "docs" / "reference" / "config.md"]


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    headings = {_anchor(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        assert not file or (path.parent / file).exists(), target
        assert file or anchor in headings, target


def _anchor(heading: str) -> str:
    kept = "".join(char for char in heading.lower() if char.isalnum() or char in " _-")
    return kept.replace(" ", "-")
