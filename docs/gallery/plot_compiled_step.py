"""
A compiled training step, and its Wengert list
==============================================

``tg.compile`` turns a whole training step with a second-order loss into one program: forward pass, gradient by the points,
gradient of the loss by the weights, update. The weights after fifty steps agree with those of the eager steps.
"""

import os
import time

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
POINTS, STEPS = (64, 10) if QUICK else (1024, 50)

# %%
# The step: an eikonal loss, as for signed distance functions.


def training():
    tg.manual_seed(0)
    net = tg.nn.Sequential(tg.nn.Linear(3, 64), tg.nn.Tanh(), tg.nn.Linear(64, 64), tg.nn.Tanh(), tg.nn.Linear(64, 1))
    optimizer = tg.optim.Adam(net.parameters(), lr=1e-3)

    def step(points):
        optimizer.zero_grad()
        points = points.detach().requires_grad_()
        distance = net(points)
        (normals,) = tg.autograd.grad(distance.sum(), points, create_graph=True)
        loss = (normals.norm(dim=1) - 1).square().mean() + (distance[:, 0] - points.norm(dim=1) + 0.5).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return net, step


batches = [tg.rand(POINTS, 3, generator=tg.Generator().manual_seed(i)) * 2 - 1 for i in range(STEPS)]


def run(compiled):
    net, step = training()
    step = tg.compile(step) if compiled else step
    losses, times = [], []
    for batch in batches:
        began = time.perf_counter()
        losses.append(step(batch).item())
        times.append(time.perf_counter() - began)
    return net, np.array(losses), np.array(times)


eager, losses, eager_times = run(False)
compiled, compiled_losses, compiled_times = run(True)
difference = max((a - b).abs().max().item() for a, b in zip(eager.parameters(), compiled.parameters(), strict=True))
print(f"largest difference of the weights {difference:.1e}; last losses {losses[-1]:.6f} and {compiled_losses[-1]:.6f}")
assert difference < 1e-4 and losses[-1] < losses[0]

# %%
# The Wengert list of the loss: what ``backward()`` walks through from the last line to the first. Lines that compute the
# gradient by the points stand there as operations like any other.

tg.tape().clear()
points = batches[0][:4].requires_grad_()
net = tg.nn.Sequential(tg.nn.Linear(3, 8), tg.nn.Tanh(), tg.nn.Linear(8, 1))
(normals,) = tg.autograd.grad(net(points).sum(), points, create_graph=True)
loss = (normals.norm(dim=1) - 1).square().mean()
wengert_list = str(tg.tape())
print(wengert_list)
assert "linear" in wengert_list and "tanh" in wengert_list

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogy(losses, label="eager")
left.semilogy(compiled_losses, "--", label="compiled")
left.set(xlabel="step", ylabel="loss")
left.legend()
right.bar(["eager", "compiled"], [np.median(t[-5:]) * 1e3 for t in (eager_times, compiled_times)], width=0.5)
right.set(ylabel="milliseconds per step", title=f"the compiled step's first two calls: {compiled_times[:2].sum():.1f} s")
plt.show()
