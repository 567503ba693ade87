"""The checkpoints of a run: where they lie, which is the newest, which stay.

A folder may hold checkpoints of an earlier run of the same name. They carry that run's id and are left
alone: never resumed from, never counted, never removed, but for one whose name is needed again.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import FormatError, StorageError
from clickmill.store import durable
from clickmill.store.remote.url import is_url
from clickmill.train.checkpoint import (
    Checkpoint,
    Manifest,
    before_hint,
    find_checkpoints,
    open_checkpoint,
)
from clickmill.train.pruning import prune

if TYPE_CHECKING:
    from clickmill.config import RunnerConfig
    from clickmill.train.saving import RunState
    from clickmill.train.trainer import Place

RUN_FILE = "run.json"


class Archive:
    """Writes the checkpoints of one run, and finds them again."""

    def __init__(self, runner: RunnerConfig, run_folder: Path, subfolder: str) -> None:
        """`subfolder` keeps apart the phases of a runner that has several; empty for a single one."""
        self._runner = runner
        self._run_folder = run_folder
        self.pass_folder = _place(runner.save_checkpoint_path, subfolder) or run_folder / "checkpoints"
        self.step_folder = _place(runner.save_step_path, subfolder) or run_folder / "steps"
        self._run_id: str | None = None
        self._chain: list[Checkpoint] = []
        """What the next difference builds on, the full checkpoint first."""

    @property
    def run_id(self) -> str:
        """Id of the run that this folder is of; empty where none has begun. FormatError if it is damaged."""
        if not self._run_id:  # another process may have begun the run meanwhile
            self._run_id = self._read_run_id()
        return self._run_id

    def pass_place(self, pass_number: int) -> Path:
        """Where the checkpoint of a pass lies."""
        names = {"epoch": f"{pass_number}", "pass": f"pass-{pass_number:05d}", "short": f"pass-{pass_number}"}
        return self.pass_folder / names[self._runner.save_checkpoint_style]

    def step_place(self, pass_number: int, batch: int) -> Path:
        """Where a checkpoint inside a pass lies; in the short style that of the next pass takes its place."""
        is_short = self._runner.save_checkpoint_style == "short"
        return self.step_folder / (f"batch-{batch}" if is_short else f"epoch_{pass_number}_batch_{batch}")

    def clear_partial(self) -> None:
        """Remove what an interrupted run left half written or half removed."""
        for folder in {self._run_folder, self.pass_folder, self.step_folder}:
            durable.clear_partial(folder)

    def start_run(self) -> None:
        """Begin a new run: from now on checkpoints of earlier ones are not ours."""
        self._run_id = secrets.token_hex(8)
        text = json.dumps({"id": self._run_id})
        durable.replace_file(self._run_folder / RUN_FILE, text.encode())

    def newest(self) -> Path | None:
        """The checkpoint of this run with the most updates among those of passes and of steps."""
        found = [
            (path, manifest)
            for folder in (self.pass_folder, self.step_folder)
            for path, manifest in find_checkpoints(folder)
            if self._is_ours(manifest)
        ]
        if not found:
            return None
        return max(found, key=lambda item: (item[1].step, item[1].is_pass_end))[0]

    def end_chain(self) -> None:
        """Let the next checkpoint inside a pass be a full one."""
        self._chain.clear()

    def resume_chain(self, checkpoint: Checkpoint) -> None:
        """Go on as the run would have that wrote `checkpoint`."""
        self._chain = [] if checkpoint.manifest.is_pass_end else checkpoint.chain()

    def save_step(self, state: RunState, place: Place, metrics: dict[str, float]) -> tuple[Checkpoint, float]:
        """Write `epoch_E_batch_B`, full or as a difference to the one before; also the seconds it took."""
        if len(self._chain) >= self._runner.save_step_full_interval:
            self._chain.clear()
        base = self._chain[-1] if self._chain else None
        folder = self.step_place(place.pass_number, place.batch)
        saved = self._save(state, folder, place, is_pass_end=False, base=base, metrics=metrics)
        self._chain.append(saved[0])
        return saved

    def save_pass(
        self, state: RunState, place: Place, metrics: dict[str, float], *, has_stopped: bool
    ) -> tuple[Checkpoint, float]:
        """Write the checkpoint of the pass that has just ended; always full."""
        after = replace(place, pass_number=place.pass_number + 1, batch=0, samples=0, position=None)
        folder = self.pass_place(place.pass_number)
        saved = self._save(
            state, folder, after, is_pass_end=True, has_stopped=has_stopped, base=None, metrics=metrics
        )
        self._chain.clear()
        return saved

    def prune(self, metric: str, *, higher_is_better: bool) -> list[Path]:
        """Remove what the keep policy does not keep; what went."""
        policy = self._runner.save_checkpoint_keep
        if policy is None:
            return []
        return [
            removed
            for folder in sorted({self.pass_folder, self.step_folder})
            for removed in prune(
                folder, policy, self._is_ours, metric=metric, higher_is_better=higher_is_better
            )
        ]

    def _save(self, state: RunState, folder: Path, place: Place, **options: Any) -> tuple[Checkpoint, float]:
        try:
            return state.save(folder, place, run_id=self.run_id, **options)
        except OSError as error:
            newest = self.newest()
            stays = f"`{newest}` is whole" if newest else "there is no earlier one"
            raise StorageError(
                f"cannot write checkpoint `{folder}`: {error.strerror or error}; {stays}",
                hint="mend that and go on with `--resume`",
            ) from error

    def _read_run_id(self) -> str:
        path = self._run_folder / RUN_FILE
        if not path.is_file():
            return ""
        try:
            content = json.loads(path.read_bytes())
        except ValueError as error:
            raise self._damaged(path, str(error)) from error
        found = content.get("id") if isinstance(content, dict) else None
        if not isinstance(found, str):
            raise self._damaged(path, "it has no `id`")
        return found

    def _damaged(self, path: Path, reason: str) -> FormatError:
        """Every checkpoint knows the id too, so that the file can be written again."""
        found = [each for folder in (self.pass_folder, self.step_folder) for each in find_checkpoints(folder)]
        hint = "remove it: there is no checkpoint that it could be needed for"
        if found:
            _, manifest = max(found, key=lambda item: item[0].stat().st_mtime)
            hint = f"write `{json.dumps({'id': manifest.run})}` into it, the run of the newest checkpoint"
        return FormatError(f"{path} is damaged: {reason}", hint=hint)

    def _is_ours(self, manifest: Manifest) -> bool:
        return manifest.run == self.run_id


def _place(named: str, subfolder: str) -> Path | None:
    """A folder that the runner names; None where it names none, or one elsewhere, to which copies go."""
    return Path(named) / subfolder if named and not is_url(named) else None


def open_newest(archive: Archive) -> Checkpoint | None:
    """The newest checkpoint of a run, checked; None where there is none yet."""
    newest = archive.newest()
    if newest is None:
        return None
    try:
        checkpoint = open_checkpoint(newest)
    except FormatError as error:
        raise FormatError(str(error), hint=before_hint(newest)) from error
    checkpoint.bases()
    return checkpoint
