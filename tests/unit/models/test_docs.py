"""The model of the guide runs as printed, and the reference names every model."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from clickmill import nn
from clickmill.models import BUILT_IN

DOCS = Path(__file__).parents[3] / "docs"


def test_the_model_of_the_guide_trains_and_is_as_short_as_it_says(tmp_path: Path) -> None:
    source = re.findall(r"```python\n(.*?)```", (DOCS / "guides/own-model.md").read_text(), re.DOTALL)[0]
    (tmp_path / "model.py").write_text(source)
    inputs = nn.Inputs(2, {"embedding": nn.TableInputs(4, ("a", "b", "c"))})
    model = nn.load_model_class("model.py", tmp_path)(inputs, {"dropout": 0.1})
    rows = torch.randn(16, 3, 4, requires_grad=True)
    features = nn.Features(torch.rand(16, 2), {"embedding": rows})
    model.loss(model(features), torch.ones(16)).backward()
    assert rows.grad is not None
    assert all(parameter.grad is not None for parameter in model.parameters())
    code = [line for line in source.splitlines() if line.strip()]
    assert len(code) <= 30


def test_the_reference_has_a_line_for_each_model() -> None:
    text = (DOCS / "reference/models.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(BUILT_IN)
