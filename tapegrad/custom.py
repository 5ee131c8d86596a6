"""Custom operations: define a forward on NumPy arrays and its derivative once; the rest follows.

    import numpy as np
    import tapegrad as tg

    softsign = tg.custom.elementwise(
        "softsign",
        lambda x: x / (1 + np.abs(x)),
        lambda xp, ans, x: 1 / (1 + xp.abs(x)) ** 2,
    )

`softsign(x)` accepts tensors, ndarrays and numbers, can be differentiated to any order in both modes, and runs under
`tg.func.vmap`. A forward whose first parameter is `xp` is given NumPy's functions or those of `jax.numpy`, and so becomes
part of compiled programs; any other forward is called on the host. A derivative calls tapegrad's functions through `xp` and
operators, so that it can itself be differentiated; it must name its arguments, because only those that it reads are saved.
The laws of `tapegrad.testing` run on the samples when an operation is defined: a wrong derivative raises LawError. Defining
a name again replaces the operation.

Where a derivative cannot be written that way (it needs NumPy or another library) use `tg.autograd.Function`.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import dtypes as kinds
from . import errors
from .core import factories, record
from .core.op import EVERYTHING, HOST, Op, Rule
from .core.record import Box
from .kernels.namespace import on_numpy, takes_namespace
from .later import mark as _mark
from .table.samples import common as inputs
from .table.samples.common import Sample
from .tensor.tensor import Tensor

__all__ = ["Sample", "elementwise", "general", "linear", "use"]

Function = Callable[..., Tensor]
_KEYS: dict[str, str] = {}  # names to those of the records, which tell redefinitions apart
_COUNTS: dict[str, int] = {}  # how often a name was defined
_LOCK = threading.Lock()

HINTS = {
    "value": "the forward warns or gives another value when it runs a second time",
    "vjp": "the derivative does not agree with finite differences of the forward",
    "second_order": "the derivative is right, but not its own derivative: something in it does not go through xp",
    "third_order": "the second derivative is right, but not the third: something in it does not go through xp",
    "linearity": "the derivative is not linear in the cotangent g",
    "dtypes": "the forward or the derivative changes the precision: use Python numbers as constants",
    "purity": "the forward or the derivative writes into an argument, or gives another value when it runs a second time",
    "saves_sufficient": "the derivative reads an array that it does not take as an argument",
    "recorded": "the derivative computes something else on tensors than on arrays",
    "strong_zero": "a cotangent of 0 does not stay 0",
    "jvp": "the forward derivative does not agree with finite differences of the forward",
    "adjoint": "the forward derivative and the derivative with a cotangent are not those of the same function",
    "mixed_orders": "something in the forward derivative, or in the other, does not go through xp",
    "vmap": "the batch rule does not give what a loop over the samples gives",
    "taylor": "a derivative uses more than functions of xp and arithmetic operators, such as methods of tensors or indexing",
    "broadcasting": "the forward does not broadcast its arguments as NumPy does",
}


def elementwise(
    name: str,
    forward: Callable[..., Any],
    *derivatives: Rule,
    doc: str | None = None,
    samples: Sequence[Any] | Callable[[], Any] | None = None,
    check: bool = True,
    saves: str | Sequence[str] = EVERYTHING,
    jax: Callable[..., Any] | str | None = None,
) -> Function:
    """Define an elementwise operation; its arguments broadcast.

    Args:
        name: name of the function and, capitalised, of its node.
        forward: forward(*arrays, *params) on ndarrays, or forward(xp, *arrays, *params) with the array namespace as xp
            (numpy's functions or jax.numpy's); numbers are passed as 0-d arrays, integers converted to the default dtype
            and 16-bit floats to float32.
        derivatives: d(xp, ans, *arrays, *params) for each array argument: the elementwise derivative with respect to it; a
            number if it is constant; None if it is not differentiable.
        doc: docstring of the function.
        samples: calls on which the laws run: each an array, a tuple of the forward's arguments, or a `Sample`; or a function
            that returns them. Default: values in (-2, 2) for one or two arrays.
        check: whether to run the laws.
        saves: what the derivatives read and the tape therefore saves: argument names, "ans" for the result, "x.shape" for a
            shape alone; one string for all, such as "x ans", or one per derivative. By default everything is saved.
        jax: what runs on JAX's arrays, in `tg.compile` and on devices: a function with the forward's arguments. By default
            a ufunc or a forward that takes xp runs there itself, any other is called on the host ("host").

    Returns:
        The function; parameters after the arrays can be passed by keyword.

    Raises:
        LawError: if a law is broken; the message names the law and shows both values.
        TypeError, ValueError: for a derivative with a wrong signature or result.

    Example:
        >>> cube = tg.custom.elementwise("cube", lambda x: x**3, lambda xp, ans, x: 3 * x * x, saves="x")
        >>> tg.func.grad(tg.func.grad(cube))(tg.tensor(2.0))
        tensor(12.)
    """
    if not derivatives:
        raise ValueError(f"elementwise({name!r}) needs a derivative for each array argument; None where there is none")
    fields: dict[str, Any] = {"integers": "float", "saves": saves, "jax": jax}
    return _define(name, "elementwise", forward, derivatives, len(derivatives), doc, samples, check, fields)


def linear(
    name: str,
    forward: Callable[..., Any],
    transpose: Callable[..., Any],
    *,
    doc: str | None = None,
    samples: Sequence[Any] | Callable[[], Any] | None = None,
    check: bool = True,
    saves: str | Sequence[str] = EVERYTHING,
    batch: Callable[..., Any] | None = None,
    jax: Callable[..., Any] | str | None = None,
) -> Function:
    """Define a linear operation of one array.

    Args:
        forward: forward(x, *params) on ndarrays, or forward(xp, x, *params).
        transpose: transpose(g, *params) on ndarrays, for example `lambda g: A.T @ g` (for complex numbers the adjoint); or
            transpose(xp, g, ans, x, *params) in terms of tapegrad's functions, which may read x.shape. One on ndarrays is
            called on the host where the operation is compiled.
        batch: batch(op, n, args, batched, params) of the forward, see `tapegrad.core.op`; without it vmap runs sample by
            sample.
        name, doc, samples, check, saves, jax: as for `elementwise`; the laws need samples.

    Returns:
        The function.

    Raises:
        LawError: if a law is broken, for example because transpose is not the transpose of forward.

    Example:
        >>> a = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> mul_a = tg.custom.linear("mul_a", lambda x: a @ x, lambda g: a.T @ g, samples=[np.ones(2)])
        >>> x = tg.ones(2, dtype=tg.float64, requires_grad=True)
        >>> mul_a(x).sum().backward()
        >>> x.grad
        tensor([ 9., 12.], dtype=torch.float64)
    """
    rule, key = transpose, _key(name)
    if next(iter(inspect.signature(transpose).parameters), None) != "xp":
        back = key + ".transpose"

        def rule(xp: Any, g: Any, ans: Any, x: Any, *params: Any) -> Any:
            return getattr(xp, back)(g, *params)

        def again(xp: Any, g: Any, ans: Any, x: Any, *params: Any) -> Any:
            return getattr(xp, key)(g, *params)

        factories.make(Op(back, "linear", _fitted(transpose, 1), (again,), jax=HOST, saves=EVERYTHING, wide=True))
    fields: dict[str, Any] = {"batch": batch, "saves": saves, "jax": jax}
    return _define(name, "linear", forward, (rule,), 1, doc, samples, check, fields, key)


def general(
    name: str,
    forward: Callable[..., Any],
    *vjps: Rule,
    jvp: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    outputs: int = 1,
    doc: str | None = None,
    samples: Sequence[Any] | Callable[[], Any] | None = None,
    check: bool = True,
    saves: str | Sequence[str] = EVERYTHING,
    jax: Callable[..., Any] | str | None = None,
) -> Function:
    """Define an operation of any kind.

    Args:
        forward: forward(*arrays, *params) on ndarrays, or forward(xp, *arrays, *params); returns an array, or a tuple of
            `outputs` arrays.
        vjps: v(xp, g, ans, *arrays, *params) for each array argument: the cotangent of the argument, given the
            cotangent g of the result (a list for several outputs). None if it is not differentiable.
        jvp: jvp(xp, tangents, ans, *arrays, *params): the tangent of the result, given those of the arguments (None for
            0); without it forward mode transposes the vjps.
        batch: batch(op, n, args, batched, params), see `tapegrad.core.op`; without it vmap runs sample by sample.
        name, doc, samples, check, saves, jax: as for `elementwise`; the laws need samples.

    Returns:
        The function.

    Raises:
        LawError: if a law is broken.

    Example:
        >>> total = tg.custom.general(
        ...     "total", lambda x: x.sum(), lambda xp, g, ans, x: xp.expand(g, x.shape), saves="x.shape",
        ...     samples=[np.arange(6.0).reshape(2, 3)],
        ... )
        >>> tg.func.grad(total)(tg.ones(2))
        tensor([1., 1.])
    """
    fields: dict[str, Any] = {
        "jvp": jvp, "batch": batch, "outputs": outputs, "zero_filled": True, "saves": saves, "jax": jax
    }  # fmt: skip
    return _define(name, "general", forward, vjps, len(vjps), doc, samples, check, fields)


def use(xp: Any, name: str) -> Callable[..., Any]:
    """A custom operation for use inside a derivative, also its own: `use(xp, "bessel_i")(x, n - 1)`.

    Args:
        xp: the table, as a derivative receives it.
        name: name of the operation.

    Returns:
        The operation, on the values of the derivative.

    Example:
        >>> wave = tg.custom.elementwise("wave", lambda x, n: np.sin(x + n * np.pi / 2),
        ...     lambda xp, ans, x, n: tg.custom.use(xp, "wave")(x, n + 1), samples=[(np.array([0.5, 1.0]), 0)])
        >>> tg.func.grad(lambda x: wave(x, 0))(0.0)  # cos
        1.0
    """
    return getattr(xp, _KEYS[name])  # type: ignore[no-any-return]


def _key(name: str) -> str:
    """Key of the record of a new definition."""
    if not name.isidentifier():
        raise ValueError(f"the name of an operation must be an identifier, not {name!r}")
    with _LOCK:
        n = _COUNTS[name] = _COUNTS.get(name, 0) + 1
    return f"custom.{name}:{n}" if n > 1 else f"custom.{name}"


def _define(
    name: str, kind: str, forward: Callable[..., Any], rules: tuple[Rule, ...], arity: int, doc: str | None, samples: Any,
    check: bool, fields: dict[str, Any], key: str | None = None,
) -> Function:  # fmt: skip
    signature = _signature(name, forward, arity)
    params = list(signature.parameters.values())[arity:]
    for i, rule in enumerate(rules):
        _check_rule(name, i, rule, (2 if kind == "elementwise" else 3) + arity + len(params))
    runs = forward if isinstance(forward, np.ufunc) and kind == "elementwise" else _fitted(forward, arity)
    of_numpy = runs is forward and forward is getattr(np, forward.__name__, None)
    if not (fields["jax"] in (None, HOST) or callable(fields["jax"])):
        raise TypeError(f'{name}: jax= is a function with the forward\'s arguments, or "{HOST}", not {fields["jax"]!r}')
    if fields["jax"] is None and not (of_numpy or takes_namespace(forward)):
        fields["jax"] = HOST
    op = Op(
        key or _key(name), kind, runs, rules, arity=arity, params=[p.name for p in params], singular=True, wide=True,
        display="".join(part.capitalize() for part in name.split("_")), samples=_samples(name, arity, params, samples, kind),
        **fields,
    )  # fmt: skip
    factories.make(op)
    if kind == "elementwise" and arity == 2 and params:
        op.call = factories.many_arrays(op)  # the path of binary operators takes no parameters
    previous = _KEYS.get(name)
    _KEYS[name] = op.name
    if check:
        try:
            _check(name, op)
        except BaseException:
            _KEYS.pop(name) if previous is None else _KEYS.update({name: previous})
            raise

    def function(*args: Any, **kwargs: Any) -> Any:
        if params or kwargs or len(args) != arity:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        if all([isinstance(a, Box) for a in args[:arity]]):
            return op.call(*args)
        if kind == "elementwise":
            args = (*_without_numbers(args[:arity]), *args[arity:])
        result = record.slow(op, args[:arity], args[arity:])
        if result is NotImplemented:
            raise errors.bad_operand(name, args[:arity])
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _without_numbers(args: Sequence[Any]) -> list[Any]:
    """Python numbers as arrays of the other operands' dtype: a function of a Python float would return float64."""
    dtypes = [a._d.dtype if isinstance(a, Box) else a.dtype for a in args if isinstance(a, Box | np.ndarray)]
    dtype = next((d for d in dtypes if kinds.is_inexact(d)), None)
    return [np.asarray(a, dtype) if type(a) in (int, float) and dtype is not None else a for a in args]


