"""Jobs in a folder: configuration, model and backend.yaml as users write them."""

from __future__ import annotations

from pathlib import Path

from clickmill.submit.load import load_request
from clickmill.submit.request import Request
from tests.unit.config import backend_examples, examples

KINDS = {
    "mpi": (examples.MPI, backend_examples.MPI),
    "k8s_collective": (examples.COLLECTIVE, backend_examples.COLLECTIVE),
    "k8s_ps_cpu": (examples.MPI, backend_examples.PS_CPU),
}
"""The three kinds of jobs that PaddleCloud has."""
SECRETS = {"CLICKMILL_AK": "key-id-1", "CLICKMILL_SK": "key-secret-1", "CLICKMILL_FS_UGI": "me,pass-word-1"}
FILLED = {
    'output_path: ""': 'output_path: "/user/me/out"',
    'train_data_path: ""': 'train_data_path: "/user/me/train"',
    'test_data_path: ""': 'test_data_path: "/user/me/test"',
    'thirdparty_path: ""': 'thirdparty_path: "/user/me/more"',
    'afs_remote_mount_point: ""': 'afs_remote_mount_point: "/user/me/mount"',
    'group: ""': 'group: "mine"',
}


def write_job(folder: Path, config: str, backend: str) -> None:
    """The files of a job, with the blanks of the examples filled in, but for secrets."""
    for blank, text in FILLED.items():
        backend = backend.replace(blank, text)
    (folder / "config.yaml").write_text(config)
    (folder / "backend.yaml").write_text(backend)
    (folder / "backend.yaml").chmod(0o600)
    (folder / "model.py").write_text("class Model: ...\n")


def request(*overrides: str) -> Request:
    """The job in the current folder."""
    return load_request("config.yaml", "backend.yaml", overrides)
