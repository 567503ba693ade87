"""The package of a job: config.yaml, the user's code and the other files of `submit.files`.

Nodes get the files in one folder, without the folders that they lie in here. Secrets do not travel: they are
taken out of a copy of backend.yaml, and files that hold one are left out.
"""

from __future__ import annotations

import glob
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config.needs import needed_files
from clickmill.errors import ConfigError
from clickmill.submit.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config import Config
    from clickmill.config.backend import BackendConfig
    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem

logger = logging.getLogger(__name__)

FILES: KeyPath = ("submit", "files")


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file that goes to the nodes."""

    name: str
    """Its name there."""
    path: Path
    """Where it lies here."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Taken out of it; empty for all but backend.yaml."""

    def read(self) -> bytes:
        """Its content as nodes see it. Raises ConfigError where it cannot be read."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read `{self.path}`: {error.strerror}") from error
        return without_secrets(content, self.secrets, self.path) if self.secrets else content


def collect_package(config: Config, backend: BackendConfig) -> tuple[PackageFile, ...]:
    """Files of the job by name, the configuration first. Raises ConfigError with all that is wrong."""
    collector = _Collector(config, backend)
    collector.add_configuration()
    collector.add_needed()
    collector.add_files()
    if collector.problems:
        raise ConfigError.of(collector.problems)
    return tuple(collector.files.values())


def config_name(config: Config) -> str | None:
    """Name of the configuration on the nodes; None for that of a built-in model, which is no file."""
    path = Path(config.file)
    return path.name if path.is_file() else None


@dataclass(slots=True)
class _Collector:
    config: Config
    backend: BackendConfig
    files: dict[str, PackageFile] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

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
            if not needed.path.is_file():
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
            self._add(needed.path, needed.key)

    def add_files(self) -> None:
        for index, pattern in enumerate(self.backend.submit.files):
            matches = [Path(match) for match in sorted(glob.glob(str(Path(pattern).expanduser())))]  # noqa: PTH207
            found = [path for path in matches if path.is_file()]
            if not found:
                what = f"`{pattern}` is a folder" if matches else f"nothing matches `{pattern}`"
                message = f"{what}; patterns name files, relative to `{Path.cwd()}`"
                self.problems.append(self.backend.problem(message, self._place(index)))
            for path in found:
                self._add(path, self._place(index), is_of_backend=True)

    def _place(self, index: int) -> KeyPath:
        """A list has a line for each pattern, a text only one."""
        path: KeyPath = (*FILES, index)
        return path if self.backend.has_place(path) else FILES

    def _add(self, path: Path, key: KeyPath | None, *, is_of_backend: bool = False) -> None:
        before = self.files.get(path.name)
        if before is not None:
            if before.path.resolve() != path.resolve():
                message = f"`{path}` and `{before.path}` would be one file on the nodes; rename one of them"
                source = self.backend if is_of_backend else self.config
                self.problems.append(source.problem(message, key or ()))
            return
        if path.resolve() in self._secret_files():
            logger.warning("`%s` holds a secret and is left out of the job's files", path)
            return
        is_backend = bool(self.backend.file) and path.resolve() == Path(self.backend.file).resolve()
        secrets = self.backend.secrets if is_backend else ()
        self.files[path.name] = PackageFile(path.name, path, secrets)

    def _secret_files(self) -> set[Path]:
        return set(self._iterate_secret_files())

    def _iterate_secret_files(self) -> Iterator[Path]:
        for name in self.backend.secret_files:
            yield (Path(self.backend.file).parent / Path(name).expanduser()).resolve()

    def _wrong(self, key: KeyPath, message: str) -> None:
        self.problems.append(self.config.problem(message, key))
