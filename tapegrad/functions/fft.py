"""Discrete Fourier transforms: three linear records, one of complex arrays and two between real arrays and half spectra.

The public functions of the records in `table.fft`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core.op import TABLE
from ..kernels.shape import dim_of
from ..table.fft import OPPOSITE, _fft_c2c, _fft_c2r, _fft_r2c
from . import casting
from .arguments import dim_within, with_out
from .create import factory, finish
from .operands import promoted, tensor
from .shape import narrow, roll

Sizes = int | list[int] | tuple[int, ...] | None

# ------------------------------------------------------------------------------------------------------- arguments


def _norm(norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in OPPOSITE:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm


def _floating(input: Any) -> Any:
    """The input as a tensor of a dtype that can be transformed; integers in the default dtype."""
    x = promoted([tensor(input)], integers_to_float=True)[0]
    if casting.OPEN and casting.current() is not None:
        x = casting.cast(x, casting.F32)
    if x._d.dtype.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {errors.dtype_name(x._d.dtype)}")
    return x


def _complex(input: Any) -> Any:
    x = _floating(input)
    return x if x._d.dtype.kind == "c" else TABLE["to_complex"].call(x)


def _real(name: str, input: Any, what: str = "a real input tensor") -> Any:
    x = _floating(input)
    if x._d.dtype.kind == "c":
        raise RuntimeError(f"{name} expects {what}, but got {errors.dtype_name(x._d.dtype)}")
    return x


def _dims(x: Any, s: Sizes, dim: Sizes) -> tuple[tuple[int, ...], list[int]]:
    """Dimensions to transform, and the size of each (-1: as it is)."""
    rank = x._d.ndim
    sizes = None if s is None else [operator.index(n) for n in ([s] if isinstance(s, int) else s)]
    if dim is not None:
        dims = tuple([dim_of(d, rank) for d in ([dim] if isinstance(dim, int) else dim)])
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif sizes is None:
        dims = tuple(range(rank))
    elif len(sizes) > rank:
        raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {rank} dimensions.")
    else:
        dims = tuple(range(rank - len(sizes), rank))
    return dims, [-1] * len(dims) if sizes is None else sizes


def resized(x: Any, dim: int, n: int) -> Any:
    """The first n elements along dim, with zeros where there are fewer."""
    size = x._d.shape[dim]
    if n <= size:
        return x if n == size else narrow(x, dim, 0, n)
    shape = (*x._d.shape[:dim], n, *x._d.shape[dim + 1 :])
    return TABLE["index_zeros"].call(x, shape, (*[slice(None)] * dim, slice(0, size)))


def _check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _sized(x: Any, dim: int, n: int | None) -> Any:
    """The operand with n elements along dim; None and -1 leave it."""
    if n is not None and n != -1:
        _check_points(n)
        return resized(x, dim, operator.index(n))
    _check_points(x._d.shape[dim])
    return x


# --------------------------------------------------------------------------------------------- transforms, by what they map


def _to_spectrum(input: Any, dims_and_sizes: Any, inverse: bool, norm: str) -> Any:
    """Complex to complex over several dimensions."""
    dims, ns = dims_and_sizes
    x = _complex(input)
    for d, n in zip(dims, ns, strict=True):
        x = _sized(x, d, n)
    return _fft_c2c(x, dims, inverse, norm) if dims else x


def _to_half(x: Any, dims_and_sizes: Any, inverse: bool, norm: str) -> Any:
    """Real to the half spectrum along the last of the dimensions, then complex to complex over the others."""
    dims, ns = dims_and_sizes
    last, n = dims[-1], ns[-1]
    x = _sized(x, last, n)
    y = TABLE["conj"].call(_fft_r2c(x, last, OPPOSITE[norm])) if inverse else _fft_r2c(x, last, norm)
    return _to_spectrum(y, (dims[:-1], ns[:-1]), inverse, norm)


def _from_half(input: Any, dims_and_sizes: Any, inverse: bool, norm: str) -> Any:
    """Complex to complex over all but the last of the dimensions, then from the half spectrum along it to real."""
    dims, ns = dims_and_sizes
    x = _to_spectrum(input, (dims[:-1], ns[:-1]), inverse, norm)
    last, n = dims[-1], ns[-1]
    if n is None or n == -1:
        n = 2 * (x._d.shape[last] - 1)
    _check_points(n)
    x = resized(x, last, n // 2 + 1)
    return _fft_c2r(x, last, n, norm) if inverse else _fft_c2r(TABLE["conj"].call(x), last, n, OPPOSITE[norm])


def _along(input: Any, n: int | None, dim: int) -> tuple[tuple[int], list[int | None]]:
    if n is not None:  # -1 leaves the size in the functions of several dimensions alone
        _check_points(n)
    return (dim_within(dim, tensor(input)._d.ndim),), [n]


def _over(name: str, input: Any, s: Sizes, dim: Sizes) -> tuple[tuple[int, ...], list[int]]:
    dims, sizes = _dims(tensor(input), s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return dims, sizes


# --------------------------------------------------------------------------------------------------- public functions

LAST_TWO = (-2, -1)
REAL_VALUED = "a real-valued input tensor"


@with_out
def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Discrete Fourier transform along `dim`, of n values (cut or filled with zeros)."""
    return _to_spectrum(input, _along(input, n, dim), False, _norm(norm))


