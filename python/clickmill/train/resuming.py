"""What a resumed run must have in common with the one that was stopped.

A checkpoint holds the settings of its run. When the run is resumed each key falls into one of three kinds:

    must match   the state in the checkpoint means nothing under another value: model, slots, data, seed
    noted        the run goes on, but no longer as the one that was stopped: learning rates, workers
    free         changes what is told or written, not what is computed: paths, intervals of printing, epochs
"""

from __future__ import annotations

import json
from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from clickmill.config.urls import without_secrets
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.data.files import FileSize
    from clickmill.data.source import DataSet
    from clickmill.train.checkpoint import Checkpoint

_FREE = (
    "runner.name",
    "runner.class",
    "runner.epochs",
    "runner.phases",
    "runner.device",
    "runner.print_interval",
    "runner.output_path",
    "runner.tensorboard_path",
    "runner.init_*",
    "runner.finetuning_aspect_varnames",
    "runner.save_checkpoint_*",
    "runner.save_step_path",
    "runner.save_step_full_interval",
    "runner.save_inference_*",
    "runner.runner_result_dump_path",
    "runner.*_num",
    "runner.*_class*",
    "runner.fleet_mode",
    "runner.distribute_strategy",
    "runner.selected_gpus",
    "runner.cluster*",
    "runner.communicator*",
    "phase.name",
    "phase.dataset_name",
    "phase.gradient_scale_strategy",
    "dataset.name",
    "dataset.type",
    "dataset.data_path",  # names of the files are part of the reader's position; folders may move
    "dataset.threads",
    "dataset.require_slots",
    "dataset.schema*",  # compared as the schema that comes of it
    "dataset.sparse_slots",
    "dataset.dense_slots*",
    "dataset.label_slot",
)
_NOTED = (
    "runner.precision",
    "runner.max_batches",
    "runner.learning_rate_schedule*",
    "runner.early_stopping*",
    "runner.clip_norm",
    "runner.progressive_validation",
    "runner.evaluate_*",
    "runner.save_step_interval",
    "runner.evict_interval",
    "phase.thread_num",
    "dataset.validation.data_path",
    "dataset.max_*",
    "hyper_parameters.reg",
    "hyper_parameters.*optimizer.*",
    "hyper_parameters.tables.*.admission*",
    "hyper_parameters.tables.*.eviction*",
    "hyper_parameters.tables.*.bucket_bits",
)
_FIXED = ("hyper_parameters.*optimizer.class",)
"""Would be noted by the rules above, but the state of one optimizer is not that of another."""


CLUSTER_KEY = "is_in_units"
"""In the state of a checkpoint that a cluster took in the middle of a pass, where no one reader has been."""

_MOST_FILES = 10
"""Changed files that a message names."""


def settings_of(
    config: Config, runner: RunnerConfig, phase: PhaseConfig, *, schema_json: str
) -> dict[str, Any]:
    """What a checkpoint remembers of the configuration; `schema_json` before it was fitted to the data.

    Secrets in URLs are not among it: others read checkpoints, and a run goes on with a new signature.
    """

    def plain(section: Any) -> Any:
        return without_secrets(section.model_dump(mode="json", by_alias=True))

    schema = json.loads(schema_json)
    return {
        "runner": plain(runner),
        "phase": plain(phase),
        "dataset": plain(config.dataset_named(phase.dataset_name)),
        "hyper_parameters": config.hyper_parameters.model_dump(mode="json", by_alias=True),
        "slots": {slot["name"]: slot for slot in schema["slots"]},
        "tables": {table["name"]: table for table in schema["tables"]},
    }


def check_place(checkpoint: Checkpoint) -> None:
    """Refuse the checkpoint of a cluster in the middle of a pass: only its snapshots know what was read."""
    if checkpoint.read_json("trainer.json").get(CLUSTER_KEY):
        raise ConfigError(
            f"`{checkpoint.folder}` was taken by a cluster in the middle of a pass; a single process cannot "
            "go on from there",
            hint="go on with the cluster, or start a new run from it with `init_model_path`",
        )


def check_settings(checkpoint: Checkpoint, now: Mapping[str, Any], model_source: str | None) -> list[str]:
    """Changes that are noted, in words; ConfigError for those that must not be."""
    # Those of before may be from a time when URLs were written down as they are.
    before = without_secrets(checkpoint.read_json("settings.json"))
    wrong = []
    noted = []
    for key, old, new in _differences(before, json.loads(json.dumps(now)), ""):
        words = f"`{key}` was {_words(old)}, is {_words(new)}"
        if _matches(key, _FIXED):
            wrong.append(words)
        elif _matches(key, _NOTED):
            noted.append(words)
        elif not _matches(key, _FREE):
            wrong.append(words)
    own = checkpoint.folder / "model.py"
    if not wrong and own.is_file() and own.read_text(encoding="utf-8") != model_source:
        wrong.append(f"the text of `{now['phase']['model']}` is not that of `{own}`")
    if wrong:
        lines = "".join(f"\n  {words}" for words in wrong)
        raise ConfigError(
            f"cannot resume from `{checkpoint.folder}`: it was written under another configuration{lines}",
            hint=f"undo the change, or start a new run with `init_model_path: {checkpoint.folder}`",
        )
    return noted


def check_files(checkpoint: Checkpoint, data: DataSet) -> None:
    """Refuse to go on inside a pass whose files are not what they were when it began."""
    pass_number = checkpoint.manifest.pass_number
    before = [(name, size) for name, size in checkpoint.read_json("trainer.json").get("files", [])]
    changes = _file_changes(before, data.file_sizes(pass_number)) if before else []
    if not changes:
        return
    more = len(changes) - _MOST_FILES
    lines = [f"\n  {words}" for words in changes[:_MOST_FILES]] + (
        [f"\n  and {more} more"] if more > 0 else []
    )
    raise ConfigError(
        f"cannot resume in the middle of pass {pass_number}: "
        f"the files have changed since it began{''.join(lines)}",
        hint="bring them back as they were, or start a new run with "
        f"`init_model_path: {checkpoint.folder}`; between passes files may change",
    )


def _file_changes(before: list[FileSize], now: list[FileSize]) -> list[str]:
    names, names_now = [name for name, _ in before], [name for name, _ in now]
    if names == names_now:
        return [
            f"`{name}` had {old} bytes, has {new}"
            for (name, old), (_, new) in zip(before, now, strict=True)
            if old != new
        ]
    gone, new = Counter(names) - Counter(names_now), Counter(names_now) - Counter(names)
    words = [f"`{name}` is not among them any more" for name in gone.elements()]
    words += [f"`{name}` is new" for name in new.elements()]
    return words or ["they stand in another order"]


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Dotted key, old value and new value wherever two trees of dicts differ; absent counts as None."""
    if old == new:
        return
    if not isinstance(old, dict) or not isinstance(new, dict):
        yield path, old, new
        return
    for key in sorted(old.keys() | new.keys()):
        yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)


def _matches(key: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _words(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
