"""gradcheck, gradgradcheck and autograd.functional against PyTorch: the same verdicts, texts, structures and numbers."""

import inspect
import itertools
import re
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

X = np.array([[0.3, -1.2, 2.0], [0.7, 1.1, -0.4]])
V = np.array([0.5, 1.5])
Z = np.array([0.3 + 0.4j, -1.1 + 0.2j])


def leaf(m, a, tracked=True):
    return m.tensor(a.tolist(), dtype=getattr(m, str(a.dtype))).requires_grad_(tracked)


def hooked(y, hook):
    y.register_hook(hook)
    return y


def counting():
    calls = itertools.count()
    return lambda g: g * (1 + 1e-3 * next(calls))


def wrong(m, x):
    """A gradient that is a tenth too large."""
    return hooked(m.sin(x), lambda g: 1.1 * g)


def wrong_second(m, x):
    """The right gradient, a wrong second derivative: a factor of 1 whose own derivative is not 0."""
    return hooked(m.sin(x), lambda g: g * (1 + (x - x.detach()).sum()))


def real_only(m, z):
    """z * conj(z) with the conjugate's path forgotten."""
    return z * z.detach().conj()


def refusing(m, a, b):
    """Two outputs whose backward fails where one cotangent is missing and the other is 0."""

    class Pair(m.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, g, h):
            if (g is None) != (h is None) and not (h if g is None else g).any():
                raise RuntimeError("a cotangent is missing")
            return None if g is None else 2 * g, None if h is None else 3 * h

    return Pair.apply(a, b)


# name: (function of (m, *inputs), inputs, options); an input (array, False) does not require grad
FIRST = {
    "right": (lambda m, x: m.sin(x).sum(0), [X], {}),
    "several outputs": (lambda m, x, v: (x @ x.T, v * 2, v.sum() * x), [X, V], {}),
    "a list of outputs": (lambda m, v: [v, v * v], [V], {}),
    "integer output": (lambda m, v: (v * v, v.argmax()), [V], {}),
    "constant output": (lambda m, v: v.detach() * 0, [V], {}),
    "constant in name": (lambda m, v: v.detach() * 2, [V], {}),
    "constant in name, fast": (lambda m, v: v.detach() * 2, [V], {"fast_mode": True}),
    "numbers among the inputs": (lambda m, v, p, flag: v**p if flag else v, [V, 3, True], {}),
    "input that is not checked": (lambda m, x, v: x.sum() * v.detach(), [X, (V, False)], {}),
    "unused input": (lambda m, x, v: x * 2, [X, V], {}),
    "0-dim": (lambda m, x: x * x, [np.array(0.5)], {}),
    "empty": (lambda m, x: x * x, [np.zeros((0, 2))], {}),
    "identity": (lambda m, x: x, [X], {}),
    "wrong": (wrong, [V], {}),
    "wrong in the second input": (lambda m, x, v: (x * 2, wrong(m, v)), [X, V], {}),
    "wrong, fast": (wrong, [V], {"fast_mode": True}),
    "right, fast": (lambda m, x: (m.sin(x) @ x.T, x.sum()), [X], {"fast_mode": True}),
    "right, fast, complex": (lambda m, z, v: (z * z.conj() * v, v * v), [Z, V], {"fast_mode": True}),
    "wrong, fast, complex": (lambda m, z: real_only(m, z), [Z], {"fast_mode": True}),
    "forgotten path": (lambda m, v: v * v.detach(), [V], {}),
    "complex": (lambda m, z: m.exp(z) * z.conj(), [Z], {}),
    "complex to real": (lambda m, z: z.abs(), [Z], {}),
    "real to complex": (lambda m, v: m.complex(v, v * v), [V], {}),
    "conjugate forgotten": (real_only, [Z], {}),
    "conjugate forgotten, imaginary only": (lambda m, v: hooked(m.complex(v, v), lambda g: g.conj()), [V], {}),
    "not multiplied": (lambda m, v: hooked(v.sum(), m.ones_like), [V], {}),
    "undefined": (refusing, [V, V], {}),
    "undefined, not checked": (refusing, [V, V], {"check_undefined_grad": False}),
    "not reentrant": (lambda m, v: hooked(v * v, counting()), [V], {"atol": 1.0}),
    "reentrant enough": (lambda m, v: hooked(v * v, counting()), [V],
                         {"atol": 1.0, "nondet_tol": 1.0, "check_undefined_grad": False}),
    "nobody requires grad": (lambda m, v: v * v, [(V, False)], {}),
    "no tensor": (lambda m, v: v * v, [2.0], {}),
    "no mode": (lambda m, v: v * v, [V], {"check_backward_ad": False}),
    "batched without backward": (lambda m, v: v, [V], {"check_batched_grad": True, "check_backward_ad": False,
                                                        "check_forward_ad": True}),
    "batched forward without forward": (lambda m, v: v, [V], {"check_batched_forward_grad": True}),
    "large tolerance": (wrong, [V], {"atol": 1.0, "check_undefined_grad": False}),
    "large relative tolerance": (wrong, [V], {"rtol": 0.2, "check_undefined_grad": False}),
    "large step": (lambda m, v: v**3, [V], {"eps": 0.1}),
    "batched": (lambda m, x: m.sin(x).sum(0), [X], {"check_batched_grad": True}),
    "dtypes": (lambda m, x: m.sin(x).sum(0), [X], {"check_grad_dtypes": True}),
    "shape depends on values": (lambda m, v: v[v > 0.4999999], [V], {}),
    "forward": (lambda m, x, v: (m.sin(x).sum(0), v * v), [X, V], {"check_forward_ad": True}),
    "forward, fast": (lambda m, x, v: (m.sin(x).sum(0), v * v), [X, V], {"check_forward_ad": True, "fast_mode": True}),
    "forward, complex": (lambda m, z, v: z * z.conj() * v, [Z, V], {"check_forward_ad": True}),
    "forward alone": (lambda m, v: v * v, [V], {"check_forward_ad": True, "check_backward_ad": False}),
    "forward, batched": (lambda m, v: v * v, [V], {"check_forward_ad": True, "check_batched_forward_grad": True}),
    "forward, path forgotten": (lambda m, v: v * v.detach(), [V], {"check_forward_ad": True, "check_backward_ad": False}),
    "forward, conjugate forgotten": (real_only, [Z], {"check_forward_ad": True, "check_backward_ad": False}),
}  # fmt: skip

