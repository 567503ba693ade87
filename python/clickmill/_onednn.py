"""oneDNN, in which torch multiplies matrices on CPUs, on machines that it takes for others than they are."""

from __future__ import annotations

import os

from clickmill._core import hides_tile_sizes

VARIABLE = "ONEDNN_MAX_CPU_ISA"
_WITHOUT_TILES = "AVX512_CORE_BF16"


def avoid_hidden_tiles() -> None:
    """Have bf16 computed without AMX where a virtual machine shows AMX and hides the sizes of its tiles.

    oneDNN would choose it and fail at the first layer. What the user has set stays.
    """
    if hides_tile_sizes():
        os.environ.setdefault(VARIABLE, _WITHOUT_TILES)
