"""Checkpoints of a run that also go elsewhere: while it trains, and all of them before it ends."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from queue import Queue
from typing import TYPE_CHECKING

from clickmill.errors import ClickmillError, ConfigError, RemoteError, StorageError
from clickmill.store.remote.url import is_url, parse, shown
from clickmill.train.checkpoint import MANIFEST, find_checkpoints
from clickmill.train.remote_checkpoint import (
    alone,
    newest_checkpoint,
    remove_checkpoint,
    upload_checkpoint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clickmill.config import RunnerConfig
    from clickmill.train.archive import Archive

logger = logging.getLogger("clickmill.train")

UPLOAD = "CLICKMILL_UPLOAD"
"""Variable: where every checkpoint is put, too."""


@dataclass(frozen=True)
class Target:
    """Where the checkpoints of a folder go."""

    folder: Path
    url: str

    def url_of(self, checkpoint: Path) -> str:
        return parse(self.url).child(checkpoint.name).url


def targets_of(runner: RunnerConfig, archive: Archive, subfolder: str) -> list[Target]:
    """Where checkpoints go, by the configuration and the environment; empty where they stay here."""
    everywhere = os.environ.get(UPLOAD, "")
    if everywhere and not is_url(everywhere):
        raise ConfigError(f"{UPLOAD} is `{everywhere}`; it must be a URL, such as `s3://bucket/folder`")
    named = (
        (archive.pass_folder, runner.save_checkpoint_path, ""),
        (archive.step_folder, runner.save_step_path, ""),
        (archive.pass_folder, everywhere, "checkpoints"),
        (archive.step_folder, everywhere, "steps"),
    )
    targets = []
    for folder, url, below in named:
        if is_url(url):
            place = parse(url)
            for name in (subfolder, below):
                place = place.child(name) if name else place
            targets.append(Target(folder, place.url))
    return targets


class Uploads:
    """Puts checkpoints elsewhere on a thread of its own; those that failed are tried again at the end."""

    def __init__(self, archive: Archive, targets: list[Target]) -> None:
        self._archive = archive
        self._targets = targets
        self._tasks: Queue[tuple[str, Path] | None] = Queue()
        self._thread: threading.Thread | None = None

    def offer(self, checkpoint: Path) -> None:
        """A checkpoint is there."""
        self._put("upload", checkpoint)

    def drop(self, checkpoint: Path) -> None:
        """A checkpoint was removed: the keep policy holds elsewhere, too."""
        self._put("remove", checkpoint)

    def offer_all(self) -> None:
        """What an earlier life of the run has left behind."""
        for target in self._targets:
            for folder in self._checkpoints(target):
                self.offer(folder)

    def settle(self) -> str | None:
        """Wait until all checkpoints of the run are there; where the newest one is.

        Raises StorageError where one cannot be put there.
        """
        if not self._targets:
            return None
        self._tasks.join()
        for target in self._targets:
            for folder in self._checkpoints(target):
                self._upload(folder, target)
        newest = self._archive.newest()
        urls = [each.url_of(newest) for each in self._targets if newest and newest.parent == each.folder]
        return shown(urls[0]) if urls else None

    def newest(self) -> str | None:
        """URL of the newest checkpoint there; None where there is none."""
        return newest_checkpoint(*(target.url for target in self._targets))

    def close(self) -> None:
        """Begin nothing more; what is under way may end with the process."""
        self._tasks.put(None)

    def _put(self, what: str, checkpoint: Path) -> None:
        if not any(checkpoint.parent == target.folder for target in self._targets):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="upload", daemon=True)
            self._thread.start()
        self._tasks.put((what, checkpoint))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._do(*task)
            except ClickmillError as error:
                logger.warning("checkpoint.not_uploaded path=%s reason=%s", task[1], error)
            except Exception:
                logger.exception("checkpoint.not_uploaded path=%s", task[1])
            finally:
                self._tasks.task_done()

    def _do(self, what: str, checkpoint: Path) -> None:
        for target in self._targets:
            if checkpoint.parent != target.folder:
                continue
            if what == "upload":
                self._upload(checkpoint, target)
            else:
                remove_checkpoint(target.url_of(checkpoint))

    def _upload(self, checkpoint: Path, target: Target) -> None:
        url = target.url_of(checkpoint)
        try:
            # Of several that do so at once, the first does it, and the others see that it is done.
            with alone(target.folder):
                upload_checkpoint(checkpoint, url)
        except (OSError, RemoteError) as error:
            if not (checkpoint / MANIFEST).is_file():
                # The keep policy was faster.
                remove_checkpoint(url)
                return
            words = (getattr(error, "hint", None), f"it is whole in `{checkpoint}`: go on with `--resume`")
            raise StorageError(
                f"cannot put the checkpoint to `{shown(url)}`: {error}",
                hint="; ".join(each for each in words if each),
            ) from error

    def _checkpoints(self, target: Target) -> Iterator[Path]:
        """Those of this run."""
        for folder, manifest in find_checkpoints(target.folder):
            if manifest.run == self._archive.run_id:
                yield folder
