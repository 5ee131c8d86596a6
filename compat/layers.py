"""One layer in both libraries: state from one seed, printed form, outputs, two orders of gradients, state after five steps.

A test file lists its layers as Case rows and calls `check` on each; `public_layers` tells what torch.nn has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
BOTH = (torch, tg)


class Case(NamedTuple):
    """A layer and what to call it on.

    make: the layer, given the library (torch or tapegrad): `lambda m: m.nn.Linear(3, 4)`.
    inputs: for each argument its shape (normal numbers that ask for gradients), ("long", n, shape) for integers below n,
        ("constant", shape) for numbers without gradients, or a function of the library.
    call: what to do with layer and arguments, if not layer(*arguments); may return nested tuples, lists, dicts.
    orders: 2, or 1 where PyTorch has no second derivative, or 0 where it has none.
    tol: relative and absolute, in float64.
    single: whether the layer also runs in float32, compared to 2e-5 (False for layers whose rounding is larger).
    """

    make: Callable[[Any], Any]
    inputs: tuple[Any, ...]
    call: Callable[..., Any] = lambda layer, *args: layer(*args)
    orders: int = 2
    tol: float = 1e-9
    single: bool = True


def array(t: Any) -> Any:
    return np.array(t.detach().numpy(force=True))


def close(theirs: Any, ours: Any, tol: float, what: str) -> None:
    a, b = array(theirs), array(ours)
    assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {a.dtype}{a.shape} against {b.dtype}{b.shape}"
    scale = float(np.abs(a[np.isfinite(a)]).max(initial=0)) if a.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(b, a, rtol=tol, atol=tol * max(1.0, scale), err_msg=what)


def tensors(value: Any) -> Iterator[Any]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(value, torch.Tensor | tg.Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors(v)
    elif isinstance(value, tuple | list):
        for v in value:
            yield from tensors(v)


def argument(m: Any, spec: Any, rng: Any, dtype: str) -> Any:
    if callable(spec):
        return spec(m)
    if spec and spec[0] == "long":
        return m.tensor(rng.integers(0, spec[1], spec[2]))
    constant = bool(spec) and spec[0] == "constant"
    x = m.tensor(rng.standard_normal(spec[1] if constant else spec).astype(dtype))
    return x if constant else x.requires_grad_()


def state(net: Any) -> dict[str, Any]:
    return {k: v.detach().clone() for k, v in net.state_dict().items() if v is not None}


def named(name: str, m: Any, sources: list[Any], gradients: Any) -> list[tuple[str, Any]]:
    filled = (m.zeros_like(x) if g is None else g for x, g in zip(sources, gradients, strict=True))
    return [(f"{name} {i}", g) for i, g in enumerate(filled)]


def results(m: Any, case: Case, dtype: str) -> tuple[Any, list[tuple[str, Any]]]:
    """The layer, and everything it gives, under names."""
    m.manual_seed(0)
    net = case.make(m)
    found = [(f"initial {k}", v) for k, v in state(net).items()]
    net = net.to(getattr(m, dtype))
    rng = np.random.default_rng(7)
    args = [argument(m, spec, rng, dtype) for spec in case.inputs]
    m.manual_seed(1)
    outputs = list(tensors(case.call(net, *args)))
    found += [(f"output {i}", y) for i, y in enumerate(outputs)]
    found += [(f"state {k}", v) for k, v in state(net).items()]
    sources = [x for x in args if isinstance(x, m.Tensor) and x.requires_grad] + [
        p for p in net.parameters() if p.requires_grad
    ]
    tracked = [y for y in outputs if y.requires_grad]
    if case.orders and tracked:
        loss = sum((y * m.tensor(rng.standard_normal(tuple(y.shape)).astype(dtype))).sum() for y in tracked)
        gs = m.autograd.grad(loss, sources, create_graph=case.orders > 1, allow_unused=True)
        found += named("gradient", m, sources, gs)
        second = [g for g in gs if g is not None and g.requires_grad]
        if case.orders > 1:  # a gradient that is constant in one library may be a recorded constant in the other
            total = sum((g * g).sum() for g in second)
            hs = m.autograd.grad(total, sources, allow_unused=True) if second else [None] * len(sources)
            found += named("second", m, sources, hs)
    if case.orders and tracked and list(net.parameters()):
        found += trained(m, case, net, args)
    return net, found


def trained(m: Any, case: Case, net: Any, args: list[Any]) -> list[tuple[str, Any]]:
    """The state after five steps of descent with momentum."""
    optimizer = m.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _ in range(5):
        optimizer.zero_grad()
        loss = sum((y * y).mean() for y in tensors(case.call(net, *args)) if y.requires_grad)
        loss.backward()
        optimizer.step()
    return [(f"trained {k}", v) for k, v in state(net).items()]


def check(case: Case) -> None:
    """Both libraries agree on everything about a layer."""
    for dtype, tol in (("float64", case.tol), ("float32", 2e-5)):
        if dtype == "float32" and not case.single:
            continue
        (net, theirs), (our_net, ours) = (results(m, case, dtype) for m in BOTH)
        assert repr(our_net) == repr(net)
        assert [k for k, _ in ours] == [k for k, _ in theirs]
        for (name, a), (_, b) in zip(theirs, ours, strict=True):
            if name.startswith("trained") and dtype == "float32":
                continue  # rounding grows from step to step
            close(a, b, 2e-7 if name.startswith("initial") else tol, f"{dtype} {name}")


def public_layers(m: Any) -> set[str]:
    """Names of the Module classes of a library's nn."""
    kinds = {n: getattr(m.nn, n) for n in dir(m.nn) if not n.startswith("_")}
    return {n for n, k in kinds.items() if inspect.isclass(k) and issubclass(k, m.nn.Module)}


def signature(function: Any) -> list[tuple[str, Any]]:
    """Names and defaults of a function's parameters."""
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]
