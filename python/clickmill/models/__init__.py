"""Built-in models, one file each. This table names them without importing any, so without PyTorch."""

from __future__ import annotations

from typing import Final

BUILT_IN: Final[dict[str, tuple[str, str]]] = {
    "lr": ("clickmill.models.lr", "LogisticRegression"),
    "fm": ("clickmill.models.fm", "FactorisationMachine"),
    "dnn": ("clickmill.models.dnn", "DeepNetwork"),
    "wide_deep": ("clickmill.models.wide_deep", "WideDeep"),
    "deepfm": ("clickmill.models.deepfm", "DeepFM"),
    "xdeepfm": ("clickmill.models.xdeepfm", "XDeepFM"),
    "dcn_v2": ("clickmill.models.dcn_v2", "DeepCross"),
    "autoint": ("clickmill.models.autoint", "AutoInt"),
    "dlrm": ("clickmill.models.dlrm", "DLRM"),
    "final_mlp": ("clickmill.models.final_mlp", "FinalMLP"),
    "din": ("clickmill.models.din", "DeepInterest"),
    "two_tower": ("clickmill.models.two_tower", "TwoTower"),
}
"""Name in a configuration: module and class."""

__all__ = ["BUILT_IN"]
