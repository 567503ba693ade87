"""The way in for `clickmill submit` and `clickmill job`.

plan = make_plan(config, backend, package, namespace=..., config_file=...)
print(manifest_yaml(plan))                            # `--dry-run -o yaml`
submit(cluster, plan, access=..., replace=False)      # the same, applied
"""

from __future__ import annotations

from clickmill.submit.kubernetes.apply import Applied, Submission, submit
from clickmill.submit.kubernetes.manifest import manifest, manifest_yaml
from clickmill.submit.kubernetes.names import INSTANCE_LABEL, MANAGER_LABEL, NAME_LABEL, ROLE_LABEL, Names
from clickmill.submit.kubernetes.old_job import finished_phase
from clickmill.submit.kubernetes.plan import JobPlan, RolePlan, make_plan

__all__ = [
    "INSTANCE_LABEL",
    "MANAGER_LABEL",
    "NAME_LABEL",
    "ROLE_LABEL",
    "Applied",
    "JobPlan",
    "Names",
    "RolePlan",
    "Submission",
    "finished_phase",
    "make_plan",
    "manifest",
    "manifest_yaml",
    "submit",
]
