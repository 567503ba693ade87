"""How signs reach who holds their rows, rows come back, and gradients follow.

    replicated   every rank holds all rows: all hear all signs and all gradients
    sharded      each row has one owner: signs go there, rows come back, gradients go there

Either way a rank holds the rows of what each rank asked for, in the order of the ranks, and updates each of
them once with the sum of the gradients in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clickmill import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clickmill.train.collective.channel import Channel

    Signs = NDArray[np.uint64]
    Array = NDArray[np.float32]
    Index = NDArray[Any]
    Rows = Callable[[int], Array]
    """Rows [U,D] of a feed for the rank with this number."""


@dataclass(frozen=True)
class Ask:
    """The signs of a group of slots that this rank has asked for."""

    num_signs: int
    order: Index | None
    """Positions of its signs by owner; none where all ranks hold all rows."""
    given: list[int]
    """Signs that it has sent to each rank."""
    taken: list[int]
    """Signs that each rank has sent to it."""


class Placement(Protocol):
    """Where rows are."""

    def ask(self, groups: list[Signs]) -> tuple[list[Ask], list[list[Signs]]]:
        """Tell the signs of each group of slots; what each rank asks of this one, by group and rank."""

    def answer(self, asks: list[Ask], rows: list[Rows]) -> list[Array]:
        """Give each rank the rows it asked for; for each feed the rows [U,D] that this one asked for."""

    def give(self, asks: list[Ask], columns: list[Array]) -> list[list[Array]]:
        """Send numbers [U,N] of the signs asked for to who holds the rows; by feed and rank."""


class Replicated:
    """All ranks hold all rows."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def ask(self, groups: list[Signs]) -> tuple[list[Ask], list[list[Signs]]]:
        counts = self._channel.gather_numbers([len(signs) for signs in groups]).astype(int)
        gathered = self._channel.gather(np.concatenate(groups), counts.sum(axis=1).tolist())
        # By rank and group, then by group and rank.
        parts = [np.split(found, np.cumsum(own)[:-1]) for found, own in zip(gathered, counts, strict=True)]
        asks = [Ask(len(signs), None, [], counts[:, group].tolist()) for group, signs in enumerate(groups)]
        return asks, [[part[group] for part in parts] for group in range(len(groups))]

    def answer(self, asks: list[Ask], rows: list[Rows]) -> list[Array]:
        del asks
        return [each(self._channel.rank) for each in rows]

    def give(self, asks: list[Ask], columns: list[Array]) -> list[list[Array]]:
        widths = [column.shape[1] for column in columns]
        counts = [
            sum(ask.taken[rank] * width for ask, width in zip(asks, widths, strict=True))
            for rank in range(self._channel.world)
        ]
        flat = np.concatenate([column.reshape(-1) for column in columns])
        found = self._channel.gather(flat, counts)
        return _by_feed(found, [[ask.taken[rank] for ask in asks] for rank in range(len(found))], widths)


class Sharded:
    """Each row has one owner."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def ask(self, groups: list[Signs]) -> tuple[list[Ask], list[list[Signs]]]:
        world, rank = self._channel.world, self._channel.rank
        split = [_core.split_signs(signs, world) for signs in groups]
        numbers = np.concatenate([counts for _, counts in split])
        # [W from, G, W to]
        counts = self._channel.gather_numbers(numbers.tolist()).astype(int).reshape(world, len(groups), world)
        asks = [
            Ask(len(signs), order, counts[rank, group].tolist(), counts[:, group, rank].tolist())
            for group, (signs, (order, _)) in enumerate(zip(groups, split, strict=True))
        ]
        ordered = [signs[order] for signs, (order, _) in zip(groups, split, strict=True)]
        found = self._exchange(
            [
                [
                    part[to]
                    for part in (_cut(each, ask.given) for each, ask in zip(ordered, asks, strict=True))
                ]
                for to in range(world)
            ],
            [[ask.taken[source] for ask in asks] for source in range(world)],
            [1] * len(asks),
        )
        return asks, [[part.reshape(-1) for part in parts] for parts in found]

    def answer(self, asks: list[Ask], rows: list[Rows]) -> list[Array]:
        world = self._channel.world
        parts = [[each(to) for each in rows] for to in range(world)]
        found = self._exchange(
            parts,
            [[ask.given[source] for ask in asks] for source in range(world)],
            [part.shape[1] for part in parts[0]],
        )
        answered = []
        for ask, came in zip(asks, found, strict=True):
            values = np.empty((ask.num_signs, came[0].shape[1]), np.float32)
            values[ask.order] = np.concatenate(came)
            answered.append(values)
        return answered

    def give(self, asks: list[Ask], columns: list[Array]) -> list[list[Array]]:
        world = self._channel.world
        cuts = [_cut(column[ask.order], ask.given) for ask, column in zip(asks, columns, strict=True)]
        return self._exchange(
            [[cut[to] for cut in cuts] for to in range(world)],
            [[ask.taken[source] for ask in asks] for source in range(world)],
            [column.shape[1] for column in columns],
        )

    def _exchange(self, parts: list[list[Any]], taken: list[list[int]], widths: list[int]) -> list[list[Any]]:
        """Parts by rank and feed in one message a rank; what came, by feed and rank."""
        messages = [np.concatenate([part.reshape(-1) for part in each]) for each in parts]
        found = self._channel.exchange(
            np.concatenate(messages),
            [len(message) for message in messages],
            [sum(count * width for count, width in zip(each, widths, strict=True)) for each in taken],
        )
        return _by_feed(found, taken, widths)


def _by_feed(found: list[Any], counts: list[list[int]], widths: list[int]) -> list[list[Any]]:
    """Messages of all ranks, each with `counts` rows of `widths` for the feeds in order, by feed and rank."""
    parts: list[list[Any]] = [[] for _ in widths]
    for message, of_feeds in zip(found, counts, strict=True):
        start = 0
        for feed, (count, width) in enumerate(zip(of_feeds, widths, strict=True)):
            parts[feed].append(message[start : start + count * width].reshape(count, width))
            start += count * width
    return parts


def _cut(values: Any, counts: list[int]) -> list[Any]:
    return np.split(values, np.cumsum(counts)[:-1])
