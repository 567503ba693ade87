"""Data elsewhere gives the batches of the same data here, and holds no more of it than it must."""

from __future__ import annotations

import gzip
import json
import logging
import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickmill import _core
from clickmill.config.dataset import DatasetConfig
from clickmill.data.files import compression, find_files
from clickmill.data.source import DataSet
from clickmill.errors import DataError, RemoteError, StorageError

READER = """
import json

class Reader:
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for path in self.files:
            with open(path) as lines:
                for line in lines:
                    yield json.loads(line)
"""


def rows(start: int, count: int) -> list[dict[str, object]]:
    return [
        {"click": number % 2, "price": number / 7, "user": f"u{number * 7 % 41}"}
        for number in range(start, start + count)
    ]


def csv_text(samples) -> str:
    return "click,price,user\n" + "".join(f"{row['click']},{row['price']},{row['user']}\n" for row in samples)


def slots_text(samples) -> str:
    return "".join(f"click:{row['click']} price:{row['price']} user:{row['user']}\n" for row in samples)


def write_log(folder: Path) -> None:
    """The same samples in several forms, each of several files."""
    for form in ("csv", "slots", "json", "parquet"):
        (folder / form).mkdir(parents=True)
    for number, count in enumerate((300, 0, 450, 120)):
        samples = rows(number * 1000, count)
        (folder / "csv" / f"part-{number}").write_text(csv_text(samples))
        text = slots_text(samples)
        if number == 2:
            (folder / "slots" / "part-2.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / "slots" / f"part-{number}").write_text(text)
        (folder / "json" / f"part-{number}").write_text("".join(json.dumps(row) + "\n" for row in samples))
        if samples:
            pq.write_table(pa.Table.from_pylist(samples), folder / "parquet" / f"part-{number}")


@pytest.fixture(scope="module", name="log")
def _log(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    write_log(folder)
    (folder / "reader.py").write_text(READER)
    return folder


@pytest.fixture(name="served")
def _served(web, log):
    shutil.copytree(log, web.root, dirs_exist_ok=True)
    return web


def data_set(where: str, **options) -> DataSet:
    content = {"name": "log", "data_path": where, "batch_size": 64, "threads": 2, **options}
    return DataSet(DatasetConfig.model_validate(content), Path(), seed=5, shuffle_files=True)


def make_schema(*slots) -> _core.Schema:
    named = [{**slot, "tables": ["t"]} if slot["kind"] == "sparse" else slot for slot in slots]
    content = {"version": 1, "slots": named, "tables": [{"name": "t", "dim": 4}]}
    return _core.Schema(json.dumps(content))


SCHEMA = make_schema(
    {"kind": "label", "name": "click"}, {"kind": "dense", "name": "price"}, {"kind": "sparse", "name": "user"}
)


def content(batch) -> tuple:
    return (
        batch.num_rows,
        batch.dense.tobytes(),
        batch.labels.tobytes(),
        batch.signs(0).tobytes(),
        batch.inverse(0).tobytes(),
        batch.position,
    )


def read(source) -> list[tuple]:
    try:
        return [content(batch) for batch in iter(source.next, None)]
    finally:
        source.close()


def passes(data: DataSet, schema: _core.Schema = SCHEMA) -> list[list[tuple]]:
    return [read(data.open(schema, number)) for number in range(2)]


FORMS = {
    "csv": {"format": "csv"},
    "slots": {"format": "slots"},
    "windows": {"format": "slots", "shuffle": {"kind": "buffer", "rows": 100}},
    "blocks": {"format": "slots", "shuffle": {"kind": "block", "rows": 100, "block_bytes": 4096}},
    "parquet": {"format": "parquet"},
}


@pytest.mark.parametrize("form", FORMS)
def test_files_elsewhere_give_the_batches_of_local_ones(form, served, log):
    folder = "slots" if form in {"windows", "blocks"} else form
    local = data_set(f"{log}/{folder}", **FORMS[form])
    remote = data_set(f"{served.url}/{folder}", **FORMS[form])
    assert passes(remote) == passes(local)
    assert remote.file_sizes(1) == local.file_sizes(1)


def test_a_readers_own_code_finds_all_files_here(served, log):
    options = {"data_converter": str(log / "reader.py")}
    assert passes(data_set(f"{served.url}/json", **options)) == passes(data_set(f"{log}/json", **options))


def test_a_position_means_the_same_here_and_elsewhere(served, log, own_cache):
    local, remote = data_set(f"{log}/slots", format="slots"), data_set(f"{served.url}/slots", format="slots")
    expected = read(local.open(SCHEMA, 0))
    position = expected[-2][-1]
    assert read(remote.open(SCHEMA, 0, position)) == expected[-1:]
    # What lies before is not brought.
    assert [path.name for path in own_cache.rglob("part-*")] == [remote.files_of(0)[-1].path.name]


def test_the_cut_is_made_by_bytes_elsewhere_too(served, log):
    options = {"format": "slots", "validation": {"fraction": 0.3}}
    local, remote = data_set(f"{log}/slots", **options), data_set(f"{served.url}/slots", **options)
    assert [(file.path.name, file.start, file.end) for file in remote.files] == [
        (file.path.name, file.start, file.end) for file in local.files
    ]
    assert read(remote.open_validation(SCHEMA)) == read(local.open_validation(SCHEMA))
    kinds = [compression(path) for path in find_files([f"{served.url}/slots"], Path())]
    assert kinds == [None, None, "gzip", None]


def test_statistics_are_those_of_local_files(served, log):
    def fitted(where):
        price = {"kind": "dense", "name": "price", "transform": {"kind": "standardise"}}
        return data_set(where, format="slots").fit(make_schema(price)).to_json()

    assert fitted(f"{served.url}/slots") == fitted(f"{log}/slots")
    assert '"mean":[' in fitted(f"{served.url}/slots").replace(" ", "")


def test_movielens_finds_users_and_movies_beside_the_ratings(web, tmp_path):
    folder = web.root / "ml"
    folder.mkdir()
    (folder / "ratings.dat").write_text("1::10::5::978300760\n2::11::1::978300761\n")
    (folder / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::70072\n")
    (folder / "movies.dat").write_text("10::Toy Story (1995)::Comedy\n11::Heat (1995)::Drama|Crime\n")
    schema = make_schema(
        {"kind": "label", "name": "rating"},
        {"kind": "sparse", "name": "user_id"},
        {"kind": "sparse", "name": "gender"},
        {"kind": "sparse", "name": "genres", "separator": "|"},
    )
    found, expected = (
        passes(data_set(f"{place}/ratings.dat", format="movielens"), schema)
        for place in (f"{web.url}/ml", folder)
    )
    assert found == expected


def used_bytes(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.rglob("content/*"))


def test_a_small_cache_is_enough_for_large_data(served, log, own_cache, monkeypatch):
    sizes = sorted(path.stat().st_size for path in (log / "csv").iterdir())
    limit = sizes[-1] + sizes[-2]
    assert limit < sum(sizes)
    monkeypatch.setenv("CLICKMILL_CACHE_BYTES", str(limit))
    options = {"format": "csv", "batch_size": 10}
    remote, local = data_set(f"{served.url}/csv", **options), data_set(f"{log}/csv", **options)
    assert passes(remote) == passes(local)
    assert used_bytes(own_cache) <= limit


def test_a_cache_that_can_hold_no_file_is_an_error(served, monkeypatch):
    monkeypatch.setenv("CLICKMILL_CACHE_BYTES", "100")
    data = data_set(f"{served.url}/slots", format="slots")
    with pytest.raises(StorageError, match=r"a copy of \d+ bytes is needed, and the cache .* may hold 100"):
        passes(data)


def test_a_second_pass_brings_nothing_again(served, caplog):
    data = data_set(f"{served.url}/slots", format="slots")
    with caplog.at_level(logging.INFO):
        assert read(data.open(SCHEMA, 0))
        assert caplog.text.count("remote.downloaded") == 4
        assert f"url={served.url}/slots/part-2.gz" in caplog.text
        assert read(data.open(SCHEMA, 0))
        assert caplog.text.count("remote.downloaded") == 4


def test_a_file_that_changes_between_passes_is_an_error(served):
    data = data_set(f"{served.url}/slots", format="slots")
    read(data.open(SCHEMA, 0))
    (served.root / "slots" / "part-3").write_text(slots_text(rows(0, 3)))
    with pytest.raises(DataError, match=r"`http://.*/slots/part-3` has changed since it was found"):
        read(data.open(SCHEMA, 1))


def test_a_store_that_goes_away_is_an_error_unless_all_is_here(served, monkeypatch, caplog):
    monkeypatch.setattr("clickmill.store.remote.fetching._LOOK_PATIENCE_S", 0.0)
    data = data_set(f"{served.url}/slots", format="slots")
    expected = read(data.open(SCHEMA, 0))
    served.fail(status=503, times=1000)
    with caplog.at_level(logging.WARNING):
        assert read(data.open(SCHEMA, 0)) == expected
    assert "remote.unchecked" in caplog.text
    monkeypatch.setenv("CLICKMILL_REMOTE_PATIENCE_S", "0")
    with pytest.raises(RemoteError, match="503 Service Unavailable"):
        data_set(f"{served.url}/csv", format="csv")


def test_bad_lines_are_named_by_their_url(served):
    (served.root / "slots" / "part-1").write_text("click:maybe price:1 user:a\n")
    with pytest.raises(DataError, match=rf"{served.url}/slots/part-1:1:"):
        passes(data_set(f"{served.url}/slots", format="slots"))
    data = data_set(f"{served.url}/slots", format="slots", max_bad_lines=5)
    source = data.open(SCHEMA, 0)
    for _ in iter(source.next, None):
        pass
    assert json.loads(source.bad_lines())["first"][0]["file"] == f"{served.url}/slots/part-1"
    source.close()


def test_waiting_for_a_file_can_be_ended(served, own_cache):
    data = data_set(f"{served.url}/slots", format="slots")
    data.check_slots(SCHEMA)  # the first bytes of all are known now
    shutil.rmtree(own_cache)
    served.fail(status=503, times=1000)
    source = data.open(SCHEMA, 0)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            source.next()
        except DataError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    source.close()
    waiting.join()
    assert len(errors) <= 1
