from __future__ import annotations

import logging
from pathlib import Path

import pytest

from clickmill.launch.pod.package import link_package


def mounted(folder: Path) -> Path:
    """As Kubernetes mounts a ConfigMap: names are links into a folder that is exchanged as a whole."""
    package = folder / "package"
    (package / "..2026/sub").mkdir(parents=True)
    (package / "..2026/config.yaml").write_text("mode: train\n")
    (package / "..2026/sub/model.py").write_text("x = 1\n")
    (package / "..data").symlink_to("..2026")
    (package / "config.yaml").symlink_to("..data/config.yaml")
    (package / "sub").symlink_to("..data/sub")
    return package


def test_every_file_is_linked_to_its_place(tmp_path: Path):
    job = tmp_path / "job"
    link_package(mounted(tmp_path), job)
    assert sorted(path.relative_to(job).as_posix() for path in job.rglob("*")) == [
        "config.yaml",
        "sub",
        "sub/model.py",
    ]
    assert (job / "config.yaml").read_text() == "mode: train\n"
    (job / "sub/notes.txt").write_text("beside it there is room")


def test_links_of_an_earlier_life_are_replaced(tmp_path: Path):
    package, job = mounted(tmp_path), tmp_path / "job"
    link_package(package, job)
    (package / "..2026/config.yaml").write_text("mode: other\n")
    link_package(package, job)
    assert (job / "config.yaml").read_text() == "mode: other\n"


def test_a_file_that_is_there_stays_and_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    job = tmp_path / "job"
    job.mkdir()
    (job / "config.yaml").write_text("mine\n")
    with caplog.at_level(logging.WARNING):
        link_package(mounted(tmp_path), job)
    assert (job / "config.yaml").read_text() == "mine\n"
    assert "hides the file of the package" in caplog.text


def test_without_a_package_there_is_nothing_to_do(tmp_path: Path):
    assert link_package(tmp_path / "none", tmp_path) == []
