"""What a trainer does for the whole cluster between passes: decide how to go on, and write checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.train.measures import main_metric, scoring_metrics, training_metrics
from clickmill.train.settings import make_schedule, make_stopping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.config import RunnerConfig
    from clickmill.metrics import MetricSet
    from clickmill.train.assembly import Parts

Message = dict[str, Any]


class Decider:
    """Learning-rate schedule and early stopping, from the metrics of the passes so far."""

    def __init__(self, runner: RunnerConfig, parts: Parts) -> None:
        self._runner = runner
        self._train = training_metrics(parts.model)
        self._validation = scoring_metrics(parts.model, parts.schema)

    def decide(self, given: Message) -> Message:
        """The decision after a pass: whether to stop, and the state of the schedule for the next one."""
        before = json.loads(given["schedule"]) if given["schedule"] else {"schedule": None, "stopping": None}
        runner = self._runner
        schedule, stopping = make_schedule(runner.learning_rate_schedule), make_stopping(runner)
        if before["schedule"] is not None:
            schedule.load_state(before["schedule"])
        if stopping is not None and before["stopping"] is not None:
            stopping.load_state(before["stopping"])
        measured = self.measured(given["history"][-1])
        stop = False
        if measured:
            main = main_metric(self._train)
            watched = getattr(runner.learning_rate_schedule, "metric", None) or main
            schedule.observe(measured[watched])
            if stopping is not None and runner.early_stopping is not None:
                stop = stopping.observe(measured[runner.early_stopping.metric])
        state = {"schedule": schedule.state(), "stopping": None if stopping is None else stopping.state()}
        return {"stop": stop, "schedule": json.dumps(state), "adjust": None}

    @property
    def best_metric(self) -> str:
        """What the best checkpoint is the best by: what stops the run, or changes its rate, else AUC."""
        stopping = None if self._runner.early_stopping is None else self._runner.early_stopping.metric
        schedule = getattr(self._runner.learning_rate_schedule, "metric", None)
        return stopping or schedule or main_metric(self._train)

    def fresh_state(self) -> Message:
        """Of schedule and early stopping before the first decision."""
        stopping = make_stopping(self._runner)
        return {
            "schedule": make_schedule(self._runner.learning_rate_schedule).state(),
            "stopping": None if stopping is None else stopping.state(),
        }

    def measured(self, summary: Message) -> dict[str, float]:
        """What a pass is judged by: validation where there was one, else training."""
        return self.numbers(summary, "validation") or self.numbers(summary, "train")

    def numbers(self, summary: Message, which: str) -> dict[str, float]:
        """Metrics of a pass with all that a model derives from them; empty where nothing was counted."""
        found: Mapping[str, float] = summary[which] or {}
        metrics: MetricSet = self._train if which == "train" else self._validation
        return metrics.complete(found) if found.get("count") else {}


def table_chains(folder: Path, snapshot: Message, number: int) -> list[list[Path]]:
    """For each server, the files that it has written of a table: a full one and what changed since."""
    chains: dict[int, list[Path]] = {}
    for layer in snapshot["layers"]:
        for file in layer["files"]:
            name = f"{number}.{file['server']:04d}.rows"
            if Path(file["name"]).name == name:
                chains.setdefault(file["server"], []).append(folder / file["name"])
    return list(chains.values())
