from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from clickmill.cli.main import app

SMALL = """\
workspace: "./"
mode: train
runner:
- {name: train, class: train}
dataset:
- {name: log, data_path: "{workspace}/train.tsv"}
phase:
- {name: first, model: dnn, dataset_name: log}
"""

Run = Callable[..., Result]
Spawn = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Run:
    """A command in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def spawn(tmp_path: Path) -> Spawn:
    """A command in a process of its own, with modules that cannot be imported there."""

    def start(
        *arguments: str,
        without: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        after: str = "",
    ) -> subprocess.CompletedProcess[str]:
        code = f"""
import sys
for name in {list(without)!r}:
    sys.modules[name] = None
sys.argv = ["clickmill", *{list(arguments)!r}]
from clickmill.__main__ import main
try:
    main()
finally:
    {after or "pass"}
"""
        plain = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**plain, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    return start


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(SMALL)
    return file
