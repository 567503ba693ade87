"""What the pages tell people to type is what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clickmill.config import load_config, parse_config
from clickmill.config.backend import parse_backend

ROOT = Path(__file__).parents[3]


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_configuration_of_the_readme_parses(name: str) -> None:
    text = "\n".join(_blocks(ROOT / name, "bash"))
    (config,) = re.findall(r"<<'END'\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)
    assert parse_config(config).notes == ()


def test_both_readmes_show_the_same_commands() -> None:
    assert _blocks(ROOT / "README.md", "bash") == _blocks(ROOT / "README.zh-CN.md", "bash")


def test_continuous_integration_runs_the_commands_of_the_readme() -> None:
    first_two = [block.strip() for block in _blocks(ROOT / "README.md", "bash")[:2]]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if line.startswith("make ")] == first_two


def test_first_configuration_of_the_guide_parses() -> None:
    first, *_ = _blocks(ROOT / "docs" / "guides" / "configuration.md", "yaml")
    assert parse_config(first).phase[0].builtin == "dnn"


@pytest.mark.parametrize(
    "text",
    re.findall(
        r"^```yaml[^\n]*\n(backend:.*?)^```",
        (ROOT / "docs" / "guides" / "submitting.md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    ),
)
def test_backend_of_the_guide_parses(text: str) -> None:
    assert parse_backend(text).notes == ()


@pytest.mark.parametrize(
    "path",
    [path for path in sorted((ROOT / "examples").glob("*/*.yaml")) if not path.stem.endswith("schema")],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_configuration_of_an_example_is_sound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert load_config(path).notes == ()
