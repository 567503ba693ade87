"""The submission folder of PaddleCloud: what its files say, who can read them, what is sent."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

import clickmill
from clickmill.errors import ClickmillError, ConfigError, StorageError
from clickmill.submit.load import load_request
from clickmill.submit.paddlecloud.api import plan, prepare, submit
from clickmill.submit.paddlecloud.client import find_reply, named_job
from clickmill.submit.paddlecloud.folder import folder_name, generate
from clickmill.submit.paddlecloud.job_script import CREDENTIALS
from clickmill.submit.private import write_private_folder
from tests.small_files import small_files

from .golden.write import golden_files
from .jobs import KINDS, SECRETS, request, write_job

GOLDEN = Path(__file__).parent / "golden"
WRITTEN = ("before_hook.sh", "config.ini", "job.sh", "end_hook.sh")


def ini(text: str) -> dict[str, str]:
    """Lines of config.ini as a shell reads them."""
    pairs = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: value.strip('"') for name, _, value in pairs}


@pytest.mark.parametrize("name", WRITTEN)
def test_files_are_the_golden_ones(kind: str, name: str) -> None:
    expected = (GOLDEN / kind / name).read_text(encoding="utf-8")
    assert golden_files()[name] == expected, "run `python -m tests.unit.submit.golden.write`"


def communicator(threads: int) -> dict[str, str]:
    flags = {"is_sgd_optimizer": 0, "thread_pool_size": 32, "fake_rpc": 0}
    flags |= dict.fromkeys(("send_queue_size", "max_merge_var_num", "max_send_grad_num_before_recv"), threads)
    return {f"FLAGS_communicator_{key}": str(value) for key, value in flags.items()} | {
        "FLAGS_rpc_retry_times": "3"
    }


SHARED = {
    "fs_name": "afs://xxx.com",
    "fs_ugi": SECRETS["CLICKMILL_FS_UGI"],
    "output_path": "/user/me/out",
    "PADDLE_PADDLEREC_ROLE": "WORKER",
    "use_python3": "1",
    "CPU_NUM": "4",
    "GLOG_v": "0",
    **communicator(4),
}
"""config.ini of the original has these in every kind of job."""
OF_CLUSTER = {
    "mpi": {
        "storage_type": "hdfs",
        "force_reuse_output_path": "True",
        "FLAGS_rpc_deadline": "300000",
        "train_data_path": "/user/me/train",
        "test_data_path": "/user/me/test",
        "thirdparty_path": "/user/me/more",
        "PADDLEREC_CLUSTER_TYPE": "MPI",
    },
    "k8s": {
        "mount_afs": "true",
        "AFS_REMOTE_MOUNT_POINT": "/user/me/mount",
        "afs_local_mount_point": "/root/paddlejob/workspace/env_run/afs/",
        "PADDLEREC_CLUSTER_TYPE": "K8S",
    },
}


def test_config_ini_says_what_the_original_says(kind: str) -> None:
    job = prepare(request("phase.0.thread_num=4"), token="a-token")
    found = ini({file.name: file.content for file in generate(job)}["config.ini"])
    assert found == {**SHARED, **OF_CLUSTER[kind.partition("_")[0]], "CLICKMILL_TOKEN": "a-token"}


def test_knobs_of_backend_yaml_are_in_config_ini(kind: str) -> None:
    knobs = "{FLAGS_communicator_is_sgd_optimizer: 1, send_queue_size: 5, FLAGS_rpc_retry_times: 7}"
    job = prepare(request(f"config.communicator={knobs}"))
    found = ini({file.name: file.content for file in generate(job)}["config.ini"])
    assert found["FLAGS_communicator_is_sgd_optimizer"] == "1"
    assert found["FLAGS_communicator_send_queue_size"] == "5"
    assert found["FLAGS_rpc_retry_times"] == "7"
    assert found["FLAGS_communicator_max_merge_var_num"] == "1"


ARGUMENTS = {
    "mpi": {
        "--mpi-priority": "high",
        "--mpi-wall-time": "2000:00:00",
        "--mpi-nodes": "2",
        "--is-standalone": "0",
        "--permission": "group",
    },
    "k8s_collective": {
        "--k8s-priority": "high",
        "--wall-time": "2000:00:00",
        "--k8s-trainers": "2",
        "--k8s-cpu-cores": "4",
        "--k8s-gpu-cards": "1",
        "--is-standalone": "0",
        "--distribute-job-type": "NCCL2",
    },
    "k8s_ps_cpu": {
        "--k8s-priority": "high",
        "--wall-time": "2000:00:00",
        "--k8s-trainers": "2",
        "--k8s-cpu-cores": "4",
        "--k8s-ps-num": "2",
        "--k8s-ps-cores": "4",
        "--is-standalone": "0",
        "--distribute-job-type": "PSERVER",
    },
}
"""What the client of the original is given in each kind of job."""

CLIENT = """\
#!/bin/sh
printf '%s\\n' "$@" > "$CALLS"
echo "Start checking your job configuration, please be patient."
echo "Congratulations! The new job is ready for training, $3."
if [ -n "$FAILS" ]; then echo "no quota for $5" >&2; exit 3; fi
echo '{'; echo '    "groupName": "mine",'; echo '    "jobId": "job-1", "userId": "u-1"'; echo '}'
"""


@pytest.fixture
def calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client on PATH that writes down what it is called with."""
    (folder / "bin").mkdir()
    (folder / "bin/paddlecloud").write_text(CLIENT)
    (folder / "bin/paddlecloud").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(folder / "calls"))
    monkeypatch.delenv("FAILS", raising=False)
    return folder / "calls"


