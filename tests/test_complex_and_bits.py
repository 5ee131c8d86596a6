"""Parts of numbers: views of complex tensors, sign and size, mantissa and exponent, bits."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing

F64, C128 = tg.float64, tg.complex128


def complex_leaf():
    z = np.array([[1 + 2j, -3 + 0.5j, 0.25 - 1j], [2 - 2j, 1j, -1 + 0j]])
    return tg.from_numpy(z).requires_grad_()


# --------------------------------------------------------------------------------------------------------------- views


def test_writes_show_in_the_complex_tensor_and_back():
    z = tg.zeros(2, dtype=C128)
    z.real.fill_(3)
    z.imag[1] = 4
    assert z.tolist() == [3 + 0j, 3 + 4j]
    pairs = tg.view_as_real(z)
    pairs[0] = tg.tensor([5.0, 6.0])
    assert z[0].item() == 5 + 6j and pairs.data_ptr() == z.data_ptr() == z.real.data_ptr()
    z.mul_(2)
    assert pairs.tolist() == [[10.0, 12.0], [6.0, 8.0]]
    r = tg.zeros(3, 2, dtype=F64)
    tg.view_as_complex(r)[1] = 1 + 2j
    assert r.tolist() == [[0, 0], [1, 2], [0, 0]]


PROGRAMS = {
    "real part written": lambda z, v: z.real.copy_(v),
    "row of the imaginary part": lambda z, v: z.imag[1].copy_(v[0]),
    "scaled": lambda z, v: z.real.mul_(v),
    "of the transpose": lambda z, v: z.t().real.copy_(v.t()),
    "column of the imaginary part": lambda z, v: z.imag[:, 1].copy_(v[:, 0]),
    "of a reshaped transpose": lambda z, v: z.t().reshape(-1).imag.mul_(2),
    "pairs": lambda z, v: tg.view_as_real(z)[:, :, 1].add_(v),
    "pairs and back": lambda z, v: tg.view_as_complex(tg.view_as_real(z))[0].mul_(v[0]),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_through_a_written_part(name, order):
    """Against finite differences: the base and the value that was written."""

    def f(z, v):
        w = z * (1 + 0.5j)
        if order == "F":
            w = w.t().contiguous().t()
        PROGRAMS[name](w, v)
        return w * w.conj() * (1 - 2j)

    z = np.array([[1 + 2j, -3 + 0.5j, 0.25 - 1j], [2 - 2j, 1j, -1 + 0.3j]])
    testing.check_grads(f, (z, np.arange(1.0, 7.0).reshape(2, 3)), order=2)


def test_parts_of_empty_and_strided_tensors():
    assert tg.view_as_real(tg.zeros(0, 2, dtype=C128)).shape == (0, 2, 2)
    assert tg.view_as_complex(tg.zeros(2, 0, 2)).shape == (2, 0)
    z = complex_leaf().detach().t()[::2]
    np.testing.assert_array_equal(tg.view_as_real(z).numpy()[..., 1], z.numpy().imag)
    z = complex_leaf()
    (g,) = tg.autograd.grad(tg.view_as_real(z.t())[..., 1].sum(), z)
    np.testing.assert_array_equal(g.numpy(), np.full((2, 3), 1j))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tg.imag(tg.ones(1)), "imag is not implemented for tensors with non-complex dtypes."),
        (lambda: tg.view_as_real(tg.ones(1)), "view_as_real is only supported for complex tensors"),
        (lambda: tg.view_as_complex(tg.ones(2, 3)), "Tensor must have a last dimension of size 2"),
        (lambda: tg.view_as_complex(tg.ones(2, 2).t()), "Tensor must have a last dimension with stride 1"),
        (lambda: tg.view_as_complex(tg.ones(3, 3)[:, :2]), "Tensor must have a stride divisible by 2 for all but last"),
        (lambda: tg.view_as_complex(tg.ones(2, dtype=tg.int64)), "only supported for half, float and double tensors"),
        (
            lambda: tg.complex(tg.ones(1), tg.ones(1, dtype=F64)),
            "Expected object of scalar type Float but got scalar type Double",
        ),
        (
            lambda: tg.polar(tg.ones(1), tg.tensor([1])),
            "Expected both inputs to be Half, Float or Double tensors but got Float",
        ),
        (lambda: tg.frexp(tg.tensor([1])), "torch.frexp\\(\\) only supports floating-point dtypes"),
        (lambda: tg.heaviside(tg.tensor([1]), tg.ones(1)), "not yet implemented for tensors with different dtypes"),
        (lambda: tg.positive(tg.tensor([True])), "The `\\+` operator, on a bool tensor is not supported."),
        (lambda: tg.deg2rad(tg.tensor([1j])), "deg2rad is not supported for complex tensors."),
        (lambda: tg.fmax(tg.tensor([1j]), tg.tensor([1j])), "fmax not implemented for complex tensors."),
    ],
)
def test_refusals(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tg.gcd(tg.tensor([4.0]), tg.tensor([2.0])), "\"gcd_cpu\" not implemented for 'Float'"),
        (lambda: tg.tensor([1.0]) << 1, "\"lshift_cpu\" not implemented for 'Float'"),
        (lambda: tg.frac(tg.tensor([1])), "\"frac_cpu\" not implemented for 'Long'"),
        (lambda: tg.signbit(tg.tensor([1j])), "signbit is not implemented for complex tensors."),
        (lambda: tg.copysign(tg.tensor([1j]), 1.0), "\"copysign_cpu\" not implemented for 'ComplexFloat'"),
    ],
)
def test_missing_kernels(call, text):
    with pytest.raises(NotImplementedError, match=text):
        call()


# ------------------------------------------------------------------------------------------------------- sign and size


def gradients(f, *values, cotangent=None):
    xs = [tg.tensor(v, dtype=F64, requires_grad=True) for v in values]
    y = f(*xs)
    y.backward(tg.ones_like(y) if cotangent is None else tg.tensor(cotangent, dtype=F64))
    return [x.grad.tolist() for x in xs]


def test_infinite_cotangents_do_not_reach_the_loser():
    a, b, g = [1.0, 5.0, 2.0], [3.0, 4.0, 2.5], [math.inf, -math.inf, 1.0]
    assert gradients(tg.maximum, a, b, cotangent=g) == [[0.0, -math.inf, 0.0], [math.inf, 0.0, 1.0]]
    assert gradients(tg.minimum, a, b, cotangent=g) == [[math.inf, 0.0, 1.0], [0.0, -math.inf, 0.0]]
    assert gradients(tg.fmax, a, b, cotangent=g) == [[0.0, -math.inf, 0.0], [math.inf, 0.0, 1.0]]


def test_fmax_and_fmin():
    a, b = [0.0, 1.0, math.nan, 1.0, math.nan], [0.0, math.nan, 1.0, 2.0, math.nan]
    assert gradients(tg.fmax, a, b) == [[1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 0.0]]
    assert gradients(tg.fmin, a, b) == [[1.0, 1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(tg.fmax(tg.tensor(a), tg.tensor(b)), [0.0, 1.0, 1.0, 2.0, math.nan])


def test_copysign():
    assert tg.copysign(tg.tensor([1]), tg.tensor([-2])).tolist() == [-1.0]
    got = gradients(tg.copysign, [0.0, 1.0, -1.0, -2.0], [-1.0, -0.0, 1.0, -3.0])
    assert got == [[0.0, -1.0, -1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]


def test_angle():
    z = complex_leaf()
    assert np.allclose(tg.angle(z).detach().numpy(), np.angle(z.detach().numpy()), rtol=1e-15)
    assert tg.angle(tg.tensor([2, -2])).tolist() == pytest.approx([0.0, math.pi])
    np.testing.assert_array_equal(tg.angle(tg.tensor([math.nan, -0.0])), [math.nan, 0.0])
    w = tg.zeros(1, dtype=C128, requires_grad=True)
    assert tg.autograd.grad(tg.angle(w).sum(), w)[0].item() == 0


# ----------------------------------------------------------------------------------------------- mantissa and exponent


@pytest.mark.parametrize("dtype", [tg.float32, F64])
def test_frexp(dtype):
    info = tg.finfo(dtype)
    x = tg.tensor([1.0, -3.0, 0.0, info.max, info.tiny, info.tiny / 8, math.inf, math.nan], dtype=dtype)
    mantissa, exponent = tg.frexp(x)
    expected = np.frexp(x.numpy())
    np.testing.assert_array_equal(mantissa.numpy(), expected[0])
    assert exponent.dtype == tg.int32 and exponent.tolist() == expected[1].tolist()
    assert gradients(lambda t: tg.frexp(t).mantissa, [3.0, 0.25]) == [[0.25, 2.0]]


def test_ldexp_and_float_power():
    assert gradients(tg.ldexp, [1.0, 3.0], [2.0, 2.0]) == [[4.0, 4.0], pytest.approx([4 * math.log(2), 12 * math.log(2)])]
    assert tg.float_power(tg.tensor([2]), 3).dtype == F64 and tg.float_power(2, tg.tensor([1j])).dtype == C128
    assert tg.tensor([3.0], dtype=F64).float_power_(2).item() == 9.0


def test_round_to_decimals():
    x = tg.tensor([1.25, -1.35, 271.7, 0.5], dtype=F64)
    assert tg.round(x, decimals=1).tolist() == [1.2, -1.4, 271.7, 0.5]
    assert x.round(decimals=-2).tolist() == [0.0, -0.0, 300.0, 0.0]
    assert tg.round(tg.tensor([3])).dtype == tg.int64
    with pytest.raises(NotImplementedError, match="\"round_cpu\" not implemented for 'Long'"):
        tg.round(tg.tensor([3]), decimals=1)


# ------------------------------------------------------------------------------------------------------- whole numbers


@pytest.mark.parametrize("dtype", [tg.uint8, tg.int8, tg.int32, tg.int64])
def test_shifts(dtype):
    bits = tg.iinfo(dtype).bits
    x = tg.tensor([1, 8, 100], dtype=dtype)
    assert (x << 2).tolist() == [int(v) for v in (np.array([1, 8, 100]) << 2).astype(x.numpy().dtype)]
    assert (x >> tg.tensor([0, 2, bits], dtype=dtype)).tolist() == [1, 2, 0]
    assert (x << bits).tolist() == [0, 0, 0]
    if dtype != tg.uint8:
        assert (tg.tensor([-8, -8, -8], dtype=dtype) >> tg.tensor([1, bits, -1], dtype=dtype)).tolist() == [-4, -1, -1]
    y = x.clone()
    y <<= 1
    assert y.tolist() == [2, 16, 200 - 256 * (dtype == tg.int8)] and (1 << x[:1]).tolist() == [2]


def test_divisors_and_steps():
    assert tg.gcd(tg.tensor([12, -4, 0]), tg.tensor([8, 6, 0])).tolist() == [4, 2, 0]
    assert tg.lcm(tg.tensor([12, -4, 0]), tg.tensor([8, 6, 0])).tolist() == [24, 12, 0]
    assert tg.heaviside(tg.tensor([-1, 0, 3]), tg.tensor([5, 5, 5])).tolist() == [0, 5, 1]
    assert tg.heaviside(tg.tensor([math.nan, -0.0]), tg.tensor([0.5])).tolist() == [0.0, 0.5]


def test_second_names():
    x = tg.tensor([0.5, 0.25])
    for name, first in {"absolute": "abs", "arccos": "acos", "negative": "neg", "fix": "trunc"}.items():
        assert getattr(x, name)().tolist() == getattr(x, first)().tolist() == getattr(tg, name)(x).tolist()
    assert x.clone().multiply_(2).tolist() == x.multiply(2).tolist() == [1.0, 0.5]
    assert x.clone().greater_(0.3).tolist() == [1.0, 0.0]
    assert x.__rdiv__(1).tolist() == [2.0, 4.0] and tg.rsub(x, 1, alpha=2).tolist() == [0.0, 0.5]


def test_integers_to_negative_powers():
    x, y = tg.tensor([2, 1, -1, 3, 0, -1]), tg.tensor([-1, -1, -3, 0, -1, -2])
    assert (x**y).tolist() == [0, 1, -1, 1, 0, 1] and (2**y).tolist() == [0, 0, 0, 1, 0, 0]
    assert (x.to(tg.int8) ** y.to(tg.int8)).dtype == tg.int8
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed."):
        x**-1


def test_real_and_imaginary_parts_can_be_set():
    z = tg.tensor([1 + 2j, 3 + 4j])
    z.real, z.imag = tg.tensor([5.0, 6.0]), 7
    assert z.tolist() == [5 + 7j, 6 + 7j]
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    w = tg.zeros(2, dtype=tg.complex64)
    w.real, w.imag = x, 2 * x
    (w * w.conj()).real.sum().backward()
    assert x.grad.tolist() == [10, 20]
    t = tg.ones(2)
    t.real = tg.zeros(2)
    assert t.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        t.imag = t
