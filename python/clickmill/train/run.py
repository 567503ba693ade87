"""A training run: the parts put together, and what happens at its fences."""

from __future__ import annotations

import gc
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from clickmill import _core
from clickmill.config import plain
from clickmill.errors import ConfigError
from clickmill.nn.dropout import replace_dropout
from clickmill.store import durable
from clickmill.train.assembly import build_parts
from clickmill.train.checkpoint import Checkpoint, find_checkpoints, open_checkpoint
from clickmill.train.evaluation import Member, score_batches
from clickmill.train.journal import Journal
from clickmill.train.measures import main_metric, metrics_for
from clickmill.train.observer import Observer, Saved
from clickmill.train.observers import JournalObserver, LogObserver, TensorBoardObserver
from clickmill.train.pruning import prune
from clickmill.train.replica import Replicas
from clickmill.train.saving import RunState
from clickmill.train.settings import dense_optimizer_json, make_schedule, make_stopping
from clickmill.train.step import StepOptions, Stepper
from clickmill.train.trainer import Place, Plan, Trainer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.data.source import BatchSource
    from clickmill.metrics import MetricSet

logger = logging.getLogger("clickmill.train")


class Run:
    """One phase of one runner, from the first batch (or a checkpoint) to the last."""

    def __init__(
        self, config: Config, runner: RunnerConfig, phase: PhaseConfig, observers: Sequence[Observer] = ()
    ) -> None:
        self.config = config
        self.runner = runner
        self.phase = phase
        self.folder = run_folder(runner)
        self.pass_folder = Path(runner.save_checkpoint_path or self.folder / "checkpoints")
        self.step_folder = Path(runner.save_step_path or self.folder / "steps")
        self._observers = list(observers)
        self._bases: list[Checkpoint] = []
        """Checkpoints of the current chain, the full one first."""

    def train(self, *, resume: bool = False) -> dict[str, Any]:
        """Train and return a summary; with `resume` go on from the newest checkpoint of this run."""
        _prepare_process(self.phase.thread_num)
        durable.clear_partial(self.pass_folder)
        durable.clear_partial(self.step_folder)
        checkpoint = self.newest_checkpoint() if resume else None
        if resume and checkpoint is None:
            logger.info("run.fresh reason=%s", "no checkpoint to resume from")
        try:
            self._build(checkpoint)
            # What is there now stays to the end: the collector need not look at it every few batches.
            gc.freeze()
            if checkpoint is None or not checkpoint.read_json("trainer.json")["is_finished"]:
                self.trainer.run(
                    model=self.parts.model_spec,
                    num_parameters=sum(parameter.numel() for parameter in self.replicas[0].parameters),
                    resumed_from=None if checkpoint is None else checkpoint.folder,
                )
            else:
                logger.info("run.finished already=%s", checkpoint.folder)
        finally:
            gc.unfreeze()
            for observer in self._observers:
                observer.close()
        return self._summary()

    def newest_checkpoint(self) -> Checkpoint | None:
        """The checkpoint with the most updates among those of passes and of steps."""
        found = [*find_checkpoints(self.pass_folder), *find_checkpoints(self.step_folder)]
        if not found:
            return None
        folder, _ = max(found, key=lambda item: (item[1].step, item[1].is_pass_end))
        return open_checkpoint(folder)

    def _build(self, checkpoint: Checkpoint | None) -> None:
        runner, phase = self.runner, self.phase
        self.parts = build_parts(self.config, runner, phase, checkpoint=checkpoint)
        replace_dropout(self.parts.model)
        self.parts.model.train()
        self.replicas = Replicas(self.parts.model, phase.thread_num)
        hyper = self.config.hyper_parameters
        optimizer = _core.DenseOptimizer(
            dense_optimizer_json(hyper.optimizer, hyper.reg),
            [array.size for array in self.replicas.arrays],
        )
        metrics = metrics_for(self.parts.model)
        self._watched = _watched_metric(runner, metrics)
        keep_bytes = 0 if checkpoint is None else checkpoint.read_json("trainer.json")["journal_bytes"]
        journal = Journal(self.folder, keep_bytes=keep_bytes)
        self._observers = [LogObserver(), JournalObserver(journal), *self._observers]
        self.state = RunState(
            parts=self.parts,
            replicas=self.replicas,
            optimizer=optimizer,
            metrics=metrics,
            schedule=make_schedule(runner.learning_rate_schedule),
            stopping=make_stopping(runner),
            journal=journal,
        )
        if runner.tensorboard_path:
            self._observers.append(TensorBoardObserver(Path(runner.tensorboard_path)))
        self.trainer = self._make_trainer(optimizer)
        if checkpoint is not None:
            self.trainer.place = self.state.restore(checkpoint)
        else:
            self._warm_start()
            text = json.dumps(plain(self.config), indent=1, ensure_ascii=False)
            durable.replace_file(self.folder / "config.json", text.encode())

    def _warm_start(self) -> None:
        runner = self.runner
        path = runner.init_model_path or runner.init_pretraining_model_path
        if path:
            self.state.restore_parameters(open_checkpoint(Path(path)))

    def _make_trainer(self, optimizer: _core.DenseOptimizer) -> Trainer:
        runner, state = self.runner, self.state
        learning_rate = self.config.hyper_parameters.optimizer.learning_rate
        stepper = Stepper(
            tables=self.parts.tables,
            feeds=self.parts.feeds,
            replicas=self.replicas,
            optimizer=optimizer,
            schedule=state.schedule,
            metrics=state.metrics,
            options=StepOptions(
                precision=runner.precision,
                learning_rate=learning_rate,
                clip_norm=runner.clip_norm,
                seed=runner.seed,
                is_progressive=runner.progressive_validation,
            ),
        )
        return Trainer(
            plan=Plan(
                passes=runner.epochs,
                num_workers=self.phase.thread_num,
                print_interval=runner.print_interval,
                save_step_interval=max(runner.save_step_interval, 0),
                evict_interval=runner.evict_interval,
                max_batches=runner.max_batches or 0,
                validation_metric=self._watched,
            ),
            stepper=stepper,
            replicas=self.replicas,
            metrics=state.metrics,
            schedule=state.schedule,
            stopping=state.stopping,
            open_pass=self._open_pass,
            fences=self,
            observers=self._observers,
            learning_rate=learning_rate,
        )

    def _open_pass(self, pass_number: int, position: str | None) -> BatchSource:
        return self.parts.data.open(self.parts.schema, pass_number, position)

    # What happens at fences.

    def start_pass(self, place: Place) -> None:
        """Empty the tables that start anew with each pass; those of a warm start serve the first."""
        if place.pass_number > 0 and self.parts.tables.restart(place.step):
            # A difference to a table that is gone would mean nothing.
            self._bases.clear()

    def save_step(self, place: Place) -> None:
        """Write `epoch_E_batch_B`; full, or as a difference to the one before."""
        folder = self.step_folder / f"epoch_{place.pass_number}_batch_{place.batch}"
        if len(self._bases) >= self.runner.save_step_full_interval:
            self._bases.clear()
        base = self._bases[-1] if self._bases else None
        checkpoint, seconds = self.state.save(
            folder,
            place,
            is_pass_end=False,
            is_finished=False,
            base=base,
            metrics=self.state.metrics.compute(),
        )
        self._bases.append(checkpoint)
        self._tell_saved(checkpoint, place, seconds)
        self._prune(self.step_folder)

    def save_pass(
        self, place: Place, train: dict[str, float], validation: dict[str, float], *, is_last: bool
    ) -> None:
        """Write the checkpoint of a pass if its number, or the end of training, asks for one."""
        every = self.runner.save_checkpoint_interval
        if not is_last and (every <= 0 or (place.pass_number + 1) % every != 0):
            return
        name = (
            f"pass-{place.pass_number:05d}"
            if self.runner.save_checkpoint_style == "pass"
            else f"{place.pass_number}"
        )
        after = replace(place, pass_number=place.pass_number + 1, batch=0, samples=0, position=None)
        checkpoint, seconds = self.state.save(
            self.pass_folder / name,
            after,
            is_pass_end=True,
            is_finished=is_last,
            base=None,
            metrics=validation or train,
        )
        self._bases.clear()
        self._tell_saved(checkpoint, place, seconds)
        self._prune(self.pass_folder)

    def evict(self) -> dict[str, int]:
        """Evict rows by the policies of the tables; returns the rows that are left."""
        rows = {}
        for name in self.parts.tables:
            table = self.parts.tables[name]
            report = json.loads(table.evict())
            evicted = report["rows_before"] - report["rows"]
            if evicted:
                logger.info("table.evicted table=%s rows=%d left=%d", name, evicted, report["rows"])
            rows[name] = report["rows"]
        return rows

    def validate(self) -> dict[str, float]:
        """Metrics of the newest model on the validation data; empty where there is none."""
        source = self._open_validation()
        if source is None:
            return {}
        metrics = metrics_for(self.parts.model)
        try:
            score_batches(
                [Member(self.replicas.model, self.parts.tables)],
                self.parts.feeds,
                source.next,
                lambda batch, scores: metrics.update(
                    scores, batch.labels[:, 0], batch.weights, batch.group_keys
                ),
                num_workers=self.phase.thread_num,
                precision=self.runner.precision,
            )
        finally:
            source.close()
        return metrics.compute()

    def _open_validation(self) -> BatchSource | None:
        name = self.runner.evaluate_dataset_name
        if name is None:
            return self.parts.data.open_validation(self.parts.schema)
        from clickmill.data.source import DataSet  # noqa: PLC0415 - only where another data set is named

        return DataSet(self.config.dataset_named(name), Path()).open_in_order(self.parts.schema)

    def _prune(self, folder: Path) -> None:
        if self.runner.save_checkpoint_keep is not None:
            prune(folder, self.runner.save_checkpoint_keep)

    def _tell_saved(self, checkpoint: Checkpoint, place: Place, seconds: float) -> None:
        event = Saved(
            checkpoint.folder,
            place.pass_number,
            place.batch,
            place.step,
            checkpoint.manifest.base is None,
            seconds,
        )
        for observer in self._observers:
            observer.saved(event)

    def _summary(self) -> dict[str, Any]:
        newest = self.newest_checkpoint()
        return {
            "run": str(self.folder),
            "checkpoint": None if newest is None else str(newest.folder),
            "step": self.trainer.place.step,
            "train": self.trainer.last_train,
            "validation": self.trainer.last_validation,
        }


def run_folder(runner: RunnerConfig) -> Path:
    """Folder of a run: journal, report, and checkpoints where no other place is named."""
    return Path(runner.output_path or f"runs/{runner.name}")


def _prepare_process(num_workers: int) -> None:
    """One intra-op thread for each worker, and activations that stay mapped."""
    _core.keep_freed_memory()
    torch.set_num_threads(1)
    if num_workers > 1:
        # The first of each of these imports modules; two workers doing so at once would race.
        torch.zeros(1, requires_grad=True).sum().backward()  # type: ignore[no-untyped-call]


def _watched_metric(runner: RunnerConfig, metrics: MetricSet) -> str:
    """The metric that early stopping and the plateau schedule look at."""
    schedule = runner.learning_rate_schedule
    if runner.early_stopping is not None:
        name = runner.early_stopping.metric
    else:
        name = getattr(schedule, "metric", main_metric(metrics))
    if name not in metrics.names:
        raise ConfigError(f"there is no metric `{name}`; this model has: {', '.join(metrics.names)}")
    return name
