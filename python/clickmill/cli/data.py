"""`clickmill data`: make, look at and split click logs."""

from __future__ import annotations

import json as jsonlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from clickmill.cli.core import core_function
from clickmill.cli.describe import print_description
from clickmill.cli.options import Json, OptionalConfigSource
from clickmill.cli.output import bytes_text, print_json, print_table
from clickmill.cli.progress import row_progress
from clickmill.cli.split import SplitBy, split_log

app = typer.Typer(
    help="Make, describe and split click logs.\n\n\b\nExample:\n  clickmill data synth log.tsv --rows 100000",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class SynthFormat(StrEnum):
    """Formats that `synth` writes."""

    CRITEO = "criteo"
    SLOTS = "slots"
    MULTI_SLOT = "multi_slot"


@app.command()
def synth(
    output: Annotated[Path, typer.Argument(help="The log; `.gz` and `.zst` are compressed.")],
    rows: Annotated[int, typer.Option(min=1, help="Number of samples.")] = 100_000,
    format: Annotated[SynthFormat, typer.Option(help="How samples are written.")] = SynthFormat.CRITEO,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another world.")] = 0,
    start_row: Annotated[int, typer.Option(min=0, help="First row: a held-out log is a later range.")] = 0,
    parts: Annotated[int, typer.Option(min=1, help="Number of files.")] = 1,
    drift: Annotated[float, typer.Option(min=0.0, help="Renewals of the world per million rows.")] = 0.0,
    threads: Annotated[int, typer.Option(min=0, help="0: one per core.")] = 0,
    truth: Annotated[Path | None, typer.Option(help="Second file: the true probability of each row.")] = None,
    json: Json = False,
) -> None:
    """Write a made-up Criteo-like click log with a hidden model and a known best AUC.

    The same seed and range give the same bytes, whatever the number of threads.

    \b
    Example:
      clickmill data synth train.tsv --rows 1000000
      clickmill data synth test.tsv.gz --rows 100000 --start-row 1000000
    """
    make = core_function("synth")
    output.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "path": str(output),
        "rows": rows,
        "seed": seed,
        "start_row": start_row,
        "format": format.value,
        "parts": parts,
        "drift": drift,
        "threads": threads,
        "truth_path": None if truth is None else str(truth),
    }
    with row_progress("writing", total=rows, is_shown=not json) as progress:
        report: dict[str, Any] = jsonlib.loads(make(jsonlib.dumps(config), progress))
    if json:
        print_json(report)
        return
    rows_shown = [
        ("rows", f"{report['rows']:,}"),
        ("clicked", f"{report['click_rate']:.2%}"),
        ("best possible AUC", f"{report['bayes_auc']:.4f}"),
        ("best possible logloss", f"{report['bayes_logloss']:.4f}"),
        ("size", bytes_text(report["bytes"])),
        ("files", "\n".join(report["files"])),
    ]
    print_table(("log", "value"), rows_shown)


@app.command()
def describe(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Files, folders or patterns.")
    ] = None,
    model: OptionalConfigSource = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Data set of the configuration; the first where absent.")
    ] = None,
    format: Annotated[str, typer.Option(help="Format of PATH, for example `criteo` or `csv`.")] = "criteo",
    limit: Annotated[int, typer.Option(min=0, help="Look at so many rows. 0: all.")] = 0,
    json: Json = False,
) -> None:
    """Tell what is in a click log: rows, label rate, coverage and cardinality of every column, worst lines.

    \b
    Example:
      clickmill data describe train.tsv
      clickmill data describe -m config.yaml --dataset test --json
    """
    config = _reader_config(paths or [], model, dataset, format)
    description = jsonlib.loads(core_function("describe")(jsonlib.dumps(config), limit))
    if json:
        print_json(description)
    else:
        print_description(description, config["files"])


def _reader_config(paths: list[str], model: str | None, dataset: str | None, format: str) -> dict[str, Any]:
    from pydantic import TypeAdapter, ValidationError

    from clickmill.config import DatasetConfig, load_config, reader_config
    from clickmill.config.files import expand_files
    from clickmill.config.formats import FormatConfig
    from clickmill.errors import ConfigError

    if (model is None) == (not paths):
        raise ConfigError("give either files or a configuration with `-m`")
    if model is not None:
        config = load_config(model)
        if not config.dataset:
            raise ConfigError(f"{config.file}: has no data set")
        section = config.dataset_named(dataset) if dataset else config.dataset[0]
    else:
        try:
            TypeAdapter(FormatConfig).validate_python({"kind": format})
        except ValidationError as error:
            known = "criteo, slots, show_click, libsvm, csv, movielens"
            hint = "a format with options goes into a configuration, see `-m`"
            raise ConfigError(
                f"cannot read format `{format}` without more; allowed: {known}", hint=hint
            ) from error
        section = DatasetConfig.model_validate({"name": "files", "data_path": paths, "format": format})
    return reader_config(section, expand_files(section.data_path))


@app.command()
def split(
    path: Annotated[Path, typer.Argument(help="The log; one sample on a line, plain or `.gz`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for `train` and `test`.")] = Path(),
    fraction: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of the test part.")] = 0.2,
    by: Annotated[
        SplitBy, typer.Option(help="`order`: the last lines. `hash`: lines at random, by content.")
    ] = (SplitBy.ORDER),
    header: Annotated[
        bool, typer.Option("--header", help="The first line is a header, for both parts.")
    ] = False,
    json: Json = False,
) -> None:
    """Split a click log into a training and a test part.

    \b
    Example:
      clickmill data split log.tsv --fraction 0.2 --output parts
      clickmill data split log.csv.gz --header --by hash
    """
    from dataclasses import asdict

    report = split_log(path, output, fraction=fraction, by=by, has_header=header)
    if json:
        print_json(asdict(report))
        return
    rows = [(report.train, f"{report.train_rows:,}"), (report.test, f"{report.test_rows:,}")]
    print_table(("part", "rows"), rows, numbers=("rows",))
