"""`submit` against a server that keeps what it is given; on a real cluster in tests/k8s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from clickmill.errors import KubernetesError, NotFoundError, RefusedError, StateError
from clickmill.kube.client import Cluster
from clickmill.submit.kubernetes import turn
from clickmill.submit.kubernetes.api import finished_phase, manifest, submit
from clickmill.submit.kubernetes.digest import differences
from clickmill.submit.kubernetes.plan import JobPlan
from clickmill.submit.kubernetes.turn import our_turn, turn_map

from ...kube.api_server import Answer, Request, serving, status
from .plans import plan_of


@dataclass
class Store:
    """Objects by their address."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: str = ""
    """End of the address of what is refused."""
    rivals: list[Callable[[], None]] = field(default_factory=list)
    """What others do just before a write that is guarded by a version."""
    faster: list[Callable[[], object]] = field(default_factory=list)
    """What others do just before somebody has the turn to submit."""
    num_turns: int = 0

    def answer(self, request: Request) -> Answer:
        name = request.path.rpartition("/")[2]
        if request.method == "PATCH":
            return self._applied(request)
        if request.method == "POST":
            return (201, request.body) if "dryRun" in request.parameters else self._begun(request)
        if request.method == "DELETE":
            wanted = request.body.get("preconditions")
            if wanted and wanted["uid"] != self.objects[request.path]["metadata"]["uid"]:
                return status(409, "Conflict", "the UID in the precondition does not match")
            self.objects.pop(request.path, None)
            return 200, {"kind": "Status"}
        if name == "pods":
            return 200, {"items": []}
        found = self.objects.get(request.path)
        if found and "/persistentvolumeclaims/" in request.path:
            found = {**found, "status": {"phase": "Bound"}}
        return (200, found) if found else status(404, "NotFound", f"{name} not found")

    def _begun(self, request: Request) -> Answer:
        if self.faster:
            self.faster.pop(0)()
        path = f"{request.path}/{request.body['metadata']['name']}"
        if path in self.objects:
            return status(409, "AlreadyExists", "it is there already")
        self.num_turns += 1
        metadata = {**request.body["metadata"], "uid": f"uid-{self.num_turns}"}
        self.objects[path] = {**request.body, "metadata": metadata}
        return 201, self.objects[path]

    def _applied(self, request: Request) -> Answer:
        if self.refused and request.path.endswith(self.refused):
            return status(404, "NotFound", "the server could not find the requested resource")
        old = self.objects.get(request.path, {})
        version = request.body["metadata"].get("resourceVersion")
        if self.rivals and version is not None:
            self.rivals.pop()()
        if version is not None and version != old["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified")
        metadata = {**old.get("metadata", {}), **request.body["metadata"]}
        if "annotations" in metadata:  # those of other owners stay
            others = old.get("metadata", {}).get("annotations", {})
            metadata["annotations"] = {**others, **metadata["annotations"]}
        new = {**old, **request.body, "metadata": metadata}
        if "dryRun" not in request.parameters:
            self.objects[request.path] = new
        return 200, new

    @property
    def size(self) -> dict[str, Any]:
        return self.objects["/api/v1/namespaces/team/configmaps/criteo-job-size"]

    def scale(self, number: int) -> None:
        """What `clickmill job scale --pservers` leaves."""
        for path, item in self.objects.items():
            spec = item.get("spec", {})
            if path.endswith("/jobs/criteo-job"):
                spec["tasks"][0] |= {"replicas": number, "minAvailable": number}
                spec["minAvailable"] = number + 1
            elif path.endswith("/jobs/criteo-job-pserver"):
                spec |= {"completions": number, "parallelism": number}
        self.size["data"]["pservers"] = str(number)

    def stop(self) -> None:
        """What `clickmill job stop` leaves."""
        self.objects = {path: item for path, item in self.objects.items() if "/jobs/" not in path}

    @property
    def servers(self) -> tuple[int, str]:
        """Pods that there shall be, and what they are told."""
        (found,) = (
            part.get("replicas") or part["completions"]
            for item in self.objects.values()
            for part in item.get("spec", {}).get("tasks") or [item.get("spec", {})]
            if part.get("template", {}).get("metadata", {}).get("labels", {}).get("clickmill.io/role")
            == "pserver"
        )
        return found, self.size["data"]["pservers"]

    @property
    def job(self) -> dict[str, Any]:
        return next(item for path, item in self.objects.items() if path.endswith("/jobs/criteo-job"))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def cluster(store: Store) -> Iterator[Cluster]:
    with serving(store.answer) as server, server.cluster() as found:
        yield found


