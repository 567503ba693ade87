"""Claims about every built-in model, on a tiny made-up log with a known rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from clickmill import nn
from clickmill.config.builtin import BUILTIN_MODELS
from clickmill.models import BUILT_IN

NUM_SAMPLES, NUM_DENSE, DIM, VOCABULARY, LENGTH = 256, 3, 4, 12, 5
SLOTS = ("user_id", "gender", "age", "occupation", "movie_id", "genres")


@dataclass(frozen=True)
class Case:
    """A model small enough to count by hand."""

    hyper: dict[str, Any]
    num_parameters: int
    sequences: tuple[str, ...] = ()
    start: float = 0.8
    """The loss is below this before training..."""
    bound: float = 0.1
    """...and below this after 200 steps."""
    tables: tuple[str, ...] = ("embedding",)
    inputs: dict[str, Any] = field(default_factory=dict)


BOTH = ("embedding", "wide")
MLP_FLAT = 27 * 16 + 16 + 16 * 8 + 8 + 8 + 1
MLP_FIELDS = 36 * 16 + 16 + 16 * 8 + 8 + 8 + 1
FIRST_ORDER = 3 + 1
SMALL = {"fc_sizes": [16, 8]}
CASES = {
    "lr": Case({}, FIRST_ORDER, bound=0.65, tables=("wide",)),
    "fm": Case({}, FIRST_ORDER + 3 * 4, tables=BOTH),
    "dnn": Case(SMALL, MLP_FLAT),
    "wide_deep": Case(SMALL, FIRST_ORDER + MLP_FLAT, tables=BOTH),
    "deepfm": Case(SMALL, FIRST_ORDER + 3 * 4 + MLP_FIELDS, tables=BOTH),
    "xdeepfm": Case(
        {**SMALL, "cin_sizes": [5, 6]},
        FIRST_ORDER + 3 * 4 + MLP_FIELDS + 9 * 9 * 5 + 5 * 9 * 6 + 5 + 6,
        tables=BOTH,
    ),
    "dcn_v2": Case(
        {**SMALL, "num_cross_layers": 2}, 2 * (27 * 27 + 27) + (27 * 16 + 16 + 16 * 8 + 8) + (27 + 8) + 1
    ),
    "autoint": Case(
        {"num_heads": 2, "head_dim": 3}, 3 * 4 + 4 * 4 * 6 + 6 * 4 * 6 + 9 * 6 + 1, start=1.0, bound=0.3
    ),
    "dlrm": Case(
        {**SMALL, "bottom_sizes": [5]},
        (3 * 5 + 5 + 5 * 4 + 4) + (25 * 16 + 16 + 16 * 8 + 8 + 8 + 1),
        bound=0.2,
    ),
    "final_mlp": Case(
        {
            **SMALL,
            "second_fc_sizes": [8],
            "num_heads": 2,
            "gate_sizes": [5],
            "first_gate_slots": "gender age",
        },
        3 * 4
        + (8 * 5 + 5 + 5 * 36 + 36)
        + (4 + 4 * 5 + 5 + 5 * 36 + 36)
        + (36 * 16 + 16 + 16 * 8 + 8)
        + (36 * 8 + 8)
        + (8 + 1 + 8 + 2 * 4 * 4),
    ),
    "din": Case(
        {**SMALL, "sequence_slot": "history", "target_slot": "movie_id", "attention_sizes": [6, 5]},
        (4 * 6 + 6 + 8 * 6 + 1 + 6 * 5 + 5 + 1 + 5 + 1) + MLP_FLAT + 4 * 16,
        sequences=("history",),
    ),
    "two_tower": Case(
        {"fusion_size": 8},
        4 * (4 * 8 + 8) + (32 * 8 + 8) + 2 * (4 * 8 + 8) + (20 * 8 + 8) + (24 * 8 + 8),
        sequences=("title",),
        start=20.0,
        bound=2.0,
    ),
}


class Log:
    """Features, labels and the rows behind them; the label depends on a pair of slots and a dense feature."""

    def __init__(self, case: Case, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, VOCABULARY, (NUM_SAMPLES, len(SLOTS)), generator=generator)
        self.dense = torch.rand(NUM_SAMPLES, NUM_DENSE, generator=generator)
        self.history = torch.randint(0, VOCABULARY, (NUM_SAMPLES, LENGTH), generator=generator)
        self.lengths = torch.randint(0, LENGTH + 1, (NUM_SAMPLES,), generator=generator)
        is_even = (self.ids[:, 0] % 2) == (self.ids[:, 4] % 2)
        self.labels = (is_even ^ (self.dense[:, 0] > 0.9)).float()
        self.case = case
        size = len(SLOTS) * VOCABULARY
        self.rows = {
            "embedding": 0.1 * torch.randn(size, DIM, generator=generator),
            "wide": torch.zeros(size, 1),
        }
        for rows in self.rows.values():
            rows.requires_grad_()

    @property
    def inputs(self) -> nn.Inputs:
        lengths = dict.fromkeys(self.case.sequences, LENGTH)
        shapes = {"embedding": nn.TableInputs(DIM, SLOTS, lengths), "wide": nn.TableInputs(1, SLOTS)}
        return nn.Inputs(NUM_DENSE, {name: shapes[name] for name in self.case.tables})

    def features(self) -> nn.Features:
        places = self.ids + torch.arange(len(SLOTS)) * VOCABULARY
        pooled = {name: self.rows[name][places] for name in self.case.tables}
        # A history shares its rows with the films.
        history = self.rows["embedding"][self.history + 4 * VOCABULARY]
        behaviour = nn.Sequence(history, self.lengths)
        return nn.Features(
            self.dense, pooled, {("embedding", slot): behaviour for slot in self.case.sequences}
        )

    def loss(self, model: nn.Model) -> torch.Tensor:
        labels = self.labels if model.task == "binary" else self.labels * 6.0 - 3.0
        return model.loss(model(self.features()), labels)


def build(name: str, log: Log) -> nn.Model:
    torch.manual_seed(1)
    return nn.load_model_class(name)(log.inputs, log.case.hyper)


@pytest.fixture(params=list(CASES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_built_in_model_is_listed_and_tested() -> None:
    assert set(BUILT_IN) == set(BUILTIN_MODELS) == set(CASES)


def test_one_finite_logit_per_sample(name: str) -> None:
    log = Log(CASES[name])
    model = build(name, log)
    logit = model(log.features())
    assert logit.shape == (NUM_SAMPLES,)
    assert log.loss(model).isfinite()
    assert log.loss(model) < CASES[name].start


def test_parameters_are_as_many_as_the_formulas_say(name: str) -> None:
    model = build(name, Log(CASES[name]))
    assert sum(parameter.numel() for parameter in model.parameters()) == CASES[name].num_parameters


def test_tables_asked_for_are_the_tables_read(name: str) -> None:
    requests = nn.load_model_class(name).tables({"sparse_feature_dim": DIM})
    assert {request.name: request.dim for request in requests} == {
        table: 1 if table == "wide" else DIM for table in CASES[name].tables
    }


def test_gradients_reach_every_parameter_and_every_table(name: str) -> None:
    log = Log(CASES[name])
    model = build(name, log)
    # A second step: behind weights that start at zero nothing moves in the first.
    step(model, log)
    log.loss(model).backward()
    for path, parameter in model.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path
        assert parameter.grad.abs().sum() > 0, path
    for table in CASES[name].tables:
        grad = log.rows[table].grad
        assert grad is not None, table
        assert grad.abs().sum() > 0, table


def step(model: nn.Model, log: Log, num_steps: int = 1) -> None:
    parameters = [*model.parameters(), *(log.rows[table] for table in log.case.tables)]
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(num_steps):
        optimizer.zero_grad()
        log.loss(model).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def test_it_learns_the_rule(name: str) -> None:
    log = Log(CASES[name])
    model = build(name, log)
    step(model, log, 200)
    assert log.loss(model) < CASES[name].bound


def test_bfloat16_autocast_gives_nearly_the_same_logits(name: str) -> None:
    log = Log(CASES[name])
    model = build(name, log)
    exact = model(log.features())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = model(log.features())
        loss = log.loss(model)
    loss.backward()
    assert loss.dtype == torch.float32
    assert all(
        parameter.grad.dtype == torch.float32
        for parameter in model.parameters()
        if parameter.grad is not None
    )
    torch.testing.assert_close(rounded.float(), exact, atol=0.1, rtol=0.05)


def test_the_same_seed_gives_the_same_model_and_training(name: str) -> None:
    losses = []
    for _ in range(2):
        log = Log(CASES[name])
        model = build(name, log)
        step(model, log, 3)
        losses.append(log.loss(model))
    assert torch.equal(losses[0], losses[1])


def test_a_split_batch_adds_up(name: str) -> None:
    """Halves of a batch, each loss weighted by its share, give the gradient of the whole."""
    log = Log(CASES[name])
    model = build(name, log)
    logit, labels = model(log.features()), log.labels
    weights = torch.linspace(0.5, 2.0, NUM_SAMPLES)
    half = NUM_SAMPLES // 2
    parts = [
        model.loss(logit[part], labels[part], weights[part]) for part in (slice(half), slice(half, None))
    ]
    torch.testing.assert_close(sum(parts) / 2, model.loss(logit, labels, weights))
