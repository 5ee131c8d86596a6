"""Programs print the same on the drop-in as with PyTorch: the same text, numbers within 1e-4 relative."""

import pathlib
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("torch")

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
import programs

PROGRAMS = [  # a program in compat/programs and its arguments
    "attention_translation.py",
    "burgers.py",
    "char_models.py",
    "conditional_gan.py",
    pytest.param("e3nn_force_field.py", marks=pytest.mark.skipif(find_spec("e3nn") is None, reason="needs e3nn")),
    "forward_forward.py",
    "fx_graphs.py",
    "gan.py",
    "graph_networks.py",
    "hamiltonian.py",
    "hessian_optimizer.py",
    "image_cnn.py",
    "implicit_surface.py",
    "language_model.py GRU",
    "language_model.py LSTM",
    "language_model.py Transformer",
    "oneflow_polynomial.py torch",
    "oneflow_quickstart.py torch",
    "policy_gradient.py",
    "polynomial.py",
    "scalar_engine.py",
    "seed_notes.py torch",
    "seed_oneflow.py torch",
    "seed_pytorch.py torch",
    "sequence_lstm.py",
    "sine_lbfgs.py",
    "variational.py",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_prints_the_same(program, tmp_path):
    name, *args = program.split()
    command = [str(HERE / "programs" / name), *args]
    printed = []
    for folder, runner in (("theirs", []), ("ours", ["-m", "tapegrad", "--as", "torch"])):
        (tmp_path / folder).mkdir()
        printed.append(programs.output([*runner, *command], tmp_path / folder, HERE.parent, HERE / "standins"))
    theirs, ours = printed
    assert theirs
    assert programs.difference(ours, theirs) is None
