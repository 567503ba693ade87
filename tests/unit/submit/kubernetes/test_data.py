"""What a job reads must be somewhere: on a volume, among its files, on a file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.submit.kubernetes.data import data_overrides
from clickmill.submit.load import load_request
from tests.unit.submit.jobs import request, write_job

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train, phases: [first]}
- {name: other, class: cluster_train, phases: [second]}
dataset:
- name: log
  data_path: "{workspace}/train_data"
- name: unused
  data_path: "{workspace}/nowhere"
phase:
- {name: first, model: "{workspace}/model.py", dataset_name: log}
- {name: second, model: "{workspace}/model.py", dataset_name: unused}
"""
BACKEND = """\
backend: Kubernetes
config: {fs_name: "hdfs://there:9000"}
submit: {files: "*.py *.tsv"}
kubernetes: {image: registry.example/clickmill:1, namespace: team}
"""
MOUNTED = "kubernetes.volumes=[{name: data, claim: logs, mount: %s}]"
TRAIN_DATA = MOUNTED % "train_data"


@pytest.fixture(autouse=True)
def job(folder: Path) -> Path:
    write_job(folder, CONFIG, BACKEND)
    return folder


def notes(*overrides: str) -> dict[str | None, str]:
    return {note.key: note.message for note in request(*overrides).check()}


def test_data_that_nothing_brings_to_the_pods_is_told_with_its_line() -> None:
    (note,) = request().check()
    assert (note.file, note.line, note.key) == ("config.yaml", 8, "dataset.0.data_path")
    assert note.message == (
        "pods will find nothing at `/job/train_data`; mount a volume there by `kubernetes.volumes`, give "
        "`config.train_data_path`, or name a URL"
    )


@pytest.mark.parametrize(
    "overrides",
    [
        [TRAIN_DATA],
        [MOUNTED % "./train_data/"],
        [MOUNTED % "/job/train_data"],
        [MOUNTED % "/data", "dataset.0.data_path=/data/day/*.tsv"],
        [MOUNTED % "/data/day", "dataset.0.data_path='/data/*/log.tsv'"],
        ["config.train_data_path=/user/me/train"],
        ["dataset.0.data_path=hdfs:/logs"],
        ["dataset.0.data_path=s3://bucket/log"],
        ["dataset.0.data_path='{workspace}/log.tsv'"],
        ["dataset.0.data_path='*.tsv'"],
        ["dataset.0.data_path=/output/before/log.tsv"],
    ],
)
def test_data_that_is_somewhere_is_no_word_worth(folder: Path, overrides: list[str]) -> None:
    (folder / "log.tsv").touch()
    assert notes(*overrides) == {}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "dataset.0.data_path=/home/me/log.tsv",
            "`/home/me/log.tsv`, unless the image has it; mount a volume",
        ),
        (
            "dataset.0.data_path=/tmp/log.tsv",
            "`/tmp/log.tsv`; mount a volume there by `kubernetes.volumes`, or",
        ),
        ("dataset.0.data_path=../log.tsv", "`/log.tsv`, unless"),
        ("dataset.0.data_path='{workspace}/absent.tsv'", "`/job/absent.tsv`; mount"),
        ("dataset.0.data_path='{workspace}/train_data2/*.tsv'", "`/job/train_data2/*.tsv`; mount"),
        (MOUNTED % "/train_data", "`/job/train_data`; mount"),
    ],
)
def test_path_of_this_machine_is_none_of_the_pods(override: str, words: str) -> None:
    assert words in notes(override)["dataset.0.data_path"]


def test_all_that_the_runner_reads_is_looked_at() -> None:
    found = notes(
        TRAIN_DATA,
        "dataset.0.data_path=[train_data/a, here]",
        "dataset.0.validation={data_path: test_data}",
        "runner.0.init_model_path=before/checkpoints/1",
        "runner.1.init_model_path=of/another/runner",
    )
    assert list(found) == [
        "dataset.0.data_path.1",
        "dataset.0.validation.data_path",
        "runner.0.init_model_path",
    ]
    assert "config.test_data_path" in found["dataset.0.validation.data_path"]


@pytest.mark.parametrize("key", ["init_model_path", "save_checkpoint_path", "save_step_path"])
def test_url_without_a_host_is_an_error_in_a_job_without_a_file_system(key: str) -> None:
    named = (TRAIN_DATA, "config.fs_name=''", f"runner.0.{key}=hdfs:/models")
    with pytest.raises(
        ConfigError, match=r"names no host; write it into the URL, or give `config\.fs_name`"
    ) as error:
        request(*named).check()
    assert [problem.key for problem in error.value.problems] == [f"runner.0.{key}"]
    assert notes(*named, "kubernetes.env={CLICKMILL_FS_NAME: 'hdfs://there'}") == {}
    assert notes(*named, "config.fs_name=there:9000") == {}