def _signature(name: str, forward: Callable[..., Any], arity: int) -> inspect.Signature:
    """Names of the forward's parameters: arrays first; a ufunc has arrays only."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if isinstance(forward, np.ufunc):
        count = forward.nin
        signature = inspect.Signature([inspect.Parameter(f"x{i}", kind) for i in range(count)])
    else:
        signature = inspect.signature(forward)
        if takes_namespace(forward):
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        count = len(signature.parameters)
    if count < arity or any([p.kind is not kind for p in signature.parameters.values()]):
        raise TypeError(
            f"the forward of {name!r} must name its arguments, {arity} array{'s' * (arity > 1)} first, one for each "
            f"derivative, but it is forward{signature}"
        )
    return signature


def _check_rule(name: str, i: int, rule: Any, count: int) -> None:
    if rule is None or isinstance(rule, int | float):
        return
    code = getattr(rule, "__code__", None)
    if code is None:
        raise TypeError(f"derivative {i} of {name!r} must be a Python function, a number or None, not {type(rule).__name__}")
    if code.co_flags & inspect.CO_VARARGS and code.co_argcount <= count:
        return
    if code.co_argcount != count:
        raise TypeError(
            f"derivative {i} of {name!r} must take {count} arguments, (xp, ans, *arrays, *params) of an elementwise one, "
            f"(xp, g, ans, *arrays, *params) of another, but it takes {code.co_argcount}"
        )


def _fitted(forward: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """The forward with results cast to the arguments' precision."""
    takes_xp = takes_namespace(forward)

    def fit(xp: Any, r: Any, dtype: Any) -> Any:
        r = xp.asarray(r)
        if dtype is None or not kinds.is_inexact(r.dtype):
            return r
        if r.dtype.kind == "c" and dtype.kind != "c":
            dtype = np.result_type(dtype, np.complex64)
        return r.astype(dtype, copy=False) if r.dtype.kind == dtype.kind else r

    def run(xp: Any, *args: Any) -> Any:
        r = forward(xp, *args) if takes_xp else forward(*args)
        given = [a.dtype for a in args[:arity] if isinstance(a, xp.ndarray) and kinds.is_inexact(a.dtype)]
        dtype = np.result_type(*given) if given else None
        return tuple([fit(xp, v, dtype) for v in r]) if isinstance(r, tuple) else fit(xp, r, dtype)

    return on_numpy(run)


