"""Training as a page of plain PyTorch does it: one dense matrix of all rows, torch's own optimizers.

Batches, initial values and the model's forward come from clickmill; lookups, pooling, gradients of rows,
updates and clipping do not.

B samples, S pooled slots, L sequence length, D row width, R distinct signs of all batches.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from clickmill import _core, nn
from clickmill.config import Config, parse_config
from clickmill.nn.dropout import replace_dropout
from clickmill.train.assembly import build_parts
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.journal import read_journal

CONFIG = """
workspace: "."
mode: train
runner:
- {name: train, class: train, print_interval: 1, output_path: run, max_batches: 20}
dataset:
- name: log
  format: slots
  data_path: train.txt
  batch_size: 50
  threads: 1
  schema:
    slots:
    - {kind: label, name: click}
    - {kind: weight, name: weight}
    - {kind: group, name: session, column: user}
    - {kind: dense, name: price}
    - {kind: sparse, name: user}
    - {kind: sparse, name: item, vocabulary: items}
    - {kind: sparse, name: tags, pooling: mean, max_length: 3, missing: skip}
    - {kind: sparse, name: words, pooling: max, max_length: 3, missing: skip}
    - {kind: sparse, name: seen, vocabulary: items, pooling: none, max_length: 4, missing: skip}
phase:
- {name: only, model: din, dataset_name: log, thread_num: 1}
hyper_parameters:
  optimizer: {class: SGD, learning_rate: 0.5}
  sparse_feature_dim: 4
  sparse_init_scale: 0.5
  fc_sizes: [16, 8]
  attention_sizes: [8]
  sequence_slot: seen
  target_slot: item
"""

Optimizer = Callable[[list[torch.Tensor]], torch.optim.Optimizer]
Tensors = dict[str, torch.Tensor]


def config_of(*overrides: str) -> Config:
    return parse_config(CONFIG, overrides=overrides)


def write_log(path: Path, count: int, *, seed: int = 0) -> None:
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        user, item = draw.randrange(90), draw.randrange(200)
        odds = 0.15 + 0.6 * (user % 5 == item % 5)
        words = [f"click:{int(draw.random() < odds)}", f"weight:{draw.choice([0.5, 1, 2])}"]
        words += [f"price:{draw.random():.4f}", f"user:u{user}", f"item:i{item}"]
        for slot, size in (("tags", 300), ("words", 300), ("seen", 200)):
            words += [f"{slot}:i{draw.randrange(size)}" for _ in range(draw.randrange(5))]
        lines.append(" ".join(words) + "\n")
    path.write_text("".join(lines))


class Reference:
    """The first `num_batches` of pass 0 of a configuration, trained in plain PyTorch."""

    def __init__(self, config: Config, num_batches: int = 20) -> None:
        runner = config.runners()[0]
        phase = config.phases_of(runner)[0]
        parts = build_parts(config, runner, phase)
        replace_dropout(parts.model)
        self.model = copy.deepcopy(parts.model)
        self.layout = parts.schema.layout()[0]
        slots = [slot for slot in json.loads(parts.schema.to_json())["slots"] if slot["kind"] == "sparse"]
        self.slots = [(slot["name"], slot.get("pooling", "sum"), slot.get("max_length", 1)) for slot in slots]
        source = parts.data.open(parts.schema, 0)
        self.batches = [batch for _ in range(num_batches) if (batch := source.next()) is not None]
        source.close()
        self.signs = np.unique(np.concatenate([batch.signs(0) for batch in self.batches]))
        table = parts.tables["embedding"]
        assert isinstance(table, _core.Table)
        self.start: Tensors = {
            name: parameter.detach().clone() for name, parameter in self.model.named_parameters()
        }
        self.start["embedding"] = torch.tensor(table.peek(self.signs))

    def features(self, batch: _core.Batch, rows_RD: torch.Tensor) -> nn.Features:
        offsets = batch.offsets(0)
        index = torch.tensor(np.searchsorted(self.signs, batch.signs(0))[batch.inverse(0)])
        num_slots = len(self.slots)
        pooled = []
        sequences = {}
        for position, (name, pooling, length) in enumerate(self.slots):
            samples = []
            lengths = []
            for sample in range(batch.num_rows):
                place = sample * num_slots + position
                values_ND = rows_RD[index[int(offsets[place]) : int(offsets[place + 1])]]
                lengths.append(len(values_ND))
                if pooling == "none":
                    padding = rows_RD.new_zeros(length - len(values_ND), rows_RD.shape[1])
                    samples.append(torch.cat([values_ND, padding]))
                elif len(values_ND) == 0:
                    samples.append(rows_RD.new_zeros(rows_RD.shape[1]))
                else:
                    pool = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}[pooling]
                    samples.append(pool(values_ND, dim=0))
            if pooling == "none":
                sequences["embedding", name] = nn.Sequence(torch.stack(samples), torch.tensor(lengths))
            else:
                pooled.append(torch.stack(samples))
        return nn.Features(
            dense_BF=torch.tensor(batch.dense),
            pooled={"embedding": torch.stack(pooled, dim=1)},
            sequences=sequences,
        )

    def logits(self, batch: _core.Batch, at: Tensors) -> torch.Tensor:
        dense = {name: value for name, value in at.items() if name != "embedding"}
        features = self.features(batch, at["embedding"])
        logit_B: torch.Tensor = torch.func.functional_call(self.model, dense, (features,))
        return logit_B

    def train(
        self,
        make_optimizer: Optimizer,
        *,
        clip_norm: float | None = None,
        factors: Sequence[float] | None = None,
    ) -> tuple[list[float], Tensors, list[torch.Tensor]]:
        """Losses, parameters after the last update, and scores of each batch before its update.

        `factors` are those of a learning-rate schedule.
        """
        names = list(self.start)
        parameters = [self.start[name].clone().requires_grad_() for name in names]
        optimizer = make_optimizer(parameters)
        rate = optimizer.param_groups[0]["lr"]
        losses = []
        scores = []
        for number, batch in enumerate(self.batches):
            logit_B = self.logits(batch, dict(zip(names, parameters, strict=True)))
            weight_B = None if batch.weights is None else torch.tensor(batch.weights)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logit_B, torch.tensor(batch.labels[:, 0]), weight_B
            )
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient
            if clip_norm is not None:
                # Not torch's own function, which adds 1e-6 to the norm.
                norm = torch.sqrt(sum(each.grad.double().square().sum() for each in parameters))
                for each in parameters:
                    each.grad *= min(1.0, clip_norm / float(norm))
            optimizer.param_groups[0]["lr"] = rate * (1.0 if factors is None else factors[number])
            optimizer.step()
            losses.append(loss.item())
            scores.append(torch.sigmoid(logit_B.detach()))
        return losses, {name: value.detach() for name, value in zip(names, parameters, strict=True)}, scores


def trained(run: Path, signs: Any) -> tuple[list[float], Tensors]:
    """Losses by batch and final parameters of a run of clickmill."""
    losses = [event["loss"] for event in read_journal(run) if event["event"] == "interval"]
    folder = run / "checkpoints" / "0"
    parameters = load_file(folder / "dense.safetensors")
    table = _core.Table.load(open_checkpoint(folder).table_files("embedding"))
    parameters["embedding"] = torch.tensor(table.peek(signs))
    return losses, parameters


def assert_close(found: tuple[list[float], Tensors], expected: tuple[list[float], Tensors]) -> None:
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5, rtol=0)
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(found[1][name].numpy(), value.numpy(), atol=1e-5, rtol=0, err_msg=name)
