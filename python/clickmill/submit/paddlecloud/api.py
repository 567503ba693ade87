"""Submit a job to PaddleCloud: make its folder, then call the client."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import clickmill
from clickmill.config import builtin_model
from clickmill.config.backend.known_secrets import KnownSecrets, password_of
from clickmill.config.backend.secrets import SECRETS
from clickmill.errors import ClickmillError, ConfigError
from clickmill.launch.token import new_token
from clickmill.store.named_path import expanded, is_file
from clickmill.submit.package import PackageFile, collect_package, config_name
from clickmill.submit.paddlecloud.client import CLIENT, again, find_client, named_job, run_job_script
from clickmill.submit.paddlecloud.data import is_from_platform
from clickmill.submit.paddlecloud.folder import (
    folder_name,
    generate,
    make_folder,
    write_package,
)
from clickmill.submit.paddlecloud.job import Credentials, Job, distribute_mode, most_threads
from clickmill.submit.paddlecloud.job_script import CREDENTIALS
from clickmill.submit.private import write_private
from clickmill.submit.request import Outcome
from clickmill.submit.start import START, start_command, start_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.errors import Problem
    from clickmill.submit.request import Request

logger = logging.getLogger(__name__)

_WRITTEN = frozenset({"before_hook.sh", "end_hook.sh", "config.ini", "job.sh", CREDENTIALS})
_USUAL = "the usual one is `python -m clickmill.run -m config.yaml`"


def plan(request: Request) -> Outcome:
    """What the folder would hold, secrets masked."""
    package, job = _package(request), prepare(request)
    shown = generate(replace(job, credentials=job.credentials.masked()))
    files = {file.name: _shown(file) for file in package} | {file.name: file.content for file in shown}
    words = (
        "nothing is sent, and PaddleCloud has not been asked: `clickmill submit` without `--dry-run` makes "
        f"this folder and runs `sh job.sh` in it, which calls the platform's client `{CLIENT}`"
    )
    return Outcome({**_facts(job), "files": list(files)}, files=files, words=words)


def submit(request: Request, *, parent: Path | None = None) -> Outcome:
    """Make the folder in `parent` (here, where absent), and send it where the client is installed."""
    package, job = _package(request), prepare(request)
    generated = generate(job)
    folder = make_folder(parent or Path.cwd(), folder_name(job.backend.submit.job_name))
    try:
        write_package(folder, package)
        for file in generated:
            write_private(folder / file.name, file.content.encode())
    except BaseException:
        # What is half there, on a full disk for one, must not be taken for a job.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    logger.info("The task submission folder is generated at %s", folder)
    logger.info("before_submit")
    for file in generated:
        if file.words:
            logger.info("%s", file.words)
    command = again(folder)
    names = [*(file.name for file in package), *(file.name for file in generated)]
    facts = {**_facts(job), "folder": str(folder), "files": names, "command": command}
    if find_client() is None:
        failure = ClickmillError(
            f"the job has not been submitted: there is no client `{CLIENT}` on this machine's PATH, "
            "and PaddleCloud is reached by nothing else",
            hint=f"its folder is complete; where the client is installed, this submits it: `{command}`",
        )
        return Outcome(facts, failure=failure)
    reply = run_job_script(folder, _secrets(job))
    is_submitted = _is_submitted(job, reply)
    if is_submitted is None:
        logger.warning("the client `%s` ended well and named no job; look for it on the platform", CLIENT)
    logger.info("end submit")
    return Outcome({**facts, "is_submitted": is_submitted, "reply": reply})


def _is_submitted(job: Job, reply: dict[str, Any]) -> bool | None:
    """After a client that ended well; None where it cannot be known.

    A reply that names no job may tell of an error. On MPI there may be none at all.
    """
    if named_job(json.dumps(reply)) is not None or (job.is_mpi and not reply):
        return True
    return None


def _secrets(job: Job) -> KnownSecrets:
    """What the client may not repeat here, short passwords as well."""
    known = KnownSecrets.of(job.backend)
    keys = job.credentials
    return known.with_values("of this job", (keys.token, password_of(keys.fs_ugi)))


def _facts(job: Job) -> dict[str, Any]:
    return {
        "backend": "PaddleCloud",
        "job": job.backend.submit.job_name,
        "distribute_mode": job.mode,
        "is_submitted": False,
    }


def prepare(request: Request, environ: Mapping[str, str] | None = None, token: str | None = None) -> Job:
    """All that the files are written from."""
    environ = os.environ if environ is None else environ
    backend, runner = request.backend, request.runner
    ak, sk = ("submit", "ak"), ("submit", "sk")
    return Job(
        backend=backend,
        mode=distribute_mode(backend, runner),
        credentials=Credentials(
            ak=backend.submit.ak.get_secret_value(),
            sk=backend.submit.sk.get_secret_value(),
            fs_ugi=backend.config.fs_ugi.get_secret_value(),
            token=token or new_token(),
            is_ak_in_environment=bool(environ.get(SECRETS[ak], "").strip()),
            is_sk_in_environment=bool(environ.get(SECRETS[sk], "").strip()),
        ),
        start_command=start_command(request).as_ours(request.source.overrides),
        num_threads=most_threads(request.config, runner),
        requirement=_requirement(request),
    )


def _requirement(request: Request) -> str:
    """What pip is given on the nodes; a wheel of this machine travels with the files."""
    install = request.backend.config.install
    if not install:
        return f"clickmill[train]=={clickmill.__version__}"
    wheel = _wheel(request)
    return f"./{wheel.name}[train]" if wheel is not None else install


def _wheel(request: Request) -> Path | None:
    with contextlib.suppress(ConfigError):  # told with the files of the job
        path = expanded(request.backend.config.install)
        return path if path.suffix == ".whl" and is_file(path) else None
    return None


def _package(request: Request) -> tuple[PackageFile, ...]:
    """Files of the user. Raises ConfigError where nodes could not start with them."""
    package = {file.name: file for file in collect_package(request.config, request.backend)}
    install = request.backend.config.install
    wheel = _wheel(request)
    if wheel is not None:
        origin = request.backend.problem("", ("config", "install"))
        package[wheel.name] = PackageFile(wheel.name, wheel, origin, KnownSecrets.of(request.backend))
    problems = list(_start_problems(request, package))
    if install.endswith(".whl") and "://" not in install and wheel is None:
        problems.append(request.backend.problem(_why_no_wheel(install), ("config", "install")))
    for file in package.values():
        if file.name in _WRITTEN:
            message = f"`{file.path}` has the name of a file that is written for the platform; rename it"
            problems.append(file.problem(message))
        elif file.name.startswith("."):
            message = (
                f"`{file.path}` begins with `.`, so nodes would not have it: the client uploads `./*`, which "
                "leaves such files out; rename it"
            )
            problems.append(file.problem(message))
    if problems:
        raise ConfigError.of(problems)
    return tuple(package.values())


def _why_no_wheel(install: str) -> str:
    try:
        return f"there is no file `{expanded(install)}`"
    except ConfigError as error:
        return str(error)


def _start_problems(request: Request, package: Mapping[str, PackageFile]) -> list[Problem]:
    """Nodes must train what was checked here, from a file that they have."""
    command = start_command(request)
    if not command.words:
        what = "is empty" if command.words == [] else "has a quote that does not end"
        return [request.backend.problem(f"{what}, so nodes could not run it; {_USUAL}", START)]
    paths = {script: PurePath(os.path.normpath(script)) for script in command.scripts}
    missing = [
        script
        for script, path in paths.items()
        if not path.is_absolute()
        and str(path) not in {*package, *_WRITTEN}
        and not is_from_platform(request.backend, path)
    ]
    message = "runs `{}`, which is not among the files of the job; add it to `submit.files`"
    problems = [request.backend.problem(message.format(script), START) for script in missing[:1]]
    model = command.model
    if model is None or (builtin_model(model) and model not in package):
        return problems
    problems += start_problems(request)
    if not problems and os.path.normpath(model) not in package:
        message = f"runs `{model}`, but nodes have it as `{config_name(request.config)}`; name that"
        problems.append(request.backend.problem(message, START))
    return problems


def _shown(file: PackageFile) -> str:
    content = file.read()
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"({len(content)} bytes)\n"
