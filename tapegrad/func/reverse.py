"""Gradients and vector-Jacobian products of functions, to any order.

The differentiated arguments get new slots, the function runs with recording on, and the backward pass stops at these slots:
see `levels.diff_inputs`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from .. import errors
from ..core import alias, record
from ..core.level import LEVEL, layer_of, level_of
from ..core.record import Box, fixed, running_trace, wrap
from ..core.state import is_recording
from ..core.tape import next_slot
from ..core.vjp import arrays, zeros_like
from ..dtypes import is_inexact
from ..floats.scalar import ScalarState, scalar
from ..functions import create
from ..levels.diff_inputs import DiffInputs, synced
from ..levels.level import relabelled
from ..programs.tracing import leaving
from . import tree

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")
GRAD = "grad_and_value(f)(*args)"
VJP = "vjp(f, *primals)"


def as_primal(x: Any) -> Any:
    """The tensor that stands for a leaf: itself, or a copy of an array or a number (a Python number in float64)."""
    number = type(x) is float or (isinstance(x, np.ndarray) and not x.ndim and x.dtype == np.float64)
    if number and LEVEL.get() is None and running_trace() is None:
        return scalar(float(x), 0)
    t = operand_of(x)
    if not is_inexact(t._d.dtype):
        raise RuntimeError(
            f"only Tensors of floating point dtype can require gradients. This one is of {t.dtype}: array.astype(float) or "
            "tensor.double() converts it."
        )
    return t


def operand_of(x: Any) -> Any:
    """The tensor that stands for a leaf of any dtype."""
    if isinstance(x, Box):
        return synced(x)
    if type(x) in record.device_array_types:
        return wrap(x)
    if isinstance(x, np.ndarray | np.generic):
        return wrap(create.from_data(x))
    if isinstance(x, int | float | complex) and not isinstance(x, bool):
        return fixed(np.array(x, np.complex128 if isinstance(x, complex) else np.float64))
    raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}. An array or a number will do too.")


class Inputs(DiffInputs):
    """The leaves of the differentiated arguments under new slots.

    Attributes:
        leaves: the leaves as given.
    """

    def __init__(self, leaves: list[Any]) -> None:
        super().__init__([as_primal(x) for x in leaves], LEVEL.get())
        self.leaves = leaves

    @classmethod
    def of_float(cls, x: float) -> Inputs:
        """What Inputs([x]) gives outside of levels, in a quarter of the time."""
        self = cls.__new__(cls)
        self.floor, self.level, self.leaves = next_slot(), None, [x]
        self.tensors = [scalar(x, -next_slot())]
        self.slots = {self.tensors[0]._s}
        return self

    def for_caller(self, t: Any) -> Any:
        """A tensor for the caller: without slot in this layer unless it depends on something there."""
        if not isinstance(t, Box) or not synced(t)._s or layer_of(level_of(t)) is not self.level or self.depends_outside(t):
            return t
        return alias.detached(t) if type(t._st) is alias.Alias else relabelled(t, 0)

    def output(self, t: Any) -> Any:
        """An output of the function for the caller, in the inputs' class."""
        return converted(self.for_caller(t), common_class(self.leaves))

    def gradients(self, outputs: list[Any], cotangents: list[Any], retain: bool) -> list[Any]:
        """Gradients of the inputs, in their classes; see `DiffInputs.vjp`."""
        seen: set[int] = set()
        got = self.vjp(outputs, cotangents, retain)
        return [self._gradient(x, t, g, seen) for x, t, g in zip(self.leaves, self.tensors, got, strict=True)]

    def _gradient(self, x: Any, t: Any, g: Any, seen: set[int]) -> Any:
        """One gradient: a tensor, or in x's class if nothing outside depends on it."""
        if type(g) is float:
            if type(x) is float:
                return g
            g = wrap(np.array(g))
        elif g is None:
            g = zeros_like(t)
        elif not isinstance(g, Box):
            array = arrays.ensure_owned(g)
            g = wrap(array.copy() if id(array) in seen else array)
            seen.add(id(array))
        else:
            g = self.for_caller(g)
        return converted(g, result_class(x))


