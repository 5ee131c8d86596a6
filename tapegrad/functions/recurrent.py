"""Recurrent layers: one record for all steps of a layer in one direction, and the functions made of them.

The public functions of the records in `table.recurrent`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.record import fixed
from ..kernels.recurrent import Sizes
from ..kernels.shape import shape_of
from ..table.define import named
from ..table.recurrent import _gru_layer, _lstm_layer, _rnn_layer
from . import casting, shape
from .dropout import dropout
from .grad_fn_names import set_grad_fn_name
from .joining import cat, stack
from .linalg import linear
from .operands import tensor

# ----------------------------------------------------------------------------------------------------- public functions


def _direction(
    rnn_type: str, x: Any, states: Sequence[Any], weights: Sequence[Any], has_biases: bool, sizes: Sizes, reverse: bool
) -> tuple[Any, ...]:
    """States after every row of x, packed: h, and c of an LSTM."""
    w_ih, w_hh, *rest = weights
    b_ih, b_hh, *rest = rest if has_biases else (None, None, *rest)
    for t in (*states, x):
        if t._d.dtype != w_hh._d.dtype:
            raise errors.affine_dtypes(t._d.dtype, w_hh._d.dtype, None)
    if rnn_type == "gru":
        return (_gru_layer(linear(x, w_ih, b_ih), states[0], w_hh, 0.0 if b_hh is None else b_hh, sizes, reverse)[0],)
    gx = linear(x, w_ih, None if b_ih is None else b_ih + b_hh)
    if rnn_type == "lstm":
        return _lstm_layer(gx, *states, w_hh, rest[0] if rest else 1.0, sizes, reverse)[:2]  # type: ignore[no-any-return]
    return (_rnn_layer(gx, states[0], w_hh, sizes, reverse, rnn_type == "rnn_relu"),)


def _last(x: Any, sizes: Sizes, reverse: bool) -> Any:
    """Of the states after every row those after the last step of each sequence."""
    n = sizes[0]
    if reverse or n == sizes[-1]:
        at = 0 if reverse else n * (len(sizes) - 1)
        return x[at : at + n]
    starts = np.cumsum((0, *sizes))
    lengths = np.sum(np.array(sizes)[:, None] > np.arange(n), 0)
    return x[fixed(starts[lengths - 1] + np.arange(n))]


def _run(
    rnn_type: str, x: Any, sizes: Sizes, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int, rate: float,
    train: bool, bidirectional: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """A stack of recurrent layers on packed rows: the rows of the last layer, then the final states."""
    if casting.OPEN and casting.current() is not None:  # PyTorch's GRU stays in float32
        run = (casting.in_float32 if rnn_type == "gru" else casting.in_16_bits)(_run)
        return run(rnn_type, x, sizes, hx, list(params), has_biases, num_layers, rate, train, bidirectional)
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    states = hx if rnn_type == "lstm" else (hx,)
    finals: list[list[Any]] = [[] for _ in states]
    for layer in range(num_layers):
        made = []
        for k in range(layer * directions, (layer + 1) * directions):
            own, reverse = params[k * each : (k + 1) * each], bool(k % directions)
            found = _direction(rnn_type, x, [s[k] for s in states], own, has_biases, sizes, reverse)
            made.append(found[0])
            for final, y in zip(finals, found, strict=True):
                final.append(_last(y, sizes, reverse))
        x = cat(made, 1) if bidirectional else made[0]
        if layer + 1 < num_layers:
            x = dropout(x, rate, train)
    return x, *[stack(final) for final in finals]


def padded(
    rnn_type: str, input: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Recurrent layers on sequences of one length: outputs, then the final states.

    Args:
        rnn_type: "lstm", "gru", "rnn_tanh" or "rnn_relu".
        input: (T, B, features), or (B, T, features) with batch_first.
        hx: initial states (num_layers * directions, B, width): one, or of an LSTM the pair (h, c).
        params: of each layer and direction w_ih, w_hh, with has_biases b_ih and b_hh, with projections w_hr.
        dropout: probability with which elements between layers are dropped, if train.

    Raises:
        RuntimeError: for no step at all.
    """
    x = shape.transpose(input, 0, 1) if batch_first else tensor(input)
    steps, n, width = shape_of(x)
    if not steps:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    x = shape.reshape(x, (steps * n, width))
    rows, *finals = _run(rnn_type, x, (n,) * steps, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    rows = shape.reshape(rows, (steps, n, shape_of(rows)[1]))
    set_grad_fn_name("MkldnnRnnLayerBackward0" if rnn_type == "lstm" else "StackBackward0", rows)
    return shape.transpose(rows, 0, 1) if batch_first else rows, *finals


def packed(
    rnn_type: str, data: Any, batch_sizes: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Recurrent layers on packed sequences (sum(batch_sizes), features); the rest as `padded`."""
    sizes = tuple(batch_sizes.tolist())
    return _run(rnn_type, tensor(data), sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _stack(rnn_type: str, states: str) -> Callable[..., Any]:
    def function(input: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        is_packed = "batch_sizes" in kwargs or (len(args) > 2 and isinstance(args[2], list | tuple))
        return (packed if is_packed else padded)(rnn_type, input, *args, **kwargs)

    pair = rnn_type == "lstm"
    rows = 2 * GATES[rnn_type]
    doc = f"""Layers of type {rnn_type} on sequences of one length, or packed ones; each step is one of {rnn_type}_cell.

    Args:
        input: (T, B, features), or (B, T, features) with batch_first; packed: (sum(batch_sizes), features).
        args, kwargs: padded: hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first; packed:
            batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional. hx is
            {"the pair (h, c)" if pair else "h"}, of shape (num_layers * directions, B, width); params are of each layer and
            direction w_ih, w_hh, with has_biases b_ih and b_hh{", with projections w_hr" if pair else ""}; dropout is
            between layers, if train.

    Returns:
        (outputs, {states}), the last layer's h at all steps, and the states of all layers after the last one.

    Raises:
        RuntimeError: for no step at all.

    Example:
        >>> x, h = tg.zeros(5, 1, 3), tg.zeros(1, 1, 2)
        >>> params = tg.zeros({rows}, 3), tg.zeros({rows}, 2)
        >>> result = tg.{rnn_type}(x, {"(h, h)" if pair else "h"}, params, False, 1, 0.0, False, False, False)
        >>> [tuple(t.shape) for t in result]
        [(5, 1, 2), (1, 1, 2){", (1, 1, 2)" if pair else ""}]
    """
    return named(function, rnn_type, doc)


lstm = _stack("lstm", "final h, final c")
gru, rnn_tanh, rnn_relu = (_stack(rnn_type, "final h") for rnn_type in ("gru", "rnn_tanh", "rnn_relu"))


@casting.in_float32
def _cell(rnn_type: str, input: Any, hx: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, ...]:
    """One step of a layer, after checks of the sizes."""
    x, states = tensor(input), [tensor(h) for h in hx]
    n, width = shape_of(x)
    inner = shape_of(w_hh)[1]
    if width != shape_of(w_ih)[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {width} expected {shape_of(w_ih)[1]}")
    for i, h in enumerate(states):
        if shape_of(h)[0] != n:
            raise RuntimeError(f"Input batch size {n} doesn't match hidden{i} batch size {shape_of(h)[0]}")
        if shape_of(h)[1] != inner:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {shape_of(h)[1]}, expected {inner}")
    biases = () if b_ih is None else (b_ih, b_hh)
    return _direction(rnn_type, x, states, (w_ih, w_hh, *biases), bool(biases), (n,), False)


def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    """One step of an LSTM: c' = f * c + i * g and h' = o * tanh(c').

    i, f, o = sigmoid and g = tanh of input @ w_ih.T + b_ih + h @ w_hh.T + b_hh, whose columns are those of i, f, g, o.

    Args:
        input: (B, features).
        hx: (h, c) before the step, both (B, width).
        w_ih, w_hh: (4 * width, features) and (4 * width, width).
        b_ih, b_hh: (4 * width,), or both None.

    Returns:
        (h', c'), both (B, width).

    Raises:
        RuntimeError: for sizes that do not fit.

    Example:
        >>> x, h, c = tg.ones(1, 2), tg.zeros(1, 1), tg.ones(1, 1)
        >>> tg.lstm_cell(x, (h, c), tg.zeros(4, 2), tg.zeros(4, 1))  # c is halved
        (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = _cell("lstm", input, hx, w_ih, w_hh, b_ih, b_hh)
    return h, c


def _simple_cell(rnn_type: str, doc: str, result: str) -> Callable[..., Any]:
    rows = f"{GATES[rnn_type]} * width" if GATES[rnn_type] > 1 else "width"

    def function(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return _cell(rnn_type, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

    return named(function, f"{rnn_type}_cell", f"""{doc}

    Args:
        input: (B, features).
        hx: (B, width), h before the step.
        w_ih, w_hh: ({rows}, features) and ({rows}, width).
        b_ih, b_hh: ({rows},), or both None.

    Returns:
        h after the step, (B, width).

    Raises:
        RuntimeError: for sizes that do not fit.

    Example:
        >>> x, h, n = tg.ones(1, 2), tg.tensor([[0.5]]), {GATES[rnn_type]}
        >>> tg.{rnn_type}_cell(x, h, tg.ones(n, 2), tg.ones(n, 1))
        tensor([[{result}]])
    """)  # fmt: skip


gru_cell = _simple_cell(
    "gru",
    """One step of a GRU: h = (1 - z) * n + z * hx.

    r, z = sigmoid(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh) and n = tanh(input @ w_ih.T + b_ih + r * (hx @ w_hh.T +
    b_hh)), each with its rows of the weights, in the order r, z, n.""",
    "0.5368",
)
rnn_tanh_cell, rnn_relu_cell = (
    _simple_cell(f"rnn_{f}", f"One step of a layer: h = {f}(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh).", result)
    for f, result in (("tanh", "0.9866"), ("relu", "2.5000"))
)
