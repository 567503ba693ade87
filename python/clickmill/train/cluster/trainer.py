"""A trainer of a cluster, from joining to the end of the run.

It owns nothing that the run could miss: parameters are on the servers, the data is leased, and what it
must do for all is a duty that another can take over.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill import _core
from clickmill.config.flags import with_flags
from clickmill.data.source import DataSet
from clickmill.errors import (
    RUN_ENDED,
    ClickmillError,
    EpochError,
    TokenError,
    WireError,
)
from clickmill.nn import load_model_class
from clickmill.nn.dropout import replace_dropout
from clickmill.ps.coordinator import Coordinator, EpochChanged, Membership
from clickmill.ps.verdict import verdict
from clickmill.ps.wire import settings_json, wire_settings
from clickmill.train.archive import Archive
from clickmill.train.assembly import build_parts, check_label, plan_schema
from clickmill.train.cluster.buffers import encode_buffers, load_buffers
from clickmill.train.cluster.chronicle import Chronicle
from clickmill.train.cluster.duties import Decider
from clickmill.train.cluster.health import tell_health
from clickmill.train.cluster.job import make_job
from clickmill.train.cluster.meter import Meter
from clickmill.train.cluster.origin import ORIGIN, Start, check_origin, start_from
from clickmill.train.cluster.prefetching import Prefetcher
from clickmill.train.cluster.publishing import Publisher
from clickmill.train.cluster.refusal import refusal
from clickmill.train.cluster.scoring import Scorer
from clickmill.train.cluster.snapshot_files import Servers, SnapshotFiles
from clickmill.train.cluster.stream import Stream
from clickmill.train.cluster.units import Unit
from clickmill.train.cluster.warm_up import warm_up
from clickmill.train.cluster.worker import LeaseLost, Tools
from clickmill.train.cluster.workers import knobs_without_effect, make_worker
from clickmill.train.compute import Computer
from clickmill.train.crew import Crew
from clickmill.train.observer import RunStart
from clickmill.train.parameters import Rates
from clickmill.train.replica import Replicas
from clickmill.train.resuming import settings_of
from clickmill.train.run import prepare_process, run_folder
from clickmill.train.settings import (
    compute_options,
    dense_optimizer_json,
    is_higher_better,
    make_schedule,
)
from clickmill.train.stopwatch import LOST, Stopwatch
from clickmill.train.uploads import Uploads, targets_of
from clickmill.train.warm_start import open_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill._core import Batch
    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.data.files import FilePath
    from clickmill.data.source import BatchSource
    from clickmill.monitoring import Monitoring
    from clickmill.train.cluster.worker import Worker
    from clickmill.train.observer import Observer

    Message = dict[str, Any]

logger = logging.getLogger("clickmill.train")

_BETWEEN_ATTEMPTS_S = 0.2
_KEEP_TRIES = 3


class ClusterTrainer:
    """One process that trains what a coordinator gives it."""

    def __init__(
        self,
        config: Config,
        runner: RunnerConfig,
        phase: PhaseConfig,
        *,
        coordinator: str,
        name: str,
        token: str | None,
        observers: Sequence[Observer] = (),
        has_own_log: bool = False,
        monitoring: Monitoring | None = None,
        is_run_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_own_log`: it logs how the run goes, whichever trainer speaks for all. `is_run_over`: whether
        somebody knows that it has ended well, when no coordinator answers any more.
        """
        self._config = config
        self._runner = runner
        self._phase = phase
        self._address = coordinator
        self._name = name
        self._communicating = runner.model_copy(
            update={"communicator": with_flags(runner.communicator, os.environ)}
        )
        """The runner with the knobs of this process, which others need not share."""
        self._wire = wire_settings("trainer", name, token=token, runner=self._communicating)
        self._observers = tuple(observers)
        self._has_own_log = has_own_log
        self._monitoring = monitoring
        self._is_run_over = is_run_over
        self._held: dict[int, Stream] = {}
        self._bytes_done = 0
        """Of units that this trainer has finished."""
        self._units: list[Unit] = []
        self._passes: list[Message] = []
        self._end: Message = {}
        """The coordinator's summary of the run."""
        self._failing_since: float | None = None
        """Of the first attempt that has come to nothing, when none after it came to anything."""

    def run(self) -> Message:
        """Take part until the run is over; its summary."""
        prepare_process(self._phase.thread_num)
        self._build()
        try:
            summary = self._take_part()
            if code := self._end.get("exit_code", 0):
                raise verdict(code, RUN_ENDED + self._end["words"])
            # Whoever wrote the last checkpoint may have been killed since: all see to it that it is there.
            uploaded = self._uploads.settle()
            return summary if uploaded is None else {**summary, "uploaded": uploaded}
        finally:
            self._uploads.close()
            self._prefetcher.close()
            self._chronicle.close()

    def _take_part(self) -> Message:
        with Crew(self._phase.thread_num) as crew:
            warm_up(
                crew,
                self._replicas,
                self._parts.schema,
                self._parts.feeds,
                batch_size=self._data.config.batch_size,
                precision=self._runner.precision,
            )
            while True:
                membership = self._join()
                if membership is None:
                    return self._summary()
                try:
                    if membership.state is not None:
                        load_buffers(self._replicas, [membership.state])
                    self._chronicle.join(
                        membership, Coordinator(self._wire, self._address), self._start(membership)
                    )
                    self._belong(crew, membership)
                    self._keep_last()
                    return self._summary()
                except WireError as error:
                    if membership.end is not None:
                        self._end = membership.end
                        return self._summary()
                    # Declared dead, or a server is gone: what is under way is void.
                    logger.warning("trainer.rejoins reason=%s", error)
                    if self._has_failed_for_long():
                        raise
                finally:
                    self._set_ready(is_ready=False)
                    self._stopwatch.settle("wait")
                    self._meter.end()
                    membership.leave()
                    self._drop_streams()
                time.sleep(_BETWEEN_ATTEMPTS_S)

    def _has_failed_for_long(self) -> bool:
        """Whether nothing was done for so long that a coordinator for which all is well cannot be right."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since > self._runner.cluster.wait_for_members_s

    def _set_ready(self, *, is_ready: bool) -> None:
        if self._monitoring is not None:
            self._monitoring.set_ready(is_ready, "it is no member of the cluster")

    def _statistics(self) -> Message:
        """For a heartbeat, and for those who scrape this process."""
        statistics = self._meter.statistics()
        if self._monitoring is not None:
            tell_health(self._monitoring, self._meter, statistics)
        return statistics

    def _start(self, membership: Membership) -> RunStart:
        return RunStart(
            model=self._parts.model_spec,
            num_parameters=sum(each.numel() for each in self._replicas[0].parameters),
            num_workers=self._phase.thread_num,
            passes=self._runner.epochs,
            resumed_from=None if membership.place["step"] == 0 else self._archive.newest(),
        )

    def _build(self) -> None:
        config, runner, phase = self._config, self._runner, self._phase
        for name in (phase.dataset_name, runner.evaluate_dataset_name):
            if name is not None:
                check_label(config, name)
        planned = plan_schema(config, runner, phase, load_model_class(phase.model, Path()))
        self._settings = settings_of(config, runner, phase, schema_json=planned.to_core().to_json())
        origin = open_origin(runner, shared=run_folder(runner) / ORIGIN)
        self._parts = build_parts(config, runner, phase, origin=origin)
        is_binary = self._parts.model.task == "binary"
        self._data = DataSet(
            # Nothing may be dropped: which samples the last batch of a unit has depends on the cut alone.
            self._parts.data.config.model_copy(update={"keep_last": True}),
            Path(),
            seed=runner.seed,
            shuffle_files=phase.shuffle_filelist,
            has_binary_label=is_binary,
        )
        evaluated = runner.evaluate_dataset_name
        self._evaluated = (
            None
            if evaluated is None
            else DataSet(config.dataset_named(evaluated), Path(), has_binary_label=is_binary)
        )
        replace_dropout(self._parts.model)
        self._parts.model.train()
        self._replicas = Replicas(self._parts.model, phase.thread_num)
        folder = run_folder(runner)
        self._archive = Archive(runner, folder, "")
        self._uploads = Uploads(self._archive, targets_of(runner, self._archive, ""))
        start = Start()
        if origin is not None:
            check_origin(origin, self._archive)
            hyper = config.hyper_parameters
            rule = dense_optimizer_json(hyper.optimizer, hyper.reg)
            start = start_from(origin, runner, parts=self._parts, replicas=self._replicas, rule=rule)
        self._job = make_job(
            config,
            runner,
            parts=self._parts,
            replicas=self._replicas,
            evaluated=self._evaluated,
            settings=self._settings,
            start=start,
        )
        self._schedule = make_schedule(runner.learning_rate_schedule)
        self._stopwatch = Stopwatch(is_logged=config.debug)
        self._meter = Meter(self._stopwatch, run_folder(runner))
        self._meter.queue = lambda: sum(stream.current is not None for stream in list(self._held.values()))
        rates = Rates(config.hyper_parameters.optimizer.learning_rate, self._schedule, runner.clip_norm)
        computer = Computer(
            feeds=self._parts.feeds,
            replicas=self._replicas,
            options=compute_options(runner),
            stopwatch=self._stopwatch,
        )
        self._tools = Tools(
            computer=computer,
            feeds=self._parts.feeds,
            tables=self._parts.tables,
            replicas=self._replicas,
            rates=rates,
            stopwatch=self._stopwatch,
            reads_between=self._reads_between(),
            batch_size=self._data.config.batch_size,
            has_rounds=runner.distribute_strategy in {"sync", "hybrid"},
        )
        self._prefetcher = Prefetcher(runner.worker_num, self._data.fetcher)
        self._chronicle = Chronicle(
            folder=folder,
            parts=self._parts,
            rates=rates,
            print_interval=runner.print_interval,
            observers=self._observers,
            has_own_log=self._has_own_log,
        )
        self._decider = Decider(runner, self._parts)
        self._snapshots = SnapshotFiles(folder / "snapshots")
        self._publisher = Publisher(
            parts=self._parts,
            replicas=self._replicas,
            archive=self._archive,
            settings=self._settings,
            snapshots=self._snapshots,
            runner=runner,
            decider=self._decider,
        )

    def _known_files(self) -> dict[str, FilePath]:
        """Files of the data as this trainer has found them, by the names that all have for them."""
        files = [*self._data.files, *self._data.validation_files]
        if self._evaluated is not None:
            files += self._evaluated.files
        return {file.identity: file.path for file in files}

    def _reads_between(self) -> int:
        strategy, knobs = self._runner.distribute_strategy, self._communicating.communicator
        if deaf := knobs_without_effect(strategy, knobs):
            logger.warning("trainer.knobs_without_effect strategy=%s knobs=%s", strategy, ",".join(deaf))
        return 1 if "max_send_grad_num_before_recv" in deaf else knobs.max_send_grad_num_before_recv

    def _join(self) -> Membership | None:
        """Become a member; None where the run is over already."""
        patience_s = self._runner.cluster.wait_for_members_s
        coordinator = Coordinator(self._wire, self._address, deadline_s=patience_s)
        deadline = time.monotonic() + patience_s
        told = ""
        while True:
            try:
                answer = coordinator.ask("join", job=self._job, name=self._name)
            except TokenError:
                # Waiting makes no other token of it.
                raise
            except WireError as error:
                if self._is_run_over():
                    logger.info("trainer.too_late reason=the run is over")
                    return None
                if time.monotonic() > deadline:
                    raise
                if str(error) != told:
                    told = str(error)
                    logger.info("trainer.waits for=%s reason=%s", self._address, told)
                time.sleep(_BETWEEN_ATTEMPTS_S)
                continue
            match answer["kind"]:
                case "welcome":
                    membership = Membership(
                        self._wire,
                        self._address,
                        answer,
                        patience_s=patience_s,
                    )
                    membership.statistics = self._statistics
                    known = self._known_files()
                    self._units = [Unit.from_json(unit, known) for unit in membership.units]
                    self._passes = membership.passes
                    self._find_snapshots(membership)
                    self._set_ready(is_ready=True)
                    most = max(len(each["train"]) for each in self._passes)
                    self._meter.begin(membership.incarnation, self._name, membership.number, most)
                    return membership
                case "end":
                    self._end = answer["summary"]
                    return None
                case "refused":
                    raise refusal(answer["reason"])
                case _:
                    # The coordinator knows whom it waits for, and for how long.
                    self._failing_since = None
                    logger.info("trainer.waits for=%s", answer.get("for_whom"))

    def _find_snapshots(self, membership: Membership) -> None:
        def addresses() -> list[str]:
            found: list[str] = membership.place["servers"]
            return found

        self._snapshots.find(Path(membership.snapshots), Servers(self._wire, self._address, addresses))

    def _belong(self, crew: Crew, membership: Membership) -> None:
        """Work in epoch after epoch, until the run is over."""
        while True:
            try:
                has_gone_back = self._chronicle.begin_epoch(membership.place)
                # Where only a trainer has died, servers keep what they have.
                self._stopwatch.settle("reload" if has_gone_back or membership.has_lost_servers else "wait")
                membership.has_lost_servers = False
                self._work(crew, membership)
                return
            except EpochChanged:
                self._drop_streams()

    def _work(self, crew: Crew, membership: Membership) -> None:
        """Leases of one epoch, until the run is over or the epoch is."""
        sessions: list[_core.Session] = []

        def open_session() -> _core.Session:
            sessions.append(self._session(membership))
            return sessions[-1]

        def abandon() -> None:
            for session in sessions:
                session.abandon()

        membership.abandon = abandon
        worker = make_worker(
            self._communicating,
            self._job,
            tools=self._tools,
            open_session=open_session,
            membership=membership,
            after_step=self._after_step,
            fence_state=lambda: encode_buffers(self._replicas),
        )
        self._meter.change_session(lambda: _traffic(sessions))
        try:
            self._take_leases(crew, membership, worker)
        finally:
            # What is still under way is void: nobody is to wait for it.
            abandon()
            worker.close()

    def _take_leases(self, crew: Crew, membership: Membership, worker: Worker) -> None:
        scorer = Scorer(self._tools, worker.session, self._runner.precision)
        while True:
            try:
                with self._stopwatch.measure("wait", failed=LOST) as under_way:
                    answer = membership.lease(list(self._held))
                    if answer["kind"] == "wait" and not answer["is_running"]:
                        under_way.stage = "reload"
                match answer["kind"]:
                    case "train":
                        self._take_schedule(answer)
                        self._train(crew, worker, [answer], answer["pass"])
                    case "lanes":
                        self._take_schedule(answer)
                        worker.begin_rounds(answer["round"], answer["until"])
                        self._train(crew, worker, answer["lanes"], answer["pass"])
                    case "validate":
                        with self._stopwatch.measure("validate"):
                            self._validate(crew, scorer, answer)
                            # They are part of the validation.
                            worker.session.take_seconds()
                    case "duty":
                        with self._stopwatch.measure("save"):
                            self._do(membership, answer)
                        self._failing_since = None
                    case "end":
                        self._end = answer["summary"]
                        return
                    case _:
                        logger.debug("trainer.waits for=%s", answer.get("for_whom"))
            except LeaseLost:
                self._drop_streams()
            except EpochError:
                if membership.end is not None:
                    self._end = membership.end
                    return
                # A server says so; the coordinator says where to go on, or that this trainer is dead.
                self._drop_streams()
                with self._stopwatch.measure(LOST):
                    membership.find_place()

    def _session(self, membership: Membership) -> _core.Session:
        place = membership.place
        return _core.Session(
            settings_json(self._wire),
            json.dumps(
                {
                    "epoch": place["epoch"],
                    "incarnation": membership.incarnation,
                    "servers": place["servers"],
                    "route": place["route"],
                    "num_dense": self._job["dense"]["size"],
                }
            ),
        )

    def _take_schedule(self, answer: Message) -> None:
        if answer["schedule"]:
            self._schedule.load_state(json.loads(answer["schedule"])["schedule"])

    def _train(self, crew: Crew, worker: Worker, grants: Sequence[Message], pass_number: int) -> None:
        self._chronicle.begin_pass(pass_number, self._pass_bytes(pass_number), worker.step)
        streams = []
        for grant in grants:
            stream = self._held.get(grant["lease"])
            if stream is None:
                # A file that is elsewhere is waited for.
                with self._stopwatch.measure("read"):
                    stream = Stream.of_grant(grant, self._open(grant, pass_number))
                self._held[grant["lease"]] = stream
                order = self._passes[pass_number]["train"]
                self._prefetcher.lease(self._units, order, grant["unit"])
            streams.append(stream)
        worker.train(crew, streams, pass_number)
        for stream in streams:
            if stream.is_ended:
                self._bytes_done += stream.source.progress()[0]
                self._held.pop(stream.lease).close()

    def _validate(self, crew: Crew, scorer: Scorer, grant: Message) -> None:
        stream = Stream.of_grant(grant, self._open(grant, grant["pass"]))
        self._held[stream.lease] = stream
        scorer.score(crew, stream)
        self._failing_since = None
        self._held.pop(stream.lease).close()

    def _open(self, grant: Message, pass_number: int) -> BatchSource:
        unit = self._units[grant["unit"]]
        data = self._evaluated if unit.is_validation and self._evaluated is not None else self._data
        is_training = not unit.is_validation
        return data.open_part(
            self._parts.schema, unit.file, pass_number, grant["position"], is_training=is_training
        )

    def _do(self, membership: Membership, duty: Message) -> None:
        """A duty: what it comes to, or why it failed, goes back to the coordinator."""
        given = duty["input"]
        try:
            if duty["name"] == "decide":
                output = self._decider.decide(given)
                self._chronicle.end_pass(given["history"][-1], self._decider.numbers)
            else:
                output = self._publish(duty["pass"], given)
            outcome = {"kind": "output", "output": output}
        except Exception as error:  # noqa: BLE001 - the coordinator gives it to another, and ends the run if none can
            outcome = {"kind": "failure", "words": str(error)}
        membership.duty_done(duty["duty"], outcome)

    def _publish(self, pass_number: int, given: Message) -> Message:
        started = time.perf_counter()
        step = given.get("step")
        checkpoint = (
            self._publisher.publish(pass_number, given["snapshot"])
            if step is None
            else self._publisher.publish_step(pass_number, given["snapshot"], step)
        )
        if checkpoint is None:
            return {"checkpoint": None}
        self._uploads.offer(checkpoint.folder)
        metric = self._decider.best_metric
        for removed in self._archive.prune(metric, higher_is_better=is_higher_better(metric)):
            self._uploads.drop(removed)
        self._chronicle.saved(checkpoint, time.perf_counter() - started)
        return {"checkpoint": str(checkpoint.folder)}

    def _pass_bytes(self, pass_number: int) -> int:
        return sum(self._units[unit].num_bytes for unit in self._passes[pass_number]["train"])

    def _keep_last(self) -> None:
        """Have the last checkpoint of the run, also where whoever wrote it shares no disk with this trainer.

        Nobody can know beforehand in which of its processes a run is looked for.
        """
        passes = self._end.get("passes")
        if self._end.get("exit_code", 0) or not passes:
            return
        last = int(passes[-1]["pass"])
        if self._archive.pass_place(last).exists():
            return
        for tries_left in reversed(range(_KEEP_TRIES)):
            try:
                checkpoint = self._publisher.publish(last, self._snapshots.commit()["snapshot"])
                break
            except (ClickmillError, OSError) as error:
                # The files of a snapshot go when another one is committed.
                if not tries_left:
                    logger.warning("checkpoint.not_here pass=%d reason=%s", last, error)
                    return
        if checkpoint is not None:
            logger.info("checkpoint.kept path=%s", checkpoint.folder)

    def _after_step(self, batch: Batch, loss: float, step: int) -> None:
        self._failing_since = None
        self._meter.advance(batch.num_rows)
        if self._meter.batches % self._runner.print_interval == 0:
            self._meter.interval()
        done = self._bytes_done + sum(stream.source.progress()[0] for stream in self._held.values())
        self._chronicle.after_step(batch, loss, step, done)

    def _drop_streams(self) -> None:
        for stream in self._held.values():
            stream.close()
        self._held.clear()

    def _summary(self) -> Message:
        newest = self._archive.newest()
        summary = self._end
        passes = summary.get("passes", [])
        last = passes[-1] if passes else {"train": {}, "validation": {}}
        return {
            "run": str(run_folder(self._runner)),
            "checkpoint": None if newest is None else str(newest),
            "samples": summary.get("samples", 0),
            "batches": summary.get("batches", 0),
            "seconds": sum(each["seconds"] for each in passes),
            "train": self._decider.numbers(last, "train"),
            "validation": self._decider.numbers(last, "validation"),
        }


def _traffic(sessions: Sequence[_core.Session]) -> tuple[int, int]:
    """Bytes sent and received by all of them."""
    both = [session.traffic() for session in sessions]
    return sum(sent for sent, _, _ in both), sum(received for _, received, _ in both)
