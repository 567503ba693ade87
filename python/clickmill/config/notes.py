"""What is allowed but worth a word: slips among the free keys, and keys that change nothing."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from clickmill._section import known_keys
from clickmill.config.document import dotted
from clickmill.config.hyper import HyperParameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config.config import Config
    from clickmill.config.document import Document, KeyPath
    from clickmill.errors import Problem

_STAGES = ("instance", "network", "startup", "runner", "terminal")
IDLE_RUNNER_KEYS = (
    "trainer_class",
    *(f"{stage}_class_path" for stage in _STAGES),
    "save_inference_path",
    "save_inference_interval",
    "save_inference_feed_varnames",
    "save_inference_fetch_varnames",
)
"""Read for files of older systems, without a counterpart here."""


def notes_of(document: Document, config: Config) -> tuple[Problem, ...]:
    """All notes, those of the document first."""
    return (*document.notes, *_free_keys(document, config), *_idle_keys(document, config))


def _free_keys(document: Document, config: Config) -> Iterator[Problem]:
    """A free key that is nearly a known one is more likely a slip than a model's own key."""
    known = known_keys(HyperParameters)
    for key in config.hyper_parameters.free_keys:
        match = get_close_matches(key, known, n=1, cutoff=0.85)
        if match:
            path: KeyPath = ("hyper_parameters", key)
            message = "is not a key that clickmill knows; it is handed to the model as it is"
            yield document.key_place(path).problem(message, key=dotted(path), suggestion=match[0])


def _idle_keys(document: Document, config: Config) -> Iterator[Problem]:
    """A key that is set to something and does nothing must not look as if it did."""
    for index, runner in enumerate(config.runner):
        for key in IDLE_RUNNER_KEYS:
            if getattr(runner, key) != type(runner).model_fields[key].default:
                yield _idle(document, ("runner", index, key), "has no effect here")
        if runner.device == "gpu" and runner.class_name == "infer":
            yield _idle(document, ("runner", index, "device"), "scores are computed on the CPU")


def _idle(document: Document, path: KeyPath, message: str) -> Problem:
    return document.key_place(path).problem(message, key=dotted(path))
