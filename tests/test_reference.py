"""The reference page is what the table says."""

import importlib.util
import pathlib

HERE = pathlib.Path(__file__).parent.parent / "docs"


def test_reference_is_current():
    spec = importlib.util.spec_from_file_location("make_reference", HERE / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (HERE / "reference.md").read_text() == module.page(), "run: python docs/make_reference.py"
