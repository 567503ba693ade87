"""The same model in plain PyTorch: `nn.EmbeddingBag` on the card, and batches that lie there ready-made.

`--rows dense` updates the whole table in every step with fused Adam, `--rows sparse` the rows of the batch
with SparseAdam. The table has 1,000,001 rows, as that of the seeds; signs are taken modulo its size.
"""

# B batch, S sparse slots, D width of a row.
from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from measure import Stopwatch, report
from torch import nn

from clickmill import _core
from clickmill.config import parse_config
from clickmill.data.source import DataSet
from clickmill.nn import Features, load_model_class
from clickmill.schema import build_schema
from clickmill.train.features import make_feeds, make_inputs

CONFIG = """
workspace: "."
mode: train
runner:
- {{name: train, class: train}}
dataset:
- {{name: train, format: criteo, data_path: "{train}", batch_size: {batch}, threads: 8}}
phase:
- {{name: only, model: {model}, dataset_name: train}}
hyper_parameters:
  sparse_feature_dim: 10
  fc_sizes: [400, 400, 400]
"""
NUM_ROWS = 1_000_001


class Network(nn.Module):
    def __init__(self, dense: nn.Module, *, is_sparse: bool) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(NUM_ROWS, 10, mode="sum", sparse=is_sparse)
        nn.init.uniform_(self.bag.weight, -0.01, 0.01)
        self.dense = dense

    def forward(self, dense_BF: torch.Tensor, ids_BS: torch.Tensor) -> torch.Tensor:
        pooled_BSD = self.bag(ids_BS.view(-1, 1)).view(*ids_BS.shape, -1)
        return self.dense(Features(dense_BF, {"embedding": pooled_BSD}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--rows", choices=["dense", "sparse"], required=True)
    parser.add_argument("--batch", type=int, default=65_536)
    parser.add_argument("--skip", type=int, default=6)
    options = parser.parse_args()
    config = parse_config(CONFIG.format(**vars(options)))
    dataset, hyper = config.dataset[0], config.hyper_parameters
    model_class = load_model_class(options.model, Path())
    requests = model_class.tables(hyper.for_model())
    schema = build_schema(dataset, hyper, requests).to_core()
    device = torch.device("cuda")
    inputs = make_inputs(schema, make_feeds(schema))
    batches = []
    source = DataSet(dataset, Path()).open(schema, 0)
    while (batch := source.next()) is not None:
        ids = (batch.signs(0)[batch.inverse(0)] % NUM_ROWS).astype(np.int64).reshape(batch.num_rows, -1)
        arrays = (batch.labels[:, 0].copy(), batch.dense.copy(), ids)
        batches.append([torch.from_numpy(array).to(device) for array in arrays])
    source.close()

    network = Network(model_class(inputs, hyper.for_model()), is_sparse=options.rows == "sparse").to(device)
    if options.rows == "sparse":
        optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Adam(network.dense.parameters(), lr=1e-3, fused=True),
            torch.optim.SparseAdam(network.bag.parameters(), lr=1e-3),
        ]
    else:
        optimizers = [torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)]

    def step(label_B: torch.Tensor, dense_BF: torch.Tensor, ids_BS: torch.Tensor) -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bf16"):
            logit_B = network(dense_BF, ids_BS)
        loss = nn.functional.binary_cross_entropy_with_logits(logit_B.float(), label_B)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    for batch in batches[: options.skip]:
        step(*batch)
    torch.cuda.synchronize()
    samples = 0
    with Stopwatch() as watch:
        for batch in batches[options.skip :]:
            step(*batch)
            samples += len(batch[0])
        torch.cuda.synchronize()
    steps = len(batches) - options.skip
    versions = {"clickmill": json.loads(_core.build_info())["version"], "torch": torch.__version__}
    report(samples, watch, ms_a_step=round(1000 * watch.wall_s / steps, 2), versions=versions)


if __name__ == "__main__":
    main()
