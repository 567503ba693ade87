"""Jobs as we make them, whose containers do what a test says in place of training."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from dataclasses import replace

from clickmill.kube import kinds
from clickmill.kube.client import Cluster, Object
from clickmill.kube.kinds import kind_of
from clickmill.submit.kubernetes.api import ROLE_LABEL, JobPlan, manifest

from .conftest import poll
from .jobs import pods

_OBEY = """
import os, signal, sys, time
def leave(*_): sys.exit(143)
signal.signal(signal.SIGTERM, leave)
while True:
    if os.path.exists("/tmp/exit"):
        sys.exit(int(open("/tmp/exit").read()))
    time.sleep(0.1)
"""


def quick(plan: JobPlan) -> JobPlan:
    """Few restarts, so that a test sees the last of them."""
    return replace(plan, settings=plan.settings.model_copy(update={"max_restarts": 1}))


def start(
    cluster: Cluster,
    plan: JobPlan,
    *,
    program: str = _OBEY,
    change: Callable[[Object], None] = lambda _: None,
) -> None:
    """The job as it is, but for its program, and what `change` makes of the template of each role."""
    for item in manifest(plan):
        cluster.apply(_with_program(item, program, change))


def one_to_a_node(cluster: Cluster) -> Callable[[Object], None]:
    """A change: of the trainers a single one finds room, on the first node; the others wait for ever."""
    node = cluster.list(kinds.NODE)[0]["metadata"]["labels"]["kubernetes.io/hostname"]

    def change(template: Object) -> None:
        role = template["metadata"]["labels"][ROLE_LABEL]
        if role == "trainer":
            term = {
                "labelSelector": {"matchLabels": {ROLE_LABEL: role}},
                "topologyKey": "kubernetes.io/hostname",
            }
            apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            template["spec"] |= {
                "affinity": {"podAntiAffinity": apart},
                "nodeSelector": {"kubernetes.io/hostname": node},
            }

    return change


def _with_program(item: Object, program: str, change: Callable[[Object], None]) -> Object:
    item = copy.deepcopy(item)
    if kind_of(item) in {kinds.VOLCANO_JOB, kinds.JOB}:
        for part in item["spec"].get("tasks", [item["spec"]]):
            change(part["template"])
            (container,) = part["template"]["spec"]["containers"]
            del container["args"]
            container.pop("readinessProbe", None)
            container["command"] = ["python3", "-c", program]
    return item


def states(cluster: Cluster, plan: JobPlan) -> dict[str, str]:
    """Phases of the pods by their names."""
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods(cluster, plan)}


def until_running(cluster: Cluster, plan: JobPlan, number: int) -> None:
    def claim() -> bool:
        found = states(cluster, plan)
        return len(found) == number and set(found.values()) == {"Running"}

    poll(claim, f"{number} running pods")


def tell_to_end(namespace: str, pod: str, code: int) -> None:
    """The process of the pod ends with `code`."""
    write = f"open('/tmp/exit.new', 'w').write('{code}'); import os; os.rename('/tmp/exit.new', '/tmp/exit')"
    command = ["kubectl", "-n", namespace, "exec", pod, "--", "python3", "-c", write]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def uid(cluster: Cluster, plan: JobPlan, pod: str) -> str:
    found = cluster.get(kinds.POD, pod, namespace=plan.namespace)
    return "" if found is None else str(found["metadata"]["uid"])
