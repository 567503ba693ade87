"""Lines of all pods, by time, also of those that come later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from clickmill.errors import StateError
from clickmill.jobs.logs import Following, LogOptions, Said, read_logs
from clickmill.kube import kinds
from clickmill.kube.logs import LogLine, split_lines

from .objects import container, ended, job_object, plan, pod, running, submitted
from .stand_in import StandIn


def at(seconds: float, text: str) -> str:
    """A line as a node writes it."""
    return f"2026-01-31T08:00:{seconds:012.9f}Z {text}".replace("000000Z", "Z")


def texts(lines) -> list[str]:
    return [f"{said.title}: {said.line.text}" for said in lines]


def test_lines_of_all_pods_come_by_time(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Running"), running(made, "pserver", 0), ended(made, "trainer", 0, 0))
    state.say("ctr-pserver-0", at(1, "listens"), at(3, "ends"))
    state.say("ctr-trainer-0", at(2, "trains"), at(2.5, "still does"), is_closed=True)
    assert texts(read_logs(cluster, "ctr", LogOptions())) == [
        "pserver 0: listens",
        "trainer 0: trains",
        "trainer 0: still does",
        "pserver 0: ends",
    ]
    for role in ("trainer", "trainer 0"):
        assert texts(read_logs(cluster, "ctr", LogOptions(roles=(role,)))) == [
            "trainer 0: trains",
            "trainer 0: still does",
        ]


def test_a_stopped_job_has_no_lines_any_more(state, cluster):
    state.add(*(item for item in submitted(plan()) if item["kind"] != "Job"))
    with pytest.raises(StateError, match="is Stopped, and its pods are gone"):
        list(read_logs(cluster, "ctr", LogOptions()))


def test_moments_sort_whatever_their_fractions():
    times = [
        "2026-01-31T08:00:01Z",
        "2026-01-31T08:00:01.05Z",
        "2026-01-31T08:00:01.123456789Z",
        "2026-01-31T08:00:02Z",
    ]
    assert sorted(times, key=lambda time: LogLine(time, "").moment) == times


def test_lines_are_cut_by_newlines_alone():
    assert list(split_lines([b"a\x0bb\n", b"c", b"d\r\n\ne"])) == [b"a\x0bb", b"cd\r", b"", b"e"]
    long = list(split_lines([b"x" * 700_000, b"y" * 700_000]))
    assert [len(line) for line in long] == [1 << 20, 1_400_000 - (1 << 20)]


def test_a_job_without_a_pod_that_started_says_so(state, cluster):
    made = plan()
    state.add(job_object(made), pod(made, "trainer", 0))
    with pytest.raises(StateError, match="no pod of job `ctr` has started yet"):
        list(read_logs(cluster, "ctr", LogOptions()))
    with pytest.raises(StateError, match="no pod of `worker`"):
        list(read_logs(cluster, "ctr", LogOptions(roles=("worker",))))


def test_what_was_said_before_a_restart_can_be_read(state, cluster):
    made = plan(scheduler="default")
    state.add(*submitted(made)[-2:])
    state.add(
        running(made, "trainer", 0, name="ctr-trainer-0-b", created="2026-01-31T08:10:00Z"),
        ended(made, "trainer", 0, 1, name="ctr-trainer-0-a"),
        running(made, "pserver", 0, name="ctr-pserver-0-a", **container(restarts=1, running={})),
    )
    state.say("ctr-trainer-0-a", at(1, "boom"), is_closed=True)
    state.say("ctr-trainer-0-b", at(2, "fine"))
    state.previous_logs["ctr-pserver-0-a"] = [at(1.5, "bang")]
    previous = LogOptions(is_previous=True)
    assert texts(read_logs(cluster, "ctr", previous)) == ["trainer 0: boom", "pserver 0: bang"]


def test_volcano_leaves_nothing_of_what_was_before(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Running"), running(made, "trainer", 0))
    with pytest.raises(StateError, match="Volcano deletes a pod"):
        list(read_logs(cluster, "ctr", LogOptions(is_previous=True)))


class Reading:
    """Follows on a thread; what has been heard so far can be waited for."""

    def __init__(self, following: Following) -> None:
        self.following = following
        self.heard: list[Said] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for said in self.following:
            with self._changed:
                self.heard.append(said)
                self._changed.notify_all()

    def until(self, claim: Callable[[list[str]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: claim(texts(self.heard)), 60), texts(self.heard)

    def end(self) -> list[str]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return texts(self.heard)


def follow(state: StandIn, cluster, told: list[str] | None = None) -> Reading:
    return Reading(Following(cluster, "ctr", LogOptions(), ([] if told is None else told).append))


def test_following_goes_on_until_the_job_is_over(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Running"), running(made, "pserver", 0))
    state.say("ctr-pserver-0", at(1, "listens"))
    reading = follow(state, cluster)
    reading.until(lambda lines: lines == ["pserver 0: listens"])
    # A trainer that comes later.
    state.say("ctr-trainer-0", at(2, "trains"))
    state.add(running(made, "trainer", 0))
    reading.until(lambda lines: "trainer 0: trains" in lines)
    # It is made anew, with the same name.
    again = running(made, "trainer", 0)
    again["metadata"]["uid"] = "another"
    with state.changed:
        state.say("ctr-trainer-0", is_closed=True)
        state.logs["ctr-trainer-0"].lines = [at(4, "trains again")]
        state.add(again)
    reading.until(lambda lines: "trainer 0: trains again" in lines)
    state.say("ctr-pserver-0", at(5, "ends"), is_closed=True)
    state.add(job_object(made, phase="Completed"), ended(made, "pserver", 0, 0), ended(made, "trainer", 0, 0))
    assert reading.end() == [
        "pserver 0: listens",
        "trainer 0: trains",
        "trainer 0: trains again",
        "pserver 0: ends",
    ]
    assert reading.following.job.phase == "Completed"


def test_a_pod_that_never_stops_talking_drowns_nobody(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Running"), running(made, "pserver", 0))
    state.say("ctr-pserver-0", at(1, "listens"))
    reading = follow(state, cluster)
    is_over = threading.Event()

    def talk() -> None:
        while not is_over.wait(0.02):
            state.say("ctr-pserver-0", at(2, f"{time.monotonic()}"))

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        reading.until(lambda lines: len(lines) > 20)
        state.say("ctr-trainer-0", at(2, "trains"))
        state.add(running(made, "trainer", 0))
        reading.until(lambda lines: "trainer 0: trains" in lines)
    finally:
        is_over.set()
        talker.join()
        state.say("ctr-pserver-0", is_closed=True)
        state.say("ctr-trainer-0", is_closed=True)
        state.add(job_object(made, phase="Completed"))
        reading.end()


def test_a_connection_that_breaks_tells_nothing_twice_and_loses_nothing(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Running"), running(made, "pserver", 0))
    state.say("ctr-pserver-0", at(1, "one"), at(1, "two"))
    reading = follow(state, cluster)
    reading.until(lambda lines: len(lines) == 2)
    # The stream ends, though its container runs.
    with state.changed:
        assert state.changed.wait_for(lambda: state.logs["ctr-pserver-0"].num_followers == 1, 60)
        state.logs["ctr-pserver-0"].is_closed = True
        state.changed.notify_all()
        assert state.changed.wait_for(lambda: state.logs["ctr-pserver-0"].num_followers == 0, 60)
    state.say("ctr-pserver-0", at(1, "three"), at(2, "four"))
    reading.until(lambda lines: len(lines) == 4)
    state.say("ctr-pserver-0", is_closed=True)
    state.add(job_object(made, phase="Completed"), ended(made, "pserver", 0, 0))
    assert reading.end() == [f"pserver 0: {word}" for word in ("one", "two", "three", "four")]


def test_a_job_that_is_over_is_read_to_its_end(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Failed"), ended(made, "trainer", 0, 3))
    state.say("ctr-trainer-0", at(1, "error: no samples"), is_closed=True)
    assert follow(state, cluster).end() == ["trainer 0: error: no samples"]


def test_a_job_that_is_deleted_ends_the_following(state, cluster):
    made = plan()
    state.add(job_object(made, phase="Running"), running(made, "trainer", 0))
    state.say("ctr-trainer-0", at(1, "trains"))
    following = Following(cluster, "ctr", LogOptions(), [].append)
    lines = iter(following)
    next(lines)
    state.remove(kinds.VOLCANO_JOB, "ctr")
    with pytest.raises(Exception, match="was deleted meanwhile"):
        list(lines)
