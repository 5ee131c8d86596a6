"""Faults that other automatic differentiation libraries had, as replayable cases.

Each case cites the public issues and pull requests that prompted it, says what went wrong there and what is right, and
yields pairs (got, expected). Severity: S1 silently wrong finite number, S2 silent nan or inf, S3 crash, leak, wrong shape
or dtype or an unclear error, S4 a convention to choose.
"""

import copy
import gc
import math
import warnings
import weakref

import numpy as np
import pytest

import tapegrad as T
from tapegrad import nn
from tapegrad.nn import functional as F

CASES = {}
PT, JX, HI, TG, OF = "pytorch/pytorch", "jax-ml/jax", "HIPS/autograd", "tinygrad/tinygrad", "Oneflow-Inc/oneflow"
CH, MG, TF, MX = "chainer/chainer", "rsokl/MyGrad", "tensorflow/tensorflow", "apache/mxnet"
inf, nan = math.inf, math.nan
f32, f64 = T.float32, T.float64
grad = T.autograd.grad


class Raises:
    """Expected where the call must raise."""


RAISES = Raises()


class Either:
    """Expected where one of two outcomes is right."""

    def __init__(self, *options):
        self.options = options


def case(severity, title, refs, symptom, right):
    def enter(function):
        CASES[title] = function
        return function

    return enter


def attempt(function):
    try:
        return function()
    except Exception as e:
        return e


def leaf(value, dtype=f64):
    return T.tensor(value, dtype=dtype, requires_grad=True)


def con(value, dtype=f64):
    return T.tensor(value, dtype=dtype)


def d1(f, x):
    return grad(f(x), x)[0]


def d2(f, x):
    (g,) = grad(f(x), x, create_graph=True)
    return grad(g, x)[0]


