from __future__ import annotations

import gzip
import json
import platform
import re
from pathlib import Path

import pytest
import yaml

import clickmill
from clickmill.cli.describe import print_description
from clickmill.cli.machine import core_build
from clickmill.cli.runs import choose_data, print_summary
from clickmill.config import BUILTIN_MODELS, load_config, parse_config

from .conftest import Run, Spawn

ROOT = Path(__file__).parents[3]


def test_version(spawn: Spawn) -> None:
    assert spawn("--version").stdout == f"clickmill {clickmill.__version__}\n"
    assert json.loads(spawn("--json", "--version").stdout) == {"version": clickmill.__version__}


@pytest.mark.parametrize(
    "wrong",
    [["--dead-after", "-1"], ["--pservers", "0"], ["--index", "1"], ["--port", "99999"], ["--gather", "-1"]],
)
def test_a_server_is_not_started_with_nonsense(spawn: Spawn, wrong: list[str]) -> None:
    result = spawn("pserver", *wrong)
    assert result.returncode == 2
    assert wrong[0].removeprefix("--") in result.stderr, result.stderr


def test_models_lists_all(run: Run) -> None:
    listed = json.loads(run("models", "--json").stdout)
    assert [model["name"] for model in listed] == sorted(BUILTIN_MODELS)
    assert "two_tower" in run("models").stdout


class TestConfig:
    def test_check_says_what_would_run(self, run: Run, config_file: Path) -> None:
        assert run("config", "check", "-m", config_file).stdout == f"{config_file}: ok, runs train\n"

    def test_check_of_files_names_what_is_missing(self, run: Run, config_file: Path) -> None:
        result = run("config", "check", "-m", config_file, "--files")
        assert result.exit_code == 2
        assert "`dataset.0.data_path`: " in result.stderr
        (config_file.parent / "train.tsv").write_text("")
        assert run("config", "check", "-m", config_file, "--files").exit_code == 0

    def test_check_of_files_names_the_line_or_the_override(self, run: Run, config_file: Path) -> None:
        arguments = (
            "config",
            "check",
            "-m",
            config_file,
            "--files",
            "--set",
            "phase.0.model=no.py",
            "--json",
        )
        problems = json.loads(run(*arguments).stderr)["error"]["problems"]
        assert [(problem["file"], problem["line"]) for problem in problems] == [
            ("--set phase.0.model", None),
            (str(config_file), 6),
        ]

    def test_check_refuses_a_runner_that_cannot_run(self, run: Run, config_file: Path) -> None:
        result = run("config", "check", "-m", config_file, "--set", "runner.0.class=infer")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "`runner.0.class`: `infer` needs `init_model_path`" in result.stderr

    def test_shown_configuration_can_be_loaded_again(self, run: Run, config_file: Path) -> None:
        shown = run("config", "show", "-m", config_file, "--set", "runner.0.epochs=7").stdout
        assert parse_config(shown).runner[0].epochs == 7
        as_json = run("config", "show", "-m", config_file, "--set", "runner.0.epochs=7", "--json").stdout
        assert json.loads(as_json) == yaml.safe_load(shown)

    def test_folder_stands_for_its_config(self, run: Run, config_file: Path) -> None:
        assert run("config", "check", "-m", config_file.parent).exit_code == 0


class TestSchema:
    def test_json_is_the_schema_that_the_core_reads(self, run: Run, config_file: Path) -> None:
        schema = json.loads(run("schema", "show", "-m", config_file, "--json").stdout)
        assert [slot["name"] for slot in schema["slots"]][:3] == ["label", "I1", "I2"]

    def test_table_tells_the_transform(self, run: Run, config_file: Path) -> None:
        output = run("schema", "show", "-m", config_file).stdout
        assert "min_max(min=-3.0, max=600.0)" in output

    def test_unknown_data_set_is_refused(self, run: Run, config_file: Path) -> None:
        result = run("schema", "show", "-m", config_file, "--dataset", "nope")
        assert (result.exit_code, "known: `log`" in result.stderr) == (2, True)


