"""What jobs are told: to scale, to stop, to go."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clickmill.errors import (
    ClickmillError,
    ConfigError,
    DeadlineError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    StateError,
)
from clickmill.jobs.coordinator import find_coordinator
from clickmill.jobs.delete import delete_job
from clickmill.jobs.logs import LogOptions, read_logs
from clickmill.jobs.pods import list_pods
from clickmill.jobs.scale import scale_job
from clickmill.jobs.status import job_status
from clickmill.jobs.stop import stop_job
from clickmill.jobs.waiting import wait_for_end
from clickmill.kube import kinds
from clickmill.monitoring import Monitoring
from clickmill.submit.kubernetes import rights
from tests.unit.pserver import start_pserver

from . import scripted
from .objects import container, ended, event, job_object, node, plan, pod, queue, running, submitted
from .stand_in import StandIn

TOKEN = "a token for the monitor"


def secret(token: str = TOKEN) -> dict:
    import base64

    data = {"token": base64.b64encode(token.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ctr-token"}, "data": data}


@contextmanager
def coordinator(state: StandIn, folder: Path) -> Iterator[Callable[[], bool]]:
    """A real coordinator behind pserver 0, which has no trainers; whether it has ended."""
    server = start_pserver(folder, 0, 1, None)
    monitoring = Monitoring("127.0.0.1:0", token=TOKEN, is_insecure=False)
    monitoring.tell_cluster(server)
    state.add(secret())
    state.ports["ctr-pserver-0"] = int(monitoring.address.rpartition(":")[2])
    try:
        yield lambda: server.wait(0.1) is not None
    finally:
        monitoring.close()
        server.stop()


def started(state: StandIn, **roles: int):
    made = plan(**(roles or {"pservers": 1, "trainers": 2}))
    state.add(*submitted(made, phase="Running"), running(made, "pserver", 0), running(made, "trainer", 0))
    return made


def replicas(state: StandIn) -> dict[str, tuple[int, int]]:
    job = state.get(kinds.VOLCANO_JOB, "ctr")
    assert job is not None
    return {task["name"]: (task["replicas"], task["minAvailable"]) for task in job["spec"]["tasks"]}


def test_the_status_comes_from_the_coordinator_with_the_token_of_the_job(state, cluster, tmp_path):
    started(state)
    with coordinator(state, tmp_path):
        status = job_status(cluster, "ctr")
        assert status.training is not None
        assert status.training.phase in {"starting", "gathering"}
        assert status.training.num_pservers == 1
        assert status.to_dict()["training"]["samples"] == 0
        state.add(secret("another token than that"))
        silent = job_status(cluster, "ctr")
        assert silent.training is None
        assert "does not take the token" in (silent.silence or "")


@pytest.mark.parametrize(
    ("created", "words"),
    [
        ("2999-12-31T08:00:00Z", "pserver 0 does not answer yet"),
        (
            "2026-01-31T08:00:05Z",
            "pserver 0 does not answer; if it hangs, `kubectl delete pod ctr-pserver-0 -n team` has",
        ),
    ],
)
def test_a_coordinator_that_does_not_answer_is_told(state, cluster, created, words):
    made = started(state)
    state.add(secret(), running(made, "pserver", 0, created=created, conditions=[]))
    silence = job_status(cluster, "ctr").silence
    assert silence is not None
    assert silence.startswith(words)


def test_nothing_is_missing_of_a_run_that_is_over_while_its_servers_leave(state, cluster):
    made = plan()
    state.add(*submitted(made, phase="Running"), running(made, "pserver", 0), secret())
    told = json.dumps({"passes": 1, "samples": 5000, "auc": 0.77})
    state.add(ended(made, "trainer", 0, 0, told), ended(made, "trainer", 1, 0))
    status = job_status(cluster, "ctr")
    assert (status.silence, status.samples) == (None, 5000)


def test_a_plain_job_whose_pods_are_not_counted_yet_is_running_when_one_runs(state, cluster):
    made = plan(scheduler="default")
    state.add(*submitted(made))
    assert job_status(cluster, "ctr").job.phase == "Pending"
    state.add(running(made, "pserver", 1))
    assert job_status(cluster, "ctr").job.phase == "Running"


def test_trainers_are_scaled_with_the_number_that_pods_read(state, cluster):
    started(state)
    state.conflicts = 0
    told: list[str] = []
    scaled = scale_job(cluster, "ctr", told.append, trainers=4)
    assert scaled.to_dict()["trainers"] == {"before": 2, "now": 4}
    assert replicas(state) == {"pserver": (1, 1), "trainer": (4, 1)}
    size = state.get(kinds.CONFIG_MAP, "ctr-size")
    assert size is not None
    assert size["data"] == {"pservers": "1", "trainers": "4"}


def test_a_write_that_somebody_else_was_faster_than_is_made_again(state, cluster, monkeypatch):
    started(state)
    replace = type(cluster).replace
    losses = iter([1])

    def lose_once(self, item):
        if next(losses, None):
            state.conflicts = 1
        return replace(self, item)

    monkeypatch.setattr(type(cluster), "replace", lose_once)
    scale_job(cluster, "ctr", [].append, trainers=3)
    assert replicas(state)["trainer"] == (3, 1)


def test_an_indexed_job_is_scaled_by_both_of_its_numbers(state, cluster):
    made = plan(scheduler="default")
    state.add(*submitted(made))
    scale_job(cluster, "ctr", [].append, trainers=5)
    job = state.get(kinds.JOB, "ctr-trainer")
    assert job is not None
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (5, 5)


@pytest.mark.parametrize(
    ("phase", "numbers", "error", "words"),
    [
        ("Completed", {"trainers": 2}, StateError, "nothing to scale"),
        ("Running", {"trainers": 0}, ConfigError, "at least one trainer"),
        ("Running", {"pservers": 0}, ConfigError, "1 to 1024"),
        ("Running", {"pservers": 2}, StateError, "pserver 0 of job `ctr` does not run"),
    ],
)
def test_what_cannot_be_scaled_is_refused(state, cluster, phase, numbers, error, words):
    state.add(*submitted(plan(), phase=phase))
    before = replicas(state)
    with pytest.raises(error, match=words):
        scale_job(cluster, "ctr", [].append, **numbers)
    assert replicas(state) == before


def test_servers_that_the_coordinator_does_not_want_are_taken_back(state, cluster, tmp_path):
    started(state)
    with coordinator(state, tmp_path), pytest.raises(StateError, match="the cluster is not running"):
        scale_job(cluster, "ctr", [].append, pservers=3)
    assert replicas(state)["pserver"] == (1, 1)


@pytest.mark.parametrize(
    ("verb", "resource", "numbers"),
    [
        ("update", "jobs.batch.volcano.sh", {"trainers": 4}),
        ("patch", "configmaps", {"trainers": 4}),
        ("create", "pods/proxy", {"trainers": 4, "pservers": 2}),
    ],
)
def test_who_may_not_do_all_of_it_scales_nothing(state, cluster, verb, resource, numbers):
    started(state)
    state.add(secret())
    state.denied.add((verb, resource))
    before = copy.deepcopy(state.objects)
    with pytest.raises(
        ForbiddenError, match=f"`{verb} {resource}` is missing .* nothing was changed"
    ) as caught:
        scale_job(cluster, "ctr", [].append, **numbers)
    assert "deploy/k8s/submitter.yaml" in (caught.value.hint or "")
    assert state.objects == before


def test_trainers_are_not_scaled_where_servers_cannot_be(state, cluster):
    state.add(*submitted(plan(), phase="Running"))
    before = replicas(state)
    with pytest.raises(StateError, match="pserver 0 of job `ctr` does not run"):
        scale_job(cluster, "ctr", [].append, trainers=5, pservers=3)
    assert replicas(state) == before


def test_a_run_that_is_just_over_is_not_stopped(state, cluster):
    made = plan()
    state.add(*submitted(made, phase="Running"), ended(made, "pserver", 0, 0), running(made, "trainer", 0))
    with pytest.raises(StateError, match="training of job `ctr` is over, and its pods are ending") as caught:
        stop_job(cluster, "ctr", [].append)
    assert "job wait ctr" in (caught.value.hint or "")
    assert state.names(kinds.VOLCANO_JOB) == ["ctr"]


@pytest.mark.parametrize("resource", ["create pods/proxy", "delete jobs.batch.volcano.sh"])
def test_who_may_not_do_all_of_it_stops_nothing(state, cluster, resource):
    started(state)
    state.add(secret())
    state.denied.add(tuple(resource.split()))
    with scripted.scripted(scripted.running(), lambda *_: None) as told:
        state.ports["ctr-pserver-0"] = told.port
        with pytest.raises(ForbiddenError, match=f"`{resource}` is missing"):
            stop_job(cluster, "ctr", [].append)
    assert told.orders == []
    assert state.names(kinds.VOLCANO_JOB) == ["ctr"]


VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def used(state: StandIn) -> set[tuple[str, str]]:
    """Verbs on resources of the namespace, by what was asked of the API server."""
    found = set()
    for method, path in state.requests:
        parts = path.strip("/").split("/")
        group, rest = (f".{parts[1]}", parts[3:]) if parts[0] == "apis" else ("", parts[2:])
        if rest[0] != "namespaces" or len(rest) < 3:
            continue
        plural, *name = rest[2:]
        part = f"/{name[1]}" if len(name) > 1 else ""
        verb = VERBS.get(method) or ("get" if name else "list")
        found.add((verb, f"{plural}{group}{part}"))
    return found


@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_commands_use_no_right_that_is_not_asked_for(state, cluster, scheduler):
    made = plan(scheduler=scheduler, pservers=1)
    state.add(*submitted(made, phase="Running"), running(made, "pserver", 0), running(made, "trainer", 0))
    state.add(secret())
    for name in ("ctr-pserver-0", "ctr-trainer-0"):
        state.say(name, "2026-01-31T08:00:10Z hello", is_closed=True)

    def obey(order: str, coordinator: scripted.Coordinator) -> None:
        number = 2 if "scale" in order else 1
        committed = 10 if order == "/snapshot" else 9
        coordinator.status = scripted.running(committed=committed, num_servers=number)
        if order == "/stop":
            coordinator.status = scripted.running(committed=10, phase="ending")
            del state.ports["ctr-pserver-0"]

    with scripted.scripted(scripted.running(), obey) as told:
        state.ports["ctr-pserver-0"] = told.port
        job_status(cluster, "ctr")
        list(read_logs(cluster, "ctr", LogOptions()))
        scale_job(cluster, "ctr", [].append, trainers=3, pservers=2)
        stop_job(cluster, "ctr", [].append)
    delete_job(cluster, "ctr", [].append, is_output_deleted=True)
    job = kinds.VOLCANO_JOB if scheduler == "volcano" else kinds.JOB
    assert used(state) >= {("update", job.resource), ("create", "pods/proxy"), ("get", "pods/log")}
    known = rights.VOLCANO if scheduler == "volcano" else rights.PLAIN
    assert used(state) <= {(right.verb, right.resource) for right in (*rights.SHARED, *known)}


@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_commands_ask_for_no_token_of_a_collective_job(state, cluster, scheduler):
    made = plan(scheduler=scheduler, is_collective=True)
    state.add(*submitted(made, phase="Running"), running(made, "worker", 0), running(made, "worker", 1))
    for name in ("ctr-worker-0", "ctr-worker-1"):
        state.say(name, "2026-01-31T08:00:10Z hello", is_closed=True)
    assert state.names(kinds.SECRET) == []
    assert job_status(cluster, "ctr").silence is None
    assert len(list(read_logs(cluster, "ctr", LogOptions()))) == 2
    stop_job(cluster, "ctr", [].append)
    assert job_status(cluster, "ctr").job.phase == "Stopped"
    assert not {("get", "secrets"), ("create", "pods/proxy"), ("get", "pods/proxy")} & used(state)
    deleted = delete_job(cluster, "ctr", [].append, is_output_deleted=True)
    assert "PersistentVolumeClaim/ctr-output" in deleted.objects


def finishing(state: StandIn, made, is_ended: Callable[[], bool]) -> threading.Thread:
    """Lets the pods end when their coordinator has, as kubelets and Volcano do."""

    def run() -> None:
        while not is_ended():
            pass
        del state.ports["ctr-pserver-0"]
        state.add(ended(made, "pserver", 0, 0), ended(made, "trainer", 0, 0))
        state.add(job_object(made, phase="Completed"))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_stopped_job_leaves_what_it_goes_on_with(state, cluster, tmp_path):
    made = started(state)
    with coordinator(state, tmp_path) as is_ended:
        thread = finishing(state, made, is_ended)
        stopped = stop_job(cluster, "ctr", [].append)
        thread.join()
    assert (stopped.was_over, stopped.samples) == (False, 0)
    assert (state.names(kinds.VOLCANO_JOB), state.names(kinds.POD)) == ([], [])
    assert state.names(kinds.CLAIM) == ["ctr-output"]
    assert "ctr-package" in state.names(kinds.CONFIG_MAP)
    assert job_status(cluster, "ctr").job.phase == "Stopped"
    claim = state.get(kinds.CLAIM, "ctr-output")
    assert claim is not None
    assert claim["metadata"]["annotations"] == {"clickmill.io/image": "clickmill:test"}


def test_a_job_that_cannot_take_a_snapshot_trains_on(state, cluster):
    started(state)
    state.add(secret())

    def fail(_order: str, coordinator: scripted.Coordinator) -> None:
        coordinator.status = scripted.running(fence=11, failure="No space left on device")

    with scripted.scripted(scripted.running(failure="of before"), fail) as told:
        state.ports["ctr-pserver-0"] = told.port
        with pytest.raises(StateError, match="trains on: no snapshot can be taken: No space left"):
            stop_job(cluster, "ctr", [].append)
    assert told.orders == ["/snapshot"]
    assert state.names(kinds.VOLCANO_JOB) == ["ctr"]


def test_a_job_is_stopped_when_its_snapshot_is_committed(state, cluster):
    made = started(state)
    state.add(secret())

    def obey(order: str, coordinator: scripted.Coordinator) -> None:
        if order == "/snapshot":
            coordinator.status = scripted.running(committed=8)
        else:
            coordinator.status = scripted.running(committed=9, phase="ending", samples=600)
            state.add(job_object(made, phase="Completed"))

    with scripted.scripted(scripted.running(), obey) as told:
        state.ports["ctr-pserver-0"] = told.port
        stopped = stop_job(cluster, "ctr", [].append)
    assert told.orders == ["/snapshot", "/stop"]
    assert (stopped.snapshot, stopped.samples) == (9, 600)
    assert state.names(kinds.VOLCANO_JOB) == []


def test_servers_are_removed_when_their_buckets_have_moved(state, cluster):
    started(state, pservers=2, trainers=1)
    state.add(secret())
    seen: list[dict] = []

    def obey(_order: str, coordinator: scripted.Coordinator) -> None:
        seen.append(replicas(state))
        coordinator.status = scripted.running(num_servers=1)

    with scripted.scripted(scripted.running(num_servers=2), obey) as told:
        state.ports["ctr-pserver-0"] = told.port
        scaled = scale_job(cluster, "ctr", [].append, pservers=1)
    assert told.orders == ["/scale?pservers=1"]
    assert seen == [{"pserver": (2, 2), "trainer": (1, 1)}], "not before"
    assert replicas(state) == {"pserver": (1, 1), "trainer": (1, 1)}
    assert scaled.pservers == (2, 1)
    size = state.get(kinds.CONFIG_MAP, "ctr-size")
    assert size is not None
    assert size["data"]["pservers"] == "1", "a coordinator that starts again waits for no other"


def test_servers_that_a_manifest_took_away_are_missed_and_made_again(state, cluster):
    started(state, pservers=2, trainers=1)
    state.add(secret())
    with scripted.scripted(scripted.running(num_servers=3), lambda *_: None) as told:
        state.ports["ctr-pserver-0"] = told.port
        (reason,) = [each for each in job_status(cluster, "ctr").reasons if each.kind == "pod"]
        assert "has 3 pservers, and the job makes pods for 2" in reason.words
        assert "clickmill job scale ctr" in (reason.remedy or "")
        scale_job(cluster, "ctr", [].append, pservers=3)
        assert replicas(state)["pserver"] == (3, 3)
        assert not [each for each in job_status(cluster, "ctr").reasons if each.kind == "pod"]


def test_a_move_that_fails_is_told_and_its_servers_go(state, cluster):
    started(state)
    state.add(secret())

    def obey(_order: str, coordinator: scripted.Coordinator) -> None:
        assert replicas(state)["pserver"] == (3, 3), "they are started first"
        coordinator.status = scripted.running(scaling_failure="gave up waiting for pserver 1")

    with scripted.scripted(scripted.running(), obey) as told:
        state.ports["ctr-pserver-0"] = told.port
        with pytest.raises(ClickmillError, match="not scaled to 3 pservers: gave up waiting for pserver 1"):
            scale_job(cluster, "ctr", [].append, pservers=3)
    assert replicas(state)["pserver"] == (1, 1)
    size = state.get(kinds.CONFIG_MAP, "ctr-size")
    assert size is not None
    assert size["data"]["pservers"] == "1"


def test_a_run_without_snapshots_says_so(state, cluster):
    started(state)
    state.add(secret())
    trouble = scripted.running(committed=None, failure="pserver 0: No space left on device")
    with scripted.scripted(trouble, lambda *_: None) as told:
        state.ports["ctr-pserver-0"] = told.port
        reasons = {reason.kind: reason for reason in job_status(cluster, "ctr").reasons}
    assert "none has ever been taken: pserver 0: No space left" in reasons["snapshot"].words
    assert "make room" in (reasons["snapshot"].remedy or "")


def test_a_job_that_has_not_begun_is_stopped_at_once(state, cluster):
    made = plan()
    state.add(*submitted(made), pod(made, "pserver", 0))
    told: list[str] = []
    stop_job(cluster, "ctr", told.append)
    assert told[0] == "nothing runs yet: there is nothing to keep"
    assert state.names(kinds.VOLCANO_JOB) == []


def test_a_job_whose_coordinator_is_away_is_not_stopped_without_being_told_so(state, cluster):
    made = plan()
    state.add(*submitted(made, phase="Running"), pod(made, "pserver", 0), running(made, "trainer", 0))
    with pytest.raises(StateError, match="no snapshot can be taken") as caught:
        stop_job(cluster, "ctr", [].append)
    assert "--force" in (caught.value.hint or "")
    assert state.names(kinds.VOLCANO_JOB) == ["ctr"]
    stop_job(cluster, "ctr", [].append, is_forced=True)
    assert state.names(kinds.VOLCANO_JOB) == []


def test_a_job_that_is_over_has_nothing_to_stop(state, cluster):
    state.add(*submitted(plan(), phase="Completed"))
    assert stop_job(cluster, "ctr", [].append).was_over
    assert state.names(kinds.VOLCANO_JOB) == ["ctr"]


def test_all_objects_of_a_job_are_deleted_and_no_others(state, cluster):
    state.add(*submitted(plan()), *submitted(plan("other")))
    lookalike = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "ctr-notes", "labels": {"app.kubernetes.io/instance": "ctr"}},
    }
    state.add(lookalike)
    deleted = delete_job(cluster, "ctr", [].append, is_output_deleted=False)
    left = {(resource, name) for resource, _, name in state.objects if name.startswith("ctr")}
    assert left == {("configmaps", "ctr-notes"), ("persistentvolumeclaims", "ctr-output")}
    assert deleted.kept == ("ctr-output",)
    assert "ConfigMap/ctr-package" in deleted.objects
    assert len([name for _, _, name in state.objects if name.startswith("other")]) == len(
        submitted(plan("other"))
    )
    again = delete_job(cluster, "ctr", [].append, is_output_deleted=True)
    assert again.objects == ("PersistentVolumeClaim/ctr-output",)
    with pytest.raises(NotFoundError):
        delete_job(cluster, "ctr", [].append, is_output_deleted=True)


def test_waiting_ends_with_the_job_and_tells_what_is_new(state, cluster, monkeypatch):
    monkeypatch.setattr("clickmill.jobs.waiting.LOOK_S", 0.01)
    made = plan()
    state.add(*submitted(made), queue(), node("n1", cpu="1"))
    told: list[str] = []

    def tell(words: str) -> None:
        told.append(words)
        if "pods of the gang fit" in words:
            state.add(job_object(made, phase="Failed"), ended(made, "trainer", 0, 4, "error: broken"))

    status = wait_for_end(cluster, "ctr", tell)
    assert (status.job.phase, status.exit_code) == ("Failed", 4)
    assert told[0] == "job `ctr` is Pending"
    assert len(told) == 2


def test_waiting_has_an_end_of_its_own(state, cluster):
    state.add(*submitted(plan(), phase="Running"))
    with pytest.raises(DeadlineError, match=r"is not over after 0\.05 seconds: it is Running"):
        wait_for_end(cluster, "ctr", [].append, deadline_s=0.05)


def test_nobody_waits_for_a_job_that_only_a_person_can_help(state, cluster):
    made = plan()
    waiting = container(waiting={"reason": "ErrImagePull", "message": "not found"})
    state.add(*submitted(made), queue(), node("n1", cpu="64"))
    state.add(*(pod(made, role, 0, **waiting) for role in ("pserver", "trainer")))
    assert job_status(cluster, "ctr").exit_code == 1
    with pytest.raises(StateError, match=r"cannot start: .* image `clickmill:test` cannot be had") as raised:
        wait_for_end(cluster, "ctr", [].append, stuck_s=0.0)
    assert "kubernetes.image" in (raised.value.hint or "")
    with pytest.raises(StateError, match=r"has started yet: .* cannot be had"):
        list(read_logs(cluster, "ctr", LogOptions()))
    state.add(running(made, "trainer", 0))
    assert job_status(cluster, "ctr").exit_code == 0, "one has started: it may be a matter of one node"


def test_waiting_for_a_job_that_is_deleted_ends(state, cluster, monkeypatch):
    monkeypatch.setattr("clickmill.jobs.waiting.LOOK_S", 0.01)
    state.add(job_object(plan(), phase="Running"))
    with pytest.raises(NotFoundError, match="deleted meanwhile"):
        wait_for_end(cluster, "ctr", lambda _: state.remove(kinds.VOLCANO_JOB, "ctr"))


def test_a_pod_of_another_version_has_no_status(state, cluster, tmp_path):
    started(state)
    monitoring = Monitoring("127.0.0.1:0", token=TOKEN, is_insecure=False)
    state.add(secret(), event("ctr", "Job", "x", "y"))
    state.ports["ctr-pserver-0"] = int(monitoring.address.rpartition(":")[2])
    try:
        found = find_coordinator(cluster, "ctr", list_pods(cluster, "ctr"))
        assert found is not None
        with pytest.raises(KubernetesError, match="of another version"):
            found.status()
    finally:
        monitoring.close()
    assert json.dumps(job_status(cluster, "ctr").to_dict())