def d3(f, x):
    (g,) = grad(f(x), x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    return grad(h, x)[0]


# 1. reductions, scans, ties
@case(
    "S1",
    "prod Hessian with two zeros",
    [(PT, "issues", 106789)],
    "first gradient (all 0) comes back detached, so second derivatives read as 0",
    "d2/dx2dx3 = 2*3",
)
def prod_hessian_with_two_zeros():
    x = leaf([2.0, 3.0, 0.0, 0.0])
    (g,) = grad(x.prod(), x, create_graph=True)
    return [(g.requires_grad, True), (attempt(lambda: grad(g[2], x)[0]), [0, 0, 0, 6])]


@case(
    "S1",
    "cumprod with zeros",
    [(TF, "issues", 119430), (TF, "issues", 3862), ("tracel-ai/burn", "pull", 5141), ("pymc-devs/pytensor", "pull", 1911)],
    "division by x gives NaN, or 0 after a silent nan->0",
    "prefix product times reverse recurrence, no division",
)
def cumprod_with_zeros():
    x = leaf([3.0, 0.0, 2.0])
    x.cumprod(0).sum().backward()
    return [(x.grad, [1, 9, 0])]


@case(
    "S1",
    "cummax sends each output to the index it was read from",
    [(PT, "pull", 26637)],
    "first version of the backward lost the repeats",
    "counts of use",
)
def cummax_sends_each_output_to_the_index_it_was_read_from():
    x = leaf([3.0, 1.0, 2.0])
    T.cummax(x, 0)[0].sum().backward()
    return [(x.grad, [3, 0, 0])]


@case(
    "S1",
    "elementwise maximum of equal tensors",
    [(PT, "issues", 56734)],
    "both or only one side gets the whole gradient",
    "1/2 + 1/2; maximum(a, a) has slope 1",
)
def elementwise_maximum_of_equal_tensors():
    a, b = leaf(1.0), leaf(1.0)
    T.maximum(a, b).backward()
    c = leaf(2.0)
    T.maximum(c, c).backward()
    return [(a.grad, 0.5), (b.grad, 0.5), (c.grad, 1)]


@case(
    "S1",
    "tie count overflows half precision",
    [(TG, "issues", 12296)],
    "number of ties counted in float16 becomes inf, gradient 0",
    "1/70000 each (count in a wide type)",
)
def tie_count_overflows_half_precision():
    x = T.ones(70000, dtype=T.float16, requires_grad=True)
    x.amax().backward()
    return [(abs(float(x.grad[0]) - 1 / 70000) < 1e-6, True)]


@case(
    "S4",
    "std of a constant vector / of one element",
    [(PT, "issues", 4320), (JX, "issues", 11716), (TF, "issues", 56830)],
    "0/0 = NaN from the square root",
    "0 is a subgradient (or document NaN)",
)
def std_of_a_constant_vector_of_one_element():
    x = leaf([1.0, 1.0, 1.0])
    x.std().backward()
    y = leaf([7.0])
    y.std(correction=0).backward()
    return [(x.grad, [0, 0, 0]), (y.grad, [0])]


@case(
    "S2",
    "logsumexp of a masked-out larger entry",
    [(JX, "issues", 23842)],
    "shift by the global max instead of the masked max: NaN",
    "[1, 0]",
)
def logsumexp_of_a_masked_out_larger_entry():
    x = leaf([0.0, 100.0])
    T.where(T.tensor([True, False]), x, con(-inf)).logsumexp(0).backward()
    return [(x.grad, [1, 0])]


@case(
    "S2",
    "fully masked softmax row, not used in the loss",
    [(PT, "issues", 41508), (PT, "pull", 131060), (PT, "pull", 196170)],
    "0 * NaN from the dead row poisons shared parameters",
    "0 for the dead row; p(1-p) in the live one",
)
def fully_masked_softmax_row_not_used_in_the_loss():
    s = leaf([[1.0, 2.0], [-inf, -inf]])
    s.softmax(1)[0, 0].backward()
    q = 0.19661193324148185
    return [(s.grad, [[q, -q], [0, 0]])]


# 2. singular points
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


# 3. linear algebra, contraction, convolution
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


# 4. indexing, broadcasting, dtypes
@case(
    "S1",
    "gather / fancy index with repeats",
    [
        (PT, "issues", 1631),
        (PT, "issues", 1528),
        ("pymc-devs/pytensor", "pull", 2242),
        ("PaddlePaddle/Paddle", "pull", 17662),
        ("ooples/AiDotNet.Tensors", "pull", 894),
    ],
    "only the last copy of a repeated index receives gradient",
    "contributions add",
)
def gather_fancy_index_with_repeats():
    i = T.tensor([0, 0])
    x = leaf([0.1])
    x.gather(0, i).backward(con([0.2, 0.3]))
    y = leaf([0.1])
    y[i].backward(con([0.2, 0.3]))
    return [(x.grad, [0.5]), (y.grad, [0.5])]


@case("S1", "index_fill with a repeated index", [(PT, "issues", 57006)], "fill value's gradient counted twice", "1")
def index_fill_with_a_repeated_index():
    v = leaf(4.0)
    T.zeros(3, dtype=f64).index_fill(0, T.tensor([2, 2]), v).sum().backward()
    return [(v.grad, 1)]


@case(
    "S3",
    "setitem broadcasting the value",
    [("Lightning-AI/lightning-thunder", "pull", 1979)],
    "unit axes of the value not summed",
    "[[2], [2]]",
)
def setitem_broadcasting_the_value():
    v = leaf([[1.0], [1.0]])
    z = T.zeros(2, 3, dtype=f64)
    z[:, 1:] = v
    z.sum().backward()
    return [(v.grad, [[2], [2]])]


@case(
    "S3",
    "filling a buffer element by element",
    [(PT, "issues", 74806), (HI, "issues", 177), (HI, "issues", 375), (HI, "issues", 58)],
    "HIPS: 'setting an array element with a sequence'; torch: saved slice was modified",
    "(y, x)",
)
def filling_a_buffer_element_by_element():
    def go():
        x, y = leaf(2.0), leaf(3.0)
        b = T.zeros(3, dtype=f64)
        b[0] = x
        b[1] = y
        b[2] = b[0] * b[1]
        b[2].backward()
        return T.stack([x.grad, y.grad])

    return [(attempt(go), [3, 2])]


@case(
    "S3",
    "0-d operand: gradient is a 0-d array",
    [(MG, "pull", 373)],
    "a bare Python float is stored in .grad",
    "array, shape (), same dtype",
)
def zero_dim_operand_gradient_is_a_0_d_array():
    x = leaf(3.0, f32)
    (x * T.ones(2, 2)).sum().backward()
    return [(type(x.grad) is type(x), True), (tuple(x.grad.shape), ()), (x.grad.dtype, f32), (x.grad, 4)]


@case(
    "S3",
    "float32 parameter, Python and NumPy scalars",
    [(CH, "issues", 684), (CH, "issues", 6212), ("denizyuret/AutoGrad.jl", "issues", 69), ("dlsyscourse/hw1", "issues", 20)],
    "gradient silently becomes float64 (or raises a dtype mismatch)",
    "float32 in, float32 gradient out",
)
def float32_parameter_python_and_numpy_scalars():
    out = []
    for s in (0.2, np.float64(0.2), 3):
        x = leaf([1.0, 1.0], f32)
        (x * s / 65535).sum().backward()
        out.append((x.grad.dtype, f32))
    return out


@case("S3", "backward with an integer seed", [(OF, "issues", 7550)], "process aborts on a dtype check", "seed cast: [2, 2]")
def backward_with_an_integer_seed():
    a = leaf([1.0, 1.0])
    r = attempt(lambda: a.sum().backward(T.tensor(2)))
    return [(r, None), (a.grad, [2, 2])]


@case(
    "S3",
    "NumPy operand on the left",
    [
        (PT, "issues", 9468),
        (PT, "issues", 59237),
        ("adtzlr/tensortrax", "issues", 5),
        ("PennyLaneAI/pennylane", "pull", 889),
        ("oreilly-japan/deep-learning-from-scratch-3", "issues", 3),
    ],
    "object array, lost requires_grad, or a NumPy result",
    "a tensor on the tape, from both sides",
)
def numpy_operand_on_the_left():
    out = []
    for s in (np.float64(2.0), np.full(2, 2.0)):
        for f in (lambda t, s: s * t, lambda t, s: t * s):
            x = leaf([1.0, 1.0])
            f(x, s).sum().backward()
            out.append((x.grad, [2, 2]))
    return out


@case(
    "S3",
    "in-place division of a real array by a complex one",
    [(HI, "issues", 77)],
    "imaginary part lost or a late crash",
    "error at the operation",
)
def in_place_division_of_a_real_array_by_a_complex_one():
    def go():
        h = T.ones(2, dtype=f64)
        h /= T.tensor([1 + 1j, 1 + 1j])
        return h

    return [(attempt(go), RAISES)]


# 5. engine semantics
@case(
    "S1",
    "in-place op must save the value before it",
    [(OF, "issues", 6200)],
    "backward evaluated at the overwritten value",
    "-sin(1.5)",
)
def in_place_op_must_save_the_value_before_it():
    x = leaf([0.5])
    y = x + 1
    y.cos_()
    y.sum().backward()
    return [(x.grad, [-math.sin(1.5)])]


@case(
    "S1",
    "two leaves must not share one gradient buffer",
    [(OF, "issues", 8248), (PT, "issues", 46168), (PT, "pull", 119334)],
    "z = x + y hands the same array to both; the next in-place add corrupts the other",
    "independent buffers",
)
def two_leaves_must_not_share_one_gradient_buffer():
    x, y = leaf([1.0]), leaf([1.0])
    z = x + y
    (x / z).sum().backward()
    u, v = leaf([1.0]), leaf([1.0])
    (u + v).sum().backward()
    (u * 10).sum().backward()
    return [(x.grad, [0.25]), (y.grad, [-0.25]), (u.grad, [11]), (v.grad, [1])]


@case(
    "S1",
    "accumulating twice with create_graph keeps the graph",
    [(OF, "issues", 8248)],
    "second accumulation ran without recording",
    "d(2b)/db = 2",
)
def accumulating_twice_with_create_graph_keeps_the_graph():
    a, b = leaf([1.0, 1.0]), leaf([1.0, 1.0])
    d = (a * b).sum()
    d.backward(create_graph=True)
    d.backward(create_graph=True)
    return [(a.grad, [2, 2]), (attempt(lambda: grad(a.grad.sum(), b)[0]), [2, 2])]


@case(
    "S1",
    "derivative with respect to grad_outputs",
    [(MX, "pull", 15120), (MX, "pull", 14992)],
    "seed multiplied in twice, or its gradient stays 0",
    "d(v/x)/dv = 1/4",
)
def derivative_with_respect_to_grad_outputs():
    x, v = leaf(4.0), leaf(3.0)
    (g,) = grad(x.log(), x, v, create_graph=True)
    return [(g, 0.75), (grad(g, v, retain_graph=True)[0], 0.25), (grad(g, x)[0], -3 / 16)]


@case(
    "S1",
    "a tensor used twice in one operation",
    [("karpathy/nn-zero-to-hero", "issues", 52), ("denizyuret/AutoGrad.jl", "pull", 75)],
    "assignment instead of accumulation",
    "a+a -> 2, a*a -> 2a, a-a -> 0",
)
def a_tensor_used_twice_in_one_operation():
    a = leaf(3.0)
    return [
        (d1(lambda t: t + t, a), 2),
        (d1(lambda t: t * t, a), 6),
        (d1(lambda t: t - t, a), 0),
        (d1(lambda t: t / t, a), 0),
    ]


@case(
    "S1",
    "nested gradients that close over the outer variable",
    [
        ("denizyuret/AutoGrad.jl", "pull", 75),
        ("JuliaDiff/ForwardDiff.jl", "issues", 83),
        ("JuliaDiff/ReverseDiff.jl", "issues", 45),
    ],
    "tape (perturbation) confusion: 2 instead of 1",
    "1 and 8",
)
def nested_gradients_that_close_over_the_outer_variable():
    def D(f):
        def df(v):
            v = v if T.is_tensor(v) and v.requires_grad else leaf(float(v))
            w = v.clone() if v.grad_fn is None else v * 1
            return grad(f(w), w, create_graph=True, materialize_grads=True)[0]

        return df

    return [(D(lambda x: x * D(lambda y: x + y)(x))(5.0), 1), (D(lambda x: x * D(lambda y: x * y)(1.0))(4.0), 8)]


@case(
    "S4",
    "custom Function: unused output, zeros or None",
    [(PT, "issues", 58511)],
    "parameters untouched by the loss end with .grad = 0 instead of None",
    "document; allow set_materialize_grads(False)",
)
def custom_function_unused_output_zeros_or_none():
    class Id2(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * 1, b * 1

        @staticmethod
        def backward(ctx, ga, gb):
            return ga, gb

    a, b = leaf(1.0), leaf(1.0)
    Id2.apply(a, b)[0].backward()
    return [(a.grad, 1), (b.grad, None)]


@case(
    "S4",
    "allow_unused with an input that never required grad",
    [(PT, "issues", 115918)],
    "error although the caller said 'unused is fine'",
    "None",
)
def allow_unused_with_an_input_that_never_required_grad():
    a, b = con([1.0, 2.0]), leaf([3.0, 4.0])
    r = attempt(lambda: grad((a * b).sum(), (a, b), allow_unused=True)[0])
    return [(r, None)]


@case(
    "S1",
    "backward(inputs=...) touches only those inputs",
    [(PT, "pull", 51940)],
    "gradient also accumulated elsewhere",
    "a.grad stays None",
)
def backward_inputs_touches_only_those_inputs():
    a, b = leaf(2.0), leaf(3.0)
    (a * b).backward(inputs=[b])
    return [(a.grad, None), (b.grad, 2)]


@case(
    "S3",
    "mixed batch: gradient of a gradient inside a loss",
    [(CH, "issues", 3428), (CH, "issues", 4185)],
    "exception while accumulating parameters reached by two orders",
    "w: 2wx^2 + 2",
)
def mixed_batch_gradient_of_a_gradient_inside_a_loss():
    w, x = leaf(3.0), leaf(2.0)
    (g,) = grad(w * x, x, create_graph=True)
    ((w * x) ** 2 + 2 * g).backward()
    return [(w.grad, 26)]


@case(
    "S3",
    "no_grad as decorator inside no_grad",
    [(PT, "issues", 10858)],
    "gradients switched back on after the call",
    "mode restored, not set",
)
def no_grad_as_decorator_inside_no_grad():
    f = T.no_grad()(lambda: T.is_grad_enabled())
    with T.no_grad():
        a = f()
        b = T.is_grad_enabled()
    return [(a, False), (b, False), (T.is_grad_enabled(), True)]


@case(
    "S3",
    "no_grad around a generator",
    [(PT, "pull", 31792)],
    "body runs with gradients on, or the caller's mode leaks",
    "off inside every step, caller unaffected",
)
def no_grad_around_a_generator():
    @T.no_grad()
    def gen():
        for _ in range(2):
            yield T.is_grad_enabled()

    seen = []
    for v in gen():
        seen += [v, T.is_grad_enabled()]
    return [(seen, [False, True, False, True])]


@case(
    "S1",
    "hook order: hooks first, retain_grad last",
    [(PT, "pull", 85849)],
    "retained gradient was the value before the hooks",
    "2 and 2",
)
def hook_order_hooks_first_retain_grad_last():
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: 2 * g)
    y.backward()
    return [(y.grad, 2), (x.grad, 2)]


@case(
    "S3",
    "hook on an output that the loss does not reach",
    [(PT, "issues", 11751)],
    "segmentation fault / None passed to the hook",
    "no crash; a.grad = [0, 1]",
)
def hook_on_an_output_that_the_loss_does_not_reach():
    a = leaf([1.0, 1.0])
    p, q = a.unbind()
    p.register_hook(lambda g: None)
    q.backward()
    return [(a.grad, [0, 1])]


@case(
    "S1",
    "saved output overwritten before backward",
    [(PT, "issues", 9391)],
    "sigmoid keeps its output, exp-based spelling does not: one errors, the other works",
    "error or the right [s', 0]",
)
def saved_output_overwritten_before_backward():
    a = leaf([1.0, 2.0])
    b = a.sigmoid()
    b[1] = 9.0
    r = attempt(lambda: (b.sum().backward(), a.grad)[1])
    s = 1 / (1 + math.exp(-1))
    return [(r if isinstance(r, Exception) else [float(v) for v in r], Either(RAISES, [s * (1 - s), 0]))]


@case(
    "S1",
    "in-place on a view of a view, base differentiated",
    [(PT, "issues", 31258), (PT, "pull", 85374), (MG, "issues", 296)],
    "wrong gradient of the base",
    "[0, 0, 4, 6] for sum(x^2) after x[:2] = 0",
)
def in_place_on_a_view_of_a_view_base_differentiated():
    r = leaf([1.0, 1.0, 2.0, 3.0])
    x = r.clone()
    x[:3][:2].zero_()
    (x**2).sum().backward()
    return [(r.grad, [0, 0, 4, 6])]


@case(
    "S3",
    "backward(create_graph=True) leaves a cycle",
    [(PT, "issues", 7343), (PT, "issues", 4661), (PT, "issues", 3818)],
    "x -> x.grad -> graph -> x never freed",
    "collectable once the user lets go",
)
def backward_create_graph_true_leaves_a_cycle():
    x = leaf([1.0])
    y = x.tanh().sum()
    y.backward(create_graph=True)
    r = weakref.ref(x)
    del x, y
    gc.collect()
    return [(r() is None, True)]


@case(
    "S3",
    "backward hook capturing gradients under create_graph",
    [(PT, "issues", 82528), (PT, "issues", 71068)],
    "hook -> gradient -> graph -> hook cycle leaks",
    "collectable",
)
def backward_hook_capturing_gradients_under_create_graph():
    m = nn.Linear(2, 1).double()
    m.register_full_backward_hook(lambda *a: None)
    x = leaf([[1.0, 2.0]])
    y = m(x).pow(2).sum()
    (g,) = grad(y, x, create_graph=True)
    r = weakref.ref(g)
    del g, y, x
    gc.collect()
    return [(r() is None, True)]


@case(
    "S3",
    "deepcopy",
    [(PT, "issues", 3307), (PT, "issues", 54580), ("sktime/sktime", "issues", 10928)],
    "copy loses .grad; a module that keeps a non-leaf cannot be copied",
    "leaf copy carries .grad; non-leaf: clear error or documented detach",
)
def deepcopy():
    x = leaf([1.0])
    (x * 3).sum().backward()
    c = copy.deepcopy(x)
    return [(c.grad, [3]), (c.grad is x.grad, False)]


def number(value):
    return value.detach().numpy() if T.is_tensor(value) else value


def agrees(got, want):
    if isinstance(want, Either):
        return any(agrees(got, option) for option in want.options)
    if isinstance(want, Raises):
        return isinstance(got, Exception)
    if isinstance(got, Exception):
        return False
    if want is None or isinstance(want, bool | T.dtype):
        return got is want or got == want
    if got is None:
        return False
    g, w = np.asarray(number(got), float), np.asarray(want, float)
    return g.shape == w.shape and bool(np.allclose(g, w, rtol=1e-6, atol=1e-12))


@pytest.mark.parametrize("title", CASES)
def test_fault_is_absent(title):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = CASES[title]()
    for got, want in rows:
        assert agrees(got, want), f"got {got!r}, expected {want!r}"
