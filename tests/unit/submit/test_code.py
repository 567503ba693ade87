"""What is told of the user's code before it travels."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.submit.load import load_request
from clickmill.submit.package import collect_package
from clickmill.submit.request import Request
from tests.unit.config import examples

from .jobs import request, write_job


@pytest.fixture(autouse=True)
def job(folder: Path) -> Path:
    """A job for Kubernetes with a model and a reader."""
    named = 'data_path: "{workspace}/train_data"'
    reader = 'data_path: hdfs://there/log\n  data_converter: "{workspace}/reader.py"'
    assert named in examples.MPI
    write_job(folder, examples.MPI.replace(named, reader), "backend: Kubernetes\nkubernetes: {image: here}\n")
    (folder / "reader.py").write_text("class Reader: ...\n")
    return folder


def problems() -> list[str]:
    """What keeps the job from being submitted."""
    with pytest.raises(ConfigError) as error:
        request().check()
    return [str(problem) for problem in error.value.problems]


def test_code_that_has_the_class_is_fine() -> None:
    assert request().check() == ()


@pytest.mark.parametrize(
    "text",
    [
        "from mine import Model\n",
        "from mine import Net as Model\n",
        "from mine import *\n",
        "class Net: ...\nModel = Net\n",
        "if True:\n    class Model: ...\n",
        "with open('x') as Model: pass\n",
    ],
)
def test_class_may_come_from_anywhere(job: Path, text: str) -> None:
    (job / "model.py").write_text(text)
    assert request().check() == ()


def test_code_that_is_no_python_is_told_with_its_line(job: Path) -> None:
    (job / "model.py").write_text("import os\nclass Model(:\n")
    (problem,) = problems()
    assert problem.startswith("model.py:2")
    assert "is not valid Python" in problem


@pytest.mark.parametrize("content", [b"class Model: ...\0", b"x = 1\n# \xff\xfe\n", b"(" * 100_000])
def test_code_that_cannot_be_read_is_told_and_not_raised(job: Path, content: bytes) -> None:
    (job / "model.py").write_bytes(content)
    (problem,) = problems()
    assert "model.py" in problem


def test_class_that_is_missing_is_told_with_those_that_are_there(job: Path) -> None:
    (job / "model.py").write_text("class Net: ...\nclass Mlp: ...\n")
    (job / "reader.py").write_text("def read(): ...\n")
    assert problems() == [
        "model.py: defines no class `Model`; classes there: `Net`, `Mlp`",
        "reader.py: defines no class `Reader`; classes there: none",
    ]


def test_class_of_a_reader_has_the_name_that_config_yaml_gives_it(job: Path) -> None:
    (job / "reader.py").write_text("class Mine: ...\n")
    text = (job / "config.yaml").read_text()
    converter = 'data_converter: "{workspace}/reader.py"'
    (job / "config.yaml").write_text(text.replace(converter, f"{converter}\n  reader_class_name: Mine"))
    assert request().check() == ()


def test_code_is_not_run(job: Path) -> None:
    (job / "model.py").write_text("open('ran', 'w')\nclass Model: ...\n")
    request().check()
    assert not (job / "ran").exists()


def test_built_in_model_has_no_code_to_look_at() -> None:
    assert load_request("dnn", "backend.yaml", ["submit.files=config.yaml"]).config.phase[0].builtin == "dnn"
    load_request("dnn", "backend.yaml", ["submit.files=config.yaml"]).check()


# Modules that code imports


@pytest.mark.parametrize(
    "line",
    [
        "import layers",
        "import layers.deep as x",
        "from layers import Tower",
        "def f():\n    import os, layers",
    ],
)
def test_module_beside_the_code_that_does_not_travel_is_told(
    job: Path, caplog: pytest.LogCaptureFixture, line: str
) -> None:
    (job / "model.py").write_text(f"{line}\nclass Model: ...\n")
    (job / "layers.py").touch()
    collect(request())
    number = line.count("\n") + 1
    assert f"model.py:{number}: imports `layers`, which does not travel: add `layers.py`" in caplog.text
    caplog.clear()
    assert "layers.py" in collect(request("submit.files=layers.py"))
    assert caplog.text == ""


def test_folder_of_code_is_told_for_nodes_get_no_folders(job: Path, caplog: pytest.LogCaptureFixture) -> None:
    (job / "model.py").write_text("from layers.tower import Tower\nclass Model: ...\n")
    (job / "layers").mkdir()
    (job / "layers/tower.py").touch()
    collect(request())
    assert "model.py:1: imports `layers`, a folder; nodes get files without their folders" in caplog.text


@pytest.mark.parametrize("line", ["import torch", "from . import near", "import json", "import nowhere"])
def test_other_imports_are_not_told(job: Path, caplog: pytest.LogCaptureFixture, line: str) -> None:
    (job / "model.py").write_text(f"{line}\nclass Model: ...\n")
    for name in ("near.py", "json.py"):
        (job / name).touch()
    collect(request())
    assert caplog.text == ""


def collect(job: Request) -> set[str]:
    """Names of the files that travel."""
    return {file.name for file in collect_package(job.config, job.backend)}
