"""`clickmill data`: make, look at and split click logs."""

from __future__ import annotations

import json as jsonlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from clickmill._limits import MAX_SEED, MAX_THREADS, MAX_WHOLE_NUMBER
from clickmill.cli.describe import print_description
from clickmill.cli.options import Json, OptionalConfigSource
from clickmill.cli.output import bytes_text, print_json, print_table
from clickmill.cli.progress import row_progress

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
    rows: Annotated[int, typer.Option(min=1, max=MAX_WHOLE_NUMBER, help="Number of samples.")] = 100_000,
    format: Annotated[SynthFormat, typer.Option(help="How samples are written.")] = SynthFormat.CRITEO,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Another seed is another world.")] = 0,
    start_row: Annotated[
        int, typer.Option(min=0, max=MAX_WHOLE_NUMBER, help="First row: a held-out log is a later range.")
    ] = 0,
    parts: Annotated[int, typer.Option(min=1, max=100_000, help="Number of files.")] = 1,
    drift: Annotated[float, typer.Option(min=0.0, help="Renewals of the world per million rows.")] = 0.0,
    threads: Annotated[int, typer.Option(min=0, max=MAX_THREADS, help="0: one per core.")] = 0,
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
    from clickmill import _core

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
        report: dict[str, Any] = jsonlib.loads(_core.synth(jsonlib.dumps(config), progress))
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
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Files, folders, patterns or URLs.")
    ] = None,
    model: OptionalConfigSource = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Data set of the configuration; the first where absent.")
    ] = None,
    format: Annotated[str, typer.Option(help="Format of PATH, for example `criteo` or `csv`.")] = "criteo",
    limit: Annotated[
        int, typer.Option(min=0, max=MAX_WHOLE_NUMBER, help="Look at so many rows. 0: all.")
    ] = 0,
    json: Json = False,
) -> None:
    """Tell what is in a click log: rows, label rate, coverage and cardinality of every column, worst lines.

    \b
    Example:
      clickmill data describe train.tsv
      clickmill data describe -m config.yaml --dataset test --json
    """
    from clickmill import _core
    from clickmill.errors import DataError

    config, held = _reader_config(paths or [], model, dataset, format)
    try:
        description = jsonlib.loads(_core.describe(jsonlib.dumps(config), limit or None))
    finally:
        for copy in held:
            copy.release()
    if json:
        print_json(description)
    else:
        print_description(description, config["files"])
    if description["rows"] == 0:
        kind = config["format"]["kind"]
        hint = f"they were read as `{kind}`; `--format`, or `format` of the data set, names another one"
        raise DataError("no line could be read", hint=hint)


def _reader_config(
    paths: list[str], model: str | None, dataset: str | None, format: str
) -> tuple[dict[str, Any], list[Any]]:
    """For the native reader; and copies of what is elsewhere, to be released."""
    from pydantic import TypeAdapter, ValidationError

    from clickmill.config import DatasetConfig, load_config, reader_config
    from clickmill.config.formats import FormatConfig
    from clickmill.data.arriving import bring_all
    from clickmill.data.files import find_files
    from clickmill.errors import ConfigError

    if (model is None) == (not paths):
        raise ConfigError("give either files or a configuration with `-m`")
    if model is not None:
        config = load_config(model)
        if not config.dataset:
            raise ConfigError(f"{config.file}: has no data set")
        section = config.dataset_named(dataset) if dataset else config.dataset[0]
        if section.data_converter or section.sample_format == "parquet":
            what = "a reader class of yours" if section.data_converter else "Parquet"
            raise ConfigError(f"dataset `{section.name}` comes from {what}; only text files can be described")
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
    found, held = bring_all(find_files(section.data_path, Path()))
    files = [str(file) for file in found]
    # The point is to see what is wrong, so no number of bad lines ends the look.
    return {**reader_config(section, files, is_training=False), "max_bad_lines": None}, held


@app.command()
def split(
    path: Annotated[Path, typer.Argument(help="The log; one sample on a line, plain or gzip.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for both parts.")] = Path(),
    fraction: Annotated[float, typer.Option(help="Share of the test part.")] = 0.2,
    by: Annotated[
        str, typer.Option(help="`order`: the last lines. `hash` of the line. Or a column: its last values.")
    ] = "order",
    header: Annotated[bool, typer.Option("--header", help="The first line names the columns.")] = False,
    delimiter: Annotated[str, typer.Option(help="Text between columns; a tab where absent.")] = "\t",
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="For `--by hash`: another seed is another split.")
    ] = 0,
    json: Json = False,
) -> None:
    """Split a click log into a part to train on and a part to test on.

    A column holds numbers, or texts that sort as they are; without a header it goes by number, from 1.
    Parts that are split by a column are sorted by it.

    \b
    Example:
      clickmill data split log.tsv --fraction 0.2 --output parts
      clickmill data split log.csv --header --delimiter , --by hour
      clickmill data split ratings.dat --delimiter :: --by 4
    """
    from clickmill.data.split import Fields, split_log

    parts = split_log(path, output, fraction=fraction, by=by, fields=Fields(delimiter, header), seed=seed)
    if json:
        print_json(
            {
                "train": str(parts.train),
                "test": str(parts.test),
                "train_rows": parts.train_lines,
                "test_rows": parts.test_lines,
            }
        )
        return
    rows = [(str(parts.train), f"{parts.train_lines:,}"), (str(parts.test), f"{parts.test_lines:,}")]
    print_table(("part", "rows"), rows, numbers=("rows",))
