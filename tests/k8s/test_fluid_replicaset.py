"""The older form of the seeds' job, without Volcano: servers in a ReplicaSet, trainers in a Job."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.k8s.conftest import Kubectl, poll
from tests.k8s.test_seed_job import grant, short

SERVERS, TRAINERS = "fluid-ctr-pserver", "fluid-ctr-trainer"


def parts(image: str) -> list[dict[str, Any]]:
    """The templates of the seeds' manifest, in what plain Kubernetes has for them."""
    pserver, trainer = (task["template"] for task in yaml.safe_load(short(image))["spec"]["tasks"])
    pserver["spec"]["restartPolicy"] = "Always"  # a ReplicaSet takes no other
    servers = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": SERVERS},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": pserver["metadata"]["labels"]},
            "template": pserver,
        },
    }
    trainers = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": TRAINERS},
        "spec": {"parallelism": 2, "completions": 2, "template": trainer},
    }
    return [servers, trainers]


def trained(kubectl: Kubectl) -> bool:
    return kubectl("get", "job", TRAINERS, "-o", "jsonpath={.status.succeeded}") == "2"


@pytest.mark.timeout(900)
def test_it_trains_and_its_servers_serve_another_run(kubectl: Kubectl, image: str, namespace: str) -> None:
    grant(kubectl, namespace)
    servers, trainers = parts(image)
    kubectl("apply", "-f", "-", stdin=json.dumps(servers))
    kubectl("apply", "-f", "-", stdin=json.dumps(trainers))
    poll(lambda: trained(kubectl), "the trainers to be done", deadline_s=400)
    label = "paddle-job-pserver=fluid-ctr"
    rest = "the run is over: this server has served it to its end"
    poll(
        lambda: kubectl("logs", "-l", label, "--tail=-1", "--prefix").count(rest) == 2,
        "both servers to rest",
    )
    kubectl("delete", "job", TRAINERS)
    kubectl("apply", "-f", "-", stdin=json.dumps(trainers))
    poll(lambda: trained(kubectl), "the second run to be done", deadline_s=400)
