"""What every store must do; its tests derive from this class, and say with `base` where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import DataError
from clickmill.store.remote.fetching import Fetcher
from clickmill.store.remote.finding import find_remote
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.reading import RangeReader, head_of, heads_of
from clickmill.store.remote.steady import SteadyStore
from clickmill.store.remote.store import RemoteFile
from clickmill.store.remote.transfer import download
from clickmill.store.remote.url import parse


def put(url: str, data: bytes, folder: Path) -> RemoteFile:
    """Put bytes there, and find them."""
    path = folder / "to-upload"
    path.write_bytes(data)
    place = parse(url)
    store = open_store(place)
    store.upload(path, place)
    found = store.find(place)
    assert found is not None
    return found


def names(files: list[RemoteFile]) -> list[str]:
    return [file.name for file in files]


class StoreContract:
    """Derive, and give it a fixture `base`: the URL of an empty folder."""

    @pytest.fixture(name="store")
    def _store(self, base: str) -> SteadyStore:
        return open_store(parse(base))

    def test_a_file_comes_back_as_it_was_put(self, base, store, tmp_path):
        data = bytes(range(256)) * 5000
        file = put(f"{base}/a/some file.bin", data, tmp_path)
        assert file.num_bytes == len(data)
        assert file.name == "some file.bin"
        assert b"".join(store.read(file, 0, len(data))) == data
        assert b"".join(store.read(file, 1000, 70_001)) == data[1000:70_001]
        download(file, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == data

    def test_large_files_come_in_parts(self, base, tmp_path, monkeypatch):
        monkeypatch.setattr("clickmill.store.remote.transfer._PART_BYTES", 100_000)
        data = bytes(range(251)) * 4000
        download(put(f"{base}/parts.bin", data, tmp_path), tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == data

    def test_an_empty_file_is_a_file(self, base, tmp_path):
        file = put(f"{base}/empty", b"", tmp_path)
        assert head_of(file) == b""
        download(file, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b""

    def test_what_is_not_there_is_not_found(self, base, store, tmp_path):
        assert store.find(parse(f"{base}/absent")) is None
        assert not (listing := store.list(parse(f"{base}/absent"))) or not listing.files
        store.remove(parse(f"{base}/absent"))
        for url in (f"{base}/absent", f"{base}/absent/", f"{base}/absent/*.gz", f"{base}/*.gz"):
            with pytest.raises(DataError, match=r"no such file, folder or pattern|folder is empty"):
                find_remote(url)

    def test_files_are_found_by_name_folder_and_pattern(self, base, tmp_path):
        for name in ("d/day_2.gz", "d/day_1.gz", "d/day_1.txt", "d/_SUCCESS", "d/.hidden", "d/e/day_3.gz"):
            put(f"{base}/{name}", name.encode(), tmp_path)
        assert names(find_remote(f"{base}/d")) == ["day_1.gz", "day_1.txt", "day_2.gz"]
        assert names(find_remote(f"{base}/d/")) == ["day_1.gz", "day_1.txt", "day_2.gz"]
        assert names(find_remote(f"{base}/d/day_*.gz")) == ["day_1.gz", "day_2.gz"]
        assert names(find_remote(f"{base}/d/*/day_*.gz")) == ["day_3.gz"]
        assert names(find_remote(f"{base}/d/**/*.gz")) == ["day_1.gz", "day_2.gz", "day_3.gz"]
        assert names(find_remote(f"{base}/[a-d]/day_1.*")) == ["day_1.gz", "day_1.txt"]
        assert names(find_remote(f"{base}/d/_SUCCESS")) == ["_SUCCESS"]

    def test_a_look_inside_needs_no_copy(self, base, tmp_path):
        files = [put(f"{base}/head-{index}", bytes([index]) * 3 * index, tmp_path) for index in range(4)]
        assert heads_of(files) == [b"", b"\1\1\1", b"\2\2\2\2", b"\3\3\3\3"]
        reader = RangeReader(files[3])
        reader.seek(-2, 2)
        assert reader.read() == b"\3\3"

    def test_an_upload_takes_the_place_of_what_was_there(self, base, store, tmp_path):
        before = put(f"{base}/same", b"before", tmp_path)
        after = put(f"{base}/same", b"after, and longer", tmp_path)
        assert after != before
        assert b"".join(store.read(after, 0, after.num_bytes)) == b"after, and longer"
        store.remove(after.place)
        assert store.find(after.place) is None

    def test_a_file_that_has_changed_is_an_error(self, base, own_cache, store, tmp_path):
        before = put(f"{base}/changing", b"before", tmp_path)
        held = Fetcher().hold(before)
        assert held is not None
        held.release()
        put(f"{base}/changing", b"after!!", tmp_path)
        with pytest.raises(DataError, match="has changed since it was found"):
            Fetcher().hold(before)
        with pytest.raises(DataError, match="has changed since it was found"):
            list(store.read(before, 0, 3))
        store.remove(before.place)
        with pytest.raises(DataError, match="it is gone"):
            list(store.read(before, 0, 3))
        with pytest.raises(DataError, match="it is gone"):
            Fetcher().hold(before)
