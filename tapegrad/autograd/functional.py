"""torch.autograd.functional: derivatives of functions at given inputs.

Every function takes a function of tensors, and a tensor or tuple of tensors as its inputs. Results have the same structure:
a tensor for a tensor, a tuple for a tuple. With `create_graph` they can be differentiated again, also with respect to the
tensors from which the inputs were computed; otherwise they are detached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from .. import errors
from ..core.gradient import grad
from ..core.vjp import fixed_like
from ..func import jvp as forward
from ..func import vmap
from ..functions import create, shape
from ..functions.joining import stack
from ..modes import enable_grad
from ..tensor.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

X = TypeVar("X", Tensor, tuple[Tensor, ...])
Y = TypeVar("Y", Tensor, tuple[Tensor, ...])
Several = tuple[Tensor, ...]
Function = Callable[..., Any]
Tensors = tuple[Any, ...]
STRICT = " This is not allowed in strict mode"
STRATEGIES = ("forward-mode", "reverse-mode")


# ------------------------------------------------------------------------------------------------ arguments and results


def as_tensors(value: Any, name: str, api: str) -> tuple[bool, Tensors]:
    """(whether it is a tuple, the tensors) of an argument or of what the function returned."""
    several = isinstance(value, tuple)
    tensors: Tensors = value if several else (value,)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            what = f"value at index {i}" if several else f"given {name}"
            hint = " Wrap it with tapegrad.as_tensor(...)." if isinstance(t, np.ndarray | np.generic | float | int) else ""
            raise TypeError(
                f"The {name} given to {api} must be either a Tensor or a tuple of Tensors but the {what} has type "
                f"{type(t)}.{hint}"
            )
    return several, tensors


def new_inputs(tensors: Tensors, create_graph: bool, tracked: bool = True) -> Tensors:
    """New tensors of the same values, so that the same ones captured by the function are told from its arguments."""
    return tuple([t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(tracked) for t in tensors])


def called(f: Function, xs: Tensors, api: str, strict: bool) -> tuple[bool, Tensors]:
    """(whether it is a tuple, the tensors) of the function's outputs."""
    several, ys = as_tensors(f(*xs), "outputs of the user-provided function", api)
    if strict:
        require(
            ys,
            "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
            "differentiable manner from the input when running in strict mode.",
        )
    return several, ys


