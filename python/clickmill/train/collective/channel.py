"""What the ranks of a group say to each other, in arrays.

A channel is a process group of torch with a deadline. All ranks call the same methods in the same order;
channels are independent of each other, so that two threads can each use one of their own.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist

from clickmill.errors import MemberLostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_CHUNK_BYTES = 4 << 20


class Channel:
    """One line between the ranks of a group."""

    def __init__(self, group: dist.ProcessGroup, rank: int, world: int, deadline_s: float) -> None:
        self._group = group
        self._deadline_s = deadline_s
        self.rank = rank
        self.world = world

    def gather_numbers(self, numbers: Sequence[float]) -> NDArray[np.float64]:
        """Numbers [W,N] of all ranks, which each give as many."""
        own = torch.tensor(numbers, dtype=torch.float64)
        found = torch.empty(self.world, len(numbers), dtype=torch.float64)
        with self._told("gather numbers"):
            dist.all_gather_into_tensor(found.view(-1), own, group=self._group)
        return found.numpy()

    def gather(self, values: Array, counts: Sequence[int]) -> list[Array]:
        """One-dimensional `values` of all ranks; all know the `counts` of each."""
        longest = max(counts)
        if longest == 0:
            return [values[:0] for _ in counts]
        own = np.zeros(longest, values.dtype)
        own[: len(values)] = values
        found = np.empty((self.world, longest), values.dtype)
        with self._told("gather arrays"):
            dist.all_gather_into_tensor(_bytes(found), _bytes(own), group=self._group)
        return [found[rank, :count] for rank, count in enumerate(counts)]

    def exchange(self, values: Array, given: Sequence[int], taken: Sequence[int]) -> list[Array]:
        """Give each rank its part of `values`, which lie in the order of the ranks; what they gave."""
        size = values.dtype.itemsize
        found = np.empty(sum(taken), values.dtype)
        with self._told("exchange arrays"):
            dist.all_to_all_single(
                _bytes(found),
                _bytes(np.ascontiguousarray(values)),
                [count * size for count in taken],
                [count * size for count in given],
                group=self._group,
            )
        return np.split(found, np.cumsum(taken[:-1]))

    def add(self, tensor: torch.Tensor) -> None:
        """Put the sum over all ranks in the place of `tensor`, with the same bits on each of them."""
        with self._told("sum gradients"):
            dist.all_reduce(tensor, group=self._group)

    def gather_json(self, value: Any) -> list[Any]:
        """A JSON value of each rank."""
        own = np.frombuffer(json.dumps(value).encode(), np.uint8)
        counts = self.gather_numbers([len(own)])[:, 0].astype(int).tolist()
        return [json.loads(text.tobytes()) for text in self.gather(own, counts)]

    def tell(self, value: Any = None) -> Any:
        """The JSON value of rank 0, on all ranks."""
        return self.gather_json(value if self.rank == 0 else None)[0]

    def gather_bytes(self, content: bytes) -> list[bytes]:
        """Bytes of each rank."""
        own = np.frombuffer(content, np.uint8)
        counts = self.gather_numbers([len(own)])[:, 0].astype(int).tolist()
        return [found.tobytes() for found in self.gather(own, counts)]

    def send_chunks(self, chunks: Iterator[bytes]) -> None:
        """Send bytes of any length to rank 0, which receives them with `receive_chunks`."""
        for chunk in chunks:
            for start in range(0, len(chunk), _CHUNK_BYTES):
                self._send(chunk[start : start + _CHUNK_BYTES])
        self._send(b"")

    def receive_chunks(self, rank: int) -> Iterator[bytes]:
        """What `rank` sends with `send_chunks`."""
        buffer = torch.empty(_CHUNK_BYTES, dtype=torch.uint8)
        length = torch.empty(1, dtype=torch.int64)
        while True:
            with self._told(f"receive from rank {rank}"):
                dist.recv(length, rank, group=self._group)
                count = int(length)
                if count == 0:
                    return
                dist.recv(buffer[:count], rank, group=self._group)
            yield buffer[:count].numpy().tobytes()

    def _send(self, chunk: bytes) -> None:
        with self._told("send to rank 0"):
            dist.send(torch.tensor([len(chunk)]), 0, group=self._group)
            if chunk:
                dist.send(_bytes(np.frombuffer(chunk, np.uint8).copy()), 0, group=self._group)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Torch has one type for all that can go wrong between processes."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).splitlines()[0].split("] ", 1)[-1].split(". This is typically")[0]
            raise MemberLostError(
                f"rank {self.rank} of {self.world} could not {what}: another rank has ended, or was not "
                f"heard of for {self._deadline_s:g} s ({reason})",
                hint="the words of the rank that ended first say why; go on with `--resume`",
            ) from error


def _bytes(values: Array) -> torch.Tensor:
    """The memory of an array as torch sees it, without types that its backends do not send."""
    return torch.from_numpy(values.reshape(-1).view(np.uint8))
