"""Two towers: a user and a film each become a vector, and their cosine says how much the one likes the other.

The MovieLens demo of 2016 (`demo/recommendation`). The network and its loss, the mean squared error, work on
`stars * 2 - 5`, which makes sqrt(loss) / 2 the error in stars. By default the label has that scale already,
and so has the prediction; with `label: stars` both are stars, and the RMSE is the error in stars directly.
The demo's vectors were 256 wide: `sparse_feature_dim: 256`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch

from clickmill import nn
from clickmill.errors import ConfigError
from clickmill.nn.fields import refuse_sequences

if TYPE_CHECKING:
    from collections.abc import Mapping


class TwoTower(nn.Model):
    """Every slot through a layer of its own, a fusion layer per tower, the cosine times a scale.

    user_slots (user_id gender age occupation), item_slots (movie_id title genres), fusion_size (256),
    similarity_scale (5), title_context (5, window over a sequence), label (scaled, or stars),
    sparse_feature_dim (32).
    """

    task: ClassVar[Literal["binary", "regression"]] = "regression"

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        users = read.names("user_slots", ("user_id", "gender", "age", "occupation"))
        items = read.names("item_slots", ("movie_id", "title", "genres"))
        refuse_sequences(inputs, known=(*users, *items))
        size, context = read.integer("fusion_size", 256), read.integer("title_context", 5)
        self.user = _Tower(inputs, "user_slots", users, size, context)
        self.item = _Tower(inputs, "item_slots", items, size, context)
        self.scale = read.number("similarity_scale", 5.0)
        self.is_in_stars = read.choice("label", "scaled", ("scaled", "stars")) == "stars"

    @classmethod
    def tables(cls, hyper: Mapping[str, Any]) -> tuple[nn.TableRequest, ...]:
        """Wider vectors than other models have: a cosine needs room."""
        return (nn.embedding_table(hyper, default_dim=32),)

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """`stars * 2 - 5`, as the network sees it: logit_B."""
        user_BH, item_BH = self.user(batch).float(), self.item(batch).float()
        return self.scale * torch.nn.functional.cosine_similarity(user_BH, item_BH, dim=1)

    def loss(
        self, logit_B: torch.Tensor, label_B: torch.Tensor, weight_B: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Mean squared error on `stars * 2 - 5`."""
        target_B = label_B * 2.0 - 5.0 if self.is_in_stars else label_B
        error_B = (logit_B.float() - target_B).square()
        return (error_B if weight_B is None else error_B * weight_B).mean()

    def predict(self, logit_B: torch.Tensor) -> torch.Tensor:
        """In the scale of the label."""
        return (logit_B.float() + 5.0) / 2.0 if self.is_in_stars else logit_B.float()

    def derived_metrics(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """The demo's error: in stars, whatever the scale of the label."""
        return {"error_in_stars": metrics["rmse"] if self.is_in_stars else metrics["rmse"] / 2.0}


class _Tower(torch.nn.Module):
    """Pooled slots through one batched product, sequences through a convolution, all into a fusion layer."""

    positions: torch.Tensor

    def __init__(self, inputs: nn.Inputs, key: str, slots: tuple[str, ...], size: int, context: int) -> None:
        super().__init__()
        table = inputs.tables[nn.EMBEDDING]
        for slot in slots:
            if slot not in table.slots and slot not in table.sequences:
                known = ", ".join((*table.slots, *table.sequences))
                raise ConfigError(f"hyper_parameters.{key} names `{slot}`; sparse slots: {known}")
        pooled = [table.slots.index(slot) for slot in slots if slot in table.slots]
        self.sequences = tuple(slot for slot in slots if slot in table.sequences)
        self.register_buffer("positions", torch.tensor(pooled, dtype=torch.long), persistent=False)
        weights = torch.empty(len(pooled), table.dim, size)
        self.weights = torch.nn.Parameter(torch.nn.init.normal_(weights, std=table.dim**-0.5))
        self.bias = torch.nn.Parameter(torch.zeros(len(pooled), 1, size))
        self.pools = torch.nn.ModuleList(
            nn.ConvolutionPool(table.dim, size, context=context) for _ in self.sequences
        )
        self.fusion = nn.linear(len(slots) * size, size)

    def forward(self, batch: nn.Features) -> torch.Tensor:
        rows_SBD = batch.pooled[nn.EMBEDDING].index_select(1, self.positions).transpose(0, 1)
        hidden_SBH = torch.relu(torch.baddbmm(self.bias, rows_SBD, self.weights))
        parts = [hidden_SBH.transpose(0, 1).flatten(1)]
        parts += [
            pool(batch.sequences[nn.EMBEDDING, slot]).to(hidden_SBH.dtype)
            for slot, pool in zip(self.sequences, self.pools, strict=True)
        ]
        tower_BH: torch.Tensor = torch.tanh(self.fusion(torch.cat(parts, dim=1)))
        return tower_BH
