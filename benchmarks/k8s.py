"""What does Kubernetes cost a job, and how long does a job take to come back from what clusters do?

The same job, 2 servers and 2 trainers, CTR-DNN 400-400-400 on a Criteo-like log, under Volcano and as plain
processes of this machine. Needs the cluster of KUBECONFIG, an image that its nodes have (CLICKMILL_IMAGE) and
kubectl; the log goes to a volume of its default storage class. CPU seconds of a short run are taken from
those of a long one: what is left is the cost of the samples between, without the start of processes.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import machine
import results
from environments import ROOT

from clickmill.errors import ClickmillError, NotFoundError
from clickmill.jobs.status import JobStatus, job_status
from clickmill.kube import connect, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill.kube.client import Cluster

NAME = "bench"
ROWS = 200_000
SHORT, LONG, ENDLESS = 1, 5, 1000
CONFIG = """
workspace: "./"
mode: train
runner:
- name: train
  class: cluster_train
  epochs: 1
  print_interval: 100000
  save_checkpoint_interval: 1000000
  worker_num: 2
  server_num: 2
  output_path: run
  cluster: {snapshot_interval_s: 10, dead_after_s: 10, gather_s: 20}
dataset:
- {name: log, format: criteo, data_path: "{workspace}/train_data/train.tsv", batch_size: 500, threads: 1}
phase: [{name: dnn, model: dnn, dataset_name: log, thread_num: 1}]
hyper_parameters: {optimizer: {class: Adam}, sparse_feature_dim: 10, fc_sizes: [400, 400, 400]}
"""
BACKEND = """
backend: Kubernetes
submit: {{job_name: {name}, k8s_trainers: 2, k8s_ps_num: 2}}
kubernetes:
  image: {image}
  namespace: {namespace}
  volumes: [{{name: data, claim: click-logs, mount: train_data}}]
  resources: {{pserver: {{cpu: 100m, memory: 1Gi}}, trainer: {{cpu: 100m, memory: 1Gi}}}}
