"""Which checkpoint comes, and how the pod that gives it out is made and goes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from clickmill.errors import KubernetesError, NotFoundError, StateError
from clickmill.jobs.fetch import fetch_from, fetch_output
from clickmill.jobs.files.source import FileSource
from clickmill.jobs.job import find_job
from clickmill.jobs.output import find_output
from clickmill.jobs.pods import list_pods
from clickmill.jobs.reader import reader_pod
from clickmill.kube import kinds
from clickmill.train.checkpoint import Manifest, write_checkpoint

from .objects import container, ended, job_object, plan, running, submitted
from .serving import TOKEN, served
from .stand_in import StandIn
from .test_download import Counted


def checkpoint(folder: Path, step: int, *, base: str | None = None, is_pass_end: bool = False) -> None:
    """A small checkpoint that reads as a real one, made when its step was."""
    manifest = Manifest(
        version=1, run="run", pass_number=step // 100, batch=step % 100, step=step, is_pass_end=is_pass_end,
        model="dnn", hyper={}, tables=[], base=base, metrics={"auc": 0.7},
    )  # fmt: skip
    write_checkpoint(folder, manifest, texts={"schema.json": f"{{{step}}}"}, writers={})
    os.utime(folder / "checkpoint.json", (step, step))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    checkpoint(run / "checkpoints" / "0", 100, is_pass_end=True)
    checkpoint(run / "steps" / "epoch_1_batch_20", 120)
    checkpoint(run / "steps" / "epoch_1_batch_40", 140, base="epoch_1_batch_20")
    (run / "snapshots").mkdir()
    (run / "snapshots" / "part").write_text("changes all the time")
    (run / "journal.jsonl").write_text("{}\n")
    return run


def fetch(run: Path, what: str, target: Path, told: list[str] | None = None):
    tell = (told if told is not None else []).append
    with served(run) as direct:
        return fetch_from(FileSource(direct, tell), what, target, tell=tell, progress=Counted())


def test_the_newest_checkpoint_comes_with_what_it_builds_on(run, tmp_path):
    fetched = fetch(run, "checkpoint", tmp_path / "here")
    steps = tmp_path / "here" / "steps"
    assert fetched.paths == (steps / "epoch_1_batch_20", steps / "epoch_1_batch_40")
    assert fetched.to_dict()["checkpoint"]["step"] == 140
    assert not (tmp_path / "here" / "checkpoints").exists()


def test_a_pass_is_the_newest_that_is_whole(run, tmp_path):
    fetched = fetch(run, "pass", tmp_path / "here")
    assert fetched.paths == (tmp_path / "here" / "checkpoints" / "0",)


def test_what_is_here_already_is_not_fetched_again_unless_it_is_damaged(run, tmp_path):
    fetch(run, "pass", tmp_path / "here")
    told: list[str] = []
    again = fetch(run, "pass", tmp_path / "here", told)
    assert (again.num_files, told[-1]) == (0, "it is here already")
    (tmp_path / "here" / "checkpoints" / "0" / "schema.json").write_text("damaged")
    assert fetch(run, "pass", tmp_path / "here").num_files == 2
    assert (tmp_path / "here" / "checkpoints" / "0" / "schema.json").read_text() == "{100}"


def test_all_is_everything_but_snapshots(run, tmp_path):
    fetched = fetch(run, "all", tmp_path / "here")
    assert {path.name for path in fetched.paths} == {"checkpoints", "journal.jsonl", "steps"}
    assert fetched.num_files == 7


def test_a_path_is_what_lies_there(run, tmp_path):
    assert fetch(run, "snapshots", tmp_path / "here").paths == (tmp_path / "here" / "snapshots",)
    assert fetch(run, "steps/epoch_1_batch_20/", tmp_path / "here").num_files == 2
    with pytest.raises(NotFoundError, match="no `nowhere`"):
        fetch(run, "nowhere", tmp_path / "here")


def test_a_run_without_checkpoints_says_so(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(NotFoundError, match="there is no checkpoint yet"):
        fetch(tmp_path / "run", "checkpoint", tmp_path / "here")
    checkpoint(tmp_path / "run" / "steps" / "1", 1)
    with pytest.raises(NotFoundError, match="no pass is over yet"):
        fetch(tmp_path / "run", "pass", tmp_path / "here")


def test_a_checkpoint_that_is_pruned_meanwhile_gives_way_to_a_newer_one(run, tmp_path):
    """The listing is of before the pruning; the second look finds what is there."""
    import shutil

    told: list[str] = []

    def tell(words: str) -> None:
        told.append(words)
        if len(told) == 1:  # it has just been chosen
            checkpoint(run / "checkpoints" / "1", 200, is_pass_end=True)
            shutil.rmtree(run / "steps")

    with served(run) as direct:
        source = FileSource(direct)
        fetched = fetch_from(source, "checkpoint", tmp_path / "here", tell=tell, progress=Counted())
    assert fetched.paths == (tmp_path / "here" / "checkpoints" / "1",)
    assert "was removed while it was fetched; looks again" in told[1]


def kubelet(state: StandIn, port: int, *, code: int | None = None) -> threading.Thread:
    """Starts the first pod that comes without a status, as a kubelet would."""

    def start() -> None:
        with state.changed:
            while True:
                new = [
                    item
                    for (resource, _, _), item in state.objects.items()
                    if resource == "pods" and "status" not in item
                ]
                if new:
                    break
                state.changed.wait(30)
            (item,) = new
            terminated = {"exitCode": code, "reason": "Error", "message": "error: no folder\nhint: make it"}
            now = container(running={}) if code is None else container(terminated=terminated)
            item["status"] = {"phase": "Running", **now}
            state.ports[item["metadata"]["name"]] = port

    thread = threading.Thread(target=start)
    thread.start()
    return thread


def test_a_job_is_read_by_a_pod_that_goes_afterwards(state, cluster, run, tmp_path, monkeypatch):
    monkeypatch.setattr("clickmill.jobs.reader.new_token", lambda: TOKEN)
    state.add(*submitted(plan(), phase="Running"))
    with served(run) as direct:
        thread = kubelet(state, direct.port)
        told: list[str] = []
        fetched = fetch_output(
            cluster, "ctr", "pass", tmp_path / "here", tell=told.append, progress=Counted()
        )
        thread.join()
    assert fetched.paths[0].is_dir()
    assert "reads claim `ctr-output`" in told[0]
    assert state.names(kinds.POD) == []
    assert [name for name in state.names(kinds.SECRET) if "reader" in name] == []


def test_a_reader_that_cannot_start_says_why_and_goes(state, cluster, tmp_path):
    state.add(*submitted(plan(), phase="Running"))
    thread = kubelet(state, 0, code=1)
    with pytest.raises(KubernetesError, match="no folder") as caught:
        fetch_output(cluster, "ctr", "pass", tmp_path, tell=[].append, progress=Counted())
    thread.join()
    assert caught.value.hint == "make it"
    assert state.names(kinds.POD) == []


def output(cluster, name: str = "ctr"):
    return find_output(cluster, find_job(cluster, name), list_pods(cluster, name))


def test_a_reader_may_read_one_volume_and_nothing_else(state, cluster):
    more = "  image_pull_secrets: [mine]\n  node_selector: {disk: ssd}\n"
    state.add(*submitted(plan(more=more)))
    found = output(cluster)
    pod = reader_pod("team", "ctr", "ctr-reader-1", found)
    spec = pod["spec"]
    (made,) = spec["containers"]
    assert made["image"] == "clickmill:test"
    assert made["volumeMounts"] == [{"name": "output", "mountPath": "/output", "readOnly": True}]
    assert made["args"][:3] == ["pod-files", "--folder", "/output/ctr"]
    assert spec["automountServiceAccountToken"] is False
    assert made["securityContext"]["readOnlyRootFilesystem"] is True
    assert (spec["imagePullSecrets"], spec["nodeSelector"]) == ([{"name": "mine"}], {"disk": "ssd"})
    assert pod["metadata"]["labels"]["clickmill.io/role"] == "reader"
    assert "affinity" not in spec
    assert made["env"] == [
        {"name": "CLICKMILL_TOKEN", "valueFrom": {"secretKeyRef": {"name": "ctr-reader-1", "key": "token"}}}
    ]


def test_a_volume_of_one_node_is_read_there(state, cluster):
    made = plan(more="  output: {access_mode: ReadWriteOnce}\n")
    state.add(*submitted(made), running(made, "trainer", 0, node="n2"))
    found = output(cluster)
    assert found.node == "n2"
    affinity = reader_pod("team", "ctr", "r", found)["spec"]["affinity"]["nodeAffinity"]
    assert json.dumps(affinity).count('"n2"') == 1
    state.add(ended(made, "trainer", 0, 0))
    assert output(cluster).node is None, "nobody holds it any more"


def test_a_folder_of_a_node_is_read_where_the_chief_wrote(state, cluster):
    made = plan(more="  output: {host_path: /home/work}\n")
    state.add(*submitted(made), running(made, "pserver", 0, node="n1"), ended(made, "trainer", 0, 0))
    found = output(cluster)
    assert found.node == "n1"
    assert found.words == "folder `/home/work` of a node"
    assert found.pod_fields["nodeSelector"] == {"nodeType": "model"}


def test_the_output_of_a_job_that_is_gone_can_be_read(state, cluster):
    items = submitted(plan())
    claim = next(item for item in items if item["kind"] == "PersistentVolumeClaim")
    state.add(claim)
    with pytest.raises(StateError, match="which image"):
        output(cluster)
    claim["metadata"]["annotations"] = {"clickmill.io/image": "clickmill:old"}
    state.add(claim)
    found = output(cluster)
    assert (found.image, found.volume) == (
        "clickmill:old",
        {"persistentVolumeClaim": {"claimName": "ctr-output"}},
    )


def test_a_claim_that_is_gone_is_told(state, cluster):
    state.add(job_object(plan()))
    with pytest.raises(NotFoundError, match="no claim `ctr-output`"):
        output(cluster)
