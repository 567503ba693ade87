"""Jobs for tests: small ones of ours, and their state on the cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from clickmill.config import parse_config
from clickmill.config.backend import parse_backend
from clickmill.kube import kinds
from clickmill.kube.client import Cluster, Object
from clickmill.submit.kubernetes.api import JobPlan, make_plan

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train, epochs: 1, fleet_mode: ps}
dataset:
- {name: log, data_path: "{workspace}/train_data", format: criteo}
phase:
- {name: first, model: dnn, dataset_name: log}
"""
BACKEND = """\
backend: Kubernetes
submit: {{job_name: {name}, k8s_trainers: {trainers}, k8s_ps_num: {pservers}}}
kubernetes:
  image: {image}
  scheduler: {scheduler}
  resources:
    pserver: {{cpu: {cpu}, memory: 16Mi}}
    trainer: {{cpu: {cpu}, memory: 16Mi}}
    worker: {{cpu: {cpu}, memory: 16Mi}}
"""


def small_plan(
    namespace: str,
    *,
    name: str = "job",
    pservers: int = 2,
    trainers: int = 2,
    scheduler: str = "volcano",
    cpu: str = "10m",
    more: str = "",
    is_collective: bool = False,
) -> JobPlan:
    """A job that asks for next to nothing. Its image need not exist: most tests never look into a pod."""
    image = os.environ.get("CLICKMILL_IMAGE", "clickmill-absent:test")
    sizes = {"pservers": pservers, "trainers": trainers, "cpu": cpu}
    text = BACKEND.format(name=name, image=image, scheduler=scheduler, **sizes)
    mode = "fleet_mode: collective" if is_collective else "fleet_mode: ps"
    return make_plan(
        parse_config(CONFIG.replace("fleet_mode: ps", mode)),
        parse_backend(text + more),
        {"config.yaml": CONFIG.encode()},
        namespace=namespace,
        config_file="config.yaml",
    )


def with_trainers(plan: JobPlan, number: int) -> JobPlan:
    """The same job with another number of trainers."""
    servers, trainers = plan.roles
    return replace(plan, roles=(servers, replace(trainers, replicas=number)))


def pods(cluster: Cluster, plan: JobPlan) -> list[Object]:
    """Pods of the job that are not on their way out."""
    found = cluster.list(kinds.POD, labels=plan.names.selector, namespace=plan.namespace)
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def pod_names(cluster: Cluster, plan: JobPlan) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods(cluster, plan)}


def job(cluster: Cluster, plan: JobPlan) -> Object:
    """The Volcano Job."""
    found = cluster.get(kinds.VOLCANO_JOB, plan.names.job, namespace=plan.namespace)
    assert found is not None
    return found


def phase(cluster: Cluster, plan: JobPlan) -> str:
    """Of the Volcano Job; empty where Volcano has not looked at it yet."""
    return str(_path(job(cluster, plan), "status", "state", "phase") or "")


def _path(item: Any, *keys: str) -> Any:
    for key in keys:
        item = (item or {}).get(key)
    return item
