from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.config import load_config, parse_config, plain
from clickmill.schema import build_schema

from .examples import CLUSTER, COLLECTIVE, EXAMPLES, MPI, SINGLE


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_example_parses_without_a_note(text: str) -> None:
    config = parse_config(text)
    assert config.notes == ()
    assert config.dataset[0].batch_size == 2
    assert config.runners()[0].save_checkpoint_path == "increment_dnn"


def test_single_machine_example_means_the_built_in_dnn() -> None:
    config = parse_config(SINGLE)
    (runner,) = config.runners()
    (phase,) = config.phases_of(runner)
    assert (runner.class_name, runner.epochs, runner.print_interval) == ("train", 4, 10)
    assert phase.builtin == "dnn"
    assert config.dataset_named(phase.dataset_name).data_path == ("data/sample_data/train",)


def test_slots_keys_become_label_dense_and_sparse_slots() -> None:
    config = parse_config(SINGLE)
    schema = build_schema(config.dataset[0], config.hyper_parameters)
    assert [slot.name for slot in schema.labels] == ["click"]
    assert [(slot.name, slot.width) for slot in schema.dense] == [("dense_var", 13)]
    assert [slot.name for slot in schema.sparse] == [str(number) for number in range(1, 27)]


def test_cluster_example_keeps_strategy_and_mode() -> None:
    (runner,) = parse_config(CLUSTER).runners()
    assert runner.is_cluster
    assert (runner.fleet_mode, runner.distribute_strategy) == ("ps", "async")
    (runner,) = parse_config(MPI).runners()
    assert runner.distribute_strategy == "async"
    (runner,) = parse_config(COLLECTIVE).runners()
    assert (runner.device, runner.fleet_mode) == ("gpu", "collective")


def test_workspace_is_relative_to_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "config.yaml").write_text(CLUSTER)
    config = load_config(folder / "config.yaml")
    assert config.dataset[0].data_path == (str(folder / "train_data"),)
    assert config.phase[0].model == str(folder / "model.py")
    assert config.phase[0].builtin is None


def test_all_runner_classes_parse(small: str) -> None:
    for name in ("train", "infer", "local_cluster_train", "cluster_train"):
        config = parse_config(small.replace("class: train", f"class: {name}"))
        assert config.runner[0].class_name == name


def test_every_key_of_the_original_grammar_is_read() -> None:
    text = """
workspace: "./"
mode: [a, b]
debug: false
runner:
- name: a
  class: local_cluster_train
  device: cpu
  fleet_mode: pslib
  selected_gpus: 0
  worker_num: 2
  server_num: 1
  distribute_strategy: half_async
  epochs: 1
  phases: phase1
  init_model_path: ""
  save_checkpoint_interval: -1
  save_checkpoint_path: c
  save_step_interval: 1000
  save_step_path: s
  save_inference_interval: 1
  save_inference_path: i
  save_inference_feed_varnames: []
  save_inference_fetch_varnames: [a, b]
  print_interval: 20
  trainer_class: ""
  instance_class_path: ""
  network_class_path: ""
  startup_class_path: "{workspace}/startup.py"
  runner_class_path: ""
  terminal_class_path: ""
  init_pretraining_model_path: ""
  finetuning_aspect_varnames: [x]
- {name: b, class: infer, runner_result_dump_path: scores.txt}
dataset:
- name: d
  type: QueueDataset
  batch_size: 2
  data_path: "paddlerec::data/train"
  data_converter: "{workspace}/reader.py"
  reader_class_name: MyReader
  sparse_slots: click 1 2
  dense_slots: a:13 b:2,3
  padding: 0
phase:
- name: phase1
  model: "{workspace}/model.py"
  dataset_name: d
  thread_num: 10
  gradient_scale_strategy: 1
  shuffle_filelist: true
hyper_parameters:
  optimizer: {class: Adagrad, learning_rate: 0.01, strategy: async}
  reg: 0.001
  sparse_feature_number: 1000001
  sparse_feature_dim: 9
  fc_sizes: [512, 256, 128, 32]
  dense_input_dim: 19
  sparse_inputs_slots: 27
  distributed_embedding: 0
"""
    config = parse_config(text)
    assert config.dataset[0].dense_slots == {"a": 13, "b": 6}
    assert config.dataset[0].data_path == ("data/train",)
    assert config.runner[0].startup_class_path == "startup.py"
    assert config.hyper_parameters.free_keys == {"sparse_inputs_slots": 27, "distributed_embedding": 0}
    schema = build_schema(config.dataset[0], config.hyper_parameters)
    assert {slot.hash_size for slot in schema.sparse} == {1000001}


def test_defaults_are_those_of_the_original(small: str) -> None:
    runner = parse_config(small).runner[0]
    assert (runner.fleet_mode, runner.selected_gpus, runner.worker_num, runner.server_num) == (
        "ps",
        "0",
        1,
        1,
    )
    assert (runner.distribute_strategy, runner.print_interval) == ("async", 20)
    assert (runner.save_checkpoint_interval, runner.save_step_interval) == (-1, -1)


def test_shown_configuration_parses_to_itself(small: str) -> None:
    config = parse_config(small)
    assert plain(type(config).model_validate(plain(config))) == plain(config)
