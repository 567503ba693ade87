"""The DNN in plain PyTorch: one dense embedding table, dense Adam, samples in the order of the file."""

# N samples, B batch, S sparse slots, F dense features.
from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import torch
from measure import Stopwatch, auc, report
from quality_model import HYPER_PARAMETERS, HyperParameters
from real_data import LOADERS, RealData
from torch import nn


class Network(nn.Module):
    def __init__(self, data: RealData, hyper: HyperParameters) -> None:
        super().__init__()
        self.embedding = nn.Embedding(data.num_ids, hyper.dim)
        nn.init.uniform_(self.embedding.weight, -hyper.init_scale, hyper.init_scale)
        width = data.ids_NS.shape[1] * hyper.dim + data.dense_NF.shape[1]
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((width, *hyper.layers)):
            layers += [linear(inputs, outputs), nn.ReLU()]
        self.dense = nn.Sequential(*layers, linear(hyper.layers[-1], 1))

    def forward(self, ids_BS: torch.Tensor, dense_BF: torch.Tensor) -> torch.Tensor:
        return self.dense(torch.cat([self.embedding(ids_BS).flatten(1), dense_BF], dim=1)).squeeze(1)


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


def train(network: Network, data: RealData, hyper: HyperParameters) -> None:
    groups = [
        {
            "params": network.embedding.parameters(),
            "lr": hyper.embedding_learning_rate,
            "weight_decay": hyper.embedding_l2,
        },
        {"params": network.dense.parameters()},
    ]
    optimizer = torch.optim.Adam(groups, lr=hyper.learning_rate, fused=True)
    ids_NS, dense_NF = torch.from_numpy(data.ids_NS), torch.from_numpy(data.dense_NF)
    label_N = torch.from_numpy(data.label_N)
    for _ in range(hyper.passes):
        for start in range(0, data.num_train, hyper.batch_size):
            rows = slice(start, min(start + hyper.batch_size, data.num_train))
            logit_B = network(ids_NS[rows], dense_NF[rows])
            loss = nn.functional.binary_cross_entropy_with_logits(logit_B, label_N[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def held_out_auc(network: Network, data: RealData) -> float:
    ids_NS, dense_NF = torch.from_numpy(data.ids_NS), torch.from_numpy(data.dense_NF)
    starts = range(data.num_train, len(data.label_N), 10_000)
    scores = [network(ids_NS[start : start + 10_000], dense_NF[start : start + 10_000]) for start in starts]
    return auc(data.label_N[data.num_train :], torch.cat(scores).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(LOADERS), required=True)
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs with different seeds; their mean is reported"
    )
    arguments = parser.parse_args()

    data = LOADERS[arguments.set](arguments.data)
    hyper = HYPER_PARAMETERS[arguments.set]
    aucs = []
    with Stopwatch() as watch:
        for seed in range(1, arguments.seeds + 1):
            torch.manual_seed(seed)
            network = Network(data, hyper)
            train(network, data, hyper)
            aucs.append(held_out_auc(network, data))
    report(
        data.num_train * hyper.passes * arguments.seeds,
        watch,
        auc=sum(aucs) / len(aucs),
        aucs=aucs,
        model=hyper.describe(),
        split=data.split,
        versions={"torch": torch.__version__},
    )


if __name__ == "__main__":
    main()
