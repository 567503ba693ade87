"""Writes the reference pages from the code, and the index: `make docs`. With `--check`, only looks."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from clickmill._limits import MAX_SEED, MAX_WHOLE_NUMBER
from clickmill.cli.exits import MEANINGS
from clickmill.cli.main import app
from clickmill.config import Config
from clickmill.config.backend import BackendConfig
from clickmill.schema import SchemaConfig

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
SHARED = ("--verbose", "--quiet")
"""Options of every command, of which the page tells once."""
TAGS = ("kind", "class_name")
KINDS = {
    "tutorial": "tutorial",
    "guides": "guide",
    "concepts": "concept",
    "formats": "format",
    "reference": "reference",
}
WRITTEN_BY = "<!-- Written by docs/generate.py; change the models in the code and run `make docs`. -->\n"
NAMES = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
    SecretStr: "text",
    Any: "anything",
}
GENERAL = (MAX_WHOLE_NUMBER, MAX_SEED)
"""Limits that the page states once."""
SIGNS = ((Ge, "ge", "≥"), (Gt, "gt", ">"), (Le, "le", "≤"), (Lt, "lt", "<"))


def pages() -> dict[Path, str]:
    """Every page with its text."""
    return {
        REFERENCE / "config.md": _page(
            "config.yaml",
            "Every section and key of a configuration. Unknown keys are errors, but in `hyper_parameters`. "
            "`-` in a key is read as `_`. Keys marked with * are required. Whole numbers go up to 2^63 - 1, "
            "seeds up to 2^64 - 1, where no other limit is named.",
            Config,
        ),
        REFERENCE / "backend.md": _page(
            "backend.yaml",
            "Every section and key of a backend.yaml, for `clickmill submit`. Unknown keys are errors. "
            "`-` in a key is read as `_`. Of a key that is written twice the last one wins, with a warning. "
            "A key without a value counts as not written. Keys marked with * are required.",
            BackendConfig,
        ),
        REFERENCE / "schema.md": _page(
            "Schema",
            "What a sample means: `schema` of a data set, inline or in a file of its own. "
            "Keys marked with * are required.",
            SchemaConfig,
        ),
        REFERENCE / "cli.md": _commands_page(),
        DOCS / "README.md": _index_page(),
    }


def _page(title: str, words: str, top: type[BaseModel]) -> str:
    parts = [f"# {title}\n", WRITTEN_BY, f"{words}\n"]
    for model in _depth_first(top):
        parts.append(f"## {_heading(model)}\n")
        parts.append(f"{_first_paragraph(model)}\n")
        rows = [_row(name, field) for name, field in model.model_fields.items()]
        parts.append("\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _depth_first(model: type[BaseModel]) -> list[type[BaseModel]]:
    """`model` and the sections inside it, each once, in the order of reading."""
    order = [model]
    for field in model.model_fields.values():
        for inner in _models(field.annotation):
            order.extend(name for name in _depth_first(inner) if name not in order)
    return order


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if annotation is SchemaConfig:  # has a page of its own
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _heading(model: type[BaseModel]) -> str:
    for name in TAGS:
        field = model.model_fields.get(name)
        if field is not None and len(get_args(field.annotation)) == 1:
            return f"{model.__name__}: `{field.alias or name}: {get_args(field.annotation)[0]}`"
    return model.__name__


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _row(name: str, field: FieldInfo) -> str:
    # pydantic chooses the member of a union by it, so it must be written whatever the field's default.
    is_tag = name in TAGS and len(get_args(field.annotation)) == 1
    key = f"`{field.alias or name}`" + (" *" if is_tag or field.is_required() else "")
    words = field.description or ("Names this kind." if name == "kind" else "")
    meaning = words.replace("\n", " ").replace("|", "\\|")
    default = "" if is_tag else _default(field)
    return f"| {key} | {_type(_whole(field))} | {default} | {meaning} |"


def _whole(field: FieldInfo) -> Any:
    """The annotation with the limits that pydantic has taken apart from it."""
    annotation = field.annotation
    for limit in field.metadata:
        annotation = Annotated[annotation, limit]
    return annotation


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return ""
    if isinstance(value, BaseModel):
        tag = getattr(value, "kind", None) or getattr(value, "class_name", None)
        return f"`{tag}`" if tag else "its defaults"
    if value is None or value in ((), {}, "", SecretStr("")):
        return "" if value is None else "empty"
    if isinstance(value, dict):
        return "`" + ", ".join(f"{key}: {item}" for key, item in value.items()) + "`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0]) + _limits(arguments[1:])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in {Union, types.UnionType}:
        words = [_type(argument) for argument in arguments if argument is not type(None)]
        return " or ".join(words)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"{_type(arguments[0])} → {_type(arguments[1])}"
    return NAMES.get(annotation) or _link(annotation)


def _link(model: type[BaseModel]) -> str:
    if model is SchemaConfig:
        return f"[{model.__name__}](schema.md)"
    anchor = "".join(char for char in _heading(model).lower() if char.isalnum() or char in " _-")
    return f"[{model.__name__}](#{anchor.replace(' ', '-')})"


def _limits(metadata: tuple[Any, ...]) -> str:
    words = []
    for item in metadata:
        for limit in item.metadata if isinstance(item, FieldInfo) else (item,):
            words += [
                f"{sign} {getattr(limit, name)}"
                for kind, name, sign in SIGNS
                if isinstance(limit, kind) and getattr(limit, name) not in GENERAL
            ]
    return f" {' and '.join(words)}" if words else ""


def _commands_page() -> str:
    words = (
        "Data goes to stdout, talk to stderr. Every command has `--json`, with which errors are JSON too, on "
        "stderr, `--quiet` or `-q` to be told warnings and errors only, and `--verbose` or `-v` to be told "
        "also what is of use when debugging. They stand before or after the command.\n"
    )
    parts = ["# Command line\n", WRITTEN_BY, words]
    parts.append("| exit code | meaning |\n|---|---|")
    parts.append("\n".join(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()) + "\n")
    for path, command in _leaves(typer.main.get_command(app), ("clickmill",)):
        help_text, _, example = (command.help or "").partition("\b\nExample:\n")
        parts.append(f"## {' '.join(path)}\n\n{' '.join(help_text.split())}\n")
        lines = "\n".join(line.strip() for line in example.strip().splitlines())
        parts.append(f"```bash\n{lines}\n```\n")
        shown = [parameter for parameter in command.params if parameter.opts[0] not in SHARED]
        rows = [f"| {_option(parameter)} | {parameter.help} |" for parameter in shown]
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _index_page() -> str:
    words = (
        "Kinds of pages: the tutorial leads by the hand, guides say what to do, concepts say how things are, "
        "formats say what lies in a file byte by byte, the reference is written by the code.\n"
    )
    rows = ["| kind | page |", "|---|---|"]
    for folder, kind in KINDS.items():
        for path in sorted((DOCS / folder).glob("*.md")):
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            rows.append(f"| {kind} | [{title}]({folder}/{path.name}) |")
    return "\n".join(["# Documentation\n", WRITTEN_BY, words, *rows]) + "\n"


def _option(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in parameter.opts)


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
    for name, child in (children or {}).items():
        yield from _leaves(child, (*path, name))


def main() -> int:
    """Writes or checks the pages; 1 where a page was out of date and was only to be checked."""
    is_check = "--check" in sys.argv[1:]
    stale = {path: text for path, text in pages().items() if not _is_current(path, text)}
    for path, text in stale.items():
        if is_check:
            print(f"out of date: {path.name}; run `make docs`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(is_check and bool(stale))


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
