"""torch.testing's names for tests of programs: assert_close and make_tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..core.warning import warn
from ..functions import create
from ..functions.complex_and_bits import view_as_real
from ..programs.tracing import leaving
from ..tensor.tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
"""PyTorch's (rtol, atol) of each dtype; those of integers and bools are 0."""
OLD_TOLERANCES = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}


class _Mismatch(Exception):
    """An error to be raised, and the keys that lead to the item that it is about."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text
        self.path: list[Any] = []

    def error(self, msg: Any) -> Exception:
        text = self.text
        if self.path:
            text += f"\n\nThe failure occurred for item {''.join(str([key]) for key in reversed(self.path))}"
        return self.kind(msg if isinstance(msg, str) else msg(text) if callable(msg) else text)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Raise unless abs(actual - expected) <= atol + rtol * abs(expected) everywhere, with PyTorch's words about where not.

    Args:
        actual, expected: tensors, arrays, numbers, None, or sequences and mappings of such, nested as the other.
        allow_subclasses: whether the types may be subclasses of each other.
        rtol, atol: both, or none: then those of the dtype, 1.3e-6 and 1e-5 for float32.
        equal_nan: whether nan equals nan.
        check_device, check_layout: of no effect, there is one device and one layout.
        check_dtype: whether dtypes must be equal; of numbers, the types. Without it both are promoted.
        check_stride: whether the steps in memory must be equal.
        msg: the error's text, or a function that makes it of the usual one.

    Raises:
        AssertionError: for values that are not close, or shapes, dtypes or structures that differ.
        TypeError: for objects that are none of these.
        ValueError: for one tolerance without the other.

    Example:
        >>> tg.testing.assert_close(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 2.000001]))
        >>> try:
        ...     tg.testing.assert_close(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 3.0]))
        ... except AssertionError as e:
        ...     print(e)
        Tensor-likes are not close!
        <BLANKLINE>
        Mismatched elements: 1 / 2 (50.0%)
        Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)
        Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    try:
        _compare(actual, expected, tolerances, equal_nan, check_dtype, check_stride, allow_subclasses)
    except _Mismatch as e:
        raise e.error(msg) from None


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """The older name of assert_close without regard to dtypes; gives a FutureWarning.

    Args:
        actual, expected: as for assert_close.
        rtol, atol: both, or none: then those of the dtype.
        equal_nan: whether nan equals nan.
        msg: the error's text.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     tg.testing.assert_allclose(tg.tensor([1.0]), tg.tensor([1.0 + 1e-7]))
    """
    warn("`torch.testing.assert_allclose()` is deprecated since 1.12. Please use `torch.testing.assert_close()` instead.",
         FutureWarning)  # fmt: skip
    actual, expected = (v if isinstance(v, Tensor) else create.tensor(v) for v in (actual, expected))
    if rtol is None and atol is None:
        known = [OLD_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(k) for k in zip(*known, strict=True))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _compare(actual: Any, expected: Any, *settings: Any) -> None:
    """Compare values, item by item where they are sequences or mappings of one kind."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, more = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or more:
            raise _Mismatch(
                AssertionError,
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(more)}",
            )
        items = [(key, actual[key], expected[key]) for key in _in_order(actual)]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise _Mismatch(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        items = [(i, a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))]
    else:
        _compare_values(actual, expected, *settings)
        return
    for key, a, b in items:
        try:
            _compare(a, b, *settings)
        except _Mismatch as e:
            e.path.append(key)
            raise


def _in_order(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_values(
    actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, check_stride: bool, subclasses: bool
) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")
        return
    flags, numbers = bool | np.bool_, int | float | complex | np.number
    if isinstance(actual, flags) and isinstance(expected, flags):
        if bool(actual) is not bool(expected):
            raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}")
    elif isinstance(actual, numbers) and isinstance(expected, numbers):
        _compare_numbers(actual, expected, tolerances, equal_nan, check_dtype)
    else:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        arrays = [_tensor_of(v) for v in (actual, expected)]
        if None in arrays or not related or (not subclasses and type(actual) is not type(expected)):
            raise _Mismatch(
                TypeError,
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            )
        _compare_tensors(arrays[0], arrays[1], tolerances, equal_nan, check_dtype, check_stride)


def _tensor_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        return create.tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _compare_numbers(actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool) -> None:
    actual, expected = (v.item() if isinstance(v, np.number) else v for v in (actual, expected))
    kinds = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
    if check_dtype and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    pair = [kinds.get(type(v), dtypes.int64) for v in (actual, expected)]
    rtol, atol = tolerances or _tolerances(*pair)
    nan = equal_nan and actual != actual and expected != expected
    finite = math.isfinite(abs(expected)) and math.isfinite(abs(actual))
    if actual == expected or nan or (finite and abs(actual - expected) <= atol + rtol * abs(expected)):
        return
    raise _scalars_differ(actual, expected, rtol, atol)


