"""What pods are given to read, the files of the job and how many pods it has; and what they write."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan

TRAINERS_KEY = "trainers"
PSERVERS_KEY = "pservers"
SUBMITTED_ANNOTATION = "clickmill.io/submitted-pservers"
"""On the sizes: the number of servers in the backend.yaml that was submitted last. In the data is another one
where the job was scaled since."""


def package_map(plan: JobPlan) -> Object:
    """Configuration, model and other files, as they are; those that are no text go as bytes."""
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, content in sorted(plan.package.items()):
        try:
            texts[name] = content.decode("utf-8")
        except UnicodeDecodeError:
            others[name] = base64.b64encode(content).decode("ascii")
    return {
        **head(kinds.CONFIG_MAP, plan, plan.names.package),
        **({"data": texts} if texts else {}),
        **({"binaryData": others} if others else {}),
    }


def size_map(plan: JobPlan) -> Object:
    """The numbers of servers and trainers, which may change while the job runs.

    In the template of the pods they would make every change of them a change of the template, which is
    refused. Pods that are there keep the numbers that they began with. That of trainers counts when a run
    starts, that of servers whenever the coordinator does.
    """
    item = head(kinds.CONFIG_MAP, plan, plan.names.size)
    servers = str(plan.role("pserver").replicas)
    return {
        **item,
        "metadata": {**item["metadata"], "annotations": {SUBMITTED_ANNOTATION: servers}},
        "data": {PSERVERS_KEY: servers, TRAINERS_KEY: str(plan.role("trainer").replicas)},
    }


def failures_map(plan: JobPlan) -> Object:
    """Where pods write down how others have failed, since a failed pod is soon gone.

    It has no data here: applying the manifest again leaves alone what is in it.
    """
    return head(kinds.CONFIG_MAP, plan, plan.names.failures)
