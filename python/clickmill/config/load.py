"""From `-m` to a Config: find the file, read it, apply overrides, check it, report all that is wrong."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clickmill._section import known_keys
from clickmill.config.builtin import BUILTIN_MODELS, builtin_config_text, builtin_model
from clickmill.config.checks import cross_check
from clickmill.config.config import Config
from clickmill.config.document import Document, KeyPath, dotted, parse_document, read_document
from clickmill.config.notes import notes_of
from clickmill.config.overrides import apply_overrides
from clickmill.config.translate import listed, problems_of
from clickmill.config.workspace import substitute_workspace
from clickmill.errors import ConfigError, Problem
from clickmill.schema.build import build_schema
from clickmill.store.named_path import is_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)


def load_config(source: str | Path, *, overrides: Sequence[str] = ()) -> Config:
    """Config of a file, of a folder with a config.yaml, or of a built-in model by (dotted) name.

    `overrides` are `path=value` texts. Raises ConfigError with every problem that was found; what is allowed
    but odd is logged and kept in `Config.notes`.
    """
    document = _find(str(source))
    return _check(document, overrides)


def parse_config(text: str, *, file: str = "config.yaml", overrides: Sequence[str] = ()) -> Config:
    """Config of a text; `file` names it in messages and is where a relative workspace starts."""
    return _check(parse_document(text, file), overrides)


def _find(source: str) -> Document:
    if not source.strip():
        raise _missing("the name of the configuration is empty")
    path = Path(source)
    if is_folder(path):
        path = path / "config.yaml"
        if not os.path.lexists(path):
            raise _missing(f"folder `{source}` has no config.yaml")
    if not os.path.lexists(path):
        model = builtin_model(source)
        if model is None:
            raise _missing(f"there is no configuration `{source}`")
        return parse_document(builtin_config_text(model), f"<built-in {model}>")
    try:
        return read_document(path)
    except ConfigError as error:
        raise error if error.problems else _missing(str(error)) from error


def _missing(message: str) -> ConfigError:
    hint = f"give a file, a folder with a config.yaml, or a built-in model: {listed(list(BUILTIN_MODELS))}"
    return ConfigError(message, hint=hint)


def _check(document: Document, overrides: Sequence[str]) -> Config:
    problems = apply_overrides(document, overrides)
    _require_mapping(document)
    problems += substitute_workspace(document)
    problems += _include_schemas(document)
    problems += cross_check(document)
    config = None
    try:
        config = Config.model_validate(document.value)
    except ValidationError as error:
        problems += problems_of(error, document, Config)
    if config is not None and not problems:
        problems += _schema_problems(document, config)
    if config is None or problems:
        raise ConfigError.of(sorted(set(problems), key=_order))
    notes = notes_of(document, config)
    for note in notes:
        logger.warning("%s", note)
    config._file, config._notes, config._document = document.file, notes, document
    return config


def _order(problem: Problem) -> tuple[str, int, int, str]:
    return (problem.file or "", problem.line or 0, problem.column or 0, problem.key or "")


def _require_mapping(document: Document) -> None:
    top = listed(known_keys(Config))
    if document.value is None:
        raise ConfigError.of([Problem(f"is empty; a configuration has the keys {top}", document.file)])
    if not isinstance(document.value, dict):
        place = document.value_place(())
        what = "a list" if isinstance(document.value, list) else "a single value"
        raise ConfigError.of([place.problem(f"the top must be a mapping with the keys {top}, not {what}")])


def _include_schemas(document: Document) -> list[Problem]:
    """`schema: path` is replaced by what the file says, places in that file included."""
    problems: list[Problem] = []
    datasets = document.get(("dataset",))
    for index, dataset in enumerate(datasets if isinstance(datasets, list) else []):
        source = dataset.get("schema") if isinstance(dataset, dict) else None
        if not isinstance(source, str):
            continue
        path: KeyPath = ("dataset", index, "schema")
        try:
            included = read_document(source)
        except ConfigError as error:
            place = document.value_place(path)
            problems += error.problems or [place.problem(str(error), key=dotted(path), value=source)]
            dataset["schema"] = None
            continue
        dataset["schema"] = included.value if included.value is not None else {}
        document.notes.extend(included.notes)
        document.keys |= {(*path, *inner): place for inner, place in included.keys.items()}
        document.values |= {(*path, *inner): place for inner, place in included.values.items()}
    return problems


def _schema_problems(document: Document, config: Config) -> list[Problem]:
    problems = []
    for index, dataset in enumerate(config.dataset):
        try:
            build_schema(dataset, config.hyper_parameters)
        except ConfigError as error:
            path: KeyPath = ("dataset", index)
            problems.append(document.value_place(path).problem(str(error), key=dotted(path)))
    return problems


def plain(config: Config) -> dict[str, Any]:
    """The configuration as plain values, defaults filled in, keys as in YAML."""
    return config.model_dump(mode="json", by_alias=True)
