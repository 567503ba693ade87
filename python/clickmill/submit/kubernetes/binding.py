"""Claims that are about to get a volume, and why a job under Volcano is made after them.

Volcano takes a pod whose claim has no volume yet for one that needs an attachment of the provisioner's,
which nodes have of CSI drivers alone. With other provisioners it finds no node, and does not look at the
claim again before the pod changes. So what makes the pods comes when claims have their volumes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.kube.client import Cluster
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan

PATIENCE_S = 30.0
"""For a volume that somebody was asked to make. A job that is made without it says what it waits for."""
_ASKED_WITHIN_S = 1.0
"""Until somebody is asked; nobody is where the class waits for the first pod."""
_TELL_S = 3.0
_POLL_S = 0.2
_PROVISIONERS = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)


def provisioner(claim: Object) -> str | None:
    """Who was asked to make the volume of a claim."""
    annotations = claim["metadata"].get("annotations") or {}
    return next((annotations[name] for name in _PROVISIONERS if name in annotations), None)


def is_pending(claim: Object) -> bool:
    """Whether it has no volume yet."""
    return bool((claim.get("status") or {}).get("phase", "Pending") == "Pending")


def await_volumes(
    cluster: Cluster,
    plan: JobPlan,
    tell: Callable[[str], None],
    *,
    patience_s: float = PATIENCE_S,
    asked_within_s: float = _ASKED_WITHIN_S,
) -> None:
    """Until claims of the job have their volumes, or none comes; not where nobody was asked for one."""
    began, told = time.monotonic(), False
    for name in _claims(plan):
        while True:
            try:
                claim = cluster.get(kinds.CLAIM, name, namespace=plan.namespace)
            except ForbiddenError:
                return
            waited_s = time.monotonic() - began
            if claim is None or not is_pending(claim) or waited_s > patience_s:
                break
            if provisioner(claim) is None and waited_s > asked_within_s:
                break
            if waited_s > _TELL_S and not told:
                told = True
                tell(f"claim `{name}` has no volume yet; the job comes with it, or after {patience_s:.0f} s")
            time.sleep(_POLL_S)


def _claims(plan: JobPlan) -> list[str]:
    output = plan.settings.output
    own = [] if output.host_path else [output.claim or plan.names.output]
    return [*own, *(volume.claim for volume in plan.settings.volumes if volume.claim)]
