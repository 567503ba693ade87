"""Options of single models: variants run, and what cannot work is refused in words."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clickmill import nn
from clickmill.errors import ConfigError
from clickmill.schema.models import ZerosInit

SLOTS = ("a", "b", "c")
NUM_SAMPLES = 8


def inputs(num_dense: int = 2, slots: tuple[str, ...] = SLOTS, sequences: tuple[str, ...] = ()) -> nn.Inputs:
    return nn.Inputs(
        num_dense,
        {
            "embedding": nn.TableInputs(4, slots, dict.fromkeys(sequences, 5)),
            "wide": nn.TableInputs(1, slots),
        },
    )


def features(num_dense: int = 2, sequences: tuple[str, ...] = ()) -> nn.Features:
    torch.manual_seed(3)
    return nn.Features(
        torch.rand(NUM_SAMPLES, num_dense),
        {"embedding": torch.randn(NUM_SAMPLES, 3, 4), "wide": torch.randn(NUM_SAMPLES, 3, 1)},
        {
            ("embedding", slot): nn.Sequence(torch.randn(NUM_SAMPLES, 5, 4), torch.arange(NUM_SAMPLES) % 6)
            for slot in sequences
        },
    )


@pytest.mark.parametrize(
    ("name", "hyper"),
    [
        ("dcn_v2", {"low_rank": 2, "num_experts": 3}),
        ("dcn_v2", {"structure": "stacked"}),
        ("dnn", {"batch_norm": True, "dropout": 0.3}),
        ("dnn", {"fc_sizes": [512, 256, 128, 32]}),
        ("autoint", {"fc_sizes": [8], "scaled_attention": True}),
        ("final_mlp", {"batch_norm": True}),
        ("dlrm", {"bottom_sizes": []}),
    ],
)
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_variants_run(name: str, hyper: dict[str, Any], precision: torch.dtype) -> None:
    model = nn.load_model_class(name)(inputs(), hyper)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
        logit = model(features())
    assert logit.shape == (NUM_SAMPLES,)
    assert logit.isfinite().all()


@pytest.mark.parametrize(
    "name", ["lr", "fm", "dnn", "wide_deep", "deepfm", "xdeepfm", "dcn_v2", "autoint", "dlrm", "final_mlp"]
)
def test_a_log_without_dense_features_is_fine(name: str) -> None:
    model = nn.load_model_class(name)(inputs(num_dense=0), {})
    model(features(num_dense=0)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", ["lr", "fm", "dnn", "dcn_v2", "dlrm", "final_mlp", "two_tower"])
def test_a_sequence_that_nobody_reads_is_refused(name: str) -> None:
    hyper = {"user_slots": "a", "item_slots": "b c"}
    with pytest.raises(ConfigError, match="slot `history` is a sequence"):
        nn.load_model_class(name)(inputs(sequences=("history",)), hyper)


def test_wide_and_deep_suggests_ftrl_for_its_wide_rows_that_start_at_zero() -> None:
    embedding, wide = nn.load_model_class("wide_deep").tables({})
    assert (embedding.dim, embedding.optimizer) == (9, None)
    assert wide.init == ZerosInit()
    assert wide.optimizer is not None
    assert wide.optimizer["class"] == "FTRL"


@pytest.mark.parametrize(
    ("name", "hyper", "words"),
    [
        ("dnn", {"fc_sizes": "400"}, r"hyper_parameters.fc_sizes is '400'; allowed: a list"),
        ("dnn", {"fc_sizes": [400, 0]}, "positive whole numbers"),
        ("dnn", {"dropout": 1.0}, "hyper_parameters.dropout is 1.0; allowed: a number, 0.0 to less than 1.0"),
        ("dnn", {"batch_norm": 1}, "batch_norm is 1; allowed: true or false"),
        ("dcn_v2", {"structure": "both"}, "one of parallel, stacked"),
        (
            "dcn_v2",
            {"num_cross_layers": True},
            "num_cross_layers is True; allowed: a whole number, 1 or more",
        ),
        ("xdeepfm", {"cin_sizes": []}, "cin_sizes is empty"),
        ("final_mlp", {"num_heads": 7}, "must divide the last sizes of both streams, 400 and 400"),
        (
            "final_mlp",
            {"first_gate_slots": ["nobody"]},
            "first_gate_slots names `nobody`; pooled slots: a, b, c",
        ),
        ("din", {}, "needs hyper_parameters.sequence_slot and target_slot"),
        ("din", {"sequence_slot": "a", "target_slot": "b"}, "`a`, which is no sequence; sequences: none"),
        ("two_tower", {}, "user_slots names `user_id`; sparse slots: a, b, c"),
    ],
)
def test_hyper_parameters_that_cannot_work_are_named(name: str, hyper: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        nn.load_model_class(name)(inputs(), hyper)


def test_a_number_that_yaml_took_for_text_gets_a_hint() -> None:
    with pytest.raises(ConfigError) as caught:
        nn.Hyper({"dropout": "1e-1"}).number("dropout", 0.0)
    assert "1.0e-3" in (caught.value.hint or "")


def test_din_reads_several_behaviours() -> None:
    hyper = {"sequence_slot": ["seen", "bought"], "target_slot": ["a", "b"], "fc_sizes": [8]}
    model = nn.load_model_class("din")(inputs(sequences=("seen", "bought")), hyper)
    assert model(features(sequences=("seen", "bought"))).shape == (NUM_SAMPLES,)


def test_two_towers_stay_within_the_scale_and_speak_stars_when_asked() -> None:
    hyper = {"user_slots": "a", "item_slots": "b c", "fusion_size": 8}
    logit = nn.load_model_class("two_tower")(inputs(0), hyper)(features(0))
    assert logit.abs().max() <= 5.0
    stars = nn.load_model_class("two_tower")(inputs(0), {**hyper, "label": "stars"})
    scaled = nn.load_model_class("two_tower")(inputs(0), hyper)
    target = torch.tensor([1.0, 5.0])
    prediction = torch.tensor([-2.0, 5.0])
    torch.testing.assert_close(stars.predict(prediction), torch.tensor([1.5, 5.0]))
    torch.testing.assert_close(stars.loss(prediction, target), scaled.loss(prediction, target * 2 - 5))
    error_in_stars = (stars.predict(prediction) - target).square().mean().sqrt()
    torch.testing.assert_close(stars.loss(prediction, target).sqrt() / 2, error_in_stars)
