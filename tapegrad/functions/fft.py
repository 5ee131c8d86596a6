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
    """Discrete Fourier transform along a dimension: X[k] = sum over j of input[j] * exp(-2 pi i j k / n).

    Args:
        input: float or complex tensor of 32 bits or more (integers count as the default dtype).
        n: number of values: the dimension is cut, or filled with zeros, to it; default its size.
        dim: the dimension, default the last.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor, with n values along `dim`.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.fft(tg.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _to_spectrum(input, _along(input, n, dim), False, _norm(norm))


@with_out
def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Inverse of `fft`: x[j] = sum over k of input[k] * exp(2 pi i j k / n) / n.

    Args:
        input: float or complex tensor of 32 bits or more (integers count as the default dtype).
        n: number of values: the dimension is cut, or filled with zeros, to it; default its size.
        dim: the dimension, default the last.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor, with n values along `dim`.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 3.0, 4.0])
        >>> tg.fft.ifft(tg.fft.fft(x)).real
        tensor([1., 2., 3., 4.])
    """
    return _to_spectrum(input, _along(input, n, dim), True, _norm(norm))


@with_out
def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Fourier transform of a real signal: the n // 2 + 1 frequencies of `fft` that are not negative.

    Args:
        input: real tensor of 32 bits or more (integers count as the default dtype).
        n: number of values: the dimension is cut, or filled with zeros, to it; default its size.
        dim: the dimension, default the last.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor, with n // 2 + 1 values along `dim`.

    Raises:
        RuntimeError: for complex tensors, 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.rfft(tg.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _to_half(_real("rfft", input), _along(input, n, dim), False, _norm(norm))


@with_out
def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Inverse of `rfft`: the real signal of n values whose frequencies are the input.

    Args:
        input: float or complex tensor with n // 2 + 1 frequencies along `dim`, of 32 bits or more.
        n: length of the signal, by default 2 * (size - 1).
        dim: the dimension, default the last.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Real tensor, with n values along `dim`.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
        >>> tg.fft.irfft(tg.fft.rfft(x), n=5).round(decimals=4)
        tensor([1., 2., 3., 4., 5.])
    """
    return _from_half(input, _along(input, n, dim), True, _norm(norm))


@with_out
def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Fourier transform of a Hermitian signal, given by its first half: a real spectrum of n values.

    Args:
        input: float or complex tensor with n // 2 + 1 values along `dim`, of 32 bits or more.
        n: length of the spectrum, by default 2 * (size - 1).
        dim: the dimension, default the last.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Real tensor, with n values along `dim`.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.hfft(tg.tensor([1.0, 2.0j, 3.0]))
        tensor([ 4.,  2.,  4., -6.])
    """
    return _from_half(input, _along(input, n, dim), False, _norm(norm))


@with_out
def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Inverse of `hfft`: the first half of the Hermitian signal whose spectrum is the input.

    Args:
        input: real tensor of 32 bits or more (integers count as the default dtype).
        n: number of values: the dimension is cut, or filled with zeros, to it; default its size.
        dim: the dimension, default the last.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor, with n // 2 + 1 values along `dim`.

    Raises:
        RuntimeError: for complex tensors, 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.ihfft(tg.tensor([4.0, 2.0, 4.0, -6.0]))
        tensor([1.-0.j, 0.+2.j, 3.-0.j])
    """
    return _to_half(_real("ihfft", input), _along(input, n, dim), True, _norm(norm))


@with_out
def fftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Discrete Fourier transform over several dimensions: `fft` along each.

    Args:
        input: float or complex tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the dimensions, by default all, or the last len(s).
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor of input's shape, but for the sizes given.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.fftn(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[10.+0.j, -2.+0.j],
                [-4.+0.j,  0.+0.j]])
    """
    return _to_spectrum(input, _dims(tensor(input), s, dim), False, _norm(norm))


@with_out
def ifftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Inverse of `fftn`: `ifft` along each of several dimensions.

    Args:
        input: float or complex tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the dimensions, by default all, or the last len(s).
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor of input's shape, but for the sizes given.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> tg.fft.ifftn(tg.fft.fftn(x)).real
        tensor([[1., 2.],
                [3., 4.]])
    """
    return _to_spectrum(input, _dims(tensor(input), s, dim), True, _norm(norm))


@with_out
def rfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Fourier transform of a real signal over several dimensions: half of the spectrum of `fftn`.

    Args:
        input: real tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the dimensions, by default all, or the last len(s).
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor; the last of the dimensions has the n // 2 + 1 frequencies that are not negative.

    Raises:
        RuntimeError: for complex tensors, 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.rfftn(tg.ones(4, 6)).shape
        torch.Size([4, 4])
    """
    x = _real("rfftn", input, REAL_VALUED)
    return _to_half(x, _over("rfftn", input, s, dim), False, _norm(norm))


@with_out
def irfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Inverse of `rfftn`: the real signal over several dimensions whose half spectrum is the input.

    Args:
        input: float or complex tensor, half of a spectrum, of 32 bits or more.
        s: sizes of the signal; -1 is the size as it is, 2 * (size - 1) in the last dimension.
        dim: the dimensions, by default all, or the last len(s).
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Real tensor.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> x = tg.arange(1.0, 7.0).reshape(2, 3)
        >>> tg.fft.irfftn(tg.fft.rfftn(x), s=(2, 3)).round(decimals=4)
        tensor([[1., 2., 3.],
                [4., 5., 6.]])
    """
    return _from_half(input, _over("irfftn", input, s, dim), True, _norm(norm))


@with_out
def hfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Fourier transform of a Hermitian signal over several dimensions, given by the first half of the last of them.

    Args:
        input: float or complex tensor, half of a signal, of 32 bits or more.
        s: sizes of the spectrum; -1 is the size as it is, 2 * (size - 1) in the last dimension.
        dim: the dimensions, by default all, or the last len(s).
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Real tensor, the spectrum.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.hfftn(tg.ones(4, 3)).shape
        torch.Size([4, 4])
    """
    return _from_half(input, _over("hfftn", input, s, dim), False, _norm(norm))


@with_out
def ihfftn(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Any:
    """Inverse of `hfftn`: the half of the Hermitian signal whose spectrum over several dimensions is the input.

    Args:
        input: real tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the dimensions, by default all, or the last len(s).
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor; the last of the dimensions has n // 2 + 1 values.

    Raises:
        RuntimeError: for complex tensors, 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.ihfftn(tg.ones(4, 6)).shape
        torch.Size([4, 4])
    """
    x = _real("ihfftn", input, REAL_VALUED)
    return _to_half(x, _over("ihfftn", input, s, dim), True, _norm(norm))


@with_out
def fft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """Discrete Fourier transform over two dimensions: `fft` along each.

    Args:
        input: float or complex tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the two dimensions, default the last two.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor of input's shape, but for the sizes given.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.fft2(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[10.+0.j, -2.+0.j],
                [-4.+0.j,  0.+0.j]])
    """
    return fftn(input, s, dim, norm)


@with_out
def ifft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """Inverse of `fft2`: `ifft` along each of two dimensions.

    Args:
        input: float or complex tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the two dimensions, default the last two.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor of input's shape, but for the sizes given.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> tg.fft.ifft2(tg.fft.fft2(x)).real
        tensor([[1., 2.],
                [3., 4.]])
    """
    return ifftn(input, s, dim, norm)


@with_out
def rfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """Fourier transform of a real signal over two dimensions: half of the spectrum of `fft2`.

    Args:
        input: real tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the two dimensions, default the last two.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor; the last of the dimensions has the n // 2 + 1 frequencies that are not negative.

    Raises:
        RuntimeError: for complex tensors, 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.rfft2(tg.ones(4, 6)).shape
        torch.Size([4, 4])
    """
    return rfftn(input, s, dim, norm)


@with_out
def irfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """Inverse of `rfft2`: the real signal over two dimensions whose half spectrum is the input.

    Args:
        input: float or complex tensor, half of a spectrum, of 32 bits or more.
        s: sizes of the signal; -1 is the size as it is, 2 * (size - 1) in the last dimension.
        dim: the two dimensions, default the last two.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Real tensor.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> x = tg.arange(1.0, 7.0).reshape(2, 3)
        >>> tg.fft.irfft2(tg.fft.rfft2(x), s=(2, 3)).round(decimals=4)
        tensor([[1., 2., 3.],
                [4., 5., 6.]])
    """
    return irfftn(input, s, dim, norm)


@with_out
def hfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """Fourier transform of a Hermitian signal over two dimensions, given by the first half of the last of them.

    Args:
        input: float or complex tensor, half of a signal, of 32 bits or more.
        s: sizes of the spectrum; -1 is the size as it is, 2 * (size - 1) in the last dimension.
        dim: the two dimensions, default the last two.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Real tensor, the spectrum.

    Raises:
        RuntimeError: for 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.hfft2(tg.ones(4, 3)).shape
        torch.Size([4, 4])
    """
    return hfftn(input, s, dim, norm)


@with_out
def ihfft2(input: Any, s: Sizes = None, dim: Sizes = LAST_TWO, norm: str | None = None) -> Any:
    """Inverse of `hfft2`: the half of the Hermitian signal whose spectrum over two dimensions is the input.

    Args:
        input: real tensor of 32 bits or more (integers count as the default dtype).
        s: sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
        dim: the two dimensions, default the last two.
        norm: "backward" (default; the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".

    Returns:
        Complex tensor; the last of the dimensions has n // 2 + 1 values.

    Raises:
        RuntimeError: for complex tensors, 16-bit numbers, no values, or another norm.

    Example:
        >>> tg.fft.ihfft2(tg.ones(4, 6)).shape
        torch.Size([4, 4])
    """
    return ihfftn(input, s, dim, norm)


def _shifted(input: Any, dim: Sizes, by: Any) -> Any:
    x = tensor(input)
    dims = tuple(range(x._d.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return roll(x, [by(x._d.shape[dim_of(d, x._d.ndim)]) for d in dims], dims) if dims else TABLE["clone"].call(x)


def fftshift(input: Any, dim: Sizes = None) -> Any:
    """The frequencies of `fft` in increasing order: those from 0 up move behind the negative ones.

    Args:
        input: tensor of any dtype.
        dim: a dimension or a tuple of them, default all.

    Returns:
        A copy, each dimension rolled by n // 2.

    Example:
        >>> tg.fft.fftshift(tg.fft.fftfreq(5, d=0.2))
        tensor([-2., -1.,  0.,  1.,  2.])
    """
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Any, dim: Sizes = None) -> Any:
    """Inverse of `fftshift`.

    Args:
        input: tensor of any dtype.
        dim: a dimension or a tuple of them, default all.

    Returns:
        A copy, each dimension rolled by (n + 1) // 2.

    Example:
        >>> tg.fft.ifftshift(tg.tensor([-2, -1, 0, 1, 2]))
        tensor([ 0,  1,  2, -2, -1])
    """
    return _shifted(input, dim, lambda n: (n + 1) // 2)


def _frequencies(positions: Any, n: int, d: float, dtype: Any, device: Any, requires_grad: bool) -> Any:
    wanted = dtypes.get_default_dtype().numpy if dtype is None else dtypes.to_numpy(dtype)
    if wanted.kind in "biu":
        raise RuntimeError(f"{positions.__name__} requires a floating point or complex dtype")
    return finish(positions(n, d).astype(wanted) if n else np.zeros(0, wanted), requires_grad, device)


@factory
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The frequencies of `fft` of n values at distance d: 0, 1, .., -2, -1 over n * d.

    Args:
        n: number of values.
        d: distance of the values, default 1.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Returns:
        Vector (n,).

    Raises:
        RuntimeError: for an integer dtype.

    Example:
        >>> tg.fft.fftfreq(5, d=0.2)
        tensor([ 0.,  1.,  2., -2., -1.])
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device, requires_grad)


@factory
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The frequencies of `rfft` of n values at distance d: 0, 1, .., n // 2 over n * d.

    Args:
        n: number of values.
        d: distance of the values, default 1.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Returns:
        Vector (n // 2 + 1,).

    Raises:
        RuntimeError: for an integer dtype.

    Example:
        >>> tg.fft.rfftfreq(5, d=0.2)
        tensor([0., 1., 2.])
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device, requires_grad)
