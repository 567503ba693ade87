"""Built-in models: their names, also those by which older configurations know them.

A list without torch: `clickmill models`, the loader and the error messages need the names, not the models.
"""

from __future__ import annotations

import re

BUILTIN_MODELS = {
    "autoint": "self-attention over the slots",
    "dcn_v2": "cross network of full matrices beside a deep network",
    "deepfm": "factorisation machine and deep network on shared rows",
    "din": "attention over a behaviour sequence, with the candidate as the query",
    "dlrm": "dot products of all pairs of slots, between two networks",
    "dnn": "embedding and fully connected layers, the model of the CTR demos",
    "final_mlp": "two networks with gated inputs, fused bilinearly",
    "fm": "factorisation machine",
    "lr": "logistic regression on signs",
    "two_tower": "user and item network, compared by cosine",
    "wide_deep": "linear model beside a deep network",
    "xdeepfm": "compressed interaction network beside a deep network",
}
"""Name and one line for each."""

_ALIASES = {
    "dcn": "dcn_v2",
    "finalmlp": "final_mlp",
    "logistic_regression": "lr",
    "recommender_system": "two_tower",
    "twotower": "two_tower",
    "widedeep": "wide_deep",
}
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def builtin_model(name: str) -> str | None:
    """`dnn` for `dnn`, `paddlerec.models.rank.dnn` and the like; None for what is not built in."""
    if is_dotted_name(name):
        name = name.rpartition(".")[2]
    name = _ALIASES.get(name, name)
    return name if name in BUILTIN_MODELS else None


def is_dotted_name(text: str) -> bool:
    """`paddlerec.models.rank.dnn`, but neither `model.py` nor `./config.yaml`."""
    return bool(_DOTTED.fullmatch(text)) and not text.endswith((".py", ".yaml", ".yml", ".json"))


def builtin_config_text(model: str) -> str:
    """The config.yaml behind `-m <built-in name>`: slot text in `data/sample_data` of the current folder."""
    slots = " ".join(str(number) for number in range(1, 27))
    return f"""\
workspace: "clickmill.models.{model}"
mode: [train_{model}]
runner:
- name: train_{model}
  class: train
  epochs: 1
  device: cpu
  save_checkpoint_interval: 1
  print_interval: 10
  phases: [phase1]
dataset:
- name: sample_data
  batch_size: 100
  type: DataLoader
  format: slots
  data_path: "{{workspace}}/data/sample_data/train"
  sparse_slots: "click {slots}"
  dense_slots: "dense_feature:13"
phase:
- name: phase1
  model: "{{workspace}}/model.py"
  dataset_name: sample_data
  thread_num: 1
hyper_parameters:
  optimizer:
    class: Adam
    learning_rate: 0.001
  sparse_feature_dim: 9
"""