SECOND = {
    "right": (lambda m, x: m.sin(x) * x.sum(), [X], {}),
    "right, fast": (lambda m, x: m.sin(x) * x.sum(), [X], {"fast_mode": True}),
    "complex": (lambda m, z: z * z * z.conj(), [Z], {}),
    "several outputs": (lambda m, x, v: (x * x, v * v.sum()), [X, V], {}),
    "linear": (lambda m, v: 2 * v, [V], {}),
    "wrong": (wrong_second, [V], {}),
    "wrong, fast": (wrong_second, [V], {"fast_mode": True}),
    "non-contiguous": (lambda m, x: m.sin(x), [X], {"gen_non_contig_grad_outputs": True}),
    "batched": (lambda m, x: m.sin(x), [X], {"check_batched_grad": True}),
    "no mode": (lambda m, v: v * v, [V], {"check_rev_over_rev": False}),
    "undefined without reverse": (lambda m, v: v * v, [V], {"check_rev_over_rev": False, "check_fwd_over_rev": True}),
    "forward over reverse": (lambda m, x: m.sin(x), [X], {"check_fwd_over_rev": True}),
    "nobody requires grad": (lambda m, v: v * v, [(V, False)], {}),
}


def inputs_of(m, inputs):
    return tuple(leaf(m, *(a if isinstance(a, tuple) else (a,))) if isinstance(a, tuple | np.ndarray) else a for a in inputs)


def verdict(m, name, case):
    f, inputs, options = case
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(m.autograd, name)(lambda *xs: f(m, *xs), inputs_of(m, inputs), **options)
    except Exception as e:
        return type(e).__name__, str(e)


def told(text, fast):
    """What is compared of a message: the numbers too, unless they are of random projections."""
    lines = re.sub(r",\s*grad_fn=<\w+>", "", text.split("\n\n")[0])
    return lines.splitlines()[0] if fast else lines


def check(name, case):
    ours, theirs = verdict(tg, name, case), verdict(torch, name, case)
    if theirs is True:
        assert ours is True
        return
    assert ours[0] == theirs[0], (ours, theirs)
    fast = case[2].get("fast_mode", False) or name == "gradgradcheck"
    if "Jacobian" in theirs[1]:
        assert told(ours[1], fast) == told(theirs[1], fast)
    else:
        sentence = theirs[1].replace("\n", " ").split(". ")[0].rstrip(".")
        assert ours[1].replace("\n", " ").startswith(sentence[:160]), (ours, theirs)
    assert verdict(tg, name, (*case[:2], {**case[2], "raise_exception": False})) == (
        False if theirs[0] == "GradcheckError" else ours
    )


