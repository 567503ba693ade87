"""PaddlePaddle's parameter server on loopback, async or geo, with its native reader (QueueDataset).

In the time: opening the files, reading, parsing, pulls, forward, backward, pushes, to the last update.
Not in it: start of the processes, building the graph, initial parameters, evaluation.
CPU seconds and peak memory are those of all servers and trainers together.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Stopwatch, report
from processes import ClusterError, Processes, free_ports

if TYPE_CHECKING:
    from processes import Process

ROLE = Path(__file__).with_name("paddle_ps_role.py")
GLOO_BY_FILES = "2"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--train", type=Path, nargs="+", required=True, help="one file for each thread of each trainer"
    )
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--strategy", choices=["async", "geo"], required=True)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--trainers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each trainer")
    parser.add_argument("--pull-interval-ms", type=int, default=10, help="of the dense parameters (async)")
    parser.add_argument("--geo-step", type=int, default=100, help="batches between two exchanges (geo)")
    parser.add_argument(
        "--geo-patience",
        type=int,
        default=100,
        help="an exchange begins early when a trainer has had no batch for so many hundredths of a second",
    )
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--deadline-s", type=float, default=300, help="of the start, of training, of evaluation"
    )
    return parser.parse_args()


def start(options: argparse.Namespace, folder: Path, processes: Processes) -> list[Process]:
    """Starts servers and trainers; the trainers."""
    ports = free_ports(options.servers + options.trainers)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    common = {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(addresses[: options.servers]),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses[options.servers :]),
        "PADDLE_TRAINERS_NUM": str(options.trainers),
        "POD_IP": "127.0.0.1",
        "CPU_NUM": str(options.threads),
        "FLAGS_communicator_send_wait_times": str(options.geo_patience),
        # Barriers between the trainers; without them the second one may read parameters that are not there.
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": GLOO_BY_FILES,
        "PADDLE_GLOO_FS_PATH": str(folder / "gloo"),
    }
    command = [sys.executable, str(ROLE), "--starter", str(os.getpid())]
    command += ["--test", str(options.test.resolve())]
    for key in ("threads", "batch_size", "pull_interval_ms", "seed", "deadline_s"):
        command += [f"--{key.replace('_', '-')}", str(getattr(options, key))]
    command += ["--k-steps", str(options.geo_step if options.strategy == "geo" else 0), "--train"]
    files = [str(path.resolve()) for path in options.train]
    for index in range(options.servers):
        role = {"TRAINING_ROLE": "PSERVER", "PADDLE_PORT": str(ports[index])}
        processes.start(f"server-{index}", [*command, *files], {**common, **role})
    trainers = []
    for index in range(options.trainers):
        port = str(ports[options.servers + index])
        role = {"TRAINING_ROLE": "TRAINER", "PADDLE_PORT": port, "PADDLE_TRAINER_ID": str(index)}
        own = files[index :: options.trainers]
        trainers.append(processes.start(f"trainer-{index}", [*command, *own], {**common, **role}))
    return trainers


def run(options: argparse.Namespace, folder: Path, processes: Processes) -> None:
    def hear(key: str, listened: list[Process]) -> list[object]:
        deadline = time.monotonic() + options.deadline_s
        return [processes.hear(key, each, deadline=deadline) for each in listened]

    trainers = start(options, folder, processes)
    version = hear("version", trainers)[0]
    cpu_s, start_s = processes.cpu_seconds(), time.perf_counter()
    for each in trainers:
        each.tell("train")
    hear("trained", trainers)
    watch = Stopwatch(time.perf_counter() - start_s, processes.cpu_seconds() - cpu_s)
    peak_rss_mb = processes.peak_rss_mb()
    trainers[0].tell("evaluate")
    (auc,) = hear("auc", trainers[:1])
    report(
        options.samples,
        watch,
        auc=auc,
        versions={"paddlepaddle": version},
        peak_rss_mb=round(peak_rss_mb, 1),
    )


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as folder, Processes(Path(folder)) as processes:
        try:
            run(options, Path(folder), processes)
        except ClusterError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
