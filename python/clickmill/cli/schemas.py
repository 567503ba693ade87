"""`clickmill schema`: what a sample means, slot by slot."""

from __future__ import annotations

import json as jsonlib
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.cli.options import ConfigSource, Json, Overrides
from clickmill.cli.output import print_json, print_table

if TYPE_CHECKING:
    from clickmill.schema.models import SchemaConfig, Slot

app = typer.Typer(
    help="Show schemas.\n\n\b\nExample:\n  clickmill schema show -m config.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def show(
    model: ConfigSource,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Name of the data set; the first where absent.")
    ] = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Show the schema of a data set: its slots, where they come from and what happens to them.

    \b
    Example:
      clickmill schema show -m config.yaml
      clickmill schema show -m config.yaml --dataset test --json
    """
    from clickmill.config import load_config
    from clickmill.errors import ConfigError
    from clickmill.schema import build_schema

    config = load_config(model, overrides=overrides or ())
    if not config.dataset:
        raise ConfigError(f"{config.file}: has no data set")
    section = config.dataset_named(dataset) if dataset else config.dataset[0]
    schema = build_schema(section, config.hyper_parameters)
    if json:
        print_json(jsonlib.loads(schema.to_json()))
    else:
        _print(schema, section.name)


def _print(schema: SchemaConfig, name: str) -> None:
    rows = [(slot.name, slot.kind, _source(slot), _transform(slot), _details(slot)) for slot in schema.slots]
    print_table(("slot", "kind", "from", "transform", "details"), rows, title=f"schema of data set {name}")


def _source(slot: Slot) -> str:
    if slot.kind == "sparse" and slot.cross:
        return " x ".join(slot.cross)
    return slot.column or slot.name


def _transform(slot: Slot) -> str:
    if slot.kind in {"weight", "group"}:
        return ""
    values = slot.transform.model_dump(mode="json")  # type: ignore[union-attr]
    kind = values.pop("kind")
    if kind == "identity":
        return ""
    shown = ", ".join(f"{key}={value[0] if isinstance(value, list) and len(value) == 1 else value}"
                      for key, value in values.items() if value != [])  # fmt: skip
    return f"{kind}({shown})" if shown else str(kind)


def _details(slot: Slot) -> str:
    """What differs from the defaults."""
    skipped = {"kind", "name", "column", "cross", "transform", "tables"}
    values = slot.model_dump(mode="json", exclude_defaults=True, exclude=skipped)
    return ", ".join(f"{key}={value}" for key, value in values.items())
