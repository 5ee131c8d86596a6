"""The functional page against torch.func: names, signatures, the same programs, the same errors."""

import inspect

import numpy as np
import pytest
import torch
from torch import func as theirs

import tapegrad as tg
from tapegrad import func as ours

MISSING = {"debug_unwrap", "functionalize", "rearrange"}
PRIVATE = {"_preallocate_and_copy"}
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit", "ignore:Attempted to insert")


def test_names():
    names = {n for n in dir(theirs) if callable(getattr(theirs, n)) and not n.startswith("_")}
    assert names - set(ours.__all__) == MISSING


@pytest.mark.parametrize("name", sorted(n for n in ours.__all__ if hasattr(theirs, n)))
def test_signature(name):
    def parameters(function):
        given = inspect.signature(function).parameters.values()
        return [(p.name, p.kind, p.default) for p in given if p.name not in PRIVATE]

    want, got = parameters(getattr(theirs, name)), parameters(getattr(ours, name))
    for w in want:
        assert w in got, f"{w} is not among {got}"
    assert [g[0] for g in got if g in want] == [w[0] for w in want]
    assert all(p[2] is not inspect.Parameter.empty for p in got if p not in want)  # what is more has a default


W = np.random.default_rng(0).standard_normal((4, 3))
X = np.random.default_rng(1).standard_normal(3)


def f(L, x):
    return L.tanh(L.tensor(W) @ x) * x.sum()


def s(L, x):
    return L.logsumexp(f(L, x), 0)


PROGRAMS = {
    "grad": lambda L, t, x: t.grad(lambda x: s(L, x))(x),
    "aux": lambda L, t, x: t.grad_and_value(lambda x: (s(L, x), x * 2), has_aux=True)(x),
    "vjp": lambda L, t, x: t.vjp(lambda x: (f(L, x), {"a": x}), x)[1]((L.tensor(W[:, 0]), {"a": x})),
    "jvp": lambda L, t, x: t.jvp(lambda x: [f(L, x), x.sum()], (x,), (x * 3,)),
    "linearize": lambda L, t, x: t.linearize(lambda x: f(L, x), x)[1](x * 3),
    "jacrev": lambda L, t, x: t.jacrev(lambda x, y: (f(L, x), {"p": x * y}), (0, 1))(x, x * 2),
    "jacrev in chunks": lambda L, t, x: t.jacrev(lambda x: f(L, x), chunk_size=3)(x),
    "jacfwd": lambda L, t, x: t.jacfwd(lambda x, y: (f(L, x), {"p": x * y}), (0, 1))(x, x * 2),
    "jacfwd aux": lambda L, t, x: t.jacfwd(lambda x: (f(L, x), x * 2), has_aux=True)(x),
    "hessian": lambda L, t, x: t.hessian(lambda x, y: s(L, x * y), (0, 1))(x, x * 2),
    "hessian of a vector": lambda L, t, x: t.hessian(lambda x: f(L, x))(x),
    "vmap": lambda L, t, x: t.vmap(lambda x, y: {"a": f(L, x), "b": [y * 2]}, (1, None), {"a": 1, "b": None})(
        L.stack([x, x * 2], 1), x
    ),
    "vmap of hessian": lambda L, t, x: t.vmap(t.hessian(lambda x: s(L, x)))(L.stack([x, x * 2])),
    "vmap keywords": lambda L, t, x: t.vmap(lambda a, k: a * k)(L.stack([x, x * 2]), k=x),
    "jvp of jacrev": lambda L, t, x: t.jvp(t.jacrev(lambda x: f(L, x)), (x,), (x,)),
    "independent": lambda L, t, x: (t.grad(lambda x: L.ones(()))(x), t.jacrev(lambda x: L.ones(2))(x)),
}


