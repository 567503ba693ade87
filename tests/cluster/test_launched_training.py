"""Real servers and trainers, started in every way that there is: each trains all samples."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clickmill import _core
from clickmill.cli.exits import DATA
from tests.cluster.process import run as run_forked
from tests.cluster.ssh_daemon import ADDRESSES, ssh_daemon, why_not

NUM_ROWS = 4000
DEADLINE_SECONDS = 240
CLICKMILL = (sys.executable, "-m", "clickmill")
RUN = (sys.executable, "-m", "clickmill.run", "-m", "config.yaml", "-b", "backend.yaml")
"""As users of the seeds type it."""

CONFIG = """\
workspace: "."
mode: train
runner:
- {name: train, class: CLASS, server_num: 2, worker_num: 2, output_path: run, distribute_strategy: async}
dataset:
- {name: log, data_path: FOLDER/train.tsv, format: criteo, batch_size: 128, validation: {fraction: 0.1}}
phase:
- {name: only, model: dnn, dataset_name: log}
hyper_parameters: {sparse_feature_dim: 4, fc_sizes: [8], optimizer: {class: Adam}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _core.synth(json.dumps({"path": str(tmp_path / "train.tsv"), "rows": NUM_ROWS}), None)
    return tmp_path


def write_config(folder: Path, class_name: str) -> None:
    text = CONFIG.replace("CLASS", class_name).replace("FOLDER", str(folder))
    (folder / "config.yaml").write_text(text)


def run(folder: Path, *command: str, **environ: str) -> str:
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def assert_trained(summary: dict[str, Any], folder: Path) -> None:
    """All samples are trained on or validated with, and the checkpoint scores them as the run did."""
    assert summary["train"]["count"] + summary["validation"]["count"] == NUM_ROWS
    assert summary.get("samples", summary["train"]["count"]) == summary["train"]["count"]
    evaluated = run_forked(folder, "evaluate", "-m", "config.yaml", "--json")
    evaluated.succeed()
    auc = json.loads(evaluated.words.splitlines()[-1])["auc"]
    assert auc == pytest.approx(summary["validation"]["auc"], abs=1e-6)


@pytest.mark.parametrize("strategy", ["async", "geo"])
def test_one_command_trains_on_this_machine(folder: Path, strategy: str) -> None:
    write_config(folder, "local_cluster_train")
    settings = ("--set", f"runner.0.distribute_strategy={strategy}", "--set", "runner.0.cluster.geo_step=5")
    (summary,) = json.loads(run(folder, *CLICKMILL, "train", "-m", "config.yaml", "--json", *settings))
    assert_trained(summary, folder)


def test_a_job_for_this_machine_is_trained_here(folder: Path) -> None:
    write_config(folder, "cluster_train")
    (folder / "backend.yaml").write_text("backend: local\nsubmit: {k8s_ps_num: 1, k8s-trainers: 2}\n")
    (summary,) = json.loads(run(folder, *RUN, "--json"))
    assert_trained(summary, folder)
    logs = sorted(path.stem for path in (folder / "run/logs").glob("*.log"))
    assert logs == ["pserver-0", "trainer-0", "trainer-1"]


def test_a_job_whose_data_is_empty_ends_as_wrong_data(folder: Path) -> None:
    write_config(folder, "cluster_train")
    (folder / "train.tsv").write_text("")
    (folder / "backend.yaml").write_text("backend: local\nsubmit: {k8s_ps_num: 1, k8s_trainers: 2}\n")
    command = (
        *CLICKMILL,
        "submit",
        "-m",
        "config.yaml",
        "-b",
        "backend.yaml",
        "--json",
        "--set",
        "dataset.0.validation=null",
    )
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert result.returncode == DATA, result.stderr
    told = json.loads(result.stderr.splitlines()[-1])["error"]
    assert told["kind"] == "DataError"
    assert "pass 0 has found no sample in any file of the data; look at what `data_path`" in told["message"]
    assert "started again" not in result.stderr


def test_a_run_goes_on_in_another_folder_with_others_and_more_passes(folder: Path) -> None:
    write_config(folder, "local_cluster_train")
    train = (*CLICKMILL, "train", "-m", "config.yaml", "--json", "--set", "runner.0.distribute_strategy=sync")
    run(folder, *train)
    (folder / "run").rename(folder / "moved")
    changes = (
        "output_path=moved",
        "epochs=2",
        "worker_num=1",
        "server_num=1",
        "cluster.snapshot_interval_s=7",
    )
    options = [word for change in changes for word in ("--set", f"runner.0.{change}")]
    (summary,) = json.loads(run(folder, *train, *options, "--resume"))
    assert summary["train"]["count"] + summary["validation"]["count"] == NUM_ROWS
    assert summary["samples"] == 2 * summary["train"]["count"], "of both passes"


def test_roles_come_from_the_environment_of_the_seeds(folder: Path) -> None:
    write_config(folder, "cluster_train")
    (folder / "backend.yaml").write_text("backend: PaddleCloud\n")  # not read: a worker does not submit
    ports = free_ports(2)
    addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
    shared = {
        "PADDLE_PSERVERS_IP_PORT_LIST": addresses,
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_PSERVERS_NUM": "2",
        "CLICKMILL_TOKEN": "a secret of this test alone",
        "PADDLE_PADDLEREC_ROLE": "WORKER",
        "PADDLEREC_CLUSTER_TYPE": "K8S",
    }
    roles = [
        {"TRAINING_ROLE": "PSERVER", "PADDLE_PSERVER_ID": "0", "PADDLE_PORT": str(ports[0])},
        {"TRAINING_ROLE": "PSERVER", "PADDLE_PSERVER_ID": "1", "PADDLE_PORT": str(ports[1])},
        {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"},
        {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"},
    ]
    processes = [
        subprocess.Popen(
            (*RUN, "--json"),
            cwd=folder,
            env={**os.environ, **shared, "POD_IP": "127.0.0.1", **role},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role in roles
    ]
    outcomes = [process.communicate(timeout=DEADLINE_SECONDS) for process in processes]
    for process, (_, stderr) in zip(processes, outcomes, strict=True):
        assert process.returncode == 0, stderr
    assert_trained(json.loads(outcomes[2][0].splitlines()[-1]), folder)


HAS_MPI = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="mpirun is not installed (Debian: openmpi-bin)"
)
MPI_OPTIONS = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none")


def write_mpi(folder: Path, nodes: int) -> None:
    (folder / "backend.yaml").write_text(
        f"backend: MPI\nsubmit: {{nodes: {nodes}}}\nmpi: {{arguments: {' '.join(MPI_OPTIONS)}}}\n"
    )


@HAS_MPI
@pytest.mark.parametrize("mode", ["ps", "collective"])
def test_output_of_ranks_that_is_no_terminal_is_plain(folder: Path, mode: str) -> None:
    write_config(folder, "cluster_train")
    write_mpi(folder, 2)
    output = run(folder, *RUN, "--set", f"runner.0.fleet_mode={mode}")
    assert "logloss" in output
    assert "\x1b" not in output
    checkpoint = next(line for line in output.splitlines() if "checkpoint" in line)
    assert checkpoint.rstrip().endswith("run/checkpoints/0"), "it is not folded either"


@HAS_MPI
def test_ranks_of_mpi_train(folder: Path) -> None:
    write_config(folder, "cluster_train")
    write_mpi(folder, 2)
    (summary,) = json.loads(run(folder, *RUN, "--json"))
    assert_trained(summary, folder)
    train = (*CLICKMILL, "train", "-m", "config.yaml")
    resumed = ("mpirun", *MPI_OPTIONS, "-n", "4", *train, "--json", "--resume")
    (again,) = json.loads(run(folder, *resumed))
    assert again == summary, "a run that is over was not left as it is"


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("mode", ["ps", "collective"])
def test_hosts_train_over_ssh(folder: Path, tmp_path_factory: pytest.TempPathFactory, mode: str) -> None:
    write_config(folder, "cluster_train")
    text = (folder / "config.yaml").read_text().replace("output_path: run", f"output_path: {folder}/run")
    (folder / "config.yaml").write_text(text)
    with ssh_daemon(tmp_path_factory.mktemp("sshd")) as daemon:
        user = "root" if os.geteuid() == 0 else os.environ["USER"]
        hosts = [f"{user}@{address}:{daemon.port}" for address in ADDRESSES]
        lines = [
            f"hosts: {json.dumps(hosts)}",
            f"root_dir: {folder}/jobs",
            "port: 0",
            f"python: {sys.executable}",
            f"ssh_config: {daemon.ssh_config}",
        ]
        (folder / "hosts.yaml").write_text("\n".join(lines) + "\n")
        (folder / "backend.yaml").write_text("backend: ssh\n")
        output = run(folder, *RUN, "--json", "--set", f"runner.0.fleet_mode={mode}")
    result = json.loads(output)
    summary = result["summary"]
    assert_trained(summary[0] if mode == "collective" else summary, folder)
    assert sorted(path.name for path in Path(result["job"]).glob("*.yaml")) == ["config.yaml"]
    for node in (0, 1):
        assert (folder / result["logs"] / f"node-{node}/train.log").exists()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at this moment, for roles that must know them before they start."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
