from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from clickmill._core import Schema
from clickmill.config import HyperParameters, parse_config
from clickmill.config.dataset import DatasetConfig
from clickmill.errors import ConfigError
from clickmill.schema import (
    SchemaConfig,
    TableSpec,
    assign_tables,
    avazu_schema,
    build_schema,
    criteo_schema,
    movielens_schema,
    slots_schema,
)


@dataclass(frozen=True)
class Request:
    name: str = "embedding"
    dim: int = 8
    slots: tuple[str, ...] = ()


BUILT = {
    "criteo": criteo_schema(),
    "criteo log1p": criteo_schema("log1p", hash_size=1000),
    "criteo bucketised": criteo_schema("bucketised"),
    "criteo standardise": criteo_schema("standardise"),
    "avazu": avazu_schema(),
    "movielens": movielens_schema(),
    "movielens click": movielens_schema("click"),
    "slots": slots_schema(["click", "1", "2"], {"dense": 13}),
}

EVERY_FIELD = """
{"version": 1,
 "slots": [
  {"kind": "label", "name": "y", "column": "c", "transform": {"kind": "threshold", "at": 4.0}},
  {"kind": "weight", "name": "w", "column": "c"},
  {"kind": "group", "name": "g", "column": "c"},
  {"kind": "dense", "name": "d", "column": "c", "width": 2, "default": 0.5,
   "transform": {"kind": "min_max", "min": [0.0, 1.0], "max": [1.0, 2.0]}},
  {"kind": "dense", "name": "e", "transform": {"kind": "standardise", "mean": [1.0], "std": [2.0]}},
  {"kind": "sparse", "name": "s", "column": "c", "vocabulary": "v", "sign": "hash", "hash_size": 10,
   "transform": {"kind": "bucketise", "boundaries": [1.0, 2.0]}, "separator": "|", "pooling": "none",
   "max_length": 5, "keep": "last", "missing": "skip", "tables": ["t", "u"]},
  {"kind": "sparse", "name": "z", "sign": "value", "pooling": "max", "tables": ["t"]},
  {"kind": "sparse", "name": "x", "cross": ["s", "z"], "tables": ["u"]}],
 "tables": [
  {"name": "t", "dim": 4, "seed": 7, "init": {"kind": "normal", "std": 0.5}},
  {"name": "u", "dim": 1, "init": {"kind": "zeros"}}]}
"""


@pytest.mark.parametrize("schema", BUILT.values(), ids=BUILT.keys())
def test_built_schema_goes_through_the_core_unchanged(schema: SchemaConfig) -> None:
    assigned = assign_tables(schema, [Request()])
    assert SchemaConfig.from_core(assigned.to_core()) == assigned


def test_every_field_of_the_core_is_known_here_and_back() -> None:
    schema = SchemaConfig.from_core(Schema(EVERY_FIELD))
    assert SchemaConfig.from_core(schema.to_core()) == schema
    written = json.loads(schema.to_json())
    for slot, given in zip(written["slots"], json.loads(EVERY_FIELD)["slots"], strict=True):
        assert given.items() <= slot.items()


def test_defaults_are_those_of_the_core() -> None:
    text = """{"version": 1, "tables": [{"name": "t", "dim": 1}],
        "slots": [{"kind": "sparse", "name": "a", "tables": ["t"]}, {"kind": "dense", "name": "b"}]}"""
    assert SchemaConfig.model_validate_json(text) == SchemaConfig.from_core(Schema(text))


def test_criteo_schema_has_the_columns_and_constants_of_the_demo() -> None:
    schema = criteo_schema()
    assert [slot.name for slot in schema.dense] == [f"I{n}" for n in range(1, 14)]
    assert [slot.name for slot in schema.sparse] == [f"C{n}" for n in range(1, 27)]
    transform = schema.dense[1].transform
    assert transform.kind == "min_max"
    assert (transform.min, transform.max) == ((-3.0,), (600.0,))
    assert schema.dense[4].transform.max == (64000.0,)
    assert len(criteo_schema("bucketised").sparse) == 39


def test_hour_of_the_avazu_log_is_a_cross_that_tells_12_from_21() -> None:
    def pairs(hour: str) -> set[tuple[str, str]]:
        return {(hour[-1], digit) for digit in hour[-2:]}

    assert len({frozenset(pairs(f"{hour:02}")) for hour in range(24)}) == 24
    slot = next(slot for slot in avazu_schema().sparse if slot.name == "hour_of_day")
    assert slot.cross == ("hour_units", "hour_digits")


class TestSlotsKeys:
    @pytest.mark.parametrize("name", ["click", "label", "Label"])
    def test_first_slot_with_the_name_of_a_label_is_the_label(self, name: str) -> None:
        schema = slots_schema([name, "1"], {})
        assert [slot.name for slot in schema.labels] == [name]
        assert [slot.name for slot in schema.sparse] == ["1"]

    def test_first_slot_with_another_name_is_not_guessed(self) -> None:
        with pytest.raises(ConfigError, match="cannot tell the label"):
            slots_schema(["1", "2"], {})

    def test_label_slot_decides(self) -> None:
        assert [slot.name for slot in slots_schema(["1", "2"], {}, label_slot="2").labels] == ["2"]
        assert slots_schema(["1", "2"], {}, label_slot="").labels == ()
        assert [slot.name for slot in slots_schema(["1"], {}, label_slot="y").labels] == ["y"]

    def test_values_are_signs_and_repeat_freely(self) -> None:
        (slot,) = slots_schema(["click", "1"], {}).sparse
        assert (slot.sign, slot.max_length) == ("value", 65_536)

    def test_padding_stands_for_absent_dense_values(self) -> None:
        assert slots_schema(["click"], {"d": 2}, padding=-1).dense[0].default == -1.0

    def test_slot_in_both_lists_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="both"):
            slots_schema(["click", "a"], {"a": 1})

    def test_label_alone_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="no slots"):
            slots_schema(["click"], {})


