"""Where the secrets of backend.yaml come from: the environment, a file of their own, or the file itself.

The environment counts most, a variable more than the file that the variable with `_FILE` behind its name
names; then the `..._file` key. A secret is never taken from the command line, which
everybody on the machine can read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.config.document import Place, dotted
from clickmill.errors import ConfigError
from clickmill.store.remote.access import HTTP_TOKEN
from clickmill.store.remote.access import secret as secret_of

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
VARIABLES: dict[KeyPath, str] = {("config", "fs_name"): "CLICKMILL_FS_NAME", **SECRETS}
"""Keys whose value the environment may give."""
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
CREDENTIALS = (*S3_KEYS, HTTP_TOKEN, "CLICKMILL_TOKEN")
"""Variables that hold secrets and are no keys of backend.yaml."""
MAX_BYTES = 4096
"""Of a file with a secret."""


def refuse_on_command_line(overrides: Sequence[str]) -> tuple[list[str], list[Problem]]:
    """The overrides that are no secrets, and a problem for each that is one."""
    kept, problems = [], []
    for text in overrides:
        path = tuple(part.replace("-", "_") for part in text.partition("=")[0].strip().split("."))
        if path not in SECRETS:
            kept.append(text)
            continue
        message = (
            "a secret on a command line can be read by everybody on this machine; "
            f"set {SECRETS[path]}, or name a file with `{dotted(path)}_file`"
        )
        problems.append(Place(f"--set {dotted(path)}=***").problem(message, key=dotted(path)))
    return kept, problems


def fill_in(document: Document, environ: Mapping[str, str] | None = None) -> list[Problem]:
    """Put what the environment and files give into the document; problems of those files."""
    environ = os.environ if environ is None else environ
    problems = []
    for (name, key), variable in VARIABLES.items():
        section = _section(document, str(name))
        if section is None:
            continue
        told, place = environ.get(variable, "").strip(), Place(variable)
        if not told and (name, key) in SECRETS and environ.get(f"{variable}_FILE"):
            place = Place(f"{variable}_FILE")
            try:
                told = secret_of(variable, {f"{variable}_FILE": environ[f"{variable}_FILE"]}) or ""
            except ConfigError as error:
                problems.append(place.problem(str(error), key=dotted((name, key))))
                continue
        if told:
            _set(document, section, (name, key), told, place)
        elif f"{key}_file" in section:
            problems += _from_file(document, section, (name, key))
    _note_readable_file(document)
    return problems


def files_of_environment(environ: Mapping[str, str] | None = None) -> set[Path]:
    """Files that variables name and that hold secrets."""
    environ = os.environ if environ is None else environ
    names = [f"{name}_FILE" for name in (*SECRETS.values(), *CREDENTIALS)]
    named = (environ.get(name) for name in (*names, "AWS_SHARED_CREDENTIALS_FILE"))
    return {Path(path).resolve() for path in named if path}


def is_readable_by_others(path: Path) -> bool:
    """Whether users other than the owner may read a file."""
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def _section(document: Document, name: str) -> dict[Any, Any] | None:
    """The section, made where it is not written; None where it is no mapping, which is told elsewhere."""
    if not isinstance(document.value, dict):
        return None
    if document.value.get(name) is None:
        document.value[name] = {}
    section = document.value[name]
    return section if isinstance(section, dict) else None


def _set(document: Document, section: dict[Any, Any], path: KeyPath, value: str, place: Place) -> None:
    document.forget(path)
    section[path[-1]] = value
    document.keys[path] = document.values[path] = place


def _from_file(document: Document, section: dict[Any, Any], path: KeyPath) -> list[Problem]:
    name, key = path
    file_path: KeyPath = (name, f"{key}_file")
    named = section[file_path[-1]]
    if not isinstance(named, str) or not named:
        return []
    place = document.value_place(file_path)
    if section.get(key) not in (None, ""):
        message = f"is given here and as `{dotted(path)}`; leave one of them out"
        return [place.problem(message, key=dotted(file_path))]
    # Relative to the file that names it, so that it does not matter where the command is typed.
    file = Path(document.file).parent / Path(named).expanduser()
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        value = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return [place.problem(f"cannot read `{file}`: {reason}", key=dotted(file_path), value=named)]
    if not value or len(content) > MAX_BYTES:
        what = "holds nothing" if not value else f"has more than {MAX_BYTES} bytes, which is no secret"
        return [place.problem(f"`{file}` {what}", key=dotted(file_path), value=named)]
    if is_readable_by_others(file):
        message = f"`{file}` can be read by others; mend it with `chmod 600 {file}`"
        document.notes.append(place.problem(message, key=dotted(file_path)))
    _set(document, section, path, value, place)
    return []


def _note_readable_file(document: Document) -> None:
    """A word about secrets that are written into a file which others can read."""
    path = Path(document.file)
    if not path.is_file() or not is_readable_by_others(path):
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
