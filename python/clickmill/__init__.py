"""clickmill: click log in, fresh predictions out."""

from __future__ import annotations

from clickmill.errors import ClickmillError, ConfigError, DataError, FormatError, MissingExtra, StateError

__version__ = "0.1.0"

__all__ = [
    "ClickmillError",
    "ConfigError",
    "DataError",
    "FormatError",
    "MissingExtra",
    "StateError",
    "__version__",
]
