"""Files on their way here: checked, resumed, whole or not there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from clickmill.errors import ClusterUnreachableError, DataError, FormatError, StateError
from clickmill.jobs.files import download as module
from clickmill.jobs.files import server as server_module
from clickmill.jobs.files import source as source_module
from clickmill.jobs.files.download import FETCHING, Unit, download
from clickmill.jobs.files.folder import FileEntry
from clickmill.jobs.files.source import FileGoneError, FileSource
from clickmill.kube.proxy import PodAnswer

from .serving import Direct, served

PIECE = 1000


class Counted:
    """Hears of bytes."""

    def __init__(self) -> None:
        self.expected = self.come = 0

    def expect(self, num_bytes: int) -> None:
        self.expected += num_bytes

    def advance(self, num_bytes: int) -> None:
        self.come += num_bytes


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (module, source_module, server_module):
        monkeypatch.setattr(each, "PIECE_BYTES", PIECE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "checkpoints" / "0"
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "first.rows").write_bytes(os.urandom(3500))
    (folder / "empty").write_bytes(b"")
    (folder / "exact").write_bytes(os.urandom(2 * PIECE))
    return tmp_path / "run"


def unit(source: FileSource, path: str = "checkpoints/0") -> Unit:
    return Unit(path, tuple(source.listing(path)))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_folder_comes_as_it_is(run, tmp_path):
    with served(run) as direct:
        source, counted = FileSource(direct), Counted()
        (place,) = download(source, [unit(source)], tmp_path / "here", counted)
    assert place == tmp_path / "here" / "checkpoints" / "0"
    assert contents(place) == contents(run / "checkpoints" / "0")
    assert counted.expected == counted.come == 5500
    assert not (tmp_path / "here" / FETCHING).exists()


def test_a_single_file_comes_to_its_path(run, tmp_path):
    path = "checkpoints/0/tables/first.rows"
    with served(run) as direct:
        source = FileSource(direct)
        (place,) = download(source, [unit(source, path)], tmp_path / "here", Counted())
    assert place.read_bytes() == (run / path).read_bytes()


def test_what_is_there_already_is_replaced_as_a_whole(run, tmp_path):
    old = tmp_path / "here" / "checkpoints" / "0"
    old.mkdir(parents=True)
    (old / "of an older run").write_text("x")
    with served(run) as direct:
        source = FileSource(direct)
        download(source, [unit(source)], tmp_path / "here", Counted())
    assert contents(old) == contents(run / "checkpoints" / "0")


class Breaking(Direct):
    """Loses everything after so many questions."""

    left = 0

    def ask(self, path: str, **request) -> PodAnswer:
        if self.left == 0:
            raise ClusterUnreachableError("gone for good")
        self.left -= 1
        return super().ask(path, **request)


def test_what_was_interrupted_goes_on_where_it_was(run, tmp_path):
    target = tmp_path / "here"
    with served(run) as direct:
        broken = Breaking(direct.port, direct.token)
        broken.left = 5  # a listing and four pieces
        source = FileSource(broken, patience_s=0.0)
        with pytest.raises(ClusterUnreachableError):
            download(source, [unit(source)], target, Counted())
        assert not (target / "checkpoints").exists(), "nothing is there before all is"
        begun = sum(path.stat().st_size for path in (target / FETCHING).rglob("*"))
        assert begun > 0
        source = FileSource(direct)
        wanted = unit(source)
        asked = direct.num_asked
        download(source, [wanted], target, Counted())
    assert contents(target / "checkpoints" / "0") == contents(run / "checkpoints" / "0")
    # Every piece was asked for once: its bytes, or its digest where its bytes were here.
    assert direct.num_asked - asked == 6


def test_a_piece_that_was_damaged_here_is_fetched_again(run, tmp_path):
    target = tmp_path / "here"
    with served(run) as direct:
        source = FileSource(direct)
        wanted = unit(source, "checkpoints/0/exact")
        partial = target / FETCHING / hashlib.sha256(b"checkpoints/0/exact").hexdigest()[:16]
        partial.parent.mkdir(parents=True)
        right = (run / "checkpoints" / "0" / "exact").read_bytes()
        partial.write_bytes(right[:PIECE] + b"?" * PIECE + b"too long")
        (place,) = download(source, [wanted], target, Counted())
        assert place.read_bytes() == right


def test_files_of_an_earlier_fetch_do_not_come_along(run, tmp_path):
    target = tmp_path / "here"
    partial = target / FETCHING / hashlib.sha256(b"checkpoints/0").hexdigest()[:16]
    (partial / "old").mkdir(parents=True)
    (partial / "old" / "file").write_text("x")
    with served(run) as direct:
        source = FileSource(direct)
        (place,) = download(source, [unit(source)], target, Counted())
    assert contents(place) == contents(run / "checkpoints" / "0")
    assert not (place / "old").exists()


def test_two_fetches_to_one_place_do_not_mix(run, tmp_path):
    from clickmill.store.lock import only_writer

    with served(run) as direct, only_writer(tmp_path / "here" / FETCHING):
        source = FileSource(direct)
        with pytest.raises(StateError, match="in use"):
            download(source, [unit(source)], tmp_path / "here", Counted())


def test_a_file_that_is_replaced_meanwhile_is_told(run, tmp_path):
    with served(run) as direct:
        source = FileSource(direct)
        wanted = unit(source)
        (run / "new").write_bytes(os.urandom(3500))
        (run / "new").rename(run / "checkpoints" / "0" / "tables" / "first.rows")
        with pytest.raises(FileGoneError, match=r"first\.rows` was replaced"):
            download(source, [wanted], tmp_path / "here", Counted())
        (run / "checkpoints" / "0" / "empty").write_bytes(b"")
        (run / "checkpoints" / "0" / "exact").unlink()
        with pytest.raises(FileGoneError, match="exact` was removed"):
            source.piece(next(entry for entry in wanted.files if entry.path.endswith("exact")), 0)


class Lying(Direct):
    """Changes a byte on the way, so many times."""

    lies = 0

    def ask(self, path: str, **request) -> PodAnswer:
        answer = super().ask(path, **request)
        if path == "/file" and answer.content and self.lies:
            self.lies -= 1
            return PodAnswer(answer.code, answer.headers, b"!" + answer.content[1:])
        return answer


def test_a_piece_that_comes_damaged_is_asked_for_again_but_not_for_ever(run):
    with served(run) as direct:
        lying = Lying(direct.port, direct.token)
        told: list[str] = []
        source = FileSource(lying, told.append)
        (entry,) = source.listing("checkpoints/0/exact")
        lying.lies = 2
        assert source.content(entry) == (run / entry.path).read_bytes()
        assert len(told) == 2
        lying.lies = 1000
        with pytest.raises(FormatError, match="come damaged"):
            source.content(entry)


def test_a_broken_way_is_tried_again(run):
    with served(run) as direct:
        direct.num_lost = 3
        told: list[str] = []
        assert len(FileSource(direct, told.append).listing()) == 3
        assert len(told) == 1


@pytest.mark.parametrize("path", ["../outside", "/outside", "checkpoints/../../outside"])
def test_a_pod_cannot_write_outside_of_the_target(run, tmp_path, path):
    with served(run) as direct:
        entry = FileEntry(path, 4, 0, "tag")
        with pytest.raises(DataError, match="no path below"):
            download(FileSource(direct), [Unit(path, (entry,))], tmp_path / "here", Counted())
        inner = Unit("fine", (FileEntry(f"fine/{path}", 4, 0, "tag"),))
        with pytest.raises(DataError, match="no path below"):
            download(FileSource(direct), [inner], tmp_path / "here", Counted())
    assert not (tmp_path / "outside").exists()
