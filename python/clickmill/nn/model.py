"""The class that every model derives from, a built-in one and a user's `model.py` alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch.nn import functional

from clickmill.nn.hyper import Hyper
from clickmill.nn.inputs import Features, Inputs, TableRequest
from clickmill.schema.models import UniformInit, ZerosInit

if TYPE_CHECKING:
    from collections.abc import Mapping

EMBEDDING = "embedding"
"""Table of the vectors that most models look up."""
WIDE = "wide"
"""Table of first-order weights, one number per sign."""


def embedding_table(hyper: Mapping[str, Any], *, default_dim: int = 9) -> TableRequest:
    """The table of vectors, `sparse_feature_dim` wide."""
    read = Hyper(hyper)
    return TableRequest(
        name=EMBEDDING,
        dim=read.integer("sparse_feature_dim", default_dim),
        init=UniformInit(scale=read.number("sparse_init_scale", 0.01)),
    )


def wide_table(optimizer: Mapping[str, Any] | None = None) -> TableRequest:
    """The table of first-order weights; they start at zero, so that an unknown sign says nothing."""
    return TableRequest(name=WIDE, dim=1, init=ZerosInit(), optimizer=optimizer)


class Model(torch.nn.Module):
    """Turns a batch of features into one logit per sample.

    A subclass builds its layers in `__init__` and computes in `forward`. It holds dense parameters only: rows
    of tables come with the batch, already looked up and pooled, and the trainer takes their gradients back.
    """

    task: ClassVar[Literal["binary", "regression"]] = "binary"
    """`binary`: labels other than 0 and 1 are bad lines. `regression`: labels, and what `predict` gives, are
    any numbers. The metrics follow."""

    def __init__(self, inputs: Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__()
        self.inputs = inputs
        self.hyper = hyper

    @classmethod
    def tables(cls, hyper: Mapping[str, Any]) -> tuple[TableRequest, ...]:
        """Tables that the model needs; by default one, `embedding`."""
        return (embedding_table(hyper),)

    def forward(self, batch: Features) -> torch.Tensor:
        """logit_B."""
        raise NotImplementedError(f"{type(self).__name__} has no `forward(self, batch)`")

    def loss(
        self, logit_B: torch.Tensor, label_B: torch.Tensor, weight_B: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Mean over the samples of the batch; a weight of two counts a sample's gradient twice.

        Divided by B and not by the sum of weights, so that the parts of a split batch add up.
        """
        return functional.binary_cross_entropy_with_logits(logit_B.float(), label_B, weight_B)

    def predict(self, logit_B: torch.Tensor) -> torch.Tensor:
        """score_B: what is compared with the label, here the probability of a click."""
        return torch.sigmoid(logit_B.float())

    def derived_metrics(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Numbers under names of the model's own, made from the metrics of a stream and told beside them.

        For errors in the units that people think in; none by default.
        """
        del metrics
        return {}
