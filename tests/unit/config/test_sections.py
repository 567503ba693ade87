from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from clickmill.config import (
    BUILTIN_MODELS,
    HyperParameters,
    load_config,
    parse_config,
    reader_config,
    table_config,
)
from clickmill.errors import ConfigError
from clickmill.schema import TableSpec


def test_values_do_not_change_after_loading(small: str) -> None:
    config = parse_config(small)
    with pytest.raises(ValidationError, match="frozen"):
        config.runner[0].epochs = 9  # type: ignore[misc]


def test_our_own_keys_parse(small: str) -> None:
    text = small.replace(
        "class: train",
        """class: train
  seed: 3
  precision: bf16
  early_stopping: {metric: auc, patience: 2, min_delta: 0.001}
  learning_rate_schedule: {class: cosine, total_batches: 100, warmup_batches: 10}
  clip_norm: 5
  save_checkpoint_keep: 2
  save_checkpoint_style: pass
  max_batches: 10
  progressive_validation: true
  tensorboard_path: tb""",
    ).replace(
        "data_path: train.txt",
        """data_path: [a.gz, "b/*.zst"]
  format: {kind: criteo, has_label: false}
  shuffle: {kind: block, rows: 100, seed: 4}
  validation: {fraction: 0.1}
  max_bad_lines: null
  threads: 2""",
    )
    config = parse_config(text)
    runner, dataset = config.runner[0], config.dataset[0]
    assert runner.save_checkpoint_keep is not None
    assert runner.save_checkpoint_keep.last == 2
    assert runner.learning_rate_schedule.warmup_batches == 10
    assert dataset.shuffle.rows == 100
    assert dataset.max_bad_lines is None
    assert dataset.validation is not None
    assert dataset.validation.fraction == 0.1


@pytest.mark.parametrize("name", ["constant", "plateau"])
def test_schedule_may_be_a_bare_name(small: str, name: str) -> None:
    text = small.replace("class: train", f"class: train\n  learning_rate_schedule: {name}")
    assert parse_config(text).runner[0].learning_rate_schedule.class_name == name


@pytest.mark.parametrize("model", BUILTIN_MODELS)
def test_every_built_in_name_is_a_configuration(in_folder: Path, model: str) -> None:
    config = load_config(f"paddlerec.models.rank.{model}")
    assert config.phase[0].builtin == model
    assert config == load_config(model)


def test_aliases_of_older_systems_are_known() -> None:
    from clickmill.config import builtin_model

    assert builtin_model("paddlerec.models.rank.dcn") == "dcn_v2"
    assert builtin_model("logistic_regression") == "lr"
    assert builtin_model("model.py") is None


def test_every_name_has_a_model_and_every_model_a_name() -> None:
    from clickmill.models import BUILT_IN

    assert set(BUILTIN_MODELS) == set(BUILT_IN)


def test_relative_data_paths_stay_relative(small: str) -> None:
    assert parse_config(small, file="far/away/config.yaml").dataset[0].data_path == ("train.txt",)


class TestOptimizers:
    def test_tables_follow_the_dense_optimizer(self) -> None:
        hyper = HyperParameters.model_validate({"optimizer": {"class": "Adam", "learning_rate": 0.01}})
        assert hyper.table_optimizer == hyper.optimizer

    def test_tables_of_an_optimizer_that_they_have_not_get_the_nearest(self) -> None:
        for name, expected in (("AdamW", "Adam"), ("RMSProp", "RowWiseAdagrad")):
            hyper = HyperParameters.model_validate({"optimizer": {"class": name, "learning_rate": 0.5}})
            assert (hyper.table_optimizer.class_name, hyper.table_optimizer.learning_rate) == (expected, 0.5)

    def test_without_any_optimizer_tables_use_row_wise_adagrad(self) -> None:
        assert HyperParameters().table_optimizer.class_name == "RowWiseAdagrad"

    def test_case_and_underscores_do_not_matter(self) -> None:
        hyper = HyperParameters.model_validate({"sparse_optimizer": "row_wise_adagrad"})
        assert hyper.table_optimizer.class_name == "RowWiseAdagrad"


class TestForModel:
    def test_free_keys_reach_the_model_and_optimizers_do_not(self) -> None:
        hyper = HyperParameters.model_validate(
            {"optimizer": "sgd", "fc_sizes": [4], "heads": 2, "deep": {"a": [1]}}
        )
        assert hyper.for_model() == {
            "reg": 0.0, "fc_sizes": [4], "heads": 2, "deep": {"a": [1]},
        }  # fmt: skip

    def test_free_key_that_is_nearly_a_known_one_is_noted(self, small: str) -> None:
        (note,) = parse_config(small + "hyper_parameters: {sparse_feature_dims: 4}\n").notes
        assert note.suggestion == "sparse_feature_dim"


class TestNotes:
    @pytest.mark.parametrize("line", ["trainer_class: x.py", "save_inference_interval: 1"])
    def test_key_that_does_nothing_is_noted(self, small: str, line: str) -> None:
        (note,) = parse_config(small.replace("class: train", f"class: train\n  {line}")).notes
        assert (note.key, note.line) == (f"runner.0.{line.partition(':')[0]}", 6)

    def test_a_card_for_scoring_is_noted(self, small: str) -> None:
        (note,) = parse_config(small.replace("class: train", "class: infer\n  device: gpu")).notes
        assert (note.key, note.line) == ("runner.0.device", 6)

    def test_key_at_its_default_is_not_noted(self, small: str) -> None:
        lines = "\n  trainer_class: ''\n  save_inference_interval: -1\n  device: cpu"
        assert parse_config(small.replace("class: train", f"class: train{lines}")).notes == ()


class TestNative:
    def test_reader_gets_the_runners_seed_where_the_data_set_has_none(self, small: str) -> None:
        text = small.replace("data_path: train.txt", "data_path: train.txt\n  shuffle: buffer\n  threads: 2")
        config = reader_config(parse_config(text).dataset[0], ["train.txt"], seed=5, pass_number=1)
        assert config["shuffle"] == {"kind": "buffer", "rows": 65_536, "seed": 5}
        assert (config["format"], config["threads"], config["pass"]) == ({"kind": "criteo"}, 2, 1)

    def test_table_gets_its_own_settings_over_the_common_ones(self) -> None:
        hyper = HyperParameters.model_validate(
            {
                "optimizer": {"class": "Adam", "lazy_mode": False},
                "reg": 0.5,
                "tables": {
                    "wide": {"optimizer": {"class": "FTRL", "l1": 1}, "admission": {"kind": "count", "at": 3}}
                },
            }
        )
        deep = table_config(TableSpec(name="deep", dim=4), hyper)
        wide = table_config(TableSpec(name="wide", dim=1), hyper)
        assert (deep["optimizer"]["kind"], deep["optimizer"]["weight_decay"]) == ("adam", 0.5)
        assert (wide["optimizer"]["kind"], wide["optimizer"]["l1"], wide["optimizer"]["l2"]) == (
            "ftrl",
            1.0,
            0.5,
        )
        assert wide["admission"] == {"kind": "count", "at": 3, "sketch_bits": 22}
        assert "admission" not in deep


def test_asking_for_a_runner_that_is_not_there_lists_those_that_are(small: str) -> None:
    with pytest.raises(ConfigError, match="there is no runner `x`; known: `train`"):
        parse_config(small).runner_named("x")
