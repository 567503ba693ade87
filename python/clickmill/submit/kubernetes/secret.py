"""Secrets of a job: its token, and what pods need to get at files elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


def token_secret(plan: JobPlan) -> Object:
    """By which the processes of the job know each other.

    It has no data here, so that a manifest can be shown and committed: the first launcher that finds it empty
    writes a random token. Applying the manifest again leaves the token alone: it does not own that field.
    """
    return {**head(kinds.SECRET, plan, plan.names.token), "type": "Opaque"}


def access_secret(plan: JobPlan, values: Mapping[str, str]) -> Object:
    """Credentials for HDFS and S3 as variables of the pods. Never part of a manifest."""
    return {
        **head(kinds.SECRET, plan, plan.names.access),
        "type": "Opaque",
        "stringData": dict(sorted(values.items())),
    }


def access_command(plan: JobPlan) -> str:
    """What to type for the Secret that a manifest does not hold; its values are no arguments of a command."""
    command = f"kubectl create secret generic {plan.names.access} -n {plan.namespace} --from-env-file=FILE"
    lines = ", ".join(f"{name}=..." for name in plan.access_variables)
    return f"{command}    (FILE has the lines {lines})"
