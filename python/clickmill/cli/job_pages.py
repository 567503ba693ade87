"""Jobs as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from clickmill.cli.status import duration
from clickmill.jobs.failures import BadEnd
from clickmill.jobs.moments import seconds_between
from clickmill.jobs.pods import number_of_tries
from clickmill.jobs.status import TRAINING_OVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from clickmill.jobs.coordinator import Training
    from clickmill.jobs.pods import Pod
    from clickmill.jobs.status import JobStatus

_STYLES = {
    "Running": "green",
    "Completed": "green",
    "Succeeded": "green",
    "Completing": "green",
    "Pending": "yellow",
    "Starting": "yellow",
    "Restarting": "yellow",
    "Stopping": "yellow",
    "Stopped": "",
    "Deleted": "",
}
"""What is none of these is red."""
_WAYS_ON = {
    "Stopped": "`clickmill submit` as before lets it go on; `clickmill job delete {place}` removes the rest",
    "Deleted": "its output is kept: `clickmill job fetch {place}`, or `job delete {place} --with-output`",
}


def jobs_table(jobs: Sequence[JobStatus], *, is_everywhere: bool) -> Table:
    """One line a job."""
    columns = ("job", "phase", "pods", "age", "pass", "samples", "samples/s", "AUC", "queue")
    left = ("namespace", "job", "phase", "queue")
    table = _table(("namespace", *columns) if is_everywhere else columns, left=left)
    for status in jobs:
        job, training = status.job, status.training
        cells: list[str | Text] = [
            job.name,
            _state(job.phase),
            f"{status.num_running}/{job.num_pods}" if job.num_pods else "-",
            duration(status.age_s),
            "-" if training is None else f"{training.pass_number + 1}/{training.num_passes}",
            "-" if status.samples is None else f"{status.samples:,}",
            "-" if training is None else f"{training.samples_per_s:,.0f}",
            "-" if status.auc is None else f"{status.auc:.4f}",
            job.queue or "-",
        ]
        table.add_row(*([job.namespace] if is_everywhere else []), *cells)
    return table


def status_page(status: JobStatus) -> Group:
    """Everything about a job, in the order in which people ask."""
    parts: list[RenderableType] = [_head(status)]
    if status.pods:
        parts.append(_pods(status))
    for reason in status.reasons:
        style = "red" if reason.kind in {"failure", "crash"} else "yellow"
        is_named = reason.words.startswith(f"{reason.kind} ")
        words = reason.words if is_named else f"{reason.kind}: {reason.words}"
        parts.append(Text(words, style=style))
        if reason.remedy:
            parts.append(Text(f"  hint: {reason.remedy}"))
    if status.silence == TRAINING_OVER:
        parts.append(Text(status.silence))
    elif status.silence:
        parts.append(Text(f"nothing is known of the training: {status.silence}", style="yellow"))
    if status.has_lost_summary:
        fetch = f"clickmill job fetch {status.job.name} -n {status.job.namespace}"
        parts.append(Text(f"hint: the checkpoint is there still: `{fetch}`"))
    if status.job.phase in _WAYS_ON:
        place = f"{status.job.name} -n {status.job.namespace}"
        parts.append(Text(f"hint: {_WAYS_ON[status.job.phase].format(place=place)}"))
    return Group(*parts)


def _head(status: JobStatus) -> Text:
    job = status.job
    text = Text(f"job {job.name} in namespace {job.namespace}: ")
    text.append(_state(job.phase))
    scheduler = f"Volcano, queue {job.queue}" if job.is_volcano else "plain Kubernetes"
    lines = [
        f"{scheduler}, {_sizes(status)}" if job.workloads else "it has no pods",
        f"age {duration(status.age_s)}",
    ]
    tries = number_of_tries(job)
    text.append("\n" + ", ".join([*lines, *([tries] if tries else [])]))
    if job.is_leaving:
        text.append("\nit is being stopped or deleted, and its pods are ending")
    if status.training is not None:
        text.append("\n" + "\n".join(_training_lines(status.training)))
    elif status.summary is not None:
        text.append("\n" + _summary_words(status))
    elif status.has_lost_summary:
        text.append(
            "\nits samples and metrics are not known any more: they went with the pods of its trainers"
        )
    return text


def _sizes(status: JobStatus) -> str:
    parts = []
    for role, size in status.job.roles.items():
        parts.append(f"{status.num_running_of(role)} of {size.replicas} {role}s run")
    return ", ".join(parts)


def _training_lines(training: Training) -> list[str]:
    passes = (
        f"pass {training.pass_number + 1} of {training.num_passes}" if training.num_passes else "no job yet"
    )
    progress = "" if training.progress is None else f", {training.progress:.0%} of its units"
    first = f"{training.phase}, {training.strategy or '-'}, {passes}{progress}"
    speed = f"{training.samples_per_s:,.0f} samples/s"
    if training.stands_still and training.samples:
        speed = "stands still"
    numbers = [f"{training.samples:,} samples", speed]
    stage = "validation " if training.is_validation else ""
    numbers += [
        f"{stage}{name} {training.metrics[name]:.4f}"
        for name in ("auc", "gauc", "logloss", "rmse")
        if name in training.metrics
    ]
    if training.staleness_steps is not None:
        numbers.append(f"staleness {training.staleness_steps:.1f} steps")
    lines = [first, ", ".join(numbers)]
    if training.snapshot is not None:
        age = "" if training.snapshot_age_s is None else f", {duration(training.snapshot_age_s)} ago"
        lines.append(f"snapshot {training.snapshot}{age}")
    if training.scaling_to is not None:
        lines.append(f"buckets move from {training.num_pservers} to {training.scaling_to} pservers")
    if training.scaling_failure:
        lines.append(f"the last scaling has failed: {training.scaling_failure}")
    return lines


def _summary_words(status: JobStatus) -> str:
    summary = status.summary or {}
    shown = [
        f"{name} {summary[name]:.4f}" for name in ("auc", "logloss", "rmse") if summary.get(name) is not None
    ]
    num_passes = summary.get("passes", "?")
    passes = "1 pass" if num_passes == 1 else f"{num_passes} passes"
    return ", ".join([passes, f"{status.samples or 0:,} samples", *shown])


def _pods(status: JobStatus) -> Table:
    pods = status.pods
    says = {pod.uid: _says(pod) for pod in pods}
    columns = ("pod", "role", "node", "state", "ready", "restarts", "age")
    left = ("pod", "role", "node", "state", "ready", "says")
    table = _table((*columns, "says") if any(says.values()) else columns, left=left)
    for pod in pods:
        more = [says[pod.uid]] if any(says.values()) else []
        table.add_row(
            pod.name,
            pod.title,
            pod.node or "-",
            _state(pod.state),
            "yes" if pod.is_ready else "no",
            str(status.num_restarts_of(pod)),
            duration(seconds_between(pod.created)),
            *more,
        )
    return table


def _says(pod: Pod) -> str:
    """How it ended, if badly. Why it waits is told once for all pods, below the table."""
    if pod.ending is None or not pod.ending.code:
        return ""
    return BadEnd(pod.name, pod.title, pod.ending).words.removeprefix(f"{pod.title} ")


def _state(state: str) -> Text:
    return Text(state, style=_STYLES.get(state, "red"))


def _table(columns: Sequence[str], *, left: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", overflow="fold")
    return table
