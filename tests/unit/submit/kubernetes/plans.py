"""Plans of jobs, from texts as users write them."""

from __future__ import annotations

from clickmill.config import parse_config
from clickmill.config.backend import parse_backend
from clickmill.submit.kubernetes.plan import JobPlan, make_plan

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train, epochs: 1%s}
dataset:
- {name: log, data_path: "{workspace}/train_data", format: criteo}
phase:
- {name: first, model: dnn, dataset_name: log}
"""
BACKEND = """\
backend: Kubernetes
submit: {job_name: Criteo_Job, k8s_trainers: 2, k8s_cpu_cores: 2, k8s_ps_num: 2, k8s_ps_cores: 1}
kubernetes:
  image: registry.example/clickmill:1
"""


def plan_of(backend: str = "", *, runner: str = "", package: dict[str, bytes] | None = None) -> JobPlan:
    """The standard job, with more lines under `kubernetes` and more keys of the runner."""
    return make_plan(
        parse_config(CONFIG % runner),
        parse_backend(BACKEND + backend),
        {"config.yaml": b"mode: train\n"} if package is None else package,
        namespace="team",
        config_file="config.yaml",
    )


def collective_plan(backend: str = "") -> JobPlan:
    """A job of two equal workers."""
    return plan_of(backend, runner=", fleet_mode: collective")
