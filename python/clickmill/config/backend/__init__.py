"""backend.yaml: where a job is trained; models of its sections, loader and checks."""

from __future__ import annotations

from clickmill.config.backend.kubernetes import (
    KubernetesConfig,
    NfsVolume,
    OutputVolume,
    Resources,
    RoleResources,
    Toleration,
    Volume,
)
from clickmill.config.backend.load import load_backend, parse_backend, secrets_in
from clickmill.config.backend.models import (
    BackendConfig,
    ClusterFiles,
    MpiBackend,
    SshBackend,
    SubmitConfig,
)

__all__ = [
    "BackendConfig",
    "ClusterFiles",
    "KubernetesConfig",
    "MpiBackend",
    "NfsVolume",
    "OutputVolume",
    "Resources",
    "RoleResources",
    "SshBackend",
    "SubmitConfig",
    "Toleration",
    "Volume",
    "load_backend",
    "parse_backend",
    "secrets_in",
]
