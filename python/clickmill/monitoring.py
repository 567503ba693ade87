"""Metrics of a process, for whoever scrapes them: numbers are told as they are, however they came about."""

from __future__ import annotations

import errno

from clickmill import _core
from clickmill.errors import ClickmillError, PortTakenError


class Monitoring:
    """`/metrics`, `/healthz`, `/readyz` of a process, and `/status` of a coordinator, until it is closed."""

    def __init__(self, address: str, *, token: str | None, is_insecure: bool) -> None:
        """Port 0 takes a free one; an address beyond this machine needs a token."""
        try:
            self._monitor = _core.Monitor(address, token, is_insecure)
        except OSError as error:
            words = f"cannot listen on {address} for metrics: {error.strerror or error}"
            if error.errno == errno.EADDRINUSE:
                hint = "give `--metrics-port` another port, or 0 for one that is free"
                raise PortTakenError(words, hint=hint) from error
            raise ClickmillError(words) from error
        self._totals: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    @property
    def address(self) -> str:
        """Where it listens."""
        return self._monitor.address

    def tell_cluster(self, server: _core.Pserver) -> None:
        """Answer `/status` and take orders for the cluster, where its coordinator is in `server`."""
        server.answer_on(self._monitor)

    def set_ready(self, is_ready: bool, reason: str = "not ready") -> None:
        """Say whether the process can be used."""
        self._monitor.set_ready(is_ready, reason)

    def gauge(self, name: str, words: str, value: float, **labels: str) -> None:
        """A number that may rise and fall is `value` now."""
        self._monitor.gauge(name, words, labels or None).set(value)

    def total(self, name: str, words: str, value: float, **labels: str) -> None:
        """A count since the start of the process has risen to `value`."""
        key = (name, tuple(sorted(labels.items())))
        before = self._totals.get(key, 0.0)
        self._monitor.counter(name, words, labels or None).add(value - before)
        self._totals[key] = max(value, before)

    def close(self) -> None:
        """Stop answering."""
        self._monitor.close()