def called_with(calls: Path) -> tuple[dict[str, str], list[str]]:
    """Options of the client by name, and the files."""
    words = calls.read_text().splitlines()
    assert words[0] == "job"
    assert words[5] == "train"
    assert words[-1] == "--json"
    words = [*words[1:5], *words[6:-1]]
    files = [word for word in words if word.startswith("./") and " " not in word]
    words = [word for word in words if word not in files and word != "--files"]
    return dict(zip(words[::2], words[1::2], strict=True)), files


def test_client_is_called_as_by_the_original(kind: str, calls: Path) -> None:
    outcome = submit(request())
    options, files = called_with(calls)
    assert options == {
        "--ak": SECRETS["CLICKMILL_AK"],
        "--sk": SECRETS["CLICKMILL_SK"],
        "--job-name": "PaddleRec_CTR",
        "--group-name": "mine",
        "--job-version": "paddle-fluid-v1.7.1",
        "--job-conf": "config.ini",
        "--start-cmd": "python -m clickmill.run -m ./config.yaml",
        **ARGUMENTS[kind],
    }
    assert files == sorted(f"./{name}" for name in (*WRITTEN, "config.yaml", "backend.yaml", "model.py"))
    assert outcome.facts["reply"] == {"groupName": "mine", "jobId": "job-1", "userId": "u-1"}
    assert outcome.facts["is_submitted"]
    assert outcome.failure is None


