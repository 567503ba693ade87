"""Copies of rows and dense parameters, exchanged with real servers."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.unit.train.cluster.servers import Servers, open_session

from clickmill import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

NUM_DENSE = 7
DIM = 3
RATE = 0.1
RULE = {"kind": "adam"}
SIGNS = np.arange(1, 9, dtype=np.uint64)
INITIAL = np.linspace(-1.0, 1.0, NUM_DENSE).astype(np.float32)

TABLE = {
    "spec": {"name": "t", "dim": DIM, "seed": 3, "init": {"kind": "uniform", "scale": 0.5}},
    "bucket_bits": 2,
    "optimizer": {"kind": "lazy_adam"},
}


def job(trainers: int) -> dict[str, Any]:
    return {
        "strategy": "geo",
        "lanes": trainers,
        "trainers": trainers,
        "units": [{"name": "none", "input": {}}],
        "passes": [{"train": [0], "validation": []}],
        "tables": [{"config": TABLE, "restarts": False}],
        "dense": {
            "rule": RULE,
            "size": NUM_DENSE,
            "initial": base64.b64encode(INITIAL.tobytes()).decode(),
        },
        "metrics": {"train": {}, "validation": {}},
        "evicts": False,
        "decides": False,
        "publishes": False,
        "snapshot_interval_ms": 3_600_000,
        "full_every": 1,
        "agreement": {},
    }


def plain_job() -> dict[str, Any]:
    """One trainer that pushes gradients, and rules that can be followed in the head."""
    plain = job(1)
    plain["strategy"] = "async"
    plain["tables"][0]["config"] = {**TABLE, "optimizer": {"kind": "sgd"}}
    plain["dense"]["rule"] = {"kind": "sgd"}
    return plain


class Trainer:
    """Rows and dense parameters of one member, trained by hand."""

    def __init__(self, welcome: dict[str, Any], trainers: int, **changes: Any) -> None:
        reading, sending = (open_session(welcome, NUM_DENSE, **changes) for _ in range(2))
        self.looking = open_session(welcome, NUM_DENSE)
        self.table = _core.Table(json.dumps(TABLE))
        self.dense = [np.zeros(4, np.float32), np.zeros(3, np.float32)]
        self.optimizer = _core.DenseOptimizer(json.dumps(RULE), [4, 3])
        self.copies = _core.Exchange(reading, sending, [self.table], self.optimizer, self.dense, trainers)
        self.step = self.copies.first_step
        self._batches = 0

    def train(self, signs: NDArray[np.uint64], gradient: float) -> None:
        self.step += 1
        self._batches += 1
        self.table.begin_step(self.step)
        lookup = self.table.lookup(signs, True)
        self.copies.touch([0], [lookup])
        lookup.add_gradients(np.full((len(signs), DIM), gradient, np.float32))
        self.table.apply(lookup, RATE)
        gradients = [np.full(array.size, gradient, np.float32) for array in self.dense]
        self.optimizer.step(self.dense, [gradients], RATE)

    def depart(self, *, is_answered: bool = True) -> None:
        self.copies.depart(_core.Push.empty(""), self._batches, self.dense, is_answered)
        self._batches = 0

    def exchange(self, *, is_answered: bool = True) -> None:
        self.depart(is_answered=is_answered)
        self.step, _ = self.copies.deliver()
        self.copies.arrive(self.dense)

    def rows(self) -> Floats:
        return self.table.peek(SIGNS)

    def values(self) -> Floats:
        return np.concatenate(self.dense)

    def servers_rows(self) -> Floats:
        ticket = self.looking.locate_signs(0, SIGNS)
        values: Floats = self.looking.step([], [ticket], False)[2][0][0].values()
        return values

    def servers_values(self) -> Floats:
        out = np.zeros(NUM_DENSE, np.float32)
        ticket = self.looking.locate_signs(0, SIGNS[:0])
        self.looking.step([], [ticket], False, [out])
        return out


@pytest.fixture(params=[1, 3])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    running = Servers(tmp_path, request.param)
    yield running
    running.stop()


def trainers(servers: Servers, count: int, **changes: Any) -> list[Trainer]:
    welcomes = [servers.join(job(count)) for _ in range(count)]
    return [Trainer(welcome, count, **changes) for welcome in welcomes]


def test_with_one_trainer_servers_hold_what_training_alone_gives_after_each_exchange(servers):
    (trainer,) = trainers(servers, 1)
    alone_table = _core.Table(json.dumps(TABLE))
    alone_dense = [INITIAL[:4].copy(), INITIAL[4:].copy()]
    alone = _core.DenseOptimizer(json.dumps(RULE), [4, 3])
    np.testing.assert_array_equal(trainer.values(), INITIAL)
    step = 0
    for window in range(3):
        for batch in range(4):
            signs, gradient = SIGNS[batch : batch + 4], 0.3 * window - 0.2 * batch
            trainer.train(signs, gradient)
            step += 1
            alone_table.begin_step(step)
            lookup = alone_table.lookup(signs, True)
            lookup.add_gradients(np.full((len(signs), DIM), gradient, np.float32))
            alone_table.apply(lookup, RATE)
            alone.step(
                alone_dense, [[np.full(array.size, gradient, np.float32) for array in alone_dense]], RATE
            )
        trainer.exchange()
        assert trainer.step == step
        for found in (trainer.rows(), trainer.servers_rows()):
            np.testing.assert_allclose(found, alone_table.peek(SIGNS), atol=1e-5, rtol=0)
        for values in (trainer.values(), trainer.servers_values()):
            np.testing.assert_allclose(values, np.concatenate(alone_dense), atol=1e-5, rtol=0)


def test_with_two_trainers_servers_follow_the_formula(servers):
    first, second = trainers(servers, 2)
    rows, values = first.rows(), first.values()
    first.train(SIGNS, 1.0)
    second.train(SIGNS[2:], -1.0)
    second.train(SIGNS[2:], -1.0)
    learnt = [(each.rows() - rows, each.values() - values) for each in (first, second)]
    first.exchange()
    np.testing.assert_allclose(first.servers_rows(), rows + learnt[0][0] / 2, atol=1e-6)
    np.testing.assert_allclose(first.servers_values(), values + learnt[0][1] / 2, atol=1e-6)
    # It keeps all that it has learnt: nobody else has told anything yet.
    np.testing.assert_allclose(first.rows(), rows + learnt[0][0], atol=1e-6)
    second.exchange()
    np.testing.assert_allclose(second.servers_rows(), rows + learnt[0][0] / 2 + learnt[1][0] / 2, atol=1e-6)
    # Rows that the second has not touched it has not heard of.
    heard = learnt[0][0] / 2
    heard[:2] = 0.0
    np.testing.assert_allclose(second.rows(), rows + learnt[1][0] + heard, atol=1e-6)
    np.testing.assert_allclose(second.values(), values + learnt[1][1] + learnt[0][1] / 2, atol=1e-6)
    assert second.step == 3


def test_an_exchange_of_nothing_new_sends_what_was_held_back(servers):
    (trainer, _) = trainers(servers, 2)
    values = trainer.values()
    trainer.train(SIGNS, 1.0)
    learnt = trainer.values() - values
    for exchanges in range(1, 5):
        trainer.exchange()
        np.testing.assert_allclose(
            trainer.servers_values(), values + learnt * (1 - 0.5**exchanges), atol=1e-6
        )


def test_what_bf16_rounds_off_is_sent_with_the_next_exchange(servers):
    (trainer,) = trainers(servers, 1, precision="bf16")
    trainer.train(SIGNS, 0.7)
    local = trainer.values()
    trainer.exchange()
    np.testing.assert_array_equal(trainer.values(), local)
    rounding = np.abs(trainer.servers_values() - local).max()
    trainer.exchange()
    assert np.abs(trainer.servers_values() - local).max() < rounding / 50
    np.testing.assert_array_equal(trainer.values(), local)


def test_a_trainer_that_joins_begins_with_parameters_state_and_steps_of_the_run(servers):
    (trainer,) = trainers(servers, 1)
    for gradient in (1.0, 0.5, -0.25):
        trainer.train(SIGNS, gradient)
    trainer.exchange()
    late = Trainer(servers.join(job(1)), 1)
    assert late.step == trainer.step == 3
    np.testing.assert_allclose(late.values(), trainer.values(), atol=1e-6)
    (own_step, own), (step, states) = trainer.optimizer.state(), late.optimizer.state()
    assert step == own_step == 3
    for found, expected in zip(states, own, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_is_learnt_while_an_exchange_is_under_way_stays_and_goes_with_the_next(servers):
    first, second = trainers(servers, 2)
    rows, values = first.rows(), first.values()
    second.train(SIGNS, -1.0)
    from_second = second.rows() - rows, second.values() - values
    second.exchange()
    first.train(SIGNS, 1.0)
    departed = first.rows() - rows, first.values() - values
    first.depart()
    first.train(SIGNS, 0.5)
    learnt = first.rows() - rows, first.values() - values
    first.copies.deliver()
    first.copies.arrive(first.dense)
    # The servers have what had departed; the trainer has all of its own, and what the other has told.
    np.testing.assert_allclose(first.servers_rows(), rows + from_second[0] / 2 + departed[0] / 2, atol=1e-6)
    np.testing.assert_allclose(first.rows(), rows + learnt[0] + from_second[0] / 2, atol=1e-6)
    np.testing.assert_allclose(first.values(), values + learnt[1] + from_second[1] / 2, atol=1e-6)
    held_back = learnt[0] - departed[0] / 2, learnt[1] - departed[1] / 2
    servers_rows, servers_values = first.servers_rows(), first.servers_values()
    first.exchange()
    np.testing.assert_allclose(first.servers_rows(), servers_rows + held_back[0] / 2, atol=1e-6)
    np.testing.assert_allclose(first.servers_values(), servers_values + held_back[1] / 2, atol=1e-6)


def test_servers_that_were_only_told_are_heard_with_the_next_exchange(servers):
    first, second = trainers(servers, 2)
    rows, values = first.rows(), first.values()
    second.train(SIGNS, -1.0)
    from_second = second.rows() - rows, second.values() - values
    second.exchange()
    first.train(SIGNS[:5], 1.0)
    learnt = first.rows() - rows, first.values() - values
    first.exchange(is_answered=False)
    np.testing.assert_allclose(first.servers_rows(), rows + from_second[0] / 2 + learnt[0] / 2, atol=1e-6)
    np.testing.assert_array_equal(first.rows(), rows + learnt[0])
    np.testing.assert_array_equal(first.values(), values + learnt[1])
    first.exchange()
    # Of rows that were touched before it was told, too.
    heard = from_second[0] / 2
    heard[5:] = 0.0
    np.testing.assert_allclose(first.rows(), rows + learnt[0] + heard, atol=1e-6)
    np.testing.assert_allclose(first.values(), values + learnt[1] + from_second[1] / 2, atol=1e-6)
    np.testing.assert_allclose(
        first.servers_values(), values + from_second[1] / 2 + learnt[1] * 0.75, atol=1e-6
    )


def test_rows_are_brought_while_an_exchange_is_held(servers):
    """What is asked for beside an exchange neither waits for it nor is mixed up with it."""
    (trainer,) = trainers(servers, 1)
    trainer.train(SIGNS, 1.0)
    trainer.depart()
    with ThreadPoolExecutor(1) as courier:
        under_way = courier.submit(trainer.copies.deliver)
        for _ in range(20):
            assert trainer.servers_rows().shape == (len(SIGNS), DIM)
            assert trainer.servers_values().shape == (NUM_DENSE,)
        under_way.result()
    trainer.copies.arrive(trainer.dense)
    np.testing.assert_allclose(trainer.servers_rows(), trainer.rows(), atol=1e-6)
