"""`paddle_k8s start_fluid`: the launcher that jobs of PaddlePaddle on Kubernetes call, as they call it.

It waits for the pods of the job by label, exports who is where under the names that trainers of that time
read, and runs `$ENTRY` in a shell. Its lines are those that people and scripts know. What it does better:

- pods are in the order of their names, for their numbers and their addresses alike;
- pods that are being removed do not count, waits have an end, and who is missing is told with the reason;
- a job with too many failed trainers ends with an error, not with 0;
- it is a proper PID 1, and leaves its last words in /dev/termination-log.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import ConfigError, MemberLostError, RunFailedError
from clickmill.launch.address import Address
from clickmill.launch.pod.access import asked, pods_denied
from clickmill.launch.pod.api_server import ApiServer, Refused
from clickmill.launch.pod.child import Child, grace_s
from clickmill.launch.pod.deadline import Deadline
from clickmill.launch.pod.error_file import error_file
from clickmill.launch.pod.last_words import last_words, write_last_words
from clickmill.launch.pod.peers import owner_of, state_of
from clickmill.launch.pod.pod import NAME, NAMESPACE
from clickmill.launch.pod.waiting import Speaker
from clickmill.launch.roles import INSECURE, PORT, PSERVERS, ROLE, TOKEN, TOKEN_FILE, TRAINERS
from clickmill.launch.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clickmill.launch.pod.api_server import Json

WAIT_VARIABLE = "CLICKMILL_WAIT_S"
_WAIT_S = 600.0
_POLL_S = 5.0
_STALE_POLL_S = 0.5
_CLOCK_S = 2.0
"""Moments of Kubernetes are whole seconds, and a container starts a moment before its process."""
_MAX_FAILED = 1
_DEFAULT_PORT = 6174


@dataclass(frozen=True, slots=True)
class PaddleJob:
    """What the environment says."""

    role: str
    job: str
    name: str
    namespace: str
    num_pservers: int
    num_trainers: int
    port: int
    entry: str

    @property
    def pserver_label(self) -> str:
        return f"paddle-job-pserver={self.job}"

    @property
    def trainer_label(self) -> str:
        return f"paddle-job={self.job}"

    @property
    def own_label(self) -> str:
        return self.pserver_label if self.role == "PSERVER" else self.trainer_label


def read_job(environ: Mapping[str, str], role: str | None) -> PaddleJob:
    """ConfigError that names every variable that is missing or wrong; `role` where the command says it."""
    variables = Variables(environ)

    def needed(*names: str) -> str:
        found = variables.text(*names)
        if found is None and variables.name_of(*names) is None:
            variables.wrong(names[0], "is not set")
        return found or ""

    told = role or needed(*reversed(ROLE)).upper()
    if told and told not in {"PSERVER", "TRAINER", "WORKER"}:
        variables.wrong(variables.name_of(*ROLE) or "", f"must be PSERVER, TRAINER or WORKER, not `{told}`")
    counts = []
    for names in (PSERVERS, TRAINERS):
        needed(*names[1:])
        counts.append(variables.count(*names, least=1) or 0)
    job = PaddleJob(
        role=told,
        job=needed("PADDLE_JOB_NAME"),
        name=needed(*NAME),
        namespace=needed(*NAMESPACE),
        num_pservers=counts[0],
        num_trainers=counts[1],
        port=variables.port(*PORT) or _DEFAULT_PORT,
        entry=needed("ENTRY"),
    )
    variables.check(hint="they are set in the pod template, most of them by fields of the pod (`fieldRef`)")
    return job


class PaddleLauncher:
    """One life of a container of such a job."""

    def __init__(self, job: PaddleJob, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._say = say
        self._job = job
        self._environ = environ
        self._api = ApiServer.of_pod(environ)
        self._deadline = Deadline(_wait_s(environ))

    def run(self) -> int:
        job = self._job
        self._trace("start_fluid_process")
        self._trace(f"pserver_label={job.pserver_label}")
        self._trace(f"trainer_label={job.trainer_label}")
        self._trace(f"hostname={job.name}")
        is_trainer = job.role != "PSERVER"
        if not is_trainer:
            self._rest()
        servers = self._wait(job.pserver_label, job.num_pservers)
        if servers is None:
            self._say("a parameter server has ended well: the run is over")
            return 0
        if is_trainer:
            trainers = self._wait(job.trainer_label, job.num_trainers)
        else:
            trainers = [pod for pod in self._pods(job.trainer_label) if _is_there(pod)]
        added = dict(
            [
                self._exported("PADDLE_PSERVERS", ",".join(endpoints(servers, job.port))),
                self._exported("PADDLE_TRAINER_IPS", ",".join(_ip(pod) for pod in trainers or [])),
            ]
        )
        if is_trainer:
            self._check_failed()
        index = self._index(trainers if is_trainer else servers)
        self._trace(f"task_index={index}")
        added |= [self._exported("PADDLE_TRAINER_ID", index), self._exported("PADDLE_PSERVER_ID", index)]
        self._trace(f"stdbuf -oL sh -c {shlex.quote(job.entry)}")
        return self._run_entry(index, added | self._trust())

    def _rest(self) -> None:
        """Of a server that served its run and was started again, as a ReplicaSet does, until others train.

        It cannot leave such a pod for good, and would wait for trainers that have ended.
        """
        job = self._job
        own = self._own_pod()
        # A node tells late of a container that it has started again; until then the one before seems to run.
        while _is_of_earlier_life(own, _container_began()) and not self._deadline.is_over:
            time.sleep(_STALE_POLL_S)
            own = self._own_pod()
        ended = _ended_well_at(own)
        if ended is None:
            return
        self._say("the run is over: this server has served it to its end, and rests until others train")
        self._say(f"`kubectl -n {job.namespace} delete {_owner_words(own)}` removes it")
        while not any(_is_there(pod) and _created(pod) > ended for pod in self._pods(job.trainer_label)):
            time.sleep(_POLL_S)
            self._deadline = Deadline(_wait_s(self._environ))

    def _own_pod(self) -> Json | None:
        return next((pod for pod in self._pods(self._job.own_label) if _name(pod) == self._job.name), None)

    def _trace(self, text: str) -> None:
        """A command as a shell shows it that was told to (`set -x`)."""
        self._say(f"+ {text}")

    def _exported(self, name: str, value: str) -> tuple[str, str]:
        """A variable for the trainer, shown like every other step."""
        shown = shlex.quote(value) if value else ""
        self._trace(f"export {name}={shown}")
        self._trace(f"{name}={shown}")
        return name, value

    def _run_entry(self, index: str, added: dict[str, str]) -> int:
        environ = {**self._environ, **added}
        with error_file() as left:
            command = ["stdbuf", "-oL", "sh", "-c", self._job.entry]
            child = Child(command, {**environ, **left.variables}, grace_s=grace_s(environ))
            code = child.run()
            told = left.read()
        if code != 0:
            title = f"{self._job.role.lower()} {index}".strip()
            write_last_words(last_words(title, code, child.words, told=told), environ)
        return code

    def _wait(self, label: str, desired: int) -> list[Json] | None:
        """The pods with a label, by name, when so many run; None where one of the servers has ended well."""
        self._trace(f"stdbuf -oL wait_pods_running {label} {desired}")
        self._say(f"label selector: {label}, desired: {desired}")
        is_of_servers = label == self._job.pserver_label
        while True:
            pods = self._pods(label)
            ended = self._ended_well(pods)
            if is_of_servers and ended:
                return None
            there = [pod for pod in pods if _is_there(pod) or pod in ended]
            if len(there) >= desired:
                return there
            missing = [f"{_name(pod)} {state_of(pod).words}" for pod in pods if pod not in there]
            words = "; ".join(missing) or "no other pod has been made"
            if self._deadline.is_over:
                raise MemberLostError(
                    f"{len(there)} of {desired} pods with label `{label}` run after "
                    f"{self._deadline.seconds:g} seconds: {words}",
                    hint=f"`{WAIT_VARIABLE}` in the pod template says how long to wait",
                )
            self._say(f"current cnt: {len(there)} sleep for {_POLL_S:g} seconds... ({words})")
            time.sleep(min(_POLL_S, self._deadline.left_s))

    def _ended_well(self, pods: Sequence[Json]) -> list[Json]:
        """Those of this job that have; pods of an earlier job of the same name may still be there."""
        ended = [pod for pod in pods if _phase(pod) == "Succeeded"]
        if not ended:
            return []
        own = self._own_pod()
        return [pod for pod in ended if own is None or owner_of(pod) == owner_of(own)]

    def _check_failed(self) -> None:
        self._trace(f"check_failed_cnt {_MAX_FAILED}")
        failed = [_name(pod) for pod in self._pods(self._job.trainer_label) if _phase(pod) == "Failed"]
        self._trace(f"failed_count={len(failed)}")
        if len(failed) > _MAX_FAILED:
            raise RunFailedError(
                f"{len(failed)} trainers have failed, more than {_MAX_FAILED}: {', '.join(failed)}",
                hint=f"`kubectl -n {self._job.namespace} describe pod {failed[0]}` tells why",
            )

    def _pods(self, label: str) -> list[Json]:
        """In the order of their names: `a-2` comes before `a-10`."""
        job, api = self._job, self._api

        def ask() -> Json:
            return api.get(f"/api/v1/namespaces/{job.namespace}/pods", labelSelector=label)

        denied = pods_denied(api, job.namespace, job.job)
        try:
            found = asked(ask, deadline=self._deadline, tell=Speaker(self._say), denied=denied)
        except Refused as error:
            raise ConfigError(f"the API server refuses to list pods with label `{label}`: {error}") from error
        return sorted(found["items"], key=name_order)

    def _index(self, pods: Sequence[Json] | None) -> str:
        """Place of this pod among those of its kind."""
        names = [_name(pod) for pod in pods or []]
        if self._job.name in names:
            return str(names.index(self._job.name))
        raise ConfigError(
            f"pod `{self._job.name}` has not the label `{self._job.own_label}` of its role, or does not run",
            hint="PADDLE_JOB_NAME and the labels of the pod template must agree",
        )

    def _trust(self) -> dict[str, str]:
        """Jobs of that time had no secret: without one everybody in the cluster can speak to the servers."""
        variables = Variables(self._environ)
        if variables.name_of(*TOKEN, *TOKEN_FILE, *INSECURE) is not None:
            return {}
        rule = "!" * 80
        self._say(rule)
        self._say("warning: this job has no token: whoever reaches its pods can read and change the model.")
        self._say(
            "warning: put one into a Secret and set CLICKMILL_TOKEN from it, or use `clickmill submit`."
        )
        self._say(rule)
        return {INSECURE[0]: "1"}


def endpoints(pods: Sequence[Json], port: int) -> list[str]:
    """`ip:port` of each, with a port of its own, as several may be on one host network."""
    return [str(Address(_ip(pod), port + number)) for number, pod in enumerate(pods)]


def name_order(pod: Mapping[str, Any]) -> list[tuple[int, int | str]]:
    """For sorting pods by name, with numbers as numbers."""
    words = re.split(r"(\d+)", _name(pod))
    return [(1, int(word)) if word.isdigit() else (0, word) for word in words]


def _name(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def _ip(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _created(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def _ended_well_at(pod: Mapping[str, Any] | None) -> str | None:
    """When the container before this one ended, where that was well."""
    for container in ((pod or {}).get("status") or {}).get("containerStatuses") or []:
        last = (container.get("lastState") or {}).get("terminated")
        if last and last.get("exitCode") == 0:
            return str(last.get("finishedAt") or "")
    return None


def _is_of_earlier_life(pod: Mapping[str, Any] | None, began: float) -> bool:
    """Whether what is told of a pod is of a container that was started before this one."""
    for container in ((pod or {}).get("status") or {}).get("containerStatuses") or []:
        state = container.get("state") or {}
        if started := (state.get("running") or {}).get("startedAt"):
            return datetime.fromisoformat(started).timestamp() < began - _CLOCK_S
        # This one runs.
        return "terminated" in state
    return False


def _container_began() -> float:
    """When PID 1 was started, in seconds since 1970."""
    ticks = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age_s


def _owner_words(pod: Mapping[str, Any] | None) -> str:
    """What to delete so that a pod is not made again: `replicaset fluid-ctr-pserver`."""
    for owner in ((pod or {}).get("metadata") or {}).get("ownerReferences") or []:
        return f"{owner['kind'].lower()} {owner['name']}"
    return f"pod {_name(pod)}" if pod else "pod"


def _is_there(pod: Mapping[str, Any]) -> bool:
    return _phase(pod) == "Running" and "deletionTimestamp" not in pod["metadata"] and bool(_ip(pod))


def _wait_s(environ: Mapping[str, str]) -> float:
    try:
        return float(environ.get(WAIT_VARIABLE) or _WAIT_S)
    except ValueError:
        raise ConfigError(f"`{WAIT_VARIABLE}` must be a number of seconds") from None
