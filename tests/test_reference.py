"""docs/reference.md is current."""

import importlib.util
import pathlib

import pytest

import tapegrad as tg

HERE = pathlib.Path(__file__).parent.parent / "docs"


@pytest.mark.exhaustive
def test_reference_is_current():
    spec = importlib.util.spec_from_file_location("make_reference", HERE / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (HERE / "reference.md").read_text() == module.page(), "run: python docs/make_reference.py"


def test_modules_that_are_loaded_on_first_use_are_listed():
    assert {"distributions", "testing", "nn"} <= set(dir(tg))