def test_everything_is_made_in_order_and_a_second_time_nothing_changes(
    cluster: Cluster, store: Store
) -> None:
    first, second = submit(cluster, plan_of()), submit(cluster, plan_of())
    assert list(store.objects.values()) == manifest(plan_of())
    assert (first.change, second.change) == ("created", "unchanged")
    assert [each.name for each in first.objects] == [item["metadata"]["name"] for item in manifest(plan_of())]


def test_nothing_is_made_where_the_last_object_is_refused(cluster: Cluster, store: Store) -> None:
    store.refused = "/jobs/criteo-job"
    with pytest.raises(NotFoundError, match="the cluster has no Volcano") as caught:
        submit(cluster, plan_of())
    assert "scheduler: default" in (caught.value.hint or "")
    assert store.objects == {}


def test_more_trainers_are_a_change(cluster: Cluster, store: Store) -> None:
    plan = plan_of()
    submit(cluster, plan)
    servers, trainers = plan.roles
    found = submit(cluster, replace(plan, roles=(servers, replace(trainers, replicas=5))))
    changed = {each.name for each in found.objects if each.change == "changed"}
    assert (found.change, changed) == ("changed", {"criteo-job", "criteo-job-size"})
    assert store.job["spec"]["tasks"][1]["replicas"] == 5


def with_numbers(plan: JobPlan, *, pservers: int = 2, trainers: int = 2) -> JobPlan:
    first, second = plan.roles
    first = replace(first, replicas=pservers, min_available=pservers)
    return replace(plan, roles=(first, replace(second, replicas=trainers)))


SCHEDULERS = pytest.mark.parametrize("plan", [plan_of(), plan_of("  scheduler: default\n")])


@SCHEDULERS
def test_servers_that_were_added_stay_when_the_job_is_submitted_again(
    cluster: Cluster, store: Store, plan: JobPlan
) -> None:
    submit(cluster, plan)
    store.scale(3)
    told: list[str] = []
    found = submit(cluster, plan, tell=told.append)
    assert {each.change for each in found.objects} == {"unchanged"}
    assert told == ["job `criteo-job` was scaled to 3 pservers and keeps them; backend.yaml says 2"]
    assert store.servers == (3, "3")
    assert submit(cluster, with_numbers(plan, trainers=5)).change == "changed"
    assert store.servers == (3, "3")


@SCHEDULERS
def test_the_number_that_the_job_was_scaled_to_is_taken_from_then_on(
    cluster: Cluster, store: Store, plan: JobPlan
) -> None:
    submit(cluster, plan)
    store.scale(3)
    told: list[str] = []
    assert submit(cluster, with_numbers(plan, pservers=3), tell=told.append).change == "unchanged"
    found = submit(cluster, with_numbers(plan, pservers=3, trainers=4), tell=told.append)
    assert (found.change, told) == ("changed", [])
    store.scale(4)
    assert submit(cluster, with_numbers(plan, pservers=3, trainers=4)).change == "unchanged"
    assert store.servers == (4, "4")


