"""The real command in a process of its own, on a copy of an example, as a user has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLICKMILL = (sys.executable, "-m", "clickmill")


@dataclass(frozen=True)
class Workplace:
    """A folder in which commands are started."""

    folder: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A command that must succeed."""
        done = subprocess.run(
            [*CLICKMILL, *map(str, arguments)],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stderr}"
        return done

    def json(self, *arguments: str | Path) -> Any:
        """What a command prints with `--json`."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A command that goes on; its talk can be read line by line."""
        return subprocess.Popen(
            [*CLICKMILL, *map(str, arguments)],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


def environment() -> dict[str, str]:
    """Without colours, whatever the terminal of the tests wants."""
    return {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"} | {"NO_COLOR": "1"}


def copy_example(name: str, parent: Path) -> Workplace:
    """The example `name` without data and runs, in a folder of its own below `parent`."""
    target = parent / "examples" / name
    shutil.copytree(ROOT / "examples" / name, target, ignore=shutil.ignore_patterns("data", "run"))
    return Workplace(parent)
