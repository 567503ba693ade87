"""`python -m clickmill` is the `clickmill` command."""

from __future__ import annotations

from clickmill.cli import main

if __name__ == "__main__":
    main()
