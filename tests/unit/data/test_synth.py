from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from clickmill import ConfigError, _core

ROWS = 40_000


def synth(path: Path, rows: int = ROWS, **options: Any) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(_core.synth(json.dumps({"path": str(path), "rows": rows, **options})))
    return report


def fields(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_the_stated_bayes_auc_is_the_one_of_scikit_learn(tmp_path: Path) -> None:
    report = synth(tmp_path / "log.tsv", truth_path=str(tmp_path / "truth.txt"))
    probability = np.loadtxt(tmp_path / "truth.txt")
    label = np.array([int(row[0]) for row in fields(tmp_path / "log.tsv")])
    assert report["bayes_auc"] == pytest.approx(roc_auc_score(label, probability), abs=1e-12)
    assert report["bayes_logloss"] == pytest.approx(log_loss(label, probability), abs=1e-12)


def test_a_quarter_of_the_rows_is_clicked_and_the_report_says_how_many(tmp_path: Path) -> None:
    report = synth(tmp_path / "log.tsv")
    clicked = sum(row[0] == "1" for row in fields(tmp_path / "log.tsv"))
    assert report["positives"] == clicked
    assert report["click_rate"] == pytest.approx(0.25, abs=0.02)


def test_threads_and_ranges_do_not_change_a_byte(tmp_path: Path) -> None:
    synth(tmp_path / "one.tsv", threads=1)
    synth(tmp_path / "three.tsv", threads=3)
    synth(tmp_path / "head.tsv", rows=12_345)
    synth(tmp_path / "tail.tsv", rows=ROWS - 12_345, start_row=12_345)
    whole = (tmp_path / "one.tsv").read_bytes()
    assert (tmp_path / "three.tsv").read_bytes() == whole
    assert (tmp_path / "head.tsv").read_bytes() + (tmp_path / "tail.tsv").read_bytes() == whole


def test_another_seed_is_another_log(tmp_path: Path) -> None:
    synth(tmp_path / "a.tsv", rows=100, seed=1)
    synth(tmp_path / "b.tsv", rows=100, seed=2)
    assert (tmp_path / "a.tsv").read_bytes() != (tmp_path / "b.tsv").read_bytes()


def test_lines_have_the_shape_of_the_criteo_log(tmp_path: Path) -> None:
    synth(tmp_path / "log.tsv")
    rows = fields(tmp_path / "log.tsv")
    assert {len(row) for row in rows} == {40}
    numbers = [value for row in rows for value in row[1:14]]
    values = [value for row in rows for value in row[14:]]
    assert min(int(value) for value in numbers if value) < 0
    assert "" in numbers
    assert "" in values
    assert all(len(value) == 8 and int(value, 16) >= 0 for value in values if value)


def test_columns_have_from_a_handful_to_very_many_values(tmp_path: Path) -> None:
    synth(tmp_path / "log.tsv")
    cardinalities = [len({row[column] for row in fields(tmp_path / "log.tsv")}) for column in range(14, 40)]
    assert min(cardinalities) == 3
    assert max(cardinalities) > ROWS // 2


def test_slot_text_holds_the_same_samples(tmp_path: Path) -> None:
    synth(tmp_path / "log.tsv", rows=500)
    synth(tmp_path / "log.txt", rows=500, format="slots")
    lines = (tmp_path / "log.txt").read_text().splitlines()
    for raw, line in zip(fields(tmp_path / "log.tsv"), lines, strict=True):
        pairs = [pair.split(":") for pair in line.split()]
        assert [name for name, _ in pairs] == ["click"] + ["dense_feature"] * 13 + [
            str(n) for n in range(1, 27)
        ]
        assert pairs[0][1] == raw[0]
        second = 0.0 if raw[2] == "" else (int(raw[2]) + 3) / 603
        assert float(pairs[2][1]) == pytest.approx(second, rel=1e-6)
        assert all(0 <= int(value) < 1_000_001 for _, value in pairs[14:])


def test_parts_and_compression_hold_the_same_rows(tmp_path: Path) -> None:
    synth(tmp_path / "log.tsv")
    report = synth(tmp_path / "log.tsv.gz", parts=2)
    assert [Path(file).name for file in report["files"]] == ["log-00000.tsv.gz", "log-00001.tsv.gz"]
    joined = b"".join(gzip.decompress(Path(file).read_bytes()) for file in report["files"])
    assert joined == (tmp_path / "log.tsv").read_bytes()


def test_drift_makes_old_knowledge_stale(tmp_path: Path) -> None:
    def click_rates(start_row: int) -> dict[str, float]:
        synth(tmp_path / "log.tsv", start_row=start_row, drift=2.0)
        rows = fields(tmp_path / "log.tsv")
        groups: dict[str, list[int]] = {}
        for row in rows:
            groups.setdefault(row[30], []).append(int(row[0]))
        return {value: sum(clicks) / len(clicks) for value, clicks in groups.items()}

    early, again, late = click_rates(0), click_rates(ROWS), click_rates(2_000_000)
    assert early.keys() == late.keys()
    near = max(abs(early[value] - again[value]) for value in early)
    far = max(abs(early[value] - late[value]) for value in early)
    assert far > 2 * near


def test_progress_hears_of_every_block_and_ends_at_the_total(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    config = json.dumps({"path": str(tmp_path / "log.tsv"), "rows": ROWS})
    _core.synth(config, lambda done, total: heard.append((done, total)))
    assert heard == [(16_384, ROWS), (32_768, ROWS), (ROWS, ROWS)]


def test_what_progress_raises_stops_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.synth(json.dumps({"path": str(tmp_path / "log.tsv"), "rows": ROWS}), stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "named"),
    [({"rows": 0}, "rows"), ({"parts": 0}, "parts"), ({"drift": -1.0}, "drift"), ({"colour": 1}, "colour")],
)
def test_an_impossible_configuration_is_refused_by_name(
    tmp_path: Path, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        synth(tmp_path / "log.tsv", **{"rows": 10, **options})


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        synth(tmp_path / "file" / "log.tsv", rows=10)
