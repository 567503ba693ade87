"""Who the pods are, and what they may do: a ServiceAccount with the smallest Role that will do.

Launchers look at the pods of the namespace, to tell what they wait for and to notice a peer that cannot come.
The first of them writes the token of the job into its Secret, where it has one. They write down how pods have
failed, which are soon gone. `list` and `watch` cannot be restricted to names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


def service_account(plan: JobPlan) -> Object:
    """Whom the pods run as."""
    # Pods that want its credentials say so themselves.
    return {**head(kinds.SERVICE_ACCOUNT, plan, plan.names.job), "automountServiceAccountToken": False}


def role(plan: JobPlan) -> Object:
    """What the pods may do."""
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        *([_change("secrets", plan.names.token)] if plan.has_token else []),
        _change("configmaps", plan.names.failures),
    ]
    return {**head(kinds.ROLE, plan, plan.names.job), "rules": rules}


def _change(resources: str, name: str) -> Object:
    """A rule for one object, which is there already."""
    return {
        "apiGroups": [""],
        "resources": [resources],
        "resourceNames": [name],
        "verbs": ["get", "update"],
    }


def role_binding(plan: JobPlan) -> Object:
    """That they may."""
    name = plan.names.job
    return {
        **head(kinds.ROLE_BINDING, plan, name),
        "roleRef": {"apiGroup": kinds.ROLE.group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": plan.namespace}],
    }
