"""Libraries for arrays, and those that support torch, used with tensors; the latter also under the drop-in."""

import importlib
import importlib.util
import io
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tapegrad as tg

GRAD = "Can't call numpy\\(\\) on Tensor that requires grad. Use tensor.detach\\(\\).numpy\\(\\) instead."


def line(n=6):
    return tg.linspace(0, 1, n)


def tracked(n=6):
    return line(n).requires_grad_()


def table():
    tg.manual_seed(0)
    return tg.rand(4, 5)


# ------------------------------------------------------------------------------------------------------------- einops


EINOPS = """
import sys
{imports}
assert not any(type(f).__module__ == "tapegrad._einops" for f in sys.meta_path), "the finder stays"
import gc; gc.collect()
x = tapegrad.arange(24.0).reshape(2, 3, 4).requires_grad_()
y = einops.rearrange(x, "a b c -> c (a b)")
assert y.shape == (4, 6) and einops.asnumpy(y).tolist() == y.tolist()
(y * y).sum().backward()
assert tapegrad.equal(x.grad, 2 * x)
"""


@pytest.mark.parametrize("imports", ["import einops, tapegrad", "import tapegrad, einops"])
def test_einops_finds_tensors_whichever_is_imported_first(imports):
    pytest.importorskip("einops")
    subprocess.run([sys.executable, "-c", EINOPS.format(imports=imports)], check=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda e, x: e.rearrange(x, "a b c -> c (a b)"),
        lambda e, x: e.rearrange([x, x], "l a b c -> a l b c"),
        lambda e, x: e.rearrange(x, "(a1 a2) b c -> a1 (a2 b) c", a1=2),
        lambda e, x: e.reduce(x, "a b c -> a", "mean"),
        lambda e, x: e.reduce(x, "a (b b2) c -> b c", "max", b2=3),
        lambda e, x: e.reduce(x, "a b c -> c", "prod"),
        lambda e, x: e.repeat(x, "a b c -> a (b r) c 2", r=2),
        lambda e, x: e.einsum(x, x, "a b c, a b d -> c d"),
        lambda e, x: e.pack([x, e.reduce(x, "a b c -> c", "sum")], "* c")[0],
        lambda e, x: e.unpack(x, [[2], [1, 2]], "a b *")[1],
    ],
)
def test_einops_agrees_with_itself_on_arrays_and_has_gradients(call):
    einops = pytest.importorskip("einops")
    x = tg.arange(1, 25.0, dtype=tg.float64).reshape(2, 3, 4).requires_grad_()
    y = call(einops, x)
    np.testing.assert_allclose(y.detach().numpy(), call(einops, x.detach().numpy()), rtol=1e-12)
    assert tg.autograd.gradcheck(lambda x: call(einops, x / 10), (x,))
    assert tg.func.vmap(lambda row: call(einops, row))(tg.stack([x, 2 * x])).shape == (2, *y.shape)


# --------------------------------------------------------------------------------------------------- other array code


@pytest.mark.parametrize(
    "equation, shapes",
    [("ij,jk,kl->il", [(4, 5), (5, 3), (3, 2)]), ("ij,kj,kl->li", [(4, 5), (3, 5), (3, 2)]), ("ii->i", [(3, 3)]),
     ("ij->ji", [(2, 3)]), ("ij,ij->j", [(2, 3), (2, 3)]), ("ab,cd->abcd", [(1, 2), (2, 2)])],
)  # fmt: skip
def test_opt_einsum(equation, shapes):
    opt_einsum = pytest.importorskip("opt_einsum")
    operands = [tg.rand(s, dtype=tg.float64).requires_grad_() for s in shapes]
    got = opt_einsum.contract(equation, *operands)
    assert isinstance(got, tg.Tensor)
    np.testing.assert_allclose(got.tolist(), np.einsum(equation, *[x.tolist() for x in operands]))
    assert tg.autograd.gradcheck(lambda *xs: opt_einsum.contract(equation, *xs), operands)
    assert tg.allclose(opt_einsum.contract_expression(equation, *shapes)(*operands), got)


