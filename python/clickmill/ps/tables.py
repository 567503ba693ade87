"""The tables of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from clickmill import _core

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


class Table(Protocol):
    """Rows by sign, wherever they are. `clickmill._core.Table` is the one in this process."""

    @property
    def step(self) -> int:
        """The update that the table is in; 0 before the first."""

    @property
    def has_statistics(self) -> bool:
        """Whether rows keep counts of shows and clicks, which lookups then observe."""

    def lookup_batch(self, batch: _core.Batch, group: int, train: bool) -> _core.Lookup:
        """Rows of all distinct signs of a group; with `train` rows are made for signs that are admitted."""

    def locate_batch(self, batch: _core.Batch, group: int) -> _core.Located:
        """Find or make the rows of a group, without reading them: work that need not wait for `apply`."""

    def locate(self, signs: NDArray[np.uint64]) -> _core.Located:
        """Find or make the rows of distinct signs that came from elsewhere."""

    def lookup(self, signs: NDArray[np.uint64], train: bool) -> _core.Lookup:
        """Rows of distinct signs that came from elsewhere; with `train` rows are made as in `locate`."""

    def fill(self, located: _core.Located) -> _core.Lookup:
        """Read what was located, as it is now."""

    def apply(self, lookup: _core.Lookup, learning_rate: float, scale: float = 1.0) -> None:
        """One optimizer step with the gradients gathered in the lookup, each times `scale`."""

    def begin_step(self, step: int) -> None:
        """Say which update comes next, counted from 1."""

    def evict(self) -> str:
        """Drop rows by the table's policies, at a fence; JSON report."""

    def save(self, path: Path, base: str | None = None) -> str:
        """Write all rows, or what changed since the save with the id `base`; JSON report with the new id.

        DivergedError, with nothing written, where a row is not finite.
        """

    def check_finite(self) -> None:
        """DivergedError that names a row with a NaN or an infinite number in it, if there is one."""

    def digest(self) -> str:
        """A text that is equal for equal tables, however they are laid out."""


class TableSet:
    """Tables of this process, by name, with their learning rates."""

    def __init__(
        self,
        configs: Mapping[str, str],
        learning_rates: Mapping[str, float],
        restarting: Collection[str] = (),
        share: tuple[int, int] | None = None,
    ) -> None:
        """`share`: index and count of those who hold the rows between them; None holds all."""
        self._share = share
        self._configs = dict(configs)
        self._learning_rates = dict(learning_rates)
        self._restarting = tuple(restarting)
        self._tables: dict[str, Table] = {name: _core.Table(config) for name, config in configs.items()}
        self._first_steps = dict.fromkeys(configs, 0)
        """Updates of each table before the first of this run: rows that were loaded know of them."""

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def load(self, name: str, files: Sequence[Path], *, as_stored: bool = False) -> None:
        """Replace a table by what was saved: the full file first, then the differences in order.

        `as_stored` leaves it its own settings; otherwise those of this set take their place, and must be for
        rows of the same shape.
        """
        self._tables[name] = _core.Table.load(
            list(files), None if as_stored else self._configs[name], self._share
        )

    def load_weights(self, name: str, files: Sequence[Path]) -> None:
        """Replace a table by one with the weights that were saved, trained by nobody yet."""
        config, learning_rate = self._configs[name], self._learning_rates[name]
        self._tables[name] = _core.Table.load_weights(list(files), config, learning_rate, self._share)

    def restart(self, step: int) -> tuple[str, ...]:
        """Empty the tables that start anew with each pass, `step` updates into the run; their names."""
        for name in self._restarting:
            self._tables[name] = _core.Table(self._configs[name])
            # Otherwise the first rows would seem to have missed all updates so far.
            self._tables[name].begin_step(step)
        return self._restarting

    def clear(self) -> list[_core.Table]:
        """Empty all tables, as before the first update; the new ones, in order."""
        tables = {name: _core.Table(config) for name, config in self._configs.items()}
        self._tables = dict(tables)
        self._first_steps = dict.fromkeys(tables, 0)
        return list(tables.values())

    def config(self, name: str) -> str:
        """Configuration that a table was made with, JSON."""
        return self._configs[name]

    @property
    def restarting(self) -> tuple[str, ...]:
        """Tables that start anew with each pass."""
        return self._restarting

    def learning_rate(self, name: str) -> float:
        """Base learning rate of a table."""
        return self._learning_rates[name]

    def begin_step(self, step: int) -> None:
        """Tell all tables which update comes next."""
        for name, table in self._tables.items():
            table.begin_step(self._first_steps[name] + step)

    def join_step(self, step: int) -> None:
        """Say that the run has made `step` updates: tables count on from where they are."""
        for name, table in self._tables.items():
            self._first_steps[name] = table.step - step
