"""bf16 on machines that show AMX and hide the sizes of its tiles, and on all others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clickmill._core import hides_tile_sizes
from clickmill._onednn import VARIABLE

LAYER = f"""
import os
import clickmill.nn, torch
with torch.autocast("cpu", torch.bfloat16):
    torch.nn.Linear(64, 64)(torch.ones(32, 64)).sum().backward()
print(os.environ.get({VARIABLE!r}, ""))
"""


def said(setting: str | None) -> str:
    """What a process prints that computes a layer in bf16, with the variable set or not."""
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environ |= {} if setting is None else {VARIABLE: setting}
    done = subprocess.run(
        [sys.executable, "-c", LAYER], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_layers_are_computed_in_bf16_whatever_the_machine_hides():
    assert said(None) == ("AVX512_CORE_BF16" if hides_tile_sizes() else "")


@pytest.mark.parametrize("setting", ["AVX2", "AVX512_CORE"])
def test_what_the_user_has_set_stays(setting):
    assert said(setting) == setting
