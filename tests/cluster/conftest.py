from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.checkpoints import fingerprint
from tests.cluster import fleet
from tests.remote.fixtures import *  # noqa: F403

CONFIG = """
workspace: "."
mode: train
runner:
- name: train
  class: train
  epochs: 2
  print_interval: 1
  output_path: run
  save_checkpoint_interval: 1
  save_step_interval: 6
  evict_interval: 9
dataset:
- name: log
  format: slots
  data_path: train.txt
  validation: {data_path: test.txt}
  batch_size: 100
  threads: 2
  max_bad_lines: null
  schema:
    slots:
    - {kind: label, name: click}
    - {kind: dense, name: price}
    - {kind: sparse, name: user}
    - {kind: sparse, name: item}
    - {kind: sparse, name: tags, pooling: mean, max_length: 3, missing: skip}
phase:
- name: only
  model: dnn
  dataset_name: log
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.01}
  sparse_feature_dim: 4
  fc_sizes: [16, 8]
  tables:
    embedding: {eviction: {ttl_steps: 12}, admission: {kind: count, at: 2, sketch_bits: 12}}
"""

READER = """
import json
from pathlib import Path


class Reader:
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for path in self.files:
            with open(path) as lines:
                for line in lines:
                    yield json.loads(line)
"""

MODEL = '''
import torch

from clickmill import nn


class Model(nn.Model):
    """Two layers with everything that keeps a state or draws at random."""

    def __init__(self, inputs, hyper):
        super().__init__(inputs, hyper)
        table = inputs.tables["embedding"]
        width = inputs.num_dense + table.dim * len(table.slots)
        self.normal = torch.nn.BatchNorm1d(width)
        self.hidden = torch.nn.Linear(width, 16)
        self.dropout = torch.nn.Dropout(0.2)
        self.frozen = torch.nn.Linear(16, 16).requires_grad_(False)
        self.out = torch.nn.Linear(16, 1)

    def forward(self, batch):
        x_BX = torch.cat([batch.dense_BF, batch.pooled["embedding"].flatten(1)], dim=1)
        x_BX = torch.relu(self.hidden(self.normal(x_BX)))
        return self.out(self.frozen(self.dropout(x_BX))).squeeze(1)
'''


def samples(count: int, seed: int) -> list[dict[str, object]]:
    draw = random.Random(seed)
    made: list[dict[str, object]] = []
    for _ in range(count):
        user, item = draw.randrange(300), int(draw.paretovariate(0.8)) % 500
        odds = 0.15 + 0.5 * (user % 7 == item % 7)
        made.append(
            {
                "click": int(draw.random() < odds),
                "price": round(draw.random(), 4),
                "user": f"u{user}",
                "item": f"i{item}",
                "tags": [f"t{draw.randrange(20)}" for _ in range(draw.randrange(4))],
            }
        )
    return made


def slots_text(rows: list[dict[str, object]]) -> str:
    lines = []
    for number, row in enumerate(rows):
        tags = "".join(f" tags:{tag}" for tag in row["tags"])
        lines.append(
            f"click:{row['click']} price:{row['price']} user:{row['user']} item:{row['item']}{tags}\n"
        )
        if number % 97 == 0:
            lines.append("click:maybe this line is bad\n")
    return "".join(lines)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same samples in every form that can be read."""
    folder = tmp_path_factory.mktemp("data")
    for name, count in (("train", 3950), ("test", 700)):
        rows = samples(count, seed=count)
        text = slots_text(rows)
        (folder / f"{name}.txt").write_text(text)
        with gzip.open(folder / f"{name}.gz", "wt") as file:
            file.write(text)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet", row_group_size=1000)
    return folder


@pytest.fixture
def workplace(tmp_path: Path, data: Path) -> Path:
    """A folder with the data, a configuration, a user's reader and a user's model."""
    for path in data.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def lay_out(place: Path, data: Path) -> Path:
    for path in data.glob("*.txt"):
        (place / path.name).symlink_to(path)
    (place / "config.yaml").write_text(fleet.CONFIG)
    return place


@pytest.fixture
def cluster_place(tmp_path: Path, data: Path) -> Path:
    """A folder with the data and the configuration of a cluster."""
    return lay_out(tmp_path, data)


@pytest.fixture(scope="session")
def undisturbed_sync(tmp_path_factory: pytest.TempPathFactory, data: Path) -> dict[str, Any]:
    """What two lanes come to that nothing happens to: one server, one trainer."""
    place = lay_out(tmp_path_factory.mktemp("undisturbed"), data)
    own, summary = fleet.run_fleet(place, 1, 1, gather_s=0.01)
    own.assert_exact(summary)
    return fingerprint(place / summary["checkpoint"])
