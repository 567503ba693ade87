from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.config.files import expand_files
from clickmill.errors import DataError


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "day/2.gz", "day/1.gz", "day/_SUCCESS", "day/.half", "day/sub/3.gz"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    Path("empty").mkdir()


def test_paths_keep_their_order_and_folders_are_sorted() -> None:
    assert expand_files(["b.txt", "day", "a.txt"]) == (
        "b.txt", "day/1.gz", "day/2.gz", "day/sub/3.gz", "a.txt",
    )  # fmt: skip


def test_patterns_are_sorted() -> None:
    assert expand_files(["*.txt"]) == ("a.txt", "b.txt")
    assert expand_files(["**/*.gz"]) == ("day/1.gz", "day/2.gz", "day/sub/3.gz")


@pytest.mark.parametrize("path", ["nothing", "*.zst", "empty"])
def test_path_that_means_no_file_is_an_error(path: str) -> None:
    with pytest.raises(DataError, match=path.replace("*", r"\*")):
        expand_files(["a.txt", path])
