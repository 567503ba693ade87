"""job.sh: the call of PaddleCloud's client, for each of the three kinds of jobs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.submit.paddlecloud.job import Job

CREDENTIALS = ".credentials"
"""File beside job.sh that its owner alone can read; the client uploads `./*`, which leaves it out."""
JOB_VERSION = "paddle-fluid-v1.7.1"
"""Environment of the platform that jobs start in."""
WALL_TIME = "2000:00:00"
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
"""Variables that PaddleRec takes from the client, too."""


def job_script(job: Job) -> str:
    """The whole file; `sh job.sh` submits, also a second time."""
    submit = job.backend.submit
    arguments = list(_arguments(job))
    call = " \\\n".join(['paddlecloud job --ak "${ak}" --sk "${sk}"', *(f"    {each}" for each in arguments)])
    return f"""\
#!/bin/sh
# Submits what lies in this folder to PaddleCloud. Change it as you like and run `sh job.sh` again.
cd "$(dirname "$0")" || exit 1

job_name={shlex.quote(submit.job_name)}
group_name={shlex.quote(submit.group)}
job_version={shlex.quote(JOB_VERSION)}
start_cmd={shlex.quote(job.start_command)}
wall_time={shlex.quote(WALL_TIME)}

# Keys are in the environment, or in a file that only you can read and that is not uploaded.
if [ -r ./{CREDENTIALS} ]; then . ./{CREDENTIALS}; fi
trimmed() {{ printf '%s' "$1" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//'; }}
told="$(trimmed "${{CLICKMILL_AK:-}}")"
ak="${{told:-${{ak:-}}}}"
told="$(trimmed "${{CLICKMILL_SK:-}}")"
sk="${{told:-${{sk:-}}}}"
if [ -z "${{ak}}" ] || [ -z "${{sk}}" ]; then
    echo "error: no keys; set CLICKMILL_AK and CLICKMILL_SK" >&2
    exit 2
fi

# The platform is reached directly.
unset {" ".join(PROXIES)}

{call}
"""


def credentials_file(job: Job) -> str:
    """What job.sh reads; keys of the environment are not in it."""
    keys = job.credentials
    lines = []
    if not keys.is_ak_in_environment:
        lines.append(f"ak={shlex.quote(keys.ak)}\n")
    if not keys.is_sk_in_environment:
        lines.append(f"sk={shlex.quote(keys.sk)}\n")
    return "".join(lines)


def _arguments(job: Job) -> Iterator[str]:
    submit = job.backend.submit
    yield "train"
    yield '--job-name "${job_name}"'
    yield '--group-name "${group_name}"'
    yield '--job-version "${job_version}"'
    yield "--job-conf config.ini"
    yield '--start-cmd "${start_cmd}"'
    yield "--files ./*"
    if job.is_mpi:
        yield f"--mpi-priority {submit.priority}"
        yield '--mpi-wall-time "${wall_time}"'
        yield f"--mpi-nodes {submit.nodes}"
        yield "--is-standalone 0"
        yield "--permission group"
    else:
        yield f"--k8s-priority {submit.priority}"
        yield '--wall-time "${wall_time}"'
        yield f"--k8s-trainers {submit.k8s_trainers}"
        yield from _pods(job)
    yield "--json"


def _pods(job: Job) -> Iterator[str]:
    submit = job.backend.submit
    is_collective = job.mode == "COLLECTIVE_GPU_K8S"
    yield f"--k8s-cpu-cores {submit.cpu_cores(is_collective=is_collective)}"
    if not is_collective:
        yield f"--k8s-ps-num {submit.k8s_ps_num}"
        yield f"--k8s-ps-cores {submit.k8s_ps_cores}"
        yield "--is-standalone 0"
        yield "--distribute-job-type PSERVER"
        return
    yield f"--k8s-gpu-cards {submit.k8s_gpu_card}"
    if submit.k8s_trainers > 1:
        yield "--is-standalone 0"
        yield "--distribute-job-type NCCL2"
    else:
        yield "--is-standalone 1"
        yield f"--job-remark {'single-gpu' if submit.k8s_gpu_card == 1 else 'single-trainer'}"
