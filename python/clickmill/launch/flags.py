"""Flags of the trainers of 2016, which its launcher passed on, as what they are called today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNNER = {
    "num_passes": "epochs",
    "log_period": "print_interval",
    "saving_period": "save_checkpoint_interval",
    "save_dir": "output_path",
    "init_model_path": "init_model_path",
}
_PHASE = {"trainer_count": "thread_num"}
_WITHOUT_MEANING = frozenset({"dot_period", "local", "use_gpu", "ports_num", "ports_num_for_sparse", "nics"})
"""Of the machinery of that time; nothing here has need of them."""


def flag_overrides(flags: Sequence[str], runner: int, phase: int) -> list[str]:
    """`--num_passes=2` as `runner.0.epochs=2`; ConfigError for a flag that means nothing."""
    overrides = []
    for flag in flags:
        name, equals, value = flag.removeprefix("--").partition("=")
        key = name.replace("-", "_")
        if not flag.startswith("--") or not equals:
            raise ConfigError(f"`{flag}` is no flag for trainers", hint="write `--name=value`")
        if key in _RUNNER:
            overrides.append(f"runner.{runner}.{_RUNNER[key]}={value}")
        elif key in _PHASE:
            overrides.append(f"phase.{phase}.{_PHASE[key]}={value}")
        elif key not in _WITHOUT_MEANING:
            known = ", ".join(sorted((*_RUNNER, *_PHASE)))
            raise ConfigError(
                f"trainers have no flag `{name}`", hint=f"known: {known}; everything else goes with `--set`"
            )
    return overrides
