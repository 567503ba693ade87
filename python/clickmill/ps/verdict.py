"""The coordinator's last word on a run, as an error that has the right exit code."""

from __future__ import annotations

from clickmill.errors import ClickmillError, DataError, FormatError, RunFailedError

_KINDS: dict[int, type[ClickmillError]] = {3: DataError, 4: FormatError}
"""By exit code: samples that cannot be trained on, a damaged snapshot."""


def verdict(exit_code: int, words: str) -> ClickmillError:
    """What is raised in every process of a run that has ended with `exit_code`, which is not 0."""
    return _KINDS.get(exit_code, RunFailedError)(words)
