"""From `-b` to a BackendConfig: read the file, apply overrides, check it, report all that is wrong."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from clickmill._section import known_keys
from clickmill.config.backend.known_secrets import KnownSecrets
from clickmill.config.backend.models import BackendConfig
from clickmill.config.backend.secrets import fill_in, refuse_on_command_line
from clickmill.config.backend.spellings import as_written, join_spellings
from clickmill.config.document import Document, parse_document, read_document
from clickmill.config.overrides import apply_overrides
from clickmill.config.translate import listed, problems_of
from clickmill.errors import ConfigError, Problem
from clickmill.store.named_path import is_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)


def load_backend(source: str | Path, overrides: Sequence[str] = ()) -> BackendConfig:
    """BackendConfig of a file, or of a folder with a backend.yaml.

    `overrides` are `path=value` texts. Raises ConfigError with every problem that was found; what is allowed
    but odd is logged and kept in `BackendConfig.notes`.
    """
    return _check(_read(source), overrides)


def parse_backend(text: str, *, file: str = "backend.yaml", overrides: Sequence[str] = ()) -> BackendConfig:
    """BackendConfig of a text; `file` names it in messages."""
    return _check(parse_document(text, file), overrides)


def secrets_in(source: str | Path) -> KnownSecrets:
    """What a backend.yaml holds or names, also one in which much is wrong, and what the environment has."""
    document = Document(str(source))
    with contextlib.suppress(ConfigError):
        document = _read(source)
        _require_mapping(document)
        join_spellings(document, BackendConfig)
        fill_in(document)
    return KnownSecrets.of_document(document).with_environment()


def _read(source: str | Path) -> Document:
    path = Path(source)
    try:
        if not is_folder(path):
            return read_document(path)
        if os.path.lexists(path / "backend.yaml"):
            return read_document(path / "backend.yaml")
    except ConfigError as error:
        raise error if error.problems else _missing(str(error)) from error
    raise _missing(f"folder `{source}` has no backend.yaml")


def _missing(message: str) -> ConfigError:
    hint = (
        "name a backend.yaml, or the folder that holds one; the shortest is the line `backend: Local`, and "
        "docs/guides/submitting.md has others"
    )
    return ConfigError(message, hint=hint)


def _check(document: Document, overrides: Sequence[str]) -> BackendConfig:
    _require_mapping(document)
    join_spellings(document, BackendConfig)
    plain, problems = refuse_on_command_line(overrides)
    problems += apply_overrides(document, [as_written(document, BackendConfig, text) for text in plain])
    problems += fill_in(document)
    backend = None
    try:
        backend = BackendConfig.model_validate(document.value)
    except ValidationError as error:
        problems += problems_of(error, document, BackendConfig)
    if backend is None or problems:
        known = KnownSecrets.of_document(document)
        shown = {known.masked(problem) for problem in problems}
        raise ConfigError.of(sorted(shown, key=lambda problem: problem.order))
    for note in document.notes:
        logger.warning("%s", note)
    backend._file, backend._notes, backend._document = document.file, tuple(document.notes), document
    return backend


def _require_mapping(document: Document) -> None:
    top = listed(known_keys(BackendConfig))
    if document.value is None:
        raise ConfigError.of([Problem(f"is empty; it has the keys {top}", document.file)])
    if not isinstance(document.value, dict):
        place = document.value_place(())
        what = "a list" if isinstance(document.value, list) else "a single value"
        raise ConfigError.of([place.problem(f"the top must be a mapping with the keys {top}, not {what}")])