def common_class(leaves: list[Any]) -> type | None:
    """What outputs are converted to: None if a leaf is a tensor, float if all are numbers, else generic."""
    classes = {result_class(x) for x in leaves}
    return None if None in classes or not classes else float if classes == {float} else np.generic


def result_class(x: Any) -> type | None:
    """What a leaf's gradient is converted to: None for a tensor, else ndarray, generic (a NumPy scalar) or float."""
    if isinstance(x, Box) or type(x) in record.device_array_types:
        return None
    return np.ndarray if isinstance(x, np.ndarray) else np.generic if isinstance(x, np.generic) else float


def converted(t: Any, cls: type | None) -> Any:
    """An untracked tensor as an ndarray, a NumPy scalar or a Python number; others as they are.

    Where recording is off outside, what a transform recorded on its own account becomes untracked first.
    """
    if isinstance(t, Box) and t._s > 0 and level_of(t) is None and not is_recording():
        t = relabelled(t, 0)
    if cls is None or not isinstance(t, Box) or t._s or level_of(t) is not None:
        return t
    if cls is float and not t._d.ndim:
        return leaving(t, "a derivative that is a number (give the function tensors)").item()
    array = np.array(leaving(t, "a derivative that is an array of NumPy (give the function tensors)"))
    return array if cls is np.ndarray else array[()]


def split_aux(result: Any, has_aux: bool, api: str) -> tuple[Any, Any]:
    """(output, aux) of what the function returned."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def chosen(argnums: Any, count: int) -> tuple[int, ...]:
    """Positions of the differentiated arguments, counted from the front."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums)}. Arguments go into a second call: grad(f)(x)."
        )
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    positions = tuple([n % count for n in numbers])
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {positions}")
    return positions


def scalar_output(y: Any) -> Any:
    """The output, checked to be a real tensor of one element."""
    if not isinstance(y, Box):
        raise RuntimeError(f"{GRAD}: Expected f(*args) to return a Tensor, got {type(y)}{errors.no_gradient(y)}")
    if type(y._st) is ScalarState:
        return y
    if synced(y)._d.ndim:
        raise RuntimeError(
            f"{GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {y._d.ndim} dims. Maybe you wanted to "
            "use the vjp or jacrev APIs instead?"
        )
    if y._d.dtype.kind == "c":
        raise errors.not_real(y._d.dtype)
    return y


def differentiate(
    f: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: Any, with_value: bool
) -> tuple[Any, Any, Any]:
    """(gradient, value, aux) of a scalar function; the value is None unless asked for."""
    simple = len(args) == 1 and type(args[0]) is float and not (has_aux or with_value or kwargs)
    if simple and type(argnums) is int and argnums == 0 and LEVEL.get() is None and running_trace() is None:
        return of_float(f, args[0]), None, None
    parts, positions = parts_of(argnums, args)
    inputs = Inputs([leaf for leaves, _ in parts for leaf in leaves])
    given = replaced(args, positions, regrouped(parts, inputs.tensors))
    y, aux = split_aux(inputs.call(f, given, kwargs), has_aux, GRAD)
    del given
    value = inputs.output(scalar_output(y)) if with_value else None
    aux = tree.mapped(inputs.output, aux) if has_aux else None
    outputs = [scalar_output(y)]
    del y
    gradients = regrouped(parts, inputs.gradients(outputs, [None], False))
    inputs.finish()
    return (tuple(gradients) if isinstance(argnums, tuple) else gradients[0]), value, aux


def of_float(f: Callable[..., Any], x: float) -> Any:
    """The derivative of a function of one Python number."""
    inputs = Inputs.of_float(x)
    outputs = [scalar_output(inputs.call(f, inputs.tensors, {}))]
    gradient = inputs.gradients(outputs, [None], False)[0]
    inputs.finish()
    return gradient