def test_data_that_is_scored_after_a_pass_is_looked_at() -> None:
    assert list(notes(TRAIN_DATA, "runner.0.evaluate_dataset_name=unused")) == ["dataset.1.data_path"]


def test_workspace_of_a_built_in_model_is_the_working_folder() -> None:
    text = CONFIG.replace('"./"', "paddlerec.models.rank.dnn")
    Path("config.yaml").write_text(text)
    assert set(notes()) == {"dataset.0.data_path"}
    assert notes(TRAIN_DATA) == {}
    (override,) = data_overrides(request("config.train_data_path=/user/me/train"))
    assert override == 'dataset.0.data_path=["hdfs://there:9000/user/me/train"]'


@pytest.mark.parametrize("is_absolute", [False, True])
def test_configuration_in_another_folder_is_beside_its_data_in_the_pods(
    folder: Path, is_absolute: bool
) -> None:
    (folder / "sub").mkdir()
    write_job(folder / "sub", CONFIG, BACKEND)
    path = (folder if is_absolute else Path()) / "sub/config.yaml"
    (note,) = load_request(str(path), "backend.yaml").check()
    assert "`/job/train_data`" in note.message
    assert load_request(str(path), "backend.yaml", [TRAIN_DATA]).check() == ()


def test_volume_below_a_folder_of_the_file_system_has_what_is_in_it() -> None:
    job = request(
        MOUNTED % "/job/train_data/new",
        "config.train_data_path=/user/me/train",
        "dataset.0.data_path=[train_data/new, train_data/old]",
    )
    (override,) = data_overrides(job)
    assert override == 'dataset.0.data_path=["train_data/new", "hdfs://there:9000/user/me/train/old"]'


# What the job writes


ON_VOLUMES = (
    "kubernetes.volumes=[{name: in, claim: logs, mount: train_data}, {name: all, claim: a, mount: /all}, "
    "{name: out, claim: b, mount: /all/out, read_only: false}, {name: own, claim: c, mount: kept, "
    "read_only: false}]"
)


@pytest.mark.parametrize("key", ["save_checkpoint_path", "save_step_path", "tensorboard_path"])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/abs/models", "pods cannot write to `/abs/models`, for their root is read-only; name a relative"),
        ("../models", "pods cannot write to `/models`"),
        (
            "{workspace}/train_data/models",
            "may only read what is mounted at `/job/train_data`, and `/job/train_data/m",
        ),
        ("/all/models", "may only read what is mounted at `/all`"),
        ("/package/models", "may only read what is mounted at `/package`"),
    ],
)
def test_path_at_which_pods_cannot_write_is_an_error_with_its_line(
    folder: Path, key: str, path: str, words: str
) -> None:
    text = CONFIG.replace("phases: [first]", f'phases: [first],\n   {key}: "{path}"')
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        request(ON_VOLUMES).check()
    (problem,) = error.value.problems
    assert (problem.file, problem.line, problem.key) == ("config.yaml", 5, f"runner.0.{key}")
    assert words in problem.message
    assert "the volume of `kubernetes.output`" in problem.message


@pytest.mark.parametrize(
    "path",
    [
        "models",
        "{workspace}/models",
        "/job/models",
        "/output/models",
        "/all/out/models",
        "kept/models",
        "s3://a/b",
    ],
)
def test_path_on_a_volume_that_pods_may_write_to_is_no_word_worth(path: str) -> None:
    assert notes(ON_VOLUMES, f"runner.0.save_checkpoint_path='{path}'") == {}


@pytest.mark.parametrize("path", ["/tmp/models", "/cache/models"])
def test_checkpoints_that_go_with_their_pod_are_told_of(path: str) -> None:
    (words,) = notes(TRAIN_DATA, f"runner.0.save_step_path={path}").values()
    assert words.startswith(f"what pods write to `{path}` goes with them; name a relative path")


def test_folder_of_the_run_is_told_to_be_another_in_pods() -> None:
    found = notes(TRAIN_DATA, "runner.0.output_path=mine", "submit.job_name=ctr")
    assert list(found) == ["runner.0.output_path"]
    assert "pods write to `/output/ctr`, on the volume of `kubernetes.output`; `config.output_path`" in str(
        found
    )


# Over ssh


def over_ssh(*overrides: str) -> dict[str | None, str]:
    Path("backend.yaml").write_text("backend: SSH\nsubmit: {files: '*.py *.tsv'}\n")
    return notes(*overrides)


def test_data_that_does_not_travel_to_hosts_is_told() -> None:
    found = over_ssh("dataset.0.data_path=[train_data, /data/log.tsv, hdfs:/logs]")
    assert list(found) == ["dataset.0.data_path.0"]
    assert "`train_data` is none of them; name an absolute path" in found["dataset.0.data_path.0"]


def test_folder_that_lies_on_the_hosts_may_have_any_data(folder: Path) -> None:
    assert over_ssh("ssh.workspace=/data/job") == {}
    (folder / "log.tsv").touch()
    assert over_ssh("dataset.0.data_path=log.tsv") == {}
