"""`geo` with real servers: what it gives, and what it sends."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.unit.train.cluster.conftest import cluster_config

from clickmill.train.api import train as train_alone

GEO = "runner.0.distribute_strategy=geo"
EVEN = "dataset.0.batch_size=50"
"""No batch is short: alone it would count for more than its samples."""


def dense_of(checkpoint: str | Path) -> dict[str, np.ndarray]:
    return load_file(Path(checkpoint) / "dense.safetensors")


def optimizer_of(checkpoint: str | Path) -> dict[str, np.ndarray]:
    return load_file(Path(checkpoint) / "optimizer.safetensors")


@pytest.mark.parametrize("num_servers", [1, 2])
@pytest.mark.parametrize("geo_step", [1, 7, 1000])
def test_one_trainer_gives_what_training_without_servers_gives(train, geo_step, num_servers):
    trainer = train(GEO, EVEN, f"runner.0.cluster.geo_step={geo_step}", num_servers=num_servers)
    alone = train_alone(cluster_config(EVEN, "runner.0.output_path=alone"))[0]
    assert trainer.summary["samples"] == 3050
    for read in (dense_of, optimizer_of):
        found, expected = read(trainer.summary["checkpoint"]), read(alone["checkpoint"])
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, atol=1e-5, rtol=1e-4, err_msg=name)
    for stage in ("train", "validation"):
        assert trainer.summary[stage]["auc"] == pytest.approx(alone[stage]["auc"], abs=1e-5)


def test_a_second_pass_goes_on_from_what_the_servers_hold(train):
    trainer = train(GEO, EVEN, "runner.0.epochs=2", "runner.0.cluster.geo_step=5")
    alone = train_alone(cluster_config(EVEN, "runner.0.output_path=alone", "runner.0.epochs=2"))[0]
    found, expected = dense_of(trainer.summary["checkpoint"]), dense_of(alone["checkpoint"])
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=1e-4, rtol=1e-3, err_msg=name)


def test_traffic_falls_with_the_batches_between_exchanges(train):
    """What is left of it does not depend on exchanges: parameters at the start, and rows that are new."""
    sent = {}
    for geo_step in (1, 2, 5, 10, 31):
        trainer = train(
            GEO,
            f"runner.0.cluster.geo_step={geo_step}",
            "hyper_parameters.fc_sizes=[512,256]",
            "dataset.0.validation=null",
        )
        bytes_sent, bytes_received, _ = trainer.traffic()
        sent[geo_step] = bytes_sent + bytes_received
    exchanges = {geo_step: math.ceil(31 / geo_step) for geo_step in sent}
    each = {
        geo_step: (sent[geo_step] - sent[31]) / (exchanges[geo_step] - 1)
        for geo_step in sent
        if geo_step < 31
    }
    assert sent[1] > 1.7 * sent[2]
    assert sent[1] > 5.0 * sent[10]
    # An exchange costs about the same, whatever lies between two: the dense part, and what was touched.
    assert max(each.values()) < 1.2 * min(each.values())


def test_every_batch_is_in_the_ledger_once_whatever_the_step(train):
    for geo_step in (3, 31, 32):
        trainer = train(GEO, f"runner.0.cluster.geo_step={geo_step}")
        assert (trainer.summary["samples"], trainer.summary["batches"]) == (3050, 31)
        assert trainer.workers[-1].step == 31


def test_an_exchange_comes_every_so_many_batches_and_at_the_end(train):
    """Frames of the session that tells: its hello, and one for each of them."""
    for geo_step, expected in ((1, 31), (10, 4), (100, 1)):
        trainer = train(GEO, f"runner.0.cluster.geo_step={geo_step}", "dataset.0.validation=null")
        _, telling = trainer.sessions
        assert telling.traffic()[2] == 2 + expected