def _samples(
    name: str, arity: int, params: list[inspect.Parameter], samples: Any, kind: str
) -> Callable[[], Iterator[Sample]] | None:
    """The samples in the form that records use."""
    if samples is None:
        defaults = tuple([p.default for p in params])
        if kind != "elementwise" or arity > 2 or inspect.Parameter.empty in defaults:
            return None
        some = inputs.REAL if arity == 1 else inputs.pairs(numbers=False)
        return lambda: iter([Sample(s.arrays, defaults, s.smooth) for s in some()])

    def given() -> Iterator[Sample]:
        for item in samples() if callable(samples) else samples:
            if isinstance(item, Sample):
                yield item
            else:
                args = item if isinstance(item, tuple) else (item,)
                arrays = [a.detach().numpy() if isinstance(a, Tensor) else np.asarray(a) for a in args[:arity]]
                yield Sample(tuple(arrays), tuple(args[arity:]) + tuple([p.default for p in params[len(args) - arity :]]))

    return given


def _check(name: str, op: Op) -> None:
    """Run the laws on the samples."""
    from . import testing

    if op.samples is None:
        count = f"{op.arity} derivative{'s' * (op.arity > 1)}"
        others = f" ({', '.join(op.params)} of its forward is no array: it has {count})" if op.params else ""
        raise ValueError(f"the laws need samples=[...] of the arguments of {name!r}{others}; check=False goes without")
    try:
        testing.check(op, testing.LAWS)
    except testing.LawError as e:
        text = str(e).split("\n  repeat:")[0].replace(f"op {op.name} ({op.kind})", f"{op.kind} operation {name!r}")
        hint = HINTS.get(e.law)
        raise testing.LawError(e.law, name, text + (f"\n  meaning:  {hint}" if hint else "")) from None


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()
