"""The status of a cluster as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from clickmill.cli.output import bytes_text
from clickmill.ps.admin import wait_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

Message = dict[str, Any]

_FILLS, _FULL = 0.8, 0.9
_SHOWN = ("auc", "gauc", "logloss", "rmse")


def status_page(status: Message) -> Group:
    """Everything that a person wants to know, in the order in which they ask."""
    parts: list[RenderableType] = [_head(status), _servers(status["servers"]), _trainers(status["trainers"])]
    parts += [Text(f"duty: {duty}") for duty in status["duties"]]
    parts += [Text(wait_words(wait), style="yellow") for wait in status["waiting"]]
    return Group(*parts)


def _head(status: Message) -> Text:
    stage = f", {status['stage']}" if status["stage"] else ""
    passes = f"pass {status['pass'] + 1} of {status['num_passes']}" if status["num_passes"] else "no job yet"
    done = f"{status['units_done']} of {status['units']} units"
    lines = [
        f"{status['phase']}, {status['strategy'] or '-'}, {passes}{stage}",
        f"{done}, {status['samples']:,} samples, {status['batches']:,} batches",
        f"epoch {status['epoch']}, fence {status['fence']}"
        + (f" (fence {status['wanted_fence']} is wanted)" if status["wanted_fence"] else ""),
        _snapshot_words(status["snapshot"]),
    ]
    if status.get("metrics"):
        lines.insert(2, metrics_words(status["metrics"]))
    if status["scaling_to"] is not None:
        lines.append(_scaling_words(status))
    if status["scaling_failure"]:
        lines.append(f"the last scaling has failed: {status['scaling_failure']}")
    return Text("\n".join(lines))


def _scaling_words(status: Message) -> str:
    way = f"from {status['num_servers']} to {status['scaling_to']} servers"
    if awaited := status["scaling_waits_for"]:
        names = " and ".join(f"pserver {index}" for index in awaited)
        verb = "is" if len(awaited) == 1 else "are"
        return f"buckets are to move {way}; none moves before {names} {verb} there"
    return f"buckets move {way}"


def metrics_words(metrics: Message) -> str:
    """`auc 0.7611, logloss 0.4512`: those of the stage under way that people look at."""
    numbers = metrics["numbers"]
    shown = [f"{name} {numbers[name]:.4f}" for name in _SHOWN if name in numbers]
    stage = "validation" if metrics["is_validation"] else "training"
    return f"{stage} {', '.join(shown)}" if shown else f"no metrics of the {stage} yet"


def _snapshot_words(snapshot: Message) -> str:
    if snapshot["committed"] is None:
        words = "no snapshot yet"
    else:
        age = "" if snapshot["age_s"] is None else f", {duration(snapshot['age_s'])} ago"
        words = f"snapshot {snapshot['committed']}, {bytes_text(snapshot['bytes'])}{age}"
    if snapshot["in_progress"] is not None:
        words += f"; snapshot {snapshot['in_progress']} is being taken"
    if snapshot["failure"]:
        words += f"; the last one has failed: {snapshot['failure']}"
    return words


def _servers(servers: Iterable[Message]) -> Table:
    columns = ("server", "address", "buckets", "rows", "bytes", "of budget", "full in", "pulls/s", "pushes/s",
               "rows pulled/s", "rows pushed/s", "staleness", "heard")  # fmt: skip
    table = _table(columns, left=("server", "address"))
    for server in servers:
        own = server["statistics"]
        name = f"pserver {server['index']}" + ("" if server["buckets"] else " (spare)")
        if not server["is_live"]:
            name += " (lost)"
        table.add_row(
            name,
            server["address"],
            str(server["buckets"]),
            f"{own['rows']:,}",
            bytes_text(own["bytes"]),
            _share(server["memory_share"]),
            "-" if server["full_in_s"] is None else duration(server["full_in_s"]),
            f"{own['pulls_per_s']:,.0f}",
            f"{own['pushes_per_s']:,.0f}",
            f"{own['pulled_rows_per_s']:,.0f}",
            f"{own['pushed_rows_per_s']:,.0f}",
            f"{own['staleness_steps']:.1f}",
            f"{server['heard_s_ago']} s ago",
            style=None if server["is_live"] else "red",
        )
    return table


def _trainers(trainers: Iterable[Message]) -> Table:
    columns = ("trainer", "name", "samples", "samples/s", "time goes to", "units", "heard")
    table = _table(columns, left=("trainer", "name", "time goes to", "units"))
    for trainer in trainers:
        own = trainer["statistics"]
        table.add_row(
            f"trainer {trainer['trainer']}" + (" (parked)" if trainer["is_parked"] else ""),
            trainer["name"],
            f"{own['samples']:,}",
            f"{own['samples_per_s']:,.0f}",
            shares_words(own["shares"]),
            ", ".join(trainer["units"]),
            f"{trainer['heard_s_ago']} s ago",
        )
    return table


def _table(columns: Sequence[str], *, left: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", overflow="fold")
    return table


def _share(share: float | None) -> Text:
    if share is None:
        return Text("-")
    style = "red" if share >= _FULL else "yellow" if share >= _FILLS else ""
    return Text(f"{share:.0%}", style=style)


def shares_words(shares: Message) -> str:
    """`compute 61 %, pull 20 %`: the largest three."""
    largest = sorted(shares.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{stage} {share:.0%}" for stage, share in largest if share >= 0.01) or "-"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.5 h`, `2.1 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
