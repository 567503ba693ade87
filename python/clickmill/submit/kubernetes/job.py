"""A job on Kubernetes from what was asked for: files, variables, data and credentials."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config.backend.secrets import S3_KEYS, VARIABLES
from clickmill.store.remote.access import HTTP_TOKEN, secret
from clickmill.submit.kubernetes.plan import make_plan
from clickmill.submit.package import collect_package, config_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clickmill.config import DatasetConfig
    from clickmill.submit.kubernetes.plan import JobPlan
    from clickmill.submit.request import Request

FS_UGI = VARIABLES["config", "fs_ugi"]
FS_NAME = VARIABLES["config", "fs_name"]
UPLOAD = "CLICKMILL_UPLOAD"
S3_SETTINGS = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""Where a store of one's own is; no secrets."""
FOLDERS = {
    "train_data": "train_data_path",
    "test_data": "test_data_path",
    "thirdparty": "thirdparty_path",
    "afs": "afs_remote_mount_point",
}
"""Folders of a node, and the key that says where on the file system of the job they come from."""


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
        environment=dict(_variables(request, environ)),
        access_variables=tuple(access_of(request, environ)),
    )


def access_of(request: Request, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Credentials that pods need for HDFS, S3 and HTTP, by variable; each only where the job needs it.

    Pods have no files of this machine: what a variable with `_FILE` names goes along as the variable itself.
    Raises ConfigError where such a file cannot be read.
    """
    environ = os.environ if environ is None else environ
    found = {FS_UGI: request.backend.config.fs_ugi.get_secret_value()}
    if _is_on(request, "s3://", "s3a://", "s3n://"):
        found |= {name: secret(name, environ) or "" for name in S3_KEYS}
    if _is_on(request, "http://", "https://"):
        found[HTTP_TOKEN] = secret(HTTP_TOKEN, environ) or ""
    return {name: value for name, value in found.items() if value}


def data_overrides(request: Request) -> Iterator[str]:
    """Data sets in `./train_data` and the like are read from where `config` says that those come from.

    A volume that is mounted there comes first.
    """
    backend, config = request.backend, request.config
    here = Path(os.path.normpath(Path(config.file).parent / config.workspace))
    mounts = {os.path.normpath(volume.mount) for volume in backend.kubernetes.volumes}

    def place(text: str) -> str:
        path = Path(os.path.normpath(text))
        folder, *rest = path.relative_to(here).parts if path.is_relative_to(here) else (None,)
        key = FOLDERS.get(folder or "")
        remote = getattr(backend.config, key) if key and folder not in mounts else ""
        return _joined(backend.config.fs_name, remote, *rest) if remote else text

    for index, dataset in enumerate(config.dataset):
        for key, texts in _data_paths(dataset):
            paths = [place(text) for text in texts]
            if paths != list(texts):
                yield f"dataset.{index}.{key}={json.dumps(paths)}"


def _data_paths(dataset: DatasetConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "data_path", dataset.data_path
    if dataset.validation is not None and dataset.validation.data_path:
        yield "validation.data_path", dataset.validation.data_path


def upload_place(request: Request) -> str:
    """URL to which the job puts its checkpoints, too; empty where nothing was said."""
    files = request.backend.config
    if not files.output_path or "://" in files.output_path:
        return files.output_path
    return _joined(files.fs_name, files.output_path)


def _joined(*parts: str) -> str:
    """`hdfs://host/folder/part`; a pattern or a file behind the folder stays behind it."""
    first, *others = parts
    return "/".join([first.rstrip("/"), *(part.strip("/") for part in others if part.strip("/"))])


def _variables(request: Request, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What every process of the job is told besides its place."""
    if request.backend.config.fs_name:
        yield FS_NAME, request.backend.config.fs_name
    if place := upload_place(request):
        yield UPLOAD, place
    communicator = request.backend.config.communicator
    for key in sorted(communicator.model_fields_set):
        prefix = "FLAGS_" if key.startswith("rpc_") else "FLAGS_communicator_"
        yield f"{prefix}{key}", str(int(getattr(communicator, key)))
    if _is_on(request, "s3://", "s3a://", "s3n://"):
        for name in S3_SETTINGS:
            if environ.get(name):
                yield name, environ[name]


def _is_on(request: Request, *schemes: str) -> bool:
    """Whether the job reads or writes there."""
    texts = [
        path for dataset in request.config.dataset for _, paths in _data_paths(dataset) for path in paths
    ]
    texts += [request.backend.config.fs_name, upload_place(request)]
    texts += [str(value) for value in request.runner.model_dump().values()]
    return any(text.startswith(schemes) for text in texts)
