"""What the configuration says, the core understands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clickmill._core import Reader, Table, synth
from clickmill.config import DatasetConfig, HyperParameters, reader_config, table_config
from clickmill.schema import TableSpec, assign_tables, build_schema, slots_schema

SPEC = TableSpec(name="embedding", dim=4)


@pytest.mark.parametrize(
    "optimizer",
    [
        {"class": "SGD"},
        {"class": "Adam"},
        {"class": "Adam", "lazy_mode": False},
        {"class": "Adagrad", "initial_accumulator": 0.1},
        {"class": "RowWiseAdagrad"},
        {"class": "FTRL", "l1": 0.1, "l2": 0.2, "learning_rate_power": -0.4},
    ],
    ids=lambda optimizer: "-".join(str(value) for value in optimizer.values()),
)
def test_core_takes_every_optimizer_of_tables(optimizer: dict[str, Any]) -> None:
    hyper = HyperParameters.model_validate({"sparse_optimizer": optimizer, "reg": 0.001})
    Table(json.dumps(table_config(SPEC, hyper, hyper.table_optimizer)))


@pytest.mark.parametrize(
    "settings",
    [
        {"admission": "always"},
        {"admission": {"kind": "count", "at": 3}},
        {"admission": {"kind": "probability", "p": 0.5}},
        {
            "eviction": {
                "ttl_steps": 10,
                "show_click": {"threshold": 0.5},
                "max_rows": 100,
                "max_bytes": 1 << 30,
            }
        },
        {"bucket_bits": 12, "statistics": True},
        {"init": {"kind": "normal", "std": 0.1}},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_core_takes_every_setting_of_a_table(settings: dict[str, Any]) -> None:
    hyper = HyperParameters.model_validate({"tables": {"embedding": settings}})
    schema = assign_tables(slots_schema(["click", "1"], {}), [SPEC], overrides=hyper.tables)
    Table(json.dumps(table_config(schema.tables[0], hyper, hyper.table_optimizer)))


@pytest.mark.parametrize(
    "shuffle", ["none", "buffer", {"kind": "block", "block_bytes": 8192, "rows": 100}], ids=str
)
@pytest.mark.parametrize(
    "section",
    [
        {"format": "criteo"},
        {"format": {"kind": "criteo", "has_label": True}},
        {"format": "slots", "sparse_slots": "click 1 2 26", "dense_slots": "dense_feature:13"},
    ],
    ids=["criteo", "criteo with label", "slots"],
)
def test_reader_of_a_data_set_yields_its_samples(
    tmp_path: Path, section: dict[str, Any], shuffle: Any
) -> None:
    log = tmp_path / "log"
    kind = section["format"] if isinstance(section["format"], str) else section["format"]["kind"]
    synth(json.dumps({"path": str(log), "rows": 250, "format": kind}))
    dataset = DatasetConfig.model_validate(
        {"name": "d", "data_path": str(log), "batch_size": 100, "shuffle": shuffle, "threads": 1, **section}
    )
    schema = build_schema(dataset, HyperParameters(), [SPEC]).to_core()
    reader = Reader(schema, json.dumps(reader_config(dataset, [str(log)])))
    rows = []
    while (batch := reader.next()) is not None:
        assert batch.dense.shape == (batch.num_rows, 13)
        rows.append(batch.num_rows)
    assert rows == [100, 100, 50]


def test_core_knows_every_text_format(tmp_path: Path) -> None:
    lines = {
        "show_click": ("1 0 737395:1 3081:2\n", {"sparse_slots": "click 1 2"}),
        "csv": ("click,1\n0,a\n", {"sparse_slots": "click 1"}),
        "libsvm": ("1 3:1 7:1\n", {}),
    }  # fmt: skip
    for kind, (text, section) in lines.items():
        log = tmp_path / kind
        log.write_text(text)
        dataset = DatasetConfig.model_validate(
            {"name": "d", "data_path": str(log), "format": kind, **section}
        )
        schema = build_schema(dataset, HyperParameters(), [SPEC]).to_core()
        batch = Reader(schema, json.dumps(reader_config(dataset, [str(log)]))).next()
        assert batch is not None, kind
        assert batch.num_rows == 1, kind


def test_delimited_format_reads_its_columns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1||a\n0||b\n")
    options = {"kind": "delimited", "delimiter": "||", "columns": ["click", "word"]}
    dataset = DatasetConfig.model_validate(
        {"name": "d", "data_path": str(log), "format": options, "sparse_slots": "click word"}
    )
    schema = build_schema(dataset, HyperParameters(), [SPEC]).to_core()
    batch = Reader(schema, json.dumps(reader_config(dataset, [str(log)]))).next()
    assert batch is not None
    assert batch.labels[:, 0].tolist() == [1.0, 0.0]
