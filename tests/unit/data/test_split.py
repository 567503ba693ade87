"""A split is complete, repeatable and where it says; a log that cannot be split leaves nothing behind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickmill.data.split import Fields, split_log
from clickmill.errors import ConfigError, DataError

CSV = Fields(",", has_header=True)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_by_order_the_last_lines_are_the_test(tmp_path: Path) -> None:
    log = write(tmp_path / "log.tsv", [str(number) for number in range(10)])
    split = split_log(log, tmp_path / "out", fraction=0.3)
    assert (split.train_lines, split.test_lines) == (7, 3)
    assert read(tmp_path / "out/train-log.tsv") == [str(number) for number in range(7)]
    assert read(tmp_path / "out/test-log.tsv") == ["7", "8", "9"]


def test_a_last_line_without_an_end_gets_one(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a\nb")
    split = split_log(tmp_path / "log", tmp_path, fraction=0.5)
    assert split.test.read_bytes() == b"b\n"


@pytest.mark.parametrize("by", ["order", "hash", "n"])
def test_both_parts_begin_with_the_header_which_is_not_counted(tmp_path: Path, by: str) -> None:
    log = write(tmp_path / "log.csv", ["n,x", *(f"{number},x" for number in range(20))])
    split = split_log(log, tmp_path / "out", fraction=0.4, by=by, fields=CSV)
    assert split.train_lines + split.test_lines == 20
    assert {read(part)[0] for part in (split.train, split.test)} == {"n,x"}
    assert len(read(split.train)) == split.train_lines + 1


def test_by_hash_a_line_is_on_the_same_side_in_every_file(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(400)]
    whole = split_log(write(tmp_path / "whole", lines), tmp_path, fraction=0.25, by="hash")
    half = split_log(write(tmp_path / "half", lines[::-2]), tmp_path, fraction=0.25, by="hash")
    assert set(read(half.test)) < set(read(whole.test))
    assert 60 < whole.test_lines < 140


def test_by_hash_the_seed_decides(tmp_path: Path) -> None:
    log = write(tmp_path / "log", [str(number) for number in range(400)])
    tests = []
    for seed in (1, 1, 2):
        split = split_log(log, tmp_path / "out", fraction=0.5, by="hash", seed=seed)
        tests.append(read(split.test))
    assert tests[0] == tests[1] != tests[2]


@given(numbers=st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=40))
def test_by_a_column_both_parts_are_sorted_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("split")
    log = write(folder / "log", [f"x::{number}" for number in numbers])
    split = split_log(log, folder, fraction=0.5, by="2", fields=Fields("::", has_header=False))
    found = [int(line.split("::")[1]) for part in (split.train, split.test) for line in read(part)]
    assert found == sorted(numbers)


def test_equal_values_of_the_column_stay_in_their_order(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", ["hour,id", "2,a", "1,b", "1,c", "2,d"])
    split = split_log(log, tmp_path, fraction=0.5, by="hour", fields=CSV)
    assert [*read(split.train)[1:], *read(split.test)[1:]] == ["1,b", "1,c", "2,a", "2,d"]


def test_dates_are_sorted_as_texts(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", ["day", "2014-10-22 01:00", "2014-10-21 23:00"])
    split = split_log(log, tmp_path, fraction=0.5, by="day", fields=CSV)
    assert read(split.test) == ["day", "2014-10-22 01:00"]


@pytest.mark.parametrize("by", ["order", "hash", "1"])
def test_gzip_stays_gzip_and_is_the_same_each_time(tmp_path: Path, by: str) -> None:
    lines = "".join(f"{number}\n" for number in range(100)).encode()
    log = tmp_path / "log.tsv.gz"
    log.write_bytes(gzip.compress(lines))
    parts = []
    for name in ("first", "second"):
        split = split_log(log, tmp_path / name, fraction=0.5, by=by)
        assert split.test.name == "test-log.tsv.gz"
        parts.append((split.train.read_bytes(), split.test.read_bytes()))
    assert parts[0] == parts[1]
    found = b"".join(gzip.decompress(part) for part in parts[0])
    assert sorted(found.split()) == sorted(lines.split())


@pytest.mark.parametrize(
    ("content", "by", "words"),
    [
        (b"a,hour\nx,1\ny\n", "hour", ":3: column `hour` is empty"),
        (b"a,hour\nx,1\ny,z\n", "hour", ":3: column `hour` is `z`, which is not a number"),
        (b"a,hour\nx,1\ny,nan\n", "hour", ":3: column `hour` is `nan`, which is not a number"),
        (b"a,hour\nx,1\n", "order", "leaves one side empty"),
        (b"\x28\xb5\x2f\xfd", "order", "zstd"),
        (b"", "order", "leaves one side empty"),
    ],
)
def test_a_log_that_cannot_be_split_leaves_nothing_behind(
    tmp_path: Path, content: bytes, by: str, words: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    with pytest.raises(DataError) as caught:
        split_log(log, tmp_path / "out", fraction=0.3, by=by, fields=CSV)
    assert words in str(caught.value)
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("by", "has_header", "words"),
    [
        ("minute", True, "known: hour, id"),
        ("minute", False, "numbered from 1"),
        ("0", False, "numbered from 1"),
    ],
)
def test_a_column_that_is_not_there_is_named(tmp_path: Path, by: str, has_header: bool, words: str) -> None:
    log = write(tmp_path / "log.csv", ["hour,id", "1,a", "2,b"])
    with pytest.raises(ConfigError, match=words):
        split_log(log, tmp_path, fraction=0.5, by=by, fields=Fields(",", has_header=has_header))


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5])
def test_a_fraction_must_lie_between_0_and_1(tmp_path: Path, fraction: float) -> None:
    with pytest.raises(ConfigError, match="allowed"):
        split_log(tmp_path / "log", tmp_path, fraction=fraction)
