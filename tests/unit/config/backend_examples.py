"""The backend.yaml examples of the systems that users come from: same keys, same values."""

_SUBMIT = """\
submit:
  ak: ""
  sk: ""
  priority: "high"
  job_name: "PaddleRec_CTR"
  group: ""
  start_cmd: "python -m paddlerec.run -m ./config.yaml"
  files: ./*.py ./*.yaml
"""

FULL = f"""\
backend: "PaddleCloud"
cluster_type: mpi # k8s

config:
  paddle_version: "1.7.2"
  use_python3: 1
  fs_name: "afs://xxx.com"
  fs_ugi: "usr,pwd"
  output_path: ""
  # for mpi
  train_data_path: ""
  test_data_path: ""
  thirdparty_path: ""
  # for k8s
  afs_remote_mount_point: ""
  communicator:
    FLAGS_communicator_is_sgd_optimizer: 0
    FLAGS_communicator_send_queue_size: 5
    FLAGS_communicator_max_merge_var_num: 5
    FLAGS_communicator_max_send_grad_num_before_recv: 5
    FLAGS_communicator_thread_pool_size: 32
    FLAGS_communicator_fake_rpc: 0
    FLAGS_rpc_retry_times: 3

{_SUBMIT}\
  # for mpi ps-cpu
  nodes: 2
  # for k8s gpu
  k8s_trainers: 2
  k8s-cpu-cores: 4
  k8s_gpu_card: 1
  # for k8s ps-cpu
  k8s_trainers: 2
  k8s-cpu-cores: 4
  k8s_ps_num: 2
  k8s_ps_cores: 4
"""

MPI = f"""\
backend: "PaddleCloud"
cluster_type: mpi # k8s
config:
  paddle_version: "1.7.2"
  fs_name: "afs://xxx.com"
  fs_ugi: "usr,pwd"
  output_path: ""
  train_data_path: ""
  test_data_path: ""
  thirdparty_path: ""
{_SUBMIT}\
  nodes: 2
"""

_K8S = f"""\
backend: "PaddleCloud"
cluster_type: k8s # mpi
config:
  paddle_version: "1.7.2"
  fs_name: "afs://xxx.com"
  fs_ugi: "usr,pwd"
  output_path: ""
  afs_remote_mount_point: ""
{_SUBMIT}\
  k8s_trainers: 2
  k8s-cpu-cores: 4
"""

COLLECTIVE = f"{_K8S}  k8s_gpu_card: 1\n"
PS_CPU = f"{_K8S}  k8s_ps_num: 2\n  k8s_ps_cores: 4\n"

EXAMPLES = {"full": FULL, "mpi": MPI, "collective": COLLECTIVE, "ps_cpu": PS_CPU}
