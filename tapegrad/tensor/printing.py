"""The printed form of arrays and tensors, which is PyTorch's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dialect, dtypes
from ..core import record
from ..levels.level import LevelState
from ..programs.tracing import leaving
from .access import raw

_Array = np.ndarray[Any, np.dtype[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class PrintOptions:
    """How tensors print; see ``set_printoptions``."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def get_printoptions() -> PrintOptions:
    """Return the options now in force."""
    return _options


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print.

    Args:
        precision: digits after the point (4).
        threshold: number of elements above which only the edges are printed (1000).
        edgeitems: elements printed at each edge of a shortened dimension (3).
        linewidth: characters in a line (80).
        profile: ``"default"``, ``"short"`` or ``"full"``: sets all of the above that are not given.
        sci_mode: scientific notation always (True), never (False), or as the values need it (None); unlike
            the other options it goes back to None when it is not given.

    Example:
        >>> tg.set_printoptions(precision=2)
        >>> tg.tensor([1 / 3])
        tensor([0.33])
        >>> tg.set_printoptions(profile="default")
    """
    global _options
    options = _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
        options = _PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _options = dataclasses.replace(options, sci_mode=sci_mode, **changes)


def needs_dtype_suffix(np_dtype: np.dtype[Any], default_np_dtype: np.dtype[Any], *, empty: bool = False) -> bool:
    """Return whether a tensor prints its dtype.

    The default floating-point type, its complex type, int64 and bool can be told from the printed values. An
    empty tensor shows no values, so that only the default floating-point type goes without saying.
    """
    if np_dtype == default_np_dtype:
        return False
    if empty:
        return True
    default_complex = np.complex128 if default_np_dtype == np.float64 else np.complex64
    return np_dtype not in (np.int64, np.bool_, default_complex)


def tensor_repr(a: _Array, *, name: str = "tensor", suffixes: list[str], column: int = 0) -> str:
    """Return ``name(values, suffixes)``; a suffix that does not fit into the line starts a new one.

    column: where in its line the text will begin.

    Where the values do not show the shape (an empty array that is not 1-d; ``edgeitems=0``), ``size=(...)``
    goes before the given suffixes.
    """
    indent = column + len(name) + 1
    if _needs_size_suffix(a):
        suffixes = [f"size={a.shape}", *suffixes]
    return with_suffixes(f"{name}({format_array(a, indent)}", suffixes, indent)


def with_suffixes(text: str, suffixes: list[str], indent: int, *, new_line: bool = False) -> str:
    """Return ``text, suffixes)``; a suffix that does not fit into the line, or the first if asked for, starts a new one."""
    used = len(text.rpartition("\n")[2]) + 2  # PyTorch counts two more than there are
    for i, suffix in enumerate(suffixes):
        if used + len(suffix) + 2 > _options.linewidth or (new_line and i == 0):
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def _needs_size_suffix(a: _Array) -> bool:
    return a.ndim != 1 if a.size == 0 else _options.edgeitems == 0


def format_array(a: _Array, indent: int) -> str:
    """Return the values in brackets; lines after the first are indented by ``indent`` spaces."""
    if a.size == 0:
        return "[]"
    edge = _options.edgeitems
    cuts = tuple(a.size > _options.threshold and n > 2 * edge for n in a.shape)
    if any(cuts) and edge == 0:
        return "[...]"
    for axis, cut in enumerate(cuts):
        if cut:
            a = a.take([*range(edge), *range(-edge, 0)], axis)
    if a.dtype.name == "bfloat16":
        a = a.astype(np.float32)
    cell, width = _cell_format(a)
    return _format_block(a, cuts, indent, cell, width)


def _format_block(a: _Array, cuts: tuple[bool, ...], indent: int, cell: Callable[[Any], str], width: int) -> str:
    """Format an array already reduced to its edges; ``cuts`` says which dimensions need an ellipsis."""
    if a.ndim == 0:
        return cell(a.item())
    line_break = "\n" * max(1, a.ndim - 1) + " " * (indent + 1)
    if a.ndim > 1:
        items = [_format_block(row, cuts[1:], indent + 1, cell, width) for row in a]
    else:
        items = [cell(x) for x in a.tolist()]
    if cuts[0]:
        items.insert(_options.edgeitems, " ..." if a.ndim == 1 else "...")
    per_line = max(1, (_options.linewidth - indent) // (width + 2)) if a.ndim == 1 else 1
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + ("," + line_break).join(lines) + "]"


def _cell_format(a: _Array) -> tuple[Callable[[Any], str], int]:
    """Return a function that formats one of the array's values, and the width it pads them to."""
    if a.dtype.kind == "c":
        return _complex_format(a)
    if a.dtype.kind == "f":
        # Zeros, infinities and nans have no say in the form or the width of a column in PyTorch.
        counted = a[np.isfinite(a) & (a != 0)].tolist()
        text = _float_format([abs(x) for x in counted])
    else:
        counted = a.ravel().tolist()
        text = str
    width = max((len(text(x)) for x in counted), default=1)
    return lambda x: text(x).rjust(width), width


