"""`python -m clickmill.run -m config.yaml [-b backend.yaml]`: trains, or submits where a backend is named.

The way jobs are started by those who come from PaddleRec. In a process with PADDLE_PADDLEREC_ROLE=WORKER it
trains in any case: that is how the command of a job is the one that submitted it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BACKEND = ("-b", "--backend")


def command(arguments: Sequence[str]) -> list[str]:
    """The `clickmill` command that arguments mean; a backend makes it `submit`."""
    has_backend = any(
        word in _BACKEND or word.startswith(("--backend=", "-b=")) or _is_joined(word) for word in arguments
    )
    return ["submit" if has_backend else "train", *arguments]


def main() -> None:
    """Entry point of the module."""
    from clickmill.__main__ import main as start  # noqa: PLC0415 - as late as there

    sys.argv = [sys.argv[0], *command(sys.argv[1:])]
    start()


def _is_joined(word: str) -> bool:
    """`-bbackend.yaml`, as option parsers take it."""
    return word.startswith("-b") and len(word) > 2 and not word.startswith("--")


if __name__ == "__main__":
    main()
