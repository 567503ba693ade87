"""A gate per slot, then a network."""

import torch

from clickmill import nn


class Model(nn.Model):
    """Slots that say nothing about a sample are turned down before the network sees them."""

    def __init__(self, inputs, hyper):
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        table = inputs.tables["embedding"]
        width = len(table.slots) * table.dim
        self.gate = nn.linear(width, len(table.slots))
        self.mlp = nn.MLP(
            width + inputs.num_dense,
            read.sizes("fc_sizes", [128, 64]),
            1,
            dropout=read.number("dropout", 0.0, below=1.0),
        )

    def forward(self, batch):
        rows_BSD = batch.pooled["embedding"]
        gate_BS = torch.sigmoid(self.gate(rows_BSD.flatten(1)))
        gated_BSD = rows_BSD * gate_BS.unsqueeze(2)
        x_BW = torch.cat([batch.dense_BF, gated_BSD.flatten(1)], dim=1)
        return self.mlp(x_BW).squeeze(1)
