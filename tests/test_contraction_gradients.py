"""Gradients of linear algebra, contractions and convolutions, where other libraries went wrong (see gradient_cases.py)."""

import math

import pytest
from gradient_cases import HI, JX, PT, attempt, check, con, d2, d3, f64, grad, leaf, registry

import tapegrad as T
from tapegrad.nn import functional as F

CASES, case = registry()


@case(
    "S2",
    "singular values, repeated or zero",
    [(PT, "issues", 49886), (JX, "issues", 2311), (PT, "issues", 194705)],
    "1/(s_i^2 - s_j^2) although only S is used",
    "U V^T",
)
def singular_values_repeated_or_zero():
    A = leaf([[2.0, 0.0], [0.0, 2.0]])
    T.linalg.svd(A)[1].sum().backward()
    B = leaf([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    T.linalg.svd(B)[1][0].backward()
    return [(A.grad, [[1, 0], [0, 1]]), (B.grad, [[1, 0, 0], [0, 0, 0], [0, 0, 0]])]


@case(
    "S1",
    "Cholesky gradient convention",
    [(PT, "issues", 18825), (PT, "issues", 137284), (JX, "issues", 40421)],
    "lower-only or ghost entries make A -> g(LL^T) disagree with A -> g(A)",
    "symmetrised gradient is unique",
)
def cholesky_gradient_convention():
    A = leaf([[4.0, 1.0], [1.0, 3.0]])
    T.linalg.cholesky(A).sum().backward()
    S = (A.grad + A.grad.T) / 2
    r = math.sqrt(2.75)
    return [(S, [[1 / 4 - 1 / 16 + 1 / (32 * r), (0.5 - 1 / (4 * r)) / 2], [(0.5 - 1 / (4 * r)) / 2, 1 / (2 * r)]])]


@case(
    "S1",
    "second derivative through solve",
    [(PT, "issues", 196695), (PT, "pull", 192596)],
    "inverse treated as constant at second order (nested forward mode): half the true value",
    "(1/(t+2))'' = 1/4 at 0, in both modes",
)
def second_derivative_through_solve():
    def f(t):
        return T.linalg.solve((t + 2).reshape(1, 1), con([[1.0]])).sum()

    def j(t):
        return T.func.jvp(f, (t,), (T.ones_like(t),))[1]

    return [(d2(f, leaf(0.0)), 0.25), (T.func.jvp(j, (con(0.0),), (con(1.0),))[1], 0.25)]


@case(
    "S3",
    "einsum with a repeated index",
    [(HI, "issues", 115), (HI, "issues", 510), ("tensor4all/tenferro-rs", "issues", 557)],
    "backward builds an invalid subscript and raises",
    "gradient lands on the diagonal",
)
def einsum_with_a_repeated_index():
    A = leaf([[1.0, 2.0], [3.0, 4.0]])
    T.einsum("ii->", A).backward()
    W = leaf([[1.0, 1.0], [1.0, 1.0]])
    T.einsum("nd,nn->d", con([[1.0, 2.0], [3.0, 4.0]]), W).sum().backward()
    return [(A.grad, [[1, 0], [0, 1]]), (W.grad, [[3, 0], [0, 7]])]


@case(
    "S3",
    "einsum broadcasting a length-1 index",
    [(HI, "issues", 376)],
    "gradient of shape (1,) for an input of shape (2,)",
    "[2, 2] and [4]",
)
def einsum_broadcasting_a_length_1_index():
    x, y = leaf([2.0, 2.0]), leaf([2.0])
    T.einsum("i,i", x, y).backward()
    return [(x.grad, [2, 2]), (y.grad, [4])]


@case(
    "S3",
    "einsum must not touch its operands",
    [(PT, "issues", 7763)],
    "in-place reshape inside einsum trips the saved-tensor check",
    "first result still differentiable after a second call",
)
def einsum_must_not_touch_its_operands():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    e = con([[1.0, 0.0], [0.0, 1.0]])
    z = T.einsum("ij,jk->ik", x, e)
    T.einsum("ij,jk->ik", x, e)
    z.sum().backward()
    return [(x.grad, [[1, 1], [1, 1]])]


@case(
    "S1",
    "grouped and strided convolution, input gradient",
    [("ml-explore/mlx", "pull", 3800), ("huggingface/candle", "pull", 2337)],
    "off by 500-5600 % when groups > 1 and stride > 1",
    "scattered kernels",
)
def grouped_and_strided_convolution_input_gradient():
    x = T.ones(1, 2, 4, dtype=f64, requires_grad=True)
    F.conv1d(x, con([[[1.0, 10.0]], [[100.0, 1000.0]]]), stride=2, groups=2).sum().backward()
    return [(x.grad, [[[1, 10, 1, 10], [100, 1000, 100, 1000]]])]


@case(
    "S1",
    "third derivative through layer norm / batch norm",
    [(PT, "issues", 186256), (PT, "pull", 176234)],
    "saved mean and inverse std are constants from order 3 on: silently wrong",
    "y''' = 0.0994369 for (t, 0), eps = 1, t = 2",
)
def third_derivative_through_layer_norm_batch_norm():
    def f(t):
        return F.layer_norm(T.stack([t, t * 0]), (2,), eps=1.0)[0]

    want = (-3 * 2**-2.5 + 15 * 2**-3.5) / 8

    def b(t):
        return F.batch_norm(T.stack([t, t * 0]).reshape(2, 1), None, None, training=True, eps=1.0)[0, 0]

    return [(attempt(lambda: d3(f, leaf(2.0))), want), (attempt(lambda: d3(b, leaf(2.0))), want)]


@case(
    "S1",
    "layer norm with bias but no weight, second order",
    [(PT, "issues", 79705)],
    "the bias path vanishes from the double backward",
    "d(v)/dv = 1",
)
def layer_norm_with_bias_but_no_weight_second_order():
    x, b, v = leaf([1.0, 2.0]), leaf([0.0, 0.0]), leaf([1.0, 1.0])
    (g,) = grad(F.layer_norm(x, (2,), None, b), b, v, create_graph=True)
    return [(attempt(lambda: grad(g.sum(), v)[0]), [1, 1])]


@case(
    "S1",
    "cross entropy of a saturated sigmoid",
    [(PT, "issues", 103316)],
    "log clamp turns a slope of -1 into about -1e-10",
    "-1",
)
def cross_entropy_of_a_saturated_sigmoid():
    a, b = leaf(-50.0), leaf(-50.0)
    F.binary_cross_entropy(a.sigmoid(), con(1.0)).backward()
    F.binary_cross_entropy_with_logits(b, con(1.0)).backward()
    return [(a.grad, -1), (b.grad, -1)]


@pytest.mark.parametrize("title", CASES)
def test_case(title):
    check(CASES[title])
