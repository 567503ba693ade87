"""A step on nothing: what a process builds at its first batch, it builds before it joins a cluster.

A first step takes seconds (modules are imported, kernels chosen, memory mapped), and in `sync` all would wait
for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from clickmill.nn import Features, Sequence
from clickmill.train.features import make_inputs

if TYPE_CHECKING:
    from clickmill._core import Schema
    from clickmill.nn import Inputs
    from clickmill.train.crew import Crew
    from clickmill.train.features import Feed
    from clickmill.train.replica import Replica, Replicas


def warm_up(
    crew: Crew,
    replicas: Replicas,
    schema: Schema,
    feeds: tuple[Feed, ...],
    *,
    batch_size: int,
    precision: str,
) -> None:
    """Forward and backward of every worker's part of a batch of zeros; nothing of the net is changed."""
    inputs = make_inputs(schema, feeds)
    num_rows = max(batch_size // crew.size, 2)
    tasks = [partial(_step, replica, inputs, num_rows, precision) for replica in replicas.all]
    for _ in range(2):
        crew.run(tasks)


def _step(replica: Replica, inputs: Inputs, num_rows: int, precision: str) -> None:
    model = replica.model
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        logit_B = model(_zeros(inputs, num_rows))
    model.loss(logit_B.float(), torch.zeros(num_rows), None).backward()  # type: ignore[no-untyped-call]
    replica.take_gradients()
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])


def _zeros(inputs: Inputs, num_rows: int) -> Features:
    pooled: dict[str, torch.Tensor] = {}
    sequences: dict[tuple[str, str], Sequence] = {}
    for name, table in inputs.tables.items():
        if table.slots:
            pooled[name] = torch.zeros(num_rows, len(table.slots), table.dim, requires_grad=True)
        for slot, length in table.sequences.items():
            values_BLD = torch.zeros(num_rows, length, table.dim, requires_grad=True)
            sequences[name, slot] = Sequence(values_BLD, torch.ones(num_rows, dtype=torch.int64))
    return Features(dense_BF=torch.zeros(num_rows, inputs.num_dense), pooled=pooled, sequences=sequences)
