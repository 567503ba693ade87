"""What does a sample cost as trainers and servers grow, and what does that say of more hosts?

One pass of CTR-DNN 400-400-400 over a Criteo-like log, `async`, batch 1000, 1, 2, 4 and 8 trainers with as
many servers, all on this machine. With more processes than cores wall time says nothing, so CPU seconds are
counted, of trainers and of servers, and those of a short pass are taken from those of a long one: what is
left is the cost of the samples between, without the start of processes. Messages go over TCP, as between
hosts, not through memory that processes of one host share. `predict` makes of these costs, of the bytes on
the wire and of a network what hosts would do; its page says how.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import logs
import machine
import results

CONFIG = """
workspace: "."
mode: train
runner:
- {{name: train, class: cluster_train, worker_num: {trainers}, server_num: {trainers}, epochs: 1,
   distribute_strategy: async, precision: {precision}, output_path: "{folder}/run", print_interval: 1000,
   cluster: {{shared_memory: false}}}}
dataset: [{{name: log, format: criteo, data_path: {train}, batch_size: {batch_size}, threads: 1}}]
phase: [{{name: dnn, model: dnn, dataset_name: log, thread_num: 1}}]
hyper_parameters: {{optimizer: {{class: Adam}}, sparse_feature_dim: 10, fc_sizes: [400, 400, 400]}}
"""
NUM_DENSE = 430_801
"""Parameters of the network."""
ROWS_PER_SAMPLE = {1000: 9.5, 4096: 7.4}
"""Distinct signs of a batch for each of its samples, by batch size, as `pserver.py` counts them."""
DIM = 10


@dataclass(frozen=True)
class Cost:
    """CPU seconds for a sample."""

    trainers: int
    trainer_us: float
    server_us: float

    @property
    def total_us(self) -> float:
        return self.trainer_us + self.server_us


def run(options: argparse.Namespace, trainers: int, rows: int) -> tuple[float, float]:
    """CPU seconds of all trainers and of all servers."""
    log = logs.make("train", rows=rows)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        text = CONFIG.format(
            trainers=trainers,
            precision=options.precision,
            folder=folder,
            train=json.dumps([str(file) for file in log.files]),
            batch_size=options.batch_size,
        )
        config.write_text(text)
        clickmill = [sys.executable, "-m", "clickmill"]
        servers: list[subprocess.Popen[str]] = []
        address = ""
        for index in range(trainers):
            place = ["--pservers", str(trainers)] if index == 0 else ["--coordinator", address]
            command = [
                *clickmill,
                "pserver",
                "--index",
                str(index),
                *place,
                "--snapshots",
                f"{folder}/snapshots",
            ]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert server.stdout is not None
            listening = json.loads(server.stdout.readline())["address"]
            address = address or listening
            servers.append(server)
        command = [*clickmill, "trainer", "-m", str(config), "--coordinator", address, "--json"]
        running = [
            subprocess.Popen([*command, "--name", f"trainer {index}"], stdout=subprocess.DEVNULL)
            for index in range(trainers)
        ]
        return sum(map(cpu_s, running)), sum(map(cpu_s, servers))


def cpu_s(process: subprocess.Popen[Any]) -> float:
    """Waits for a process; what it and all its threads have used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"error: {process.args} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(options: argparse.Namespace, trainers: int) -> Cost:
    few, many = run(options, trainers, options.few), run(options, trainers, options.many)
    samples = options.many - options.few
    per_sample = [(long - short) / samples * 1e6 for short, long in zip(few, many, strict=True)]
    return Cost(trainers, *per_sample)


def wire_bytes(batch_size: int, precision: str) -> float:
    """Of one sample, in both directions: keys once, rows, gradients, dense parameters and their gradients."""
    size = 2 if precision == "bf16" else 4
    rows = ROWS_PER_SAMPLE[batch_size] * (8 + 2 * DIM * size)
    return rows + 2 * NUM_DENSE * size / batch_size + 8


@dataclass(frozen=True)
class Prediction:
    hosts: int
    samples_per_s: float
    bound: str
    efficiency: float


def predict(
    costs: list[Cost], hosts: int, *, cores: int, gbit_per_s: float, batch_size: int, precision: str
) -> Prediction:
    """Samples per second of hosts with a trainer and a server each.

    A sample costs what it costs with one server, and more for every further one, since each step sends a
    frame to each: that slope is fitted to the measured costs. The cores of a host share it; its network
    carries what its trainer and its server send and receive, each nearly (n - 1) / n of the wire's bytes.
    """
    slope = fit_slope(costs)
    cost_us = costs[0].total_us + slope * (hosts - 1)
    by_cpu = cores / (cost_us * 1e-6)
    per_direction = wire_bytes(batch_size, precision) * (hosts - 1) / hosts
    by_network = gbit_per_s * 1e9 / 8 / max(per_direction, 1e-9)
    each = min(by_cpu, by_network)
    alone = cores / (costs[0].total_us * 1e-6)
    return Prediction(hosts, each * hosts, "CPU" if by_cpu <= by_network else "network", each / alone)


def fit_slope(costs: list[Cost]) -> float:
    """Least squares of the total cost over the number of servers."""
    mean_n = sum(cost.trainers for cost in costs) / len(costs)
    mean_us = sum(cost.total_us for cost in costs) / len(costs)
    above = sum((cost.trainers - mean_n) * (cost.total_us - mean_us) for cost in costs)
    below = sum((cost.trainers - mean_n) ** 2 for cost in costs)
    return max(above / below, 0.0) if below else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--few", type=int, default=100_000)
    parser.add_argument("--many", type=int, default=500_000)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--trainers", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--cores", type=int, default=16, help="of a host that is predicted")
    parser.add_argument("--gbit-per-s", type=float, default=25.0, help="network of a host that is predicted")
    options = parser.parse_args()
    build = machine.require_release_build()
    facts = results.facts()
    costs = []
    for trainers in options.trainers:
        costs.append(measure(options, trainers))
        print(costs[-1], file=sys.stderr)
    measured = [
        [str(cost.trainers), f"{cost.trainer_us:.1f}", f"{cost.server_us:.1f}", f"{cost.total_us:.1f}"]
        for cost in costs
    ]
    predicted = []
    for hosts in (1, 8, 32, 128):
        found = predict(
            costs,
            hosts,
            cores=options.cores,
            gbit_per_s=options.gbit_per_s,
            batch_size=options.batch_size,
            precision=options.precision,
        )
        predicted.append(
            [str(hosts), f"{found.samples_per_s / 1e6:.2f} M", f"{found.efficiency:.0%}", found.bound]
        )
    body = f"""{results.table(["trainers + servers", "trainer µs", "server µs", "together µs"], measured)}

CPU microseconds of a sample, batch {options.batch_size}, {options.precision}, messages over TCP. Predicted
from them, for hosts of {options.cores} cores like these and {options.gbit_per_s:g} Gbit/s, a trainer and a
server on each:

{results.table(["hosts", "samples/s", "of one host's, each", "bound by"], predicted)}

{wire_bytes(options.batch_size, options.precision) / 1000:.2f} kB of a sample on the wire. Not in the model:
hosts that wait for each other (`sync`), and what larger joint batches cost in quality."""
    topic = "What a sample costs as trainers grow"
    results.write("scaling", topic, body, {"clickmill": build["version"]}, facts)


if __name__ == "__main__":
    main()
