"""The step of a card: run on the processor where there is none, so that the two paths can be compared."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tests.unit.train.conftest import small_config

from clickmill.errors import ConfigError
from clickmill.train import run as run_module
from clickmill.train.run import Run

CARD = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def trained(output: str, *options: str) -> dict[str, object]:
    config = small_config(f"runner.0.output_path={output}", "runner.0.epochs=1", *options)
    runner = config.runners()[0]
    return Run(config, runner, config.phases_of(runner)[0]).train()


@pytest.mark.parametrize(
    "options",
    [
        ("phase.0.model=deepfm", "phase.0.thread_num=2"),
        (
            # A bias before a normalisation has no gradient but noise, which Adam would take for one.
            "hyper_parameters.batch_norm=true",
            "hyper_parameters.optimizer={class: SGD, learning_rate: 0.01}",
            "runner.0.clip_norm=0.1",
            "runner.0.progressive_validation=true",
        ),
    ],
)
def test_a_card_learns_what_the_processor_does(workplace, monkeypatch, options):
    options = ("phase.0.thread_num=1", *options)
    here = trained("here", *options)
    monkeypatch.setattr(run_module, "card_of", lambda runner, rank: CARD)
    there = trained("there", *options)
    one, other = (
        load_file(workplace / name / "checkpoints/0/dense.safetensors") for name in ("here", "there")
    )
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, atol=2e-5, err_msg=name)
    assert there["validation"] == pytest.approx(here["validation"], abs=1e-4)


def test_a_run_on_a_card_goes_on_on_the_processor(workplace, monkeypatch):
    whole = trained("run", "runner.0.epochs=2", "phase.0.thread_num=1")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "card_of", lambda runner, rank: CARD)
        trained("moved", "phase.0.thread_num=1")
    config = small_config("runner.0.output_path=moved", "runner.0.epochs=2", "phase.0.thread_num=1")
    runner = config.runners()[0]
    moved = Run(config, runner, config.phases_of(runner)[0]).train(resume=True)
    assert moved["step"] == whole["step"]
    assert moved["validation"] == pytest.approx(whole["validation"], abs=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_a_card_that_is_not_there_is_named(workplace):
    with pytest.raises(ConfigError, match="card 0, but torch sees none"):
        trained("run", "runner.0.device=gpu")
