"""A peer is a script that runs as a process of its own and prints one line of JSON."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from environments import ROOT, interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SCRIPTS = ROOT / "benchmarks" / "peers"

# Keeps freed activations in the process: without it each step maps and clears its memory anew.
RAISED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(2 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}


@dataclass(frozen=True)
class Peer:
    name: str
    environment: str
    script: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return SCRIPTS / self.script

    def missing(self) -> str | None:
        """What keeps the peer from running, in words; none where it can run."""
        if not self.path.exists():
            return f"{self.path.relative_to(ROOT)} does not exist"
        if not interpreter(self.environment).exists():
            return f"environment `{self.environment}` is missing; run `make bench-setup`"
        return None

    def run(self) -> dict[str, Any]:
        process = subprocess.run(
            [interpreter(self.environment), self.path, *self.arguments],
            cwd=SCRIPTS,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in process.stdout.splitlines() if line.startswith("{")]
        if process.returncode != 0 or not lines:
            sys.stderr.write(process.stdout[-2000:] + process.stderr[-4000:])
            sys.exit(f"error: peer `{self.name}` failed with exit code {process.returncode}")
        result: dict[str, Any] = json.loads(lines[-1])
        return result


def available(peers: Iterable[Peer], chosen: list[str] | None) -> list[Peer]:
    """Peers that can run; those that cannot are named on stderr, never dropped in silence."""
    found = []
    for peer in peers:
        if chosen and peer.name not in chosen:
            continue
        reason = peer.missing()
        if reason is None:
            found.append(peer)
        else:
            print(f"skipped: {peer.name}: {reason}", file=sys.stderr)
    if not found:
        sys.exit("error: no peer can run")
    return found


def alternate(peers: list[Peer], repetitions: int) -> dict[str, list[dict[str, Any]]]:
    """Runs A B C, A B C, …: whatever else the machine does falls on all of them alike."""
    runs: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    for repetition in range(repetitions):
        for peer in peers:
            result = peer.run()
            runs[peer.name].append(result)
            print(f"{repetition + 1}/{repetitions} {peer.name}: {json.dumps(result)}", file=sys.stderr)
    return runs


def median(runs: list[dict[str, Any]], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def ratio(runs: list[dict[str, Any]], base: list[dict[str, Any]], key: str) -> float:
    """Median of the ratios within each repetition."""
    return statistics.median(run[key] / other[key] for run, other in zip(runs, base, strict=True))


def versions(runs: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for results in runs.values():
        found.update(results[0].get("versions", {}))
    return found
