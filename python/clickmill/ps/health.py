"""What a parameter server tells those who scrape it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickmill.monitoring import Monitoring

Message = dict[str, Any]

_GAUGES = {
    "rows": ("clickmill_pserver_rows", "Rows of all tables."),
    "bytes": ("clickmill_pserver_bytes", "Memory of rows, their index and their copies for a snapshot."),
    "max_bytes": ("clickmill_pserver_budget_bytes", "The memory budget; 0: none."),
    "staleness_steps": (
        "clickmill_pserver_staleness_steps",
        "Updates between the reading of rows and the update made with them, over the last seconds.",
    ),
    "step": ("clickmill_pserver_step", "Updates of the run."),
    "epoch": ("clickmill_pserver_epoch", "The life of the cluster that the server is in."),
}
_TOTALS = {
    "pulls": ("clickmill_pserver_pulls_total", "Answers with rows."),
    "pushes": ("clickmill_pserver_pushes_total", "Batches applied, or handed to a round."),
    "pulled_rows": ("clickmill_pserver_pulled_rows_total", "Rows given out."),
    "pushed_rows": ("clickmill_pserver_pushed_rows_total", "Rows that gradients came for."),
    "bytes_sent": ("clickmill_pserver_sent_bytes_total", "Bytes sent."),
    "bytes_received": ("clickmill_pserver_received_bytes_total", "Bytes received."),
    "bytes_shared": (
        "clickmill_pserver_shared_bytes_total",
        "Of the bytes sent and received, those that went through shared memory.",
    ),
    "evicted_rows": ("clickmill_pserver_evicted_rows_total", "Rows evicted, by policy or for want of room."),
    "snapshots_written": ("clickmill_pserver_parts_written_total", "Parts of snapshots that were written."),
    "snapshots_failed": ("clickmill_pserver_parts_failed_total", "Parts of snapshots that were not."),
}

_FULL_IN = (
    "Until the memory budget is full, at the growth of the last minute. "
    "+Inf: it is not filling, or there is no budget."
)


def tell_health(monitoring: Monitoring, health: Message) -> None:
    """Make the numbers what they are now."""
    monitoring.set_ready(health["holds_buckets"], "it has not been told which buckets to hold")
    statistics = health["statistics"]
    for key, (name, words) in _GAUGES.items():
        monitoring.gauge(name, words, statistics[key])
    for key, (name, words) in _TOTALS.items():
        monitoring.total(name, words, statistics[key])
    share = statistics["bytes"] / statistics["max_bytes"] if statistics["max_bytes"] else 0.0
    monitoring.gauge("clickmill_pserver_budget_ratio", "Share of the memory budget that is taken.", share)
    monitoring.gauge("clickmill_pserver_buckets", "Buckets that it holds; 0: a spare.", health["buckets"])
    full_in_s = math.inf if health["full_in_s"] is None else health["full_in_s"]
    monitoring.gauge("clickmill_pserver_full_in_seconds", _FULL_IN, full_in_s)
    monitoring.gauge("clickmill_pserver_fence", "The last fence that was wanted.", health["fence"])
    if health["coordinator"] is not None:
        _tell_coordinator(monitoring, health["coordinator"])


def _tell_coordinator(monitoring: Monitoring, coordinator: Message) -> None:
    status = coordinator["status"]
    for key in ("committed", "failed"):
        name, words = f"clickmill_cluster_snapshots_{key}_total", f"Snapshots that were {key}."
        monitoring.total(name, words, coordinator[f"snapshots_{key}"])
    age = status["snapshot"]["age_s"]
    if age is not None:
        monitoring.gauge(
            "clickmill_cluster_snapshot_age_seconds", "Since the last snapshot was committed.", age
        )
    words = "Members of the cluster, by role."
    servers = status["servers"]
    for role, count in {
        "pserver": sum(server["is_live"] and server["buckets"] > 0 for server in servers),
        "spare": sum(server["is_live"] and server["buckets"] == 0 for server in servers),
        "trainer": len(status["trainers"]),
    }.items():
        monitoring.gauge("clickmill_cluster_members", words, count, role=role)
    monitoring.gauge("clickmill_cluster_pass", "The pass under way, from 0.", status["pass"])
    monitoring.gauge("clickmill_cluster_samples", "Samples trained over the run.", status["samples"])
