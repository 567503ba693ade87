"""A job on Kubernetes from what was asked for: files, variables, data and credentials."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from clickmill.config.backend.secrets import S3_KEYS
from clickmill.store.remote.access import HTTP_TOKEN, secret
from clickmill.store.remote.url import store_of
from clickmill.submit.file_system import FS_NAME, FS_UGI
from clickmill.submit.kubernetes.data import data_overrides, sources
from clickmill.submit.kubernetes.plan import make_plan
from clickmill.submit.outputs import outputs_of
from clickmill.submit.package import collect_package, config_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clickmill.submit.kubernetes.plan import JobPlan
    from clickmill.submit.request import Request

UPLOAD = "CLICKMILL_UPLOAD"
HDFS_USER = "HADOOP_USER_NAME"
S3_SETTINGS = (
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_SKIP_SIGNATURE",
)
"""Where a store of one's own is."""


def plan_job(request: Request, namespace: str, environ: Mapping[str, str] | None = None) -> JobPlan:
    """The plan of the job in a namespace. Raises ConfigError with all that does not fit on Kubernetes."""
    environ = os.environ if environ is None else environ
    files = collect_package(request.config, request.backend)
    return make_plan(
        request.config,
        request.backend,
        {file.name: file.read() for file in files},
        namespace=namespace,
        config_file=config_name(request.config) or request.source.model,
        overrides=(*request.source.overrides, *data_overrides(request)),
        environment=dict(_variables(request)),
        own_variables=_own_variables(request, environ),
        access_variables=tuple(access_of(request, environ)),
    )


def access_of(request: Request, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Credentials that pods need for HDFS, S3 and HTTP, by variable; each only where the job needs it.

    Pods have no files of this machine: what a variable with `_FILE` names goes along as the variable itself.
    Raises ConfigError where such a file cannot be read.
    """
    environ = os.environ if environ is None else environ
    found = {FS_UGI: request.backend.config.fs_ugi.get_secret_value()}
    if _is_on(request, "s3"):
        found |= {name: secret(name, environ) or "" for name in S3_KEYS}
    if _is_on(request, "http", "https"):
        found[HTTP_TOKEN] = secret(HTTP_TOKEN, environ) or ""
    return {name: value for name, value in found.items() if value}


def upload_place(request: Request) -> str:
    """URL to which the job puts its checkpoints, too; empty where nothing was said."""
    files, told = request.backend.config, request.backend.kubernetes.env.get(UPLOAD)
    if told is not None:
        return told
    return files.url_of(files.output_path) if files.output_path else ""


def _variables(request: Request) -> Iterator[tuple[str, str]]:
    """What every process of the job is told besides its place."""
    if request.backend.config.fs_name:
        yield FS_NAME, request.backend.config.fs_name
    if place := upload_place(request):
        yield UPLOAD, place
    communicator = request.backend.config.communicator
    for key in sorted(communicator.model_fields_set):
        prefix = "FLAGS_" if key.startswith("rpc_") else "FLAGS_communicator_"
        yield f"{prefix}{key}", str(int(getattr(communicator, key)))


def _own_variables(request: Request, environ: Mapping[str, str]) -> dict[str, str]:
    """What pods must know of this machine's environment, secrets apart; only where the job needs it."""
    names = [*S3_SETTINGS] if _is_on(request, "s3") else []
    if _is_on(request, "hdfs"):
        names.append(HDFS_USER)
    return {name: environ[name] for name in names if environ.get(name)}


def _is_on(request: Request, *stores: str) -> bool:
    """Whether the job reads or writes there."""
    texts = [*sources(request), *(each.text for each in outputs_of(request))]
    texts += [request.backend.config.fs_name, upload_place(request)]
    return any(store_of(text) in stores for text in texts)
