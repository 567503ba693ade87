"""What a checkpoint holds, in numbers that can be compared with those of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from clickmill import _core
from clickmill.config import load_config
from clickmill.data.source import DataSet
from clickmill.train.checkpoint import open_checkpoint


def parameters(place: Path, checkpoint: Path, data_path: str) -> dict[str, Any]:
    """Dense parameters, the state of their optimizer, and the rows of all signs of the data."""
    config = load_config(str(place / "config.yaml"), overrides=[f"dataset.0.data_path={data_path}"])
    opened = open_checkpoint(checkpoint)
    schema = _core.Schema((checkpoint / "schema.json").read_text())
    data = DataSet(config.dataset_named("log"), place)
    found: dict[str, Any] = dict(load_file(checkpoint / "dense.safetensors"))
    for name, array in load_file(checkpoint / "optimizer.safetensors").items():
        found[f"optimizer.{name}"] = array
    tables = {name: _core.Table.load(opened.table_files(name)) for name in opened.manifest.tables}
    source = data.open_in_order(schema)
    number = 0
    while (batch := source.next()) is not None:
        for group in range(batch.num_groups):
            for name, table in tables.items():
                found[f"{name}.{group}.{number}"] = table.peek(batch.signs(group))
        number += 1
    source.close()
    for name, table in tables.items():
        found[f"{name}.rows"] = np.array([table.rows(), table.step])
    return found


def assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Equal but for the order in which numbers were added."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-5, err_msg=name)
