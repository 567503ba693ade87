"""The package of a job: config.yaml, the user's code and the other files of `submit.files`.

Nodes get the files in one folder, without the folders that they lie in here. Secrets do not travel. Copies of
files with the shape of a backend.yaml have them emptied; files that exist to hold one are left out. A secret
of this job in any other place is an error: to mask it there would change what nodes run.
"""

from __future__ import annotations

import ast
import codecs
import errno
import glob
import logging
import os
import stat
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config.backend.known_secrets import KnownSecrets
from clickmill.config.backend.secrets import files_of_environment
from clickmill.config.document import Place
from clickmill.config.needs import needed_files
from clickmill.errors import ConfigError
from clickmill.store.named_path import expanded, is_file, resolved
from clickmill.submit.code import missing_modules
from clickmill.submit.kubernetes.own_manifest import is_own_manifest
from clickmill.submit.redaction import secret_line, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clickmill.config import Config
    from clickmill.config.backend import BackendConfig
    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem
    from clickmill.submit.redaction import Redacted

logger = logging.getLogger(__name__)

FILES: KeyPath = ("submit", "files")
_YAML_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_OUTPUTS = (1, 2)
"""Descriptors that this process writes to."""


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file that goes to the nodes."""

    name: str
    """Its name there."""
    path: Path
    """Where it lies here."""
    origin: Problem
    """What names it, with a message that is yet to come."""
    known_secrets: KnownSecrets = field(default_factory=KnownSecrets)
    """Must not be in it."""

    def problem(self, message: str) -> Problem:
        """A problem with the name, at the place that gives it."""
        return replace(self.origin, message=message)

    def read(self) -> bytes:
        """Its content as nodes see it.

        Raises ConfigError where it cannot be read, or holds a secret that cannot be taken out.
        """
        content = _read(self.path)
        encoding, text = _decoded(content)
        if text is None:
            by_bytes = content.decode("latin-1")
            self._refuse_unreadable(secret_line(by_bytes), by_bytes)
            self._refuse_secrets(content, self.known_secrets)
            return content
        redacted = without_secrets(text)
        self._refuse_unreadable(redacted.unreadable_line, text)
        known = self.known_secrets.with_values("what a secret key of this file holds", redacted.secrets)
        self._refuse_secrets(redacted.text.encode(), known, is_text=True)
        return redacted.text.encode(encoding)

    def _refuse_unreadable(self, line: int | None, text: str) -> None:
        """Code may have the words of a backend.yaml without being one."""
        if line is None or (self.path.suffix.lower() not in _YAML_SUFFIXES and _is_python(text)):
            return
        message = (
            "looks like a backend.yaml with a secret and is no valid YAML, so the secret cannot be taken "
            f"out; mend the file, empty the key, or leave the file out of `{'.'.join(map(str, FILES))}`"
        )
        raise ConfigError.of([Place(str(self.path), line).problem(message)])

    def _refuse_secrets(self, content: bytes, known: KnownSecrets, *, is_text: bool = False) -> None:
        found = known.find(content)
        if found is None:
            return
        position, name = found
        line = content.count(b"\n", 0, position) + 1 if is_text else None
        message = (
            f"{'' if is_text else f'byte {position}: '}a secret ({name}) stands here, and the job's files "
            "would carry it to the nodes; take it out, or leave the file out of `submit.files`"
        )
        raise ConfigError.of([Place(str(self.path), line).problem(message)])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read `{path}`: {error.strerror}") from error


def _decoded(content: bytes) -> tuple[str, str | None]:
    """Encoding and text, a mark at its start included; None where it is no text."""
    encodings = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    encoding = encodings.get(content[:2], "utf-8")
    try:
        return encoding, content.decode(encoding)
    except UnicodeDecodeError:
        return encoding, None


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def collect_package(config: Config, backend: BackendConfig) -> tuple[PackageFile, ...]:
    """Files of the job by name, the configuration first. Raises ConfigError with all that is wrong."""
    collector = _Collector(config, backend)
    collector.add_configuration()
    collector.add_needed()
    collector.add_files()
    collector.check_contents()
    if collector.problems:
        raise ConfigError.of(collector.problems)
    for note in missing_modules({file.name: file.path for file in collector.files.values()}):
        logger.warning("%s", note)
    return tuple(collector.files.values())


def config_name(config: Config) -> str | None:
    """Name of the configuration on the nodes; None for that of a built-in model, which is no file."""
    path = Path(config.file)
    return path.name if is_file(path) else None


def matching(pattern: str) -> list[Path]:
    """What a pattern of `submit.files` matches, folders included. Raises ConfigError for an unknown home."""
    return [Path(match) for match in sorted(glob.glob(str(expanded(pattern))))]  # noqa: PTH207


@dataclass(slots=True)
class _Collector:
    config: Config
    backend: BackendConfig
    files: dict[str, PackageFile] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    known_secrets: KnownSecrets = field(init=False)
    secret_files: set[Path] = field(init=False)

    def __post_init__(self) -> None:
        self.known_secrets = KnownSecrets.of(self.backend)
        self.secret_files = _named_from(Path(self.backend.file), self.backend.secret_files)
        self.secret_files |= files_of_environment()

    def add_configuration(self) -> None:
        if config_name(self.config) is None:
            return
        if Path(self.config.workspace).is_absolute():
            message = (
                "is a folder of this machine; nodes have all files in their working folder: use "
                "`workspace: ./`"
            )
            self.problems.append(self.config.problem(message, ("workspace",)))
        self._add(Path(self.config.file), None)

    def add_needed(self) -> None:
        """What the configuration names must be found on the nodes by the same path."""
        here = Path(self.config.file).parent
        if Path(self.config.workspace).is_absolute():
            return  # told already
        for needed in needed_files(self.config):
            if not is_file(needed.path):
                self._wrong(needed.key, f"there is no file `{needed.path}`")
                continue
            is_beside = needed.path.resolve().parent == here.resolve()
            if not is_beside or needed.path.is_absolute() != here.is_absolute():
                message = (
                    f"names `{needed.path}`; nodes get files without their folders: put it beside "
                    f"`{Path(self.config.file).name}`, and name it as `{{workspace}}/{needed.path.name}` "
                    "with `workspace: ./`"
                )
                self._wrong(needed.key, message)
                continue
            if self._can_read(needed.path, needed.key):
                self._add(needed.path, needed.key)

    def add_files(self) -> None:
        chosen: list[tuple[Path, KeyPath]] = []
        for index, pattern in enumerate(self.backend.submit.files):
            try:
                matches = matching(pattern)
            except ConfigError as error:
                self.problems.append(self.backend.problem(str(error), self._place(index)))
                continue
            found = [path for path in matches if is_file(path)]
            odd = [words for path in matches if path not in found and (words := _why_no_file(path))]
            if not found and not odd:
                what = f"`{pattern}` is a folder" if matches else f"nothing matches `{pattern}`"
                odd = [f"{what}; patterns name files, relative to `{Path.cwd()}`"]
            place = self._place(index)
            self.problems += [self.backend.problem(message, place) for message in odd]
            chosen += [(path, place) for path in found if self._can_read(path, place, is_of_backend=True)]
        for path, _ in chosen:
            self.secret_files |= _named_from(path, _shape(path).named_files)
        for path, place in chosen:
            if not self._is_of_ours(path):
                self._add(path, place, is_of_backend=True)

    def check_contents(self) -> None:
        for file in self.files.values():
            try:
                file.read()
            except ConfigError as error:
                if not error.problems:
                    raise
                self.problems += error.problems

    def _can_read(self, path: Path, key: KeyPath, *, is_of_backend: bool = False) -> bool:
        try:
            _read(path)
        except ConfigError as error:
            source = self.backend if is_of_backend else self.config
            message = f"{error}; let this user read it, or leave it out"
            self.problems.append(source.problem(message, key))
            return False
        return True

    def _is_of_ours(self, path: Path) -> bool:
        """Whether it is what a dry run writes or has written: it would make every job another one."""
        status = path.stat()
        if any((status.st_dev, status.st_ino) == output for output in _output_files()):
            logger.warning("`%s` is what this command writes to, and is left out of the job's files", path)
            return True
        _, text = _decoded(_read(path))
        if text is not None and is_own_manifest(text):
            logger.warning("`%s` is a manifest of a job, and is left out of the job's files", path)
            return True
        return False

    def _place(self, index: int) -> KeyPath:
        """A list has a line for each pattern, a text only one."""
        path: KeyPath = (*FILES, index)
        return path if self.backend.has_place(path) else FILES

    def _add(self, path: Path, key: KeyPath | None, *, is_of_backend: bool = False) -> None:
        source = self.backend if is_of_backend else self.config
        before = self.files.get(path.name)
        if before is not None:
            if before.path.resolve() != path.resolve():
                message = f"`{path}` and `{before.path}` would be one file on the nodes; rename one of them"
                self.problems.append(source.problem(message, key or ()))
            return
        if found := self.known_secrets.find(os.fsencode(path.name)):
            message = (
                f"names a file with a secret ({found[1]}) in its name, which others could read; rename it"
            )
            self.problems.append(source.problem(message, key or ()))
            return
        if path.resolve() in self.secret_files:
            logger.warning("`%s` holds a secret and is left out of the job's files", path)
            return
        origin = source.problem("", key or ())
        self.files[path.name] = PackageFile(path.name, path, origin, self.known_secrets)

    def _wrong(self, key: KeyPath, message: str) -> None:
        self.problems.append(self.config.problem(message, key))


def _named_from(file: Path, names: Iterable[str]) -> set[Path]:
    """Paths that a file names, relative to itself."""
    return {found for name in names if (found := resolved(name, file.parent))}


def _why_no_file(path: Path) -> str | None:
    """What a name is that stands among those of files; None for a folder, which patterns pass over."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        if path.is_symlink() and error.errno in {errno.ENOENT, errno.ELOOP}:
            ends = (
                "in a loop" if error.errno == errno.ELOOP else f"at `{path.readlink()}`, which is not there"
            )
            return f"`{path}` is a link that ends {ends}; mend it, or leave it out"
        return f"cannot read `{path}`: {error.strerror}; let this user read it, or leave it out"
    if stat.S_ISDIR(kind):
        return None
    return f"`{path}` is neither a file nor a folder; leave it out"


def _shape(path: Path) -> Redacted:
    return without_secrets(_decoded(_read(path))[1] or "")


def _output_files() -> set[tuple[int, int]]:
    """Device and number of the files that this process writes its output to."""
    found = set()
    for descriptor in _OUTPUTS:
        try:
            status = os.fstat(descriptor)
        except OSError:
            continue  # closed
        if stat.S_ISREG(status.st_mode):
            found.add((status.st_dev, status.st_ino))
    return found
