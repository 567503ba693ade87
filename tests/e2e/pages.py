"""Pages of the documentation as a user follows them: files are written, commands are typed, in order.

A block that opens with three backticks, a language and a name (`yaml config.yaml`) is that file; a `bash`
block is typed into a shell.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.e2e.conftest import environment

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def install_command(folder: Path) -> Path:
    """A `clickmill` in `folder` that is the one under test, as an installation would have put it there."""
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / "clickmill"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clickmill "$@"\n')
    command.chmod(0o755)
    return command


def type_in(commands: str, folder: Path, *, path: str = "") -> subprocess.CompletedProcess[str]:
    """Commands in a shell that stops at the first failure, which is then shown."""
    variables = environment()
    variables["PATH"] = f"{path}:{variables['PATH']}" if path else variables["PATH"]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def follow(page: Path, folder: Path, bin_folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """Do what a page says in `folder`; what each of its shell blocks gave."""
    install_command(bin_folder)
    results = []
    for language, name, content in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if name:
            (folder / name).write_text(content, encoding="utf-8")
        elif language == "bash":
            results.append(type_in(content, folder, path=str(bin_folder)))
    return results