@with_out
def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Inverse of `fft`."""
    return _to_spectrum(input, _along(input, n, dim), True, _norm(norm))


@with_out
def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The n // 2 + 1 frequencies of a real signal that are not negative."""
    return _to_half(_real("rfft", input), _along(input, n, dim), False, _norm(norm))


@with_out
def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The real signal of n values whose `rfft` is the input; n is 2 (size - 1) unless given."""
    return _from_half(input, _along(input, n, dim), True, _norm(norm))


@with_out
def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The real spectrum of n values of a Hermitian signal, given by its first half."""
    return _from_half(input, _along(input, n, dim), False, _norm(norm))


@with_out
def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Inverse of `hfft`: the first half of the Hermitian signal."""
    return _to_half(_real("ihfft", input), _along(input, n, dim), True, _norm(norm))


@with_out
def fftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """`fft` over several dimensions (all, or the last len(s)), of sizes s (-1: as it is)."""
    return _to_spectrum(input, _dims(tensor(input), s, dim), False, _norm(norm))


@with_out
def ifftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Inverse of `fftn`."""
    return _to_spectrum(input, _dims(tensor(input), s, dim), True, _norm(norm))


@with_out
def rfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """`fftn` of a real signal, with the half spectrum along the last of the dimensions."""
    x = _real("rfftn", input, REAL_VALUED)
    return _to_half(x, _over("rfftn", input, s, dim), False, _norm(norm))


@with_out
def irfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """The real signal whose `rfftn` is the input."""
    return _from_half(input, _over("irfftn", input, s, dim), True, _norm(norm))


@with_out
def hfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """The real spectrum over several dimensions of a Hermitian signal, given by the first half of its last dimension."""
    return _from_half(input, _over("hfftn", input, s, dim), False, _norm(norm))


@with_out
def ihfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Inverse of `hfftn`."""
    x = _real("ihfftn", input, REAL_VALUED)
    return _to_half(x, _over("ihfftn", input, s, dim), True, _norm(norm))


@with_out
def fft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """`fftn` over two dimensions."""
    return fftn(input, s, dim, norm)


@with_out
def ifft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """`ifftn` over two dimensions."""
    return ifftn(input, s, dim, norm)


@with_out
def rfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """`rfftn` over two dimensions."""
    return rfftn(input, s, dim, norm)


@with_out
def irfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """`irfftn` over two dimensions."""
    return irfftn(input, s, dim, norm)


@with_out
def hfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """`hfftn` over two dimensions."""
    return hfftn(input, s, dim, norm)


@with_out
def ihfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """`ihfftn` over two dimensions."""
    return ihfftn(input, s, dim, norm)


def _shifted(input: Any, dim: Sizes, by: Any) -> Any:
    x = tensor(input)
    dims = tuple(range(x._d.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return roll(x, [by(x._d.shape[dim_of(d, x._d.ndim)]) for d in dims], dims) if dims else TABLE["clone"].call(x)


def fftshift(input: Any, dim: Sizes = None) -> Any:
    """The frequencies in increasing order: those from 0 up move behind the negative ones."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Any, dim: Sizes = None) -> Any:
    """Inverse of `fftshift`."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)


def _frequencies(positions: Any, n: int, d: float, dtype: Any, device: Any, requires_grad: bool) -> Any:
    wanted = dtypes.get_default_dtype().numpy if dtype is None else dtypes.to_numpy(dtype)
    if wanted.kind in "biu":
        raise RuntimeError(f"{positions.__name__} requires a floating point or complex dtype")
    return finish(positions(n, d).astype(wanted) if n else np.zeros(0, wanted), requires_grad, device)


@factory
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The frequencies of `fft` of n values at distance d: 0, 1, .., -2, -1 over n d."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device, requires_grad)


@factory
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The frequencies of `rfft` of n values at distance d: 0, 1, .., n // 2 over n d."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device, requires_grad)
