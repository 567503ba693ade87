"""The submission folder: files of the user, and those that the platform asks for.

<job name>_<YYYYmmddHHMM>/     only its owner can enter it
  config.yaml, backend.yaml, model.py, ...     as `submit.files` names them; secrets taken out
  before_hook.sh  end_hook.sh  config.ini  job.sh
  .credentials                 keys for job.sh, unless the environment gives them; not uploaded
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from clickmill.store.durable import writing
from clickmill.submit.paddlecloud.config_ini import config_ini
from clickmill.submit.paddlecloud.hooks import before_hook, end_hook
from clickmill.submit.paddlecloud.job_script import CREDENTIALS, credentials_file, job_script
from clickmill.submit.private import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.submit.package import PackageFile
    from clickmill.submit.paddlecloud.job import Job


@dataclass(frozen=True, slots=True)
class Generated:
    """A file that we write, and what is said of it."""

    name: str
    content: str
    words: str = ""


def generate(job: Job) -> tuple[Generated, ...]:
    """The files of a job, in the order in which they are told of."""
    kind = "mpi" if job.is_mpi else "k8s"
    files = [
        Generated("before_hook.sh", before_hook(job), f"gen {job.device} before_hook.sh"),
        Generated("config.ini", config_ini(job), f"gen {kind}_config.ini"),
        Generated("job.sh", job_script(job), f"gen {kind}_job.sh"),
        Generated("end_hook.sh", end_hook(), "gen end_hook.sh"),
    ]
    keys = credentials_file(job)
    return (*files, Generated(CREDENTIALS, keys)) if keys else tuple(files)


def folder_name(job_name: str, time: datetime | None = None) -> str:
    """`PaddleRec_CTR_202007091308`."""
    return f"{job_name}_{time or datetime.now():%Y%m%d%H%M}"


def make_folder(parent: Path, name: str) -> Path:
    """A new folder that only its owner can enter; a second one of the same minute is numbered."""
    for number in range(1, 1000):
        path = parent / (name if number == 1 else f"{name}_{number}")
        with writing(path):
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            path.chmod(0o700)
            return path
    raise FileExistsError(f"{parent / name}")


def write_package(folder: Path, package: tuple[PackageFile, ...]) -> None:
    """Copy the files of the user."""
    for file in package:
        write_private(folder / file.name, file.read())
