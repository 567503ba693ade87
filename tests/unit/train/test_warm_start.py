"""A new run that starts from what an older one has learnt."""

from __future__ import annotations

import pytest
from tests.unit.train.conftest import small_config

from clickmill.train.api import train
from clickmill.train.journal import read_journal


@pytest.mark.parametrize("key", ["init_model_path", "init_pretraining_model_path"])
@pytest.mark.parametrize("optimizer", ["Adam", "{class: Adam, lazy_mode: false}", "Adagrad"])
def test_a_new_run_starts_with_what_the_checkpoint_knows(workplace, key, optimizer):
    options = (f"hyper_parameters.sparse_optimizer={optimizer}", "runner.0.print_interval=1")
    (first,) = train(small_config(*options, "runner.0.output_path=first"))
    later = small_config(*options, "runner.0.output_path=later", f"runner.0.{key}=first/checkpoints/1")
    (second,) = train(later)
    # It begins at its own first pass, and goes on counting steps where the rows are.
    assert second["checkpoint"] == "later/checkpoints/1"
    assert second["step"] == 2 * first["step"]
    losses = [
        next(event["loss"] for event in read_journal(workplace / name) if event["event"] == "interval")
        for name in ("first", "later")
    ]
    assert losses[1] < losses[0] - 0.1
