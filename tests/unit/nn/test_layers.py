"""Layers against the formulas of their papers, written out element by element."""

from __future__ import annotations

import itertools

import pytest
import torch

from clickmill import nn

B, N, D = 5, 4, 3


@pytest.fixture
def fields_BND() -> torch.Tensor:
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_second_order_is_the_sum_over_pairs(fields_BND: torch.Tensor) -> None:
    pairs = [(fields_BND[:, i] * fields_BND[:, j]).sum(1) for i, j in itertools.combinations(range(N), 2)]
    torch.testing.assert_close(nn.second_order(fields_BND), torch.stack(pairs).sum(0))


def test_dot_interaction_is_every_pair_once(fields_BND: torch.Tensor) -> None:
    pairs = [(fields_BND[:, i] * fields_BND[:, j]).sum(1) for i in range(N) for j in range(i)]
    layer = nn.DotInteraction(N)
    torch.testing.assert_close(layer(fields_BND), torch.stack(pairs, 1))
    assert layer.width == len(pairs)


def test_cross_network_is_its_recurrence() -> None:
    x0 = torch.randn(B, 6, dtype=torch.float64)
    network = nn.CrossNetwork(6, 3).double()
    x = x0
    for layer in network.layers:
        x = x0 * (x @ layer.weight.T + layer.bias) + x
    torch.testing.assert_close(network(x0), x)


def test_low_rank_cross_network_is_the_gated_sum_of_its_experts() -> None:
    x0 = torch.randn(B, 6, dtype=torch.float64)
    network = nn.LowRankCrossNetwork(6, 2, rank=2, num_experts=3).double()
    torch.nn.init.normal_(network.bias)
    x = x0
    for index in range(2):
        gate = torch.softmax(x @ network.gates[index].weight.T, dim=1)
        update = torch.zeros_like(x)
        for expert in range(3):
            low = torch.tanh(torch.tanh(x @ network.down[index, expert]) @ network.core[index, expert])
            update += gate[:, [expert]] * x0 * (low @ network.up[index, expert] + network.bias[index])
        x = update + x
    torch.testing.assert_close(network(x0), x)


def test_compressed_interaction_is_the_papers_sum(fields_BND: torch.Tensor) -> None:
    network = nn.CompressedInteraction(N, [2, 3]).double()
    maps, pooled = fields_BND, []
    for weight in network.weights:
        num_maps = weight.shape[2]
        new = torch.zeros(B, num_maps, D, dtype=torch.float64)
        for j, i, h in itertools.product(range(N), range(maps.shape[1]), range(num_maps)):
            new[:, h] += weight[j, i, h] * maps[:, i] * fields_BND[:, j]
        maps = new
        pooled.append(maps.sum(2))
    torch.testing.assert_close(network(fields_BND), torch.cat(pooled, 1))


@pytest.mark.parametrize("is_scaled", [False, True])
def test_field_attention_is_softmax_of_queries_and_keys(fields_BND: torch.Tensor, is_scaled: bool) -> None:
    layer = nn.FieldAttention(D, num_heads=2, head_dim=3, is_scaled=is_scaled).double()
    query, key, value, residual = layer.project(fields_BND).split(6, dim=2)
    heads = []
    for head in (slice(0, 3), slice(3, 6)):
        score = query[..., head] @ key[..., head].transpose(1, 2) / (3**0.5 if is_scaled else 1.0)
        heads.append(torch.softmax(score, dim=2) @ value[..., head])
    torch.testing.assert_close(layer(fields_BND), torch.relu(torch.cat(heads, 2) + residual))


@pytest.mark.parametrize("is_normalised", [False, True])
def test_activation_unit_weighs_each_real_item(is_normalised: bool) -> None:
    unit = nn.ActivationUnit(D, [6, 5], is_normalised=is_normalised).double()
    target, values = torch.randn(B, D, dtype=torch.float64), torch.randn(B, 4, D, dtype=torch.float64)
    lengths = torch.tensor([4, 0, 1, 2, 3])
    found = unit(target, nn.Sequence(values, lengths))
    for sample in range(B):
        items = values[sample, : lengths[sample]]
        pair = torch.cat([items, items * target[sample]], dim=1)
        weights = unit.rest(unit.of_item(pair) + unit.of_target(target[sample])).squeeze(1)
        if is_normalised:
            weights = torch.softmax(weights.float(), 0).double()
        torch.testing.assert_close(found[sample], weights @ items, atol=1e-6, rtol=1e-6)


