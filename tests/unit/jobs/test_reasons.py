"""Why a job waits or has failed, in words, with what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from clickmill.jobs.status import job_status
from clickmill.kube import kinds

from .objects import container, ended, event, job_object, node, plan, pod, queue, running, submitted


def reasons(cluster) -> dict[str, str]:
    """Words by kind."""
    found = job_status(cluster, "ctr").reasons
    assert len({reason.kind for reason in found}) == len(found), found
    return {reason.kind: f"{reason.words} -> {reason.remedy}" for reason in found}


def bound(made) -> list[dict]:
    """The objects of a job whose claim has its volume."""
    items = submitted(made)
    for item in items:
        if item["kind"] == "PersistentVolumeClaim":
            item["status"] = {"phase": "Bound"}
    return items


def test_a_gang_that_does_not_fit_is_told_with_what_each_node_lacks(state, cluster):
    state.add(*bound(plan()), queue(), node("n1", cpu="3500m"), node("n2", cpu="500m", memory="3Gi"))
    found = reasons(cluster)
    assert found["resources"].startswith(
        "2 of 3 pods of the gang fit: a trainer asks for 2 cpu and 2.0 GiB of memory; "
        "node `n1` has room for one; node `n2` lacks 1.5 cpu -> add a node"
    )


def test_what_can_never_fit_says_so(state, cluster):
    state.add(*bound(plan()), queue(), node("n1", cpu="1"))
    assert "add a node that is large enough" in reasons(cluster)["resources"]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("n1", ready="False")], "node `n1` is not ready"),
        ([node("n1", unschedulable=True)], "node `n1` is closed for new pods"),
        (
            [node("n1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])],
            "node `n1` has the taint gpu=yes:NoSchedule",
        ),
    ],
)
def test_nodes_that_pods_may_not_come_to_are_told(state, cluster, nodes, words):
    state.add(*bound(plan()), queue(), *nodes)
    found = reasons(cluster)["resources"]
    assert "0 of 3 pods of the gang fit" in found
    assert words in found
    assert "open or label a node" in found


def test_a_node_without_the_label_is_told_and_one_with_a_tolerated_taint_is_not(state, cluster):
    more = "  node_selector: {disk: ssd}\n  tolerations: [{key: gpu, operator: Exists}]\n"
    taint = [{"key": "gpu", "effect": "NoSchedule"}]
    state.add(
        *bound(plan(more=more)), queue(), node("n1"), node("n2", "1", labels={"disk": "ssd"}, taints=taint)
    )
    found = reasons(cluster)["resources"]
    assert "node `n1` lacks the label disk=ssd" in found
    assert "node `n2` lacks 1 cpu" in found


def test_pods_that_run_take_their_room(state, cluster):
    other = running(plan("other"), "trainer", 0)
    other["metadata"]["namespace"] = "elsewhere"
    done = ended(plan("done"), "trainer", 0, 0)
    state.add(*bound(plan()), queue(), node("n1", cpu="5"), other, done)
    assert "2 of 3 pods of the gang fit" in reasons(cluster)["resources"]
    state.remove(kinds.POD, "done-trainer-0")


def test_a_full_queue_is_told_with_what_is_taken(state, cluster):
    state.add(
        *bound(plan()), queue({"cpu": "5"}, allocated={"cpu": "2"}), node("n1", cpu="64", memory="64Gi")
    )
    assert reasons(cluster) == {
        "queue": "queue `default` is full: 2 cpu of 5 cpu are taken, and it asks for 4 cpu -> "
        "it starts when jobs before it in the queue end"
    }


def test_a_queue_that_is_too_small_or_closed_or_gone_is_told(state, cluster):
    state.add(*bound(plan()), queue({"cpu": "3"}), node("n1", cpu="64", memory="64Gi"))
    assert "this can never fit" in reasons(cluster)["queue"]
    state.add(queue(state="Closed"))
    assert "queue `default` is closed" in reasons(cluster)["queue"]
    state.remove(kinds.QUEUE, "default")
    assert "there is no queue `default`" in reasons(cluster)["queue"]


def test_what_the_scheduler_says_is_told_where_nodes_may_not_be_looked_at(state, cluster):
    state.forbidden |= {"nodes", "queues.scheduling.volcano.sh"}
    made = plan()
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "ctr-uid-ctr"},
        "status": {
            "phase": "Inqueue",
            "conditions": [{"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang"}],
        },
    }
    state.add(*bound(made), group)
    assert reasons(cluster) == {"gang": "the gang is not scheduled: 3/3 tasks in gang -> None"}


@pytest.mark.parametrize(("retries", "is_advised"), [(0, True), (1, False)])
def test_volcano_is_made_to_look_again_only_where_it_has_placed_no_pod_yet(
    state, cluster, retries, is_advised
):
    state.forbidden |= {"nodes", "queues.scheduling.volcano.sh"}
    made = plan()
    items = bound(made)
    claim = next(item for item in items if item["kind"] == "PersistentVolumeClaim")
    claim["metadata"]["annotations"] = {"volume.kubernetes.io/storage-provisioner": "example.com/folder"}
    items[-1]["status"]["retryCount"] = retries
    condition = {"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang"}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "ctr-uid-ctr"},
        "status": {"phase": "Inqueue", "conditions": [condition]},
    }
    state.add(*items, group)
    assert ("kubectl annotate pods" in reasons(cluster)["gang"]) == is_advised


def test_trainers_that_find_no_room_do_not_stop_those_that_have(state, cluster):
    made = plan(trainers=2)
    there = [running(made, "pserver", index) for index in range(2)] + [running(made, "trainer", 0)]
    state.add(*bound(made), queue(), node("n1", cpu="5"), *there, pod(made, "trainer", 1))
    found = reasons(cluster)["resources"]
    assert found.startswith("trains with fewer trainers than asked for: 0 of 1 pods")


def test_an_image_that_cannot_be_had_is_told_once_for_all_pods(state, cluster):
    made = plan()
    back_off = 'Back-off pulling image "clickmill:test"'
    pods = [
        pod(
            made,
            role,
            index,
            node="n1",
            **container(waiting={"reason": "ImagePullBackOff", "message": back_off}),
        )
        for role in ("pserver", "trainer")
        for index in range(2)
    ]
    message = 'Failed to pull image "clickmill:test": not found'
    state.add(*bound(made), *pods, event("ctr-trainer-0", "Pod", "Failed", message))
    found = reasons(cluster)
    assert found["image"].startswith(
        "pserver 0, pserver 1, trainer 0, trainer 1 cannot start: image `clickmill:test` cannot be had: "
    )
    assert "image_pull_secrets" in found["image"]


def test_claims_that_are_missing_or_pending_are_told(state, cluster):
    made = plan(more="  volumes: [{name: data, claim: logs, mount: train_data}]\n")
    items = submitted(made)
    claim = next(item for item in items if item["kind"] == "PersistentVolumeClaim")
    claim["status"] = {"phase": "Pending"}
    claim["spec"]["storageClassName"] = "fast"
    trouble = event(
        "ctr-output", "PersistentVolumeClaim", "ProvisioningFailed", 'storageclass "fast" not found'
    )
    state.add(*items, trouble)
    words = [reason.words for reason in job_status(cluster, "ctr").reasons]
    assert words == [
        'claim `ctr-output` is pending: storageclass "fast" not found',
        "there is no claim `logs`",
    ]


def test_a_claim_that_waits_for_its_first_pod_is_no_obstacle(state, cluster):
    items = submitted(plan())
    claim = next(item for item in items if item["kind"] == "PersistentVolumeClaim")
    claim["status"] = {"phase": "Pending"}
    state.add(*items, queue(), node("n1", cpu="1"))
    assert set(reasons(cluster)) == {"resources"}


NO_VOLUME = (
    "claim `ctr-output` is pending: `example.com/folder` has made no volume for it yet -> does that "
    "provisioner run? `kubectl describe pvc ctr-output` has more"
)


@pytest.mark.parametrize(
    ("created", "words"), [("2999-12-31T08:00:00Z", None), ("2026-01-31T08:00:00Z", NO_VOLUME)]
)
def test_a_claim_that_nobody_makes_a_volume_for_is_told_after_a_while(state, cluster, created, words):
    items = submitted(plan())
    claim = next(item for item in items if item["kind"] == "PersistentVolumeClaim")
    claim["status"] = {"phase": "Pending"}
    claim["metadata"]["creationTimestamp"] = created
    claim["metadata"]["annotations"] = {"volume.kubernetes.io/storage-provisioner": "example.com/folder"}
    state.add(*items, queue(), node("n1", cpu="1"))
    assert reasons(cluster).get("volume") == words


def test_a_volume_that_cannot_be_mounted_is_told(state, cluster):
    made = plan(pservers=1, trainers=1)
    trouble = event(
        "ctr-trainer-0", "Pod", "FailedMount", "hostPath type check failed: /x is not a directory"
    )
    state.add(*bound(made), running(made, "pserver", 0), pod(made, "trainer", 0, node="n1"), trouble)
    assert "trainer 0 cannot start: hostPath type check failed" in reasons(cluster)["volume"]


def test_a_volume_that_a_node_may_not_read_at_once_is_no_trouble_yet(state, cluster):
    made = plan(pservers=1, trainers=1)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    trouble = event("ctr-trainer-0", "Pod", "FailedMount", "no relationship found between node", now)
    young = pod(made, "trainer", 0, node="n1", created=now)
    state.add(*bound(made), running(made, "pserver", 0), young, trouble)
    assert "volume" not in reasons(cluster)


def test_a_pod_that_waited_for_its_node_has_its_time_to_mount_too(state, cluster):
    made = plan(pservers=1, trainers=2)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = 'persistentvolumeclaims "ctr-output" is forbidden: no relationship found between node and it'
    late = pod(made, "trainer", 0, node="n1", startTime=now)
    trouble = event("ctr-trainer-0", "Pod", "FailedMount", message, now)
    state.add(*bound(made), running(made, "pserver", 0), late, trouble)
    assert not {"access", "volume"} & set(reasons(cluster))


VOLCANO_WORDS = (
    "Error creating pods: [failed to create pod ctr-pserver-0, err: &errors.StatusError{ErrStatus:v1.Status{"
    'Status:"Failure", Message:"pods \\"ctr-pserver-0\\" is forbidden: %s", Reason:"Forbidden", Code:403}}]'
)


@pytest.mark.parametrize(
    ("kind", "said", "words"),
    [
        (
            "quota",
            "exceeded quota: q, requested: pods=1",
            "pods cannot be made: exceeded quota: q, requested: pods=1",
        ),
        (
            "access",
            'error looking up service account team/ctr: serviceaccount \\"ctr\\" not found',
            'pods cannot be made: error looking up service account team/ctr: serviceaccount "ctr" not found',
        ),
    ],
)
def test_pods_that_may_not_be_made_are_told_without_the_wrapping(state, cluster, kind, said, words):
    state.add(
        *bound(plan()),
        queue(),
        node("n1", cpu="1"),
        event("ctr", "Job", "FailedCreate", VOLCANO_WORDS % said),
    )
    found = reasons(cluster)
    assert set(found) == {kind}
    assert found[kind].split(" -> ")[0] == words


def test_events_of_an_earlier_job_of_the_same_name_are_not_told(state, cluster):
    old = event(
        "ctr", "Job", "FailedCreate", VOLCANO_WORDS % "exceeded quota: q", moment="2026-01-31T07:00:00Z"
    )
    state.add(*bound(plan()), queue(), node("n1", cpu="1"), old)
    assert set(reasons(cluster)) == {"resources"}


def test_pods_that_a_lost_node_holds_are_told(state, cluster):
    made = plan(pservers=1, trainers=1)
    lost = running(made, "trainer", 0, node="n2", deleted="2026-01-31T08:10:00Z", conditions=[])
    state.add(*bound(made), running(made, "pserver", 0), lost)
    assert "node `n2` does not answer; on it is trainer 0" in reasons(cluster)["node"]
    assert "kubectl delete node n2" in reasons(cluster)["node"]


@pytest.mark.parametrize(("ready", "is_told"), [("Unknown", True), ("False", False), ("True", False)])
def test_a_node_that_is_lost_is_told_before_its_pods_are_given_up(state, cluster, ready, is_told):
    made = plan(pservers=1, trainers=1)
    lost = [running(made, role, 0, node="n2", conditions=[]) for role in ("pserver", "trainer")]
    state.add(*bound(made), *lost, node("n1"), node("n2", ready=ready))
    assert ("node" in reasons(cluster)) == is_told
    if is_told:
        assert "on it are pserver 0, trainer 0" in reasons(cluster)["node"]


def test_a_failed_job_is_told_by_the_pod_that_failed_first_and_for_good(state, cluster):
    made = plan()
    state.add(
        job_object(made, phase="Failed", retryCount=1),
        ended(made, "pserver", 0, 143, finished="2026-01-31T08:29:00Z"),
        ended(made, "trainer", 1, 1, "error: trainer 1: lost", finished="2026-01-31T08:28:00Z"),
        ended(
            made, "trainer", 0, 3, "error: trainer 0: train.tsv:7: 3 columns", finished="2026-01-31T08:30:00Z"
        ),
    )
    status = job_status(cluster, "ctr")
    assert status.exit_code == 3
    assert reasons(cluster) == {
        "failure": "trainer 0 ended with exit code 3, samples that cannot be read: train.tsv:7: 3 columns; "
        "started again once, of 5 allowed -> mend that, then submit with `--replace`; it goes on from the "
        "last snapshot"
    }


def test_a_pod_that_ran_out_of_memory_is_told_with_the_key_to_change(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Failed"), ended(made, "trainer", 0, 137, reason="OOMKilled"))
    found = reasons(cluster)["failure"]
    assert "trainer 0 was killed for taking more memory than its limit" in found
    assert "`kubernetes.resources.trainer.memory_limit`" in found
    assert job_status(cluster, "ctr").exit_code == 1


def test_a_failed_job_whose_pods_are_gone_is_told_in_the_words_of_the_cluster(state, cluster):
    state.add(job_object(plan(), phase="Failed", message="nobody knows"))
    assert "its pods are gone" in reasons(cluster)["failure"]


def test_a_crash_loop_is_told_with_its_count(state, cluster):
    made = plan(pservers=1, trainers=1, scheduler="default")
    items = bound(made)
    for item in items[-2:]:
        item["status"] = {"ready": 1, "failed": 2}
    state.add(
        *items,
        running(made, "pserver", 0, name="ctr-pserver-0-a"),
        running(made, "trainer", 0, name="ctr-trainer-0-c", created="2026-01-31T08:20:00Z"),
        ended(made, "trainer", 0, 1, "error: boom", name="ctr-trainer-0-b", created="2026-01-31T08:10:00Z"),
        ended(made, "trainer", 0, 1, "error: boom", name="ctr-trainer-0-a"),
    )
    assert reasons(cluster)["crash"].startswith(
        "trainer 0 has failed 2 times: it ended with exit code 1, it failed while running: boom; the job "
    )


def test_pods_that_plain_kubernetes_is_slow_to_make_again_are_told(state, cluster):
    made = plan(pservers=1, trainers=3, scheduler="default")
    items = bound(made)
    items[-2]["status"] = {"ready": 1}
    items[-1]["status"] = {"ready": 1, "failed": 2}
    state.add(
        *items,
        node("n1", cpu="64", memory="64Gi"),
        running(made, "pserver", 0, name="ctr-pserver-0-a"),
        running(made, "trainer", 1, name="ctr-trainer-1-b", created="2026-01-31T08:20:00Z"),
        ended(made, "trainer", 2, 1, name="ctr-trainer-2-a"),
    )
    found = reasons(cluster)["pod"]
    assert found.startswith("trainer 0, trainer 2 are not there: the Job controller waits before it makes")
    assert "; 2 have failed" in found


def test_a_job_that_is_done_needs_no_reasons(state, cluster):
    made = plan()
    told = json.dumps({"passes": 1, "samples": 5000, "auc": 0.77})
    state.add(job_object(made, phase="Completed"), ended(made, "trainer", 0, 0, told))
    status = job_status(cluster, "ctr")
    assert (status.reasons, status.exit_code, status.samples, status.auc) == ((), 0, 5000, 0.77)


def written(*failures: dict) -> dict:
    """The ConfigMap into which pods write how others have failed."""
    data = {f"uid-{number}": json.dumps(failure) for number, failure in enumerate(failures)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ctr-failures"}, "data": data}


def killed(minute: int, **more) -> dict:
    return {
        "pod": "ctr-trainer-0", "title": "trainer 0", "node": "n1", "exit_code": 137, "reason": "OOMKilled",
        "message": "", "finished": f"2026-01-31T08:{minute:02}:00Z", **more,
    }  # fmt: skip


def test_pods_that_are_gone_are_told_of_by_those_who_saw_them_fail(state, cluster):
    made = plan(pservers=1, trainers=1)
    earlier = killed(1, finished="2026-01-30T08:00:00Z")
    state.add(*bound(made), job_object(made, phase="Running", retryCount=2))
    state.add(
        running(made, "pserver", 0), running(made, "trainer", 0), written(killed(10), killed(20), earlier)
    )
    found = reasons(cluster)
    assert found["crash"].startswith(
        "trainer 0 has failed 2 times: it was killed for taking more memory than its limit; the job gives up"
    )
    assert "memory_limit" in found["crash"]
    status = job_status(cluster, "ctr")
    assert {pod.title: status.num_restarts_of(pod) for pod in status.pods} == {"pserver 0": 0, "trainer 0": 2}


def test_a_failed_job_without_pods_still_says_why(state, cluster):
    evicted = killed(10, exit_code=None, reason="Evicted", message="The node was low on resource: memory")
    state.add(job_object(plan(), phase="Failed", retryCount=6), written(evicted))
    assert reasons(cluster)["failure"].startswith(
        "trainer 0 was ended by the cluster (Evicted): The node was low on resource: memory; started again 6"
    )


RAISED = {"exit_code": 1, "reason": "Error", "message": "error: trainer 1: RuntimeError: boom"}
GIVEN_UP = "error: pods of the job have been started again 6 times; this one cannot tell why\nhint: look"


def test_a_pod_that_gave_up_is_told_with_the_last_failure_that_others_saw(state, cluster):
    raised = killed(20, **RAISED, pod="ctr-trainer-1", title="trainer 1")
    given_up = ended(plan(), "trainer", 0, 5, GIVEN_UP)
    state.add(job_object(plan(), phase="Failed", retryCount=6), given_up, written(killed(10), raised))
    status = job_status(cluster, "ctr")
    assert status.pods[0].ending is not None
    assert status.pods[0].ending.message == (
        "pods of the job have been started again 6 times; the last failure that is known: trainer 1 ended "
        "with exit code 1, it failed while running: RuntimeError: boom"
    )
    assert status.reasons[0].words.startswith("trainer 1 ended with exit code 1, it failed while running: R")


@pytest.mark.parametrize(
    ("phase", "remedy"),
    [
        ("Failed", "`kubectl get configmap ctr-failures -n team -o yaml`"),
        ("Running", "job logs ctr --follow"),
    ],
)
def test_nobody_is_sent_to_the_log_of_a_pod_that_volcano_has_removed(state, cluster, phase, remedy):
    made = plan(pservers=1, trainers=1)
    state.add(job_object(made, phase=phase, retryCount=1), written(killed(20, **RAISED)))
    state.add(*(running(made, role, 0) for role in ("pserver", "trainer")))
    words = reasons(cluster)["failure" if phase == "Failed" else "crash"]
    assert "its log went with its pod" in words
    assert remedy in words
