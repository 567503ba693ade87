"""Optional dependencies: what is missing and how to get it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from clickmill.errors import MissingExtra

EXTRAS = {
    "torch": "train",
    "safetensors": "train",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "obstore": "s3",
    "hdfs_native": "hdfs",
    "httpx2": "http",
}
"""Module and the extra that brings it."""


def install_command(module: str) -> str:
    """What to type to get `module`."""
    return f"pip install 'clickmill[{EXTRAS[module]}]'"


def require(module: str, *, purpose: str) -> Any:
    """The module. Raises MissingExtra with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name not in {module, None}:
            raise
        message = f"{purpose} needs {module}, which is not installed"
        raise MissingExtra(message, hint=install_command(module)) from error
