"""What holds for every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from clickmill.cli.exits import MEANINGS
from clickmill.cli.main import app

from .conftest import Run, Spawn


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _walk(child, (*path, name))


TREE = dict(_walk(typer.main.get_command(app), ()))
LEAVES = {path: command for path, command in TREE.items() if not hasattr(command, "commands")}


def test_the_tree_has_the_commands_that_the_docs_name() -> None:
    assert {" ".join(path) for path in LEAVES} == {
        "train", "evaluate", "infer", "report", "pserver", "trainer", "pod", "pod-files", "ssh-cluster",
        "submit", "doctor", "models", "ps status",
        "cluster check", "cluster scale", "cluster snapshot", "cluster stop",
        "job ls", "job status", "job logs", "job wait", "job scale", "job fetch", "job stop", "job delete",
        "data synth", "data describe", "data split", "config check", "config show", "schema show",
    }  # fmt: skip


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "clickmill")
def test_help_has_an_example(run: Run, path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "Example:\n" in result.output
    assert f"    clickmill {' '.join(path)}" in result.output


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_command_has_json_and_says_what_its_options_do(path: tuple[str, ...]) -> None:
    parameters = {name: parameter for parameter in LEAVES[path].params for name in parameter.opts}
    assert "--json" in parameters
    assert all(parameter.help for parameter in parameters.values())


def test_exit_codes_are_documented(run: Run) -> None:
    output = run("--help").output
    assert all(f"{code:<4} {meaning}" in output for code, meaning in MEANINGS.items())


def test_help_waits_for_nothing_heavy(spawn: Spawn) -> None:
    result = spawn("--help", after="print(sorted(sys.modules), file=sys.stderr)")
    loaded = result.stderr
    assert result.returncode == 0
    for module in ("numpy", "torch", "pydantic", "yaml", "rich.table", "clickmill._core"):
        assert f"'{module}'" not in loaded


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("models",), ("config", "show", "-m", "dnn"), ("schema", "show", "-m", "dnn")],
)
def test_commands_that_do_not_train_work_without_torch(spawn: Spawn, arguments: tuple[str, ...]) -> None:
    result = spawn(*arguments, without=("torch", "safetensors", "pyarrow", "tensorboard"))
    assert (result.returncode, result.stderr) == (0, "")


def test_importing_the_package_needs_no_torch(spawn: Spawn) -> None:
    after = "import clickmill, clickmill.config, clickmill.schema; assert sys.modules['torch'] is None"
    result = spawn("--version", without=("torch",), after=after)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("command", ["train", "evaluate", "infer"])
def test_training_without_torch_says_what_to_install(spawn: Spawn, command: str) -> None:
    more = ("--output", "scores.txt") if command == "infer" else ()
    result = spawn(command, "-m", "dnn", *more, without=("torch",))
    assert result.returncode == 1
    assert "error: training needs torch, which is not installed" in result.stderr
    assert "hint: pip install 'clickmill[train]'" in result.stderr
    assert "Traceback" not in result.stderr
