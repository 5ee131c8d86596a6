"""Gradients by indexing, broadcasting and mixed dtypes, where other libraries went wrong (see gradient_cases.py)."""

import numpy as np
import pytest
from gradient_cases import CH, HI, MG, OF, PT, RAISES, attempt, check, con, f32, f64, leaf, registry

import tapegrad as T

CASES, case = registry()


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


@pytest.mark.parametrize("title", CASES)
def test_case(title):
    check(CASES[title])
