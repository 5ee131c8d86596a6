"""scipy.optimize.minimize on tensors: values, gradients and second derivatives come from tapegrad."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core.gradient import grad
from ..func import tree
from ..func.jacobian import jacrev
from ..func.products import vhp
from ..func.reverse import as_primal, converted, result_class
from ..func.stateless import call_swapped, untied
from ..functions import create
from ..functions.joining import cat
from ..modes import enable_grad, no_grad
from ..nn import Module
from ..tensor.tensor import Tensor
from .functional import up_to

WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
WITH_HESSIAN = ("dogleg", "trust-exact")


def minimize(
    fun: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, *, bounds: Any = None, constraints: Any = (),
    tol: float | None = None, callback: Callable[..., Any] | None = None, options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Minimise a function of tensors with `scipy.optimize.minimize`.

    SciPy works on one float64 vector; fun receives tensors of the shapes and dtypes of x0. tapegrad computes what the method
    needs: the gradient, products of the Hessian with vectors (Newton-CG, trust-ncg, trust-krylov, trust-constr) or the
    Hessian (dogleg, trust-exact), Jacobians and Hessians of constraints. Results are cached per point.

    Args:
        fun: `fun(x, *args)` returns a real tensor of one element.
        x0: initial point: a tensor or array; numbers in a list, which make one float64 array, as in SciPy; nested tuples,
            lists and dicts of tensors and arrays; or a `tg.nn.Module`, whose parameters that require grad are the unknowns.
            fun is then called with the module, which holds the solution at the end.
        args: additional arguments of fun.
        method: name of SciPy's method; or a callable, as SciPy allows (it receives jac and hessp).
        bounds: a pair (low, high) for each tensor, in the containers of x0 (of a module: a dict by parameter name). The
            bounds are numbers, tensors or None. SciPy's forms, for the flat vector, are accepted too.
        constraints: SciPy's, with functions of x that return tensors: dicts with "type" and "fun", or NonlinearConstraint;
            LinearConstraint is one on the flat vector.
        tol: SciPy's tolerance.
        callback: called after each iteration with x in the form of x0, or with an argument named intermediate_result.
        options: SciPy's options of the method.

    Returns:
        SciPy's OptimizeResult, with x in the form of x0. Its other fields (jac, hess_inv, ...) refer to the flat vector.

    Raises:
        ImportError: without SciPy.
        TypeError: if fun does not return a tensor, or for a constraint with its own Jacobian.
        RuntimeError: if fun returns more than one element or does not depend on x; for an integer x0.
        ValueError: if the value or gradient at x0 is nan, for bounds that do not match x0, or an unknown method.
    """
    try:
        optimize = importlib.import_module("scipy.optimize")
    except ImportError:
        raise errors.missing_extra("optim.scipy.minimize", "SciPy", "scipy") from None
    name = method.lower() if isinstance(method, str) else method
    unknowns = Unknowns(x0)
    args = args if isinstance(args, tuple) else (args,)
    order = 0 if name in WITHOUT_GRADIENT else 2 if callable(method) or name in WITH_PRODUCTS + WITH_HESSIAN else 1

    # Trust-region methods return to the last point after a rejected step, Powell's method to one of the last few.
    @functools.lru_cache(maxsize=2 if order == 2 else 16)
    def point(data: bytes) -> Point:
        return Point(lambda v: unknowns.call(fun, v, args), np.frombuffer(data), order)

    def at(x: Any) -> Point:
        return point(np.asarray(x, np.float64).tobytes())

    start = at(unknowns.start)
    for what, value in (("value", start.value), ("gradient", start.gradient)):
        if value is not None and np.isnan(value).any():
            raise ValueError(f"optim.scipy.minimize: the {what} at x0 is nan")
    derivatives: dict[str, Any] = {}
    if order:
        derivatives["jac"] = lambda x: at(x).gradient
    if name in WITH_HESSIAN:
        derivatives["hess"] = lambda x: at(x).hessian()
    elif order == 2:
        derivatives["hessp"] = lambda x, p: at(x).product(p)
    several = isinstance(constraints, list | tuple)
    given = [unknowns.constraint(c, optimize, order) for c in (constraints if several else [constraints])]
    result = optimize.minimize(
        lambda x: at(x).value, unknowns.start, method=method, bounds=unknowns.bounds(bounds, optimize),
        constraints=given, tol=tol, callback=callback and unknowns.report(callback), options=options, **derivatives,
    )  # fmt: skip
    return unknowns.result(result)