def test_a_storage_of_a_file(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    for shared in (False, True):
        storage = tg.UntypedStorage.from_file(str(path), shared=shared, nbytes=16)
        t = tg.asarray(storage[4:12], dtype=tg.uint8).view(dtype=tg.float32)
        assert t.tolist() == [1, 2] and storage.untyped() is storage and len(storage) == 16
        storage[0] = 255
        assert (path.read_bytes()[0] == 255) is shared


def test_a_vector_on_a_file(tmp_path):
    path = tmp_path / "numbers"
    x = tg.from_file(str(path), shared=True, size=3, dtype=tg.float64)
    x.fill_(3).mul_(2)
    x[1] = 1
    copy = tg.from_file(str(path), size=2, dtype=tg.float64)
    copy.zero_()
    assert np.fromfile(path).tolist() == x.tolist() == [6, 1, 6] and copy.tolist() == [0, 0]
    assert tg.from_file(str(path), True, 7).dtype is tg.float32 and path.stat().st_size == 28
    for name, size in (("numbers", 99), ("nothing", 1)):
        with pytest.raises(RuntimeError, match=f"unable to map {size} elements of 4 bytes"):
            tg.from_file(str(tmp_path / name), False, size)


def test_numpys_names_of_arguments():
    x, y = table(), table()
    assert tg.equal(tg.tensordot(x, y, axes=([0], [0])), tg.tensordot(x, y, dims=([0], [0])))
    assert tg.equal(tg.transpose(x, (1, 0)), x.T) and x.transpose([1, 0]).shape == (5, 4)
    assert x.strides == (20, 4) and x.T.strides == (4, 20)
    with pytest.raises(TypeError, match="two dimensions"):
        tg.transpose(x, 1)


def test_scipy_functions_run_on_tensors_without_a_gradient_to_lose():
    special = pytest.importorskip("scipy.special")
    x = line()
    got = special.expit(x)
    assert isinstance(got, tg.Tensor) and got.dtype is tg.float32
    assert tg.allclose(got, x.sigmoid()) and tg.allclose(special.xlog1py(x, x), x * x.log1p())
    sine, cosine = special.sici(x.double()[1:])
    assert isinstance(sine, tg.Tensor) and cosine.dtype is tg.float64
    with pytest.raises(TypeError, match=r"expit is not recorded for tensors: its gradient would be lost"):
        special.expit(tracked())
    with pytest.raises(TypeError, match=r"expit is not recorded .* Use tapegrad\.special\.expit;"):
        tg.func.grad(lambda x: special.expit(x))(1.0)
    with pytest.raises(TypeError, match=r"Use tapegrad\.special\.bessel_j0;"):
        special.j0(tracked())
    with pytest.raises(TypeError, match="jv is not recorded .* Write it with recorded functions"):
        special.jv(2, tracked())
    with pytest.raises(TypeError, match="expit is not recorded"):
        special.expit(np.ones(6), out=x)


def test_scipy_packages():
    pytest.importorskip("scipy")
    from scipy import interpolate, linalg, optimize, signal, sparse, spatial, stats

    x, m = line(), table()
    assert abs(stats.norm.pdf(x)[0] - 1 / math.sqrt(2 * math.pi)) < 1e-6 and abs(stats.pearsonr(x, x)[0] - 1) < 1e-6
    assert linalg.expm(tg.zeros(2, 2)).tolist() == [[1, 0], [0, 1]] and signal.convolve(x, x).shape == (11,)
    assert abs(interpolate.CubicSpline(x, x**2)(0.5) - 0.25) < 1e-6
    assert sparse.csr_matrix(m).nnz == 20 and spatial.cKDTree(m).query(m)[1].tolist() == [0, 1, 2, 3]
    assert optimize.linear_sum_assignment(tg.eye(3))[1].tolist() != [0, 1, 2]
    with pytest.raises(RuntimeError, match=GRAD):
        linalg.expm(tg.zeros(2, 2, requires_grad=True))


SCIPY = {
    "vector times sparse matrix": (lambda s, x: s.sparse.csr_matrix(np.eye(2)) @ x, [1, 1]),
    "sparse array": (lambda s, x: s.sparse.coo_array(np.eye(2)).dot(x), [1, 1]),
    "exponential of a sparse matrix": (lambda s, x: s.sparse.linalg.expm_multiply(s.sparse.csr_array((2, 2)), x), [1, 1]),
    "linear operator": (
        lambda s, x: s.sparse.linalg.gmres(s.sparse.linalg.aslinearoperator(2 * np.eye(2)), x)[0],
        [0.5, 0.5],
    ),
    "toeplitz": (lambda s, x: s.linalg.toeplitz(x), [[1, 1], [1, 1]]),
    "linear program": (lambda s, x: s.optimize.milp(x).x, [0, 0]),
    "quadrature": (lambda s, x: s.integrate.quad_vec(lambda t: x * t, 0, 1)[0], [0.5, 0.5]),
    "differential equation": (
        lambda s, x: s.integrate.solve_ivp(lambda t, y: 0 * tg.as_tensor(y), (0, 1), x, method="BDF").y[:, -1],
        [1, 1],
    ),
    "roots": (lambda s, x: s.optimize.root(lambda y: tg.as_tensor(y) - x, np.zeros(2)).x, [1, 1]),
    "least squares": (
        lambda s, x: s.optimize.least_squares(lambda y: tg.as_tensor(y) - x, np.zeros(2), lambda y: tg.eye(2).double()).x,
        [1, 1],
    ),
    "interpolation": (lambda s, x: s.interpolate.interp1d(tg.arange(3.0), tg.arange(3.0))(x), [1, 1]),
}


@pytest.mark.parametrize("program,expected", SCIPY.values(), ids=SCIPY)
def test_scipys_functions_call_back_and_take_tensors(program, expected):
    scipy = pytest.importorskip("scipy")
    for name in ("sparse.linalg", "linalg", "optimize", "integrate", "interpolate"):
        importlib.import_module(f"scipy.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.asarray(program(scipy, tg.ones(2, dtype=tg.float64))) == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "CG", "TNC", "SLSQP", "Newton-CG", "trust-constr"])
def test_scipys_minimizers_take_a_value_and_a_gradient(method):
    optimize = pytest.importorskip("scipy.optimize")

    def value_and_gradient(a):
        x = tg.tensor(a, requires_grad=True)
        loss = ((x - 1) ** 2).sum()
        (g,) = tg.autograd.grad(loss, x)
        return loss.detach(), g

    found = optimize.minimize(value_and_gradient, np.zeros(2), jac=True, method=method)
    assert found.x == pytest.approx([1, 1], abs=1e-4)


def test_a_dtype_names_the_type_of_its_numbers():
    assert [d.type for d in (tg.float32, tg.int64, tg.bool, tg.complex64)] == [np.float32, np.int64, np.bool_, np.complex64]


def test_numpy_and_the_standard_library():
    x = line()
    np.testing.assert_allclose(x, x.numpy())
    assert np.asarray(x).dtype == np.float32 and np.array(x, dtype=float).dtype == np.float64
    assert np.array([x, x]).shape == (2, 6) and np.array(list(x)).dtype == np.float32
    for save in (np.save, np.savetxt, np.savez):
        save(io.BytesIO(), x)
    with pytest.raises(RuntimeError, match=GRAD):
        np.asarray(tracked())
    with pytest.raises(TypeError, match=r"numpy\.save is not recorded"):
        np.save(io.BytesIO(), tracked())
    assert json.loads(json.dumps({"loss": x[2].item(), "all": x[:2].tolist()}))["all"][0] == 0
    with pytest.raises(TypeError, match="Object of type Tensor is not JSON serializable"):
        json.dumps(x)
    assert math.sqrt(x[5]) == 1 and sum(x).item() == 3 and max(x) == 1 and sorted(-x)[0] == -1
    assert x[5] == pytest.approx(1.0) and x.numpy() == pytest.approx(x.tolist())
    assert [f"{loss:.2f}" for loss in x[:2]] == ["0.00", "0.20"]


# ------------------------------------------------------------------------------------------- progress bars and plots


def test_tqdm():
    tqdm = pytest.importorskip("tqdm")
    out = io.StringIO()
    bar = tqdm.trange(3, file=out, ncols=80)
    for i in bar:
        bar.set_postfix(loss=line()[i])
    bar.close()
    assert "loss=tensor(0.4000)" in out.getvalue()
    loader = tg.utils.data.DataLoader(tg.utils.data.TensorDataset(table()), batch_size=2)
    assert len(tqdm.tqdm(loader, file=io.StringIO())) == 2
    assert sum(len(rows) for (rows,) in tqdm.tqdm(loader, file=io.StringIO())) == 4
    assert sum(len(row) for row in tqdm.tqdm(table(), file=io.StringIO())) == 20


@pytest.fixture
def plt(monkeypatch, request):
    if "surface" in request.node.name:
        pytest.importorskip("matplotlib", "3.11")  # those before ask for x.size before they make an array of x
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


def surface(p, t, m):
    p.figure().add_subplot(projection="3d").plot_surface(t + 0 * t[:, None], t[:, None] + 0 * t, t * t[:, None])


@pytest.mark.parametrize(
    "draw",
    [
        lambda p, t, m: p.plot(t, t**2, "o"),
        lambda p, t, m: p.plot(list(t)),
        lambda p, t, m: p.plot(m),
        lambda p, t, m: p.scatter(t, t, c=t, s=10 * t, cmap="viridis"),
        lambda p, t, m: p.imshow(m),
        lambda p, t, m: p.imshow(m[..., None] + 0 * t[:3]),
        lambda p, t, m: p.matshow(m),
        lambda p, t, m: p.hist(t, bins=t),
        lambda p, t, m: p.hist(m),
        lambda p, t, m: p.hist2d(m[:, 0], m[:, 1], bins=2),
        lambda p, t, m: p.bar(t, t),
        lambda p, t, m: p.barh(t, t),
        lambda p, t, m: p.errorbar(t, t, yerr=0.1 * t, xerr=0.1 * t),
        lambda p, t, m: p.fill_between(t, t - 1, t + 1, where=t > 0.3),
        lambda p, t, m: p.contourf(t, t, t * t[:, None], levels=t),
        lambda p, t, m: p.pcolormesh(t, t, t * t[:, None]),
        lambda p, t, m: p.quiver(t, t, t, t),
        surface,
        lambda p, t, m: (p.step(t, t), p.stem(t, t), p.loglog(t + 1, t + 1), p.boxplot(m), p.violinplot(m)),
        lambda p, t, m: (p.axvline(t[2]), p.axhspan(t[1], t[2]), p.xlim(t[0], t[5]), p.text(t[0], t[1], "a")),
        lambda p, t, m: (p.vlines(t, 0, 1), p.xticks(t), p.annotate("a", (t[0], t[1])), p.title(f"{t[1]:.2f}")),
    ],
)
def test_matplotlib_draws_what_it_draws_for_arrays(draw, plt):
    pictures = []
    for t, m in ((line(), table()), (line().numpy(), table().numpy())):
        plt.close("all")
        draw(plt, t, m)
        plt.gcf().canvas.draw()
        pictures.append(np.asarray(plt.gcf().canvas.buffer_rgba()))
    np.testing.assert_array_equal(*pictures)


def test_matplotlib_refuses_what_requires_grad(plt):
    t = tracked()
    for draw in (plt.plot, plt.hist, plt.imshow, lambda t: plt.plot(line(), t), lambda t: plt.plot(list(t))):
        with pytest.raises(RuntimeError, match=GRAD):
            draw(t if draw is not plt.imshow else t.reshape(2, 3))


def test_pillow():
    image = pytest.importorskip("PIL.Image")
    picture = (table() * 255).byte()
    assert image.fromarray(np.asarray(picture)).size == (5, 4)
    assert tg.equal(tg.from_numpy(np.array(image.fromarray(picture.numpy()))), picture)


# ------------------------------------------------------------------------------------------------------ tables and fits


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table())
    assert frame.shape == (4, 5) and str(frame.dtypes[0]) == "float32"
    frame = pandas.DataFrame({"a": line(), "b": tg.arange(6)})
    frame["c"] = line()
    assert frame.dtypes.astype(str).tolist() == ["float32", "int64", "float32"]
    assert pandas.Series(line()).sum() == 3
    assert tg.tensor(frame["b"]).dtype is tg.int64 and tg.tensor(frame.values).shape == (6, 3)
    with pytest.raises(RuntimeError, match=GRAD):
        pandas.Series(tracked())


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn import decomposition, linear_model, metrics, model_selection, utils

    assert type(utils.check_array(table())) is np.ndarray
    with pytest.raises(RuntimeError, match=GRAD):
        utils.check_array(table().requires_grad_())
    tg.manual_seed(0)
    x = tg.randn(30, 3)
    y = (x[:, 0] > 0).long()
    train, test, _, _ = model_selection.train_test_split(x, y, test_size=0.3, random_state=0)
    assert isinstance(train, tg.Tensor) and (train.shape, test.shape) == ((21, 3), (9, 3))
    predicted = linear_model.LogisticRegression().fit(x, y).predict(x)
    assert metrics.accuracy_score(y, predicted) > 0.9 and metrics.roc_auc_score(y, x[:, 0]) == 1
    assert decomposition.PCA(2).fit_transform(x).shape == (30, 2)


def test_rich():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=60)
    console.print({"a": line(2), "net": tg.nn.Linear(2, 3)})
    assert console.file.getvalue().splitlines() == [
        "{", "    'a': tensor([0., 1.]),", "    'net': Linear(in_features=2, out_features=3, bias=True)", "}",
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------------- under the drop-in


UNDER_TORCH = {
    "einops": """
from einops.layers.torch import EinMix, Rearrange, Reduce
pool, flat = Reduce("b c (h 2) (w 2) -> b c h w", "max"), Rearrange("b c h w -> b (c h w)")
net = torch.nn.Sequential(pool, flat, torch.nn.Linear(4, 2))
print(net)
net(torch.rand(2, 1, 4, 4, requires_grad=True)).sum().backward()
print(net[2].weight.grad.shape, EinMix("b i -> b o", weight_shape="i o", i=2, o=3)(torch.ones(1, 2)).shape)
""",
    "safetensors": """
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
save_file(net.state_dict(), "a.safetensors", metadata={"format": "pt"})
state = load_file("a.safetensors")
print(sorted(state), state["0.weight"].dtype, torch.equal(state["0.weight"], net[0].weight))
with safe_open("a.safetensors", framework="pt") as f:
    print(f.metadata(), f.get_slice("0.weight")[:1].shape, f.get_tensor("1.num_batches_tracked"))
save_model(net, "b.safetensors")
print(load_model(net, "b.safetensors"), load(save({"h": torch.ones(2).half()})))
for t in ({"a": net[0].weight, "b": net[0].weight}, {"a": torch.ones(3, 2).t()}):
    try:
        save_file(t, "c.safetensors")
    except (RuntimeError, ValueError) as e:
        print(type(e).__name__, str(e).strip()[:50])
""",
    "opt_einsum": """
import opt_einsum, numpy
print(opt_einsum.contract("ij,jk->ki", torch.eye(2), torch.ones(2, 3)))
e = opt_einsum.contract_expression("ij,jk->ik", (2, 3), (3, 2))
print(e(numpy.ones((2, 3)), numpy.ones((3, 2)), backend="torch"))
""",
}
PRINTED = {
    "einops": """
Sequential(
  (0): Reduce('b c (h 2) (w 2) -> b c h w', 'max')
  (1): Rearrange('b c h w -> b (c h w)')
  (2): Linear(in_features=4, out_features=2, bias=True)
)
torch.Size([2, 4]) torch.Size([1, 3])
""",
    "safetensors": """
['0.bias', '0.weight', '1.bias', '1.num_batches_tracked', '1.running_mean', '1.running_var', '1.weight'] torch.float32 True
{'format': 'pt'} torch.Size([1, 2]) tensor(0)
(set(), []) {'h': tensor([1., 1.], dtype=torch.float16)}
RuntimeError Some tensors share memory, this will lead to dupli
ValueError You are trying to save a non contiguous tensor: `a
""",
    "opt_einsum": """
tensor([[1., 1.],
        [1., 1.],
        [1., 1.]])
[[3. 3.]
 [3. 3.]]
""",
}


def test_what_needs_torch_finds_the_drop_in(tmp_path):
    names = [name for name in UNDER_TORCH if importlib.util.find_spec(name)]
    (tmp_path / "program.py").write_text("import torch\n" + "".join(UNDER_TORCH[name] for name in names))
    command = [sys.executable, "-m", "tapegrad", "--as", "torch", "program.py"]
    got = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert got.stdout == "".join(PRINTED[name].lstrip() for name in names), got.stderr


class Knows:
    """An operand of another library: it takes what it stands to the right of."""

    def _theirs(self, other):
        return "theirs"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rmatmul__ = __rfloordiv__ = __rmod__ = _theirs
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __gt__ = __ge__ = __lt__ = __le__ = _theirs


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "**", "@", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">="])
def test_operators_ask_an_object_that_knows_them(sign):
    scope = {"x": tg.ones(2, dtype=tg.int32), "knows": Knows(), "other": object.__new__(type("Other", (), {}))}
    assert eval(f"x {sign} knows", scope) == "theirs"
    for text in (f"x {sign} other", f"other {sign} x"):
        with pytest.raises(TypeError):
            eval(text, scope)
    assert (scope["x"] == scope["other"]) is False and (scope["x"] != scope["other"]) is True