@SCHEDULERS
@pytest.mark.parametrize("number", [1, 4])
def test_another_number_of_servers_is_left_to_the_command_that_moves_buckets(
    cluster: Cluster, store: Store, plan: JobPlan, number: int
) -> None:
    submit(cluster, plan)
    for live in (2, 3):
        store.scale(live)
        with pytest.raises(
            StateError, match=f"has {live} pservers and backend.yaml asks for {number}"
        ) as caught:
            submit(cluster, with_numbers(plan, pservers=number))
        assert caught.value.hint == f"`clickmill job scale criteo-job --pservers {number}`"
        assert store.servers == (live, str(live))


@SCHEDULERS
def test_a_scaled_job_that_was_stopped_goes_on_with_its_servers(
    cluster: Cluster, store: Store, plan: JobPlan
) -> None:
    submit(cluster, plan)
    store.scale(3)
    store.stop()
    submit(cluster, plan)
    assert store.servers == (3, "3")
    store.stop()
    submit(cluster, with_numbers(plan, pservers=4))
    submit(cluster, with_numbers(plan, pservers=4), replace=True)
    assert store.servers == (4, "4")
    store.stop()
    submit(cluster, plan)
    assert store.servers == (2, "2"), "another number than it was submitted with is what is wanted now"


def test_pods_are_not_told_of_servers_that_are_still_being_added(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    store.scale(3)
    store.size["data"]["pservers"] = "2"
    submit(cluster, plan_of())
    assert store.servers == (3, "2")


def test_servers_that_are_added_while_a_job_is_submitted_stay(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    store.job["metadata"]["resourceVersion"] = "1"

    def scale() -> None:
        store.scale(3)
        store.job["metadata"]["resourceVersion"] = "2"

    store.rivals.append(scale)
    submit(cluster, with_numbers(plan_of(), trainers=4))
    assert store.servers == (3, "3")
    assert store.job["spec"]["tasks"][1]["replicas"] == 4


@SCHEDULERS
def test_of_two_who_submit_at_once_the_second_is_refused_and_changes_nothing(
    cluster: Cluster, store: Store, plan: JobPlan
) -> None:
    other = with_numbers(plan, pservers=3, trainers=3)
    store.faster.append(lambda: submit(cluster, other))
    with pytest.raises(StateError, match="somebody else has submitted or changed job `criteo-job`") as caught:
        submit(cluster, plan)
    assert "has 3 pservers and backend.yaml asks for 2" in str(caught.value)
    assert "`clickmill job status criteo-job`, and submit again" in (caught.value.hint or "")
    assert list(store.objects.values()) == manifest(other)


@SCHEDULERS
def test_other_files_that_somebody_submits_meanwhile_stay(
    cluster: Cluster, store: Store, plan: JobPlan
) -> None:
    other = replace(plan, package={"config.yaml": b"mode: other\n"})
    store.faster.append(lambda: submit(cluster, other))
    with pytest.raises(StateError, match=r"(?s)meanwhile: .*file `config\.yaml` is another one"):
        submit(cluster, plan)
    assert list(store.objects.values()) == manifest(other)


@SCHEDULERS
def test_the_same_job_submitted_by_two_at_once_is_unchanged_for_the_second(
    cluster: Cluster, store: Store, plan: JobPlan
) -> None:
    store.faster.append(lambda: submit(cluster, plan))
    assert submit(cluster, plan).change == "unchanged"
    assert list(store.objects.values()) == manifest(plan)


def test_trainers_that_two_change_at_once_are_those_of_the_second(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    store.faster.append(lambda: submit(cluster, with_numbers(plan_of(), trainers=3)))
    assert submit(cluster, with_numbers(plan_of(), trainers=4)).change == "changed"
    assert list(store.objects.values()) == manifest(with_numbers(plan_of(), trainers=4))


def test_a_job_is_submitted_when_the_turn_of_another_has_ended(cluster: Cluster, store: Store) -> None:
    store.objects[TURN] = turn_of_another()
    told: list[str] = []

    def tell(words: str) -> None:
        told.append(words)
        store.objects.pop(TURN)

    assert submit(cluster, plan_of(), tell=tell).change == "created"
    assert told == ["somebody else submits job `criteo-job` at this moment: waiting for the end of that"]


def test_a_turn_that_was_left_behind_is_ended(
    cluster: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "PATIENCE_S", 0)
    store.objects[TURN] = turn_of_another()
    assert submit(cluster, plan_of()).change == "created"
    assert TURN not in store.objects


def test_no_job_is_made_by_one_whose_turn_others_have_ended(cluster: Cluster, store: Store) -> None:
    with our_turn(cluster, plan_of(), lambda _: None) as ours:
        ours.check()
        store.objects[TURN] = turn_of_another()
        with pytest.raises(StateError, match="ConfigMap `criteo-job-turn` is not ours any more"):
            ours.check()
    assert store.objects == {TURN: turn_of_another()}, "the turn of another is not ended"


TURN = "/api/v1/namespaces/team/configmaps/criteo-job-turn"


def turn_of_another() -> dict[str, Any]:
    item = turn_map(plan_of())
    return {**item, "metadata": {**item["metadata"], "uid": "uid-of-another"}}


def test_a_job_that_waits_for_room_is_not_said_to_run(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    store.job["status"] = {"state": {"phase": "Pending"}}
    with pytest.raises(StateError, match="job `criteo-job` is there, and only its number of trainers"):
        submit(cluster, plan_of("  image_pull_policy: Always\n"))


def test_another_image_is_refused_and_named(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    other = plan_of("  image_pull_policy: Always\n")
    with pytest.raises(StateError, match=r"imagePullPolicy: \"IfNotPresent\" -> \"Always\"") as caught:
        submit(cluster, other)
    assert "clickmill job delete criteo-job" in (caught.value.hint or "")


@SCHEDULERS
def test_files_that_differ_are_named_once(cluster: Cluster, store: Store, plan: JobPlan) -> None:
    submit(cluster, replace(plan, package={"config.yaml": b"a", "model.py": b"b", "old.py": b"c"}))
    other = replace(plan, package={"config.yaml": b"a", "model.py": b"\xff", "new.py": b"d"})
    with pytest.raises(StateError) as caught:
        submit(cluster, other)
    assert str(caught.value).splitlines()[1:] == [
        "  file `model.py` is another one",
        "  file `new.py` is new",
        "  file `old.py` is gone",
    ]
    assert "clickmill job delete criteo-job --with-output" in (caught.value.hint or "")
    told: list[str] = []
    submit(cluster, other, replace=True, tell=told.append)
    assert told[0].startswith("file `model.py` is another one; file `new.py` is new; file `old.py` is gone. ")
    assert "clickmill job delete criteo-job --with-output" in told[0]


def test_hints_name_a_namespace_that_is_not_that_of_the_context(store: Store) -> None:
    with serving(store.answer) as server, server.cluster("lab") as cluster:
        lab = replace(plan_of(), namespace="lab")
        submit(cluster, lab)
        with pytest.raises(StateError) as caught:
            submit(cluster, replace(plan_of("  image_pull_policy: Always\n"), namespace="lab"))
        assert "`clickmill job delete criteo-job -n lab`" in (caught.value.hint or "")


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated", "Aborted"])
def test_a_job_that_is_over_is_refused_unless_it_is_replaced(
    cluster: Cluster, store: Store, phase: str
) -> None:
    submit(cluster, plan_of())
    store.job["status"] = {"state": {"phase": phase}}
    with pytest.raises(StateError, match=f"is over: {phase}"):
        submit(cluster, plan_of())
    assert submit(cluster, plan_of(), replace=True).change == "created"
    assert "status" not in store.job


def test_a_hint_for_a_job_that_is_over_says_that_its_run_stays(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    store.job["status"] = {"state": {"phase": "Completed"}}
    with pytest.raises(StateError) as caught:
        submit(cluster, plan_of())
    assert "to begin anew `clickmill job delete criteo-job --with-output` first" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["jobs/criteo-job", "persistentvolumeclaims/criteo-job-output"])
def test_a_job_that_is_being_deleted_is_not_called_unchanged(
    cluster: Cluster, store: Store, name: str
) -> None:
    submit(cluster, plan_of())
    path = next(path for path in store.objects if path.endswith(name))
    store.objects[path]["metadata"]["deletionTimestamp"] = "2026-11-18T01:00:00Z"
    with pytest.raises(StateError, match=f"is being deleted: .*`{name.rpartition('/')[2]}`") as caught:
        submit(cluster, plan_of())
    assert "submit it again when it is gone" in (caught.value.hint or "")


def test_a_job_that_runs_in_the_other_way_is_refused(cluster: Cluster, store: Store) -> None:
    submit(cluster, plan_of())
    plain = plan_of("  scheduler: default\n")
    with pytest.raises(StateError, match="there is a Volcano Job `criteo-job`, which is no part of this one"):
        submit(cluster, plain)
    submit(cluster, plain, replace=True)
    names = {path.rpartition("/")[2] for path in store.objects if "/jobs/" in path}
    assert names == {"criteo-job-pserver", "criteo-job-trainer"}


def test_a_queue_that_is_not_there_is_told_with_its_remedy(store: Store) -> None:
    words = (
        'admission webhook "validatejob.volcano.sh" denied the request: unable to find job queue: '
        'queue.scheduling.volcano.sh "nobody" not found;'
    )

    def refuse(request: Request) -> Answer:
        is_job = request.method == "PATCH" and request.path.endswith("/jobs/criteo-job")
        return status(400, "BadRequest", words) if is_job else store.answer(request)

    with serving(refuse) as server, pytest.raises(RefusedError, match="nobody") as caught:
        submit(server.cluster(), plan_of("  queue: nobody\n"))
    assert "deploy/k8s/queues.yaml" in (caught.value.hint or "")
    assert "kubernetes.queue" in (caught.value.hint or "")


def test_objects_of_others_are_left_alone(cluster: Cluster, store: Store) -> None:
    path = "/api/v1/namespaces/team/serviceaccounts/criteo-job"
    store.objects[path] = {"metadata": {"name": "criteo-job", "labels": {"app": "theirs"}}}
    with pytest.raises(StateError, match=r"ServiceAccount `criteo-job` .* not of this job") as caught:
        submit(cluster, plan_of())
    assert "submit.job_name" in (caught.value.hint or "")
    assert set(store.objects) == {path}


def test_jobs_of_plain_kubernetes_tell_that_they_are_over() -> None:
    head = {"apiVersion": "batch/v1", "kind": "Job"}
    assert (
        finished_phase({**head, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}) == "Failed"
    )
    assert finished_phase({**head, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}) == ""


def test_differences_are_told_with_their_place() -> None:
    old = {"a": [{"b": 1}, {"c": 2}], "gone": "x"}
    new = {"a": [{"b": 1}, {"c": 3}], "new": ["y"]}
    assert list(differences(old, new)) == ["a.1.c: 2 -> 3", 'gone: "x" -> nothing', 'new: nothing -> ["y"]']


def test_things_with_names_are_compared_by_name() -> None:
    old = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    new = {"env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}, {"name": "A", "value": "4"}]}
    assert list(differences(old, new)) == [
        'env.A.value: "1" -> "4"',
        'env.C: nothing -> {"name": "C", "value": "3"}',
    ]


def test_an_unknown_status_is_told_as_it_is(store: Store) -> None:
    def refuse(request: Request) -> Answer:
        return status(507, "Full", "no space left") if request.method == "PATCH" else store.answer(request)

    with serving(refuse) as server, pytest.raises(KubernetesError, match="no space left"):
        submit(server.cluster(), plan_of())
