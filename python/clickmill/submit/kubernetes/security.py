"""How little pods may do: what the `restricted` standard for pods asks for, and a read-only root."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object

USER = 1000
"""Of the image."""


def pod_security() -> Object:
    """Of the pod: volumes that can be given away belong to the group of the user."""
    return {
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "runAsGroup": USER,
        "runAsNonRoot": True,
        "runAsUser": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Object:
    """Of its container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