"""
LOGS = ROOT / "deploy" / "k8s" / "click-logs.yaml"
KILL = """
for process in /proc/[0-9]*; do
  if tr '\\0' ' ' <$process/cmdline | grep -q 'clickmill [tp][rs]'; then kill -9 ${process#/proc/}; fi
done
"""
DEADLINE_S = 300.0
POLL_S = 0.1


class Bench:
    """The job, and the clock."""

    def __init__(self, folder: Path, cluster: Cluster, namespace: str) -> None:
        self.folder = folder
        self.cluster = cluster.within(namespace)
        self.namespace = namespace

    def clickmill(self, *words: str) -> str:
        command = [sys.executable, "-m", "clickmill", *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"error: {' '.join(words)} ended with {done.returncode}\n{done.stderr}")
        return done.stdout

    def kubectl(self, *words: str, stdin: str | None = None) -> None:
        command = ["kubectl", "-n", self.namespace, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"error: {' '.join(command)} ended with {done.returncode}\n{done.stderr}")

    def fill_volume(self, image: str, log: Path) -> None:
        """The claim `click-logs` with the log, as the guide says."""
        self.kubectl("apply", "-f", "-", stdin=LOGS.read_text().replace("clickmill:dev", image))
        self.kubectl("wait", "--for=condition=Ready", "pod/click-logs", "--timeout=120s")
        self.kubectl("cp", str(log), f"click-logs:/data/{log.name}")
        self.kubectl("delete", "pod", "click-logs")

    def submit(self, passes: int) -> None:
        self.clickmill(
            "submit", "-m", "config.yaml", "-b", "backend.yaml", "--set", f"runner.0.epochs={passes}"
        )

    def delete(self) -> None:
        self.clickmill("job", "delete", NAME, "-n", self.namespace, "--with-output")
        self.until(lambda _: False, "it to be gone", is_gone=True)

    def status(self) -> JobStatus | None:
        try:
            return job_status(self.cluster, NAME)
        except NotFoundError:
            return None
        except ClickmillError as error:
            print(f"meanwhile: {error}", file=sys.stderr)
            return None

    def until(self, claim: Callable[[JobStatus], bool], what: str, *, is_gone: bool = False) -> float:
        """The moment at which the claim holds of the job."""
        end = time.monotonic() + DEADLINE_S
        while True:
            found = self.status()
            now = time.monotonic()
            if (found is None and is_gone) or (found is not None and claim(found)):
                return now
            if now > end:
                sys.exit(f"error: waited {DEADLINE_S:.0f} s for {what}")
            time.sleep(POLL_S)


def is_whole(status: JobStatus) -> bool:
    """All are there, and train."""
    training = status.training
    return (
        training is not None
        and training.phase == "running"
        and (training.num_trainers, training.num_pservers) == (2, 2)
        and all(pod.is_ready for pod in status.pods if pod.role == "pserver")
        and status.num_running == 4
    )


def start_times(bench: Bench, repetitions: int) -> list[tuple[float, float, float]]:
    """Seconds from the command to its return, to the first pod that runs, to the first batch."""
    found = []
    for _ in range(repetitions):
        began = time.monotonic()
        bench.submit(ENDLESS)
        returned = time.monotonic()
        running = bench.until(lambda status: status.num_running > 0, "a pod")
        batch = bench.until(lambda status: (status.samples or 0) > 0, "the first batch")
        found.append((returned - began, running - began, batch - began))
        bench.delete()
    return found


def pod_cpu_s(bench: Bench, passes: int) -> float:
    """CPU seconds of all roles of a job, as their launchers tell at the end."""
    bench.submit(passes)
    bench.clickmill("job", "wait", NAME, "-n", bench.namespace)
    lines = bench.clickmill("job", "logs", NAME, "-n", bench.namespace)
    told = re.findall(r"role\.ended role=\S+ \d+ exit_code=0 cpu_s=([\d.]+)", lines)
    if len(told) != 4:
        sys.exit(f"error: {len(told)} of 4 roles told what they took")
    bench.delete()
    return sum(float(each) for each in told)


def tcp_cpu_s(bench: Bench, passes: int) -> float:
    """Of processes that speak to each other as pods do."""
    return local_cpu_s(bench, passes, "runner.0.cluster.shared_memory=false")


def local_cpu_s(bench: Bench, passes: int, *more: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(dir=bench.folder) as output:
        changes = (
            f"runner.0.epochs={passes}",
            "runner.0.class=local_cluster_train",
            f"runner.0.output_path={output}/run",
            *more,
        )
        bench.clickmill("train", "-m", "config.yaml", *(w for each in changes for w in ("--set", each)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_us_per_sample(measure: Callable[[Bench, int], float], bench: Bench) -> float:
    return (measure(bench, LONG) - measure(bench, SHORT)) / ((LONG - SHORT) * ROWS) * 1e6


FAULTS = {
    "kill -9 of a trainer's process": ("exec", f"{NAME}-trainer-1", "--", "sh", "-c", KILL),
    "kill -9 of a parameter server's process": ("exec", f"{NAME}-pserver-1", "--", "sh", "-c", KILL),
    "kill -9 of the coordinator's process": ("exec", f"{NAME}-pserver-0", "--", "sh", "-c", KILL),
    "a trainer's pod is deleted": ("delete", "pod", f"{NAME}-trainer-1"),
    "a parameter server's pod is deleted": ("delete", "pod", f"{NAME}-pserver-1"),
    "the coordinator's pod is deleted": ("delete", "pod", f"{NAME}-pserver-0"),
}


def train_until_a_snapshot(bench: Bench) -> JobStatus:
    """The job trains with all its pods, and has what it can go back to."""
    bench.submit(ENDLESS)
    bench.until(is_whole, "training")
    bench.until(lambda status: status.training is not None and bool(status.training.snapshot), "a snapshot")
    found = bench.status()
    assert found is not None
    return found


def recovery(bench: Bench, before: JobStatus, began: float) -> tuple[str, str]:
    """The longest time without more samples than ever before, and seconds until all are back."""
    uids = {pod.uid for pod in before.pods}
    most, since, pause, back = before.samples or 0, began, 0.0, None
    end = began + DEADLINE_S
    while True:
        status, now = bench.status(), time.monotonic()
        if back is None and status is not None and is_whole(status) and {p.uid for p in status.pods} != uids:
            back = now
        if status is not None and (status.samples or 0) > most:
            most, pause, since = status.samples or 0, max(pause, now - since), now
            if back is not None:
                return f"{pause:.1f}", f"{back - began:.1f}"
        if now > end:
            sys.exit(f"error: not back after {DEADLINE_S:.0f} s")
        time.sleep(POLL_S)


def recoveries(bench: Bench) -> list[list[str]]:
    rows = []
    for words, command in FAULTS.items():
        before = train_until_a_snapshot(bench)
        rows.append([words, *recovery_from(bench, before, ("-n", bench.namespace, *command))])
        bench.delete()
    return rows


def recovery_from(bench: Bench, before: JobStatus, command: Sequence[str]) -> tuple[str, str]:
    """Of what a command of kubectl does. Deletions are over when pods are gone; what counts begins before."""
    began = time.monotonic()
    quiet = subprocess.DEVNULL
    with subprocess.Popen(["kubectl", *command], stdout=quiet, stderr=quiet):
        found = recovery(bench, before, began)
    print(command, found, file=sys.stderr)
    return found


def node_recoveries(bench: Bench, kit: Path) -> list[list[str]]:
    """Faults of the node with pserver 1; only for a cluster whose nodes may be switched off."""
    rows = []
    before = train_until_a_snapshot(bench)
    node = node_of(before)
    drain = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
    rows.append(["the node of a parameter server is drained", *recovery_from(bench, before, drain)])
    bench.kubectl("uncordon", node)
    bench.delete()

    before = train_until_a_snapshot(bench)
    node = node_of(before)
    began = time.monotonic()
    subprocess.run([kit / "down", "--node", node], check=True, capture_output=True)
    told = bench.until(lambda status: any(each.kind == "node" for each in status.reasons), "it to be told")
    bench.kubectl("delete", "node", node)
    words = f"that node loses power; told after {told - began:.1f} s, then `kubectl delete node`"
    rows.append([words, *recovery(bench, before, began)])
    subprocess.run([kit / "up"], check=True, capture_output=True)
    bench.delete()
    return rows


def node_of(status: JobStatus) -> str:
    return next(pod.node for pod in status.pods if pod.name == f"{NAME}-pserver-1" and pod.node)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    image = os.environ.get("CLICKMILL_IMAGE")
    if not image:
        sys.exit("error: no image\nhint: CLICKMILL_IMAGE names one that the nodes have")

    build = machine.require_release_build()
    facts = results.facts()
    with tempfile.TemporaryDirectory() as place, connect() as cluster:
        folder = Path(place)
        (folder / "config.yaml").write_text(CONFIG)
        backend = BACKEND.format(name=NAME, image=image, namespace=arguments.namespace)
        (folder / "backend.yaml").write_text(backend)
        bench = Bench(folder, cluster, arguments.namespace)
        log = folder / "train_data" / "train.tsv"
        bench.clickmill("data", "synth", str(log), "--rows", str(ROWS))
        bench.fill_volume(image, log)
        starts = start_times(bench, arguments.repetitions)
        costs = []
        for _ in range(arguments.repetitions):
            measures = (pod_cpu_s, local_cpu_s, tcp_cpu_s)
            costs.append(tuple(cpu_us_per_sample(measure, bench) for measure in measures))
            print(costs[-1], file=sys.stderr)
        rows = recoveries(bench)
        if kit := os.environ.get("DEVCLUSTER_KIT"):
            rows += node_recoveries(bench, Path(kit).resolve())
        bench.kubectl("delete", "pvc", "click-logs")
        facts |= {
            "Kubernetes": str(cluster.discover("/version")["gitVersion"]),
            "nodes": str(len(cluster.list(kinds.NODE))),
        }

    medians = [statistics.median(each) for each in zip(*starts, strict=True)]
    in_pods, here, by_tcp = (statistics.median(each) for each in zip(*costs, strict=True))
    ratios = sorted(pods / alone for pods, alone, _ in costs)
    header = ["from the command `clickmill submit` to", "seconds"]
    words = ["its return", "the first pod that runs", "the first batch that is trained"]
    body = f"""## Start

{results.table(header, [[what, f"{value:.1f}"] for what, value in zip(words, medians, strict=True)])}

Medians of {arguments.repetitions}; the image is on the nodes already.

## What a sample costs

| where | CPU µs for a sample |
|---|---|
| processes of this machine, `local_cluster_train` | {here:.1f} |
| the same with `cluster.shared_memory: false` | {by_tcp:.1f} ({by_tcp / here:.2f}×) |
| pods, under Volcano | {in_pods:.1f} ({in_pods / here:.2f}×) |

CPU seconds of all roles, {LONG} passes less {SHORT}, {ROWS:,} rows each; medians of {arguments.repetitions}
alternating repetitions, within single ones {ratios[0]:.2f}× to {ratios[-1]:.2f}×. On one machine processes
exchange messages through memory that they share; pods do so over TCP, as between hosts.

## Back from a failure

{results.table(["what happens", "longest pause of training, s", "all are back, s"], rows)}

One run each, `async`, with a snapshot every 10 seconds. A pause lasts until more samples are trained than
ever before: when a server is killed its run goes back to the last snapshot, and the pause holds what is
trained again."""
    results.write(
        "k8s", "A job on Kubernetes: start, cost, recovery", body, {"clickmill": build["version"]}, facts
    )


if __name__ == "__main__":
    main()
