"""How fast is training with the dense net on a card, against the same model in plain PyTorch there?

DNN 400-400-400 and DCNv2 (three cross layers beside it), embedding 10, batch 65,536, Adam, fp32 and bf16.
The machine with the card may be another one: `--keep FILE` there, `--page FILE` where results are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import machine
import results
from peer import Peer, alternate, median, ratio, versions

BATCH = 65_536
WARM_UP = 6
BASE = "torch, all rows on the card"


def peers(train: str, model: str, precision: str, workers: int, threads: int) -> list[Peer]:
    common = ("--train", train, "--model", model, "--precision", precision, "--batch", str(BATCH))
    ours = (*common, "--workers", str(workers), "--threads", str(threads))
    return [
        Peer(BASE, "clickmill", "gpu_torch.py", (*common, "--rows", "dense")),
        Peer("torch, rows of the batch updated", "clickmill", "gpu_torch.py", (*common, "--rows", "sparse")),
        Peer("clickmill, batches in memory", "clickmill", "gpu_clickmill.py", (*ours, "--source", "memory")),
        Peer("clickmill, from text", "clickmill", "gpu_clickmill.py", (*ours, "--source", "text")),
    ]


def facts() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    found = subprocess.run(query, capture_output=True, text=True, check=True)
    load = os.getloadavg()
    return {
        "card": found.stdout.strip(),
        "processor": machine.processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{machine.memory_gib():.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load before": f"{load[0]:.2f} (1 minute), {load[1]:.2f} (5 minutes)",
    }


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    import logs

    found = facts()
    log = logs.make("gpu", rows=BATCH * arguments.steps)
    runs: dict[str, Any] = {}
    for model in arguments.models:
        for precision in arguments.precisions:
            chosen = peers(log.files[0], model, precision, arguments.workers, arguments.threads)
            runs[f"{model}, {precision}"] = alternate(chosen, arguments.repetitions)
    settings = {"steps": arguments.steps, "repetitions": arguments.repetitions, "workers": arguments.workers}
    return {"facts": found, "runs": runs, "threads": arguments.threads, **settings}


def row(name: str, runs: list[dict[str, Any]], base: list[dict[str, Any]]) -> list[str]:
    return [
        name,
        f"{median(runs, 'samples_per_s') / 1e6:.2f} M",
        f"{ratio(runs, base, 'samples_per_s'):.2f}×",
        f"{median(runs, 'ms_a_step'):.1f}",
        f"{median(runs, 'cpu_s') / median(runs, 'wall_s'):.1f}",
    ]


def page(kept: dict[str, Any]) -> None:
    sections = []
    found: dict[str, str] = {}
    for title, runs in kept["runs"].items():
        found.update(versions(runs))
        header = ["peer", "samples/s", f"to {BASE}", "ms a step", "cores busy"]
        figures = results.table(header, [row(name, each, runs[BASE]) for name, each in runs.items()])
        stages = runs["clickmill, batches in memory"][0]["stages_ms"]
        words = ", ".join(f"{name} {value:.1f}" for name, value in stages.items())
        sections.append(
            f"## {title}\n\n{figures}\n\nclickmill, batches in memory, ms a step by stage: {words}."
        )
    body = "\n\n".join(
        [
            *sections,
            METHOD.format(**kept, counted=kept["steps"] - WARM_UP, warm_up=WARM_UP, batch=BATCH),
            BOUND,
        ]
    )
    facts_now = {**kept["facts"], "commit": machine.commit()}
    results.write("gpu", "The dense net on a card, rows on the host", body, found, facts_now)


METHOD = """Medians of {repetitions} alternating repetitions of {counted} steps of {batch:,} samples, after
{warm_up} that are not counted; {workers} workers, {threads} threads that parse. Stages run side by side and
may add up to more than a step."""
BOUND = """Plain PyTorch has everything on the card: its table of 1,000,001 rows, and batches of ready-made
ids that are read from no file and copied from nowhere. clickmill has its rows, of any number, in the memory
of the host."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=36)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["dnn", "dcn_v2"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=12)
    parser.add_argument("--keep", type=Path, help="only measure, and write what was found to this file")
    parser.add_argument("--page", type=Path, help="only write the page of what was found on another machine")
    arguments = parser.parse_args()
    if arguments.page:
        page(json.loads(arguments.page.read_text()))
        return
    machine.require_release_build()
    kept = measure(arguments)
    if arguments.keep:
        arguments.keep.write_text(json.dumps(kept, indent=1))
    else:
        page(kept)


if __name__ == "__main__":
    main()
