"""Uses of the library as a type checker sees them: run through mypy by test_func_transforms, and executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, assert_type

import numpy as np
import numpy.typing as npt

import tapegrad as tg
from tapegrad import Tensor, distributions, func, optim
from tapegrad.autograd import functional
from tapegrad.utils import data
from tapegrad.utils.checkpoint import checkpoint
from tapegrad.utils.data import ConcatDataset, DataLoader, Subset

Array = npt.NDArray[np.float64]
Params = dict[str, Tensor]


def loss(w: Tensor, scale: float = 1.0) -> Tensor:
    return (w * w).sum() * scale


def network(params: Params, x: Tensor, *, slope: float) -> Tensor:
    return (params["w"] * x).sum() * slope


def with_aux(w: Tensor) -> tuple[Tensor, str]:
    return (w * w).sum(), "aux"


def field(p: Tensor, scale: float) -> Tensor:
    return p * scale


def numeric(x: float) -> float:
    return x * x * x


def of_array(x: Array) -> Any:
    return np.sum(x * x)


def support_of(d: distributions.Distribution) -> distributions.constraints.Constraint:
    assert_type(d.support, distributions.constraints.Constraint)
    return d.support


def same(x: Tensor) -> Tensor:
    return x * 1.0


def is_short(x: Tensor) -> bool:
    return len(x) < 3


def length(x: Tensor) -> Tensor:
    return (x * x).sum(-1).sqrt()


def two(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * y, x + y


def product(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


w = tg.ones(3)
params = {"w": w}

# The gradient has the type of the argument, and the function's other parameters stay.
assert_type(func.grad(loss)(w, scale=2.0), Tensor)
assert_type(func.grad(loss)(w), Tensor)
assert_type(func.grad(network)(params, w, slope=2.0), dict[str, Tensor])
assert_type(func.grad(numeric)(3.0), float)
assert_type(func.grad(func.grad(numeric))(3.0), float)
assert_type(func.grad(of_array)(np.ones(3)), Array)
assert_type(func.grad(with_aux, has_aux=True)(w), tuple[Tensor, str])
assert_type(func.value_and_grad(loss)(w, 2.0), tuple[Tensor, Tensor])
assert_type(func.value_and_grad(with_aux, has_aux=True)(w), tuple[tuple[Tensor, str], Tensor])
assert_type(func.grad_and_value(numeric)(3.0), tuple[float, float])
assert_type(func.grad_and_value(with_aux, has_aux=True)(w), tuple[Tensor, tuple[Tensor, str]])
both: tuple[Params, Tensor] = func.grad(network, argnums=(0, 1))(params, w, slope=1.0)

# The page's other functions and modules, and what a dataset gives.
assert_type(tg.tensor([1.0]), Tensor)
assert_type(tg.get_default_dtype(), tg.dtype)
assert_type(tg.vmap(field, in_dims=(0, None))(w, 2.0), Tensor)
seed: int = tg.random.initial_seed()
if seed < 0:  # a file's content may be anything
    net = tg.nn.Linear(2, 1)
    net.load_state_dict(tg.load("checkpoint.pt")["net"])
    tg.tape().clear()
    net(w, w)  # type: ignore[call-arg]
    tg.compile(loss)(w, scales=2.0)  # type: ignore[call-arg]
    tg.compile(loss, fulgraph=True)  # type: ignore[call-overload]
    tg.sin("x")  # type: ignore[arg-type]
    tg.sum(w, dim=0.5)  # type: ignore[arg-type]
    w + "x"  # type: ignore[operator]
    assert_type(tg.svd(w).U, Tensor)
    assert_type(tg.sort(w)[1], Tensor)
    assert_type(tg.nn.functional.max_pool1d(w, 2), Tensor)
    assert_type(tg.nn.functional.max_pool1d(w, 2, return_indices=True), tuple[Tensor, Tensor])
    assert_type(tg.where(w), tuple[Tensor, ...])
    assert_type(tg.where(w > 0, w, 0.0), Tensor)
    assert_type(tg.optim.SGD([w]).step(), None)
    assert_type(tg.optim.SGD([w]).step(lambda: 2.0), float)
    assert_type(tg.autograd.grad(w, {"w": w}), dict[str, Tensor])
    assert_type(net.requires_grad_(False), tg.nn.Linear)
    assert_type(tg.numpy.sum(np.ones(3)), Tensor)
    assert_type(w.numpy(), npt.NDArray[Any])
    assert_type(w.size(0), int)
    for layer in tg.nn.ModuleList([net]):
        assert_type(layer, tg.nn.Module)


class Named(NamedTuple):
    x: Tensor
    y: int


unknown: Any = [w, w]


class Pairs(data.Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return tg.ones(2) * i, i


# Batches have the type that default_collate gives for the samples' type, or that collate_fn returns.
pairs: DataLoader[tuple[Tensor, int]] = DataLoader(Pairs(), 2)
labelled: DataLoader[tuple[Tensor, int]] = DataLoader(Pairs(), 2, collate_fn=len)
numbers, named, mapped = DataLoader([1, 2, 3]), DataLoader([Named(w, 1)]), DataLoader([{"x": w}])
texts, anything, single = DataLoader(["a"]), DataLoader(unknown), DataLoader(Pairs(), None)
sizes = DataLoader(Pairs(), 2, collate_fn=len)
for batch in DataLoader(Pairs(), 2, shuffle=True):
    assert_type(batch, list[Tensor])
assert_type(next(iter(pairs)), list[Tensor])
assert_type(next(iter(numbers)), Tensor)
assert_type(next(iter(named)), Named)
assert_type(next(iter(mapped)), dict[str, Tensor])
assert_type(next(iter(texts)), Any)
assert_type(next(iter(anything)), Any)
assert_type(next(iter(single)), Any)
assert_type(next(iter(sizes)), int)
assert_type(data.TensorDataset(w, w)[0], tuple[Tensor, ...])
assert_type(Subset(Pairs(), np.array([1, 2])), Subset[tuple[Tensor, int]])
assert_type(data.random_split(Pairs(), [1, 3])[0][0], tuple[Tensor, int])
assert_type(ConcatDataset([Pairs(), Pairs()]), ConcatDataset[tuple[Tensor, int]])
loader = DataLoader(data.TensorDataset(w, w), batch_size=2, sampler=data.WeightedRandomSampler(w, 3))

# Layers: containers, recurrent layers and what they take.
packed = tg.nn.utils.rnn.pack_sequence([tg.ones(3, 2), tg.ones(2, 2)])
gru, lstm = tg.nn.GRU(2, 4), tg.nn.LSTM(2, 4)
assert_type(tg.nn.Sequential(tg.nn.Linear(3, 1), tg.nn.ReLU())(w), Tensor)
assert_type(tg.nn.Sequential(tg.nn.ReLU())[0:1], tg.nn.Sequential)
assert_type(tg.nn.ModuleDict({"a": tg.nn.ReLU()})["a"], tg.nn.Module)
assert_type(tg.nn.ParameterDict({"a": w})["a"], tg.nn.Parameter)
assert_type(tg.nn.ParameterDict().get("a"), tg.nn.Parameter | None)
assert_type(list(tg.nn.ParameterList([w])), list[tg.nn.Parameter])
assert_type(gru(tg.ones(3, 1, 2)), tuple[Tensor, Tensor])
assert_type(gru(packed), tuple[tg.nn.utils.rnn.PackedSequence, Tensor])
assert_type(lstm(tg.ones(3, 1, 2)), tuple[Tensor, tuple[Tensor, Tensor]])
assert_type(lstm(packed)[0].data, Tensor)
assert_type(tg.nn.utils.rnn.pad_packed_sequence(packed), tuple[Tensor, Tensor])
assert_type(tg.nn.utils.clip_grad_norm_(gru.parameters(), 1.0), Tensor)

# Distributions, schedules, mixed precision and checkpoints.
normal = distributions.Normal(w, 1.0)
assert_type(normal.rsample((2,)), Tensor)
assert_type(normal.log_prob(w), Tensor)
assert_type(normal.mean, Tensor)
assert_type(normal.expand((2, 3)), distributions.Normal)
assert_type(distributions.kl_divergence(normal, normal), Tensor)
assert_type(distributions.Categorical(logits=w).probs, Tensor)
assert_type(distributions.ExpTransform()(w), Tensor)
assert_type(tg.amp.GradScaler("cpu").scale(w), Tensor)
assert_type(tg.amp.autocast("cpu")(loss)(w, scale=2.0), Tensor)
assert_type(checkpoint(loss, w), Tensor)
assert_type(optim.lr_scheduler.StepLR(optim.SGD([w], lr=0.1), 2).get_last_lr(), list[float | Tensor])

assert_type(support_of(normal), distributions.constraints.Constraint)

# Sparse tensors, NumPy's namespaces, geometry and control flow.
links = tg.sparse_coo_tensor([[0, 1], [1, 0]], w[:2], (2, 2))
assert_type(links.coalesce().values(), Tensor)
assert_type(links.to_dense(), Tensor)
assert_type(tg.sparse.mm(links, tg.ones(2, 2)), Tensor)
assert_type(tg.numpy.linalg.inv(tg.eye(2)), Tensor)
assert_type(tg.numpy.linalg.norm(w), Tensor)
assert_type(tg.numpy.linalg.slogdet(tg.eye(2))[1], Tensor)
assert_type(tg.numpy.linalg.eigh(tg.eye(2)).eigenvectors, Tensor)
assert_type(tg.numpy.fft.rfft(w), Tensor)
assert_type(tg.numpy.fft.fftfreq(3), Tensor)
assert_type(func.geometry.normals(length, tg.ones(2, 3)), Tensor)
assert_type(func.geometry.mean_curvature(length, np.ones((2, 3))), npt.NDArray[Any])
assert_type(tg.cond(w.sum() > 0, same, same, (w,)), Tensor)
assert_type(tg.while_loop(is_short, same, w), Tensor)

# torch.autograd.functional: a tensor for a tensor, a tuple for a tuple.
assert_type(functional.vjp(loss, w), tuple[Tensor, Tensor])
assert_type(functional.vjp(two, (w, w), (w, w)), tuple[tuple[Tensor, ...], tuple[Tensor, ...]])
assert_type(functional.jvp(loss, w, w), tuple[Tensor, Tensor])
assert_type(functional.vhp(loss, w, w), tuple[Tensor, Tensor])
assert_type(functional.hvp(product, (w, w), (w, w)), tuple[Tensor, tuple[Tensor, ...]])
assert_type(functional.jacobian(same, w), Tensor)
assert_type(functional.jacobian(two, (w, w)), tuple[tuple[Tensor, ...], ...])
assert_type(functional.hessian(loss, w), Tensor)
assert_type(functional.hessian(product, (w, w)), tuple[tuple[Tensor, ...], ...])

# Wrong calls are errors: mypy reports an ignore that nothing needs.
try:
    func.grad(loss)(w, scales=2.0)  # type: ignore[call-arg]
    func.grad(network)(w, w, slope=1.0)  # type: ignore[arg-type]
    func.hessian(loss)(w, 1.0, 2.0)  # type: ignore[call-arg]
except TypeError:
    pass

assert_type(func.jvp(loss, (w,), (w,)), tuple[Tensor, Tensor])
assert_type(func.jvp(with_aux, (w,), (w,), has_aux=True), tuple[Tensor, Tensor, str])
out, pull = func.vjp(loss, w)
assert_type(out, Tensor)
assert_type(pull, Callable[[Tensor], tuple[Any, ...]])
assert_type(func.vjp(with_aux, w, has_aux=True)[2], str)
assert_type(func.linearize(loss, w)[1](w), Tensor)
assert_type(func.hvp(loss, w, w), tuple[Tensor, Tensor])
assert_type(func.vhp(loss, (w,), (w,)), tuple[Tensor, tuple[Tensor]])

assert_type(func.vmap(loss, in_dims=(0, None))(tg.ones(4, 3), 2.0), Tensor)
assert_type(func.vmap(func.grad(loss))(tg.ones(4, 3)), Tensor)
hessian: Tensor = func.hessian(loss)(w, scale=2.0)
jacobian: Tensor = func.jacrev(field)(w, 2.0)
forward: Tensor = func.jacfwd(field)(w, scale=2.0)
tall: Tensor = func.jacobian(field)(w, scale=2.0)
assert_type(func.jacrev(with_aux, has_aux=True)(w)[1], str)
assert_type(func.nth_derivative(numeric, 2)(3.0), float)
assert_type(func.jet(numeric, (3.0,), ((1.0, 0.0),))[0], float)
divergence: Tensor = func.divergence(field)(w, 2.0)