def parts_of(argnums: Any, args: Any) -> tuple[list[tuple[list[Any], tree.Spec]], tuple[int, ...]]:
    """Leaves and structure of each differentiated argument, and their positions."""
    positions = chosen(argnums, len(args))
    return [tree.flatten(args[i]) for i in positions], positions


def replaced(args: Any, positions: tuple[int, ...], subtrees: list[Any]) -> list[Any]:
    """The arguments with others at the given positions."""
    given = list(args)
    for i, subtree in zip(positions, subtrees, strict=True):
        given[i] = subtree
    return given


def regrouped(parts: list[tuple[list[Any], tree.Spec]], leaves: list[Any]) -> list[Any]:
    """New leaves in the structure of each part."""
    result, start = [], 0
    for old, spec in parts:
        result.append(tree.unflatten(spec, leaves[start : start + len(old)]))
        start += len(old)
    return result


@overload
def grad(
    func: Callable[Concatenate[T, P], object], *, has_aux: Literal[False] = False
) -> Callable[Concatenate[T, P], T]: ...
@overload
def grad(
    func: Callable[Concatenate[T, P], tuple[object, A]], *, has_aux: Literal[True]
) -> Callable[Concatenate[T, P], tuple[T, A]]: ...
@overload
def grad(func: Callable[P, Any], argnums: int | tuple[int, ...], has_aux: bool = False) -> Callable[P, Any]: ...
def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function func.

    Results have the type of the arguments: tensors, ndarrays, or Python numbers (differentiated in float64); a result that
    depends on a tracked tensor is a tensor. Arguments may be nested tuples, lists, dicts and dataclasses of these.

    Args:
        func: takes the arguments as tensors and returns a 0-dim tensor.
        argnums: position of the argument to differentiate by, or a tuple of them.
        has_aux: func returns (output, aux); the result is then (gradient, aux), tensors in aux converted like results.

    Returns:
        A function of func's arguments that returns the gradient in the structure of the argument, or a tuple for a tuple
        of argnums.

    Raises:
        RuntimeError: if func does not return a real tensor of one element, or for argnums out of range.
        ValueError: for an argument that is not a number, array or tensor.

    Example:
        >>> tg.func.grad(tg.sin)(0.0)
        1.0
        >>> tg.func.grad(tg.func.grad(lambda x: x**4))(tg.tensor(2.0))
        tensor(48.)
        >>> tg.func.grad(lambda p: p["a"] * p["b"])({"a": 2.0, "b": 3.0})
        {'a': 3.0, 'b': 2.0}
    """

    @functools.wraps(func, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        g, _, aux = differentiate(func, argnums, has_aux, args, kwargs, False)
        return (g, aux) if has_aux else g

    return gradient


@overload
def grad_and_value(
    func: Callable[Concatenate[T, P], R], *, has_aux: Literal[False] = False
) -> Callable[Concatenate[T, P], tuple[T, R]]: ...
@overload
def grad_and_value(
    func: Callable[Concatenate[T, P], tuple[R, A]], *, has_aux: Literal[True]
) -> Callable[Concatenate[T, P], tuple[T, tuple[R, A]]]: ...
@overload
def grad_and_value(func: Callable[P, Any], argnums: int | tuple[int, ...], has_aux: bool = False) -> Callable[P, Any]: ...
def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like `grad`, but the result is (gradient, value), or with has_aux (gradient, (value, aux)).

    Args:
        func, argnums, has_aux: as for `grad`.

    Example:
        >>> tg.func.grad_and_value(lambda x: x**3)(2.0)
        (12.0, 8.0)
    """

    @functools.wraps(func, updated=())
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        g, value, aux = differentiate(func, argnums, has_aux, args, kwargs, True)
        return (g, (value, aux)) if has_aux else (g, value)

    return gradient_and_value


