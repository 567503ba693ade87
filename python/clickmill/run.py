"""`python -m clickmill.run -m config.yaml [-b backend.yaml]`: trains, or submits where a backend is named.

The way jobs are started by those who come from PaddleRec. In a process with PADDLE_PADDLEREC_ROLE=WORKER it
trains in any case: that is how the command of a job is the one that submitted it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = """\
Usage: python -m clickmill.run -m CONFIG [OPTIONS]             trains, as `clickmill train`
       python -m clickmill.run -m CONFIG -b BACKEND [OPTIONS]  submits, as `clickmill submit`

`clickmill train --help` and `clickmill submit --help` list the options.
"""


def command(arguments: Sequence[str]) -> list[str]:
    """The `clickmill` command that arguments mean; a backend makes it `submit`."""
    words = [part for word in arguments for part in _split(word)]
    has_backend = any(word in {"-b", "--backend"} or word.startswith("--backend=") for word in words)
    return ["submit" if has_backend else "train", *words]


def main() -> None:
    """Entry point of the module."""
    words = command(sys.argv[1:])
    if words[0] == "train" and "--help" in words:
        sys.stdout.write(_HELP)
        return
    from clickmill.__main__ import main as start  # noqa: PLC0415 - as late as there

    sys.argv = [sys.argv[0], *words]
    start()


def _split(word: str) -> list[str]:
    """`-mconfig.yaml` and `-m=config.yaml`, as the parser of PaddleRec takes them."""
    is_joined = word.startswith(("-m", "-b")) and len(word) > 2
    return [word[:2], word[2:].removeprefix("=")] if is_joined else [word]


if __name__ == "__main__":
    main()
