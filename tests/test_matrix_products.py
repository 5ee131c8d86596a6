"""Products of matrices take BLAS's shortest way; their values and gradients are those of NumPy's matmul."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import general_gradient
from tapegrad.kernels.linalg import _matmul_forward

LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "steps": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f", "d", "F", "i"])
def test_a_product_has_the_bits_of_matmul(left, right, dtype):
    rng = np.random.default_rng(0)
    for m, k, n in [(3, 4, 5), (1, 7, 3), (8, 8, 1), (1, 5, 1), (0, 3, 2), (2, 0, 3), (17, 33, 9)]:
        x = LAYOUTS[left]((rng.standard_normal((m, k)) * 9).astype(dtype))
        y = LAYOUTS[right]((rng.standard_normal((k, n)) * 9).astype(dtype))
        expected, found = np.matmul(x, y), _matmul_forward(x, y)
        assert found.dtype == expected.dtype and found.flags.c_contiguous and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((1, 3), (3, 1)),
                                    ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((2, 1, 3, 4), (4, 2)),
                                    ((0, 3, 4), (4, 2)), ((2, 2, 3, 4), (2, 2, 4, 1)), ((2, 3, 1), (1, 4))])  # fmt: skip
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.complex128], ids=str)
def test_gradients_are_those_of_the_rules(shapes, dtype):
    x, y = [tg.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]
    weight = tg.randn_like(x @ y)
    real = dtype != tg.complex128

    def loss():
        r = (x @ y) * weight
        return r.sum() if real else r.real.sum()

    loss().backward()
    g, h = tg.autograd.grad(loss(), (x, y), create_graph=True)
    assert x.grad.numpy().tobytes() == g.detach().numpy().tobytes()
    assert y.grad.numpy().tobytes() == h.detach().numpy().tobytes()


@pytest.mark.parametrize("batch", [(5,), (1,), (2, 5)])
@pytest.mark.parametrize("tracked", [(True, True, True), (False, True, True), (True, False, False)])
def test_gradients_of_linear_are_those_of_the_rules(batch, tracked):
    shapes = (*batch, 3), (4, 3), (4,)
    args = [tg.randn(*shape, requires_grad=t) for shape, t in zip(shapes, tracked, strict=True)]
    weight = tg.randn(*batch, 4)
    wanted = [a for a in args if a.requires_grad]

    def loss():
        return (tg.nn.functional.linear(*args) * weight).sum()

    loss().backward()
    for a, g in zip(wanted, tg.autograd.grad(loss(), wanted, create_graph=True), strict=True):
        assert a.grad.shape == a.shape and a.grad.numpy().tobytes() == g.detach().numpy().tobytes()


@pytest.mark.parametrize("tracked", [(True, False), (False, True)])
def test_only_what_is_tracked_gets_a_gradient(tracked):
    x, y = [tg.ones(2, 2, requires_grad=t) for t in tracked]
    (x @ y).sum().backward()
    assert [None if t.grad is None else t.grad.tolist() for t in (x, y)] == [[[2.0] * 2] * 2 if t else None for t in tracked]


def test_an_operand_that_is_read_twice_gets_both_parts():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x @ x).sum()
    general_gradient.backward(y, retain_graph=True)
    first, x.grad = x.grad, None
    y.backward()
    assert x.grad.tolist() == first.tolist() == [[7.0, 11.0], [9.0, 13.0]]


def test_infinite_products_do_not_warn():
    x = tg.full((2, 2), float("inf"), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x @ tg.zeros(2, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3, 1), (3, 2)), ((2, 3), (4, 3))])
def test_matrices_that_do_not_fit_are_refused(shapes):
    x, y = map(tg.ones, shapes)
    (a, b), (c, d) = shapes
    with pytest.raises(RuntimeError, match=rf"mat1 and mat2 shapes cannot be multiplied \({a}x{b} and {c}x{d}\)"):
        x @ y
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype"):
        tg.ones(2, 2) @ tg.ones(2, 2, dtype=tg.float64)
