"""Train on the devices of several hosts: the same program in one process on each.

    python docs/examples/multi_host.py                                # alone, on all devices of this host
    python docs/examples/multi_host.py --coordinator 10.0.0.1:4567 --processes 2 --number 0    # on the first of two
    python docs/examples/multi_host.py --coordinator 10.0.0.1:4567 --processes 2 --number 1    # on the second

The coordinator is an address of the first host that the others reach. On a cluster that JAX knows (Slurm, Open MPI, TPU
pods) `jax.distributed.initialize()` finds all three itself. `docs/devices.md` explains `mesh` and `shard`.
"""

import argparse

import jax
import numpy as np
from jax.sharding import PartitionSpec

import tapegrad as tg

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--coordinator", help="host:port of the first process")
parser.add_argument("--processes", type=int, default=1)
parser.add_argument("--number", type=int, default=0, help="of this process, from 0")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--out", help="file for the trained parameters")
options = parser.parse_args()

if options.coordinator:  # before anything else asks JAX for its devices
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(options.coordinator, options.processes, options.number)
mesh = jax.make_mesh((jax.device_count(),), ("data",))

tg.manual_seed(0)  # every process begins with the same parameters
net = tg.nn.Sequential(tg.nn.Linear(2, 64), tg.nn.Tanh(), tg.nn.Linear(64, 1))
optimizer = tg.optim.Adam(net.parameters(), lr=1e-2)


def step(x, y):
    """Fit the values and the gradient of sin(x0) cos(x1)."""
    x.requires_grad_()
    u = net(x)
    (gradient,) = tg.autograd.grad(u.sum(), x, create_graph=True)
    loss = ((tg.cat([u, gradient], 1) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def trained():
    """The parameters, as a result on every device."""
    return {name: p.detach().clone() for name, p in net.named_parameters()}


# The batch is divided among the devices, and so are the hidden layer's weights; all else is on each of them.
shard = {"x": PartitionSpec("data"), "y": PartitionSpec("data"), net[0].weight: PartitionSpec("data")}
step = tg.compile(step, mesh=mesh, shard=shard)
rng = np.random.default_rng(0)  # every process makes the whole batch; each device takes its part of it
for i in range(options.steps):
    x = rng.uniform(-2, 2, (64 * 8, 2)).astype(np.float32)
    a, b = x.T
    y = np.stack([np.sin(a) * np.cos(b), np.cos(a) * np.cos(b), -np.sin(a) * np.sin(b)], 1)
    loss = step(tg.tensor(x), tg.tensor(y))
    if options.number == 0 and (i + 1) % 50 == 0:
        print(f"step {i + 1}: loss {loss.item():.6f}")
parameters = tg.compile(trained, mesh=mesh)()  # every process takes part; no process has all of a divided tensor
if options.number == 0 and options.out:
    tg.save(parameters, options.out)
