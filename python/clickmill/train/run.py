"""A training run: the parts put together, and what happens at its fences."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from clickmill import _core
from clickmill.config import plain
from clickmill.config.urls import without_secrets
from clickmill.data.source import DataSet
from clickmill.errors import ConfigError, DivergedError
from clickmill.nn import load_model_class
from clickmill.nn.dropout import replace_dropout
from clickmill.store import durable
from clickmill.store.lock import only_writer
from clickmill.train.archive import Archive, open_newest
from clickmill.train.assembly import build_parts, check_label, model_source, plan_schema
from clickmill.train.checkpoint import read_manifest
from clickmill.train.compute import Computer
from clickmill.train.evaluation import score_batches
from clickmill.train.features import read_rows
from clickmill.train.gpu.cards import card_of
from clickmill.train.gpu.compute import DeviceComputer
from clickmill.train.gpu.net import DeviceReplicas
from clickmill.train.gpu.optimizer import DeviceOptimizer
from clickmill.train.journal import Journal
from clickmill.train.measures import main_metric, scoring_metrics, training_metrics
from clickmill.train.members import ALONE
from clickmill.train.observer import Observer, RunStart, Saved
from clickmill.train.observers import JournalObserver, LogObserver, TensorBoardObserver
from clickmill.train.parameters import LocalParameters, Rates
from clickmill.train.replica import Replicas
from clickmill.train.resuming import check_files, check_place, check_settings, settings_of
from clickmill.train.saving import RunState
from clickmill.train.settings import (
    compute_options,
    dense_optimizer_json,
    is_higher_better,
    make_schedule,
    make_stopping,
)
from clickmill.train.step import Stepper, diverged
from clickmill.train.stopwatch import Stopwatch
from clickmill.train.trainer import Alone, Place, Plan, Trainer
from clickmill.train.uploads import Uploads, targets_of
from clickmill.train.warm_start import open_origin, take_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.data.source import BatchSource
    from clickmill.metrics import MetricSet
    from clickmill.nn import Model
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.dense import DenseOptimizer
    from clickmill.train.members import Members
    from clickmill.train.parameters import Parameters
    from clickmill.train.step import Counter
    from clickmill.train.trainer import Together

logger = logging.getLogger("clickmill.train")


class Run:
    """One phase of one runner, from the first batch (or a checkpoint) to the last."""

    def __init__(
        self,
        config: Config,
        runner: RunnerConfig,
        phase: PhaseConfig,
        observers: Sequence[Observer] = (),
        members: Members = ALONE,
    ) -> None:
        self.members = members
        self.config = config
        self.runner = runner
        self.phase = phase
        subfolder = phase.name if len(config.phases_of(runner)) > 1 else ""
        self.folder = run_folder(runner) / subfolder
        self.archive = Archive(runner, self.folder, subfolder)
        self._uploads = Uploads(self.archive, targets_of(runner, self.archive, subfolder))
        self._uploaded: str | None = None
        self._observers = list(observers)
        self._changes: tuple[str, ...] = ()
        self._card: torch.device | None = None

    def train(self, *, resume: bool = False) -> dict[str, Any]:
        """Train and return a summary; with `resume` go on from the newest checkpoint of this run."""
        prepare_process(self.phase.thread_num)
        self._card = card_of(self.runner, self.members.local_rank)
        with contextlib.ExitStack() as stack:
            self._open_folders(stack)
            stack.callback(self._close)
            stack.callback(self._uploads.close)
            checkpoint = self._find_checkpoint() if resume else None
            if resume and checkpoint is None:
                logger.info("run.fresh reason=%s", "no checkpoint to resume from")
            self._build(checkpoint)
            # What is there now stays to the end: the collector need not look at it every few batches.
            gc.freeze()
            stack.callback(gc.unfreeze)
            if checkpoint is not None and self._is_finished(checkpoint):
                logger.info("run.finished already=%s", checkpoint.folder)
                self.trainer.last_validation = checkpoint.manifest.metrics
            else:
                self._run(checkpoint)
            if self.members.is_writer:
                self._uploaded = self._uploads.settle()
        return self._summary()

    def newest_elsewhere(self) -> str | None:
        """URL of the newest checkpoint among those that were put elsewhere."""
        return self._uploads.newest()

    def _run(self, checkpoint: Checkpoint | None) -> None:
        start = RunStart(
            model=self.parts.model_spec,
            num_parameters=sum(each.numel() for each in self.replicas[0].parameters),
            num_workers=self.phase.thread_num * self.members.world,
            passes=self.runner.epochs,
            resumed_from=None if checkpoint is None else checkpoint.folder,
            changes=self._changes,
        )
        try:
            self.trainer.run(start)
        except (KeyboardInterrupt, SystemExit):
            if not self.members.is_writer:
                raise
            place, newest = self.trainer.place, self.archive.newest()
            origin = f"goes on from `{newest}`" if newest else "starts again, for nothing has been saved yet"
            logger.warning(
                "interrupted in pass %d after %d batches; `--resume` %s",
                place.pass_number,
                place.batch,
                origin,
            )
            raise

    def _open_folders(self, stack: contextlib.ExitStack) -> None:
        for folder in self._folders():
            stack.enter_context(only_writer(folder))
        self.archive.clear_partial()

    def _find_checkpoint(self) -> Checkpoint | None:
        return open_newest(self.archive)

    def _folders(self) -> list[Path]:
        """Every folder that no other run may write to: this run's own, and those that lie elsewhere."""
        others = {self.archive.pass_folder, self.archive.step_folder}
        return [self.folder, *sorted(each for each in others if not each.is_relative_to(self.folder))]

    def _close(self) -> None:
        for observer in self._observers:
            observer.close()

    def _is_finished(self, checkpoint: Checkpoint) -> bool:
        has_stopped: bool = checkpoint.read_json("trainer.json")["has_stopped"]
        return has_stopped or self.trainer.place.pass_number >= self.runner.epochs

    def _build(self, checkpoint: Checkpoint | None) -> None:
        runner, phase = self.runner, self.phase
        for name in (phase.dataset_name, runner.evaluate_dataset_name):
            if name is not None:
                check_label(self.config, name)
        model_class = load_model_class(phase.model, Path())
        planned = plan_schema(self.config, runner, phase, model_class)
        settings = settings_of(self.config, runner, phase, schema_json=planned.to_core().to_json())
        if checkpoint is not None:
            check_place(checkpoint)
        changes = check_settings(checkpoint, settings, model_source(phase.model)) if checkpoint else []
        origin = open_origin(runner) if checkpoint is None else None
        self.parts = build_parts(
            self.config, runner, phase, checkpoint=checkpoint, origin=origin, members=self.members
        )
        if checkpoint is not None:
            check_files(checkpoint, self.parts.data)
        self._evaluated = _evaluated_data(self.config, runner, self.parts.model, self.members)
        self._check_validation()
        if checkpoint is None:
            self._check_slots()
        replace_dropout(self.parts.model)
        self.parts.model.train()
        self.replicas, optimizer = self._make_dense()
        metrics = training_metrics(self.parts.model)
        plan = self._make_plan(metrics)
        journal = self._make_observers(checkpoint) if self.members.is_writer else None
        self.state = RunState(
            parts=self.parts,
            replicas=self.replicas,
            optimizer=optimizer,
            metrics=metrics,
            schedule=make_schedule(runner.learning_rate_schedule),
            stopping=make_stopping(runner),
            journal=journal,
            settings=settings,
            write_table=self._write_table,
        )
        self.trainer = self._make_trainer(plan)
        if checkpoint is None:
            if origin is not None:
                take_from(origin, self.state, runner)
            if self.members.is_writer:
                text = json.dumps(without_secrets(plain(self.config)), indent=1, ensure_ascii=False)
                durable.replace_file(self.folder / "config.json", text.encode())
                self.archive.start_run()
            return
        self.trainer.place = self.state.restore(checkpoint)
        self.archive.resume_chain(checkpoint)
        if self.members.is_writer:
            self._uploads.offer_all()
        if journal is not None:
            # A checkpoint cannot hold the event that tells of it.
            JournalObserver(journal).saved(_saved(checkpoint, seconds=None))
        self._changes = tuple(changes)

    def _make_dense(self) -> tuple[Replicas, DenseOptimizer]:
        """The dense net for the workers, where it is computed, and its optimizer."""
        hyper = self.config.hyper_parameters
        rule = dense_optimizer_json(hyper.optimizer, hyper.reg)
        if self._card is not None:
            net = DeviceReplicas(self.parts.model, self._card)
            return net, DeviceOptimizer(rule, net)
        replicas = Replicas(self.parts.model, self.phase.thread_num)
        return replicas, _core.DenseOptimizer(rule, [array.size for array in replicas.arrays])

    def _make_observers(self, checkpoint: Checkpoint | None) -> Journal:
        """What writes down what the run tells; the journal, of which checkpoints note the length."""
        keep_bytes = 0 if checkpoint is None else checkpoint.read_json("trainer.json")["journal_bytes"]
        journal = Journal(self.folder, keep_bytes=keep_bytes)
        self._observers = [LogObserver(), JournalObserver(journal), *self._observers]
        if self.runner.tensorboard_path:
            self._observers.append(
                TensorBoardObserver(
                    Path(self.runner.tensorboard_path),
                    first_step=None if checkpoint is None else checkpoint.manifest.step + 1,
                )
            )
        return journal

    def _write_table(self, name: str, path: Path, base_id: str | None) -> str:
        report: dict[str, str] = json.loads(self.parts.tables[name].save(path, base_id))
        return report["id"]

    def _make_plan(self, metrics: MetricSet) -> Plan:
        runner = self.runner
        schedule = getattr(runner.learning_rate_schedule, "metric", None)
        stopping = None if runner.early_stopping is None else runner.early_stopping.metric
        measured = scoring_metrics(self.parts.model, self.parts.schema) if self.has_validation else metrics
        for section, name in (("learning_rate_schedule", schedule), ("early_stopping", stopping)):
            if name is not None and name not in measured.names:
                where = (
                    "validation" if self.has_validation else "training, for there are no validation samples"
                )
                known = ", ".join(measured.names)
                message = f"there is no metric `{name}` of {where}; there are: {known}"
                path = ("runner", self.config.runner.index(runner), section, "metric")
                raise ConfigError.of([self.config.problem(message, path)])
        # `best` of the keep policy goes by what stops the run, or changes its rate, where either is named.
        self._best_metric = stopping or schedule or main_metric(metrics)
        return Plan(
            passes=runner.epochs,
            num_workers=self.phase.thread_num,
            print_interval=runner.print_interval,
            save_step_interval=max(runner.save_step_interval, 0),
            evict_interval=runner.evict_interval,
            max_batches=runner.max_batches or 0,
            evaluate_interval=runner.evaluate_interval,
            schedule_metric=schedule or main_metric(metrics),
            stopping_metric=stopping or main_metric(metrics),
        )

    def _make_parameters(self, rates: Rates, stopwatch: Stopwatch) -> Parameters[Any]:
        return LocalParameters(
            tables=self.parts.tables,
            feeds=self.parts.feeds,
            replicas=self.replicas,
            optimizer=self.state.optimizer,
            rates=rates,
            stopwatch=stopwatch,
        )

    def _counter(self) -> Counter:
        """What the scores of training are counted by."""
        return self.state.metrics

    def _make_computer(self, stopwatch: Stopwatch) -> Computer:
        replicas, feeds = self.replicas, self.parts.feeds
        options = compute_options(self.runner, first_worker=self.members.rank * self.phase.thread_num)
        if isinstance(replicas, DeviceReplicas):
            return DeviceComputer(feeds=feeds, replicas=replicas, options=options, stopwatch=stopwatch)
        return Computer(feeds=feeds, replicas=replicas, options=options, stopwatch=stopwatch)

    def _make_trainer(self, plan: Plan) -> Trainer:
        runner, state = self.runner, self.state
        learning_rate = self.config.hyper_parameters.optimizer.learning_rate
        stopwatch = Stopwatch(is_logged=self.config.debug)
        rates = Rates(learning_rate, state.schedule, runner.clip_norm)
        stepper = Stepper(
            parameters=self._make_parameters(rates, stopwatch),
            computer=self._make_computer(stopwatch),
            metrics=self._counter(),
            stopwatch=stopwatch,
        )
        return Trainer(
            plan=plan,
            stepper=stepper,
            replicas=self.replicas,
            metrics=state.metrics,
            schedule=state.schedule,
            stopping=state.stopping,
            open_pass=self._open_pass,
            fences=self,
            observers=self._observers,
            learning_rate=learning_rate,
            stopwatch=stopwatch,
            together=self._together(),
        )

    def _together(self) -> Together:
        """Who else takes part in each step."""
        return Alone()

    def _open_pass(self, pass_number: int, position: str | None) -> BatchSource:
        # As they are when the pass begins: a checkpoint inside it tells them to whoever resumes.
        self.state.files = self.parts.data.file_sizes(pass_number)
        try:
            return self.parts.data.open(self.parts.schema, pass_number, position)
        except ConfigError as error:
            if position is None:
                raise
            raise ConfigError(
                f"cannot resume in the middle of pass {pass_number}: {error}",
                hint="the files must have the names and sizes that they had, in the same order",
            ) from error

    # What happens at fences.

    def start_pass(self, place: Place) -> None:
        """Empty the tables that start anew with each pass; those of a warm start serve the first."""
        if place.pass_number > 0 and self.parts.tables.restart(place.step):
            # A difference to a table that is gone would mean nothing.
            self.archive.end_chain()

    def save_step(self, place: Place) -> None:
        """Write a checkpoint in the middle of a pass."""
        with self._checked_for_divergence():
            saved = self.archive.save_step(self.state, place, self.state.metrics.compute())
        self._tell_saved(*saved)

    def save_unfinished(self, place: Place) -> None:
        """Write a checkpoint that `--resume` finishes the pass from, unless there is one of this step."""
        if not self._is_saved(place):
            self.save_step(place)

    def _is_saved(self, place: Place) -> bool:
        newest = self.archive.newest()
        return newest is not None and read_manifest(newest).step == place.step

    def save_pass(self, place: Place, metrics: dict[str, float], *, has_stopped: bool, is_last: bool) -> None:
        """Write the checkpoint of a pass if its number, or the end of training, asks for one."""
        if self._is_pass_saved(place, is_last=is_last):
            with self._checked_for_divergence():
                saved = self.archive.save_pass(self.state, place, metrics, has_stopped=has_stopped)
            self._tell_saved(*saved)

    def _is_pass_saved(self, place: Place, *, is_last: bool) -> bool:
        every = self.runner.save_checkpoint_interval
        return is_last or (every > 0 and (place.pass_number + 1) % every == 0)

    @contextlib.contextmanager
    def _checked_for_divergence(self) -> Iterator[None]:
        """A step can break parameters with a loss that was still a number; that must not be saved.

        Dense parameters are looked at here; rows by the table, when it is asked to write or to check them.
        """
        place = self.trainer.place
        batch = max(place.batch - 1, 0)
        if not self.replicas.is_finite():
            raise diverged("a dense parameter is not finite", place.pass_number, batch)
        try:
            yield
        except DivergedError as error:
            raise diverged(str(error), place.pass_number, batch) from error

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
        with self._checked_for_divergence():
            for name in self.parts.tables:
                self.parts.tables[name].check_finite()
        metrics = scoring_metrics(self.parts.model, self.parts.schema)
        try:
            score_batches(
                self.replicas.model,
                self._read_rows,
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
        return self._of_all(metrics).compute()

    def _of_all(self, metrics: MetricSet) -> MetricSet:
        """What all members have counted together."""
        return metrics

    def _read_rows(self, batch: _core.Batch) -> list[_core.Lookup]:
        return read_rows(batch, self.parts.tables, self.parts.feeds)

    def _check_validation(self) -> None:
        """Read the first validation samples: better now than after hours of training."""
        source = self._open_validation()
        if source is not None:
            try:
                source.next()
            finally:
                source.close()

    def _check_slots(self) -> None:
        """A slot that never occurs is found before the first batch, not behind the last."""
        to_the_end = self.runner.max_batches is None
        for data in (self.parts.data, self._evaluated):
            if data is not None:
                data.check_slots(self.parts.schema, to_the_end=to_the_end)

    @property
    def has_validation(self) -> bool:
        """Whether there is anything to validate on."""
        return self._evaluated is not None or bool(self.parts.data.validation_files)

    def _open_validation(self) -> BatchSource | None:
        if self._evaluated is not None:
            return self._evaluated.open_in_order(self.parts.schema)
        return self.parts.data.open_validation(self.parts.schema)

    def _tell_saved(self, checkpoint: Checkpoint, seconds: float) -> None:
        event = _saved(checkpoint, seconds)
        self._tell(lambda o: o.saved(event))
        self._uploads.offer(checkpoint.folder)
        metric = self._best_metric
        for removed in self.archive.prune(metric, higher_is_better=is_higher_better(metric)):
            self._uploads.drop(removed)

    def _tell(self, call: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            call(observer)

    def _summary(self) -> dict[str, Any]:
        newest = self.archive.newest()
        return {
            "run": str(self.folder),
            "checkpoint": None if newest is None else str(newest),
            **({} if self._uploaded is None else {"uploaded": self._uploaded}),
            "step": self.trainer.place.step,
            "bad_lines": self.trainer.last_bad_lines,
            "train": self.trainer.last_train,
            "validation": self.trainer.last_validation,
        }


def run_folder(runner: RunnerConfig) -> Path:
    """Folder of a run: journal, report, and checkpoints where no other place is named."""
    return Path(runner.run_folder)


def _saved(checkpoint: Checkpoint, seconds: float | None) -> Saved:
    manifest = checkpoint.manifest
    return Saved(
        checkpoint.folder,
        manifest.pass_number - manifest.is_pass_end,
        manifest.batch,
        manifest.step,
        manifest.base is None,
        seconds,
    )


def _evaluated_data(config: Config, runner: RunnerConfig, model: Model, members: Members) -> DataSet | None:
    """The data set that `evaluate_dataset_name` names; its files are looked for before training begins."""
    name = runner.evaluate_dataset_name
    if name is None:
        return None
    return DataSet(
        config.dataset_named(name),
        Path(),
        has_binary_label=model.task == "binary",
        share=members.data_share,
    )


def prepare_process(num_workers: int) -> None:
    """One intra-op thread for each worker, and activations that stay mapped."""
    _core.keep_freed_memory()
    torch.set_num_threads(1)
    if num_workers > 1:
        # The first of each of these imports modules; two workers doing so at once would race.
        torch.zeros(1, requires_grad=True).sum().backward()  # type: ignore[no-untyped-call]
