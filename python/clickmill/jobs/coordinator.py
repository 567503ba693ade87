"""The coordinator of a job, asked from outside of its cluster through the API server."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError, KubernetesError, StateError
from clickmill.jobs.token import job_token
from clickmill.jobs.waits import Wait, waits_of
from clickmill.kube.proxy import PodProxy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.jobs.pods import Pod
    from clickmill.kube.client import Cluster

Message = dict[str, Any]

_METRICS = "metrics"
_DEFAULT_PORT = 30241
_OK, _NOT_FOUND, _REFUSED = 200, 404, 409
_LOOK_DEADLINE_S = 5.0
_STILL = frozenset({"gathering", "loading"})
"""Phases in which servers are missing, or have no rows yet."""
ENDED = frozenset({"ending", "stopped"})
"""Phases of a run that does not go on."""
_ORDER_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Training:
    """How far a run has come."""

    phase: str
    """Of the coordinator: `starting`, `gathering`, `loading`, `running`, `ending`, `stopped`."""
    strategy: str | None
    pass_number: int
    """The one under way, from 0."""
    num_passes: int
    stage: str | None
    progress: float | None
    """Share of the units of this stage that are done."""
    samples: int
    samples_per_s: float
    auc: float | None
    metrics: dict[str, float]
    is_validation: bool
    staleness_steps: float | None
    """The largest mean of any server."""
    num_trainers: int
    num_pservers: int
    scaling_to: int | None
    scaling_failure: str | None
    snapshot: int | None
    """The last that was committed."""
    snapshot_age_s: float | None
    snapshot_failure: str | None
    """Why the last attempt came to nothing; None where it did not."""
    waiting: tuple[Wait, ...]
    """Whom all wait for, but for what is over in a moment."""

    @property
    def stands_still(self) -> bool:
        """Nobody trains, whatever the last speed of those who wait was."""
        return self.phase in _STILL or any(wait.holds_all_up for wait in self.waiting)

    def to_dict(self) -> Message:
        return asdict(self)


class CoordinatorProxy:
    """Asks the coordinator, which is in `pod`."""

    def __init__(self, cluster: Cluster, job: str, pod: Pod, *, deadline_s: float = _LOOK_DEADLINE_S) -> None:
        self.pod = pod
        self._proxy = PodProxy(
            cluster, pod.name, metrics_port(pod), token=job_token(cluster, job), deadline_s=deadline_s
        )

    def status(self) -> Message:
        """What `clickmill ps status --json` prints."""
        answer = self._proxy.ask("/status")
        if answer.code == _NOT_FOUND:
            raise KubernetesError(f"pod `{self.pod.name}` has no `/status`: its image is of another version")
        if answer.code != _OK:
            raise KubernetesError(f"pod `{self.pod.name}`: {answer.words}", status=answer.code)
        status: Message = json.loads(answer.content)
        return status

    def training(self) -> Training:
        """The same in fewer numbers."""
        return training_of(self.status())

    def order(self, what: str, **parameters: Any) -> str:
        """Tell it to `scale`, `snapshot` or `stop`; what is going to happen. StateError where it refuses."""
        answer = self._proxy.ask(f"/{what}", method="POST", params=parameters)
        if answer.code == _REFUSED:
            raise StateError(f"the coordinator refuses: {answer.words}")
        if answer.code != _OK:
            raise ClickmillError(f"pod `{self.pod.name}` does not take the order to {what}: {answer.words}")
        words: str = json.loads(answer.content).get("words", "")
        return words


def find_coordinator(
    cluster: Cluster, job: str, pods: Sequence[Pod], *, is_order: bool = False
) -> CoordinatorProxy | None:
    """The coordinator, where its pod runs."""
    pod = next((pod for pod in pods if pod.role == "pserver" and pod.index == 0 and pod.is_running), None)
    deadline_s = _ORDER_DEADLINE_S if is_order else _LOOK_DEADLINE_S
    return None if pod is None else CoordinatorProxy(cluster, job, pod, deadline_s=deadline_s)


def metrics_port(pod: Pod) -> int:
    """At which a pod of ours answers."""
    for container in pod.item["spec"]["containers"]:
        for port in container.get("ports") or []:
            if port.get("name") == _METRICS:
                return int(port["containerPort"])
    return _DEFAULT_PORT


def training_of(status: Message) -> Training:
    """What matters of a coordinator's status."""
    metrics = status.get("metrics") or {"numbers": {}, "is_validation": False}
    active = [server["statistics"] for server in status["servers"] if server["buckets"]]
    snapshot = status["snapshot"]
    return Training(
        phase=status["phase"],
        strategy=status["strategy"],
        pass_number=status["pass"],
        num_passes=status["num_passes"],
        stage=status["stage"],
        progress=status["units_done"] / status["units"] if status["units"] else None,
        samples=status["samples"],
        samples_per_s=sum(trainer["statistics"]["samples_per_s"] for trainer in status["trainers"]),
        auc=metrics["numbers"].get("auc"),
        metrics=metrics["numbers"],
        is_validation=metrics["is_validation"],
        staleness_steps=max((own["staleness_steps"] for own in active), default=None),
        num_trainers=len(status["trainers"]),
        num_pservers=status["num_servers"],
        scaling_to=status["scaling_to"],
        scaling_failure=status["scaling_failure"],
        snapshot=snapshot["committed"],
        snapshot_age_s=snapshot["age_s"],
        snapshot_failure=snapshot["failure"],
        waiting=tuple(wait for wait in waits_of(status) if not wait.is_brief),
    )