@overload
def value_and_grad(
    func: Callable[Concatenate[T, P], R], *, has_aux: Literal[False] = False
) -> Callable[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(
    func: Callable[Concatenate[T, P], tuple[R, A]], *, has_aux: Literal[True]
) -> Callable[Concatenate[T, P], tuple[tuple[R, A], T]]: ...
@overload
def value_and_grad(func: Callable[P, Any], argnums: int | tuple[int, ...], has_aux: bool = False) -> Callable[P, Any]: ...
def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like `grad`, but the result is (value, gradient), or with has_aux ((value, aux), gradient).

    Args:
        func, argnums, has_aux: as for `grad`.

    Example:
        >>> w = np.array([1.0, 2.0])
        >>> tg.func.value_and_grad(lambda w: (w**2).sum())(w)
        (np.float64(5.0), array([2., 4.]))
    """

    @functools.wraps(func, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        g, value, aux = differentiate(func, argnums, has_aux, args, kwargs, True)
        return ((value, aux), g) if has_aux else (value, g)

    return value_and_gradient


@overload
def vjp(
    func: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[R], tuple[Any, ...]]]: ...
@overload
def vjp(
    func: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[R], tuple[Any, ...]], A]: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate func at the primals, and return a function that maps cotangents of its outputs to those of the primals.

    Args:
        func: takes the primals as tensors and returns a tensor or nested tensors.
        primals: tensors, ndarrays, numbers, or nested containers of them.
        has_aux: func returns (output, aux).

    Returns:
        (output, vjp_fn) or (output, vjp_fn, aux). vjp_fn(cotangents), with cotangents of the output's structure and shapes,
        returns a tuple with one entry per primal, of its structure and class; it may be called any number of times.

    Raises:
        RuntimeError: if an output is not a floating-point tensor, or cotangents do not match the outputs.
        ValueError: for a primal that is not a number, array or tensor.

    Example:
        >>> y, vjp_fn = tg.func.vjp(lambda a, b: a * b, tg.tensor([1.0, 2.0]), tg.tensor(3.0))
        >>> vjp_fn(tg.ones(2))
        (tensor([3., 3.]), tensor(3.))
    """
    parts = [tree.flatten(p) for p in primals]
    inputs = Inputs([leaf for leaves, _ in parts for leaf in leaves])
    result, aux = split_aux(inputs.call(func, regrouped(parts, inputs.tensors), {}), has_aux, VJP)
    outputs, spec = checked_outputs(result)
    value = tree.unflatten(spec, [inputs.output(y) for y in outputs])
    outputs = [relabelled(y, y._s) for y in outputs]  # later writes do not change what was differentiated
    inputs.finish()

    def vjp_fn(cotangents: Any) -> tuple[Any, ...]:
        gs = checked_cotangents(outputs, spec, cotangents)
        return tuple(regrouped(parts, inputs.gradients(outputs, gs, True)))

    return (value, vjp_fn, tree.mapped(inputs.output, aux)) if has_aux else (value, vjp_fn)


def checked_outputs(result: Any, api: str = VJP) -> tuple[list[Any], tree.Spec]:
    """Leaves, checked to be floating-point tensors, and structure of what the function returned."""
    outputs, spec = tree.flatten(result)
    if not outputs:
        raise errors.empty_output(api, result)
    for y in outputs:
        if not isinstance(y, Box):
            raise errors.not_tensor_output(api, y)
        if not is_inexact(synced(y)._d.dtype):
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {y.dtype}"  # type: ignore[attr-defined]
            )
    return outputs, spec


def checked_cotangents(outputs: list[Any], spec: tree.Spec, cotangents: Any) -> list[Any]:
    """The cotangents as tensors, checked against the outputs' structure and shapes."""
    given, got = tree.flatten(cotangents)
    if got != spec:
        raise RuntimeError(
            "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
            f"cotangents: {got}, primal output: {spec}"
        )
    result = []
    for i, (y, g) in enumerate(zip(outputs, given, strict=True)):
        g = operand_of(g)
        if g._d.shape != y._d.shape:
            raise errors.cotangent_shape(i, g._d.shape, y._d.shape)
        result.append(g)
    return result
