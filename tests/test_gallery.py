"""The gallery's programs run in their quick mode, and the checks of their numbers pass."""

import os
import pathlib
import subprocess
import sys

import pytest

GALLERY = pathlib.Path(__file__).parent.parent / "docs" / "gallery"


@pytest.mark.every(5)
@pytest.mark.parametrize("path", sorted(GALLERY.glob("plot_*.py")), ids=lambda p: p.stem)
def test_program(path, tmp_path):
    pytest.importorskip("matplotlib")
    if "tg.compile" in path.read_text():
        pytest.importorskip("jax")
    env = os.environ | {"TAPEGRAD_QUICK": "1", "MPLBACKEND": "Agg", "PYTHONPATH": str(GALLERY.parent.parent)}
    done = subprocess.run([sys.executable, "-W", "error", path], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
