"""Random programs of tests/random_programs.py: values, three derivatives, hooks and retained gradients are PyTorch's.

`python compat/test_random_programs_torch.py --count 3000 --seed 0` compares as many. PyTorch refuses programs that write to
what was saved; these are counted.
"""

import re
import sys
from pathlib import Path

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")
sys.path.append(str(Path(__file__).parents[1] / "tests"))
import random_programs
from random_programs import close


def compared(program):
    """ "the same", or why PyTorch refuses; raises where the results differ."""
    ours = random_programs.found_by(tg, program)
    try:
        theirs = random_programs.found_by(torch, program)
    except RuntimeError as e:
        return "refused: " + re.sub(r"Output \d+ of \w+ is", "a", str(e))[:40]
    for name, value in theirs.values.items():
        close(f"value of {name}", ours.values[name], value)
    zeros = [0.0] * 4
    for order, (a, b) in enumerate(zip((ours.derivatives + zeros)[:4], (theirs.derivatives + zeros)[:4], strict=True)):
        close(f"derivative of order {max(order, 1)}", a, b, 1e-8)
    for name, gradient in theirs.probes.items():
        close(f"gradient of {name}", ours.probes[name], gradient)
    for name, gradient in theirs.retained.items():
        both = ours.retained[name], gradient
        zeros = next((0 * g for g in both if g is not None), 0.0)
        close(f"retained gradient of {name}", *[zeros if g is None else g for g in both])
    return "the same"


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_random_programs(start):
    results, reports = random_programs.tally(50, start, compared)
    assert not reports, reports[0]
    assert results["the same"] > 15


if __name__ == "__main__":
    random_programs.main(compared, "results")