class Point:
    """The function at one point: its value, its gradient and the graph for Hessian products.

    Attributes:
        value: a float.
        gradient: a float64 array; None for order 0.
    """

    def __init__(self, f: Callable[[Any], Any], x: Any, order: int) -> None:
        self.x = create.tensor(x)
        self.gradient = None
        with enable_grad():
            y = f(self.x.requires_grad_(order > 0))
            if not isinstance(y, Tensor):
                raise TypeError(f"optim.scipy.minimize: fun must return a tensor, got {type(y).__name__}")
            if y.numel() != 1 or y.is_complex():
                raise RuntimeError(
                    f"optim.scipy.minimize: fun must return a real tensor of one number, got shape {tuple(y.shape)} and "
                    f"dtype {y.dtype}"
                )
            self.value = float(y.item())
            if order:
                (self.slope,) = grad(y, self.x, create_graph=order > 1)
                self.gradient = self.slope.detach().numpy()

    def product(self, p: Any) -> Any:
        """The Hessian times a vector, or times each row of a matrix."""
        p = create.tensor(np.asarray(p, np.float64))
        if not self.slope.requires_grad:
            return np.zeros(p.shape)
        (g,) = grad(self.slope, self.x, p, retain_graph=True, is_grads_batched=p.ndim == 2, materialize_grads=True)
        return g.numpy()

    def hessian(self) -> Any:
        return self.product(np.eye(len(self.x)))


