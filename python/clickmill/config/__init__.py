"""config.yaml: one frozen model for each section, and a loader that reports every problem with its place."""

from __future__ import annotations

from clickmill.config.builtin import BUILTIN_MODELS, builtin_model
from clickmill.config.config import Config
from clickmill.config.dataset import DatasetConfig, ShuffleConfig, ValidationConfig
from clickmill.config.hyper import HyperParameters
from clickmill.config.load import load_config, parse_config, plain
from clickmill.config.native import reader_config, table_config
from clickmill.config.phase import PhaseConfig
from clickmill.config.runner import EarlyStopping, KeepPolicy, RunnerConfig
from clickmill.config.tables import EvictionConfig, TableOverrides

__all__ = [
    "BUILTIN_MODELS",
    "Config",
    "DatasetConfig",
    "EarlyStopping",
    "EvictionConfig",
    "HyperParameters",
    "KeepPolicy",
    "PhaseConfig",
    "RunnerConfig",
    "ShuffleConfig",
    "TableOverrides",
    "ValidationConfig",
    "builtin_model",
    "load_config",
    "parse_config",
    "plain",
    "reader_config",
    "table_config",
]