def _scalars_differ(actual: Any, expected: Any, rtol: float, atol: float) -> _Mismatch:
    difference = abs(actual - expected)
    relative = math.inf if expected == 0 else difference / abs(expected)
    head = f"Scalars are not {_word(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
    return _Mismatch(
        AssertionError,
        f"{head}Absolute difference: {difference}{_allowed(atol, rtol, atol)}\n"
        f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}",
    )


def _tolerances(*pair: dtypes.dtype) -> tuple[float, float]:
    known = [TOLERANCES.get(d, (0.0, 0.0)) for d in pair]
    return max(r for r, _ in known), max(a for _, a in known)


def _word(rtol: float, atol: float) -> str:
    return "equal" if rtol == 0 and atol == 0 else "close"


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _compare_tensors(
    actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, check_stride: bool
) -> None:
    checks = [("shape", True), ("dtype", check_dtype), ("stride()", check_stride)]
    for name, check in checks:
        a, b = (getattr(t, name.removesuffix("()")) for t in (actual, expected))
        if name.endswith("()"):
            a, b = a(), b()
        if check and a != b:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {a} != {b}.")
    rtol, atol = tolerances or _tolerances(actual.dtype, expected.dtype)
    dtype = dtypes.promote_types(actual.dtype, expected.dtype).numpy
    x, y = (leaving(t, "assert_close()").astype(dtype) for t in (actual, expected))
    with np.errstate(all="ignore"):
        same = np.isclose(x, y, rtol, atol, equal_nan) if dtype.kind != "b" else x == y
        if np.all(same):
            return
        if not x.ndim:
            raise _scalars_differ(x.item(), y.item(), rtol, atol)
        if dtype.kind in "biu":
            x, y = x.astype(np.int64), y.astype(np.int64)
        difference = np.where(same, 0, np.abs(x - y))
        relative = np.where(same, 0, difference / np.abs(y))
    wrong = int(same.size - np.count_nonzero(same))
    lines = [f"Mismatched elements: {wrong} / {same.size} ({wrong / same.size:.1%})"]
    for kind, values, tolerance in (("absolute", difference, atol), ("relative", relative, rtol)):
        worst = values if dtype.kind not in "biu" or kind == "absolute" else values.astype(dtypes.get_default_dtype().numpy)
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(worst)), worst.shape))
        lines.append(f"Greatest {kind} difference: {worst[place].item()} at index {place}{_allowed(tolerance, rtol, atol)}")
    raise _Mismatch(AssertionError, f"Tensor-likes are not {_word(rtol, atol)}!\n\n" + "\n".join(lines))


def make_tensor(
    *shape: Any, dtype: dtypes.dtype, device: Any = "cpu", low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """A tensor of random values in [low, high), for tests: by default from -9 to 9, from 0 for uint8, 0 and 1 for bools.

    Args:
        shape: sizes, or one sequence of them.
        dtype: of the result.
        device: "cpu".
        low, high: the interval.
        requires_grad: make it a leaf that requires grad.
        noncontiguous: with gaps in memory.
        exclude_zero: without 0: 1 in its place, or the smallest positive number.
        memory_format: of no effect.

    Raises:
        ValueError: for an interval that is empty or out of the dtype's range, or a gradient of integers.

    Example:
        >>> x = tg.testing.make_tensor(2, 3, dtype=tg.float64, low=0.0, high=1.0)
        >>> x.shape, bool((x >= 0).all())
        (torch.Size([2, 3]), True)
    """
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if noncontiguous and math.prod(sizes) > 1:
        sizes[-1] *= 2
    low, high = _interval(dtype, low, high)
    if inexact:
        t = create.empty(sizes, dtype=dtype, device=device)
        values = view_as_real(t) if dtype.is_complex else t
        wide = high - low >= dtypes.finfo(dtype.to_real()).max
        values.uniform_(low / 2, high / 2).mul_(2) if wide else values.uniform_(low, high)
    else:
        t = create.randint(math.ceil(low), math.ceil(high), sizes, dtype=dtype, device=device)
    if noncontiguous and math.prod(sizes) > 1:
        t = t[..., 1::2]
    if exclude_zero:
        t[t == 0] = dtypes.finfo(dtype.to_real()).tiny if inexact else 1
    return t.requires_grad_(requires_grad)


def _interval(dtype: dtypes.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Bounds within the dtype's range."""
    if dtype is dtypes.bool_:
        least, beyond, default = 0.0, 2.0, (0.0, 2.0)
    elif dtype.is_floating_point or dtype.is_complex:
        info = dtypes.finfo(dtype.to_real())
        least, beyond, default = info.min, info.max, (-9.0, 9.0)
    else:
        whole = dtypes.iinfo(dtype)
        least, beyond, default = whole.min, whole.max + (dtype is not dtypes.int64), (-9.0, 10.0)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low >= high and not (low == high and (dtype.is_floating_point or dtype.is_complex)):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= beyond:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {beyond})"
        )
    return min(max(low, least), beyond), min(max(high, least), beyond)
