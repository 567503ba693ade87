"""Hyper-parameters of the quality runs, shared by all peers that train the DNN."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HyperParameters:
    layers: tuple[int, ...]
    batch_size: int
    passes: int
    dim: int = 10
    learning_rate: float = 1e-3
    # The table has a rate of its own: most of its rows are seen a few times only.
    embedding_learning_rate: float = 1e-3
    # Weight decay inside Adam, on every row of the table at every step, as torch.optim.Adam has it.
    embedding_l2: float = 0.0
    init_scale: float = 0.01

    def describe(self) -> str:
        layers = "-".join(str(size) for size in self.layers)
        text = f"DNN {layers}, dim {self.dim}, batch {self.batch_size}, passes {self.passes}"
        text += f", Adam {self.learning_rate:g} (embedding {self.embedding_learning_rate:g})"
        return text + (f", L2 {self.embedding_l2:g} on the embedding" if self.embedding_l2 else "")


HYPER_PARAMETERS = {
    "criteo_85k": HyperParameters(layers=(128, 64), batch_size=256, passes=1, embedding_learning_rate=5e-3),
    "avazu_37k": HyperParameters(layers=(128, 64), batch_size=100, passes=1),
    "movielens_1m": HyperParameters(layers=(128, 64), batch_size=1000, passes=2),
}
