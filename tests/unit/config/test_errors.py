"""Each mistake gives its own message, with its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from clickmill.config import load_config, parse_config
from clickmill.config.checks import run_problems
from clickmill.errors import ConfigError, Problem
from clickmill.schema import build_schema

Find = Callable[..., dict[str | None, Problem]]


def test_unknown_key_names_line_column_and_the_nearest_key(small: str, problems: Find) -> None:
    found = problems(small.replace("class: train", "class: train\n  epoch: 4"))["runner.0.epoch"]
    assert (found.file, found.line, found.column, found.suggestion) == ("config.yaml", 6, 3, "epochs")
    assert str(found) == "config.yaml:6:3: `runner.0.epoch`: unknown key; did you mean `epochs`?"


def test_unknown_key_like_no_other_lists_the_known_ones(small: str, problems: Find) -> None:
    found = problems(small.replace("model: dnn", "model: dnn\n  zzz: 1"))["phase.0.zzz"]
    assert found.suggestion is None
    assert "`thread_num`" in found.message


def test_unknown_key_inside_a_union_is_compared_with_the_chosen_member(small: str, problems: Find) -> None:
    text = small.replace("data_path: train.txt", "data_path: a\n  format: {kind: criteo, has_lable: true}")
    assert problems(text)["dataset.0.format.has_lable"].suggestion == "has_label"


def test_wrong_knob_is_told_with_its_own_line_key_and_value(small: str, problems: Find) -> None:
    knobs = "communicator:\n    FLAGS_communicator_send_queue_size: -1\n    rpc_deadline: 0"
    found = problems(small.replace("class: train", f"class: train\n  {knobs}"))
    assert {(each.line, each.key, each.value) for each in found.values()} == {
        (7, "runner.0.communicator.FLAGS_communicator_send_queue_size", "`-1`"),
        (8, "runner.0.communicator.rpc_deadline", "`0`"),
    }


def test_of_two_spellings_the_one_that_counts_is_told(small: str, problems: Find) -> None:
    knobs = "communicator:\n    rpc_retry_times: 1\n    FLAGS_rpc_retry_times: a"
    (found,) = problems(small.replace("class: train", f"class: train\n  {knobs}")).values()
    assert (found.line, found.key) == (8, "runner.0.communicator.FLAGS_rpc_retry_times")


def test_missing_key_names_the_line_of_its_section(small: str, problems: Find) -> None:
    found = problems(small.replace("  dataset_name: log\n", ""))["phase.0.dataset_name"]
    assert found.line == 10
    assert found.message.startswith("required key is missing; add `dataset_name`: ")


def test_missing_key_is_told_with_what_it_is_for_or_can_be(small: str, problems: Find) -> None:
    found = problems(small.replace("workspace:", "debug: true #"))["workspace"]
    assert found.message.startswith("required key is missing; add `workspace`: folder that `{workspace}`")
    found = problems(small.replace("  class: train\n", ""))["runner.0.class"]
    assert "add `class`, one of `train`, `infer`," in found.message
    found = problems(small.replace("data_path: train.txt", "data_path: a\n  format: {has_label: true}"))
    assert "add `kind`, one of `criteo`, `slots`," in found["dataset.0.format.kind"].message


def test_missing_section_is_reported_at_the_top(problems: Find) -> None:
    found = problems("workspace: ./\n")
    assert set(found) == {"mode", "runner", "phase"}
    assert {problem.line for problem in found.values()} == {1}


def test_misspelt_strategy_suggests_async(small: str, problems: Find) -> None:
    text = small.replace("class: train", "class: cluster_train\n  distribute_strategy: asycn")
    found = problems(text)["runner.0.distribute_strategy"]
    assert (found.line, found.column, found.suggestion) == (6, 24, "async")
    assert "`half_async`" in found.message


def test_all_problems_are_reported_at_once(small: str, problems: Find) -> None:
    text = (
        small.replace("mode: train", "mode: trian")
        .replace("class: train", "class: train\n  epochs: many\n  seed: -1")
        .replace("dataset_name: log", "dataset_name: lgo")
        .replace("model: dnn", "model: dn")
    )
    assert set(problems(text)) == {
        "mode", "runner.0.epochs", "runner.0.seed", "phase.0.dataset_name", "phase.0.model",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("class: train", "class: train\n  epochs: two", "runner.0.epochs", "whole number, not `two`"),
        ("class: train", "class: train\n  epochs: 1.5", "runner.0.epochs", "whole number"),
        ("class: train", "class: train\n  epochs: true", "runner.0.epochs", "not true or false"),
        ("class: train", "class: train\n  epochs: 0", "runner.0.epochs", "1 or more"),
        ("class: train", "class: train\n  epochs: [1]", "runner.0.epochs", "whole number"),
        ("name: log", "name: log\n  require_slots: 7", "dataset.0.require_slots", "true or false"),
        ("class: train", "class: trian", "runner.0.class", "must be one of `train`"),
        ("class: train", "class: train\n  clip_norm: .inf", "runner.0.clip_norm", "finite"),
        ("class: train", "class: train\n  clip_norm: 0", "runner.0.clip_norm", "more than 0"),
        ("mode: train", "mode: []", "mode", "must not be empty"),
        ("data_path: train.txt", "data_path: []", "dataset.0.data_path", "must not be empty"),
        ("data_path: train.txt", "data_path: {a: 1}", "dataset.0.data_path", "list"),
        ("data_path: train.txt", "data_path: a\n  format: tsv", "dataset.0.format", "must be one of"),
        ("data_path: train.txt", "data_path: a\n  format: {delimiter: x}", "dataset.0.format.kind", "miss"),
        ("data_path: train.txt", "data_path: a\n  format: delimited", "dataset.0.format.columns", "missing"),
        ("data_path: train.txt", "data_path: a\n  dense_slots: a", "dataset.0.dense_slots", "name:width"),
        ("data_path: train.txt", "data_path: a\n  sparse_slots: a b a", "dataset.0.sparse_slots", "twice"),
        ("data_path: train.txt", "data_path: a\n  sparse_slots: 1 2", "dataset.0", "label_slot"),
        ("data_path: train.txt", "data_path: a\n  format: csv", "dataset.0", "give `schema`"),
        ("data_path: train.txt", "data_path: a\n  validation: {}", "dataset.0.validation", "either"),
        ("runner:", "runner: 3\nzz:", "runner", "list"),
    ],
)  # fmt: skip
def test_wrong_value_says_what_is_allowed(
    small: str, problems: Find, old: str, new: str, key: str, words: str
) -> None:
    assert words in problems(small.replace(old, new, 1))[key].message


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("runner.0.seed", str(2**64), "must be 18446744073709551615 or less"),
        ("runner.0.epochs", str(2**63), "or less"),
        ("runner.0.epochs", "9" * 5000, "must be a whole number"),
        ("runner.0.epochs", "0x" + "f" * 5000, "must be a whole number"),
        ("runner.0.clip_norm", "9" * 400, "must be a"),
        ("dataset.0.batch_size", "10000000000000", "must be 16777216 or less"),
        ("dataset.0.threads", "1000000", "must be 1024 or less"),
        ("dataset.0.max_line_bytes", "99999999999999999999999", "or less"),
        ("dataset.0.shuffle", "{kind: buffer, rows: 1e14}", "must be 1073741824 or less"),
        ("dataset.0.shuffle", f"{{kind: buffer, seed: {2**64}}}", "or less"),
        ("dataset.0.dense_slots", "a:9999999999,9999999999", "must be 4096 or less"),
        ("phase.0.thread_num", "1000000", "must be 1024 or less"),
        ("hyper_parameters.fc_sizes", "[99999999999999999999]", "must be 16777216 or less"),
        ("hyper_parameters.tables", "{embedding: {seed: 99999999999999999999}}", "or less"),
        ("hyper_parameters.tables", "{embedding: {eviction: {ttl_steps: 4294967296}}}", "or less"),
    ],
)
def test_number_beyond_its_limit_is_refused_with_its_key(
    small: str, problems: Find, key: str, value: str, words: str
) -> None:
    (problem,) = problems(small, overrides=[f"{key}={value}"]).values()
    assert problem.file == f"--set {key}"
    assert (problem.key or "").startswith(key)
    assert words in problem.message


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_every_seed_of_64_bits_is_one_that_the_core_takes(small: str, seed: int) -> None:
    config = parse_config(small, overrides=[f"runner.0.seed={seed}"])
    requests = [SimpleNamespace(name="embedding", dim=4)]
    schema = build_schema(config.dataset[0], config.hyper_parameters, requests, seed=config.runner[0].seed)
    assert schema.tables[0].seed == seed


def test_optimizer_refuses_keys_of_another(small: str, problems: Find) -> None:
    found = problems(small + "hyper_parameters:\n  optimizer: {class: sgd, beta1: 0.9}\n")
    assert list(found) == ["hyper_parameters.optimizer.beta1"]


@pytest.mark.parametrize("section", ["optimizer", "sparse_optimizer"])
@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("1e39", "too large for a 32-bit float, which the core computes with: `1e+39`; give a size from"),
        ("1e-46", "too small for a 32-bit float"),
        (".nan", "finite number"),
        ("nan", "finite number"),
        (".inf", "finite number"),
        ("-0.1", "must be more than 0"),
        ("0", "must be more than 0"),
        ("fast", "must be a number"),
    ],
)
def test_a_learning_rate_that_cannot_be_says_key_line_and_what_can(
    small: str, problems: Find, section: str, rate: str, words: str
) -> None:
    text = f"{small}hyper_parameters:\n  {section}:\n    class: SGD\n    learning_rate: {rate}\n"
    found = problems(text)[f"hyper_parameters.{section}.learning_rate"]
    assert words in found.message
    assert found.line == text.count("\n")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("reg", "1e39"),
        ("optimizer", "{class: Adam, epsilon: 1e-50}"),
        ("optimizer", "{class: AdamW, weight_decay: 1e39}"),
    ],
)
def test_other_numbers_of_the_core_are_32_bit_floats_too(
    small: str, problems: Find, key: str, value: str
) -> None:
    (found,) = problems(f"{small}hyper_parameters:\n  {key}: {value}\n").values()
    assert "32-bit float" in found.message


def test_unknown_optimizer_suggests_the_nearest(small: str, problems: Find) -> None:
    found = problems(small + "hyper_parameters:\n  optimizer: {class: adma}\n")
    assert found["hyper_parameters.optimizer.class"].suggestion == "Adam"


class TestText:
    def test_empty_file_says_what_belongs_there(self) -> None:
        with pytest.raises(ConfigError, match="is empty; a configuration has the keys `workspace`"):
            parse_config("# nothing but a comment\n")

    @pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n"])
    def test_top_that_is_no_mapping_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigError, match=r"config\.yaml:1:1: the top must be a mapping"):
            parse_config(text)

    def test_syntax_error_has_its_place(self) -> None:
        with pytest.raises(ConfigError, match=r"config\.yaml:2:6: not valid YAML") as error:
            parse_config("a: 1\nb: [1}\n")
        assert error.value.problems[0].line == 2

    def test_tab_gets_a_hint(self) -> None:
        with pytest.raises(ConfigError) as error:
            parse_config("runner:\n\t- name: a\n")
        assert error.value.hint == "indent with spaces, YAML takes no tabs"

    @pytest.mark.parametrize(
        "value",
        ["*hunter2", "!hunter2 x", "!hun!ter2 x", "&hunter2 *hunter2", "[hunter2", '"hunter2', "`hunter2"],
    )
    def test_nothing_of_a_text_that_is_no_yaml_is_repeated(self, value: str) -> None:
        with pytest.raises(ConfigError, match=r"^config\.yaml:[12]:\d+: ") as error:
            parse_config(f"a: {value}\n")
        assert "hunter2" not in f"{error.value} {error.value.hint} {error.value.problems}"
        assert "hun!" not in str(error.value)
        assert error.value.__suppress_context__ or error.value.__context__ is None

    def test_two_documents_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="not valid YAML"):
            parse_config("a: 1\n---\nb: 2\n")

    def test_python_tags_are_refused(self, small: str) -> None:
        with pytest.raises(ConfigError, match="a tag is not allowed here"):
            parse_config(small.replace("dnn", "!!python/name:os.system"))

    def test_alias_that_contains_itself_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="contains itself"):
            parse_config("a: &a\n  b: *a\n")

    def test_aliases_cannot_blow_up(self) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
        with pytest.raises(ConfigError, match="more than 100000 values"):
            parse_config("\n".join(lines))

    def test_nesting_beyond_reason_is_refused_with_its_place(self) -> None:
        with pytest.raises(ConfigError, match=r"config\.yaml:2:103: nested too deeply"):
            parse_config("a: 1\nb: " + "[" * 5000 + "]" * 5000)

    def test_nesting_by_aliases_is_refused_with_its_place(self) -> None:
        lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 3000))]
        with pytest.raises(ConfigError, match=r"config\.yaml:\d+:\d+: nested too deeply"):
            parse_config("\n".join(lines))

    def test_bytes_that_are_not_utf8_name_the_line(self, tmp_path: Path) -> None:
        file = tmp_path / "config.yaml"
        file.write_bytes(b"workspace: a\nmode: \xff\n")
        with pytest.raises(ConfigError, match=r"config\.yaml:2: byte 0xff is not UTF-8"):
            load_config(file)

    def test_control_character_names_the_line(self) -> None:
        with pytest.raises(ConfigError, match=r"config\.yaml:2: character U\+0001"):
            parse_config("a: 1\nb: \x01\n")


class TestSource:
    def test_folder_without_a_config_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"has no config\.yaml"):
            load_config(tmp_path)

    def test_unknown_source_lists_the_built_in_models(self, in_folder: Path) -> None:
        with pytest.raises(ConfigError, match="there is no configuration `dnnn`") as error:
            load_config("dnnn")
        assert "`dnn`" in (error.value.hint or "")

    def test_unreadable_file_says_why(self, tmp_path: Path) -> None:
        loop = tmp_path / "config.yaml"
        loop.symlink_to(loop)
        with pytest.raises(ConfigError):
            load_config(loop)


class TestCrossChecks:
    @pytest.mark.parametrize(
        ("old", "new", "key", "words"),
        [
            ("class: train", "class: cluster_train\n  device: gpu", "runner.0.device", "collective"),
            ("class: train", "class: train\n  selected_gpus: a", "runner.0.selected_gpus", "match"),
            ("class: train", "class: infer\n  worker_num: 2", "runner.0.class", "one process"),
            ("class: train", "class: train\n  phases: [fist]", "runner.0.phases.0", "no phase `fist`"),
            ("class:", "evaluate_dataset_name: x\n  class:", "runner.0.evaluate_dataset_name", "no dataset"),
        ],
    )  # fmt: skip
    def test_combination_that_cannot_run(
        self, small: str, problems: Find, old: str, new: str, key: str, words: str
    ) -> None:
        assert words in problems(small.replace(old, new, 1))[key].message

    def test_cluster_trains_one_phase_only(self, small: str, problems: Find) -> None:
        text = small.replace("class: train", "class: cluster_train")
        text += "- {name: second, model: dnn, dataset_name: log}\n"
        assert "one phase, not 2" in problems(text)["runner.0"].message

    def test_collective_takes_no_queue_dataset(self, small: str, problems: Find) -> None:
        text = small.replace("class: train", "class: cluster_train\n  device: gpu\n  fleet_mode: collective")
        text = text.replace("data_path", "type: QueueDataset\n  data_path")
        assert "QueueDataset" in problems(text)["runner.0.fleet_mode"].message

    def test_name_that_is_used_twice_names_both_lines(self, small: str, problems: Find) -> None:
        found = problems(small + "- {name: first, model: dnn, dataset_name: log}\n")["phase.1.name"]
        assert (found.line, "line 10" in found.message) == (13, True)

    def test_placeholder_with_a_slip_is_found(self, small: str, problems: Find) -> None:
        found = problems(small.replace("train.txt", '"{workpsace}/a"'))["dataset.0.data_path"]
        assert found.suggestion == "{workspace}"

    def test_workspace_of_an_unknown_model_suggests_the_nearest(self, small: str, problems: Find) -> None:
        found = problems(small.replace('"./"', "paddlerec.models.rank.depfm"))["workspace"]
        assert found.suggestion == "deepfm"


class TestRunners:
    @pytest.mark.parametrize(
        ("second", "words"),
        [
            ("class: infer", "`infer` needs `init_model_path`, a checkpoint"),
            ("class: cluster_train", "it must be the only runner of `mode`"),
        ],
    )
    def test_runner_that_cannot_run_is_known_with_its_line(self, small: str, second: str, words: str) -> None:
        text = small.replace("dataset:", f"- name: second\n  {second}\ndataset:", 1)
        (problem,) = run_problems(parse_config(text.replace("mode: train", "mode: [train, second]")))
        assert (problem.key, problem.line) == ("runner.1.class", 7)
        assert words in problem.message
        assert run_problems(parse_config(text)) == []


class TestCharacters:
    @pytest.mark.parametrize("escape", [r"\ud800", r"\udc00", r"\udc00\ud800", r"a\ud83dx"])
    def test_half_of_a_character_is_refused_where_it_stands(self, escape: str) -> None:
        with pytest.raises(ConfigError) as error:
            parse_config(f'a:\n  b: [1, "{escape}"]\n')
        (found,) = error.value.problems
        assert (found.line, found.key) == (2, "a.b.1")
        assert "is half of one" in found.message
        with pytest.raises(ConfigError, match=r"^config\.yaml:1:1: .* is half of one$"):
            parse_config(f'"{escape}": 1\n')

    def test_halves_that_belong_together_are_one_character_as_in_json(self, small: str) -> None:
        text = small.replace("data_path: train.txt", r'data_path: "\ud83d\ude00.txt"')
        assert parse_config(text).dataset[0].data_path == ("\U0001f600.txt",)

    def test_null_character_is_refused_where_it_stands(self, small: str, problems: Find) -> None:
        with pytest.raises(ConfigError, match=r"config\.yaml:2:7: `mode`: must be a text without null"):
            parse_config(small.replace("mode: train", r'mode: "train\0"'))

    def test_override_that_is_no_text_is_refused(self, small: str, problems: Find) -> None:
        for value in ("{workspace}/\udcff", r'"\ud800"', r'"\0"'):
            (found,) = problems(small, overrides=[f"dataset.0.data_path={value}"]).values()
            assert found.file == "--set dataset.0.data_path"

    def test_control_characters_are_shown_as_escapes(self) -> None:
        found = Problem("not `a\n`", "a\x1b.yaml", 1, 2, "k\x9b[31m", suggestion="\u202eb")
        assert str(found) == (r"a\x1b.yaml:1:2: `k\x9b[31m`: not `a\n`; did you mean `\u202eb`?")
        assert str(ConfigError.of([found, found])).count("\n") == 2


def test_name_that_is_empty_is_not_the_current_folder(in_folder: Path, small: str) -> None:
    (in_folder / "config.yaml").write_text(small)
    for name in ("", " "):
        with pytest.raises(ConfigError, match="the name of the configuration is empty"):
            load_config(name)


@pytest.mark.parametrize("name", ["folder", "x" * 300, "absent.yaml", "pipe"])
def test_configuration_that_is_not_there_is_told_with_what_to_name(in_folder: Path, name: str) -> None:
    (in_folder / "folder").mkdir()
    os.mkfifo(in_folder / "pipe")
    with pytest.raises(ConfigError) as error:
        load_config(name)
    assert name in str(error.value)
    assert "a folder with a config.yaml" in (error.value.hint or "")


URL_KEYS = ("init_model_path", "init-pretraining-model-path", "save_checkpoint_path", "save_step_path")


@pytest.mark.parametrize("key", URL_KEYS)
def test_url_of_no_store_is_told_with_its_line_and_the_nearest_store(
    small: str, problems: Find, key: str
) -> None:
    (found,) = problems(small.replace("class: train", f"class: train\n  {key}: hfds://h/x")).values()
    assert (found.line, found.key, found.suggestion) == (6, f"runner.0.{key}", "hdfs://")
    assert found.message.startswith("is in no store that is known; there are `s3://`, ")


def test_data_in_no_store_is_told_without_what_may_be_secret_in_its_url(small: str, problems: Find) -> None:
    data = 'data_path: [a, "ftp://me:some-word@b/in?sig=some-word"]\n  validation: {data_path: "s3:///x"}'
    found = problems(small.replace("data_path: train.txt", data))
    assert {key: problem.suggestion for key, problem in found.items()} == {
        "dataset.0.data_path.1": "http://",
        "dataset.0.validation.data_path": None,
    }
    assert found["dataset.0.validation.data_path"].message == "names no bucket"
    assert "some-word" not in str([problem.to_dict() for problem in found.values()])


@pytest.mark.parametrize(
    "text", ["C:/in", "C://in", "a:b", "s3:/in", "hdfs:x", "hdfs:/x", "afs:/x", "HDFS://h/x", "./a://b"]
)
def test_path_with_a_colon_is_a_path_and_a_url_may_leave_out_its_host(small: str, text: str) -> None:
    assert parse_config(small.replace("train.txt", text)).dataset[0].data_path == (text,)


def test_folder_of_a_run_is_no_url_without_a_host_either(small: str) -> None:
    config = parse_config(small.replace("class: train", "class: train\n  output_path: hdfs:/out"))
    (problem,) = run_problems(config)
    assert (problem.line, problem.message.partition(",")[0]) == (6, "is a URL")
