"""`clickmill job` as it is typed, against an API server on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clickmill.cli.job import parse_duration
from clickmill.errors import ConfigError
from clickmill.kube import kinds
from tests.unit.jobs import scripted
from tests.unit.jobs.objects import ended, job_object, node, plan, queue, running, submitted
from tests.unit.jobs.stand_in import NAMESPACE, StandIn, stand_in

from .conftest import Run


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """What the cluster of KUBECONFIG holds."""
    with stand_in() as started:
        config = {
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": started.address}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield started


def test_jobs_are_listed_with_what_is_known_of_them(run: Run, state: StandIn):
    told = json.dumps({"passes": 2, "samples": 5000, "auc": 0.7654})
    state.add(*submitted(plan("first"), phase="Completed"), ended(plan("first"), "trainer", 0, 0, told))
    state.add(*submitted(plan("second")))
    result = run("job", "ls")
    assert result.exit_code == 0
    first, second = result.stdout.strip().splitlines()[-2:]
    assert first.split() == [
        "first",
        "Completed",
        "0/4",
        *first.split()[3:5],
        "-",
        "5,000",
        "-",
        "0.7654",
        "default",
    ]
    assert second.split()[:3] == ["second", "Pending", "0/4"]
    found = json.loads(run("job", "ls", "--json").stdout)
    assert [(each["name"], each["auc"]) for each in found] == [("first", 0.7654), ("second", None)]


def test_a_namespace_that_is_not_there_is_an_error(run: Run, state: StandIn):
    result = run("job", "ls")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no namespace `team`" in result.stderr


def test_a_namespace_without_jobs_says_so(run: Run, state: StandIn):
    state.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    result = run("job", "ls")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "there are no jobs in namespace `team`" in result.stderr


def test_the_status_of_a_failed_job_ends_with_its_code(run: Run, state: StandIn):
    made = plan()
    state.add(
        *submitted(made, phase="Failed"), ended(made, "trainer", 0, 3, "error: no samples\nhint: add some")
    )
    result = run("job", "status", "ctr")
    assert result.exit_code == 3
    assert (
        "failure: trainer 0 ended with exit code 3, samples that cannot be read: no samples" in result.stdout
    )
    assert "hint: add some" in result.stdout
    as_json = run("job", "status", "ctr", "--json")
    assert as_json.exit_code == 3
    assert json.loads(as_json.stdout)["reasons"][0]["remedy"] == "add some"


def test_the_status_of_a_job_that_is_done_has_its_numbers(run: Run, state: StandIn):
    told = json.dumps({"passes": 1, "samples": 5000, "auc": 0.7654})
    state.add(*submitted(plan(), phase="Completed"), ended(plan(), "trainer", 0, 0, told))
    assert "\n1 pass, 5,000 samples, auc 0.7654\n" in run("job", "status", "ctr").stdout


def test_the_status_of_a_job_that_is_done_and_has_no_pods_says_what_went_with_them(run: Run, state: StandIn):
    state.add(*submitted(plan(), phase="Completed"))
    told = run("job", "status", "ctr").stdout
    assert "its samples and metrics are not known any more" in told
    assert "hint: the checkpoint is there still: `clickmill job fetch ctr -n team`" in told
    state.add(ended(plan(), "trainer", 0, 0))
    assert "not known any more" not in run("job", "status", "ctr").stdout


def test_the_status_of_a_job_that_waits_says_for_whom_once(run: Run, state: StandIn):
    made = plan(pservers=1, trainers=1)
    metadata = {"name": "ctr-token"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"token": "dA=="}}
    pods = [running(made, role, 0) for role in ("pserver", "trainer")]
    state.add(*submitted(made, phase="Running"), secret, *pods)
    waits = scripted.running(waiting=[scripted.wait("other", "the commit file of a snapshot", 9)])
    with scripted.scripted(waits, lambda *_: None) as told:
        state.ports["ctr-pserver-0"] = told.port
        result = run("job", "status", "ctr")
    assert "\nwaiting for the commit file of a snapshot\n" in result.stdout


def test_a_watched_job_is_shown_until_it_is_over(run: Run, state: StandIn):
    state.add(*submitted(plan(), phase="Completed"))
    result = run("job", "status", "ctr", "--watch", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["phase"] == "Completed"
    assert "Completed" in run("job", "status", "ctr", "--watch").stdout


def test_a_job_that_waits_says_why_and_is_no_failure(run: Run, state: StandIn):
    items = submitted(plan())
    for item in items:
        if item["kind"] == "PersistentVolumeClaim":
            item["status"] = {"phase": "Bound"}
    state.add(*items, queue(), node("n1", cpu="1"))
    result = run("job", "status", "ctr")
    assert result.exit_code == 0
    assert "resources: 1 of 3 pods of the gang fit" in result.stdout


def test_logs_have_the_role_in_front(run: Run, state: StandIn):
    made = plan()
    state.add(*submitted(made, phase="Failed"), ended(made, "trainer", 0, 1))
    error = json.dumps({"error": {"kind": "DataError", "message": "no samples", "hint": "add some"}})
    state.say("ctr-trainer-0", "2026-01-31T08:00:01Z begins", f"2026-01-31T08:00:02Z {error}", is_closed=True)
    result = run("job", "logs", "ctr")
    assert (result.exit_code, result.stdout) == (
        0,
        "trainer 0 | begins\ntrainer 0 | error: no samples\ntrainer 0 | hint: add some\n",
    )
    followed = run("job", "logs", "ctr", "--follow", "--json")
    assert followed.exit_code == 1
    assert [json.loads(line)["line"] for line in followed.stdout.splitlines()] == ["begins", error]
    assert "job `ctr` is Failed" in followed.stderr


def test_what_contradicts_itself_is_refused(run: Run, state: StandIn):
    for arguments in (
        ("logs", "ctr", "--follow", "--previous"),
        ("scale", "ctr"),
        ("delete", "ctr", "--keep-output", "--with-output"),
    ):
        assert run("job", *arguments).exit_code == 2, arguments


def test_output_is_not_deleted_without_a_word(run: Run, state: StandIn):
    state.add(*submitted(plan(), phase="Completed"))
    result = run("job", "delete", "ctr")
    assert result.exit_code == 2
    assert "shall claim `ctr-output` be deleted" in result.stderr
    assert run("job", "delete", "ctr", "--keep-output").exit_code == 0
    assert state.names(kinds.CLAIM) == ["ctr-output"]
    assert "Deleted" in run("job", "ls").stdout
    assert run("job", "delete", "ctr", "--with-output", "--json").exit_code == 0
    assert state.objects == {}


def test_waiting_tells_the_outcome(run: Run, state: StandIn):
    state.add(job_object(plan(), phase="Completed"))
    assert run("job", "wait", "ctr").exit_code == 0
    state.add(job_object(plan(), phase="Running"), running(plan(), "trainer", 0))
    assert run("job", "wait", "ctr", "--timeout", "0").exit_code == 124


def test_a_job_that_is_not_there_is_an_error(run: Run, state: StandIn):
    result = run("job", "status", "absent", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["error"]["kind"] == "NotFoundError"


def test_times_are_read():
    assert [parse_duration(text) for text in ("30s", "10m", "2h", "1d", "1.5h", "7")] == [
        30, 600, 7200, 86400, 5400, 7,
    ]  # fmt: skip
    for text in ("soon", "", "-1m", "nan", "1w"):
        with pytest.raises(ConfigError):
            parse_duration(text)
