"""Files in both directions: PyTorch reads what tapegrad writes, tapegrad reads what PyTorch writes; errors for damage."""

import collections
import io
import pickle

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
BOTH = (torch, tg)


def written(m, value, **settings):
    file = io.BytesIO()
    m.save(value, file, **settings)
    file.seek(0)
    return file


def same(a, b):
    """Two values, tensors of either library in them, are equal with types, strides and flags."""
    if isinstance(a, torch.Tensor | tg.Tensor):
        assert isinstance(b, torch.Tensor | tg.Tensor) and str(a.dtype) == str(b.dtype)
        assert (tuple(a.shape), tuple(a.stride())) == (tuple(b.shape), tuple(b.stride()))
        assert a.requires_grad == b.requires_grad and type(a).__name__ == type(b).__name__
        x, y = (t.detach().float() if "bfloat16" in str(t.dtype) else t.detach() for t in (a, b))
        np.testing.assert_array_equal(x.numpy(), y.numpy())
        extras = [{k: v for k, v in vars(t).items() if not k.startswith("_")} for t in (a, b)]
        assert extras[0] == extras[1]
    elif isinstance(a, dict):
        assert isinstance(b, dict) and list(a) == list(b)
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b) and isinstance(b, list | tuple)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b or str(a) == str(b)


def attributed(m):
    p, t = m.nn.Parameter(m.ones(2)), m.ones(2)
    p.scale, t.note = 0.5, "x"
    return [p, t]


DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
]
VALUES = {
    **{d: lambda m, d=d: m.arange(6).reshape(2, 3).to(getattr(m, d)) for d in DTYPES},
    "scalar": lambda m: m.tensor(2.5),
    "empty": lambda m: m.zeros(2, 0, 3),
    "transposed": lambda m: m.arange(6.0).reshape(2, 3).t(),
    "leaf": lambda m: m.ones(2, requires_grad=True),
    "parameter": lambda m: m.nn.Parameter(m.ones(2, 2)),
    "frozen parameter": lambda m: m.nn.Parameter(m.ones(2, 2), requires_grad=False),
    "attributes": attributed,
    "state": lambda m: m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3)).state_dict(),
    "others": lambda m: {"a": [1, 2.5, None, b"x", "é", 1j, 1 << 80], "size": m.Size([2, 3]), "dtype": m.int64, 3: {4}},
    "ordered": lambda m: collections.OrderedDict(z=m.ones(1), a=m.device("cpu")),
    "nothing": lambda m: None,
}  # fmt: skip


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_both_ways(name, legacy):
    theirs, ours = (VALUES[name](m) for m in BOTH)
    for m in BOTH:
        m.manual_seed(0)
    theirs, ours = ({"state": VALUES[name](m)} for m in BOTH)
    settings = {"_use_new_zipfile_serialization": not legacy}
    same(theirs, tg.load(written(torch, theirs, **settings)))
    same(ours, torch.load(written(tg, ours, **settings)))


def shared(m):
    big = m.arange(100.0)
    return [big[10:20], big[15:30], big[:10].reshape(2, 5).t(), big]


@pytest.mark.parametrize("legacy", [False, True])
def test_sharing_survives_both_ways(legacy):
    for source, target in ((torch, tg), (tg, torch)):
        parts = target.load(written(source, shared(source), _use_new_zipfile_serialization=not legacy))
        parts[0][5] = -1.0
        assert parts[1][0].item() == -1.0 and parts[3][15].item() == -1.0


def trained(m, name):
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 1))
    optimizer = getattr(m.optim, name)(net.parameters(), lr=0.01)
    steps(m, net, optimizer)
    return net, optimizer


def steps(m, net, optimizer, count=3):
    x = m.arange(6.0).reshape(2, 3)
    for _ in range(count):
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_training_goes_on_in_the_other_library(name):
    for source, target in ((torch, tg), (tg, torch)):
        net, optimizer = trained(source, name)
        file = written(source, {"net": net.state_dict(), "optimizer": optimizer.state_dict()})
        other, its = trained(target, name)
        checkpoint = target.load(file)
        other.load_state_dict(checkpoint["net"])
        its.load_state_dict(checkpoint["optimizer"])
        steps(source, net, optimizer)
        steps(target, other, its)
        for a, b in zip(net.parameters(), other.parameters(), strict=True):
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_mapped_files(tmp_path):
    tg.save({"a": tg.arange(10.0)}, tmp_path / "ours.pt")
    torch.save({"a": torch.arange(10.0)}, tmp_path / "theirs.pt")
    assert torch.load(tmp_path / "ours.pt", mmap=True)["a"].tolist() == list(range(10))
    assert tg.load(tmp_path / "theirs.pt", mmap=True)["a"].tolist() == list(range(10))


def test_a_whole_network_of_pytorch():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.LayerNorm(3))
    ours = tg.load(written(torch, net), weights_only=False)
    x = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    assert isinstance(ours, tg.nn.Sequential) and repr(ours) == repr(net)
    np.testing.assert_allclose(
        ours(tg.tensor(x)).detach().numpy(), net(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("function", ["zeros", "ones"])
def test_safetensors_both_ways(tmp_path, function):
    st = pytest.importorskip("safetensors.torch")
    st.save_file({"a": getattr(torch, function)(2, 3)}, tmp_path / "theirs.safetensors")
    tg.save({"a": getattr(tg, function)(2, 3)}, tmp_path / "ours.safetensors")
    same(tg.load(tmp_path / "theirs.safetensors")["a"], st.load_file(tmp_path / "ours.safetensors")["a"])


class Stranger:
    pass


DAMAGED = {
    "nothing": lambda data: b"",
    "text": lambda data: b"\xff\xfe no checkpoint at all",
    "half": lambda data: data[: len(data) // 2],
    "stranger": lambda data: written(torch, [Stranger()]).getvalue(),
    "a plain pickle": lambda data: pickle.dumps([1, 2], 2),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_errors_are_of_pytorchs_type(name):
    data = DAMAGED[name](written(torch, [torch.ones(100)]).getvalue())
    raised = []
    for m in BOTH:
        with pytest.raises(Exception) as caught:
            m.load(io.BytesIO(data))
        raised.append(caught.value)
    assert isinstance(raised[1], type(raised[0])) and type(raised[1]) is tg.serialization.LoadError
    if name in ("half", "stranger"):
        assert str(raised[1])[:20] == str(raised[0])[:20]
