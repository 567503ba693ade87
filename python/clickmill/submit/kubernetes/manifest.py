"""All objects of a job, in the order in which they are made, and their YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from clickmill.submit.kubernetes.account import role, role_binding, service_account
from clickmill.submit.kubernetes.claim import needs_claim, output_claim
from clickmill.submit.kubernetes.config_map import failures_map, package_map, size_map
from clickmill.submit.kubernetes.indexed_job import indexed_job
from clickmill.submit.kubernetes.network_policy import network_policy
from clickmill.submit.kubernetes.secret import access_command, token_secret
from clickmill.submit.kubernetes.service import service
from clickmill.submit.kubernetes.volcano_job import volcano_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


def surroundings(plan: JobPlan) -> list[Object]:
    """What must be there before pods are made."""
    return [
        service_account(plan),
        role(plan),
        role_binding(plan),
        token_secret(plan),
        package_map(plan),
        failures_map(plan),
        *([] if plan.is_collective else [size_map(plan)]),
        *([output_claim(plan)] if needs_claim(plan) else []),
        network_policy(plan),
        service(plan),
    ]


def workloads(plan: JobPlan) -> list[Object]:
    """What makes the pods: one Volcano Job, or a Job for each role."""
    if plan.settings.scheduler == "volcano":
        return [volcano_job(plan)]
    return [indexed_job(plan, each) for each in plan.roles]


def manifest(plan: JobPlan) -> list[Object]:
    """Everything that `clickmill submit` applies, but for secrets."""
    return [*surroundings(plan), *workloads(plan)]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are, and no references between parts that happen to be the same."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def to_yaml(items: Sequence[Object]) -> str:
    """One document for each object."""
    return "".join(
        "---\n" + yaml.dump(item, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
        for item in items
    )


def manifest_yaml(plan: JobPlan) -> str:
    """The manifest as a file that can be committed and applied: `kubectl apply -f job.yaml`."""
    lines = [
        f"# Job `{plan.names.job}`, written by `clickmill submit --dry-run -o yaml`.",
        "# `kubectl apply -f FILE` does what `clickmill submit` does, for a job that is not there yet.",
    ]
    if plan.access_variables:
        lines += [
            "# Credentials are no part of it; they go into a Secret of their own:",
            f"#   {access_command(plan)}",
        ]
    return "\n".join(lines) + "\n" + to_yaml(manifest(plan))
