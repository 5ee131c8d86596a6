"""Layers on tensors of a subclass: which of their outputs are of it, as in PyTorch."""

import numpy as np
import pytest
from layers import BOTH, argument, tensors
from test_layers_pointwise import ACTIVATIONS, LOSSES, OTHERS
from test_layers_recurrent import CASES as RECURRENT
from test_layers_structure import CASES as STRUCTURE

from tapegrad import overrides

FAMILIES = {
    "activation": ACTIVATIONS, "loss": LOSSES, "other": OTHERS, "recurrent": RECURRENT, "structure": STRUCTURE,
}  # fmt: skip
CASES = {f"{family} {name}": case for family, cases in FAMILIES.items() for name, case in cases.items()}
PACKED = "the lengths that pad_packed_sequence returns are a plain tensor"
KNOWN = {  # why outputs are of other classes
    "loss margin": "PyTorch refuses weights of another dtype than the input's",
    **{f"recurrent {name}": PACKED for name in RECURRENT if " packed" in name},
}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def enabled():
    overrides.enable()
    yield
    overrides.disable()


def classes(m, case):
    """For each tensor in the outputs whether it is of the subclass that the inputs are of."""
    kind = type("Image", (m.Tensor,), {})
    m.manual_seed(0)
    net = case.make(m)
    args = [argument(m, spec, np.random.default_rng(0), "float32") for spec in case.inputs]
    args = [a.as_subclass(kind) if type(a) is m.Tensor else a for a in args]
    try:
        return [type(t) is kind for t in tensors(case.call(net, *args))]
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as e:
        return type(e).__name__


@pytest.mark.parametrize("name", CASES)
def test_outputs_of_a_subclass(name):
    theirs, ours = (classes(m, CASES[name]) for m in BOTH)
    assert (ours != theirs) == (name in KNOWN), (ours, theirs)
