"""The command line: `clickmill`. Data goes to stdout, talk to stderr; every command has `--json`."""

from __future__ import annotations

from clickmill.cli.main import main

__all__ = ["main"]
