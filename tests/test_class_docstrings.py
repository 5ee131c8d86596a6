"""Every public class says in its first line what it is, and the examples in its text run."""

import doctest
import importlib
import inspect
import pathlib
import sys

import numpy as np
import pytest

import tapegrad as tg

sys.path.append(str(pathlib.Path(__file__).parent.parent / "docs"))

import make_reference


def classes_of(namespace):
    module = importlib.import_module(namespace)
    names = [name for name in getattr(module, "__all__", vars(module)) if not name.startswith("_")]
    values = [getattr(module, name, None) for name in names]
    return {v for v in values if isinstance(v, type) and v.__module__.startswith("tapegrad")}


def faults(cls):
    summary, _, rest = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition("\n")
    if not summary.endswith((".", ":")) or rest[:1] not in ("", "\n"):
        yield "no summary of one line"
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(cls) or "", {"tg": tg, "np": np}, cls.__name__, None, 0)
    out = []
    if doctest.DocTestRunner(verbose=False).run(test, out=out.append).failed:
        yield "".join(out)


@pytest.mark.parametrize("namespace", [*make_reference.NAMESPACES, "tapegrad.amp", "tapegrad.numpy", "tapegrad.sparse"])
def test_every_public_class_has_a_text_whose_examples_run(namespace):
    found = [f"{cls.__module__}.{cls.__qualname__}: {fault}" for cls in classes_of(namespace) for fault in faults(cls)]
    assert not found, "\n".join(sorted(found))
