"""`__torch_function__` of a subclass: asked about the same functions as in PyTorch, with results of the same classes."""

import re
import warnings

import pytest
import torch

import tapegrad as tg

OPERATORS = ["+", "-", "*", "/", "%", "**", "@", "<", "<=", ">", ">=", "==", "!="]
BITS = ["&", "|", "^", "<<", ">>"]
OTHERS = """
    -s; +s; abs(s); ~i; len(s); s[0]; s.sum(); L.sum(s); L.sum(input=s); L.cat([s, s]); L.stack((t, s)); s.size();
    s.dim(); s.numel(); s[0, 0].item(); bool(s[0, 0]); float(s[0, 0]); int(s[0, 0]); s.tolist(); s.detach();
    s.add_(1); s.__setitem__(0, 1.0); s.softmax(0); s.relu(); s.split(1); s.norm(); L.linalg.norm(s);
    L.einsum('ij->i', s); s.stride(); s.contiguous(); s.to(L.float64); s.float(); s.clone(); s.unsqueeze(0);
    s.reshape(4); s.permute(1, 0); s.new_zeros(2); L.zeros_like(s); L.where(s > 0, s, t); s.max(0); L.max(s, 0);
    L.tensor(s); L.is_tensor(s); L.nn.functional.relu(s); L.nn.functional.linear(s, s);
    L.nn.functional.softmax(s, 0); L.nn.functional.mse_loss(s, t); L.topk(s, 1); L.fft.fft(s); s.requires_grad;
    s.shape; s.dtype; s.T; s.mT; s.is_leaf; s.grad; s.grad_fn; s.data; L.ones(2); s.unbind(0); L.chunk(s, 2);
    L.meshgrid(s[0], s[1]); L.broadcast_tensors(s, t); L.std_mean(s)
"""
PROGRAMS = [
    *[f"s {op} {other}" for op in OPERATORS for other in ("s", "t", "2") if op + other != "@2"],
    *[f"t {op} s" for op in OPERATORS],
    *[f"2 {op} s" for op in OPERATORS if op != "@"],
    *[f"i {op} {other}" for op in BITS for other in ("i", "2")],
    *[f"2 {op} i" for op in BITS],
    *[f"s.__{op}__(t)" for op in ["iadd", "isub", "imul", "itruediv", "imod", "ipow"]],
    *re.split(r";\s+", OTHERS.strip()),
]


def watched(library):
    asked = []

    class Watched(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append((func.__name__, [t.__name__ for t in types if t is not library.Tensor]))  # which is there by chance
            return super().__torch_function__(func, types, args, kwargs)

    return Watched, asked


def classes(value):
    return [classes(v) for v in value] if isinstance(value, tuple | list) else type(value).__name__


def outcome(library, program):
    kind, asked = watched(library)
    names = {
        "L": library, "t": library.ones(2, 2), "s": library.ones(2, 2).as_subclass(kind),
        "i": library.ones(2, dtype=library.int64).as_subclass(kind),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(program, names)
    return asked, classes(result)


@pytest.mark.parametrize("program", PROGRAMS)
def test_asked_as_in_pytorch(program):
    assert outcome(tg, program) == outcome(torch, program)