@pytest.mark.parametrize("name", FIRST)
def test_gradcheck(name):
    check("gradcheck", FIRST[name])


@pytest.mark.parametrize("name", SECOND)
def test_gradgradcheck(name):
    check("gradgradcheck", SECOND[name])


@pytest.mark.parametrize("name", ["gradcheck", "gradgradcheck"])
def test_signature(name):
    ours, theirs = (inspect.signature(getattr(m.autograd, name)).parameters for m in (tg, torch))
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [(p.name, p.kind, p.default) for p in theirs.values()]


def test_single_precision_warns_with_the_same_words():
    texts = []
    for m in (torch, tg):
        with pytest.warns(UserWarning) as caught:
            m.autograd.gradcheck(
                lambda x, v: v * x.sum(), (leaf(m, V), leaf(m, V.astype(np.float32))), raise_exception=False
            )
        texts.append(str(caught[0].message))
    assert texts[0] == texts[1]


def test_expanded_input():
    for m in (torch, tg):
        x = leaf(m, V, False).expand(3, 2).requires_grad_()
        with pytest.raises(RuntimeError, match=r"The 0th input has a dimension with stride 0\. gradcheck only supports"):
            m.autograd.gradcheck(lambda x: x * x, (x,))


# ------------------------------------------------------------------------------------------------- autograd.functional

W = np.array([1.0, -2.0])
FUNCTIONS = {
    "one to one": (lambda m, x: m.sin(x).sum(0), [X]),
    "one to several": (lambda m, x: (m.sin(x), x.sum()), [X]),
    "several to one": (lambda m, v, w: v * w.exp(), [V, W]),
    "several to several": (lambda m, x, v: (x * v[:, None], v.prod()), [X, V]),
    "a tuple of one": (lambda m, v: (v * v,), [(V,)]),
    "complex": (lambda m, z: z * z.conj() + z, [Z]),
    "independent": (lambda m, x, v: (x * 2, x.sum()), [X, V]),
    "constant": (lambda m, v: v.detach() * 2, [V]),
    "constant output": (lambda m, v: (v * 2, v.detach()), [V]),
    "linear": (lambda m, v: 3 * v, [V]),
    "scalar": (lambda m, x: (x**3).sum(), [X]),
    "scalar of several": (lambda m, v, w: (v**2 * w).sum(), [V, W]),
    "scalar, additive": (lambda m, v, w: (v**3).sum() + (w**3).sum(), [V, W]),
    "scalar, linear": (lambda m, v: v.sum(), [V]),
    "scalar, independent": (lambda m, v, w: (v**2).sum(), [V, W]),
    "scalar of shape": (lambda m, v: (v**3).sum().reshape(1, 1), [V]),
    "scalar of a scalar": (lambda m, v: v.exp(), [np.array(0.5)]),
    "of one element": (lambda m, v: v.exp(), [np.array([[0.5]])]),
    "constant scalar": (lambda m, v: m.ones(()), [V]),
    "no tensor": (lambda m, v: 2.0, [V]),
    "a list": (lambda m, v: [v, v], [V]),
    "a tuple with a number": (lambda m, v: (v, 2.0), [V]),
}
CALLS = {
    "jacobian": [{}, {"strict": True}, {"create_graph": True}, {"vectorize": True}, {"strict": True, "create_graph": True},
                 {"vectorize": True, "strategy": "forward-mode"}, {"strict": True, "vectorize": True}, {"strategy": "x"},
                 {"strict": True, "strategy": "forward-mode"}, {"vectorize": True, "create_graph": True}],
    "hessian": [{}, {"strict": True}, {"create_graph": True}, {"vectorize": True}, {"strict": True, "create_graph": True},
                {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}, {"outer_jacobian_strategy": "x"}],
    **{api: [{}, {"strict": True}, {"create_graph": True}, {"strict": True, "create_graph": True}]
       for api in ("vjp", "jvp", "vhp", "hvp")},
}  # fmt: skip


def structure(value):
    """Tensors as (shape, dtype, numbers, whether tracked) in their tuples."""
    if isinstance(value, tuple | list):
        return tuple(structure(v) for v in value)
    a = value.detach().resolve_conj().numpy() if isinstance(value, torch.Tensor) else np.array(value.detach().numpy())
    return tuple(a.shape), str(a.dtype), a, value.requires_grad