def test_padding_is_never_read() -> None:
    lengths = torch.tensor([0, 1, 2, 3, 4])
    values = torch.randn(B, 4, D)
    garbage = values.clone()
    garbage[~nn.sequence_mask(nn.Sequence(values, lengths))] = 1e6
    torch.manual_seed(0)
    unit, pool = nn.ActivationUnit(D, [6]), nn.ConvolutionPool(D, 7)
    target = torch.randn(B, D)
    torch.testing.assert_close(
        unit(target, nn.Sequence(garbage, lengths)), unit(target, nn.Sequence(values, lengths))
    )
    torch.testing.assert_close(pool(nn.Sequence(garbage, lengths)), pool(nn.Sequence(values, lengths)))


def test_convolution_pool_is_the_best_window() -> None:
    pool = nn.ConvolutionPool(D, 7, context=3).double()
    values = torch.randn(1, 4, D, dtype=torch.float64)
    zero = torch.zeros(1, D, dtype=torch.float64)
    padded = torch.cat([zero, values[0, :3], zero])
    windows = torch.stack([pool.project(padded[start : start + 3].flatten()) for start in range(3)])
    found = pool(nn.Sequence(values, torch.tensor([3])))
    torch.testing.assert_close(found[0], torch.relu(windows).amax(0))
    assert pool(nn.Sequence(values, torch.tensor([0]))).abs().sum() == 0


def test_bilinear_fusion_is_the_sum_over_heads() -> None:
    fusion = nn.BilinearFusion(6, 4, 2).double()
    x, y = torch.randn(B, 6, dtype=torch.float64), torch.randn(B, 4, dtype=torch.float64)
    expected = fusion.of_x(x).squeeze(1) + fusion.of_y(y).squeeze(1)
    for head in range(2):
        left, right = x[:, 3 * head : 3 * head + 3], y[:, 2 * head : 2 * head + 2]
        expected = expected + torch.einsum("bi,ij,bj->b", left, fusion.weights[head], right)
    torch.testing.assert_close(fusion(x, y), expected)


def test_first_order_adds_signs_dense_features_and_bias() -> None:
    layer = nn.FirstOrder(nn.Inputs(2, {"wide": nn.TableInputs(1, ("a", "b"))}))
    torch.nn.init.normal_(layer.weight_F)
    torch.nn.init.constant_(layer.bias, 0.5)
    dense, wide = torch.rand(B, 2), torch.rand(B, 2, 1)
    expected = wide[:, 0, 0] + wide[:, 1, 0] + dense @ layer.weight_F + 0.5
    torch.testing.assert_close(layer(nn.Features(dense, {"wide": wide})), expected)


def test_flat_input_takes_dense_first_then_every_table_but_the_wide_one() -> None:
    inputs = nn.Inputs(
        2,
        {
            "narrow": nn.TableInputs(2, ("a",)),
            "wide": nn.TableInputs(1, ("a", "b")),
            "broad": nn.TableInputs(3, ("b", "c")),
        },
    )
    layer = nn.FlatInput(inputs)
    tables = {"narrow": torch.rand(B, 1, 2), "wide": torch.rand(B, 2, 1), "broad": torch.rand(B, 2, 3)}
    dense = torch.rand(B, 2)
    flat = layer(nn.Features(dense, tables))
    assert layer.width == flat.shape[1] == 10
    torch.testing.assert_close(
        flat, torch.cat([dense, tables["narrow"][:, 0], tables["broad"].flatten(1)], 1)
    )


def test_weights_start_as_the_seeds_do() -> None:
    torch.manual_seed(0)
    layer = nn.linear(400, 1_000)
    assert layer.weight.std().item() == pytest.approx(1 / 20, rel=0.01)
    assert layer.bias.abs().sum() == 0
