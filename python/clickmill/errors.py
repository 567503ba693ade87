"""Everything that clickmill raises on purpose.

ClickmillError
  ConfigError(ValueError)   a configuration or schema that cannot mean anything: place, value, what is allowed
  DataError                 samples that cannot be read: file, line, column, reason
  FormatError               a file of ours that is damaged or of another version: file, offset, expected, found
  StateError(RuntimeError)  a call that does not fit the state of the object
  MissingExtra(ImportError) an optional dependency is not installed: what to install
"""

from __future__ import annotations


class ClickmillError(Exception):
    """Base of all errors that a user can mend; `hint` says how, where there is more to say."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(ClickmillError, ValueError):
    """A configuration or schema that cannot mean anything."""


class DataError(ClickmillError):
    """Samples that cannot be read."""


class FormatError(ClickmillError):
    """A file of ours that is damaged or of another version."""


class StateError(ClickmillError, RuntimeError):
    """A call that does not fit the state of the object it is made on."""


class MissingExtra(ClickmillError, ImportError):
    """An optional dependency is not installed."""
