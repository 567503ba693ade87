"""The loop that most people write in PyTorch: DataLoader workers parse, the main process trains.

In the time: starting the workers, opening the files, reading, parsing, forward, backward, update.
Not in it: imports (the first optimizer step imports for seconds: two steps of a throw-away network come
before), initial parameters, evaluation.
"""

# B batch, S sparse slots, F dense features.
from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from measure import Stopwatch, auc, report
from multislot import HASH_SIZE, NUM_DENSE, NUM_SPARSE, batches
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

if TYPE_CHECKING:
    from collections.abc import Iterator

EMBEDDING_DIM = 10
LAYERS = (400, 400, 400)


class Log(IterableDataset[tuple[torch.Tensor, ...]]):
    """Batches of the files; with several workers, each reads its share of the files."""

    def __init__(self, paths: list[Path], batch_size: int) -> None:
        self.paths = paths
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        worker = get_worker_info()
        paths = self.paths if worker is None else self.paths[worker.id :: worker.num_workers]
        for path in paths:
            for arrays in batches(path, self.batch_size):
                yield tuple(torch.from_numpy(array) for array in arrays)


class Network(nn.Module):
    def __init__(self, hash_size: int = HASH_SIZE) -> None:
        super().__init__()
        self.embedding = nn.Embedding(hash_size, EMBEDDING_DIM, sparse=True)
        nn.init.uniform_(self.embedding.weight, -0.01, 0.01)
        sizes = (NUM_SPARSE * EMBEDDING_DIM + NUM_DENSE, *LAYERS)
        layers: list[nn.Module] = []
        for width, size in pairwise(sizes):
            layers += [linear(width, size), nn.ReLU()]
        self.dense = nn.Sequential(*layers, linear(sizes[-1], 1))

    def forward(self, dense_BF: torch.Tensor, ids_BS: torch.Tensor) -> torch.Tensor:
        rows = self.embedding(ids_BS).flatten(1)
        return self.dense(torch.cat([rows, dense_BF], dim=1)).squeeze(1)


def linear(width: int, size: int) -> nn.Linear:
    layer = nn.Linear(width, size)
    nn.init.normal_(layer.weight, std=width**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


class Trainer:
    def __init__(self, network: Network, *, bf16: bool) -> None:
        self.network = network
        self.bf16 = bf16
        self.dense_optimizer = torch.optim.Adam(network.dense.parameters(), lr=1e-3, fused=True)
        self.sparse_optimizer = torch.optim.SparseAdam(network.embedding.parameters(), lr=1e-3)

    def step(self, label_B: torch.Tensor, dense_BF: torch.Tensor, ids_BS: torch.Tensor) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            logit_B = self.network(dense_BF, ids_BS)
        loss = nn.functional.binary_cross_entropy_with_logits(logit_B.float(), label_B)
        self.dense_optimizer.zero_grad()
        self.sparse_optimizer.zero_grad()
        loss.backward()
        self.dense_optimizer.step()
        self.sparse_optimizer.step()


def warm_up(*, bf16: bool) -> None:
    trainer = Trainer(Network(hash_size=1000), bf16=bf16)
    ids_BS = torch.randint(1000, (1000, NUM_SPARSE))
    for _ in range(2):
        trainer.step(torch.zeros(1000), torch.zeros(1000, NUM_DENSE), ids_BS)


def held_out_auc(network: Network, path: Path) -> float:
    labels, scores = [], []
    with torch.no_grad():
        for label_B, dense_BF, ids_BS in batches(path, 10_000):
            scores.append(network(torch.from_numpy(dense_BF), torch.from_numpy(ids_BS)).numpy())
            labels.append(label_B)
    return auc(np.concatenate(labels), np.concatenate(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--train", type=Path, nargs="+", required=True, help="one file or more for each worker"
    )
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    bf16 = arguments.precision == "bf16"
    warm_up(bf16=bf16)
    torch.manual_seed(arguments.seed)
    network = Network()
    trainer = Trainer(network, bf16=bf16)
    with Stopwatch() as watch:
        loader = DataLoader(
            Log(arguments.train, arguments.batch_size), batch_size=None, num_workers=arguments.workers
        )
        for batch in loader:
            trainer.step(*batch)
    report(
        arguments.samples,
        watch,
        auc=held_out_auc(network, arguments.test),
        versions={"torch": torch.__version__},
    )


if __name__ == "__main__":
    main()
