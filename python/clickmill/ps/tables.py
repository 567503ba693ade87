"""The tables of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clickmill._core import Batch, Lookup


class Table(Protocol):
    """Rows by sign, wherever they are. `clickmill._core.Table` is the one in this process."""

    def lookup_batch(self, batch: Batch, group: int, train: bool) -> Lookup:
        """Rows of all distinct signs of a group; with `train` rows are made for signs that are admitted."""

    def apply(self, lookup: Lookup, learning_rate: float, scale: float = 1.0) -> None:
        """One optimizer step with the gradients gathered in the lookup, each times `scale`."""

    def begin_step(self, step: int) -> None:
        """Say which update comes next, counted from 1."""


class TableSet:
    """Tables by name."""

    def __init__(self, tables: Mapping[str, Table], learning_rates: Mapping[str, float]) -> None:
        self._tables = dict(tables)
        self._learning_rates = dict(learning_rates)

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def learning_rate(self, name: str) -> float:
        """Base learning rate of a table."""
        return self._learning_rates[name]

    def begin_step(self, step: int) -> None:
        """Tell all tables which update comes next."""
        for table in self._tables.values():
            table.begin_step(step)