def equal(a, b, tracked):
    """Whether structures agree; `tracked`: also in what requires grad (PyTorch's forward mode never detaches).

    With create_graph a constant derivative may be untracked here where PyTorch's formula still refers to the input.
    """
    if len(b) != 4 or not isinstance(b[3], bool):
        return len(a) == len(b) and all(equal(x, y, tracked) for x, y in zip(a, b, strict=True))
    return a[:2] == b[:2] and np.allclose(a[2], b[2], 1e-9, 1e-12) and (a[3] == b[3] or (not tracked and not a[3]))


def outcome(m, api, f, arrays, options, v=None):
    def arguments(of):
        if isinstance(of, tuple):
            return tuple(leaf(m, a) for a in of)
        return tuple(leaf(m, a) for a in of) if len(of) > 1 else leaf(m, of[0])

    xs = arguments(arrays[0] if isinstance(arrays[0], tuple) else arrays)
    extra = () if v is None else (arguments(v),)
    try:
        return structure(getattr(m.autograd.functional, api)(lambda *a: f(m, *a), xs, *extra, **options))
    except Exception as e:
        return type(e).__name__, str(e)


def failed(result):
    return len(result) == 2 and all(isinstance(r, str) for r in result)


def compare(api, f, arrays, options, v=None):
    ours, theirs = (outcome(m, api, f, arrays, options, v) for m in (tg, torch))
    if failed(theirs):
        if "INTERNAL ASSERT" in theirs[1]:
            return
        assert failed(ours), (ours, theirs)
        if theirs[1].startswith("The jacobian of") and api == "jacobian":  # there PyTorch gives the output's number
            ours, theirs = (tuple(re.sub(r"input \d", "input", t) for t in r) for r in (ours, theirs))
        text = theirs[1].replace("outputs given to None", f"outputs of the user-provided function given to {api}")
        sentence = text.split(". ")[0].split(" but the given ")[0].rstrip(".").replace("\n", " ")
        assert ours[0] == theirs[0] and ours[1].startswith(sentence), (ours, theirs)
    else:
        tracked = not options.get("create_graph") and "forward-mode" not in options.values()
        assert not failed(ours) and equal(ours, theirs, tracked), (ours, theirs)


VECTORS = {
    "vjp": {
        "one to one": [np.array([1.0, 2.0, -1.0])], "one to several": [X, np.array(2.0)], "several to one": [W],
        "several to several": [X, np.array(2.0)], "a tuple of one": (W,), "complex": [Z], "independent": [X, np.array(2.0)],
        "constant": [W], "constant output": [W, W], "linear": [W],
    },
}  # fmt: skip


@pytest.mark.parametrize("api", CALLS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functional(api, name):
    f, arrays = FUNCTIONS[name]
    flat = list(arrays[0]) if isinstance(arrays[0], tuple) else arrays
    for options in CALLS[api]:
        compare(api, f, arrays, options)
        if api == "vjp" and name in VECTORS["vjp"]:
            compare(api, f, arrays, options, VECTORS["vjp"][name])
        elif api in ("jvp", "hvp", "vhp"):
            v = [a * 0.5 + 1 for a in flat]
            compare(api, f, arrays, options, tuple(v) if isinstance(arrays[0], tuple) else v)


@pytest.mark.parametrize("api", ["vjp", "jvp", "vhp", "hvp"])
def test_vectors_that_do_not_fit(api):
    f = (lambda m, v, w: (v * w).sum()) if api[1] == "h" or api == "hvp" else (lambda m, v, w: (v * w, w))
    for v in ([V], [V, W, W], [V, X], [np.array(1.0), W], (V,)):
        compare(api, f, [V, W], {}, v)
    g = (lambda m, v: (v * v).sum()) if api in ("vhp", "hvp") else (lambda m, v: v * v)
    for v in ([X], [V, W], (W,)):
        compare(api, g, [V], {}, v)


@pytest.mark.parametrize("api", CALLS)
def test_signature_of_functional(api):
    ours, theirs = (inspect.signature(getattr(m.autograd.functional, api)).parameters for m in (tg, torch))
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [(p.name, p.kind, p.default) for p in theirs.values()]


@pytest.mark.parametrize("api", CALLS)
@pytest.mark.parametrize("inputs", [[1.0], 2.0, (2.0,), None])
def test_inputs_that_are_no_tensors(api, inputs):
    for m in (torch, tg):
        kind = type(inputs[0] if isinstance(inputs, tuple) else inputs).__name__
        with pytest.raises(TypeError, match=f"The inputs given to {api} must be either a Tensor or a tuple .* '{kind}'"):
            getattr(m.autograd.functional, api)(lambda x: x * x, inputs)
