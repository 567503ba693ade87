"""The volume for run folders, where the user names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


def needs_claim(plan: JobPlan) -> bool:
    """Whether neither a claim nor a folder of a node is named."""
    return not (plan.settings.output.claim or plan.settings.output.host_path)


def output_claim(plan: JobPlan) -> Object:
    """A claim of the job's own; it outlives the job."""
    output = plan.settings.output
    spec = {
        "accessModes": [output.access_mode],
        "resources": {"requests": {"storage": output.size}},
        "volumeMode": "Filesystem",
    }
    if output.storage_class:
        spec["storageClassName"] = output.storage_class
    return {**head(kinds.CLAIM, plan, plan.names.output), "spec": spec}