class TestDoctor:
    def test_json_has_a_finding_for_each_thing(self, run: Run) -> None:
        report = json.loads(run("doctor", "--json").stdout)
        assert report["ok"]
        findings = {(finding["topic"], finding["what"]): finding for finding in report["findings"]}
        assert findings["core", "profile"]["value"] == "release"
        assert findings["software", "clickmill"]["value"] == clickmill.__version__
        assert ("machine", "memory") in findings
        assert all(finding["remedy"] for finding in findings.values() if finding["state"] != "ok")

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="the only processor with code of its own")
    def test_features_that_are_used_are_those_that_the_core_has_code_for(self, run: Run) -> None:
        build = core_build()
        coded = {
            name
            for path in (ROOT / "crates").rglob("*.rs")
            for names in re.findall(r'#\[target_feature\(enable = "([^"]+)"', path.read_text())
            for name in names.split(",")
        }
        assert coded <= build["cpu_features"].keys()
        assert set(build["cpu_features_used"]) == {name for name in coded if build["cpu_features"][name]}
        findings = json.loads(run("doctor", "--json").stdout)["findings"]
        (used,) = (
            each for each in findings if (each["topic"], each["what"]) == ("core", "CPU features used")
        )
        assert used["value"].split() == sorted(build["cpu_features_used"])

    def test_missing_extras_are_no_failure_and_have_a_remedy(self, spawn: Spawn) -> None:
        result = spawn("doctor", "--json", without=("torch", "pyarrow"))
        findings = {finding["what"]: finding for finding in json.loads(result.stdout)["findings"]}
        assert result.returncode == 0
        assert findings["torch"]["state"] == "missing"
        assert "clickmill[train]" in findings["torch"]["remedy"]
        assert "clickmill[parquet]" in findings["pyarrow"]["remedy"]

    def test_core_that_cannot_be_loaded_is_a_failure(self, spawn: Spawn) -> None:
        result = spawn("doctor", without=("torch", "clickmill._core"))
        assert result.returncode == 1
        assert "broken" in result.stdout

    def test_colour_is_used_only_where_it_is_wanted(self, spawn: Spawn) -> None:
        def output(**environment: str) -> str:
            return spawn("doctor", without=("torch",), environment=environment).stdout

        assert "\x1b[32m" in output(FORCE_COLOR="1")
        assert "\x1b[32m" not in output(FORCE_COLOR="1", NO_COLOR="1")
        assert "\x1b" not in output()


