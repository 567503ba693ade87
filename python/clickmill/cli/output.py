"""Printing: tables for people and JSON for programs, both on stdout."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clickmill.errors import StorageError
from clickmill.launch.terminal import is_terminal
from clickmill.store.plain_json import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table


@contextmanager
def stdout() -> Iterator[None]:
    """Around what prints: says that it was stdout that could not be written, and says it now, not at exit."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # the reader has gone, which is no failure of ours
    except OSError as error:
        sys.stdout = None  # nothing may be written any more, not even at exit
        raise StorageError(f"cannot write to stdout: {error.strerror or error}") from error


def can_print(text: str) -> bool:
    """Whether stdout has all its characters; it may be Latin-1 or ASCII."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_json(value: Any) -> None:
    """One JSON value on stdout, indented where a person reads it; NaN and infinity become null."""
    with stdout():
        text = plain_json(value, indent=2 if is_terminal(sys.stdout) else None)
        sys.stdout.write((text if can_print(text) else json.dumps(json.loads(text))) + "\n")


def print_text(text: str) -> None:
    """Text on stdout."""
    with stdout():
        sys.stdout.write(text + "\n")


def talk(text: str) -> None:
    """Words for the person on stderr."""
    sys.stderr.write(text + "\n")


def console() -> Console:
    """Stdout with colour where it is a terminal and `NO_COLOR` is not set."""
    from rich.console import Console

    if is_terminal(sys.stdout):
        return Console(highlight=False)
    # Away from a terminal a table must not be folded to some default width; there `FORCE_COLOR` counts, too.
    return Console(highlight=False, force_terminal=False if sys.stdout.isatty() else None, width=160)


def show(table: Table) -> None:
    """A table on stdout."""
    with stdout():
        console().print(table)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    numbers: Sequence[str] = (),
) -> None:
    """A table on stdout; columns named in `numbers` are set flush right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    show(table)


def bytes_text(num_bytes: float) -> str:
    """`1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if num_bytes < 1024:
            return f"{num_bytes:.0f} {unit}" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.1f} TiB"


def number_text(value: float | None) -> str:
    """A number as short as it can be said; `-` for none."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
