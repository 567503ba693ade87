from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.small_files import small_files

from clickmill.errors import StorageError
from clickmill.store import durable
from clickmill.store.lock import only_writer


def test_a_folder_appears_when_its_block_ends(tmp_path):
    target = tmp_path / "checkpoint"
    with durable.new_folder(target) as partial:
        (partial / "file").write_text("content")
        assert not target.exists()
    assert (target / "file").read_text() == "content"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_failed_block_leaves_the_old_folder_and_no_rest(tmp_path):
    target = tmp_path / "checkpoint"
    with durable.new_folder(target) as partial:
        (partial / "file").write_text("old")
    with pytest.raises(RuntimeError), durable.new_folder(target) as partial:
        (partial / "file").write_text("new")
        raise RuntimeError
    assert (target / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_an_existing_folder_is_replaced_whole(tmp_path):
    target = tmp_path / "checkpoint"
    for content, extra in (("old", "only_old"), ("new", "only_new")):
        with durable.new_folder(target) as partial:
            (partial / "file").write_text(content)
            (partial / extra).touch()
    assert sorted(path.name for path in target.iterdir()) == ["file", "only_new"]
    assert (target / "file").read_text() == "new"


def test_a_killed_writer_leaves_the_old_folder_and_its_rest_can_be_cleared(tmp_path):
    target = tmp_path / "checkpoint"
    with durable.new_folder(target) as partial:
        (partial / "file").write_text("old")
    script = (
        "import sys, pathlib\nfrom clickmill.store import durable\n"
        "with durable.new_folder(pathlib.Path(sys.argv[1])) as partial:\n"
        "    (partial / 'file').write_text('new')\n    print('filled', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"filled\n"
        os.kill(writer.pid, signal.SIGKILL)
    assert (target / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    durable.clear_partial(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "sub" / "report.html"
    durable.replace_file(path, b"one")
    durable.replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_file_that_does_not_fit_is_named_and_leaves_the_old_one(tmp_path):
    target = tmp_path / "file"
    durable.replace_file(target, b"old")
    with small_files(1000), pytest.raises(StorageError, match=f"cannot write `{target}`: File too large"):
        durable.replace_file(target, bytes(100_000))
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_error_of_the_block_itself_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError), durable.new_file(tmp_path / "file"):
        (tmp_path / "nothing").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_written_is_named(tmp_path):
    with (
        small_files(0),
        pytest.raises(StorageError, match=r"cannot write `.*/\.lock`"),
        only_writer(tmp_path),
    ):
        pass