class TestSplit:
    def test_parts_are_reported(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "log.tsv").write_text("1\n2\n3\n4\n")
        result = run(
            "data", "split", tmp_path / "log.tsv", "-o", tmp_path / "out", "--fraction", "0.25", "--json"
        )
        report = json.loads(result.stdout)
        assert (report["train_rows"], report["test_rows"]) == (3, 1)
        assert Path(report["test"]).read_text() == "4\n"

    def test_column_of_the_header_decides(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text("a,hour\nx,3\ny,1\nz,2\n")
        options = ("--header", "--delimiter", ",", "--by", "hour", "--fraction", "0.34", "--json")
        report = json.loads(run("data", "split", tmp_path / "log.csv", "-o", tmp_path, *options).stdout)
        assert Path(report["test"]).read_text() == "a,hour\nx,3\n"

    @pytest.mark.parametrize(
        "content", [None, gzip.compress(b"1\n2\n" * 1000)[:-9]], ids=["absent", "truncated"]
    )
    def test_log_that_cannot_be_read_is_a_data_error(
        self, run: Run, tmp_path: Path, content: bytes | None
    ) -> None:
        log = tmp_path / "log.tsv.gz"
        if content is not None:
            log.write_bytes(content)
        result = run("data", "split", log, "-o", tmp_path / "out")
        assert (result.exit_code, f"cannot read `{log}`" in result.stderr) == (3, True)
        assert list((tmp_path / "out").glob("*")) == []


class TestSynth:
    def test_same_seed_gives_the_same_log_and_a_known_best_auc(self, run: Run, tmp_path: Path) -> None:
        first = run("data", "synth", tmp_path / "a" / "log.tsv", "--rows", "500", "--seed", "3", "--json")
        second = run(
            "data", "synth", tmp_path / "b.tsv", "--rows", "500", "--seed", "3", "--threads", "1", "--json"
        )
        report = json.loads(first.stdout)
        assert report["rows"] == 500
        assert 0.5 < report["bayes_auc"] < 1.0
        assert (tmp_path / "a" / "log.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
        assert json.loads(second.stdout)["bayes_auc"] == report["bayes_auc"]

    def test_table_names_the_best_possible_auc(self, run: Run, tmp_path: Path) -> None:
        result = run("data", "synth", tmp_path / "log.txt", "--rows", "10", "--format", "slots")
        assert "best possible AUC" in result.stdout
        assert (tmp_path / "log.txt").read_text().startswith("click:")


class TestDescribe:
    def test_samples_of_a_users_reader_are_refused_in_words(self, run: Run, config_file: Path) -> None:
        text = config_file.read_text().replace('train.tsv"', 'train.tsv", data_converter: reader.py')
        config_file.write_text(text)
        result = run("data", "describe", "-m", config_file)
        assert (result.exit_code, "a reader class of yours" in result.stderr) == (2, True)

    def test_description_is_shown_as_tables(self, capsys: pytest.CaptureFixture[str]) -> None:
        bad_line = {"file": "a.tsv", "line": 7, "column": 3, "reason": "not a number"}
        numbers = {"share": 1.0, "min": -1.0, "mean": 2.5, "max": 1e6}
        plain = {"coverage": 0.5, "is_exact": True, "mean_length": 1.0, "max_length": 1}
        description = {
            "rows": 12345,
            "bytes": 3 << 20,
            "is_partial": True,
            "label": {"column": "label", "rate": 0.25},
            "bad_lines": {"count": 1, "first": [bad_line]},
            "num_other_columns": 4,
            "columns": [
                {"name": "I1", **plain, "distinct": 9, "numbers": numbers,
                 "frequent": [["1", 0.5], ["", 0.1]]},
                {"name": "C1", **plain, "distinct": 1000, "is_exact": False, "numbers": None, "frequent": [],
                 "mean_length": 1.5, "max_length": 7},
            ],
        }  # fmt: skip
        print_description(description, ["a.tsv"])
        output = capsys.readouterr().out
        for text in ("12,345 (not all)", "3.0 MiB", "0.25", "████░░░░  50.0%", "~1,000",
                     "1 50.0%, (empty) 10.0%",
                     "1.5, at most 7", "a.tsv:7:3", "not a number"):  # fmt: skip
            assert text in output

    def test_log_of_bad_lines_tells_them_and_how_it_was_read(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text("a,b\n1,2\n")
        result = run("data", "describe", tmp_path / "log.csv")
        assert result.exit_code == 3
        assert "log.csv:1:4" in result.stdout
        assert "expected 40 columns, found 1" in result.stdout
        assert "hint: they were read as `criteo`; `--format`" in result.stderr
        told = json.loads(run("data", "describe", tmp_path / "log.csv", "--json").stdout)
        assert (told["rows"], told["bad_lines"]["count"], told["columns"]) == (0, 2, [])

    def test_empty_log_is_a_data_error(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "log.tsv").touch()
        result = run("data", "describe", tmp_path / "log.tsv")
        assert (result.exit_code, result.stdout) == (3, "")
        assert "no sample in 1 files" in result.stderr

    def test_characters_that_stdout_does_not_have_are_replaced(self, spawn: Spawn, tmp_path: Path) -> None:
        (tmp_path / "log.txt").write_text("click:1 city:Zürich\nclick:0\n")
        ascii_only = {"PYTHONIOENCODING": "ascii"}
        arguments = ("data", "describe", "log.txt", "--format", "slots")
        shown = spawn(*arguments, environment=ascii_only)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "####....  50.0%" in shown.stdout
        assert "Z?rich" in shown.stdout
        columns = json.loads(spawn(*arguments, "--json", environment=ascii_only).stdout)["columns"]
        assert columns[1]["frequent"] == [["Zürich", 1.0]]

    def test_format_with_options_points_to_the_configuration(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("x")
        result = run("data", "describe", tmp_path / "a", "--format", "delimited")
        assert (result.exit_code, "`-m`" in result.stderr) == (2, True)

    def test_files_and_configuration_exclude_each_other(self, run: Run) -> None:
        assert run("data", "describe").exit_code == 2
        assert run("data", "describe", "a.tsv", "-m", "dnn").exit_code == 2


class TestRuns:
    def test_other_files_replace_those_of_the_data_set_and_nothing_else(self, config_file: Path) -> None:
        config = load_config(config_file)
        changed, name = choose_data(config, None, ["test.tsv", "more.tsv"])
        assert name == "log"
        assert changed.dataset_named("log").data_path == ("test.tsv", "more.tsv")
        assert changed.phase == config.phase
        assert choose_data(config, "log", None) == (config, "log")

    def test_summary_sets_the_parts_side_by_side(self, capsys: pytest.CaptureFixture[str]) -> None:
        summary = {
            "samples": 1000,
            "folder": "runs/x",
            "best": None,
            "train": {"auc": 0.75, "gauc": float("nan")},
        }
        print_summary({**summary, "validation": {"auc": 0.7}})
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert {"samples 1,000", "folder runs/x", "metric train validation", "auc 0.750000 0.700000"} <= set(
            lines
        )
        assert "gauc nan -" in lines
        assert not any("best" in line for line in lines)

    def test_report_of_no_run_says_what_to_give(self, run: Run, tmp_path: Path) -> None:
        result = run("report", tmp_path / "nothing")
        assert (result.exit_code, "hint: give the folder of a run" in result.stderr) == (2, True)
