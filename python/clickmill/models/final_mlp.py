"""FinalMLP: two plain networks that see the input through different gates, joined by a bilinear product.

Mao et al., "FinalMLP: An Enhanced Two-Stream MLP Model for CTR Prediction", AAAI 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class FinalMLP(nn.Model):
    """Two gated streams and their bilinear fusion; dense features are fields too.

    fc_sizes ([400, 400, 400]) and second_fc_sizes ([400]) of the streams, num_heads (10) of the fusion,
    gate_sizes ([64]), first_gate_slots and second_gate_slots (none: a learnt context), dropout (0),
    batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        self.fields = nn.Fields(inputs)
        gate_sizes = read.sizes("gate_sizes", (64,))
        gates, streams = [], []
        for gate_key, size_key, sizes in (
            ("first_gate_slots", "fc_sizes", (400, 400, 400)),
            ("second_gate_slots", "second_fc_sizes", (400,)),
        ):
            context = _positions(inputs, gate_key, read.names(gate_key, ()))
            gates.append(nn.FieldGate(self.fields.width, self.fields.dim, context, gate_sizes))
            streams.append(
                nn.MLP(
                    self.fields.width,
                    read.sizes(size_key, sizes),
                    batch_norm=read.flag("batch_norm", default=False),
                    dropout=read.number("dropout", 0.0, below=1.0),
                )
            )
        self.first_gate, self.second_gate = gates
        self.first, self.second = streams
        num_heads = read.integer("num_heads", 10)
        if self.first.width % num_heads or self.second.width % num_heads:
            raise ConfigError(
                f"hyper_parameters.num_heads is {num_heads}; it must divide the last sizes of both streams, "
                f"{self.first.width} and {self.second.width}"
            )
        self.fusion = nn.BilinearFusion(self.first.width, self.second.width, num_heads)

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        fields_BND = self.fields(batch)
        x_BW = fields_BND.flatten(1)
        first = self.first(self.first_gate(x_BW, fields_BND))
        second = self.second(self.second_gate(x_BW, fields_BND))
        logit_B: torch.Tensor = self.fusion(first, second)
        return logit_B


def _positions(inputs: nn.Inputs, key: str, names: tuple[str, ...]) -> tuple[int, ...]:
    slots = inputs.tables[nn.EMBEDDING].slots
    for name in names:
        if name not in slots:
            raise ConfigError(f"hyper_parameters.{key} names `{name}`; pooled slots: {', '.join(slots)}")
    return tuple(slots.index(name) for name in names)
