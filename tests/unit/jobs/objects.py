"""Objects of jobs as a cluster has them: those that `submit` makes, and the pods that come of them."""

from __future__ import annotations

import copy
from typing import Any

from clickmill.config import parse_config
from clickmill.config.backend import parse_backend
from clickmill.submit.kubernetes.api import JobPlan, make_plan, manifest
from clickmill.submit.kubernetes.manifest import workloads

Object = dict[str, Any]

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train, epochs: 1}
dataset:
- {name: log, data_path: "{workspace}/train_data", format: criteo}
phase:
- {name: first, model: dnn, dataset_name: log}
"""
BACKEND = """\
backend: Kubernetes
submit: {{job_name: {name}, k8s_trainers: {trainers}, k8s_ps_num: {pservers}}}
kubernetes:
  image: clickmill:test
  scheduler: {scheduler}
  resources:
    pserver: {{cpu: "1", memory: 1Gi}}
    trainer: {{cpu: "2", memory: 2Gi}}
"""


def plan(
    name: str = "ctr",
    *,
    pservers: int = 2,
    trainers: int = 2,
    scheduler: str = "volcano",
    more: str = "",
    is_collective: bool = False,
) -> JobPlan:
    text = BACKEND.format(name=name, pservers=pservers, trainers=trainers, scheduler=scheduler)
    return make_plan(
        parse_config(CONFIG, overrides=["runner.0.fleet_mode=collective"] if is_collective else []),
        parse_backend(text + more),
        {"config.yaml": CONFIG.encode()},
        namespace="team",
        config_file="config.yaml",
    )


def submitted(made: JobPlan, *, phase: str = "Pending", **status: Any) -> list[Object]:
    """All objects of a job; `phase` and further fields of the status are Volcano's."""
    items = copy.deepcopy(manifest(made))
    for item in items:
        if item["apiVersion"].startswith("batch.volcano.sh"):
            state = {"phase": phase, "lastTransitionTime": "2026-01-31T09:00:00Z"}
            item["status"] = {"state": state, **status}
    return items


def job_object(made: JobPlan, **status: Any) -> Object:
    """The Volcano Job alone."""
    return submitted(made, **status)[-1]


def leaving(item: Object) -> Object:
    """The same, told to go."""
    item["metadata"]["deletionTimestamp"] = "2026-01-31T09:00:00Z"
    return item


def pod(made: JobPlan, role: str, index: int, *, name: str = "", **status: Any) -> Object:
    """A pod of the job; `status` has what a kubelet writes there, and `node` where it is."""
    for workload in workloads(made):
        for task in workload["spec"].get("tasks") or [workload["spec"]]:
            template = copy.deepcopy(task["template"])
            if template["metadata"]["labels"]["clickmill.io/role"] == role:
                break
        else:
            continue
        break
    node = status.pop("node", None)
    metadata = {
        **template["metadata"],
        "name": name or f"{made.names.job}-{role}-{index}",
        "creationTimestamp": status.pop("created", "2026-01-31T08:00:05Z"),
    }
    if deleted := status.pop("deleted", None):
        metadata["deletionTimestamp"] = deleted
    if made.settings.scheduler != "volcano":
        metadata["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
    spec = {**template["spec"], **({"nodeName": node} if node else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending", **status},
    }


def container(restarts: int = 0, last: Object | None = None, **state: Any) -> dict[str, Any]:
    """`containerStatuses` with one container in a state: running={}, waiting={...}, terminated={...}."""
    found: Object = {"name": "clickmill", "restartCount": restarts, "state": state}
    if last:
        found["lastState"] = {"terminated": last}
    return {"containerStatuses": [found]}


def running(made: JobPlan, role: str, index: int, *, node: str = "n1", **more: Any) -> Object:
    ready = {"type": "Ready", "status": "True"}
    usual = {"phase": "Running", "conditions": [ready], **container(running={})}
    return pod(made, role, index, node=node, **{**usual, **more})


def ended(made: JobPlan, role: str, index: int, code: int, message: str = "", **more: Any) -> Object:
    terminated = {
        "exitCode": code,
        "reason": more.pop("reason", "Error" if code else "Completed"),
        "message": message,
        "finishedAt": more.pop("finished", "2026-01-31T08:30:00Z"),
    }
    phase = "Failed" if code else "Succeeded"
    return pod(made, role, index, node="n1", phase=phase, **{**container(terminated=terminated), **more})


def node(name: str, cpu: str = "4", memory: str = "8Gi", **more: Any) -> Object:
    ready = {"type": "Ready", "status": more.pop("ready", "True")}
    labels = more.pop("labels", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}, "conditions": [ready]},
    }


def queue(capability: dict[str, str] | None = None, **status: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1, **({"capability": capability} if capability else {})},
        "status": {"state": "Open", **status},
    }


def event(about: str, kind: str, reason: str, message: str, moment: str = "2026-01-31T08:01:00Z") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about}.{abs(hash(message)):x}"},
        "involvedObject": {"kind": kind, "name": about},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": moment,
    }
