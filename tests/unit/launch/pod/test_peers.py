from __future__ import annotations

from typing import Any

import pytest

from clickmill.launch.pod.peers import peer_of, peers_of

from .api import pod

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient cpu.",
}


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (pod("p-1"), "runs"),
        (pod("p-1", phase="Succeeded"), "has ended well"),
        (
            pod("p-1", phase="Pending", conditions=[UNSCHEDULABLE]),
            "is not scheduled: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.",
        ),
        (
            pod(
                "p-1", phase="Pending", state={"waiting": {"reason": "ErrImagePull", "message": "not found"}}
            ),
            "cannot start, for its image `clickmill:dev` cannot be had: ErrImagePull: not found",
        ),
        (
            pod("p-1", phase="Pending", state={"waiting": {"reason": "ContainerCreating"}}),
            "starts on node `n1`",
        ),
        (
            pod(
                "p-1",
                phase="Pending",
                state={
                    "waiting": {"reason": "CreateContainerConfigError", "message": 'secret "x" not found'}
                },
            ),
            'cannot start: CreateContainerConfigError: secret "x" not found',
        ),
        (
            pod(
                "p-1",
                state={"waiting": {"reason": "CrashLoopBackOff"}},
                last=ended(1, "it broke"),
                restarts=2,
            ),
            "ended with exit code 1 for the 3rd time, and is started again: it broke",
        ),
        (
            pod("p-1", state=ended(137, reason="OOMKilled")),
            "ran out of memory, and is started again",
        ),
        (
            pod("p-1", phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
            "has failed: Evicted: The node was low on resource: memory.",
        ),
        (
            pod("p-1", phase="Failed", state=ended(3, "error: no such file")),
            "has failed: its role ended with exit code 3: error: no such file",
        ),
        (pod("p-1", phase="Unknown"), "is on a node that does not answer"),
    ],
)
def test_a_pod_is_described_in_words(found: dict[str, Any], words: str):
    peer = peer_of(found)
    assert peer is not None
    assert peer.words == words


def test_a_pod_that_is_being_removed_does_not_run():
    found = pod("p-1")
    found["metadata"]["deletionTimestamp"] = "2026-11-18T01:00:00Z"
    peer = peer_of(found)
    assert peer is not None
    assert peer.state == "waits"


@pytest.mark.parametrize("code", [2, 3, 4])
@pytest.mark.parametrize("is_looping", [False, True])
def test_who_has_failed_for_good_cannot_come(code: int, is_looping: bool):
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if is_looping else ended(code)
    phase = "Running" if is_looping else "Failed"
    peer = peer_of(pod("p-1", phase=phase, state=state, last=ended(code)))
    assert peer is not None
    assert (peer.is_hopeless, peer.exit_code) == (True, code)


def test_who_was_killed_may_come_again():
    peer = peer_of(pod("p-1", phase="Failed", state=ended(137)))
    assert peer is not None
    assert not peer.is_hopeless


def test_of_two_pods_with_one_number_the_living_one_counts():
    dead = pod("ctr-worker-0-aaaaa", "worker", phase="Failed", state=ended(1))
    alive = pod("ctr-worker-0-bbbbb", "worker")
    for each in (dead, alive):
        each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = "0"
    assert peers_of([alive, dead])["worker", 0].state == "runs"
    assert peers_of([dead, alive])["worker", 0].state == "runs"


def test_pods_without_a_role_or_a_number_are_none_of_ours():
    assert peers_of([pod("ctr-pserver-0", labels={}), pod("reader")]) == {}