class Unknowns:
    """The unknowns, as SciPy's flat vector and as the tensors of x0.

    Attributes:
        start: x0 as a float64 vector.
    """

    def __init__(self, x0: Any) -> None:
        self.module = x0 if isinstance(x0, Module) else None
        if self.module is not None:
            x0 = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        elif isinstance(x0, list | tuple) and x0 and all(isinstance(v, int | float) for v in tree.flatten(x0)[0]):
            x0 = np.array(x0, np.float64)
        self.given, self.spec = tree.flatten(x0)
        self.tensors = [as_primal(leaf).detach() for leaf in self.given]
        if not self.tensors:
            raise ValueError("optim.scipy.minimize: x0 holds no tensor")
        if any(t.is_complex() for t in self.tensors):
            raise RuntimeError("optim.scipy.minimize: x0 must be real (tg.view_as_real shows complex numbers as pairs)")
        self.sizes = [t.numel() for t in self.tensors]
        self.start = cat([t.double().reshape(-1) for t in self.tensors]).numpy()

    def parts(self, v: Any) -> Any:
        """Split a flat tensor into the containers of x0."""
        pieces = zip(v.split(self.sizes), self.tensors, strict=True)
        return tree.unflatten(self.spec, [piece.reshape(t.shape).to(t.dtype) for piece, t in pieces])

    def call(self, function: Callable[..., Any], v: Any, args: tuple[Any, ...] = ()) -> Any:
        """Call a function of x at a flat tensor."""
        x = self.parts(v)
        if self.module is None:
            return function(x, *args)
        values = untied(x, dict(self.module.named_parameters(remove_duplicate=False)))
        return call_swapped(self.module, values, None, functools.partial(function, self.module, *args))

    def flat(self, function: Callable[..., Any], v: Any, args: tuple[Any, ...] = ()) -> Any:
        """Like `call`, with the results concatenated into one flat tensor."""
        leaves, _ = tree.flatten(self.call(function, v, args))
        return cat([create.as_tensor(y).double().reshape(-1) for y in leaves])

    def restored(self, x: Any) -> Any:
        """A vector of SciPy's in the form of x0; for a module, the values are written into it."""
        new = self.parts(create.tensor(np.asarray(x, np.float64)))
        if self.module is None:
            leaves = zip(tree.flatten(new)[0], self.given, strict=True)
            return tree.unflatten(self.spec, [converted(t.clone(), result_class(leaf)) for t, leaf in leaves])
        with no_grad():
            for p, value in zip(self.given, new.values(), strict=True):
                p.copy_(value)
        return self.module

    def result(self, result: Any) -> Any:
        """An OptimizeResult with x in the form of x0."""
        return type(result)({**result, "x": self.restored(result.x)})

    def report(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """The callback for SciPy, which inspects the names of its parameters."""
        if list(inspect.signature(callback).parameters) == ["intermediate_result"]:
            return lambda intermediate_result: callback(intermediate_result=self.result(intermediate_result))
        return lambda x, *rest: callback(self.restored(x), *rest)

    def bounds(self, given: Any, optimize: Any) -> Any:
        """The bounds in SciPy's form."""
        if given is None or isinstance(given, optimize.Bounds):
            return given
        if self.module is not None:
            unknown = set(given) - set(self.spec.keys)
            if unknown:
                raise ValueError(f"optim.scipy.minimize: bounds for {sorted(unknown)}, which are no parameters")
            given = {name: given.get(name, (None, None)) for name in self.spec.keys}
        if self.spec is tree.LEAF and not is_pair(given):
            return given
        pairs = up_to(self.spec, given)
        if not all(is_pair(p) for p in pairs):
            raise ValueError("optim.scipy.minimize: bounds must be a pair (low, high) for each tensor of x0")
        ends = [
            np.concatenate([self._end(pair[i], infinite, t) for pair, t in zip(pairs, self.tensors, strict=True)])
            for i, infinite in enumerate((-np.inf, np.inf))
        ]
        return optimize.Bounds(*ends)

    def _end(self, value: Any, infinite: float, t: Any) -> Any:
        value = infinite if value is None else value.detach() if isinstance(value, Tensor) else value
        return np.broadcast_to(np.asarray(value, np.float64), t.shape).reshape(-1)

    def constraint(self, given: Any, optimize: Any, order: int) -> Any:
        """A constraint in SciPy's form, with derivatives up to an order."""
        if isinstance(given, optimize.LinearConstraint):
            return given
        is_dict = isinstance(given, dict)
        fun, jac = (given.get("fun"), given.get("jac")) if is_dict else (given.fun, given.jac)
        if callable(jac):
            raise TypeError("optim.scipy.minimize: leave the jac of a constraint out, tapegrad computes it")

        def value(x: Any, *args: Any) -> Any:
            return self.flat(fun, create.tensor(x), args).detach().numpy()

        def jacobian(x: Any, *args: Any) -> Any:
            return jacrev(lambda v: self.flat(fun, v, args))(np.asarray(x))

        def hessian(x: Any, weights: Any) -> Any:
            def times(p: Any) -> Any:
                return vhp(lambda v: (self.flat(fun, v) * create.tensor(weights)).sum(), np.asarray(x), p.reshape(-1))[1]

            return importlib.import_module("scipy.sparse.linalg").LinearOperator((len(x), len(x)), times, dtype=np.float64)

        if is_dict:
            return {**given, "fun": value, **({"jac": jacobian} if order else {})}
        settings = dict(list({"jac": jacobian, "hess": hessian}.items())[:order])
        return optimize.NonlinearConstraint(value, given.lb, given.ub, keep_feasible=given.keep_feasible, **settings)


def is_pair(bounds: Any) -> bool:
    return isinstance(bounds, tuple | list) and len(bounds) == 2 and not any(isinstance(b, tuple | list) for b in bounds)


__all__ = ["minimize"]
