"""Gradients at singular points, where other libraries went wrong (see gradient_cases.py)."""

import math

import pytest
from gradient_cases import JX, OF, PT, TG, check, con, d1, d2, f32, grad, leaf, nan, registry

import tapegrad as T
from tapegrad.nn import functional as F

CASES, case = registry()


@case(
    "S2",
    "gradient of a**b in b at a = 0",
    [(PT, "issues", 27134), ("seantalts/stanli", "pull", 150)],
    "0**b * log 0 = NaN",
    "0",
)
def gradient_of_a_b_in_b_at_a_0():
    b = leaf([1.0, 1.0])
    (con([0.0, 2.0]) ** b).sum().backward()
    return [(b.grad, [0, 2 * math.log(2)])]


@case(
    "S1",
    "integer exponents 0 and 1",
    [(JX, "issues", 17995)],
    "0*z**max(n-1, ...) style fix gave slope 2 for 1 + z, depending on the exponent's dtype",
    "1",
)
def integer_exponents_0_and_1():
    z = leaf(1.0)
    (z ** T.tensor([0, 1])).sum().backward()
    w = leaf(1.0)
    (w ** con([0.0, 1.0])).sum().backward()
    return [(z.grad, 1), (w.grad, 1)]


@case(
    "S2",
    "where with a dead sqrt branch",
    [
        (PT, "issues", 187297),
        (TG, "issues", 12409),
        (JX, "issues", 347),
        (JX, "issues", 5798),
        ("ml-explore/mlx", "pull", 3692),
    ],
    "0 * inf (or 0 * NaN) from the branch not taken",
    "1 on the identity branch, 1/4 on the root",
)
def where_with_a_dead_sqrt_branch():
    x = leaf([-1.0, 0.0, 4.0])
    T.where(x > 0, x.sqrt(), x).sum().backward()
    return [(x.grad, [1, 1, 0.25])]


@case(
    "S2",
    "loss masked after the NaN was computed",
    [(PT, "issues", 89543), (PT, "issues", 121416), (JX, "issues", 9040)],
    "2*(x - NaN)*0 = NaN for a sample that was filtered out",
    "[2, 0]",
)
def loss_masked_after_the_nan_was_computed():
    x, y = leaf([1.0, 2.0]), con([0.0, nan])
    ((x - y) ** 2)[~y.isnan()].sum().backward()
    return [(x.grad, [2, 0])]


@case(
    "S2",
    "gradient penalty when the input gradient is zero",
    [(PT, "issues", 2534), ("keras-team/keras-io", "issues", 910), (JX, "issues", 21723)],
    "double backward through sqrt(0): NaN weights in WGAN-GP and eikonal training",
    "finite (0)",
)
def gradient_penalty_when_the_input_gradient_is_zero():
    w, x = leaf([0.0, 0.0]), leaf([1.0, 1.0])
    (g,) = grad((w * x).sum(), x, create_graph=True)
    ((g.norm() - 1) ** 2).backward()
    return [(w.grad, [0, 0])]


@case(
    "S2",
    "pairwise distance with coincident points",
    [(PT, "issues", 37154), (PT, "issues", 36493), ("deepmodeling/deepmd-kit", "pull", 5119)],
    "NaN on the diagonal",
    "0 on the diagonal",
)
def pairwise_distance_with_coincident_points():
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    T.cdist(x, x).sum().backward()
    return [(x.grad, [[-1.2, -1.6], [1.2, 1.6]])]


@case(
    "S2", "atan2 at the origin behind a mask", [(JX, "issues", 1052), (PT, "issues", 98276)], "0/0 leaks through where", "0"
)
def atan2_at_the_origin_behind_a_mask():
    a = leaf([3.0, 0.0])
    T.where(T.tensor([False, True]), con(0.0), T.atan2(a, a)).sum().backward()
    return [(a.grad, [0, 0])]


@case(
    "S2",
    "acos(clamp(x)) when saturated",
    [(JX, "issues", 23649), (JX, "issues", 15798)],
    "0 * inf = NaN: angle losses die at convergence",
    "0 (the function is constant there)",
)
def acos_clamp_x_when_saturated():
    x = leaf(10.0)
    T.acos(x.clamp(-1, 1)).backward()
    return [(x.grad, 0)]


@case(
    "S1",
    "ldexp at 0",
    [(JX, "issues", 37992)],
    "a where() that preserved signed zero routes the gradient around the scale",
    "2",
)
def ldexp_at_0():
    x = leaf(0.0)
    T.ldexp(x, T.tensor(1)).backward()
    return [(x.grad, 2)]


@case(
    "S1", "fmod with broadcasting", [(OF, "issues", 8769)], "gradient left at the broadcast shape, [1, 1]", "[2], shape (1,)"
)
def fmod_with_broadcasting():
    x, y = leaf([7.0]), leaf([[2.0], [2.0]])
    T.fmod(x, y).sum().backward()
    return [(tuple(x.grad.shape), (1,)), (x.grad, [2])]


@case(
    "S3",
    "gradient at NaN must not depend on the array length",
    [(PT, "issues", 195075)],
    "vector body and scalar tail disagree: [0, ..., 0, 1]",
    "one value for all nine",
)
def gradient_at_nan_must_not_depend_on_the_array_length():
    x = T.full((9,), nan, dtype=f32, requires_grad=True)
    F.hardtanh(x).sum().backward()
    g = x.grad
    return [(bool(((g == g[0]) | (g.isnan() & g[0].isnan())).all()), True)]


@case(
    "S1",
    "curvature of log-sigmoid / softplus in the tail",
    [(PT, "issues", 195530), (PT, "issues", 195679), (JX, "issues", 40387)],
    "(1 - sigmoid) cancels to exactly 0 on one side only",
    "even function; exp(-|x|)/(1+exp(-|x|))^2",
)
def curvature_of_log_sigmoid_softplus_in_the_tail():
    c = math.exp(-40.0) / (1 + math.exp(-40.0)) ** 2
    return [
        (d2(F.logsigmoid, leaf(40.0)) / c, -1),
        (d2(F.logsigmoid, leaf(-40.0)) / c, -1),
        (d2(lambda x: F.softplus(x, threshold=1e9), leaf(40.0)) / c, 1),
    ]


@case(
    "S2",
    "second derivative of sinc at 0",
    [(PT, "issues", 196703), (JX, "pull", 1722)],
    "removable singularity gives NaN one order up",
    "-pi^2/3",
)
def second_derivative_of_sinc_at_0():
    return [(d1(T.sinc, leaf(0.0)), 0), (d2(T.sinc, leaf(0.0)), -(math.pi**2) / 3)]


@pytest.mark.parametrize("title", CASES)
def test_case(title):
    check(CASES[title])
