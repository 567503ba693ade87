"""A job that is submitted and looked after with the commands that a person types."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from .conftest import DEADLINE_S, poll

NAME = "ctr"
LONG = 5000
"""Passes of a job that is to be told when to end."""
CONFIG = """\
workspace: "./"
mode: train
runner:
- name: train
  class: cluster_train
  epochs: {epochs}
  save_checkpoint_interval: {save_interval}
  save_checkpoint_keep: {{last: 3}}
  cluster: {{gather_s: 10, dead_after_s: 10, snapshot_interval_s: 5, lease_bytes: 50000}}
dataset:
- {{name: log, data_path: "{{workspace}}/{data_path}", format: criteo, batch_size: 50}}
phase:
- {{name: first, model: dnn, dataset_name: log, thread_num: 1}}
hyper_parameters: {{fc_sizes: [16], sparse_feature_dim: 4}}
"""
BACKEND = """\
backend: kubernetes
submit: {{job_name: ctr, k8s_trainers: {trainers}, k8s_ps_num: {pservers}, files: {files}}}
kubernetes:
  image: {image}
  namespace: {namespace}
  scheduler: {scheduler}
  resources:
    pserver: {{cpu: {cpu}, memory: 256Mi}}
    trainer: {{cpu: {cpu}, memory: {memory}}}
{more}"""


class Job:
    """One job, its folder, and the commands that are typed for it."""

    def __init__(self, folder: Path, image: str, namespace: str, scheduler: str = "volcano") -> None:
        self.folder = folder
        self.namespace = namespace
        self._facts = {"image": image, "namespace": namespace, "scheduler": scheduler}

    def make_log(self, rows: int) -> None:
        """A made-up log that travels with the files of the job."""
        self.run("data", "synth", "log.tsv", "--rows", str(rows))

    def write(
        self,
        *,
        epochs: int = 3,
        pservers: int = 1,
        trainers: int = 2,
        memory: str = "1Gi",
        cpu: str = "10m",
        data_path: str = "log.tsv",
        save_interval: int = 1,
        more: str = "",
    ) -> None:
        """Configuration and backend, for the next submit; `more` is what else `kubernetes` says."""
        files = "./*.yaml ./*.tsv" if any(self.folder.glob("*.tsv")) else "./*.yaml"
        facts = {"files": files, "pservers": pservers, "trainers": trainers}
        facts |= {"memory": memory, "cpu": cpu, "more": more}
        (self.folder / "config.yaml").write_text(
            CONFIG.format(epochs=epochs, data_path=data_path, save_interval=save_interval)
        )
        (self.folder / "backend.yaml").write_text(BACKEND.format(**self._facts, **facts))

    def submit(self, **numbers: Any) -> None:
        self.write(**numbers)
        self.run("submit", "-m", "config.yaml", "-b", "backend.yaml")

    def run(self, *words: str, code: int = 0) -> str:
        """Stdout of a command that ends with `code`."""
        done = subprocess.run(
            [sys.executable, "-m", "clickmill", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=5 * DEADLINE_S,
        )
        assert done.returncode == code, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def job(self, verb: str, *words: str, code: int = 0) -> Any:
        """What `clickmill job VERB ctr` says with `--json`."""
        told = self.run("job", verb, NAME, *words, "-n", self.namespace, "--json", code=code)
        return json.loads(told) if told else None

    def start(self, *words: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
        """A command that goes on meanwhile; Ctrl-C reaches it where the tests run in the background, too."""
        command = ["env", "--default-signal=INT", sys.executable, "-m", "clickmill", "job", *words]
        command += ["-n", self.namespace]
        return subprocess.Popen(command, cwd=self.folder, text=True, stdout=stdout)

    def await_status(
        self, claim: Callable[[dict[str, Any]], object], what: str, *, deadline_s: float = 3 * DEADLINE_S
    ) -> dict[str, Any]:
        """The status when the claim holds of it."""
        found: dict[str, Any] = {}

        def holds() -> bool:
            found.clear()
            found.update(self.job("status"))
            return bool(claim(found))

        poll(holds, what, deadline_s=deadline_s)
        return found

    def await_samples(self, samples: int) -> dict[str, Any]:
        """The status when so many are trained; the run must not be over by then."""
        status = self.await_status(
            lambda status: trained(status) >= samples or status["phase"] == "Completed",
            f"{samples} samples",
        )
        assert status["phase"] != "Completed", "it was over before the test began: give it more passes"
        return status

    def assert_exact(self, rows: int, passes: int) -> None:
        """It ends Completed, and every sample was trained exactly once in every pass, by the ledger."""
        self.job("wait", "--timeout", "900")
        status = self.job("status")
        assert status["phase"] == "Completed"
        assert status["samples"] == rows * passes
        self.job("fetch", "-o", "ledger", "--what", "snapshots/committed.json")
        committed = json.loads((self.folder / "ledger" / "snapshots" / "committed.json").read_text())
        run = committed["content"]["run"]
        assert [each["samples"] for each in run["history"]] == [rows] * passes
        assert [each["train"]["count"] for each in run["history"]] == [rows] * passes
        assert run["ledger"]["past_samples"] == rows * passes


def trained(status: dict[str, Any]) -> int:
    """Samples so far, as the coordinator tells; 0 while nobody does."""
    return int((status["training"] or {"samples": 0})["samples"])
