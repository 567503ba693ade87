"""Another number of trainers or parameter servers, while the job trains."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError, ConfigError, ConflictError, StateError
from clickmill.jobs.coordinator import find_coordinator
from clickmill.jobs.job import find_job, look_up, role_of
from clickmill.jobs.move import Move
from clickmill.jobs.pods import current, list_pods
from clickmill.jobs.size import remember_servers
from clickmill.kube import kinds
from clickmill.kube.kinds import kind_of
from clickmill.submit.kubernetes.config_map import TRAINERS_KEY
from clickmill.submit.kubernetes.rights import Right, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.jobs.coordinator import CoordinatorProxy
    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster, Object

    Tell = Callable[[str], None]

MAX_PSERVERS = 1024
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Scaled:
    """What the numbers of a job were and are."""

    name: str
    namespace: str
    trainers: tuple[int, int] | None
    """Before and now; None where it was not asked for."""
    pservers: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        def both(numbers: tuple[int, int] | None) -> dict[str, int] | None:
            return None if numbers is None else {"before": numbers[0], "now": numbers[1]}

        return {
            "name": self.name,
            "namespace": self.namespace,
            "trainers": both(self.trainers),
            "pservers": both(self.pservers),
        }


def scale_job(
    cluster: Cluster,
    name: str,
    tell: Tell,
    *,
    trainers: int | None = None,
    pservers: int | None = None,
    deadline_s: float = 600.0,
) -> Scaled:
    """Change the numbers. Trainers come and go by themselves; servers are waited for until buckets moved.

    StateError where the job is over or cannot be scaled, DeadlineError where buckets have not moved in time.
    """
    job = find_job(cluster, name)
    if job.is_over:
        raise StateError(f"job `{name}` is {job.phase}: there is nothing to scale")
    if job.is_leaving:
        raise StateError(
            f"job `{name}` is being stopped or deleted: there is nothing to scale",
            hint=f"`{cluster.command(f'job status {name}')}` shows what is left of it",
        )
    if job.is_collective:
        raise StateError(
            f"job `{name}` is collective: the number of its workers is part of what they compute",
            hint="stop it, change `submit.k8s_trainers` and submit again: it goes on from a checkpoint",
        )
    _check_numbers(cluster, job, trainers, pservers)
    require(cluster, f"scale job `{name}`", _rights(job, has_servers=pservers is not None))
    coordinator = None if pservers is None else _coordinator(cluster, job)
    done_trainers = None if trainers is None else _scale_trainers(cluster, job, trainers, tell)
    done_pservers = None
    if pservers is not None and coordinator is not None:
        job = find_job(cluster, name)
        done_pservers = _scale_pservers(cluster, job, coordinator, pservers, tell, deadline_s=deadline_s)
    return Scaled(job.name, job.namespace, done_trainers, done_pservers)


def _check_numbers(cluster: Cluster, job: Job, trainers: int | None, pservers: int | None) -> None:
    if trainers is not None and trainers < 1:
        raise ConfigError(
            "a job has at least one trainer",
            hint=f"`{cluster.command(f'job stop {job.name}')}` ends it so that it can go on",
        )
    if pservers is not None and not 1 <= pservers <= MAX_PSERVERS:
        raise ConfigError(f"there can be 1 to {MAX_PSERVERS} pservers, not {pservers}")


def _rights(job: Job, *, has_servers: bool) -> Iterator[Right]:
    yield Right("update", kinds.VOLCANO_JOB if job.is_volcano else kinds.JOB)
    yield Right("patch", kinds.CONFIG_MAP)
    if has_servers:
        yield Right("create", kinds.POD, "proxy")


def _coordinator(cluster: Cluster, job: Job) -> CoordinatorProxy:
    found = find_coordinator(cluster, job.name, current(list_pods(cluster, job.name)), is_order=True)
    if found is None:
        raise StateError(
            f"pserver 0 of job `{job.name}` does not run: buckets can move only while it trains",
            hint="wait until it trains; or stop it, change `submit.k8s_ps_num` and submit again",
        )
    return found


def _scale_trainers(cluster: Cluster, job: Job, number: int, tell: Tell) -> tuple[int, int]:
    before = job.roles["trainer"].replicas
    # Trainers that come read how many there shall be: first the number, then the pods.
    cluster.patch(kinds.CONFIG_MAP, job.names.size, {"data": {TRAINERS_KEY: str(number)}})
    _set_replicas(cluster, job, "trainer", number)
    tell(f"job `{job.name}` has {number} trainers from now on; before: {before}")
    return before, number


def _scale_pservers(
    cluster: Cluster, job: Job, coordinator: CoordinatorProxy, number: int, tell: Tell, *, deadline_s: float
) -> tuple[int, int]:
    move, replicas = Move(cluster, job, coordinator, number), job.roles["pserver"].replicas
    if number > replicas:
        _set_replicas(cluster, job, "pserver", number)
        tell(f"{number - replicas} more pservers are started")
    try:
        tell(move.order())
        move.wait(tell, deadline_s)
    except ClickmillError:
        if number > replicas and not move.is_wanted():
            _take_back(cluster, job, replicas, tell)
        raise
    except (KeyboardInterrupt, SystemExit):
        # The coordinator has the order, and nobody writes down what comes of it.
        tell(
            f"buckets may still move to {number} pservers; `{move.command}` waits for them and has the job "
            "keep the number"
        )
        raise
    # A coordinator that starts again asks for so many: written when buckets have moved, before pods go.
    remember_servers(cluster, job, number)
    if number < replicas:
        _set_replicas(cluster, job, "pserver", number)
    before = move.before
    tell(f"job `{job.name}` has {number} pservers from now on, also when submitted again; before: {before}")
    return before, number


def _take_back(cluster: Cluster, job: Job, number: int, tell: Tell) -> None:
    """Servers that were started and got no buckets; why they did not is for the caller to say."""
    try:
        now = look_up(cluster, job.name)
        if now is not None and not now.is_leaving and not now.is_over:
            _set_replicas(cluster, now, "pserver", number)
    except ClickmillError as error:
        tell(f"pservers that were started are not taken back: {error}")


def _set_replicas(cluster: Cluster, job: Job, role: str, number: int) -> None:
    """Write the number into what makes the pods of a role; again where somebody else was faster."""
    for attempt in range(_ATTEMPTS):
        workload = _workload(cluster, job, role)
        try:
            cluster.replace(_with_replicas(workload, role, number))
        except ConflictError:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return


def _workload(cluster: Cluster, job: Job, role: str) -> Object:
    """As it is now; its version guards what is written."""
    for workload in job.workloads:
        tasks = workload["spec"].get("tasks") or [workload["spec"]]
        if any(role_of(task["template"]) == role for task in tasks):
            found = cluster.get(kind_of(workload), workload["metadata"]["name"])
            if found is not None:
                return found
    raise StateError(f"job `{job.name}` has no {role}s any more")


def _with_replicas(workload: Object, role: str, number: int) -> Object:
    changed = copy.deepcopy(workload)
    spec = changed["spec"]
    if kind_of(workload) == kinds.VOLCANO_JOB:
        task = next(task for task in spec["tasks"] if role_of(task["template"]) == role)
        task["replicas"] = number
        if role == "pserver":
            # All of them belong to the gang.
            spec["minAvailable"] += number - task["minAvailable"]
            task["minAvailable"] = number
    else:
        spec["completions"] = spec["parallelism"] = number
    return changed