def called_scalar(f: Function, xs: Tensors, api: str, strict: bool) -> Any:
    """The function's output, one tensor of one element."""
    several, ys = called(f, xs, api, strict)
    if several:
        raise RuntimeError(f"The function given to {api} should return a single Tensor")
    if ys[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {api} should contain a single element")
    return ys[0]


def vector(v: Any, like: Tensors, several: bool, api: str, create_graph: bool, role: str) -> Tensors | None:
    """The vector of a product, one tensor of the shape of each of `like`; None, for 1, where it may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {role} a single Tensor with a single element.")
        return None
    vs = new_inputs(as_tensors(v, "v", api)[1], create_graph, False)
    if len(vs) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(vs, like, strict=True)):
        if a.shape != b.shape:
            entry = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {b.shape} but got {a.shape}.")
    return vs


INPUT = "the input to the user-provided function is"
OUTPUT = "the user-provided function returns"


def require(tensors: Tensors, text: str, absent: str = "") -> None:
    """Raise, with the number of the tensor in the text, for one that is not tracked (or not there)."""
    for i, t in enumerate(tensors):
        if t is None:
            raise RuntimeError(absent.format(i))
        if not t.requires_grad:
            raise RuntimeError(text.format(i))


def gradients(ys: Tensors, xs: Tensors, gs: Tensors | None, create_graph: bool, **options: Any) -> Tensors:
    """Gradients of the tracked outputs; None where there is none."""
    seeds = [None] * len(ys) if gs is None else gs
    pairs = [(y, g) for y, g in zip(ys, seeds, strict=True) if y is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    outputs, given = zip(*pairs, strict=True)
    return grad(outputs, xs, given, create_graph=create_graph, allow_unused=True, **options)  # type: ignore[no-any-return]


def filled(gs: Tensors, like: Tensors, strict: bool, create_graph: bool, what: str, independent: str) -> Tensors:
    """The gradients with zeros for those that are not there; under strict an error for these."""
    for i, g in enumerate(gs) if strict else ():
        if g is None:
            raise RuntimeError(f"{independent.format(i)}{STRICT}.")
        if create_graph and not g.requires_grad:
            text = f"The {what} of the user-provided function is independent of input {i}.{STRICT}"
            raise RuntimeError(f"{text} when create_graph=True.")
    return tuple([create.zeros_like(x) if g is None else g for g, x in zip(gs, like, strict=True)])


def as_result(value: Any, create_graph: bool, *several: bool) -> Any:
    """Nested tuples of tensors, detached unless wanted, without the levels that were no tuples."""
    if not several:
        return value if create_graph else value.detach()
    parts = tuple([as_result(v, create_graph, *several[1:]) for v in value])
    return parts if several[0] else parts[0]


# ---------------------------------------------------------------------------------------------------------- products


def vjp(func: Callable[..., Y], inputs: X, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Y, X]:
    """Vector-Jacobian product of func at inputs.

    Args:
        func: takes the inputs as tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the outputs' structure and shapes; optional for a single output of one element.
        create_graph: record the computation, so that outputs and product can be differentiated.
        strict: raise if an output does not depend on an input, instead of returning zeros.

    Returns:
        (outputs, product), the latter of the inputs' structure and shapes.

    Raises:
        RuntimeError: for a v of wrong structure or shape, or with strict for independent inputs.
        TypeError: for inputs, outputs or v that are not tensors.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.5])
        >>> tg.autograd.functional.vjp(lambda x: x**3, x, v)
        (tensor([1., 8.]), tensor([3., 6.]))
    """
    with enable_grad():
        several, given = as_tensors(inputs, "inputs", "vjp")
        xs = new_inputs(given, create_graph)
        several_outputs, ys = called(func, xs, "vjp", strict)
        vs = vector(v, ys, several_outputs, "vjp", create_graph, OUTPUT)
        independent = "The output of the user-provided function is independent of input {}."
        gs = filled(gradients(ys, xs, vs, create_graph), xs, strict, create_graph, "jacobian", independent)
    return as_result(ys, create_graph, several_outputs), as_result(gs, create_graph, several)


def jvp(func: Callable[..., Y], inputs: X, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Y, Y]:
    """Jacobian-vector product of func at inputs: the derivative in the direction v.

    Computed by differentiating the vector-Jacobian product with respect to its vector.

    Args:
        func: takes the inputs as tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the inputs' structure and shapes; optional for a single input of one element.
        create_graph: record the computation, so that outputs and product can be differentiated.
        strict: raise if an output does not depend on an input, instead of returning zeros.

    Returns:
        (outputs, product), both of the outputs' structure and shapes.

    Raises:
        RuntimeError: for a v of wrong structure or shape, or with strict for independent inputs.
        TypeError: for inputs, outputs or v that are not tensors.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.0])
        >>> tg.autograd.functional.jvp(lambda x: x**3, x, v)
        (tensor([1., 8.]), tensor([3., 0.]))
    """
    with enable_grad():
        several, given = as_tensors(inputs, "inputs", "jvp")
        xs = new_inputs(given, create_graph)
        vs = vector(v, xs, several, "jvp", create_graph, INPUT)
        several_outputs, ys = called(func, xs, "jvp", strict)
        ws = weights(ys)
        first = gradients(ys, xs, ws, True)
        if strict:
            absent = "The output of the user-provided function is independent of input {}." + STRICT + "."
            independent = "The gradient with respect to input {} is independent of the inputs of the user-provided function."
            require(first, independent + STRICT + ".", absent)
        independent = (
            "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
            "backward trick to compute forward mode gradients."
        )
        gs = filled(gradients(first, ws, vs, create_graph), ys, strict, create_graph, "jacobian", independent)
    return as_result(ys, create_graph, several_outputs), as_result(gs, create_graph, several_outputs)


def weights(tensors: Tensors) -> Tensors:
    """Cotangents to differentiate by: ones, since a zero would hide derivatives that are infinite."""
    return tuple([create.ones_like(t).requires_grad_() if is_inexact(t) else create.ones_like(t) for t in tensors])


def is_inexact(t: Any) -> bool:
    return isinstance(t, Tensor) and (t.is_floating_point() or t.is_complex())


def gradient_of(func: Function, xs: Tensors, api: str, strict: bool) -> tuple[Any, Tensors]:
    """(output, recorded gradient) of a scalar function."""
    y = called_scalar(func, xs, api, strict)
    gs = gradients((y,), xs, None, True)
    if strict:
        require(gs, NOT_TWICE, "The output of the user-provided function is independent of input {}." + STRICT + ".")
    return y, gs


NOT_TWICE = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example)."
)


def vhp(
    func: Callable[..., Tensor], inputs: X, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, X]:
    """Vector-Hessian product of a scalar function at inputs.

    Args:
        func: takes the inputs as tensors, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the inputs' structure and shapes; optional for a single input of one element.
        create_graph: record the computation, so that output and product can be differentiated.
        strict: raise if the gradient does not depend on an input, instead of returning zeros.

    Returns:
        (output, product), the latter of the inputs' structure and shapes.

    Raises:
        RuntimeError: for a v of wrong structure or shape, an output of several elements, or independent inputs if strict.
        TypeError: for inputs, output or v that are not tensors.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0])
        >>> tg.autograd.functional.vhp(lambda x: (x**3).sum(), x, v)
        (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, given = as_tensors(inputs, "inputs", "vhp")
        xs = new_inputs(given, create_graph)
        vs = vector(v, xs, several, "vhp", create_graph, INPUT)
        y, first = gradient_of(func, xs, "vhp", strict)
        independent = "The jacobian of the user-provided function is independent of input {}."
        gs = filled(gradients(first, xs, vs, create_graph), xs, strict, create_graph, "hessian", independent)
    return as_result(y, create_graph), as_result(gs, create_graph, several)


def hvp(
    func: Callable[..., Tensor], inputs: X, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, X]:
    """Hessian-vector product of a scalar function at inputs.

    Equal to `vhp`, which is faster, where the second derivatives are continuous.

    Args:
        func: takes the inputs as tensors, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the inputs' structure and shapes; optional for a single input of one element.
        create_graph: record the computation, so that output and product can be differentiated.
        strict: raise if the gradient does not depend on an input, instead of returning zeros.

    Returns:
        (output, product), the latter of the inputs' structure and shapes.

    Raises:
        RuntimeError: for a v of wrong structure or shape, an output of several elements, or independent inputs if strict.
        TypeError: for inputs, output or v that are not tensors.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0])
        >>> tg.autograd.functional.hvp(lambda x: (x**3).sum(), x, v)
        (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, given = as_tensors(inputs, "inputs", "hvp")
        xs = new_inputs(given, create_graph)
        vs = vector(v, xs, several, "hvp", create_graph, INPUT)
        y, first = gradient_of(func, xs, "hvp", strict)
        ws = weights(xs)
        second = gradients(first, xs, ws, True)
        independent = "The hessian of the user-provided function is independent of entry {} in the grad_jacobian."
        gs = filled(gradients(second, ws, vs, create_graph), xs, strict, create_graph, "hessian", independent)
    return as_result(y, create_graph), as_result(gs, create_graph, several)


# ------------------------------------------------------------------------------------------------ Jacobians and Hessians


@overload
def jacobian(
    func: Callable[..., Tensor], inputs: X, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> X: ...  # fmt: skip
@overload
def jacobian(
    func: Callable[..., Several], inputs: X, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> tuple[X, ...]: ...  # fmt: skip
def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Jacobian of func at inputs: for an output of shape (m..) and an input of shape (n..), a tensor of shape (m.., n..).

    Args:
        func: takes the inputs as tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the computation, so that the Jacobian can be differentiated; in forward mode always recorded
            for inputs that require grad.
        strict: raise if an output does not depend on an input, instead of returning zeros.
        vectorize: one batched pass instead of one per row (per column in forward mode).
        strategy: "reverse-mode", or "forward-mode", which is faster for more outputs than inputs.

    Returns:
        A tensor, or for tuples of outputs (inputs) a tuple over outputs (of tuples over inputs).

    Raises:
        AssertionError: for another strategy.
        RuntimeError: with strict, for an output independent of an input; for strict with vectorize or forward mode.
        TypeError: for inputs or outputs that are not tensors.

    Example:
        >>> tg.autograd.functional.jacobian(lambda x: x[0] * x, tg.tensor([2.0, 3.0]))
        tensor([[4., 0.],
                [3., 2.]])
    """
    if strategy not in STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    several, given = as_tensors(inputs, "inputs", "jacobian")
    if strict and strategy == "forward-mode":
        raise not_together('`strategy="forward-mode"` are not supported together (yet).')
    with enable_grad():
        if strategy == "forward-mode":
            create_graph = create_graph or any([x.requires_grad for x in given])
            several_outputs, blocks = forward_blocks(func, given, vectorize)
        else:
            xs = new_inputs(given, create_graph)
            several_outputs, ys = called(func, xs, "jacobian", strict)
            if strict and vectorize:
                raise not_together("`vectorized=True` are not supported together.")
            rows = batched_rows if vectorize else looped_rows
            blocks = [rows(i, y, xs, create_graph, strict) for i, y in enumerate(ys)]
    return as_result(blocks, create_graph, several_outputs, several)


def not_together(what: str) -> RuntimeError:
    return RuntimeError(
        f"torch.autograd.functional.jacobian: `strict=True` and {what} Whether an output depends on an input is found out "
        "row by row in reverse mode."
    )


def basis(t: Any) -> Any:
    """The unit tensors of a tensor's shape, stacked: (n, *shape)."""
    n = t.numel()
    return fixed_like(np.eye(n, dtype=t._d.dtype).reshape(n, *t.shape), t)


def looped_rows(i: int, y: Any, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """Jacobian of one output by one backward pass an element."""
    columns: list[list[Any]] = [[] for _ in xs]
    if y.is_complex() and y.requires_grad:
        raise errors.not_real(y.dtype)
    for unit in basis(y) if y.requires_grad else ():
        for j, g in enumerate(gradients((y,), xs, (unit,), create_graph, retain_graph=True)):
            if strict and g is None:
                raise RuntimeError(f"Output {i} of the user-provided function is independent of input {j}.{STRICT}.")
            if strict and create_graph and not g.requires_grad:
                text = f"The jacobian of the user-provided function is independent of input {j}.{STRICT} when"
                raise RuntimeError(f"{text} create_graph=True.")
            columns[j].append(create.zeros_like(xs[j]) if g is None else g)
    return tuple([block(stack(c) if c else None, y, x) for c, x in zip(columns, xs, strict=True)])


def batched_rows(i: int, y: Any, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """Jacobian of one output by one batched backward pass."""
    gs = gradients((y,), xs, (basis(y),), create_graph, retain_graph=True, is_grads_batched=True)
    return tuple([block(g, y, x) for g, x in zip(gs, xs, strict=True)])


def block(rows: Any, y: Any, x: Any) -> Any:
    """Stacked rows in the block's shape; zeros for none."""
    size = (*y.shape, *x.shape)
    return create.zeros(size, dtype=x.dtype) if rows is None else shape.reshape(rows, size)


def forward_blocks(func: Function, xs: Tensors, vectorize: bool) -> tuple[bool, list[Any]]:
    """(whether the outputs are a tuple, blocks) of the Jacobian by derivatives in the direction of each input element."""
    several: list[bool] = []

    def f(*args: Any) -> Tensors:
        leaves = [above(a) if x.requires_grad else a for a, x in zip(args, xs, strict=True)]
        single, ys = as_tensors(func(*leaves), "outputs of the user-provided function", "jacobian")
        several.append(single)
        return ys

    columns, ys = [], f(*xs)
    for j, x in enumerate(xs):
        directions = basis(x)
        still = [create.zeros_like(other) for other in xs]

        def column(unit: Any, j: int = j, still: list[Any] = still) -> Tensors:
            return push(f, xs, [*still[:j], unit, *still[j + 1 :]])[1]

        columns.append(batched(column, directions, vectorize) if x.numel() else [None] * len(ys))
    blocks = [
        tuple([block(c if c is None else shape.movedim(c, 0, -1), y, x) for c, x in zip(row, xs, strict=True)])
        for row, y in zip(zip(*columns, strict=True), ys, strict=True)
    ]
    return several[0], blocks


def above(x: Any) -> Any:
    """The value as a leaf above the level of forward mode, for passes backward inside the function."""
    return x.view_as(x).requires_grad_()


def batched(f: Callable[[Any], Tensors], directions: Any, vectorize: bool = True) -> Sequence[Any]:
    """f of each direction, stacked."""
    if vectorize:
        return vmap(f)(directions)
    return [stack(list(values)) for values in zip(*[f(d) for d in directions], strict=True)]


def push(f: Callable[..., Tensors], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
    """Outputs of f and their derivatives in the direction of the tangents."""
    return forward(f, tuple(primals), tuple(tangents))


@overload
def hessian(
    func: Callable[..., Tensor], inputs: Tensor, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensor: ...  # fmt: skip
@overload
def hessian(
    func: Callable[..., Tensor], inputs: Several, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> tuple[Several, ...]: ...  # fmt: skip
def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Hessian of a scalar function at inputs: for an input of shape (n..), a tensor of shape (n.., n..).

    Args:
        func: takes the inputs as tensors, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the computation, so that the Hessian can be differentiated.
        strict: raise if the gradient does not depend on an input, instead of returning zeros.
        vectorize: one batched pass instead of one per row.
        outer_jacobian_strategy: how the gradient is differentiated: "reverse-mode" or "forward-mode".

    Returns:
        A tensor, or for a tuple of inputs a tuple of tuples of tensors, of shapes (*inputs[i].shape, *inputs[j].shape).

    Raises:
        AssertionError: for another strategy.
        RuntimeError: for an output of several elements; with strict, for a gradient independent of an input.
        TypeError: for inputs or an output that are not tensors.

    Example:
        >>> tg.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], tg.tensor([1.0, 2.0]))
        tensor([[4., 2.],
                [2., 0.]])
    """
    several, given = as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*xs: Any) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple([above(x) for x in xs])
        first = jacobian(lambda *args: called_scalar(func, args, "hessian", strict).squeeze(), xs, create_graph=True)
        if strict:
            require(first, NOT_TWICE)
        return first

    rows = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows if several else rows[0][0]


def __dir__() -> list[str]:
    return sorted(__all__)