def _complex_format(a: _Array) -> tuple[Callable[[complex], str], int]:
    real, real_width = _cell_format(a.real)
    imag, imag_width = _cell_format(a.imag)

    def cell(z: complex) -> str:
        imag_text = imag(z.imag).lstrip()
        sign = "" if imag_text.startswith("-") else "+"
        return f"{real(z.real)}{sign}{imag_text}j"

    return cell, real_width + imag_width + 1


def _float_format(sizes: list[float]) -> Callable[[float], str]:
    """Return the function that writes floats of these sizes, all as ``1.``, ``1.0000`` or ``1.0000e+00``."""
    whole = all(x.is_integer() for x in sizes)
    if _is_scientific(sizes, whole):
        return f"{{:.{_options.precision}e}}".format
    if not whole:
        return f"{{:.{_options.precision}f}}".format
    return lambda x: f"{x:.0f}." if math.isfinite(x) else f"{x}"


def _is_scientific(sizes: list[float], whole: bool) -> bool:
    if not sizes:
        return False
    if _options.sci_mode is not None:
        return _options.sci_mode
    smallest, largest = min(sizes), max(sizes)
    return largest / smallest > 1000 or largest > 1e8 or (not whole and smallest < 1e-4)


def tensor_text(t: Any) -> str:
    """PyTorch's printed form."""
    array = leaving(t, "printing")  # first: the look makes an ordinary tensor of a pending one
    own = type(t) not in (record.Tensor, record.Scalar, record.Parameter)
    name = type(t).__name__ if own else "tensor"
    text = tensor_repr(array, name=name, suffixes=dtype_suffix(t) + history_suffix(t))
    return f"Parameter({text})" if own and t._is_parameter else text


def dtype_suffix(t: Any) -> list[str]:
    """What the printed form says of the dtype."""
    a, default = raw(t), dtypes.get_default_dtype().numpy
    said = dialect.current.every_dtype or needs_dtype_suffix(a.dtype, default, empty=a.size == 0)
    place = [] if t.is_cpu else [f"device='{t.device}'"]
    return [*place, f"dtype={t.dtype}"] if said else place


def history_suffix(t: Any) -> list[str]:
    """What the printed form says of gradients."""
    suffixes = []
    if t._s > 0:
        suffixes.append(f"grad_fn=<{t.grad_fn.name().rpartition('::')[2]}>")
    elif t._s and dialect.current.leaves_show_node and t.grad is not None:
        suffixes.append(f"grad_fn=<{dialect.current.leaf[1]}>")
    elif t._s:
        suffixes.append("requires_grad=True")
    if type(t._st) is LevelState and t._st.level.shares_outer_layer and t._st.payload is not None:
        suffixes.append(f"tangent={tensor_text(t._st.payload)}")
    return suffixes
