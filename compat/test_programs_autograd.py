"""Programs for HIPS autograd print on the drop-in what they print on autograd."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("autograd")
pytest.importorskip("scipy")

ROOT = pathlib.Path(__file__).parent.parent
PROGRAMS = sorted((ROOT / "compat" / "programs").glob("autograd_*.py"))
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def printed(*command):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=100)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_it_prints_the_same(program):
    theirs, ours = printed(program), printed("-m", "tapegrad", "--as", "autograd", program)
    assert re.sub(r"\s+", " ", NUMBER.sub("#", ours)) == re.sub(r"\s+", " ", NUMBER.sub("#", theirs))
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    assert all(float(a) == pytest.approx(float(b), rel=1e-6, abs=1e-12) for a, b in pairs), f"{ours}\n{theirs}"
