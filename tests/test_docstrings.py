"""Every public function says what it computes, and has an example that runs."""

import doctest
import inspect
import pathlib
import re
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from needs_scipy import ABSENT

import tapegrad as tg
from tapegrad.functions import names

DOCS = pathlib.Path(__file__).parent.parent / "docs"
sys.path.append(str(DOCS))

import make_docstrings  # noqa: E402

# Functions that need an optional package, and so does their example.
NEEDS = {
    "compile": "jax",
    "is_autocast_cpu_enabled": "ml_dtypes",
    "is_autocast_enabled": "ml_dtypes",
    **dict.fromkeys(
        (
            "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
            "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
        ),
        "scipy",
    ),
}  # fmt: skip
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def text_of(function):
    return inspect.getdoc(function) or ""


def repeats_another(function):
    """Whether a function in place, or one that copies, holds the text of the one that it repeats, with its example."""
    doc, name = text_of(function), function.__name__
    lines = [line for line in names.LINES if name in (line.name + "_", line.name + "_copy") and line.forms != ("tg_",)]
    return any("\nExample:\n" in text_of(base) and text_of(base) in doc for base in [line.resolve() for line in lines])


def faults(function, shown):
    doc = text_of(function)
    summary, _, rest = doc.partition("\n")
    if not summary.endswith((".", ":")) or rest[:1] not in ("", "\n"):
        yield "no summary of one line"
    if repeats_another(function):
        return
    examples = doctest.DocTestParser().get_examples(doc.partition("\nExample:\n")[2])
    if not any(re.search(rf"\b{name}\b\(", e.source) for e in examples for name in shown):
        yield "no example that calls it"
    yield from failures(function, doc)


def failures(function, doc):
    needed = NEEDS.get(function.__name__)
    if needed and find_spec(needed) is None:
        return
    test = doctest.DocTestParser().get_doctest(doc, {"tg": tg, "np": np}, function.__name__, None, 0)
    out: list[str] = []
    if doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=out.append).failed:
        yield "".join(out)


@pytest.mark.parametrize("namespace", make_docstrings.NAMESPACES)
def test_every_public_function_has_a_text_and_an_example(namespace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [
        f"{shown[0]} ({function.__module__}): {fault}"
        for function, (first, *shown) in make_docstrings.public_functions().items()
        if first == namespace
        for fault in faults(function, shown)
    ]
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
def test_what_is_derived_is_current():
    """The part "Derivative:" says what the records say."""
    assert make_docstrings.edits() == {}, "run: python docs/make_docstrings.py"


class Names(dict):
    """What the formulas of docstrings call: public functions."""

    def __missing__(self, name):
        return next(getattr(space, name) for space in (tg, tg.special, tg.nn.functional) if hasattr(space, name))


def formulas(function, op):
    """By argument, what a part "Derivative:" says in formulas, not in words: statements and an expression."""
    for line in make_docstrings.derivative(function, op):
        argument, _, text = line.partition(": ")
        expression, _, where = text.partition(", where ")
        if not expression.startswith(("see ", "not known", "none")) and not re.search(r"(^|; )\w+: ", where):
            yield argument, where.split("; "), expression


def value_of(expression, where, given):
    called = re.findall(r"(\w+)\(", expression)
    names = Names({name: value for name, value in given.items() if name not in called})
    exec("\n".join(where), names)
    return tg.as_tensor(eval(expression, names))


def check_formulas(function, op, sample):
    """Number of formulas that give the recorded gradient on a sample."""
    listed = list(inspect.signature(function).parameters)[: op.arity]
    said = {argument: formula for argument, *formula in formulas(function, op)}
    arrays = {name: tg.tensor(np.asarray(a)) for name, a in zip(listed, sample.arrays, strict=True)}
    asked = {
        name: x.requires_grad_() for name, x in arrays.items() if name in said and x.dtype.is_floating_point | x.is_complex()
    }
    result = op.call(*arrays.values(), *sample.params)
    g = tg.tensor(np.random.default_rng(0).standard_normal((2, *result.shape)))
    g = (g[0] + 1j * g[1] if result.is_complex() else g[0]).to(result.dtype)
    given = {name: x.detach() for name, x in arrays.items()} | {"g": g, "result": result.detach()}
    given |= dict(zip(make_docstrings.parameters(op), sample.params, strict=True))
    grads = tg.autograd.grad(result, list(asked.values()), g) if asked else ()
    for (name, x), got in zip(asked.items(), grads, strict=True):
        expression, where = said[name][::-1]
        want = value_of(expression, where, given)
        want = want.broadcast_to(result.shape) if op.kind == "elementwise" else want
        want = (want if x.is_complex() else want.real).sum_to_size(x.shape).to(x.dtype)
        tg.testing.assert_close(got, want, rtol=1e-5, atol=1e-6, equal_nan=True, msg=f"{op.name}, {name}: {expression}")
    return len(asked)


def test_derivatives_are_what_is_recorded():
    checked = 0
    for function in make_docstrings.public_functions():
        op = make_docstrings.record_of(function)
        if op is None or op.kind == "constant" or op.outputs > 1 or op.name in ABSENT:
            continue
        samples = [s for s in make_docstrings.samples_of(op) if s.smooth and np.asarray(s.arrays[0]).size]
        kinds = {np.iscomplexobj(s.arrays[0]): s for s in reversed(samples)}
        checked += sum(check_formulas(function, op, s) for s in kinds.values())
    assert checked > 120


def test_methods_in_place_carry_the_text_of_their_function():
    for form in ("Tensor_", "view_"):
        for line in names.at(form):
            doc = text_of(getattr(tg.Tensor, line.name + "_"))
            assert doc.endswith("\n\n" + text_of(line.resolve())), line.name


def test_the_package_text_begins_with_examples():
    assert not list(failures(tg, tg.__doc__))
