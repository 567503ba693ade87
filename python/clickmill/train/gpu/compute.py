"""Forward and backward of a dense net on a card.

    pool      each worker its part of the batch, into memory that the card reads on its own    side by side
    compute   forward, loss and backward of the whole batch on the card
    back      gradients of what was pooled, and scores, into memory of the host

B samples, S pooled slots, L sequence length, D row width.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from clickmill.nn import Features, Sequence
from clickmill.nn.dropout import seed_batch
from clickmill.train.compute import Computed, Computer, batch_seed
from clickmill.train.features import Leaf, Part, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill._core import Batch, Lookup
    from clickmill.train.compute import ComputeOptions, Pulled
    from clickmill.train.crew import Crew
    from clickmill.train.features import Feed
    from clickmill.train.gpu.net import DeviceReplicas
    from clickmill.train.stopwatch import Stopwatch


class DeviceComputer(Computer):
    """Computes batch after batch on a card."""

    def __init__(
        self,
        *,
        feeds: tuple[Feed, ...],
        replicas: DeviceReplicas,
        options: ComputeOptions,
        stopwatch: Stopwatch,
    ) -> None:
        super().__init__(feeds=feeds, replicas=replicas, options=options, stopwatch=stopwatch)
        self._net = replicas

    def compute(self, crew: Crew, pulled: Pulled, step: int, beside: Callable[[], None]) -> list[Computed]:
        """Forward and backward of a batch; gradients of the dense net stay in it."""
        beside()
        self._net.gradient.zero_()
        batch = pulled.batch
        if batch.num_rows == 0:
            return []
        with self._stopwatch.measure("pool"):
            leaves = [
                _room(feed, lookup, batch.num_rows)
                for feed, lookup in zip(self._feeds, pulled.lookups, strict=True)
            ]
            lengths = [
                [_pinned(batch.num_rows, dtype=torch.int64) for _ in leaf.sequences_BLD] for leaf in leaves
            ]
            parts = cut(batch.num_rows, crew.size)
            crew.run([partial(_pool, leaves, lengths, part) for part in parts])
        with self._stopwatch.measure("compute"):
            return [self._compute_all(batch, leaves, lengths, step)]

    def _compute_all(
        self, batch: Batch, leaves: list[Leaf], lengths: list[list[torch.Tensor]], step: int
    ) -> Computed:
        model, device, options = self._net.model, self._net.device, self._options
        seed_batch(model, batch_seed(options.seed, step, options.first_worker))
        features, sent = self._send(batch, leaves, lengths)
        label_B = _sent(torch.from_numpy(batch.labels[:, 0].copy()), device)
        weight_B = None if batch.weights is None else _sent(torch.tensor(batch.weights), device)
        score_B = self._score(model, features) if options.is_progressive else None
        is_alone = batch.num_rows == 1 and self._has_batch_norm
        if is_alone:
            model.eval()
        with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bf16"):
            logit_B = model(features)
        if is_alone:
            model.train()
        logit_B = logit_B.float()
        loss = model.loss(logit_B, label_B, weight_B)
        loss.backward()  # type: ignore[no-untyped-call]
        if score_B is None:
            score_B = model.predict(logit_B.detach())
        host_B = _pinned(batch.num_rows)
        host_B.copy_(score_B, non_blocking=True)
        for host, there in sent:
            if there.grad is not None:
                host.grad = _pinned(*host.shape)
                host.grad.copy_(there.grad, non_blocking=True)
        # Waits for the card: all copies were queued before.
        mean_loss = loss.item()
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
        return Computed(Part(0, batch.num_rows), mean_loss, host_B.numpy(), [], leaves)

    def _send(
        self, batch: Batch, leaves: list[Leaf], lengths: list[list[torch.Tensor]]
    ) -> tuple[Features, list[tuple[torch.Tensor, torch.Tensor]]]:
        """The batch on the card, and which tensor there is which of the host."""
        device = self._net.device
        sent: list[tuple[torch.Tensor, torch.Tensor]] = []

        def send(host: torch.Tensor) -> torch.Tensor:
            there = host.detach().to(device, non_blocking=True).requires_grad_()
            sent.append((host, there))
            return there

        pooled: dict[str, list[torch.Tensor]] = {}
        sequences: dict[tuple[str, str], Sequence] = {}
        for leaf, of_leaf in zip(leaves, lengths, strict=True):
            if leaf.pooled_BSD is not None:
                pooled.setdefault(leaf.feed.table, []).append(send(leaf.pooled_BSD))
            for (slot, _), values_BLD, lengths_B in zip(
                leaf.feed.sequences, leaf.sequences_BLD, of_leaf, strict=True
            ):
                there = Sequence(send(values_BLD), lengths_B.to(device, non_blocking=True))
                sequences[leaf.feed.table, slot] = there
        features = Features(
            dense_BF=_sent(torch.tensor(batch.dense), device),
            pooled={
                table: each[0] if len(each) == 1 else torch.cat(each, dim=1) for table, each in pooled.items()
            },
            sequences=sequences,
        )
        return features, sent


def _pinned(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Memory that the card copies from and to by itself; torch gives the same pieces out again."""
    return torch.empty(*shape, dtype=dtype, pin_memory=torch.cuda.is_available())


def _sent(host: torch.Tensor, device: torch.device) -> torch.Tensor:
    return (host.pin_memory() if device.type == "cuda" else host).to(device, non_blocking=True)


def _room(feed: Feed, lookup: Lookup, num_rows: int) -> Leaf:
    pooled_BSD = _pinned(num_rows, len(feed.pooled), feed.dim) if feed.pooled else None
    sequences = [_pinned(num_rows, length, feed.dim) for _, length in feed.sequences]
    return Leaf(feed, lookup, 0, pooled_BSD, sequences)


def _pool(leaves: list[Leaf], lengths: list[list[torch.Tensor]], part: Part) -> None:
    for leaf, of_leaf in zip(leaves, lengths, strict=True):
        layout, rows = leaf.feed.layout, part.rows
        if leaf.pooled_BSD is not None:
            leaf.lookup.pool(layout, leaf.pooled_BSD[rows].numpy(), part.first)
        for index, (values_BLD, lengths_B) in enumerate(zip(leaf.sequences_BLD, of_leaf, strict=True)):
            leaf.lookup.sequence(layout, index, values_BLD[rows].numpy(), lengths_B[rows].numpy(), part.first)
