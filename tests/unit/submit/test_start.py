from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.submit.load import load_request
from clickmill.submit.start import StartCommand
from tests.unit.config import examples

from .jobs import request, write_job


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("python -m paddlerec.run -m ./config.yaml", "./config.yaml"),
        ("python -m paddlerec.run -m config.yaml", "config.yaml"),
        ("python3 -m clickmill.run --model config.yaml", "config.yaml"),
        ("python -u -m paddlerec.run -m='a b.yaml'", "a b.yaml"),
        ("clickmill train -m config.yaml --set runner.0.epochs=2", "config.yaml"),
        ("python -m clickmill train --config=c.yaml", "c.yaml"),
        ("cd job && python -m paddlerec.run -m config.yaml && echo -m other.yaml", "config.yaml"),
        ("python -m paddlerec.run -m paddlerec.models.rank.dnn", "paddlerec.models.rank.dnn"),
        ("python -m paddlerec.run && echo -m other.yaml", None),
        ("python -m paddlerec.runner -m config.yaml", None),
        ("sh train.sh -m config.yaml", None),
        ("python -m paddlerec.run -m 'config.yaml", None),
        ("", None),
    ],
)
def test_configuration_of_a_start_command_is_found(text: str, model: str | None) -> None:
    assert StartCommand(text).model == model


def test_nodes_run_clickmill_in_place_of_paddlerec() -> None:
    command = StartCommand("cd a && python -m paddlerec.run -m config.yaml # paddlerec.run")
    assert command.as_ours() == "cd a && python -m clickmill.run -m config.yaml # paddlerec.run"


def test_overrides_travel_with_the_command() -> None:
    command = StartCommand("python -m paddlerec.run -m config.yaml")
    assert command.as_ours(["runner.0.epochs=2", "mode=[a, b]"]) == (
        "python -m clickmill.run --set runner.0.epochs=2 --set 'mode=[a, b]' -m config.yaml"
    )


def test_another_command_stays_as_it_is() -> None:
    assert StartCommand("sh train.sh").as_ours() == "sh train.sh"


# Where processes are started by clickmill itself


@pytest.fixture(params=["Local", "MPI", "SSH", "Kubernetes"])
def ours(request: pytest.FixtureRequest, folder: Path) -> str:
    """A job for each backend that runs no start command."""
    data = "data_path: hdfs://there/log"
    config = examples.MPI.replace('data_path: "{workspace}/train_data"', data)
    assert data in config
    write_job(folder, config, f"backend: {request.param}\nkubernetes: {{image: here}}\n")
    return str(request.param)


@pytest.mark.parametrize(
    "command",
    [
        "python -m paddlerec.run -m ./config.yaml",
        "/usr/bin/python3.11 -u -m clickmill.run --model=config.yaml",
        "clickmill train --config config.yaml",
    ],
)
def test_start_command_of_the_job_may_stay(ours: str, command: str) -> None:
    assert request(f"submit.start_cmd={command}").check() == ()


@pytest.mark.parametrize("model", ["other.yaml", "sub/config.yaml", "paddlerec.models.rank.dnn"])
def test_start_command_of_another_job_is_an_error(ours: str, model: str) -> None:
    job = request(f"submit.start_cmd=python -m paddlerec.run -m {model}")
    with pytest.raises(ConfigError, match=r"but it is `config\.yaml` that is submitted") as error:
        job.check()
    assert [problem.key for problem in error.value.problems] == ["submit.start_cmd"]


def test_start_command_that_runs_something_else_is_told(ours: str) -> None:
    Path("backend.yaml").write_text(Path("backend.yaml").read_text() + "submit:\n  start_cmd: sh run.sh\n")
    (note,) = request().check()
    assert (note.key, note.line) == ("submit.start_cmd", 4)
    assert note.message.startswith("has no effect: processes of the job run clickmill")


@pytest.mark.parametrize(
    "command",
    [
        "pip install x && python -m paddlerec.run -m config.yaml",
        "python -m clickmill.run -m config.yaml --set runner.0.epochs=2",
        "A=1 clickmill train -m config.yaml",
    ],
)
def test_what_a_start_command_does_besides_is_told(ours: str, command: str) -> None:
    (note,) = request(f"submit.start_cmd={command}").check()
    assert note.message.startswith("has no effect but for the file that `-m` names")


def test_start_command_that_nobody_wrote_is_of_no_matter(ours: str) -> None:
    Path("config.yaml").rename("other.yaml")
    assert load_request("other.yaml", "backend.yaml").check() == ()


def test_configuration_may_be_named_by_its_path(ours: str) -> None:
    Path("sub").mkdir()
    for name in ("config.yaml", "model.py"):
        Path(name).rename(Path("sub", name))
    job = load_request(
        "sub/config.yaml", "backend.yaml", ["submit.start_cmd=python -m paddlerec.run -m sub/config.yaml"]
    )
    assert job.check() == ()


def test_built_in_model_may_be_named_in_any_way(folder: Path) -> None:
    write_job(folder, "", "backend: Local\n")
    start = "submit.start_cmd=python -m paddlerec.run -m paddlerec.models.rank.dnn"
    assert load_request("dnn", "backend.yaml", [start]).check() == ()
    with pytest.raises(ConfigError, match="but it is `fm` that is submitted"):
        load_request("fm", "backend.yaml", [start]).check()
