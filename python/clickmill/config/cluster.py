"""`cluster` and `communicator` of a runner: how processes find, trust and wait for each other."""

from __future__ import annotations

from typing import Any, Literal

from clickmill._section import Count, PositiveCount, PositiveNumber, Section

_PREFIXES = ("FLAGS_communicator_", "FLAGS_", "communicator_")
_LATER_NAMES = {"min_send_grad_num_before_recv": "max_send_grad_num_before_recv"}


def communicator_key(name: str) -> str:
    """A knob under any of the names that it has had: `FLAGS_communicator_send_queue_size` and the like."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return _LATER_NAMES.get(name, name)


class Communicator(Section):
    """Between a trainer and the servers; also read as `FLAGS_communicator_...` and `FLAGS_...`."""

    send_queue_size: PositiveCount = 1
    """Pushes that may wait to be sent (`async`); a full queue makes the trainer wait. 1: none waits."""
    max_merge_var_num: PositiveCount = 1
    """Up to so many waiting pushes are merged into one (`async`). Never more than the queue holds."""
    max_send_grad_num_before_recv: PositiveCount = 1
    """Pushes between two reads of the dense parameters (`async`); 1 reads them in every step."""
    is_sgd_optimizer: bool = True
    """Merged gradients are added up; with `false` they are averaged."""
    thread_pool_size: PositiveCount = 1
    """Threads of a trainer that talk to servers, each to its part of them: to all before it waits for one."""
    fake_rpc: bool = False
    """Send nothing: every trainer works on rows and parameters of its own, to measure all but the wire."""
    rpc_retry_times: Count = 3
    """How often a request is tried again on a new connection."""
    rpc_deadline: PositiveCount = 180_000
    """Milliseconds that a trainer waits for an answer before it gives up with an error."""

    @classmethod
    def canonical_key(cls, key: Any) -> Any:
        """Without the prefixes that it has had, and by its name of today."""
        return super().canonical_key(communicator_key(key) if isinstance(key, str) else key)


class Tls(Section):
    """Encryption of every connection of a cluster."""

    certificate: str
    """PEM file: the certificate of this process, and those between it and the authority."""
    key: str
    """PEM file: its private key."""
    authority: str
    """PEM file: the authority that the certificates of all processes are checked against."""
    server_name: str = "clickmill"
    """Name that the certificates of servers are made out to."""


class ClusterConfig(Section):
    """A cluster of trainers and parameter servers."""

    wire_precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Numbers on the wire. `auto`: bfloat16 where the dense part computes in it, else float32."""
    shared_memory: bool = True
    """Trainers and servers on one host exchange long messages through memory, unless they are encrypted."""
    geo_step: PositiveCount = 100
    """`geo`: batches between two exchanges with the servers."""
    lease_bytes: Count = 0
    """Size of the pieces of files that trainers are given. 0: by the size of the data and of the cluster."""
    snapshot_interval_s: PositiveNumber = 300.0
    """Seconds between snapshots, from which a lost server is restored."""
    snapshot_full_interval: PositiveCount = 10
    """Every so many snapshots holds all rows, those between only what changed."""
    dead_after_s: PositiveNumber = 30.0
    """Silence after which a member counts as dead."""
    wait_for_members_s: PositiveNumber = 600.0
    """How long to wait for servers and trainers that are missing, before the run ends with an error."""
    gather_s: PositiveNumber = 60.0
    """How long the start waits for all `worker_num` trainers, and servers that a run was scaled to before;
    then those that are there begin. A run that is done earlier waits as long for trainers that have not
    come yet, to tell them so."""
    max_restarts: Count = 3
    """How often each process that dies is started again, where one command started them all."""
    memory_budget: str = ""
    """Memory of each server for rows (`8GB`); towards its end rows are evicted by the tables' policies."""
    token_file: str = ""
    """File with the secret that all members know. Needed beyond this machine."""
    tls: Tls | None = None
    """Absent: connections are not encrypted."""
    collective_tables: Literal["replicated", "sharded"] = "replicated"
    """`collective`: every rank holds all rows, or each its share."""
