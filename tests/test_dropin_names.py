"""The torch drop-in has the names and keyword arguments that 40 public repositories use."""

import ast
import csv
import importlib
import inspect
import pathlib
import warnings

import pytest

from tapegrad import compat

HERE = pathlib.Path(__file__).parent

NOT_THERE = {
    **dict.fromkeys(("torch.sparse_csr_tensor",), "of compressed sparse tensors"),
    "Tensor.dequantize": "of quantised tensors",
    "torch.onnx._export": "private, and gone from PyTorch",
    "torch.utils.tensorboard": "a module, not a function",
}
# Of methods of other objects that share a name with a tensor's, or of older versions: PyTorch refuses these keywords, too.
NOT_PYTORCHS = {
    "Tensor.scatter": "alpha label s", "Tensor.expand": "_instance", "Tensor.inner": "keepdim u v", "Tensor.mean": "context",
    "Tensor.log": "on_step on_epoch prog_bar logger color", "Tensor.pin_memory": "verbose",
    "Tensor.inverse": "context batch_size z_std", "Tensor.cholesky": "lower overwrite_a clean", "Tensor.dist": "keepdim",
    "Tensor.bmm": "exponent", "Tensor.matmul": "is_hermitian", "Tensor.split": "only_watertight", "Tensor.kron": "N",
    "Tensor.diag": "N", "torch.nn.Conv2d": "input_shape", "torch.einsum": "backend",
    "torch.optim.lr_scheduler.ReduceLROnPlateau": "verbose",
}  # fmt: skip

# One call of each of the functions that are called most, with the keywords that they are given.
CALLS = """
L.zeros(1).add_(L.ones(1), alpha=2)
x.sum().backward(retain_graph=True)
x.clamp(min=0)
x.diagonal(dim1=0, dim2=1)
x.max(dim=1)
x.mean(dim=1, keepdim=True)
x.min(dim=1)
x.norm(dim=1, keepdim=True)
x.split(1, dim=1)
x.sum(dim=1, keepdim=True)
x.to(device="cpu", dtype=L.float64, non_blocking=True)
L.allclose(x, x, atol=1e-6, rtol=0.0)
L.arange(3, device="cpu", dtype=L.float32)
L.as_tensor([1.0], dtype=L.float64, device=L.device("cpu"))
L.autograd.grad((x**2).sum(), x, create_graph=True, retain_graph=True, grad_outputs=L.tensor(1.0), allow_unused=True)
L.cat([x, x], dim=1)
L.clamp(x, min=0, max=1)
L.cumsum(x, dim=0)
L.diagonal(x, dim1=0, dim2=1)
L.distributions.Categorical(logits=x)
L.empty(2, device="cpu", dtype=L.int64)
L.eye(2, device="cpu", dtype=L.float64)
L.full((2,), 1.0, dtype=L.float64, device="cpu")
L.linalg.solve_triangular(L.eye(2), x, upper=True)
L.linspace(0, 1, 3, device="cpu", dtype=L.float64)
L.save(x, file), file.seek(0), L.load(file, map_location="cpu")
L.logsumexp(x, dim=1)
L.max(x, dim=1)
L.mean(x, dim=1)
L.nn.Conv2d(1, 2, kernel_size=3, stride=1, padding=1, bias=False)(L.ones(1, 1, 4, 4))
L.nn.Linear(2, 3, bias=False)(x)
L.nn.MSELoss(reduction="sum")(x, x)
L.nn.MaxPool2d(kernel_size=2)(L.ones(1, 1, 4, 4))
L.nn.ReLU(inplace=True)(L.ones(2))
L.nn.functional.softmax(x, dim=1)
L.nn.init.normal_(L.empty(2), std=0.1)
L.norm(x, p=1, dim=1)
L.ones(2, device="cpu", dtype=L.float64)
L.optim.Adam([x], lr=0.1, weight_decay=0.1).step()
L.optim.AdamW([x], lr=0.1).step()
L.optim.SGD([x], lr=0.1, momentum=0.9, weight_decay=0.1).step()
L.rand(2, device="cpu", dtype=L.float64, requires_grad=True)
L.randint(high=3, size=(2,), dtype=L.int64, device="cpu")
L.randn(2, device="cpu", dtype=L.float64, requires_grad=True)
L.softmax(x, dim=1)
L.stack([x, x], dim=1)
L.sum(x, dim=1, keepdim=True)
L.tensor([1.0], dtype=L.float64, device="cpu", requires_grad=True)
L.utils.data.DataLoader([1, 2, 3], batch_size=2, shuffle=True, num_workers=0, drop_last=True, collate_fn=list)
L.utils.data.DataLoader([1], pin_memory=False)
L.zeros(2, device="cpu", dtype=L.float64)
""".strip().splitlines()
MOST = 6  # repositories, of 40


@pytest.fixture(scope="module")
def torch():
    with compat.installed("torch", replace=True):
        yield importlib.import_module("torch")


def rows(file):
    with open(HERE / file) as f:
        return list(csv.DictReader(f, delimiter="\t"))


USED = [name.rpartition(":")[0] for row in rows("api_ops.tsv") for name in row["spellings"].split(", ")]
KEYWORDS = rows("api_kwargs.tsv")


def found(torch, name):
    """What a name stands for: of torch, of one of its modules, or of a tensor."""
    owner, *rest = name.split(".")
    value, path = (torch.Tensor if owner == "Tensor" else torch), "torch"
    for part in rest:
        path += f".{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            if owner == "Tensor" or inspect.isclass(value):
                raise
            value = importlib.import_module(path)
    return value


def test_every_name_is_there_or_has_a_reason(torch):
    missing = set()
    for name in {*USED, *(row["name"] for row in KEYWORDS)} - {"torch.utils.tensorboard"}:
        try:
            found(torch, name)
        except (AttributeError, ImportError):
            missing.add(name)
    assert missing == {name for name in NOT_THERE if name != "torch.utils.tensorboard"}


def test_every_keyword_is_taken(torch):
    refused = {}
    for row in KEYWORDS:
        if row["name"] in NOT_THERE:
            continue
        parameters = inspect.signature(found(torch, row["name"])).parameters.values()
        names = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
        if row["keyword"] not in names and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            refused.setdefault(row["name"], []).append(row["keyword"])
    assert {name: " ".join(keywords) for name, keywords in refused.items()} == NOT_PYTORCHS


def keywords_of(call):
    """(function, keyword) of each call in an expression."""
    for node in ast.walk(ast.parse(call)):
        if isinstance(node, ast.Call):
            yield from ((ast.unparse(node.func).rpartition(".")[2], k.arg) for k in node.keywords)


def test_the_calls_cover_what_is_used_most():
    called = {pair for call in CALLS for pair in keywords_of(call)}
    most = {(r["name"].rpartition(".")[2], r["keyword"]) for r in KEYWORDS if int(r["repos"]) >= MOST}
    assert most - called == set()


@pytest.mark.parametrize("call", CALLS)
def test_call(torch, call, tmp_path):
    with open(tmp_path / "file", "w+b") as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        assert eval(call, {"L": torch, "x": x, "file": file}) is not NotImplemented
