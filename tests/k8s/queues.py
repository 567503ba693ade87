"""Queues of Volcano for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clickmill.errors import KubernetesError
from clickmill.kube import kinds
from clickmill.kube.client import Cluster

from .conftest import poll


@contextmanager
def queue(cluster: Cluster, name: str, **spec: Any) -> Iterator[str]:
    """A queue that is there meanwhile; it goes when no job is in it any more."""
    head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    cluster.create({**head, "metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    try:
        yield name
    finally:
        poll(lambda: _is_gone(cluster, name), f"queue {name} to be empty and gone")


def _is_gone(cluster: Cluster, name: str) -> bool:
    try:
        cluster.delete(kinds.QUEUE, name)
    except KubernetesError:
        return False
    return cluster.get(kinds.QUEUE, name) is None
