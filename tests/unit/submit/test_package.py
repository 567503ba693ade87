"""Files that go to the nodes."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmill.config.backend.known_secrets import MIN_LENGTH, KnownSecrets
from clickmill.errors import ConfigError, Problem
from clickmill.submit.kubernetes.manifest import manifest_yaml
from clickmill.submit.package import collect_package

from .jobs import request, write_job
from .kubernetes.plans import plan_of

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


def contents() -> dict[str, bytes]:
    job = request()
    return {file.name: file.read() for file in collect_package(job.config, job.backend)}


def test_copy_of_backend_yaml_has_no_secrets_and_is_else_the_same() -> None:
    expected = BACKEND.replace('"me,pass-word"', '""').replace("'key-secret'", '""')
    assert contents()["backend.yaml"].decode() == expected.replace('"key-id"  # of mine', '""')


def test_every_backend_yaml_among_the_files_has_its_secrets_emptied(folder: Path) -> None:
    other = "backend: PaddleCloud\nconfig:\n  fs_ugi: you,other-word\nsubmit: {ak: |-other, sk: key-secret}\n"
    (folder / "backend_cloud.yaml").write_text(other.replace("|-other", "'other-key'"))
    (folder / "wide.yaml").write_text("submit: {sk: other-key}\n", encoding="utf-16")
    found = contents()
    assert found["backend_cloud.yaml"].decode() == (
        'backend: PaddleCloud\nconfig:\n  fs_ugi: ""\nsubmit: {ak: "", sk: ""}\n'
    )
    assert found["wide.yaml"].decode("utf-16") == 'submit: {sk: ""}\n'


def test_secret_elsewhere_is_refused_with_its_line_and_not_repeated(folder: Path) -> None:
    (folder / "backend.yaml").write_text(BACKEND + "# it was key-secret\n")
    problem = wrong()
    assert (problem.file, problem.line) == ("backend.yaml", 7)
    assert "a secret (submit.sk) stands here" in problem.message
    assert "leave the file out of `submit.files`" in problem.message
    assert "key-secret" not in str(problem)


@pytest.mark.parametrize(
    "text",
    [
        "key-secret", "me,pass-word", "pass-word", "me%2Cpass-word",
        "bWUscGFzcy13b3JkCg==", "eDpwYXNzLXdvcmQ=", "eHh5OnBhc3Mtd29yZA==", "706173732d776f7264",
        "s3-secret", "http-token-1",
    ],
)  # fmt: skip
def test_secret_of_the_job_in_code_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3-secret")
    (folder / "token").write_text("http-token-1\n")
    monkeypatch.setenv("CLICKMILL_HTTP_TOKEN_FILE", str(folder / "token"))
    (folder / "model.py").write_text(f"import os\n\nKEY = '{text}'\n")
    problem = wrong()
    assert (problem.file, problem.line) == ("model.py", 3)
    assert text not in str(problem)


@settings(deadline=None)  # busy machines
@given(
    secret=st.text(min_size=MIN_LENGTH, max_size=30).filter(lambda text: text.isprintable()),
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
    form=st.sampled_from(
        [
            lambda content: content,
            lambda content: content.decode(errors="surrogateescape").encode("utf-16-le", "surrogatepass"),
            lambda content: content.hex().encode(),
            lambda content: content.hex().upper().encode(),
            base64.b64encode,
            base64.urlsafe_b64encode,
            lambda content: quote(content).encode(),
            lambda content: re.sub(b"%..", lambda found: found[0].lower(), quote(content).encode()),
            lambda content: quote_plus(content).encode(),
        ]
    ),
)
def test_secret_is_found_in_every_form_whatever_stands_around_it(
    secret: str, before: bytes, after: bytes, form: Callable[[bytes], bytes]
) -> None:
    known = KnownSecrets((("it", secret),))
    assert known.find(form(before + secret.encode() + after))


def test_secret_of_the_environment_is_looked_for_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKMILL_SK", "quite-another")
    (folder / "model.py").write_text("KEY = 'quite-another'\n")
    assert wrong().line == 1


def test_secret_in_bytes_is_refused_with_its_place(folder: Path) -> None:
    (folder / "weights.py").write_bytes(b"\xff\x00key-secret")
    problem = wrong()
    assert problem.file == "weights.py"
    assert "byte 2: a secret (submit.sk)" in problem.message


def test_secret_in_the_name_of_a_file_is_refused_and_not_repeated(folder: Path) -> None:
    (folder / "of-key-secret.py").touch()
    problem = wrong()
    assert (problem.file, problem.key) == ("backend.yaml", "submit.files")
    assert "a secret (submit.sk) in its name" in problem.message
    assert "key-secret" not in str(problem)


def test_short_words_are_no_secrets_to_look_for(folder: Path) -> None:
    text = BACKEND.replace("key-id", "os").replace("me,pass-word", "usr,pwd")
    (folder / "backend.yaml").write_text(text)
    (folder / "model.py").write_text("import os\npwd = os.getcwd()\n")
    assert contents()["model.py"].startswith(b"import os")


def test_backend_yaml_that_is_no_yaml_is_refused(folder: Path) -> None:
    (folder / "template.yaml").write_text("submit:\n\tsk: other\n")
    problem = wrong()
    assert (problem.file, problem.line) == ("template.yaml", 2)
    assert "is no valid YAML" in problem.message


@pytest.mark.parametrize("name", ["o.bak", "o.yaml.old", "o.py", "o"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_broken_backend_yaml_is_refused_under_any_name(folder: Path, name: str, encoding: str) -> None:
    (folder / "backend.yaml").write_text(BACKEND.replace("./*.yaml", "./o*"))
    (folder / name).write_bytes("# für\nsubmit: {ak: OTHERKEY99, sk: [}\n".encode(encoding))
    problem = wrong()
    assert (problem.file, problem.line) == (name, 2)
    assert "is no valid YAML" in problem.message
    assert "OTHERKEY99" not in str(problem)


@pytest.mark.parametrize(
    "text",
    [
        "def submit(config: dict, ak: str) -> None: ...\n",
        "class Keys:\n    config: dict\n    ak: str = ''\n    sk: str = 'none'\n",
        "KEYS = {\n    'submit': 1,\n    'ak': os.environ['AK'],\n    'sk': f'{x}',\n}\n",
        'def f(\n    config: dict,\n    ak: str,\n    sk: str = "\\d",\n): ...\n',
        "submit = 1\nmatch submit:\n    case 1:\n        sk: int = 2\n",
        "config: dict\nf = lambda ak: ak\n",
    ],
)
@pytest.mark.parametrize("name", ["model.py", "model.txt.py"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_code_with_the_same_words_is_no_backend_yaml(
    folder: Path, name: str, encoding: str, text: str
) -> None:
    content = f"# coding: latin-1\n# für\n{text}".encode(encoding)
    (folder / name).write_bytes(content)
    assert contents()[name] == content


def test_files_that_another_backend_yaml_or_a_variable_names_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "backend_cloud.yaml").write_text("submit: {sk_file: its.py}\n")
    (folder / "its.py").write_text("something")
    (folder / "ugi.py").write_text("me,other-word")
    (folder / "aws.py").write_text("[default]")
    monkeypatch.setenv("CLICKMILL_FS_UGI_FILE", "ugi.py")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "aws.py")
    assert names() == ["config.yaml", "model.py", "backend.yaml", "backend_cloud.yaml"]


def test_file_that_holds_a_secret_is_left_out(folder: Path) -> None:
    (folder / "sk.py").write_text("key-secret")
    (folder / "sk.py").chmod(0o600)
    text = BACKEND.replace("sk: 'key-secret'", "sk_file: sk.py")
    (folder / "backend.yaml").write_text(text)
    assert "sk.py" not in names()


def test_aliases_of_a_secret_are_taken_out_too(folder: Path) -> None:
    (folder / "backend.yaml").write_text(BACKEND.replace("sk: 'key-secret'", "sk: *key"))
    assert b"key-id" not in contents()["backend.yaml"]


def test_other_files_travel_as_they_are(folder: Path) -> None:
    (folder / "weights.py").write_bytes(b"\xff\x00")
    assert contents()["weights.py"] == b"\xff\x00"


# What a dry run writes


@pytest.fixture
def job_yaml(folder: Path) -> Path:
    """A manifest as a dry run writes it."""
    (folder / "job.yaml").write_text(manifest_yaml(plan_of()))
    return folder / "job.yaml"


def test_manifest_of_a_dry_run_is_left_out(job_yaml: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert "job.yaml" not in names()
    assert "`job.yaml` is a manifest of a job, and is left out" in caplog.text


def test_manifest_is_known_in_every_form(job_yaml: Path) -> None:
    items = list(yaml.safe_load_all(job_yaml.read_text()))
    for text in (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
        yaml.safe_dump_all(items, default_flow_style=True),
        job_yaml.read_text() + '  cut: "off',
    ):
        job_yaml.write_text(text)
        assert "job.yaml" not in names()


def test_manifest_of_somebody_else_travels(job_yaml: Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {labels: {app.kubernetes.io/managed-by: helm}}\n"
    job_yaml.write_text(text)
    assert "job.yaml" in names()


def test_dry_run_into_a_file_of_the_job_is_the_same_twice(folder: Path) -> None:
    backend = "backend: Kubernetes\nsubmit: {files: ./*.yaml}\nkubernetes: {image: a, namespace: b}\n"
    (folder / "backend.yaml").write_text(backend)
    written = []
    for _ in range(2):
        with (folder / "job.yaml").open("wb") as file:
            done = subprocess.run(
                [sys.executable, "-m", "clickmill", "submit", "-m", "config.yaml", "-b", "backend.yaml",
                 "--dry-run", "-o", "yaml"],
                stdout=file, stderr=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
        assert "`job.yaml` is what this command writes to, and is left out" in done.stderr
        written.append((folder / "job.yaml").read_text())
    assert written[0] == written[1]
    assert "job.yaml: " not in written[0]
    (folder / "job.yaml").rename(folder / "elsewhere.yaml")
    assert "elsewhere.yaml" not in names()


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("~no-such-user/x", "knows no user `no-such-user`"),
        ("/proc/self/mem", "cannot read `/proc/self/mem`: Input/output error"),
    ],
)
def test_files_that_cannot_be_had_are_told_with_their_line(folder: Path, pattern: str, words: str) -> None:
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "model.py").write_text("class Model: ...\n")
    (folder / "backend.yaml").write_text(
        f"backend: Local\nsubmit:\n  files:\n  - ./model.py\n  - {pattern}\n"
    )
    job = request()
    with pytest.raises(ConfigError, match=words) as error:
        collect_package(job.config, job.backend)
    (found,) = error.value.problems
    assert (found.file, found.line, found.key) == ("backend.yaml", 5, "submit.files.1")


def test_names_that_match_and_are_no_files_are_told_beside_good_ones(folder: Path) -> None:
    (folder / "gone.py").symlink_to("/nowhere/model.py")
    (folder / "loop.py").symlink_to("loop.py")
    os.mkfifo(folder / "pipe.py")
    (folder / "package.py").mkdir()
    job = request("submit.files=./*.py")
    with pytest.raises(ConfigError) as error:
        collect_package(job.config, job.backend)
    assert [problem.message for problem in error.value.problems] == [
        "`gone.py` is a link that ends at `/nowhere/model.py`, which is not there; mend it, or leave it out",
        "`loop.py` is a link that ends in a loop; mend it, or leave it out",
        "`pipe.py` is neither a file nor a folder; leave it out",
    ]


def test_files_of_secrets_that_no_file_can_be_are_passed_over(folder: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "model.py").write_text("class Model: ...\n")
    (folder / "other.yaml").write_text(
        'submit: {sk: "\\ud800hunter2", sk_file: "a\\0", ak_file: ~no-such-user/x}\n'
    )
    (folder / "backend.yaml").write_text("backend: Local\nsubmit: {files: ./other.yaml}\n")
    job = request()
    files = {file.name: file.read() for file in collect_package(job.config, job.backend)}
    assert b"hunter2" not in files["other.yaml"]
