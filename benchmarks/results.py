"""Results as pages: benchmarks/results/<date>-<topic>.md, with everything that is needed to repeat them."""

from __future__ import annotations

import datetime
import shlex
import sys
from typing import TYPE_CHECKING

import machine
from environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FOLDER = ROOT / "benchmarks" / "results"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def command() -> str:
    """The command line of this process, as it would be typed in the root of the project."""
    arguments = [argument.replace(f"{ROOT}/", "") for argument in sys.argv]
    return shlex.join(["python", *arguments])


def write(
    topic: str, question: str, body: str, versions: Mapping[str, str], facts: Mapping[str, str]
) -> Path:
    """Writes the page of today; an earlier one of the same day is replaced."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    page = "\n\n".join(
        [
            f"# {question}",
            table(["", ""], [[key, value] for key, value in {"date": today, **facts}.items()]),
            f"Command: `{command()}`",
            "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
            body,
        ]
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{today}-{topic}.md"
    path.write_text(page + "\n")
    print(page)
    print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)
    return path


def facts() -> dict[str, str]:
    """Facts to be taken before the first run, while the load is still that of others."""
    return machine.facts()
