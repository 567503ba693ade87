"""Deep Interest Network: of what a user did before, only what resembles the candidate counts.

Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018. A behaviour is a slot with
`pooling: none` that shares its vocabulary, and so its rows, with the slot of the candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from clickmill import nn
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeepInterest(nn.Model):
    """All pooled rows and dense features, and one interest vector per behaviour, through an MLP.

    sequence_slot and target_slot (required; lists of equal length for several behaviours),
    attention_sizes ([80, 40]), normalise_attention (false), fc_sizes ([400, 400, 400]), dropout (0),
    batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        table = inputs.tables[nn.EMBEDDING]
        self.sequences = read.names("sequence_slot", ())
        targets = read.names("target_slot", ())
        _check(table, self.sequences, targets)
        self.targets = tuple(table.slots.index(target) for target in targets)
        self.flat = nn.FlatInput(inputs, sequences=self.sequences)
        sizes = read.sizes("attention_sizes", (80, 40))
        if not sizes:
            raise ConfigError("hyper_parameters.attention_sizes is empty; at least one layer is needed")
        is_normalised = read.flag("normalise_attention", default=False)
        self.units = torch.nn.ModuleList(
            nn.ActivationUnit(table.dim, sizes, is_normalised=is_normalised) for _ in self.sequences
        )
        self.mlp = nn.MLP(
            self.flat.width + len(self.sequences) * table.dim,
            read.sizes("fc_sizes", (400, 400, 400)),
            1,
            batch_norm=read.flag("batch_norm", default=False),
            dropout=read.number("dropout", 0.0, below=1.0),
        )

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        rows_BSD = batch.pooled[nn.EMBEDDING]
        parts = [self.flat(batch)]
        for slot, target, unit in zip(self.sequences, self.targets, self.units, strict=True):
            interest_BD = unit(rows_BSD[:, target], batch.sequences[nn.EMBEDDING, slot])
            parts.append(interest_BD.to(rows_BSD.dtype))
        logit_B1: torch.Tensor = self.mlp(torch.cat(parts, dim=1))
        return logit_B1.squeeze(1)


def _check(table: nn.TableInputs, sequences: tuple[str, ...], targets: tuple[str, ...]) -> None:
    if not sequences or len(sequences) != len(targets):
        raise ConfigError(
            "the model `din` needs hyper_parameters.sequence_slot and target_slot, as many of each"
        )
    for slot in sequences:
        if slot not in table.sequences:
            known = ", ".join(table.sequences) or "none"
            raise ConfigError(
                f"hyper_parameters.sequence_slot names `{slot}`, which is no sequence; sequences: {known}",
                hint=f"set `pooling: none` for slot `{slot}`",
            )
    for slot in targets:
        if slot not in table.slots:
            raise ConfigError(
                f"hyper_parameters.target_slot names `{slot}`; pooled slots: {', '.join(table.slots)}"
            )
