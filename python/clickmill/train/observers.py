"""Observers that write: the log in the seeds' words, the journal, TensorBoard events."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickmill.errors import MissingExtra
from clickmill.train.measures import summary_line, train_line
from clickmill.train.observer import EpochStart, Interval, Observer, PassEnd, RunStart, Saved

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.train.journal import Journal

logger = logging.getLogger("clickmill.train")


class LogObserver(Observer):
    """The lines that users of the seeds grep for."""

    def run_start(self, event: RunStart) -> None:
        origin = f" resumed={event.resumed_from}" if event.resumed_from else ""
        logger.info(
            "run.started model=%s parameters=%d workers=%d passes=%d%s",
            event.model,
            event.num_parameters,
            event.num_workers,
            event.passes,
            origin,
        )
        for change in event.changes:
            logger.warning("resumed with another configuration: %s", change)

    def interval(self, event: Interval) -> None:
        logger.info(train_line(event.pass_number, event.batch, event.loss, event.metrics))

    def pass_end(self, event: PassEnd) -> None:
        logger.info("pass_id: %d, pass_time_cost: %f", event.pass_number, event.seconds)
        logger.info("pass: %d train: %s", event.pass_number, summary_line(event.train))
        if event.validation:
            logger.info("pass: %d validation: %s", event.pass_number, summary_line(event.validation))
        if event.bad_lines:
            logger.warning("pass: %d skipped %d bad lines", event.pass_number, event.bad_lines)

    def saved(self, event: Saved) -> None:
        logger.info(
            "checkpoint.saved path=%s step=%d full=%s seconds=%.2f",
            event.folder,
            event.step,
            str(event.is_full).lower(),
            event.seconds or 0.0,
        )

    def note(self, text: str) -> None:
        logger.info(text)


class JournalObserver(Observer):
    """One JSON object an event, for `clickmill report` and for machines."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def _write(self, event: str, content: dict[str, Any]) -> None:
        self._journal.write(event, time=time.time(), **content)

    def run_start(self, event: RunStart) -> None:
        content = asdict(event)
        content["resumed_from"] = None if event.resumed_from is None else str(event.resumed_from)
        self._write("run_start", content)

    def epoch_start(self, event: EpochStart) -> None:
        self._write("epoch_start", asdict(event))

    def interval(self, event: Interval) -> None:
        self._write("interval", asdict(event))

    def pass_end(self, event: PassEnd) -> None:
        self._write("pass_end", asdict(event))

    def saved(self, event: Saved) -> None:
        self._write("saved", {**asdict(event), "folder": str(event.folder)})

    def note(self, text: str) -> None:
        self._write("note", {"text": text})

    def close(self) -> None:
        self._journal.close()


class TensorBoardObserver(Observer):
    """Scalars by step: `train/…` at every interval, `validation/…` at every pass."""

    def __init__(self, folder: Path, *, first_step: int | None = None) -> None:
        """`first_step` of a resumed run: what was told of later steps before it stopped is dropped."""
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra(
                "TensorBoard export needs the package `tensorboard`",
                hint="run `pip install 'clickmill[tensorboard]'`, or leave out `tensorboard_path`",
            ) from error
        self._writer = SummaryWriter(str(folder), purge_step=first_step)

    def interval(self, event: Interval) -> None:
        self._scalars("train", {**event.metrics, "loss": event.loss}, event.step)
        self._scalars("train", {"learning_rate": event.learning_rate}, event.step)
        self._scalars("speed", {"samples_per_second": event.samples_per_second}, event.step)

    def pass_end(self, event: PassEnd) -> None:
        self._scalars("pass", event.train, event.step)
        self._scalars("validation", event.validation, event.step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _scalars(self, group: str, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{group}/{name}", value, step)
