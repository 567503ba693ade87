"""Where the secrets of backend.yaml come from: the environment, a file of their own, or the file itself.

The environment counts most, a variable more than the file that the variable with `_FILE` behind its name
names; then the `..._file` key. A secret is never taken from the command line, which
everybody on the machine can read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.config.document import Place, dotted, parse_document, written_text
from clickmill.config.overrides import override_place
from clickmill.errors import ConfigError
from clickmill.store.named_path import expanded, is_file, resolved
from clickmill.store.remote.access import HTTP_TOKEN, NOT_TEXT, is_text
from clickmill.store.secret_file import may_others_read, read_secret_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill.config.document import Document, KeyPath
    from clickmill.errors import Problem

SECRETS: dict[KeyPath, str] = {
    ("config", "fs_ugi"): "CLICKMILL_FS_UGI",
    ("submit", "ak"): "CLICKMILL_AK",
    ("submit", "sk"): "CLICKMILL_SK",
}
"""Variable of each."""
VARIABLES: dict[KeyPath, str] = {
    ("config", "fs_name"): "CLICKMILL_FS_NAME",
    ("config", "train_data_path"): "CLICKMILL_TRAIN_DATA_PATH",
    **SECRETS,
}
"""Keys whose value the environment may give."""
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
CREDENTIALS = (*S3_KEYS, HTTP_TOKEN, "CLICKMILL_TOKEN")
"""Variables that hold secrets and are no keys of backend.yaml."""


def refuse_on_command_line(overrides: Sequence[str]) -> tuple[list[str], list[Problem]]:
    """The overrides that give no secret, and a problem for each that does.

    The path of one that does is that of a secret key, lies below one, or is that of a section whose new value
    has one.
    """
    kept, problems = [], []
    for text in overrides:
        path, _, value = text.partition("=")
        parts = tuple(map(_canonical, path.split(".")))
        secret = next((secret for secret in SECRETS if _gives(parts, value, secret)), None)
        if secret is None:
            kept.append(text)
            continue
        message = (
            "a secret on a command line can be read by everybody on this machine; "
            f"set {SECRETS[secret]}, or name a file with `{dotted(secret)}_file`"
        )
        place = override_place(f"{dotted(parts[: len(secret)])}=")
        problems.append(place.problem(message, key=dotted(secret)))
    return kept, problems


def _gives(path: KeyPath, value: str, secret: KeyPath) -> bool:
    depth = min(len(path), len(secret))
    if path[:depth] != secret[:depth]:
        return False
    try:
        inside = [parse_document(value, "--set").value]
    except ConfigError:
        return depth == len(secret)  # else told, without the value, by whoever applies it
    for name in secret[depth:]:
        mappings = (item for item in inside if isinstance(item, dict))
        inside = [item for each in mappings for key, item in each.items() if _canonical(key) == name]
    return bool(inside)


def _canonical(key: str) -> str:
    return key.strip().replace("-", "_")


def fill_in(document: Document, environ: Mapping[str, str] | None = None) -> list[Problem]:
    """Put what the environment and files give into the document; problems of those files."""
    environ = os.environ if environ is None else environ
    problems = []
    for (name, key), variable in VARIABLES.items():
        section = _section(document, str(name))
        if section is None:
            continue
        _spell(document, section, str(name), (str(key), f"{key}_file"))
        told = environ.get(variable, "").strip()
        named = environ.get(f"{variable}_FILE", "") if (name, key) in SECRETS else ""
        if told:
            _set(document, (name, key), told, Place(variable))
        elif named:
            place = Place(f"{variable}_FILE")
            problems += _from_file(document, (name, key), named, Path(), place=place, key=dotted((name, key)))
        elif f"{key}_file" in section:
            problems += _from_named_file(document, section, (name, key))
    problems += [Place(name).problem(NOT_TEXT) for name in CREDENTIALS if not is_text(environ.get(name, ""))]
    _note_readable_files(document, environ)
    return problems


def files_of_environment(environ: Mapping[str, str] | None = None) -> set[Path]:
    """Files that variables name and that hold secrets."""
    environ = os.environ if environ is None else environ
    names = [f"{name}_FILE" for name in (*SECRETS.values(), *CREDENTIALS)]
    named = (environ.get(name) for name in (*names, "AWS_SHARED_CREDENTIALS_FILE"))
    return {found for path in named if path and (found := resolved(path, Path()))}


def _section(document: Document, name: str) -> dict[Any, Any] | None:
    """The section, made where it is not written; None where it is no mapping, which is told elsewhere."""
    if not isinstance(document.value, dict):
        return None
    if document.value.get(name) is None:
        document.value[name] = {}
    section = document.value[name]
    return section if isinstance(section, dict) else None


def _spell(document: Document, section: dict[Any, Any], name: str, keys: tuple[str, ...]) -> None:
    """Keys as they are looked for here, where they were written with `-`."""
    for written in [key for key in section if key not in keys and _canonical(key) in keys]:
        key = _canonical(written)
        section[key] = section.pop(written)
        for places in (document.keys, document.values):
            if (name, written) in places:  # what an override gives has the place of the whole
                places[name, key] = places.pop((name, written))


def _set(document: Document, path: KeyPath, value: str, place: Place) -> None:
    document.forget(path)
    document.get(path[:-1])[path[-1]] = value
    document.keys[path] = document.values[path] = place


def _from_named_file(document: Document, section: dict[Any, Any], path: KeyPath) -> list[Problem]:
    """A secret from the file that its `..._file` key names."""
    name, key = path
    file_path: KeyPath = (name, f"{key}_file")
    named = written_text(section[file_path[-1]])
    if not named:
        return []
    place = document.value_place(file_path)
    if section.get(key) not in (None, ""):
        message = f"is given here and as `{dotted(path)}`; leave one of them out"
        return [place.problem(message, key=dotted(file_path))]
    # Relative to the file that names it, so that it does not matter where the command is typed.
    return _from_file(document, path, named, Path(document.file).parent, place=place, key=dotted(file_path))


def _from_file(
    document: Document, path: KeyPath, named: str, folder: Path, *, place: Place, key: str | None
) -> list[Problem]:
    """A secret from a file, relative to `folder`; `place` and `key` are those of what names it."""
    try:
        file = folder / expanded(named)
    except ConfigError as error:
        return [place.problem(str(error), key=key, value=named)]
    found = read_secret_file(file)
    if found.problem:
        return [place.problem(f"names `{file}`, which {found.problem}", key=key, value=str(file))]
    if found.is_readable_by_others:
        document.notes.append(_of_readable(file, place, key))
    _set(document, path, found.text, place)
    return []


def _of_readable(file: Path, place: Place, key: str | None = None) -> Problem:
    return place.problem(f"names `{file}`, which others can read; mend it with `chmod 600 {file}`", key=key)


def _note_readable_files(document: Document, environ: Mapping[str, str]) -> None:
    """A word about other files with secrets that others can read: of credentials, and backend.yaml itself."""
    for name in CREDENTIALS:
        named = environ.get(f"{name}_FILE")
        if not named or environ.get(name):
            continue
        try:
            file = expanded(named)
        except ConfigError:
            continue  # told where it is needed
        if read_secret_file(file).is_readable_by_others:
            document.notes.append(_of_readable(file, Place(f"{name}_FILE")))
    path = Path(document.file)
    if not is_file(path) or not may_others_read(path.stat().st_mode):
        return
    for secret, variable in SECRETS.items():
        place = document.values.get(secret)
        if place is None or place.file != document.file or not document.get(secret):
            continue
        if document.get((secret[0], f"{secret[1]}_file")):
            continue  # told of that file, if it needs to be
        message = (
            f"a secret in a file that others can read; `chmod 600 {path}`, or give it by {variable} "
            f"or `{dotted(secret)}_file`"
        )
        document.notes.append(place.problem(message, key=dotted(secret)))
