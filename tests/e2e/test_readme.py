"""What the README tells people to type does what it promises; only the number of rows is smaller."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, copy_example
from tests.e2e.pages import install_command, type_in

_ROWS = re.compile(r"(--rows|--start-row) (\d+)")


def fewer_rows(commands: str) -> str:
    """A hundredth of the rows, the start of a later range included."""
    return _ROWS.sub(lambda found: f"{found[1]} {int(found[2]) // 100}", commands)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty checkout in which "Train something" has been typed."""
    folder = tmp_path_factory.mktemp("readme")
    install_command(folder / ".venv" / "bin")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^## Train something\n+```bash\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    type_in(fewer_rows(commands), folder)
    return folder


def test_training_leaves_a_checkpoint_a_journal_and_a_report(followed: Path) -> None:
    run = followed / "runs" / "train"
    assert (run / "checkpoints" / "0" / "checkpoint.json").is_file()
    assert (run / "report.html").read_text(encoding="utf-8").count("<svg") >= 3
    events = [json.loads(line)["event"] for line in (run / "journal.jsonl").read_text().splitlines()]
    assert {"run_start", "interval", "pass_end", "saved"} <= set(events)


def test_single_values_are_changed_as_the_readme_shows(followed: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`(clickmill train [^`]*--set[^`]*)`", readme)
    done = type_in(f"{command} --json", followed, path=str(followed / ".venv" / "bin"))
    (summary,) = json.loads(done.stdout)
    assert summary["checkpoint"] == "runs/train/checkpoints/1"


def test_there_are_as_many_models_as_the_readme_counts(followed: Path) -> None:
    models = json.loads(type_in(".venv/bin/clickmill models --json", followed).stdout)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "**Twelve models" in readme
    assert len(models) == 12


def test_the_demo_trains_evaluates_and_draws_the_curve(tmp_path: Path) -> None:
    copy_example("criteo", tmp_path)
    install_command(tmp_path / ".venv" / "bin")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    commands = recipe.replace("\t", "").replace("$(BIN)", ".venv/bin")
    done = type_in(fewer_rows(commands), tmp_path)
    assert re.search(r"^ *auc +0\.\d+ +0\.\d+", done.stdout, re.MULTILINE), done.stdout
    page = (tmp_path / "examples/criteo/run/report.html").read_text(encoding="utf-8")
    assert "<svg" in page
