"""Programs on several devices of the host; `test_compile_mesh.py` runs this in processes that have them.

Prints, as JSON, the exception of each named program. A first argument like 127.0.0.1:4567/1 makes it the second of two
processes.
"""

import copy
import json
import sys
import traceback

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import tapegrad as tg
from tapegrad.jit.pending import peek_data

if "/" in sys.argv[1]:
    coordinator, number = sys.argv.pop(1).split("/")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, 2, int(number))
MESH = jax.make_mesh((jax.device_count(),), ("data",))
GRID = jax.make_mesh((jax.device_count() // 2, 2), ("data", "model"))


def points(seed, n=64):
    return np.random.default_rng(seed).standard_normal((n, 3)).astype(np.float32)


def sdf():
    """A network with an optimizer and a step whose loss holds the gradient by the points."""
    tg.manual_seed(0)
    nn = tg.nn
    net = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = tg.optim.Adam(net.parameters(), lr=1e-3)

    def step(x):
        x = x.detach().requires_grad_()
        f = net(x)
        (g,) = tg.autograd.grad(f.sum(), x, create_graph=True)
        loss = (f**2).mean() + ((g.norm(dim=1) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return net, optimizer, step


def far(a, b):
    """The largest difference between the values of two dicts of tensors."""
    return max((p - q).abs().max().item() for p, q in zip(a.values(), b.values(), strict=True))


def spec(t):
    """How a tensor that nobody has looked at lies on the mesh."""
    return peek_data(t).sharding.spec


def text(compiled):
    (specialization,) = compiled.specializations.values()
    return specialization.programs[0].executable.compiled.as_text()


def error(kind, function):
    try:
        function()
    except kind as e:
        return str(e)
    raise AssertionError(f"no {kind.__name__}")


# ------------------------------------------------------------------------------------------------------------- training


def data_parallel():
    """Ten steps on a divided batch are those of one device, and the devices sum gradients in one all-reduce."""
    alone, _, eager = sdf()
    net, optimizer, step = sdf()
    step = tg.compile(step, fullgraph=True, mesh=MESH, shard={"x": P("data")})
    for i in range(10):
        x = tg.tensor(points(i))
        np.testing.assert_allclose(step(x).item(), eager(tg.tensor(points(i))).item(), rtol=1e-5)
    assert spec(x) == P("data") and len(peek_data(x).addressable_shards) == 8
    for t in (net[0].weight, net[0].weight.grad, optimizer.state[net[0].weight]["exp_avg"]):
        assert peek_data(t).is_fully_replicated and len(peek_data(t).addressable_shards) == 8
        first, *rest = [np.asarray(s.data) for s in peek_data(t).addressable_shards]
        assert all((first == other).all() for other in rest)
    assert text(step).count("all-reduce(") == 1
    assert far(alone.state_dict(), net.state_dict()) < 1e-6


def sharded_parameter():
    """A named parameter, its gradient and its moments stay divided from step to step; others are on every device."""
    alone, _, eager = sdf()
    net, optimizer, step = sdf()
    w = net[2].weight
    step = tg.compile(step, fullgraph=True, mesh=MESH, shard={"x": P("data"), w: (None, "data")})
    for i in range(10):
        step(tg.tensor(points(i)))
        eager(tg.tensor(points(i)))
        if i > 1:  # the first two calls are traced
            moments = optimizer.state[w]
            for t in (w, w.grad, moments["exp_avg"], moments["exp_avg_sq"]):
                assert spec(t) == P(None, "data") and peek_data(t).addressable_shards[0].data.shape == (16, 2)
            assert spec(net[0].weight) == P()
            assert spec(moments["step"]) == P()
    assert far(alone.state_dict(), net.state_dict()) < 1e-6
    with tg.no_grad():
        w.mul_(2)  # an eager write gathers it, and the next call divides it again
        alone[2].weight.mul_(2)
    step(tg.tensor(points(0)))
    eager(tg.tensor(points(0)))
    assert spec(w) == P(None, "data")
    assert far(alone.state_dict(), net.state_dict()) < 1e-6
    (specialization,) = step.specializations.values()
    assert len(specialization.programs) == 1


def everything_else():
    """Nested arguments, two axes, dropout, running statistics, a scheduler, and loaded state, in float64."""

    def program(**options):
        tg.manual_seed(0)
        nn = tg.nn
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)).double()
        optimizer = tg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        scheduler = tg.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(batch, scale):
            optimizer.zero_grad()
            loss = ((net(batch["x"])[:, 0] - batch["y"]) ** 2).mean() * scale
            loss.backward()
            optimizer.step()
            return {"loss": loss.detach(), "name": "step"}

        if options:
            shard = {net[0].weight: P("model"), "batch": {"x": P(("data", "model")), "y": P("data")}}
            step = tg.compile(step, shard=shard, **options)
        return net, optimizer, scheduler, step

    one, two = program(), program(mesh=GRID, fullgraph=True)
    for i in range(5):
        rng = np.random.default_rng(i)
        batch = {"x": rng.standard_normal((16, 4)), "y": rng.standard_normal(16)}
        results = []
        for net, _, scheduler, step in (one, two):
            tg.manual_seed(i)
            results.append(step({k: tg.tensor(v) for k, v in batch.items()}, scale=2.0))
            scheduler.step()
            if i == 2:
                net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
        np.testing.assert_allclose(results[0]["loss"].item(), results[1]["loss"].item(), rtol=1e-12)
        assert results[1]["name"] == "step"
    net, optimizer = two[:2]
    assert spec(net[0].weight) == spec(optimizer.state[net[0].weight]["momentum_buffer"]) == P("model")
    assert far(one[0].state_dict(), net.state_dict()) < 1e-12


# ------------------------------------------------------------------------------------------------ beside other programs


def other_programs():
    """Results are on every device unless `shard` names them; programs for other devices use the same parameters."""
    net, _, _ = sdf()
    w, x = net[2].weight, tg.tensor(points(0))
    expected = net(x).detach()
    here = tg.compile(lambda x: net(x), fullgraph=True)
    shard = {"x": P("data"), "return": P("data"), w: P("data")}
    divided = tg.compile(lambda x: net(x), fullgraph=True, mesh=MESH, shard=shard)
    everywhere = tg.compile(net, mesh=GRID, shard={"input": P("data")})
    with tg.no_grad():
        for _ in range(3):
            for compiled in (divided, everywhere, here):
                np.testing.assert_allclose(compiled(x), expected, rtol=1e-5, atol=1e-6)
        assert spec(everywhere(x)) == P()
        assert spec(divided(x)) == spec(w) == P("data")


def on_the_outer_tape():
    """The caller differentiates a compiled call, twice too."""
    tg.manual_seed(0)
    layer = tg.nn.Linear(4, 6)
    f = tg.compile(lambda x: layer(x).tanh().sum(), mesh=GRID, fullgraph=True,
                   shard={"x": P("data"), layer.weight: P("model"), layer.bias: P("model")})  # fmt: skip
    x = tg.randn(8, 4, requires_grad=True)

    def gradients(function):
        layer.zero_grad()
        x.grad = None
        (g,) = tg.autograd.grad(function(x), x, create_graph=True)
        (g**2).sum().backward()
        function(x).backward()
        return [t.grad.detach().clone() for t in (layer.weight, layer.bias, x)]

    for _ in range(3):
        for a, b in zip(gradients(f), gradients(f.function), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def device_tensors():
    """Tensors in JAX's hands are divided as those of the CPU are, and used eagerly beside others afterwards."""

    def program(**options):
        tg.manual_seed(0)
        net = tg.nn.Linear(4, 8).to("jax")
        optimizer = tg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return net, tg.compile(step, shard={"x": P("data"), net.weight: P("data")}, **options) if options else step

    (alone, eager), (net, step) = program(), program(mesh=MESH, fullgraph=True)
    for i in range(4):
        x = tg.tensor(points(i)).reshape(48, 4).to("jax")
        np.testing.assert_allclose(step(x).item(), eager(x).item(), rtol=1e-6)
    assert spec(net.weight) == P("data") and net.weight.device == alone.weight.device
    assert (net.weight - alone.weight).abs().max() < 1e-6


# ----------------------------------------------------------------------------------------------------- several processes


def hosts():
    """What a process cannot read it is told how to get, and processes that differ are an error."""
    tg.manual_seed(0)
    net = tg.nn.Linear(4, 8)
    alone = copy.deepcopy(net)

    def step(net, x):
        with tg.no_grad():
            net.weight.mul_(1 + x.mean())

    shard = {"x": P("data"), net.weight: P("data")}
    divided = tg.compile(lambda x: step(net, x), mesh=MESH, shard=shard, fullgraph=True)
    for i in range(3):
        x = tg.tensor(points(i))
        divided(x)
        step(alone, tg.tensor(points(i)))
        assert (x == tg.tensor(points(i))).all()  # an argument can be read afterwards
    said = error(RuntimeError, net.weight.tolist)
    assert said.startswith("part of this tensor of (8, 4) lies on devices of other processes: return a clone of it from a")
    whole = tg.compile(lambda: net.weight.detach().clone(), mesh=MESH, shard={net.weight: P("data")}, fullgraph=True)
    for _ in range(2):  # traced, and compiled
        np.testing.assert_allclose(whole(), alone.weight.detach(), rtol=1e-6)
    tg.manual_seed(jax.process_index())
    other = tg.nn.Linear(4, 8)
    apart = tg.compile(lambda: other.weight.sum(), mesh=MESH, fullgraph=True)
    assert "not the same on each process" in error(AssertionError, apart)


# --------------------------------------------------------------------------------------------------------------- errors


def errors():
    net, _, step = sdf()
    before = net[0].weight.detach().clone()

    def made(shard, mesh=MESH):
        return tg.compile(step, mesh=mesh, shard=shard)

    said = error(ValueError, lambda: made({"x": P("data")})(tg.tensor(points(0, 63))))
    assert said.startswith("shard divides dimension 0 of the argument 'x' among 8 devices along 'data', but its size 63")
    assert (net[0].weight == before).all()  # the step has not run
    assert "shard names 'z', which is no argument of the function (x)" in error(ValueError, lambda: made({"z": P()}))
    said = error(ValueError, lambda: made({net[0].bias: P(None, "data")}))
    assert said == "shard gives 2 dimensions (None, 'data') for a tensor, which has 1, of sizes [16]"
    said = error(ValueError, lambda: made({"x": P("data", None, None)})(tg.tensor(points(0))))
    assert said.startswith("shard gives 3 dimensions ('data', None, None) for the argument 'x', which has 2")
    assert "the axes of the mesh are ('data',)" in error(ValueError, lambda: made({net[0].bias: P("model")}))
    assert "size 1 is no multiple of 8" in error(ValueError, lambda: made({net[4].bias: P("data")}))
    assert "names of arguments and tensors, not int" in error(TypeError, lambda: made({0: P()}))
    assert "jax.sharding.Mesh, not list" in error(TypeError, lambda: made({}, mesh=jax.devices()))
    assert "give the mesh, too" in error(ValueError, lambda: made({"x": P()}, mesh=None))
    assert "shard gives 'data' for the argument 'x'" in error(TypeError, lambda: made({"x": "data"})(tg.tensor(points(0))))
    keyed = tg.compile(lambda batch: batch["x"].sum(), mesh=MESH, shard={"batch": {"y": P()}})
    assert "the argument 'batch'['y'], which is not there" in error(ValueError, lambda: keyed({"x": tg.ones(8)}))


if __name__ == "__main__":
    raised = {}
    for name in sys.argv[1:]:
        try:
            globals()[name]()
        except Exception:
            raised[name] = traceback.format_exc()
    print(json.dumps(raised))
