"""Jobs that are commands of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clickmill.cli.ssh_cluster import choose_package
from clickmill.config import load_config
from clickmill.errors import ConfigError
from clickmill.submit.commands import local_overrides, mpi_command, run_mpi
from clickmill.submit.file_system import variables
from clickmill.submit.load import load_request
from clickmill.submit.plan import plan
from clickmill.submit.ssh import read_hosts, ssh_job
from tests.unit.config import examples

from .jobs import request, write_job

CONFIG = examples.MPI.replace("fleet_mode: ps", "fleet_mode: ps\n  server_num: 3\n  worker_num: 5")


def local(folder: Path, backend: str, config: str = CONFIG, *overrides: str) -> dict[str, object]:
    """What the runner of a local job is."""
    write_job(folder, config, backend)
    job = request(*overrides)
    runner = load_config("config.yaml", overrides=local_overrides(job)).runners()[0]
    return {
        "class": runner.class_name,
        "servers": runner.server_num,
        "workers": runner.worker_num,
        "queue": runner.communicator.send_queue_size,
    }


def test_job_for_this_machine_is_a_local_cluster_of_its_own_size(folder: Path) -> None:
    found = local(folder, "backend: Local\n")
    assert found == {"class": "local_cluster_train", "servers": 3, "workers": 5, "queue": 1}


@pytest.mark.parametrize(
    ("backend", "servers", "workers"),
    [
        ("backend: Local\nsubmit: {k8s_trainers: 2, k8s_ps_num: 1}\n", 1, 2),
        ("backend: Local\nsubmit: {k8s-trainers: 2}\n", 3, 2),
        ("backend: Local\ncluster_type: mpi\nsubmit: {nodes: 4, k8s_trainers: 2}\n", 4, 4),
    ],
)
def test_size_in_backend_yaml_counts_more(folder: Path, backend: str, servers: int, workers: int) -> None:
    found = local(folder, backend)
    assert (found["servers"], found["workers"]) == (servers, workers)


def test_knobs_and_overrides_reach_the_runner(folder: Path) -> None:
    knobs = "backend: Local\nconfig: {communicator: {FLAGS_communicator_send_queue_size: 9}}\n"
    found = local(folder, knobs, CONFIG, "runner.0.server_num=1")
    assert (found["queue"], found["servers"]) == (9, 1)


def test_single_process_stays_one(folder: Path) -> None:
    assert local(folder, "backend: Local\n", examples.SINGLE)["class"] == "train"


@pytest.mark.parametrize("sizes", ["k8s_trainers: 2, k8s_ps_num: 2", "k8s_trainers: 2"])
def test_single_process_becomes_the_cluster_that_the_backend_asks_for(folder: Path, sizes: str) -> None:
    found = local(folder, f"backend: Local\nsubmit: {{{sizes}}}\n", CONFIG, "runner.0.class=train")
    assert (found["class"], found["workers"]) == ("local_cluster_train", 2)
    overrides = local_overrides(load_request("paddlerec.models.rank.dnn", "backend.yaml"))
    runner = load_config("paddlerec.models.rank.dnn", overrides=overrides).runners()[0]
    assert (runner.class_name, runner.worker_num) == ("local_cluster_train", 2)


@pytest.mark.parametrize("name", ["Kubernetes", "MPI", "SSH"])
def test_single_process_is_one_of_a_cluster_on_every_backend_that_has_one(folder: Path, name: str) -> None:
    write_job(folder, CONFIG, f"backend: {name}\nsubmit: {{files: '*.py'}}\n")
    job = request("runner.0.class=train", "runner.0.fleet_mode=collective")
    assert job.runner.is_collective
    assert job.source.overrides[-1] == "runner.0.class=cluster_train"


def test_single_process_that_no_cluster_can_train_is_an_error(folder: Path) -> None:
    text = examples.SINGLE.replace("  phases: [phase1]\n", "")
    text += "- {name: second, model: dnn, dataset_name: dataloader_train}\n"
    write_job(folder, text, "backend: Local\nsubmit: {k8s_trainers: 2}\n")
    with pytest.raises(ConfigError, match="a cluster trains one phase, not 2"):
        request().check()
    assert request("submit={}").check() == ()


# What processes would refuse

CARDS = examples.COLLECTIVE.replace("device: gpu", "device: gpu\n  selected_gpus: '0,1'")


def refused(folder: Path, config: str, backend: str, *overrides: str) -> list[tuple[str | None, str | None]]:
    """Place and key of what is wrong with a job, told before anything is started."""
    write_job(folder, config, backend)
    with pytest.raises(ConfigError) as error:
        request(*overrides).check()
    assert all("--set" not in str(problem) for problem in error.value.problems)
    return [(problem.place, problem.key) for problem in error.value.problems]


@pytest.mark.parametrize(
    ("sizes", "key"),
    [
        ("cluster_type: k8s\nsubmit:\n  k8s_trainers: 2\n", "submit.k8s_trainers"),
        ("cluster_type: mpi\nsubmit:\n  nodes: 2\n", "submit.nodes"),
    ],
)
def test_more_workers_than_cards_are_told_where_backend_yaml_asks_for_them(
    folder: Path, sizes: str, key: str
) -> None:
    found = refused(folder, examples.COLLECTIVE, f"backend: Local\n{sizes}")
    assert found == [(f"backend.yaml:4:{len(key.partition('.')[2]) + 5}", key)]
    with pytest.raises(
        ConfigError, match=r"is 2, but `selected_gpus` names 1 card, and .*; name 2 cards there"
    ):
        request().check()
    write_job(folder, CARDS, f"backend: Local\n{sizes}")
    assert request().check() == ()


def test_more_workers_than_cards_are_told_where_the_runner_asks_for_them(folder: Path) -> None:
    config = examples.COLLECTIVE.replace("device: gpu", "device: gpu\n  worker_num: 3")
    line = next(number for number, text in enumerate(config.splitlines(), 1) if "worker_num" in text)
    assert refused(folder, config, "backend: Local\n") == [(f"config.yaml:{line}:15", "runner.0.worker_num")]


CLIPPED = CONFIG.replace("server_num: 3", "clip_norm: 1.0\n  distribute_strategy: sync\n  server_num: 3")


@pytest.mark.parametrize(
    ("backend", "size"),
    [
        ("backend: Local", "k8s_trainers: 2"),
        ("backend: MPI", "nodes: 2"),
        ("backend: Kubernetes\nkubernetes: {image: a/b:c}", "files: '*.py', k8s_trainers: 2"),
    ],
)
def test_size_that_counts_is_the_one_that_is_checked(folder: Path, backend: str, size: str) -> None:
    assert CLIPPED != CONFIG
    found = refused(folder, CLIPPED, f"{backend}\nsubmit: {{{size}}}\n", "runner.0.worker_num=1")
    assert [key for _, key in found] == ["runner.0.clip_norm"]
    one = size.replace(": 2", ": 1")
    write_job(folder, CLIPPED, f"{backend}\nsubmit: {{{one}}}\n")
    request("dataset.0.data_path=/data/log").check()  # the runner says 5


@pytest.mark.parametrize("backend", ["Local", "Kubernetes\nkubernetes: {image: a/b:c}"])
def test_folder_of_the_run_is_no_url(folder: Path, backend: str) -> None:
    write_job(folder, CONFIG, f"backend: {backend}\nsubmit: {{files: '*.py'}}\n")
    with pytest.raises(ConfigError, match="is a URL, and must be a path of this host"):
        request("runner.0.output_path=s3://bucket/run").check()


# The file system of the job

HDFS = 'data_path: "hdfs:///logs/x"'


def on_hdfs(folder: Path, backend: str) -> None:
    write_job(folder, CONFIG.replace('data_path: "{workspace}/train_data"', HDFS), backend)


@pytest.mark.parametrize("name", ["Local", "MPI"])
def test_file_system_of_the_job_is_a_variable_of_its_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = 'config: {fs_name: "hdfs://there:9000", fs_ugi: "me,pass-word"}'
    on_hdfs(folder, f"backend: {name}\n{files}\nmpi: {{mpirun: 'true'}}\n")
    job = request()
    assert variables(job) == {"CLICKMILL_FS_NAME": "hdfs://there:9000", "CLICKMILL_FS_UGI": "me,pass-word"}
    shown = plan(job)
    assert shown.facts["environment"]["CLICKMILL_FS_UGI"] == "***"
    assert shown.command_line.startswith("CLICKMILL_FS_NAME=hdfs://there:9000 CLICKMILL_FS_UGI='***' ")
    monkeypatch.setenv("CLICKMILL_FS_NAME", "afs://other")  # counts more, and is there already
    assert variables(request()) == {"CLICKMILL_FS_UGI": "me,pass-word"}


def test_hosts_know_the_file_system_of_the_job(folder: Path) -> None:
    on_hdfs(folder, 'backend: SSH\nconfig: {fs_name: "hdfs://there:9000", fs_ugi: "me,pass-word"}\n')
    (folder / "hosts.yaml").write_text("hosts: [me@one]\nenvironment: {A: b}\n")
    assert read_hosts(request()).environment == {"A": "b", "CLICKMILL_FS_NAME": "hdfs://there:9000"}
    assert "`environment` of the hosts has CLICKMILL_FS_NAME: hdfs://there:9000" in plan(request()).words
    (note,) = request().check()
    assert note.key == "config.fs_ugi"
    assert "CLICKMILL_FS_UGI_FILE in `environment` of `hosts.yaml`" in note.message
    (folder / "hosts.yaml").write_text(
        "hosts: [me@one]\nenvironment: {CLICKMILL_FS_NAME: afs://more, HADOOP_USER_NAME: me}\n"
    )
    assert read_hosts(request()).environment["CLICKMILL_FS_NAME"] == "afs://more"
    assert request().check() == ()


def test_variable_that_mpirun_leaves_behind_is_told(folder: Path) -> None:
    files = 'config: {fs_name: "hdfs://there:9000"}'
    on_hdfs(folder, f"backend: MPI\n{files}\nmpi: {{hostfile: hosts}}\n")
    (note,) = request().check()
    assert note.key == "config.fs_name"
    assert "`mpi.arguments: -x CLICKMILL_FS_NAME`" in note.message
    assert request("mpi.arguments=-x CLICKMILL_FS_NAME").check() == ()
    assert request("mpi.hostfile=''").check() == ()
    assert request("dataset.0.data_path=/data/log").check() == ()


def test_plan_of_a_local_job_is_its_command(folder: Path) -> None:
    write_job(folder, CONFIG, "backend: Local\n")
    outcome = plan(request())
    assert outcome.command_line.startswith("clickmill train -m config.yaml --set 'mode=\"ps_cluster\"'")


@pytest.mark.parametrize("backend", ["Local", "MPI", "SSH"])
def test_class_of_a_runner_is_named_once_in_the_command(folder: Path, backend: str) -> None:
    sizes = "nodes: 2" if backend == "MPI" else "k8s_trainers: 2"
    write_job(
        folder, CONFIG, f"backend: {backend}\nsubmit: {{{sizes}, files: '*.py'}}\nmpi: {{mpirun: 'true'}}\n"
    )
    (folder / "hosts.yaml").write_text("hosts: [me@one]\n")
    command = plan(request("runner.0.class=train", "dataset.0.data_path=/data/log")).facts["command"]
    own = "local_cluster_train" if backend == "Local" else "cluster_train"
    assert [word for word in command if word.startswith("runner.0.class=")] == [f"runner.0.class={own}"]


# MPI

MPI = """\
backend: MPI
submit: {nodes: 2}
mpi: {mpirun: "true", arguments: --oversubscribe --tag-output}
"""


def test_mpirun_starts_a_server_and_a_trainer_for_each_node(folder: Path) -> None:
    write_job(folder, CONFIG, MPI)
    command = mpi_command(request("runner.0.epochs=9"))
    assert Path(command[0]).name == "true"
    assert command[1:5] == ("-n", "4", "--oversubscribe", "--tag-output")
    assert command[5:8] == (sys.executable, "-m", "clickmill")
    sets = [command[index + 1] for index, word in enumerate(command) if word == "--set"]
    runner = load_config("config.yaml", overrides=sets).runners()[0]
    assert (runner.class_name, runner.server_num, runner.worker_num) == ("cluster_train", 2, 2)
    assert runner.epochs == 9


def test_mpirun_of_a_collective_job_has_workers_only(folder: Path) -> None:
    write_job(folder, examples.COLLECTIVE.replace("device: gpu", "device: cpu"), MPI)
    assert mpi_command(request())[1:3] == ("-n", "2")


def test_without_nodes_the_runner_says_how_many_ranks(folder: Path) -> None:
    write_job(folder, CONFIG, MPI.replace("submit: {nodes: 2}\n", ""))
    assert mpi_command(request())[1:3] == ("-n", "8")


def test_hosts_and_python_are_named(folder: Path) -> None:
    write_job(folder, CONFIG, MPI)
    (folder / "hosts").write_text("a slots=2\nb slots=2\n")
    command = mpi_command(request("mpi.hostfile=hosts", "mpi.python=/opt/python"), is_json=True)
    assert command[3:7] == ("--hostfile", "hosts", "--map-by", "node")
    assert "/opt/python" in command
    assert command[-1] == "--json"


@pytest.mark.parametrize(
    ("override", "key"),
    [("mpi.mpirun=no-such-command", "mpi.mpirun"), ("mpi.hostfile=no-such-file", "mpi.hostfile")],
)
def test_what_mpi_lacks_is_told_with_its_key(folder: Path, override: str, key: str) -> None:
    write_job(folder, CONFIG, MPI)
    with pytest.raises(ConfigError) as error:
        mpi_command(request(override))
    assert error.value.problems[0].key == key


def test_mpirun_that_is_no_program_is_told_with_its_key(folder: Path) -> None:
    write_job(folder, CONFIG, MPI)
    (folder / "mpirun").write_bytes(b"\0not a program")
    (folder / "mpirun").chmod(0o755)
    with pytest.raises(ConfigError, match="does not start: Exec format error") as error:
        run_mpi(request("mpi.mpirun=./mpirun"))
    assert error.value.problems[0].key == "mpi.mpirun"


def test_plan_of_mpi_can_be_made_where_mpi_is_not(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_job(folder, CONFIG, MPI)
    outcome = plan(request("mpi.mpirun=no-such-command"))
    assert outcome.facts["command"][0] == "no-such-command"
    assert "`mpi.mpirun`: there is no command `no-such-command` on this machine" in caplog.text


# ssh

SSH = "backend: SSH\nsubmit: {files: '*.py'}\nssh: {hosts_file: machines.yaml, max_restarts: 7}\n"


@pytest.fixture
def hosts(folder: Path) -> Path:
    write_job(folder, CONFIG.replace("{workspace}/model.py", "dnn"), SSH)
    (folder / "machines.yaml").write_text("hosts: [me@one, me@two]\n")
    return folder / "machines.yaml"


def test_hosts_get_the_files_of_the_job(folder: Path, hosts: Path) -> None:
    (folder / "data.txt").touch()
    with ssh_job(request(), lambda: None) as cluster:
        assert cluster.package is not None
        assert {path.name for path in cluster.package.iterdir()} == {"config.yaml", "model.py"}
        assert cluster.source.model == "config.yaml"
        assert cluster.max_restarts == 7
        package = cluster.package
    assert not package.exists()


def test_workspace_on_the_hosts_is_used_as_it_is(hosts: Path) -> None:
    with ssh_job(request("ssh.workspace=/data/job"), lambda: None) as cluster:
        assert (cluster.package, cluster.workspace) == (None, "/data/job")


def test_plan_of_an_ssh_job_names_hosts_and_files(hosts: Path) -> None:
    facts = plan(request()).facts
    assert facts["hosts"] == ["me@one", "me@two"]
    assert facts["files"] == ["config.yaml", "model.py"]
    assert facts["command"][:4] == ["clickmill", "ssh-cluster", "--hosts", "machines.yaml"]


def test_command_of_an_ssh_job_copies_the_files_of_the_job_alone(folder: Path, hosts: Path) -> None:
    (folder / "large.bin").touch()
    comment, command = plan(request()).command_line.splitlines()
    assert comment == (
        "# PACKAGE stands for a folder with config.yaml, model.py alone, which is copied to me@one, me@two"
    )
    assert command.startswith("clickmill ssh-cluster --hosts machines.yaml -p PACKAGE --max-restarts 7 -m")


def test_command_of_an_ssh_job_in_a_folder_of_the_hosts_copies_nothing(hosts: Path) -> None:
    outcome = plan(request("ssh.workspace=/data/job"))
    assert (outcome.facts["files"], outcome.words) == ([], "")
    assert "-j /data/job" in outcome.command_line


def test_built_in_model_needs_no_file_in_a_package(hosts: Path) -> None:
    job = load_request("dnn", "backend.yaml")
    command = plan(job).facts["command"]
    assert command[command.index("-m") + 1] == "dnn"
    assert choose_package(hosts.parent, "dnn") == (hosts.parent, "dnn")


def test_missing_hosts_are_told(hosts: Path) -> None:
    hosts.unlink()
    with pytest.raises(ConfigError, match=r"cannot read `machines\.yaml`"):
        plan(request())
