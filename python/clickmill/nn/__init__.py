"""What models are made of: the `Model` base class, what it is given, and layers for click models.

This package needs PyTorch; the rest of clickmill does not.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from clickmill.errors import MissingExtra

    raise MissingExtra("models need PyTorch", hint="pip install 'clickmill[train]'") from error

from clickmill._onednn import avoid_hidden_tiles
from clickmill.nn.attention import ActivationUnit, FieldAttention
from clickmill.nn.cin import CompressedInteraction
from clickmill.nn.cross import CrossNetwork, LowRankCrossNetwork
from clickmill.nn.dot import DotInteraction
from clickmill.nn.dropout import Dropout, replace_dropout, seed_batch
from clickmill.nn.factorisation import FirstOrder, second_order
from clickmill.nn.fields import Fields, FlatInput
from clickmill.nn.fusion import BilinearFusion, FieldGate
from clickmill.nn.hyper import Hyper
from clickmill.nn.inputs import Features, Inputs, Sequence, TableInputs, TableRequest
from clickmill.nn.loading import load_model_class
from clickmill.nn.mlp import MLP, linear
from clickmill.nn.model import EMBEDDING, WIDE, Model, embedding_table, wide_table
from clickmill.nn.sequence import ConvolutionPool, sequence_mask

# oneDNN reads its settings when torch calls it for the first time, which no import does.
avoid_hidden_tiles()

__all__ = [
    "EMBEDDING",
    "MLP",
    "WIDE",
    "ActivationUnit",
    "BilinearFusion",
    "CompressedInteraction",
    "ConvolutionPool",
    "CrossNetwork",
    "DotInteraction",
    "Dropout",
    "Features",
    "FieldAttention",
    "FieldGate",
    "Fields",
    "FirstOrder",
    "FlatInput",
    "Hyper",
    "Inputs",
    "LowRankCrossNetwork",
    "Model",
    "Sequence",
    "TableInputs",
    "TableRequest",
    "embedding_table",
    "linear",
    "load_model_class",
    "replace_dropout",
    "second_order",
    "seed_batch",
    "sequence_mask",
    "wide_table",
]
