"""New runs that start from the checkpoint of another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoints import fingerprint
from tests.unit.train.conftest import small_config

from clickmill import _core
from clickmill.errors import ConfigError
from clickmill.train.api import evaluate, train
from clickmill.train.checkpoint import open_checkpoint

ORIGIN = "origin/checkpoints/0"


@pytest.fixture
def origin(workplace) -> Path:
    train(small_config("runner.0.output_path=origin", "runner.0.epochs=1"))
    return Path(ORIGIN)


def rows(folder: Path) -> _core.Table:
    return _core.Table.load(open_checkpoint(folder).table_files("embedding"))


def dense(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "dense.safetensors")


NEARLY_NO_STEP = (
    "runner.0.max_batches=1",
    "runner.0.epochs=1",
    "hyper_parameters.optimizer.learning_rate=1e-12",
)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("key", ["init_model_path", "init_pretraining_model_path"])
def test_a_run_starts_with_the_parameters_and_rows_of_another(origin, key, seed):
    config = small_config(f"runner.0.{key}={ORIGIN}", f"runner.0.seed={seed}", *NEARLY_NO_STEP)
    (summary,) = train(config)
    assert summary["step"] == 1
    before, after = dense(origin), dense(Path("run/checkpoints/0"))
    assert all(torch.allclose(before[name], after[name], atol=1e-9) for name in before)
    assert rows(Path("run/checkpoints/0")).rows() >= rows(origin).rows()
    assert summary["validation"]["auc"] == pytest.approx(
        evaluate(small_config(), checkpoints=[origin])["auc"], abs=1e-4
    )


def test_init_model_path_takes_the_optimizer_and_init_pretraining_does_not(origin):
    from safetensors import safe_open

    steps = {}
    for key in ("init_model_path", "init_pretraining_model_path"):
        train(small_config(f"runner.0.{key}={ORIGIN}", *NEARLY_NO_STEP))
        with safe_open("run/checkpoints/0/optimizer.safetensors", framework="numpy") as file:
            steps[key] = int(file.metadata()["step"])
    assert steps == {"init_model_path": 32, "init_pretraining_model_path": 1}


@pytest.mark.parametrize(
    "optimizer", ["{class: Adam}", "{class: SGD}", "{class: RowWiseAdagrad, initial_accumulator: 0.1}"]
)
def test_rows_of_a_pretrained_model_start_with_a_new_optimizer(origin, optimizer):
    """Those of the origin have seen 31 steps of lazy Adam."""
    assert rows(origin).step == 31
    options = (f"hyper_parameters.sparse_optimizer={optimizer}", *NEARLY_NO_STEP)
    train(small_config(f"runner.0.init_pretraining_model_path={ORIGIN}", *options))
    after = rows(Path("run/checkpoints/0"))
    assert after.step == 1
    assert after.rows() >= rows(origin).rows()


def test_a_warm_started_run_is_resumed_exactly(origin):
    options = (
        f"runner.0.init_model_path={ORIGIN}",
        "runner.0.seed=3",
        "runner.0.save_step_interval=7",
        "hyper_parameters.optimizer={class: Adam, lazy_mode: false}",
    )
    train(small_config("runner.0.output_path=origin", "runner.0.epochs=1", *options[3:]))
    train(small_config(*options, "runner.0.output_path=whole"))
    train(small_config(*options, "runner.0.epochs=1"))
    train(small_config(*options), resume=True)
    assert fingerprint(Path("whole/checkpoints/1")) == fingerprint(Path("run/checkpoints/1"))


def test_only_what_is_named_is_taken_from_a_pretrained_model(origin):
    config = small_config(
        f"runner.0.init_pretraining_model_path={ORIGIN}",
        "runner.0.finetuning_aspect_varnames=[embedding, mlp.0]",
        *NEARLY_NO_STEP,
    )
    train(config)
    taken, left = dense(Path("run/checkpoints/0")), dense(origin)
    is_taken = {name: torch.allclose(taken[name], left[name], atol=1e-9) for name in taken}
    assert {name for name, same in is_taken.items() if same} == {"mlp.0.weight", "mlp.0.bias"}
    assert rows(Path("run/checkpoints/0")).rows() >= rows(origin).rows()


def test_of_a_pretrained_model_of_another_shape_what_fits_is_taken(origin):
    config = small_config(
        f"runner.0.init_pretraining_model_path={ORIGIN}", "hyper_parameters.fc_sizes=[16, 4]", *NEARLY_NO_STEP
    )
    train(config)
    taken, left = dense(Path("run/checkpoints/0")), dense(origin)
    assert torch.allclose(taken["mlp.0.weight"], left["mlp.0.weight"], atol=1e-9)


def test_a_name_that_fits_nothing_is_an_error_with_what_fits(origin):
    config = small_config(
        f"runner.0.init_pretraining_model_path={ORIGIN}", "runner.0.finetuning_aspect_varnames=[tower]"
    )
    with pytest.raises(ConfigError, match=r"nothing named `tower`.*what fits: .*mlp\.0\.weight"):
        train(config)


@pytest.mark.parametrize("change", ["hyper_parameters.fc_sizes=[4]", "phase.0.model=wide_deep"])
def test_init_model_path_of_another_model_is_an_error(origin, change):
    with pytest.raises(ConfigError, match="is not the one of this run") as caught:
        train(small_config(f"runner.0.init_model_path={ORIGIN}", change))
    assert "init_pretraining_model_path" in str(caught.value.hint)


def test_both_paths_at_once_are_an_error(origin):
    paths = (f"runner.0.init_model_path={ORIGIN}", f"runner.0.init_pretraining_model_path={ORIGIN}")
    with pytest.raises(ConfigError, match="give either"):
        train(small_config(*paths))
