"""The same committee in plain PyTorch: one dense embedding over the vocabulary, dense Adam."""

# N samples, B batch, P positions (values of all slots), S slots, F dense features, W width of the flat input.
from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from measure import Stopwatch, auc, report
from quality_model import COMMITTEES, configuration, describe, restarts
from real_data import LOADERS, RealData
from torch import nn

if TYPE_CHECKING:
    from clickmill.config import Config


class DeepCross(nn.Module):
    """DCN-V2 with full matrices beside an MLP; several values of a slot are summed."""

    def __init__(self, data: RealData, hyper: dict[str, Any]) -> None:
        super().__init__()
        dim = hyper["sparse_feature_dim"]
        self.embedding = nn.Embedding(data.num_ids, dim)
        nn.init.uniform_(self.embedding.weight, -0.01, 0.01)
        pooling_PS = torch.zeros(len(data.slot_of_P), len(data.slots))
        pooling_PS[torch.arange(len(data.slot_of_P)), torch.tensor(data.slot_of_P)] = 1.0
        self.is_single = pooling_PS.shape[0] == pooling_PS.shape[1]
        self.register_buffer("pooling_PS", pooling_PS)
        width = len(data.slots) * dim + data.dense_NF.shape[1]
        self.crosses = nn.ModuleList(nn.Linear(width, width) for _ in range(hyper["num_cross_layers"]))
        for cross in self.crosses:
            nn.init.xavier_normal_(cross.weight)
            nn.init.zeros_(cross.bias)
        layers: list[nn.Module] = []
        inputs = width
        for size in hyper["fc_sizes"]:
            layers += [linear(inputs, size), nn.ReLU(), nn.Dropout(hyper["dropout"])]
            inputs = size
        self.deep = nn.Sequential(*layers)
        self.out = linear(width + inputs, 1)

    def forward(self, ids_BP: torch.Tensor, dense_BF: torch.Tensor) -> torch.Tensor:
        rows = self.embedding(ids_BP)
        if not self.is_single:
            rows = torch.einsum("bpd,ps->bsd", rows, self.pooling_PS)
        x_BW = torch.cat([dense_BF, rows.flatten(1)], dim=1)
        crossed_BW = x_BW
        for cross in self.crosses:
            crossed_BW = x_BW * cross(crossed_BW) + crossed_BW
        return self.out(torch.cat([crossed_BW, self.deep(x_BW)], dim=1)).squeeze(1)


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


def restart(embedding: nn.Embedding, initial: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    """Rows and their moments as at the beginning; the step goes on."""
    with torch.no_grad():
        embedding.weight.copy_(initial)
    state = optimizer.state[embedding.weight]
    state["exp_avg"].zero_()
    state["exp_avg_sq"].zero_()


def train(data: RealData, config: Config, first_pass: int) -> list[np.ndarray]:
    """Held-out scores after each pass from `first_pass` on."""
    network = DeepCross(data, config.hyper_parameters.for_model())
    initial = network.embedding.weight.detach().clone()
    dense = [value for name, value in network.named_parameters() if not name.startswith("embedding")]
    optimizer = torch.optim.Adam(
        [
            {
                "params": network.embedding.parameters(),
                "lr": config.hyper_parameters.table_optimizer.learning_rate,
            },
            {"params": dense},
        ],
        lr=config.hyper_parameters.optimizer.learning_rate,
        fused=True,
    )
    ids_NP, dense_NF = torch.from_numpy(data.ids_NP), torch.from_numpy(data.dense_NF)
    label_N = torch.from_numpy(data.label_N)
    scores = []
    for number in range(config.runners()[0].epochs):
        if number > 0 and restarts(config):
            restart(network.embedding, initial, optimizer)
        network.train()
        for rows in torch.randperm(data.num_train).split(config.dataset[0].batch_size):
            logit_B = network(ids_NP[rows], dense_NF[rows])
            loss = nn.functional.binary_cross_entropy_with_logits(logit_B, label_N[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if number >= first_pass:
            scores.append(held_out_scores(network, data))
    return scores


@torch.no_grad()
def held_out_scores(network: DeepCross, data: RealData) -> np.ndarray:
    network.eval()
    ids_NP, dense_NF = torch.from_numpy(data.ids_NP), torch.from_numpy(data.dense_NF)
    starts = range(data.num_train, len(data.label_N), 10_000)
    logits = [network(ids_NP[start : start + 10_000], dense_NF[start : start + 10_000]) for start in starts]
    return torch.cat(logits).sigmoid().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(LOADERS), required=True)
    arguments = parser.parse_args()

    data = LOADERS[arguments.set](arguments.data)
    label_N = data.label_N[data.num_train :]
    committee = COMMITTEES[arguments.set]
    config = configuration(arguments.set)
    runs = []
    with Stopwatch() as watch:
        for seed in range(1, committee.num_runs + 1):
            torch.manual_seed(seed)
            runs.append(np.mean(train(data, config, committee.first_pass), axis=0))
    report(
        data.num_train * config.runners()[0].epochs * committee.num_runs,
        watch,
        auc=auc(label_N, np.mean(runs, axis=0)),
        aucs_of_single_runs=[auc(label_N, run) for run in runs],
        model=describe(config, committee),
        split=data.split,
        versions={"torch": torch.__version__},
    )


if __name__ == "__main__":
    main()
