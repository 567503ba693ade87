"""clickmill: click log in, fresh predictions out."""

from __future__ import annotations

from clickmill.errors import (
    AbsentSlotError,
    ClickmillError,
    ConfigError,
    DataError,
    DivergedError,
    FormatError,
    MissingExtra,
    StateError,
    StorageError,
)

__version__ = "0.1.0"

__all__ = [
    "AbsentSlotError",
    "ClickmillError",
    "ConfigError",
    "DataError",
    "DivergedError",
    "FormatError",
    "MissingExtra",
    "StateError",
    "StorageError",
    "__version__",
]
