"""Programs print the same on the drop-in as with PyTorch: the same text, numbers within 1e-4 relative."""

import pathlib
import sys

import pytest

pytest.importorskip("torch")

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
import programs

PROGRAMS = {  # program in compat/programs: its arguments
    "char_models.py": [],
    "forward_forward.py": [],
    "image_cnn.py": [],
    "oneflow_polynomial.py": ["torch"],
    "oneflow_quickstart.py": ["torch"],
    "policy_gradient.py": [],
    "polynomial.py": [],
    "scalar_engine.py": [],
    "seed_notes.py": ["torch"],
    "seed_oneflow.py": ["torch"],
    "seed_pytorch.py": ["torch"],
    "sequence_lstm.py": [],
    "sine_lbfgs.py": [],
    "variational.py": [],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_prints_the_same(program, tmp_path):
    command = [str(HERE / "programs" / program), *PROGRAMS[program]]
    printed = []
    for folder, runner in (("theirs", []), ("ours", ["-m", "tapegrad", "--as", "torch"])):
        (tmp_path / folder).mkdir()
        printed.append(programs.output([*runner, *command], tmp_path / folder, HERE.parent, HERE / "standins"))
    theirs, ours = printed
    assert theirs
    assert programs.difference(ours, theirs) is None
