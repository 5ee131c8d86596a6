"""Every public function says what it computes, and has an example that runs."""

import doctest
import importlib
import inspect
import pathlib
import re
import sys

import numpy as np
import pytest

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
# Modules whose functions are still to be done.
PENDING = (
    "tapegrad.amp", "tapegrad.autograd", "tapegrad.core", "tapegrad.custom", "tapegrad.distributions", "tapegrad.dtypes",
    "tapegrad.func.", "tapegrad.io", "tapegrad.jit", "tapegrad.modes", "tapegrad.nn", "tapegrad.optim",
    "tapegrad.overrides", "tapegrad.serialization", "tapegrad.sparse", "tapegrad.tensor", "tapegrad.testing",
    "tapegrad.utils", "tapegrad.viz", "tapegrad.functions.attention", "tapegrad.functions.conv",
    "tapegrad.functions.copies", "tapegrad.functions.create", "tapegrad.functions.decompose",
    "tapegrad.functions.dropout", "tapegrad.functions.einsum", "tapegrad.functions.embed", "tapegrad.functions.exchange",
    "tapegrad.functions.fft", "tapegrad.functions.index", "tapegrad.functions.joining", "tapegrad.functions.linalg",
    "tapegrad.functions.loss", "tapegrad.functions.matrix", "tapegrad.functions.normalize", "tapegrad.functions.pool",
    "tapegrad.functions.recurrent", "tapegrad.functions.resample", "tapegrad.functions.sampling",
    "tapegrad.functions.scatter", "tapegrad.functions.shape", "tapegrad.functions.signal", "tapegrad.functions.sort",
)  # fmt: skip
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def text_of(function):
    return inspect.getdoc(function) or ""


def repeats_another(function):
    """Whether a function in place, or one that copies, holds the text of the one that it repeats, with its example."""
    doc, name = text_of(function), function.__name__
    lines = [line for line in names.LINES if name in (line.name + "_", line.name + "_copy") and line.forms != ("tg_",)]
    return any("\nExample:\n" in text_of(base) and text_of(base) in doc for base in [line.resolve() for line in lines])


def home(function, name):
    """The module of functions/ that has a function which shows itself as tapegrad's."""
    for line in names.LINES if function.__module__ == "tapegrad" else ():
        if name == line.name + "_" or (name == line.name and line.resolve() is function):
            return f"tapegrad.functions.{line.family}"
    return function.__module__


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
    if needed and importlib.util.find_spec(needed) is None:
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
        if first == namespace and not home(function, shown[0]).startswith(PENDING)
        for fault in faults(function, shown)
    ]
    assert not found, "\n".join(found)


@pytest.mark.skipif(bool(PENDING), reason="some are still to be done")
def test_what_is_derived_is_current():
    """The part "Derivative:" says what the records say."""
    assert make_docstrings.edits() == {}, "run: python docs/make_docstrings.py"


def test_methods_in_place_carry_the_text_of_their_function():
    for form in ("Tensor_", "view_"):
        for line in names.at(form):
            doc = text_of(getattr(tg.Tensor, line.name + "_"))
            assert doc.endswith("\n\n" + text_of(line.resolve())), line.name