@pytest.mark.parametrize("name", ["add", "pow", "matmul", "maximum", "ge", "logical_and", "hypot", "bitwise_or"])
def test_functions_refuse_what_is_no_tensor(name):
    stranger = type("Stranger", (), {})()
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'other' \(position 2\) must be Tensor, not Stranger"):
        getattr(tg, name)(tg.ones(2), stranger)
    with pytest.raises(TypeError):
        getattr(tg, name)(stranger, tg.ones(2))
    with pytest.raises(TypeError, match="must be Tensor, not Stranger"):
        tg.relu(stranger)


def test_capsules_of_dlpack_share_memory():
    x = tg.ones(2)
    y = tg.from_dlpack(tg.to_dlpack(x))
    x[0] = 5.0
    assert y.tolist() == [5.0, 1.0]


def test_the_advice_for_an_array_of_tracked_tensors_keeps_the_gradient():
    for array_of in (
        lambda x: np.array([v**2 for v in x]),
        lambda x: np.asarray(x) ** 2,
        lambda x: np.vectorize(lambda v: v**2)(x),
    ):
        with pytest.raises(RuntimeError, match=GRAD + r" That cuts the gradient: to differentiate, .* with np\.stack\("):
            tg.func.grad(lambda x, f=array_of: np.sum(f(x) * x))(np.ones(2))
    squared = tg.func.grad(lambda x: np.sum(np.stack([v**2 for v in x]) * x))
    assert squared(np.ones(2)).tolist() == [3.0, 3.0]
