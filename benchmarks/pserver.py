"""How many rows does a server give and update per second of CPU, and what does a sample cost on the wire?

One `clickmill pserver` on loopback, asked by this process, which computes nothing: batches of a Criteo-like
log are read once, then their keys, rows and gradients go back and forth. Counted is the CPU time of the
server's process, all of its threads, user and system. With the dense part of DNN 400-400-400 and without.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import logs
import machine
import numpy as np
import results

from clickmill import _core
from clickmill.config import parse_config
from clickmill.train.assembly import build_parts

if TYPE_CHECKING:
    from clickmill.data.source import DataSet

CONFIG = """
workspace: "."
mode: train
runner: [{{name: train, class: train, epochs: 1, precision: {precision}}}]
dataset:
- {{name: log, format: criteo, data_path: {train}, batch_size: {batch_size}, keep_last: true}}
phase: [{{name: dnn, model: dnn, dataset_name: log}}]
hyper_parameters: {{optimizer: {{class: Adam}}, sparse_feature_dim: {dim}, fc_sizes: [400, 400, 400]}}
"""


class Server:
    """A pserver process, and a trainer's side of the wire to it."""

    def __init__(self, parts: Any, folder: Path, *, precision: str, num_dense: int, is_shared: bool) -> None:
        command = [sys.executable, "-m", "clickmill", "pserver", "--snapshots", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        address = json.loads(self.process.stdout.readline())["address"]
        wire = {
            "role": "trainer",
            "name": "benchmark",
            "deadline_ms": 60_000,
            "precision": precision,
            "shared_memory": is_shared,
        }
        self._link = _core.ControlLink(json.dumps(wire), address)
        request = {"request": {"kind": "join", "name": "benchmark", "job": job_of(parts, num_dense)}}
        answer: dict[str, Any] = {}
        while answer.get("kind") != "welcome":
            answer = json.loads(self._link.ask(json.dumps(request), 60_000))
        place = {
            "epoch": answer["place"]["epoch"],
            "incarnation": answer["incarnation"],
            "servers": answer["place"]["servers"],
            "route": answer["place"]["route"],
            "num_dense": num_dense,
        }
        self.session = _core.Session(json.dumps(wire), json.dumps(place))

    def cpu_s(self) -> float:
        """User and system time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def job_of(parts: Any, num_dense: int) -> dict[str, Any]:
    zeros = base64.b64encode(np.zeros(num_dense, "<f4").tobytes()).decode()
    return {
        "strategy": "async",
        "lanes": 1,
        "trainers": 1,
        "units": [{"name": "log", "input": {}}],
        "passes": [{"train": [0], "validation": []}],
        "tables": [
            {"config": json.loads(parts.tables.config(name)), "restarts": False} for name in parts.tables
        ],
        "dense": {"rule": {"kind": "adam"}, "size": num_dense, "initial": zeros},
        "metrics": {"train": {}, "validation": {}},
        "evicts": False,
        "decides": False,
        "publishes": False,
        "snapshot_interval_ms": 86_400_000,
        "full_every": 1,
        "agreement": {},
    }


def measure(
    options: argparse.Namespace, *, batch_size: int, precision: str, has_dense: bool, is_shared: bool
) -> dict[str, float]:
    log = logs.make("train", rows=options.rows)
    text = CONFIG.format(
        train=json.dumps([str(file) for file in log.files]),
        batch_size=batch_size,
        precision=precision,
        dim=options.dim,
    )
    config = parse_config(text)
    runner = config.runners()[0]
    parts = build_parts(config, runner, config.phases_of(runner)[0])
    arrays = [np.zeros(p.numel(), np.float32) for p in parts.model.parameters()] if has_dense else []
    num_dense = sum(array.size for array in arrays)
    batches = read(parts.data, parts.schema, options.batches)
    feeds = [(feed.group, list(parts.tables).index(feed.table)) for feed in parts.feeds]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(parts, Path(folder), precision=precision, num_dense=num_dense, is_shared=is_shared)
        try:
            return drive(server, batches, feeds, arrays, options.passes)
        finally:
            server.stop()


def read(data: DataSet, schema: Any, count: int) -> list[Any]:
    source = data.open(schema, 0)
    batches = []
    while len(batches) < count and (batch := source.next()) is not None:
        batches.append(batch)
    source.close()
    return batches


def drive(server: Server, batches: list[Any], feeds: Any, arrays: list[Any], passes: int) -> dict[str, float]:
    session, rows, samples = server.session, 0, 0
    rates = [0.01] * len(feeds)
    none = np.zeros(0, np.float32)
    begin = (0.0, 0, 0)
    for number in range(passes + 1):
        if number == 1:
            # The first pass has made the rows.
            sent, received, _ = session.traffic()
            begin = (server.cpu_s(), rows, sent + received)
            rows = samples = 0
        pushes: list[Any] = []
        for batch in batches:
            ticket = session.locate(batch, feeds)
            _, _, lookups = session.step(pushes, [ticket], True, arrays or None)
            for lookup in lookups[0]:
                lookup.add_gradients(lookup.values())
                rows += lookup.num_rows
            samples += batch.num_rows
            push = _core.Push(
                ticket,
                lookups[0],
                rates,
                1.0,
                [arrays] if arrays else [],
                0.0,
                batch.num_rows,
                "",
                [none],
                none,
            )
            pushes = [push]
        session.step(pushes, [])
    sent, received, _ = session.traffic()
    cpu = server.cpu_s() - begin[0]
    return {
        "rows_m_per_cpu_s": rows / cpu / 1e6,
        "rows_per_sample": rows / samples,
        "kb_per_sample": (sent + received - begin[2]) / samples / 1000,
    }


def rate(runs: list[dict[str, float]]) -> str:
    rates = [run["rows_m_per_cpu_s"] for run in runs]
    return f"{statistics.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--batches", type=int, default=20, help="different batches")
    parser.add_argument("--passes", type=int, default=15, help="how often each is pulled and pushed")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    build = machine.require_release_build()
    facts = results.facts()
    lines = []
    for batch_size, precision, has_dense in (
        (4096, "bf16", False),
        (4096, "fp32", False),
        (1000, "bf16", False),
        (4096, "bf16", True),
        (4096, "fp32", True),
        (1000, "bf16", True),
        (1000, "fp32", True),
    ):
        shape = {"batch_size": batch_size, "precision": precision, "has_dense": has_dense}
        runs = {
            is_shared: [measure(options, **shape, is_shared=is_shared) for _ in range(options.repetitions)]
            for is_shared in (True, False)
        }
        any_run = runs[True][0]
        lines.append(
            [
                str(batch_size),
                precision,
                "yes" if has_dense else "no",
                rate(runs[True]),
                rate(runs[False]),
                f"{any_run['rows_per_sample']:.1f}",
                f"{any_run['kb_per_sample']:.2f}",
            ]
        )
        print(lines[-1], file=sys.stderr)
    header = [
        "batch",
        "wire",
        "dense part",
        "M rows pulled and pushed per CPU s, shared memory",
        "the same, TCP on loopback",
        "rows per sample",
        "kB per sample",
    ]
    body = f"""{results.table(header, lines)}

A row counts once when it was pulled and its gradient was pushed and applied (row-wise Adagrad, dim
{options.dim}). Medians of {options.repetitions} runs. kB per sample are all bytes of frames in both
directions; 430,801 dense parameters where there are any."""
    results.write(
        "pserver",
        "Parameter server: rows per CPU second, bytes per sample",
        body,
        {"clickmill": build["version"]},
        facts,
    )


if __name__ == "__main__":
    main()
