"""What a job has made, brought here while it trains or after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import StateError
from clickmill.jobs.files.checkpoints import is_here, newest_checkpoint
from clickmill.jobs.files.download import Unit, download
from clickmill.jobs.files.source import FileGoneError, FileSource
from clickmill.jobs.job import find_job
from clickmill.jobs.output import find_output
from clickmill.jobs.pods import current, list_pods
from clickmill.jobs.reader import reading
from clickmill.train.checkpoint import open_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clickmill.jobs.files.checkpoints import RemoteCheckpoint
    from clickmill.jobs.files.download import Progress
    from clickmill.jobs.files.folder import FileEntry
    from clickmill.kube.client import Cluster

    Tell = Callable[[str], None]

CHECKPOINT, PASS, ALL = "checkpoint", "pass", "all"
_LEFT_OUT = frozenset({"snapshots"})
"""Of everything: they change all the time, and are of use to the job alone."""
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was brought here."""

    paths: tuple[Path, ...]
    """Where the parts are; that of a checkpoint last, behind those that it builds on."""
    num_files: int
    num_bytes: int
    """That were not here already."""
    checkpoint: RemoteCheckpoint | None

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        told = ("pass_number", "batch", "step", "is_pass_end", "metrics")
        manifest = None if self.checkpoint is None else self.checkpoint.manifest
        return {
            "paths": [str(path) for path in self.paths],
            "files": self.num_files,
            "bytes": self.num_bytes,
            "checkpoint": None if manifest is None else {key: manifest.get(key) for key in told},
        }


def fetch_output(
    cluster: Cluster,
    name: str,
    what: str,
    target: Path,
    *,
    tell: Tell,
    progress: Progress,
    image: str | None = None,
) -> Fetched:
    """Bring the newest `checkpoint`, the newest of a whole `pass`, `all`, or a path of the run, to `target`.

    Every piece is checked by its digest, and a checkpoint by its own manifest. What was begun earlier goes
    on. `image` reads the files of a job that is gone.
    """
    job = find_job(cluster, name)
    output = find_output(cluster, job, current(list_pods(cluster, name)), image=image)
    with reading(cluster, name, output, tell) as proxy:
        return fetch_from(FileSource(proxy, tell), what, target, tell=tell, progress=progress)


def fetch_from(source: FileSource, what: str, target: Path, *, tell: Tell, progress: Progress) -> Fetched:
    """The same, from a source that is there already."""
    fetch = _fetch_checkpoint if what in {CHECKPOINT, PASS} else _fetch_files
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return fetch(source, what, target, tell, progress)
        except FileGoneError as error:
            if attempt == _ATTEMPTS:
                raise StateError(
                    f"{error}, and {_ATTEMPTS} times in a row",
                    hint="it changes while it is fetched: fetch a checkpoint, or wait until the job is over",
                ) from error
            tell(f"{error}; looks again")
    raise AssertionError("the last attempt returns or raises")


def _fetch_checkpoint(source: FileSource, what: str, target: Path, tell: Tell, progress: Progress) -> Fetched:
    found = newest_checkpoint(source, is_pass=what == PASS)
    tell(f"fetches {found.words}")
    missing = [unit for unit in found.units if not is_here(source, unit, target)]
    if not missing:
        tell("it is here already")
    download(source, missing, target, progress)
    places = [target / unit.path for unit in found.units]
    for place in places:
        open_checkpoint(place)
    return _fetched(places, missing, found)


def _fetch_files(source: FileSource, what: str, target: Path, _tell: Tell, progress: Progress) -> Fetched:
    units = _everything(source.listing()) if what == ALL else [_named(source, what)]
    return _fetched(download(source, units, target, progress), units, None)


def _fetched(places: list[Path], units: list[Unit], checkpoint: RemoteCheckpoint | None) -> Fetched:
    num_files, num_bytes = sum(len(unit.files) for unit in units), sum(unit.num_bytes for unit in units)
    return Fetched(tuple(places), num_files, num_bytes, checkpoint)


def _everything(files: list[FileEntry]) -> list[Unit]:
    """What lies at the top of the run, each as a whole."""
    tops = dict.fromkeys(entry.path.split("/")[0] for entry in files)
    return [
        Unit(top, tuple(entry for entry in files if entry.path == top or entry.path.startswith(f"{top}/")))
        for top in tops
        if top not in _LEFT_OUT
    ]


def _named(source: FileSource, path: str) -> Unit:
    path = path.strip("/")
    return Unit(path, tuple(source.listing(path)))
