"""What two runs must have in common to be called equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from clickmill import _core
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.journal import read_journal

_CLOCKS = {"time", "samples_per_second", "seconds", "stages"}


def fingerprint(folder: Path) -> dict[str, Any]:
    """Everything that a checkpoint says, bit for bit: dense, optimizer, rows, metrics and position."""
    checkpoint = open_checkpoint(folder)
    state = checkpoint.read_json("trainer.json")
    del state["journal_bytes"]  # the journal holds times
    return {
        "dense": {name: array.tobytes() for name, array in load_file(folder / "dense.safetensors").items()},
        "optimizer": {
            name: array.tobytes() for name, array in load_file(folder / "optimizer.safetensors").items()
        },
        "tables": {
            name: _core.Table.load(checkpoint.table_files(name)).digest()
            for name in checkpoint.manifest.tables
        },
        "trainer": state,
        "metrics": checkpoint.manifest.metrics,
    }


def history(run: Path) -> list[dict[str, Any]]:
    """The journal without clocks, without the folder, and without the marks of starting and resuming."""
    return [
        {
            key: Path(value).name if key == "folder" else value
            for key, value in event.items()
            if key not in _CLOCKS
        }
        for event in read_journal(run)
        if event["event"] != "run_start"
    ]
