"""What the core is told: the JSON objects of its readers and tables, from the sections of config.yaml."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from clickmill.config.optimizers import FTRL, SGD, Adagrad, Adam, RowWiseAdagrad
from clickmill.config.tables import TableOverrides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.config.dataset import DatasetConfig
    from clickmill.config.hyper import HyperParameters
    from clickmill.config.optimizers import SparseOptimizer
    from clickmill.schema.models import TableSpec


def reader_config(
    dataset: DatasetConfig,
    files: Sequence[str | dict[str, Any]],
    *,
    seed: int = 0,
    pass_number: int = 0,
    is_training: bool = True,
    has_binary_label: bool = False,
    share: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Object for `_core.Reader`; `files` are paths, or dicts with `path`, `start` and `end` in bytes.

    What is not trained on is read in its order and to its last sample. `has_binary_label`: any other label
    than 0 and 1 is a bad line. `share`: index and count of the readers that share the files.
    """
    options = {} if dataset.format is None else dataset.format.model_dump(mode="json", exclude_none=True)
    return {
        "files": list(files),
        "format": {**options, "kind": dataset.sample_format},
        "batch_size": dataset.batch_size,
        "threads": dataset.threads or os.cpu_count() or 1,
        "shuffle": shuffle_config(dataset, seed) if is_training else {"kind": "none"},
        "pass": pass_number,
        "max_bad_lines": dataset.max_bad_lines,
        "max_line_bytes": dataset.max_line_bytes,
        "keep_last": dataset.keep_last or not is_training,
        "require_slots": dataset.require_slots,
        "binary_label": has_binary_label,
        "shard": None if share is None else {"index": share[0], "count": share[1], "by": "ranges"},
    }


def shuffle_config(dataset: DatasetConfig, seed: int) -> dict[str, Any]:
    """`shuffle` of a reader."""
    config = dataset.shuffle
    shuffle: dict[str, Any] = {"kind": config.kind}
    if config.kind != "none":
        shuffle["rows"] = config.rows
        shuffle["seed"] = seed if config.seed is None else config.seed
    if config.kind == "block":
        shuffle["block_bytes"] = config.block_bytes
    return shuffle


def table_config(
    spec: TableSpec, hyper: HyperParameters, optimizer: SparseOptimizer | None = None
) -> dict[str, Any]:
    """Object for `_core.Table`: the table's own settings over those of all tables.

    `optimizer` is the one that was chosen for it, where the model had a say.
    """
    own = hyper.tables.get(spec.name, TableOverrides())
    config: dict[str, Any] = {
        "spec": spec.model_dump(mode="json"),
        "optimizer": table_optimizer(
            optimizer or own.optimizer or hyper.table_optimizer, weight_decay=hyper.reg
        ),
        "statistics": own.statistics,
    }
    if own.bucket_bits is not None:
        config["bucket_bits"] = own.bucket_bits
    for key in ("admission", "eviction"):
        section = getattr(own, key)
        if section is not None:
            config[key] = section.model_dump(mode="json", exclude_none=True)
    return config


def table_optimizer(optimizer: SparseOptimizer, *, weight_decay: float = 0.0) -> dict[str, Any]:
    """The core's words for an optimizer of tables; the learning rate goes with each step instead."""
    match optimizer:
        case SGD():
            return {"kind": "sgd", "weight_decay": weight_decay}
        case Adam():
            return {
                "kind": "lazy_adam" if optimizer.lazy_mode else "adam",
                "beta1": optimizer.beta1,
                "beta2": optimizer.beta2,
                "eps": optimizer.epsilon,
                "weight_decay": weight_decay,
            }
        case Adagrad() | RowWiseAdagrad():
            return {
                "kind": "adagrad" if isinstance(optimizer, Adagrad) else "row_wise_adagrad",
                "initial_accumulator": optimizer.initial_accumulator,
                "eps": optimizer.epsilon,
                "weight_decay": weight_decay,
            }
        case FTRL():
            return {
                "kind": "ftrl",
                "beta": optimizer.beta,
                "l1": optimizer.l1,
                "l2": optimizer.l2 + weight_decay,
                "lr_power": optimizer.learning_rate_power,
                "initial_accumulator": optimizer.initial_accumulator,
            }
