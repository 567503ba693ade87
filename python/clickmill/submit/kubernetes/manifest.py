"""All objects of a job, in the order in which they are made, and their YAML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clickmill.submit.kubernetes.account import role, role_binding, service_account
from clickmill.submit.kubernetes.claim import needs_claim, output_claim
from clickmill.submit.kubernetes.config_map import failures_map, package_map, size_map
from clickmill.submit.kubernetes.indexed_job import indexed_job
from clickmill.submit.kubernetes.network_policy import network_policy
from clickmill.submit.kubernetes.secret import access_command, token_secret
from clickmill.submit.kubernetes.service import service
from clickmill.submit.kubernetes.volcano_job import volcano_job
from clickmill.submit.yaml_text import yaml_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


MAX_ANNOTATIONS_BYTES = 262_144
"""Of one object; API servers refuse more."""
_ROOM = 4096
"""For the other annotations of an object, and what kubectl adds to it."""


def surroundings(plan: JobPlan) -> list[Object]:
    """What must be there before pods are made."""
    return [
        service_account(plan),
        role(plan),
        role_binding(plan),
        *([token_secret(plan)] if plan.has_token else []),
        package_map(plan),
        failures_map(plan),
        *([] if plan.is_collective else [size_map(plan)]),
        *([output_claim(plan)] if needs_claim(plan) else []),
        network_policy(plan),
        service(plan),
    ]


def workloads(plan: JobPlan) -> list[Object]:
    """What makes the pods: one Volcano Job, or a Job for each role."""
    if plan.is_volcano:
        return [volcano_job(plan)]
    return [indexed_job(plan, each) for each in plan.roles]


def manifest(plan: JobPlan) -> list[Object]:
    """Everything that `clickmill submit` applies, but for secrets."""
    return [*surroundings(plan), *workloads(plan)]


def apply_command(plan: JobPlan) -> str:
    """By which kubectl takes the manifest; unless told not to, it keeps each object in an annotation, too."""
    largest = max(map(_annotation_bytes, manifest(plan)))
    option = " --server-side" if largest > MAX_ANNOTATIONS_BYTES - _ROOM else ""
    return f"kubectl apply{option} -f FILE"


def _annotation_bytes(item: Object) -> int:
    """Of the object as kubectl keeps it: JSON in which Go writes three characters as escapes."""
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) + sum(text.count(character) for character in "<>&") * (len(r"\u003c") - 1)


def to_yaml(items: Sequence[Object]) -> str:
    """One document for each object, which kubectl reads as it is here."""
    return "".join(f"---\n{yaml_text(item)}" for item in items)


def manifest_yaml(plan: JobPlan) -> str:
    """The manifest as a file that can be committed and applied: `kubectl apply -f job.yaml`."""
    lines = [
        f"# Job `{plan.names.job}`, written by `clickmill submit --dry-run -o yaml`.",
        f"# `{apply_command(plan)}` does what `clickmill submit` does, for a job that is not there yet.",
    ]
    if plan.access_variables:
        lines += [
            "# Credentials are no part of it; they go into a Secret of their own:",
            f"#   {access_command(plan)}",
        ]
    return "\n".join(lines) + "\n" + to_yaml(manifest(plan))