def test_lines_are_told_in_the_order_that_users_know(
    kind: str, calls: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    outcome = submit(request())
    device, cluster = ("gpu" if kind == "k8s_collective" else "cpu"), kind.partition("_")[0]
    assert [record.message for record in caplog.records] == [
        f"The task submission folder is generated at {outcome.facts['folder']}",
        "before_submit",
        f"gen {device} before_hook.sh",
        f"gen {cluster}_config.ini",
        f"gen {cluster}_job.sh",
        "gen end_hook.sh",
        "Start checking your job configuration, please be patient.",
        "Congratulations! The new job is ready for training, ***.",
        "{",
        '    "groupName": "mine",',
        '    "jobId": "job-1", "userId": "u-1"',
        "}",
        "end submit",
    ]


def test_client_that_fails_is_told_without_secrets(
    kind: str, calls: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(ClickmillError, match="ended with 3; the job has not been submitted") as error:
        submit(request())
    assert "sh job.sh" in str(error.value.hint)
    assert "no quota for ***" in caplog.text
    assert not any(secret in caplog.text for secret in SECRETS.values())


def test_without_the_client_the_folder_is_made_and_the_command_told(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    outcome = submit(request())
    assert outcome.failure is not None
    assert "has not been submitted: there is no client `paddlecloud`" in str(outcome.failure)
    assert f"cd {outcome.facts['folder']} && sh job.sh" in str(outcome.failure.hint)
    assert not outcome.facts["is_submitted"]
    (made,) = folder.glob("PaddleRec_CTR_*")
    assert re.fullmatch(r"PaddleRec_CTR_\d{12}", made.name)
    assert {path.name for path in made.iterdir()} == {*WRITTEN, "config.yaml", "backend.yaml", "model.py"}


def test_command_for_a_folder_is_one_for_a_shell(
    kind: str, calls: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    place = folder / "it's $HOME"
    place.mkdir()
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(ClickmillError) as error:
        submit(request(), parent=place)
    monkeypatch.delenv("FAILS")
    command = re.search("`(.*)`", str(error.value.hint))
    assert command is not None
    subprocess.run(["sh", "-c", command[1]], cwd="/", check=True, capture_output=True)


def test_folder_that_could_not_be_written_whole_is_gone(kind: str, calls: Path, folder: Path) -> None:
    with small_files(100), pytest.raises(StorageError, match="cannot write"):
        submit(request())
    assert not list(folder.glob("PaddleRec_CTR_*"))
    assert not calls.exists()


def test_folder_can_be_submitted_again_from_anywhere(kind: str, calls: Path, folder: Path) -> None:
    made = submit(request()).facts["folder"]
    calls.unlink()
    subprocess.run(["sh", f"{made}/job.sh"], cwd="/", check=True, capture_output=True)
    assert called_with(calls)[0]["--job-name"] == "PaddleRec_CTR"


def test_second_job_of_a_minute_has_a_folder_of_its_own(kind: str, calls: Path) -> None:
    first, second = (Path(submit(request()).facts["folder"]) for _ in range(2))
    assert first != second
    assert first.is_dir()
    assert second.is_dir()


def test_single_card_is_a_standalone_job(folder: Path, secrets: tuple[str, ...], calls: Path) -> None:
    write_job(folder, *KINDS["k8s_collective"])
    submit(request("submit.k8s_trainers=1"))
    options, _ = called_with(calls)
    assert (options["--is-standalone"], options["--job-remark"]) == ("1", "single-gpu")
    assert "--distribute-job-type" not in options
    submit(request("submit.k8s_trainers=1", "submit.k8s_gpu_card=4"))
    assert called_with(calls)[0]["--job-remark"] == "single-trainer"


# Secrets


def test_nothing_in_the_folder_can_be_read_by_others(kind: str, calls: Path) -> None:
    made = Path(submit(request()).facts["folder"])
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o600}


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
def test_umask_lets_nobody_read_what_is_made(kind: str, calls: Path, folder: Path) -> None:
    made = Path(submit(request()).facts["folder"])
    write_private_folder(folder / "new/plan", plan(request()).files)
    (folder / "empty").mkdir()
    write_private_folder(folder / "empty", plan(request()).files)
    for each in (made, folder / "new/plan", folder / "empty"):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in each.iterdir()} == {0o600}


def test_another_backend_yaml_brings_no_secret_into_the_folder_or_the_plan(
    kind: str, calls: Path, folder: Path
) -> None:
    ak, sk, ugi = (SECRETS[name] for name in ("CLICKMILL_AK", "CLICKMILL_SK", "CLICKMILL_FS_UGI"))
    other = f"config: {{fs_ugi: '{ugi}'}}\nsubmit: {{ak: {ak}, sk: {sk}x}}\n"
    (folder / "backend_cloud.yaml").write_text(other)
    made = Path(submit(request()).facts["folder"])
    assert (made / "backend_cloud.yaml").read_text() == 'config: {fs_ugi: ""}\nsubmit: {ak: "", sk: ""}\n'
    outcome = plan(request())
    shown = json.dumps([outcome.facts, outcome.files])
    assert not any(secret in shown for secret in (ak, sk, ugi))


def holders(made: Path, secret: str) -> set[str]:
    return {path.name for path in made.iterdir() if secret in path.read_text()}


def test_keys_of_the_environment_are_written_nowhere(kind: str, calls: Path) -> None:
    made = Path(submit(request()).facts["folder"])
    assert holders(made, SECRETS["CLICKMILL_AK"]) == set()
    assert holders(made, SECRETS["CLICKMILL_SK"]) == set()
    assert holders(made, SECRETS["CLICKMILL_FS_UGI"]) == {"config.ini"}


def test_keys_of_files_are_in_one_that_is_not_uploaded(
    folder: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_job(folder, *KINDS["mpi"])
    text = (
        (folder / "backend.yaml")
        .read_text()
        .replace('ak: ""', "ak: it's-me")
        .replace('sk: ""', "sk_file: sk")
    )
    (folder / "backend.yaml").write_text(text)
    (folder / "sk").write_text("key-secret")
    (folder / "sk").chmod(0o600)
    made = Path(submit(request()).facts["folder"])
    assert holders(made, "it's-me") | holders(made, "key-secret") <= {CREDENTIALS}
    options, files = called_with(calls)
    assert (options["--ak"], options["--sk"]) == ("it's-me", "key-secret")
    assert f"./{CREDENTIALS}" not in files
    assert stat.S_IMODE((made / CREDENTIALS).stat().st_mode) == 0o600


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_blanks_around_keys_of_the_environment_do_not_count(
    kind: str, calls: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    ak, sk = (SECRETS[name] for name in ("CLICKMILL_AK", "CLICKMILL_SK"))
    monkeypatch.setenv("CLICKMILL_AK", f" {ak}\r")
    monkeypatch.setenv("CLICKMILL_SK", f"\t{sk}\n")
    made = submit(request()).facts["folder"]
    for _ in range(2):
        options, _ = called_with(calls)
        assert (options["--ak"], options["--sk"]) == (ak, sk)
        subprocess.run([shell, f"{made}/job.sh"], check=True, capture_output=True)


def test_words_of_the_client_show_no_part_or_form_of_a_secret(
    kind: str, calls: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    monkeypatch.setenv("CLICKMILL_FS_UGI", "root,hunter2secret")
    monkeypatch.setenv("CLICKMILL_AK", "a/key+id")
    told = ["hunter2secret", "aHVudGVyMnNlY3JldA==", "a%2Fkey%2Bid", "YS9rZXkraWQ="]
    client = CLIENT.replace('echo "Start', f"echo 'words {' '.join(told)}'; echo \"Start")
    (folder / "bin/paddlecloud").write_text(client)
    submit(request())
    (line,) = (record.message for record in caplog.records if record.message.startswith("words"))
    assert re.fullmatch(r"words \*\*\* \S?\*\*\*\S{0,4} \*\*\* \S?\*\*\*\S{0,4}", line)


def test_short_password_is_masked_where_it_is_a_word(
    kind: str, calls: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    monkeypatch.setenv("CLICKMILL_FS_UGI", "root,try")
    client = CLIENT.replace('echo "Start', "echo 'password try: retry of an entry'; echo \"Start")
    (folder / "bin/paddlecloud").write_text(client)
    submit(request())
    assert "password ***: retry of an entry" in caplog.text


def test_plan_masks_secrets_and_makes_nothing(kind: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    outcome = plan(request())
    shown = json.dumps([outcome.facts, outcome.files])
    assert not any(secret in shown for secret in SECRETS.values())
    assert "fs_ugi=***" in outcome.files["config.ini"]
    assert "CLICKMILL_TOKEN=***" in outcome.files["config.ini"]
    assert sorted(folder.iterdir()) == before


def test_every_job_has_a_token_of_its_own(kind: str) -> None:
    assert prepare(request()).credentials.token != prepare(request()).credentials.token


# Data


def data_notes(*overrides: str) -> dict[str | None, str]:
    """What is told of paths that nodes would read, by key."""
    notes = request(*overrides).check()
    return {note.key: note.message for note in notes if "nodes will find nothing at" in note.message}


@pytest.mark.parametrize(
    "path",
    ["/data/log", "./log/day-*", "{workspace}/missing.tsv", "../train_data", "{workspace}/train_data.tsv"],
)
def test_data_that_nothing_brings_to_the_nodes_is_warned_of(kind: str, path: str) -> None:
    told = data_notes(f'dataset.0.data_path="{path}"', "runner.0.init_model_path=before")
    assert set(told) == {"dataset.0.data_path", "runner.0.init_model_path"}
    if kind == "mpi":
        has = "`./train_data`, `./test_data`, `./thirdparty`, from `config.train_data_path`, "
    else:
        has = "`./afs`, from `config.afs_remote_mount_point`; name a path in there, or a URL"
    assert has in told["dataset.0.data_path"]


def test_each_type_of_cluster_has_folders_of_its_own(kind: str) -> None:
    own, other = ["train_data", "test_data", "thirdparty"], ["afs"]
    if kind != "mpi":
        own, other = [*other, "/root/paddlejob/workspace/env_run/afs"], own
    for folder in own:
        assert data_notes(f"dataset.0.data_path={folder}/day-*") == {}
    for folder in other:
        assert list(data_notes(f"dataset.0.data_path={folder}/day-*")) == ["dataset.0.data_path"]


def test_data_at_a_url_or_among_the_files_is_found_by_nodes(kind: str, folder: Path) -> None:
    (folder / "log.tsv").touch()
    for path in ("hdfs://there/log", "s3://bucket/log", "log.tsv", "{workspace}/log.tsv"):
        assert data_notes(f'dataset.0.data_path="{path}"', "submit.files='*.py *.yaml *.tsv'") == {}


# What nodes do


def test_before_hook_installs_this_version_of_clickmill(kind: str, folder: Path) -> None:
    said = run_hook(folder, kind)
    assert said[0] == "Run before_hook.sh ..."
    assert said[-1] == "End before_hook.sh ..."
    assert f"-m pip install clickmill[train]=={clickmill.__version__}" in said
    assert any("torch.cuda" in line for line in said) == (kind == "k8s_collective")


def test_wheel_of_this_machine_travels_and_is_installed(kind: str, folder: Path, calls: Path) -> None:
    (folder / "dist").mkdir()
    (folder / "dist/clickmill-9-py3-none-any.whl").write_bytes(b"\xff")
    made = Path(submit(request("config.install=dist/clickmill-9-py3-none-any.whl")).facts["folder"])
    assert (made / "clickmill-9-py3-none-any.whl").read_bytes() == b"\xff"
    assert "'./clickmill-9-py3-none-any.whl[train]'" in (made / "before_hook.sh").read_text()


def test_wheel_that_is_not_there_is_an_error(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.install`: there is no file `no\.whl`"):
        plan(request("config.install=no.whl"))
    with pytest.raises(ConfigError, match=r"config\.install`: there is no file `xxx"):
        plan(request(f"config.install={'x' * 300}.whl"))
    with pytest.raises(ConfigError, match=r"config\.install`: `~no-such-user/a\.whl` begins with"):
        plan(request("config.install=~no-such-user/a.whl"))


def test_old_python_on_a_node_is_told(kind: str, folder: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        run_hook(folder, kind, fails="version_info")
    assert "needs Python 3.11 or newer" in error.value.stderr


def run_hook(folder: Path, kind: str, fails: str = "nothing") -> list[str]:
    """Lines of before_hook.sh on a node whose python tells what it is asked for."""
    (folder / "node").mkdir()
    python = f'#!/bin/sh\necho "$@"\ncase "$*" in *{fails}*) exit 1;; esac\n'
    (folder / "node/python").write_text(python)
    (folder / "node/python").chmod(0o755)
    (folder / "before_hook.sh").write_text(plan(request()).files["before_hook.sh"])
    done = subprocess.run(
        ["sh", "before_hook.sh"],
        env={"PATH": f"{folder}/node:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


# Start command


def test_overrides_of_config_yaml_reach_the_nodes(kind: str) -> None:
    job = prepare(request("runner.0.epochs=7", "submit.job_name=other"))
    assert job.start_command == "python -m clickmill.run --set runner.0.epochs=7 -m ./config.yaml"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python -m paddlerec.run -m ./other.yaml", "name the same in both"),
        ("python -m paddlerec.run -m conf/config.yaml", "name the same in both"),
        ("python -m paddlerec.run -m backend.yaml", "name the same in both"),
        ('""', "is empty, so nodes could not run it"),
        ('"python -m paddlerec.run -m \'config.yaml"', "has a quote that does not end"),
        ("python other.py", "runs `other.py`, which is not among the files of the job"),
    ],
)
def test_start_command_must_train_what_is_submitted(kind: str, command: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        plan(request(f"submit.start_cmd={command}"))
    assert error.value.problems[0].key == "submit.start_cmd"


def test_nodes_run_what_is_submitted_where_no_start_command_is_written(kind: str, folder: Path) -> None:
    (folder / "config.yaml").rename(folder / "my job.yaml")
    lines = (folder / "backend.yaml").read_text().splitlines()
    (folder / "backend.yaml").write_text("\n".join(line for line in lines if "start_cmd" not in line))
    job = prepare(load_request("my job.yaml", "backend.yaml", ["submit.files='*.py *.yaml'"]))
    assert job.start_command == "python -m clickmill.run -m 'my job.yaml'"


def test_folders_of_a_start_command_are_not_on_the_nodes(kind: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    for name in ("config.yaml", "model.py"):
        (folder / name).rename(folder / "sub" / name)
    start = ["submit.start_cmd=python -m paddlerec.run -m sub/config.yaml", "submit.files=sub/*"]
    with pytest.raises(ConfigError, match=r"nodes have it as `config\.yaml`"):
        plan(load_request("sub/config.yaml", "backend.yaml", start))


@pytest.mark.parametrize(
    "command",
    ["sh train.sh", "python ./model.py", "python -m paddlerec.run -m paddlerec.models.rank.dnn"],
)
def test_start_command_of_another_kind_is_taken(kind: str, command: str, folder: Path) -> None:
    (folder / "train.sh").touch()
    files = "submit.files='*.py *.yaml *.sh'"
    assert (
        shlex.quote(command).replace("paddlerec.run", "clickmill.run")
        in plan(request(f"submit.start_cmd={command}", files)).files["job.sh"]
    )


@pytest.mark.parametrize(
    "command",
    [
        "sh run.sh",
        "bash ./run.sh; true",
        "/bin/bash -ex -o pipefail -eO extglob --norc run.sh --fast",
        "set -e; export A=1 && B=2 sh -- run.sh > log",
        "sh run.sh && python -m paddlerec.run -m ./config.yaml",
        "sh run.sh;python -m paddlerec.run -m ./config.yaml",
    ],
)
def test_script_of_a_shell_must_be_among_the_files(kind: str, folder: Path, command: str) -> None:
    start = f"submit.start_cmd='{command}'"
    with pytest.raises(ConfigError, match=r"run\.sh`, which is not among the files of the job") as error:
        plan(request(start))
    assert [problem.key for problem in error.value.problems] == ["submit.start_cmd"]
    (folder / "run.sh").touch()
    plan(request(start, "submit.files='*.py *.yaml *.sh'"))


@pytest.mark.parametrize(
    "command",
    [
        'sh -c "date; env"',
        "bash -lc date",
        "sh -s < model.py",
        "echo date | sh",
        "sh /opt/run.sh",
        "sh $HOME/run.sh",
        "sh ./end_hook.sh",
        "python $HOME/run.py",
        "sh && true",
        "cd afs && sh run.sh && cd .. && python -m paddlerec.run -m ./config.yaml",
        "cp afs/run.sh . && sh run.sh",
        "echo date > run.sh && sh run.sh",
        "sh ~/run.sh",
    ],
)
def test_shell_that_runs_no_file_of_the_job_is_taken(kind: str, command: str) -> None:
    plan(request(f"submit.start_cmd='{command}'"))


def test_script_may_lie_in_a_folder_that_the_platform_fills(kind: str) -> None:
    place = "thirdparty" if kind == "mpi" else "afs"
    plan(request(f"submit.start_cmd=sh ./{place}/run.sh"))
    plan(request(f"submit.start_cmd=python {place}/run.py"))


def test_secret_in_what_is_changed_for_the_nodes_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"--set hyper_parameters\.note: .*holds a secret") as error:
        request("hyper_parameters.note=pass-word-1").check()
    assert "pass-word-1" not in str(error.value)


def test_file_with_the_name_of_a_written_one_is_refused(kind: str, folder: Path) -> None:
    (folder / "job.sh").touch()
    with pytest.raises(ConfigError, match="has the name of a file that is written for the platform"):
        plan(request("submit.files='*.py *.yaml *.sh'"))


def test_file_that_the_client_would_not_upload_is_refused(kind: str, folder: Path) -> None:
    (folder / ".params.yaml").touch()
    with pytest.raises(
        ConfigError, match=r"`\.params\.yaml` begins with `\.`, so nodes .*; rename it"
    ) as error:
        plan(request("submit.files='*.py *.yaml .params.yaml'"))
    (problem,) = error.value.problems
    assert (problem.file, problem.key) == ("--set submit.files", "submit.files")
    (folder / "config.yaml").rename(folder / ".config.yaml")
    start = "submit.start_cmd=python -m paddlerec.run -m .config.yaml"
    with pytest.raises(ConfigError, match="begins with") as error:
        plan(load_request(".config.yaml", "backend.yaml", [start]))
    assert [problem.file for problem in error.value.problems] == [".config.yaml"]


def test_needed_file_that_the_client_would_not_upload_is_told_at_its_key(kind: str, folder: Path) -> None:
    (folder / "model.py").rename(folder / ".model.py")
    with pytest.raises(ConfigError, match="begins with") as error:
        plan(request('phase.0.model="{workspace}/.model.py"', "submit.files='*.yaml'"))
    assert [problem.key for problem in error.value.problems] == ["phase.0.model"]


@pytest.mark.parametrize("name", ["$(touch hacked)", "a;b", "`id`", "it's"])
def test_texts_of_backend_yaml_are_texts_to_the_shell(
    kind: str, calls: Path, folder: Path, name: str
) -> None:
    submit(request(f'submit.group="{name}"'))
    assert called_with(calls)[0]["--group-name"] == name
    assert not (folder / "hacked").exists()


def test_name_of_a_folder_has_the_time_of_the_minute() -> None:
    assert folder_name("PaddleRec_CTR", datetime(2020, 7, 9, 13, 8, 59)) == "PaddleRec_CTR_202007091308"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("hello\n", {}),
        ('a {b} c\n{"jobId": 1}\nbye\n', {"jobId": 1}),
        ('config {} {"a": {"b": 1}}\n{"jobId": 2}\n', {"jobId": 2}),
        ('{"jobId": "job-1", "userId": "u"}\nuploaded {"files": 7}\n', {"jobId": "job-1", "userId": "u"}),
        ('{"code": 403} {"code": 404}', {"code": 404}),
        ("", {}),
    ],
)
def test_reply_of_the_platform_is_found_among_words(text: str, reply: dict[str, int]) -> None:
    assert find_reply(text) == reply


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ('{"groupName": "mine",\n"jobId": "job-1",\n"userId"', "job-1"),
        ('{"data": {"jobId":\n12}}', "12"),
        ('{"jobId": "old"} {"jobId": "job-2"}', "job-2"),
        ('{"jobId": "", "code": 403}', None),
        ('{"jobId": null, "userId": "u-1"} {"jobId": 0}', None),
        ('{"jobId": "job-', None),
    ],
)
def test_job_is_found_in_a_reply_that_may_have_no_end(text: str, job: str | None) -> None:
    assert named_job(text) == job
