"""The config.yaml examples of the systems that users come from: same keys, same values."""

SPARSE = "click " + " ".join(str(number) for number in range(1, 27))


def _example(*, workspace: str, mode: str, runner: str, data: str) -> str:
    return f"""
workspace: "{workspace}"
mode: [{mode}]
runner:
- name: {mode}
{runner}
  save_checkpoint_path: "increment_dnn"
  init_model_path: ""
  phases: [phase1]
dataset:
- name: dataloader_train
  batch_size: 2
  type: DataLoader
  data_path: "{{workspace}}/{data}"
  sparse_slots: "{SPARSE}"
  dense_slots: "dense_var:13"
phase:
- name: phase1
  model: "{{workspace}}/model.py"
  dataset_name: dataloader_train
  thread_num: 1
"""


SINGLE = _example(
    workspace="paddlerec.models.rank.dnn",
    mode="single_cpu_train",
    data="data/sample_data/train",
    runner="""\
  class: train
  epochs: 4
  device: cpu
  save_checkpoint_interval: 2
  print_interval: 10""",
)

CLUSTER = _example(
    workspace="./",
    mode="ps_cluster",
    data="train_data",
    runner="""\
  class: cluster_train
  epochs: 4
  device: cpu
  fleet_mode: ps
  distribute_strategy: async
  save_checkpoint_interval: 2
  print_interval: 10""",
)

MPI = _example(
    workspace="./",
    mode="ps_cluster",
    data="train_data",
    runner="""\
  class: cluster_train
  epochs: 2
  device: cpu
  fleet_mode: ps
  save_checkpoint_interval: 1
  print_interval: 1""",
)

COLLECTIVE = _example(
    workspace="./",
    mode="collective_cluster",
    data="train_data",
    runner="""\
  class: cluster_train
  epochs: 2
  device: gpu
  fleet_mode: collective
  save_checkpoint_interval: 1 # save model interval of epochs
  print_interval: 1""",
)

EXAMPLES = {"single": SINGLE, "cluster": CLUSTER, "mpi": MPI, "collective": COLLECTIVE}
