"""Files that go to the nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import ConfigError, Problem
from clickmill.submit.package import collect_package

from .jobs import request, write_job

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train}
dataset:
- {name: log, data_path: "{workspace}/train_data"}
phase:
- {name: first, model: "{workspace}/model.py", dataset_name: log}
"""
BACKEND = """\
backend: MPI
config: {fs_ugi: "me,pass-word"}
submit:
  files: ./*.py ./*.yaml
  ak: &key "key-id"  # of mine
  sk: 'key-secret'
"""


@pytest.fixture(autouse=True)
def job(folder: Path) -> Path:
    write_job(folder, CONFIG, BACKEND)
    return folder


def names(*overrides: str) -> list[str]:
    job = request(*overrides)
    return [file.name for file in collect_package(job.config, job.backend)]


def wrong(*overrides: str) -> Problem:
    with pytest.raises(ConfigError) as error:
        names(*overrides)
    (problem,) = error.value.problems
    return problem


def test_patterns_are_expanded_and_the_configuration_comes_first(folder: Path) -> None:
    (folder / "reader.py").touch()
    (folder / "notes.txt").touch()
    assert names() == ["config.yaml", "model.py", "reader.py", "backend.yaml"]


def test_what_the_configuration_needs_travels_without_being_named(folder: Path) -> None:
    (folder / "reader.py").touch()
    assert names("submit.files=[]") == ["config.yaml", "model.py"]
    reader = "dataset.0.data_converter=reader.py"
    assert names("submit.files=[]", reader) == ["config.yaml", "model.py", "reader.py"]


def test_schema_in_a_file_of_its_own_travels(folder: Path) -> None:
    slots = "slots:\n- {name: click, kind: label}\n- {name: a, kind: sparse}\n"
    (folder / "schema.yaml").write_text(slots)
    schema = "dataset.0.schema=schema.yaml"
    assert names("submit.files=[]", "dataset.0.format=csv", schema) == [
        "config.yaml", "model.py", "schema.yaml",
    ]  # fmt: skip


def test_built_in_model_needs_no_file() -> None:
    assert names("submit.files=[]", "phase.0.model=dnn") == ["config.yaml"]


@pytest.mark.parametrize(
    ("override", "key", "words"),
    [
        ("submit.files='*.txt'", "submit.files", "nothing matches `*.txt`"),
        ("submit.files='data'", "submit.files", "`data` is a folder"),
        ("submit.files='*.py data/*.py'", "submit.files", "would be one file on the nodes"),
        ("phase.0.model=other.py", "phase.0.model", "there is no file `other.py`"),
        ("phase.0.model=data/model.py", "phase.0.model", "put it beside `config.yaml`"),
        ("workspace=data", "phase.0.model", "with `workspace: ./`"),
    ],
)
def test_file_that_cannot_travel_is_named(folder: Path, override: str, key: str, words: str) -> None:
    (folder / "data").mkdir()
    (folder / "data/model.py").touch()
    problem = wrong(override)
    assert problem.key == key
    assert words in problem.message


def test_pattern_of_a_list_has_its_own_line(folder: Path) -> None:
    text = BACKEND.replace("files: ./*.py ./*.yaml", "files:\n  - ./*.py\n  - ./*.txt")
    (folder / "backend.yaml").write_text(text)
    problem = wrong()
    assert (problem.key, problem.line) == ("submit.files.1", 6)


def test_folder_of_this_machine_is_no_workspace(folder: Path) -> None:
    assert "use `workspace: ./`" in wrong(f"workspace={folder}").message


def test_absolute_name_of_a_model_would_not_be_found_on_nodes(folder: Path) -> None:
    assert "{workspace}/model.py" in wrong(f"phase.0.model={folder}/model.py").message


# Secrets


def test_copy_of_backend_yaml_has_no_secrets_and_is_else_the_same() -> None:
    job = request()
    (copy,) = [file for file in collect_package(job.config, job.backend) if file.name == "backend.yaml"]
    text = copy.read().decode()
    expected = BACKEND.replace('"me,pass-word"', '""').replace("'key-secret'", '""')
    assert text == expected.replace('&key "key-id"', '""') or text == expected.replace('"key-id"', '""')


def test_secret_in_a_comment_is_refused_and_not_repeated(folder: Path) -> None:
    (folder / "backend.yaml").write_text(BACKEND + "# sk was key-secret\n")
    job = request()
    (copy,) = [file for file in collect_package(job.config, job.backend) if file.name == "backend.yaml"]
    with pytest.raises(ConfigError, match="in another place than its key") as error:
        copy.read()
    assert "key-secret" not in f"{error.value} {error.value.hint} {copy!r}"


def test_file_that_holds_a_secret_is_left_out(folder: Path) -> None:
    (folder / "sk.py").write_text("key-secret")
    (folder / "sk.py").chmod(0o600)
    text = BACKEND.replace("sk: 'key-secret'", "sk_file: sk.py")
    (folder / "backend.yaml").write_text(text)
    assert "sk.py" not in names()


def test_aliases_of_a_secret_are_taken_out_too(folder: Path) -> None:
    (folder / "backend.yaml").write_text(BACKEND.replace("sk: 'key-secret'", "sk: *key"))
    job = request()
    (copy,) = [file for file in collect_package(job.config, job.backend) if file.name == "backend.yaml"]
    assert b"key-id" not in copy.read()


def test_other_files_travel_as_they_are(folder: Path) -> None:
    (folder / "weights.py").write_bytes(b"\xff\x00")
    job = request()
    files = {file.name: file for file in collect_package(job.config, job.backend)}
    assert files["weights.py"].read() == b"\xff\x00"
