"""Names and labels of the objects of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clickmill.launch.pod.witness import failures_name

RoleName = Literal["pserver", "trainer", "worker"]

NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
MANAGER_LABEL = "app.kubernetes.io/managed-by"
ROLE_LABEL = "clickmill.io/role"
TEMPLATE_ANNOTATION = "clickmill.io/template"
"""On what runs the pods: digest of everything in it that cannot change while it runs."""
PACKAGE_ANNOTATION = "clickmill.io/package"
"""On pods: digest of the files that they see in /package."""
RESERVED = frozenset(
    {
        "POD_NAME", "POD_IP", "NAMESPACE", "PADDLE_CURRENT_IP", "CLICKMILL_ROLE", "CLICKMILL_JOB",
        "CLICKMILL_SERVICE", "CLICKMILL_PORT", "CLICKMILL_METRICS_PORT", "CLICKMILL_TRAINERS",
        "CLICKMILL_PSERVERS", "CLICKMILL_RESTARTS", "CLICKMILL_MAX_RESTARTS",
        "CLICKMILL_GRACE_S", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE", "PADDLE_JOB_NAME", "PADDLE_IS_LOCAL",
        "PADDLE_PORT", "PADDLE_TRAINERS_NUM", "PADDLE_PSERVERS_NUM",
    }
)  # fmt: skip
"""Variables of pods that are not the user's to set."""
_CLICKMILL = "clickmill"
_SEED_LABELS = {"pserver": "paddle-job-pserver"}
"""By which jobs of older systems find their pods; `paddle-job` for all but parameter servers."""


@dataclass(frozen=True, slots=True)
class Names:
    """Of one job; `job` is a DNS label short enough for all that is added to it."""

    job: str

    @property
    def service(self) -> str:
        return f"{self.job}-pods"

    @property
    def package(self) -> str:
        return f"{self.job}-package"

    @property
    def size(self) -> str:
        return f"{self.job}-size"

    @property
    def failures(self) -> str:
        return failures_name(self.job)

    @property
    def turn(self) -> str:
        """There while somebody submits the job."""
        return f"{self.job}-turn"

    @property
    def token(self) -> str:
        return f"{self.job}-token"

    @property
    def access(self) -> str:
        return f"{self.job}-access"

    @property
    def output(self) -> str:
        return f"{self.job}-output"

    def role(self, role: RoleName) -> str:
        """The batch Job of a role, without Volcano."""
        return f"{self.job}-{role}"

    @property
    def labels(self) -> dict[str, str]:
        """On every object."""
        return {**self.selector, MANAGER_LABEL: _CLICKMILL}

    @property
    def selector(self) -> dict[str, str]:
        """Chooses the objects of the job."""
        return {NAME_LABEL: _CLICKMILL, INSTANCE_LABEL: self.job}

    def pod_labels(self, role: RoleName) -> dict[str, str]:
        """On every pod."""
        return {**self.labels, ROLE_LABEL: role, _SEED_LABELS.get(role, "paddle-job"): self.job}
