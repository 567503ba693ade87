"""A runner of class `infer`: it names the checkpoint and the data that are scored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.train.conftest import small_config

from clickmill.errors import ConfigError, DataError
from clickmill.train.api import evaluate, infer, train

CHECKPOINT = "run/checkpoints/0"
SCORING = (
    f"runner.0={{name: score, class: infer, init_model_path: {CHECKPOINT}}}",
    "mode=score",
    "dataset.0={name: log, format: criteo, data_path: test.tsv, batch_size: 100}",
)


@pytest.fixture(autouse=True)
def trained(workplace) -> None:
    train(small_config("runner.0.epochs=1"))


def test_evaluate_scores_its_data_with_its_checkpoint(caplog):
    expected = evaluate(small_config())
    caplog.clear()
    found = evaluate(small_config(*SCORING))
    assert found == expected
    assert found["checkpoint"] == CHECKPOINT
    assert "was trained on" not in caplog.text


def test_infer_writes_what_training_with_that_runner_writes():
    train(small_config(*SCORING, "runner.0.runner_result_dump_path=first.txt"))
    infer(small_config(*SCORING), Path("second.txt"))
    assert len(np.loadtxt("first.txt")) == 1000
    assert Path("first.txt").read_bytes() == Path("second.txt").read_bytes()


def test_a_checkpoint_that_is_named_goes_before_its_own():
    found = evaluate(
        small_config(*SCORING, "runner.0.init_model_path=nowhere"), checkpoints=[Path(CHECKPOINT)]
    )
    assert found["samples"] == 1000
    with pytest.raises(DataError, match="no checkpoint at `nowhere`"):
        evaluate(small_config(*SCORING, "runner.0.init_model_path=nowhere"))


@pytest.mark.parametrize("call", [evaluate, lambda config: infer(config, Path("scores.txt")), train])
def test_without_a_checkpoint_the_key_to_give_is_named(call):
    config = small_config(*SCORING, "runner.0.init_model_path=''")
    with pytest.raises(ConfigError, match="`infer` needs `init_model_path`") as caught:
        call(config)
    if call is not train:
        assert "--checkpoint" in str(caught.value.hint)


def test_scores_go_to_the_folder_of_the_run_where_no_file_is_named():
    (summary,) = train(small_config(*SCORING, "runner.0.output_path=scored"))
    assert summary["scores"] == "scored/scores.txt"
    assert len(np.loadtxt("scored/scores.txt")) == 1000


def test_scores_never_take_the_place_of_what_is_read():
    before = Path("test.tsv").read_bytes()
    Path("same.tsv").symlink_to("test.tsv")
    for out in ("test.tsv", "same.tsv"):
        with pytest.raises(ConfigError, match=f"would take the place of `{out}`"):
            infer(small_config(*SCORING), Path(out))
    assert Path("test.tsv").read_bytes() == before
