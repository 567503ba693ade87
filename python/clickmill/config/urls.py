"""Keys of a configuration that may name something elsewhere by a URL, and what is written down of it."""

from __future__ import annotations

from typing import Any

from clickmill.store.remote.url import is_url, shown

URL_KEYS = frozenset(
    {
        "data_path",
        "init_model_path",
        "init_pretraining_model_path",
        "save_checkpoint_path",
        "save_step_path",
    }
)
_OF_USERS = frozenset({"hyper_parameters", "reader_options"})
"""Sections in which keys are what a user's code takes them for."""


def without_secrets(values: Any) -> Any:
    """Plain values of a configuration, with its URLs as a log shows them.

    For files that others may read, and that go along with checkpoints: nobody logs in by what is in them.
    """
    if isinstance(values, list):
        return [without_secrets(value) for value in values]
    if not isinstance(values, dict):
        return values
    return {key: _of_key(key, value) for key, value in values.items()}


def _of_key(key: str, value: Any) -> Any:
    if key in _OF_USERS:
        return value
    return _shown(value) if key in URL_KEYS else without_secrets(value)


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(text) for text in value]
    return shown(value) if isinstance(value, str) and is_url(value) else value
