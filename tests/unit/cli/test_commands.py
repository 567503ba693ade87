from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml

import clickmill
from clickmill.cli.describe import print_description
from clickmill.cli.split import SplitBy, split_log
from clickmill.config import BUILTIN_MODELS, parse_config
from clickmill.errors import ConfigError, DataError

from .conftest import Run, Spawn


def test_version(spawn: Spawn) -> None:
    assert spawn("--version").stdout == f"clickmill {clickmill.__version__}\n"
    assert json.loads(spawn("--json", "--version").stdout) == {"version": clickmill.__version__}


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
        assert "`dataset.0.data_path`: there is no file or folder" in result.stderr
        (config_file.parent / "train.tsv").write_text("")
        assert run("config", "check", "-m", config_file, "--files").exit_code == 0

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
    def lines(self, path: str) -> list[str]:
        return Path(path).read_text().splitlines()

    def test_order_holds_out_the_last_lines(self, tmp_path: Path) -> None:
        log = tmp_path / "log.tsv"
        log.write_text("".join(f"{row}\n" for row in range(10)))
        report = split_log(log, tmp_path / "out", fraction=0.2, by=SplitBy.ORDER)
        assert self.lines(report.train) == [str(row) for row in range(8)]
        assert self.lines(report.test) == ["8", "9"]
        assert (report.train_rows, report.test_rows) == (8, 2)

    def test_hash_depends_on_the_line_alone(self, tmp_path: Path) -> None:
        rows = [f"{row}\tx" for row in range(1000)]
        (tmp_path / "a.tsv").write_text("\n".join(rows))
        (tmp_path / "b.tsv").write_text("\n".join(reversed(rows)) + "\n")
        first = split_log(tmp_path / "a.tsv", tmp_path / "1", fraction=0.3, by=SplitBy.HASH)
        second = split_log(tmp_path / "b.tsv", tmp_path / "2", fraction=0.3, by=SplitBy.HASH)
        assert sorted(self.lines(first.test)) == sorted(self.lines(second.test))
        assert sorted(self.lines(first.test) + self.lines(first.train)) == sorted(rows)
        assert 200 < first.test_rows < 400

    def test_header_goes_to_both_parts(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text("a,b\n1,2\n3,4\n")
        report = split_log(
            tmp_path / "log.csv", tmp_path / "out", fraction=0.5, by=SplitBy.ORDER, has_header=True
        )
        assert self.lines(report.train) == ["a,b", "1,2"]
        assert self.lines(report.test) == ["a,b", "3,4"]

    def test_gzip_stays_gzip_and_the_bytes_repeat(self, tmp_path: Path) -> None:
        log = tmp_path / "log.tsv.gz"
        log.write_bytes(gzip.compress(b"1\n2\n"))
        written = []
        for folder in ("a", "b"):
            report = split_log(log, tmp_path / folder, fraction=0.5, by=SplitBy.ORDER)
            assert gzip.decompress(Path(report.test).read_bytes()) == b"2\n"
            written.append(gzip.decompress(Path(report.train).read_bytes()))
        assert written[0] == written[1]

    @pytest.mark.parametrize(
        "content", [b"", gzip.compress(b"1\n2\n" * 1000)[:-9]], ids=["empty", "truncated"]
    )
    def test_file_that_cannot_be_split_leaves_nothing_behind(self, tmp_path: Path, content: bytes) -> None:
        log = tmp_path / "log.tsv.gz"
        log.write_bytes(content)
        for by in SplitBy:
            if content or by is SplitBy.ORDER:
                with pytest.raises(DataError):
                    split_log(log, tmp_path / "out", fraction=0.5, by=by)
        assert [file.name for file in (tmp_path / "out").glob("*")] == []

    def test_source_is_never_written_over(self, tmp_path: Path) -> None:
        log = tmp_path / "train.tsv"
        log.write_text("1\n2\n")
        with pytest.raises(ConfigError, match="would write over"):
            split_log(log, tmp_path, fraction=0.5, by=SplitBy.ORDER)
        assert log.read_text() == "1\n2\n"

    def test_command_reports_the_parts(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "log.tsv").write_text("1\n2\n3\n4\n")
        result = run("data", "split", tmp_path / "log.tsv", "-o", tmp_path, "--fraction", "0.25", "--json")
        assert json.loads(result.stdout)["test_rows"] == 1


class TestDescribe:
    def test_description_is_shown_as_tables(self, capsys: pytest.CaptureFixture[str]) -> None:
        description = {
            "rows": 12345,
            "bytes": 3 << 20,
            "label_rate": 0.25,
            "bad_lines": {
                "count": 1,
                "first": [{"file": "a.tsv", "line": 7, "column": 3, "reason": "not a number"}],
            },
            "columns": [
                {
                    "name": "I1",
                    "coverage": 0.5,
                    "distinct": 9,
                    "min": -1.0,
                    "mean": 2.5,
                    "max": 1e6,
                    "top": [],
                },
                {"name": "C1", "coverage": 1.0, "distinct": 1000, "top": [["68fd1e64", 4000], ["", 10]]},
            ],
        }
        print_description(description, ["a.tsv"])
        output = capsys.readouterr().out
        for text in (
            "12,345",
            "3.0 MiB",
            "25.0%",
            "68fd1e64 (4,000)",
            "(empty) (10)",
            "a.tsv:7:3",
            "not a number",
        ):
            assert text in output

    def test_format_with_options_points_to_the_configuration(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("x")
        result = run("data", "describe", tmp_path / "a", "--format", "delimited")
        assert (result.exit_code, "`-m`" in result.stderr) == (2, True)

    def test_files_and_configuration_exclude_each_other(self, run: Run) -> None:
        assert run("data", "describe").exit_code == 2
        assert run("data", "describe", "a.tsv", "-m", "dnn").exit_code == 2
