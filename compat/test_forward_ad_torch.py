"""autograd.forward_ad beside PyTorch's: values, printed forms, error types and first sentences."""

import re

import pytest
import torch
import torch.autograd.forward_ad

import tapegrad as tg

PROGRAMS = """
fw.unpack_dual(fw.make_dual(x, v) ** 3)
fw.make_dual(x, v)
fw.make_dual(x.requires_grad_(), v).requires_grad
fw.unpack_dual(T.autograd.grad((fw.make_dual(x.requires_grad_(), v) ** 3).sum(), x)[0])
fw.unpack_dual(T.linalg.inv(fw.make_dual(m, m.T)))
fw.unpack_dual(T.logsumexp(fw.make_dual(m, m.T), 0))
fw.unpack_dual(fw.make_dual(x, v).detach())
fw.unpack_dual(fw.make_dual(x, v) > 1)
fw.unpack_dual(x)
T.zeros(2).copy_(fw.make_dual(x, v))
T.zeros(2, 2)[0].copy_(fw.make_dual(x, v))
fw.make_dual(m, m)[0].clone().mul_(fw.make_dual(x, v)[0].detach())
fw.make_dual(fw.make_dual(x, v), v)
fw.make_dual(x, fw.make_dual(x, v))
fw.make_dual(x, T.ones(3))
fw.make_dual(T.tensor([1, 2]), v)
fw.make_dual(x, T.tensor([1, 2]))
fw.exit_dual_level(level=3)
fw.unpack_dual(1.0)
fw.make_dual(x, v).numpy().tolist()
""".strip().splitlines()
OUTSIDE = ["fw.make_dual(x, v)", "fw.unpack_dual(x)", "fw.exit_dual_level()"]


def outcome(library, program, inside):
    fw = library.autograd.forward_ad
    names = {
        "T": library, "fw": fw, "x": library.tensor([1.0, 2.0]), "v": library.tensor([1.0, 3.0]),
        "m": library.tensor([[1.0, 2.0], [0.5, 3.0]]),
    }  # fmt: skip
    if inside:
        fw.enter_dual_level()
    try:
        return re.sub(r", grad_fn=<\w+>", "", repr(eval(program, names)))
    except Exception as e:
        text = re.sub(r"\[torch\.LongTensor\]|\bat the same level ?0", "", str(e))
        return type(e).__name__, re.split(r"[.,:] |\(", text)[0].rstrip(".").replace("_unpack_dual", "unpack_dual")
    finally:
        if inside:
            fw.exit_dual_level()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_inside(program):
    assert outcome(tg, program, True) == outcome(torch, program, True)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("program", OUTSIDE)
def test_outside(program):
    assert outcome(tg, program, False) == outcome(torch, program, False)


def test_names():
    assert set(torch.autograd.forward_ad.__all__) == set(tg.autograd.forward_ad.__all__)
