"""Each rule of a table, against torch.optim on a dense parameter over the same gradients.

Letters in shapes: R rows, D width of a row, U rows touched in a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from clickmill._core import Table

    MakeTable = Callable[..., Table]

NUM_ROWS = 12
NUM_STEPS = 40
DIMS = [1, 8, 10, 16, 33]
SIGNS = np.arange(NUM_ROWS, dtype=np.uint64) * 1_000_003


def steps(dim: int, seed: int = 0) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float32], float]]:
    """Step number, rows touched, their gradients, learning rate; some rows rest for many steps."""
    random = np.random.default_rng(seed)
    for step in range(1, NUM_STEPS + 1):
        active = NUM_ROWS if step < 5 else NUM_ROWS - 4
        touched = random.permutation(active)[: random.integers(1, active + 1)]
        if step == NUM_STEPS:
            touched = np.append(touched, NUM_ROWS - 1)
        gradients_UD = random.normal(size=(len(touched), dim)).astype(np.float32)
        yield step, touched, gradients_UD, 0.05 if step < 15 else 0.02


def train(table: Table, dim: int) -> NDArray[np.float32]:
    table.pull(SIGNS, train=True)
    for step, touched, gradients_UD, learning_rate in steps(dim):
        table.begin_step(step)
        lookup = table.lookup(SIGNS[touched], train=True)
        lookup.add_gradients(gradients_UD)
        table.apply(lookup, learning_rate)
    return table.peek(SIGNS)


def train_dense(
    table: Table, dim: int, make: Callable[[torch.Tensor], torch.optim.Optimizer], *, sparse: bool = False
) -> NDArray[np.float32]:
    weight_RD = torch.from_numpy(table.peek(SIGNS).copy()).requires_grad_()
    optimizer = make(weight_RD)
    for _, touched, gradients_UD, learning_rate in steps(dim):
        rows = torch.from_numpy(touched)
        gradient_RD = torch.zeros_like(weight_RD)
        gradient_RD[rows] = torch.from_numpy(gradients_UD)
        if sparse:
            values_UD = torch.from_numpy(gradients_UD)
            gradient_RD = torch.sparse_coo_tensor(
                rows[None], values_UD, weight_RD.shape, check_invariants=True
            )
        weight_RD.grad = gradient_RD
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        optimizer.step()
    return weight_RD.detach().numpy()


def assert_close(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dim", DIMS)
def test_sgd_is_dense_sgd(make_any_table: MakeTable, dim: int) -> None:
    table = make_any_table(dim, optimizer={"kind": "sgd"})
    expected = train_dense(table, dim, lambda weight: torch.optim.SGD([weight], lr=1.0))
    assert_close(train(table, dim), expected)


@pytest.mark.parametrize("dim", DIMS)
def test_adagrad_is_dense_adagrad(make_any_table: MakeTable, dim: int) -> None:
    table = make_any_table(dim, optimizer={"kind": "adagrad", "initial_accumulator": 0.1})
    expected = train_dense(
        table, dim, lambda weight: torch.optim.Adagrad([weight], lr=1.0, initial_accumulator_value=0.1)
    )
    assert_close(train(table, dim), expected)


class RowWiseAdagrad(torch.optim.Optimizer):
    """The rule in a few plain lines; torch has none of its own."""

    def __init__(self, params: Any, weight_decay: float) -> None:
        super().__init__(params, {"lr": 1.0})
        self.weight_decay = weight_decay
        self.sum_R1 = torch.full((NUM_ROWS, 1), 0.1)

    def step(self) -> None:  # type: ignore[override]
        weight_RD = self.param_groups[0]["params"][0]
        touched_R1 = (weight_RD.grad != 0).any(dim=1, keepdim=True)
        gradient_RD = weight_RD.grad + self.weight_decay * weight_RD.detach() * touched_R1
        self.sum_R1 += gradient_RD.square().mean(dim=1, keepdim=True)
        weight_RD.data -= self.param_groups[0]["lr"] * gradient_RD / (self.sum_R1.sqrt() + 1e-10)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("dim", DIMS)
def test_row_wise_adagrad_is_its_formula(make_any_table: MakeTable, dim: int, weight_decay: float) -> None:
    rule = {"kind": "row_wise_adagrad", "initial_accumulator": 0.1, "weight_decay": weight_decay}
    table = make_any_table(dim, optimizer=rule)
    expected = train_dense(table, dim, lambda weight: RowWiseAdagrad([weight], weight_decay))
    assert_close(train(table, dim), expected)


@pytest.mark.parametrize("dim", DIMS)
def test_lazy_adam_is_sparse_adam(make_any_table: MakeTable, dim: int) -> None:
    table = make_any_table(dim, optimizer={"kind": "lazy_adam"})
    expected = train_dense(table, dim, lambda weight: torch.optim.SparseAdam([weight]), sparse=True)
    assert_close(train(table, dim), expected)


@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
@pytest.mark.parametrize("dim", DIMS)
def test_adam_is_dense_adam_also_on_rows_at_rest(
    make_any_table: MakeTable, dim: int, weight_decay: float
) -> None:
    table = make_any_table(dim, optimizer={"kind": "adam", "weight_decay": weight_decay})
    expected = train_dense(table, dim, lambda weight: torch.optim.Adam([weight], weight_decay=weight_decay))
    assert_close(train(table, dim), expected)


def ftrl(weight_RD: NDArray[np.float64], dim: int, hyper: dict[str, float]) -> NDArray[np.float64]:
    z_RD, n_RD = np.zeros_like(weight_RD), np.full_like(weight_RD, hyper["initial_accumulator"])
    weight_RD = weight_RD.copy()
    for _, touched, gradients_UD, alpha in steps(dim):
        for row, gradient_D in zip(touched, gradients_UD.astype(np.float64), strict=True):
            n_D = n_RD[row] + gradient_D**2
            sigma_D = (n_D ** -hyper["lr_power"] - n_RD[row] ** -hyper["lr_power"]) / alpha
            z_RD[row] += gradient_D - sigma_D * weight_RD[row]
            n_RD[row] = n_D
            shrunk_D = np.sign(z_RD[row]) * np.maximum(np.abs(z_RD[row]) - hyper["l1"], 0)
            weight_RD[row] = -shrunk_D / ((hyper["beta"] + n_D ** -hyper["lr_power"]) / alpha + hyper["l2"])
    return weight_RD


@pytest.mark.parametrize("lr_power", [-0.5, -0.3])
@pytest.mark.parametrize("dim", DIMS)
def test_ftrl_is_the_formula_of_the_paper(make_any_table: MakeTable, dim: int, lr_power: float) -> None:
    hyper = {"beta": 1.0, "l1": 0.5, "l2": 0.1, "lr_power": lr_power, "initial_accumulator": 0.1}
    table = make_any_table(dim, optimizer={"kind": "ftrl", **hyper})
    expected_RD = ftrl(table.peek(SIGNS).astype(np.float64), dim, hyper)
    found_RD = train(table, dim)
    np.testing.assert_allclose(found_RD, expected_RD, rtol=2e-5, atol=2e-6)
    assert (found_RD == 0).any(), "l1 must make zeros"


def test_scale_multiplies_gradients(make_any_table: MakeTable) -> None:
    whole, scaled = (make_any_table(4, optimizer={"kind": "sgd"}) for _ in range(2))
    gradients_UD = np.random.default_rng(1).normal(size=(NUM_ROWS, 4)).astype(np.float32)
    for table, factor, scale in [(whole, 1.0, 1.0), (scaled, 4.0, 0.25)]:
        table.pull(SIGNS, train=True)
        table.push(SIGNS, gradients_UD * np.float32(factor), 0.1, scale=scale)
    np.testing.assert_array_equal(whole.peek(SIGNS), scaled.peek(SIGNS))
