"""Convolution along some axes of two arrays."""

import string

import numpy as _np

from autograd import numpy as _anp


def convolve(A, B, axes=None, dot_axes=None, mode="full"):
    """Convolve A and B along pairs of axes and sum over others.

    Args:
        A, B: arrays.
        axes: (axes of A, axes of B) to convolve; all of both by default.
        dot_axes: (axes of A, axes of B) to sum products over.
        mode: "full", "valid" or "same" (of A's size).

    Returns:
        An array with the other axes of A, those of B, and the convolved ones, in this order.
    """
    assert mode in ("valid", "full", "same"), f"Mode {mode} undefined, it can be one of 'valid', 'full', and 'same'"
    shapes = _anp.shape(A), _anp.shape(B)
    axes = [list(range(len(s))) for s in shapes] if axes is None else [list(a) for a in axes]
    dots = [[], []] if dot_axes is None else [list(a) for a in dot_axes]
    pairs = [(shapes[0][i], shapes[1][j]) for i, j in zip(*axes, strict=True)]
    slid = 0  # which of the two is cut into windows, that the other, reversed, is multiplied with
    if mode == "valid" and any(b > a for a, b in pairs):
        if any(a > b for a, b in pairs):
            raise ValueError("One array must be larger than the other along all convolved dimensions")
        slid = 1
    letters = iter(string.ascii_letters)
    labels = [[next(letters) for _ in s] for s in shapes]
    for i, j in zip(*dots, strict=True):
        labels[1][j] = labels[0][i]
    others = [[labels[k][d] for d in range(len(shapes[k])) if d not in axes[k] + dots[k]] for k in (0, 1)]
    x, y = (A, B) if slid == 0 else (B, A)
    window, convolved = [[label] for label in labels[slid]], []
    for i, j in zip(axes[slid], axes[1 - slid], strict=True):
        size = shapes[1 - slid][j]
        x = _padded(x, i, size, mode)
        convolved.append(next(letters))
        window[i] = [convolved[-1], labels[1 - slid][j]]
    y = _anp.flip(y, tuple(axes[1 - slid])) if axes[1 - slid] else y
    for i, j in sorted(zip(axes[slid], axes[1 - slid], strict=True), reverse=True):
        size = shapes[1 - slid][j]
        starts = _np.arange(_anp.shape(x)[i] - size + 1)
        x = _anp.take(x, starts[:, None] + _np.arange(size), axis=i)
    result = "".join(others[0] + others[1] + convolved)
    terms = "".join(label for group in window for label in group), "".join(labels[1 - slid])
    return _anp.einsum(f"{terms[0]},{terms[1]}->{result}", x, y)


def _padded(x, axis, size, mode):
    """x with the zeros at both ends of an axis that windows of a size reach into."""
    after = 0 if mode == "valid" else size - 1 if mode == "full" else (size - 1) // 2
    before = after if mode != "same" else size - 1 - after
    widths = [(before, after) if d == axis else (0, 0) for d in range(len(_anp.shape(x)))]
    return _anp.pad(x, widths, mode="constant")