class TestTables:
    def test_slots_without_tables_get_those_of_the_model(self) -> None:
        schema = assign_tables(criteo_schema(), [Request("wide", 1), Request("deep", 8)], seed=3)
        assert {slot.tables for slot in schema.sparse} == {("wide", "deep")}
        assert schema.tables == (TableSpec(name="wide", dim=1, seed=3), TableSpec(name="deep", dim=8, seed=3))
        assert len(schema.to_core().groups()) == 1

    def test_request_may_want_some_slots_only(self) -> None:
        schema = assign_tables(criteo_schema(), [Request("all", 4), Request("one", 4, slots=("C1",))])
        assert [slot.tables for slot in schema.sparse[:2]] == [("all", "one"), ("all",)]

    def test_request_for_an_unknown_slot_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="slot `C99`"):
            assign_tables(criteo_schema(), [Request("all"), Request("one", 4, slots=("C99",))])

    def test_tables_of_the_schema_stay(self) -> None:
        own = SchemaConfig.model_validate(
            {
                "slots": [{"kind": "sparse", "name": "a", "tables": "mine"}, {"kind": "sparse", "name": "b"}],
                "tables": [{"name": "mine", "dim": 2}],
            }
        )
        schema = assign_tables(own, [Request()])
        assert [slot.tables for slot in schema.sparse] == [("mine",), ("embedding",)]

    def test_overrides_change_the_table(self) -> None:
        hyper = HyperParameters.model_validate(
            {"tables": {"embedding": {"dim": 16, "seed": 9, "init": "zeros", "hash_size": 100}}}
        )
        schema = assign_tables(criteo_schema(), [Request()], overrides=hyper.tables)
        (table,) = schema.tables
        assert (table.dim, table.seed, table.init.kind) == (16, 9, "zeros")
        assert {slot.hash_size for slot in schema.sparse} == {100}

    def test_override_of_an_unknown_table_is_refused(self) -> None:
        hyper = HyperParameters.model_validate({"tables": {"embeding": {"dim": 16}}})
        with pytest.raises(ConfigError, match="names table `embeding`"):
            assign_tables(criteo_schema(), [Request()], overrides=hyper.tables)


class TestBuild:
    def test_format_brings_its_schema(self) -> None:
        for kind, label in (("criteo", "label"), ("movielens", "rating")):
            dataset = DatasetConfig(name="d", data_path=("x",), format={"kind": kind})
            assert build_schema(dataset, HyperParameters()).labels[0].name == label

    def test_sparse_feature_number_is_the_hash_size_of_all_slots(self) -> None:
        dataset = DatasetConfig(name="d", data_path=("x",))
        schema = build_schema(dataset, HyperParameters(sparse_feature_number=1000), [Request()])
        assert {slot.hash_size for slot in schema.sparse} == {1000}

    def test_number_of_dense_inputs_is_checked(self) -> None:
        dataset = DatasetConfig(name="d", data_path=("x",))
        assert build_schema(dataset, HyperParameters(dense_input_dim=13))
        with pytest.raises(ConfigError, match="has 13 dense inputs, but `dense_input_dim` is 12"):
            build_schema(dataset, HyperParameters(dense_input_dim=12))

    def test_schema_that_the_core_refuses_is_a_config_error(self) -> None:
        dataset = DatasetConfig.model_validate(
            {
                "name": "d",
                "data_path": "x",
                "schema": {"slots": [{"kind": "sparse", "name": "a"}, {"kind": "sparse", "name": "a"}]},
            }
        )
        with pytest.raises(ConfigError, match="defined twice"):
            build_schema(dataset, HyperParameters())


class TestSchemaFile:
    CONFIG = """\
workspace: "./"
mode: train
runner: [{name: train, class: train}]
dataset: [{name: log, data_path: a.csv, format: csv, schema: "schema.yaml"}]
phase: [{name: p, model: dnn, dataset_name: log}]
"""

    @pytest.fixture(autouse=True)
    def _in_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def test_schema_may_lie_in_its_own_file(self) -> None:
        Path("schema.yaml").write_text("slots:\n- {kind: label, name: y}\n- {kind: sparse, name: a}\n")
        schema = parse_config(self.CONFIG).dataset[0].schema_
        assert schema is not None
        assert [slot.name for slot in schema.slots] == ["y", "a"]

    def test_problem_in_that_file_names_that_file(self) -> None:
        Path("schema.yaml").write_text("slots:\n- {kind: label, name: y}\n- kind: sparse\n  nmae: a\n")
        with pytest.raises(ConfigError) as error:
            parse_config(self.CONFIG)
        assert [(p.file, p.line) for p in error.value.problems] == [("schema.yaml", 3), ("schema.yaml", 4)]

    def test_missing_file_is_reported_where_it_is_named(self) -> None:
        with pytest.raises(ConfigError) as error:
            parse_config(self.CONFIG)
        (problem,) = error.value.problems
        assert (problem.file, problem.line, problem.key) == ("config.yaml", 4, "dataset.0.schema")