def arrays(value):
    """The leaves of a result, with the structure as text."""
    if isinstance(value, tg.Tensor | torch.Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {k: arrays(v) for k, v in value.items()}
    return [type(value).__name__, *map(arrays, value)]


def compare(got, want):
    assert type(got) is type(want)
    if isinstance(want, np.ndarray):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    elif isinstance(want, dict):
        assert got.keys() == want.keys()
        for k in want:
            compare(got[k], want[k])
    elif isinstance(want, list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            compare(a, b)
    else:
        assert got == want


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_program(program):
    compare(arrays(program(tg, ours, tg.tensor(X))), arrays(program(torch, theirs, torch.tensor(X))))


def double(x):
    return x * 2


WRONG = {
    "grad of a vector": lambda L, t, x: t.grad(double)(x),
    "grad of a float": lambda L, t, x: t.grad(lambda x: 1.0)(x),
    "grad aux": lambda L, t, x: t.grad(double, has_aux=True)(x),
    "grad of an integer": lambda L, t, x: t.grad(lambda x: x.sum())(L.tensor([1, 2])),
    "argnums": lambda L, t, x: t.grad(double, argnums=1)(x),
    "argnums empty": lambda L, t, x: t.grad(double, argnums=())(x),
    "vjp of a bool": lambda L, t, x: t.vjp(lambda x: x > 0, x),
    "vjp of an integer": lambda L, t, x: t.vjp(lambda x: (x > 0).long(), x),
    "vjp of nothing": lambda L, t, x: t.vjp(lambda x: (), x),
    "cotangents": lambda L, t, x: t.vjp(double, x)[1]((x, x)),
    "jvp primals": lambda L, t, x: t.jvp(double, x, x),
    "jvp empty": lambda L, t, x: t.jvp(double, (), ()),
    "jvp structure": lambda L, t, x: t.jvp(double, (x,), (x, x)),
    "jvp of a float": lambda L, t, x: t.jvp(lambda x: 1.0, (x,), (x,)),
    "jvp strict": lambda L, t, x: t.jvp(lambda x: L.ones(2), (x,), (x,), strict=True),
    "jacrev complex": lambda L, t, x: t.jacrev(double)(x * 1j),
    "jacrev complex output": lambda L, t, x: t.jacrev(lambda x: x * 1j)(x),
    "jacfwd complex": lambda L, t, x: t.jacfwd(double)(x * 1j),
    "jacrev chunks": lambda L, t, x: t.jacrev(double, chunk_size=0),
    "vmap without inputs": lambda L, t, x: t.vmap(double)(),
    "vmap in_dims": lambda L, t, x: t.vmap(double, None)(x),
    "vmap nothing": lambda L, t, x: t.vmap(double, (None,))(x),
    "vmap structure": lambda L, t, x: t.vmap(double, (0, 0))(x),
    "vmap float": lambda L, t, x: t.vmap(double)(3.0),
    "vmap range": lambda L, t, x: t.vmap(double, 2)(x),
    "vmap kind": lambda L, t, x: t.vmap(double, ("0",))(x),
    "vmap sizes": lambda L, t, x: t.vmap(lambda a, b: a)(x, L.ones(2)),
    "vmap out_dims": lambda L, t, x: t.vmap(double, out_dims=None)(x),
    "vmap output": lambda L, t, x: t.vmap(lambda x: 1.0)(x),
    "vmap places": lambda L, t, x: t.vmap(double, out_dims=(0, 1))(x),
    "vmap chunks": lambda L, t, x: t.vmap(double, chunk_size=0)(x),
    "vmap randomness": lambda L, t, x: t.vmap(double, randomness="no")(x),
    "linearize structure": lambda L, t, x: t.linearize(double, x)[1](x, x),
    "functional_call dicts": lambda L, t, x: t.functional_call(L.nn.Linear(1, 1), 5, (x,)),
    "functional_call strict": lambda L, t, x: t.functional_call(L.nn.Linear(1, 1), {"a": x}, (x,), strict=True),
    "functional_call value": lambda L, t, x: t.functional_call(L.nn.Linear(1, 1), {"weight": 1}, (x,)),
    "functional_call module": lambda L, t, x: t.functional_call(L.nn.Sequential(L.nn.Identity()), {"0": x}, (x,)),
    "functional_call method": lambda L, t, x: t.functional_call(L.nn.Identity(), {"forward": x}, (x,)),
    "functional_call no name": lambda L, t, x: t.functional_call(L.nn.Identity(), {"": x}, (x,)),
    "functional_call no module": lambda L, t, x: t.functional_call(L.nn.Identity(), {"a.b": x}, (x,)),
    "stack nothing": lambda L, t, x: t.stack_module_state([]),
    "stack classes": lambda L, t, x: t.stack_module_state([L.nn.Linear(1, 1), L.nn.Identity()]),
}


@pytest.mark.parametrize("act", WRONG.values(), ids=WRONG)
def test_error(act):
    with pytest.raises(Exception) as want:
        act(torch, theirs, torch.tensor(X))
    with pytest.raises(type(want.value)) as got:
        act(tg, ours, tg.tensor(X))
    first = str(want.value).split(". ")[0].split(";")[0].rstrip(".")
    for cut in (" structure ", " (got output", " TreeSpec("):
        first = first.split(cut)[0]
    assert first in str(got.value)
