from __future__ import annotations

import os
from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.submit.load import load_request, split_overrides
from tests.unit.config import examples

from .jobs import request, write_job


def test_overrides_go_to_the_file_that_has_the_section(folder: Path) -> None:
    write_job(folder, examples.MPI, "backend: Local\n")
    job = request("runner.0.epochs=7", "submit.nodes=3", "cluster-type=mpi")
    assert job.runner.epochs == 7
    assert (job.backend.submit.nodes, job.backend.cluster_type) == (3, "mpi")
    assert job.source.overrides == ("runner.0.epochs=7",)


def test_override_of_neither_is_told_with_those_of_config_yaml() -> None:
    assert split_overrides(["nonsense", "runer.0=1", "kubernetes.image=a"]) == (
        ["kubernetes.image=a"],
        ["nonsense", "runer.0=1"],
    )


def test_override_of_a_section_that_is_spelled_wrongly_is_told_with_the_right_one(folder: Path) -> None:
    write_job(folder, examples.MPI, "backend: Local\n")
    with pytest.raises(ConfigError) as error:
        request("kubernets.image=x", "runer.0.epochs=1")
    found = {problem.key: problem.suggestion for problem in error.value.problems}
    assert found == {"kubernets": "kubernetes", "runer": "runner"}


def test_problems_of_both_files_are_told_at_once(folder: Path) -> None:
    (folder / "config.yaml").write_text(examples.MPI.replace("epochs: 2", "epochs: none"))
    (folder / "backend.yaml").write_text("backend: Nowhere\n")
    with pytest.raises(ConfigError) as error:
        request()
    places = [(problem.file, problem.key) for problem in error.value.problems]
    assert places == [("config.yaml", "runner.0.epochs"), ("backend.yaml", "backend")]


def test_what_a_backend_lacks_is_told_with_a_configuration_that_is_wrong(folder: Path) -> None:
    (folder / "config.yaml").write_text(examples.MPI.replace("epochs: 2", "epochs: none"))
    (folder / "backend.yaml").write_text("backend: PaddleCloud\ncluster_type: mpi\n")
    with pytest.raises(ConfigError) as error:
        request()
    keys = [problem.key for problem in error.value.problems]
    assert keys[0] == "runner.0.epochs"
    assert "submit.ak" in keys


def test_missing_file_is_told_alone(folder: Path) -> None:
    (folder / "backend.yaml").write_text("backend: Nowhere\n")
    with pytest.raises(ConfigError, match=r"there is no configuration `config\.yaml`"):
        request()


def test_built_in_model_is_a_configuration(folder: Path) -> None:
    (folder / "backend.yaml").write_text("backend: Local\n")
    job = load_request("paddlerec.models.rank.dnn", "backend.yaml")
    assert job.source.model == "paddlerec.models.rank.dnn"


def test_files_that_are_wrong_keep_their_hints_when_told_together(folder: Path) -> None:
    (folder / "config.yaml").write_text("runner:\n\t- a\n")
    (folder / "backend.yaml").write_text("backend: *alias\n")
    with pytest.raises(ConfigError) as error:
        request()
    assert error.value.hint == (
        "indent with spaces, YAML takes no tabs; put quotes around a text that begins with `*`"
    )


def test_backend_that_is_missing_is_told_alone(folder: Path) -> None:
    (folder / "config.yaml").write_text("runner: 3\n")
    with pytest.raises(ConfigError, match=r"^cannot read `backend\.yaml`"):
        request()


def test_backend_from_a_pipe_is_read_once(folder: Path) -> None:
    (folder / "config.yaml").write_text(examples.MPI.replace("epochs: 2", "epochs: key-secret"))
    reader, writer = os.pipe()
    os.write(writer, b"backend: Local\nsubmit: {sk: key-secret}\n")
    os.close(writer)
    try:
        with pytest.raises(ConfigError, match="epochs") as error:
            load_request("config.yaml", f"/dev/fd/{reader}")
    finally:
        os.close(reader)
    assert len(error.value.problems) == 1
    assert "key-secret" not in str(error.value.problems)
