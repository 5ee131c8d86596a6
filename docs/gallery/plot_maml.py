"""
Meta-learning: weights from which one step suffices
===================================================

MAML (Finn et al., ICML 2017) trains the weights from which a gradient step on a few examples of a new task does best. Its
gradient goes through the inner gradient step and thus takes second derivatives. The tasks are sine curves of random
amplitude and phase, seen at ten points.

Two checks: the gradient agrees with central differences, and after one step on a new task the error is far below that
of weights trained on all tasks together.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS, TASKS = (20, 8) if QUICK else (2500, 16)
RATE = 0.02
rng = np.random.default_rng(0)

# %%
# The network as a function of its weights, and the loss after the inner step. ``vmap`` runs all tasks at once.

tg.manual_seed(0)
net = tg.nn.Sequential(tg.nn.Linear(1, 40), tg.nn.Tanh(), tg.nn.Linear(40, 40), tg.nn.Tanh(), tg.nn.Linear(40, 1))


def loss(weights, x, y):
    return (tg.func.functional_call(net, weights, x) - y).square().mean()


def adapted(weights, x, y):
    slope = tg.func.grad(loss)(weights, x, y)
    return {name: w - RATE * slope[name] for name, w in weights.items()}


def outer(weights, x, y, new_x, new_y):
    return loss(adapted(weights, x, y), new_x, new_y)


def tasks(n):
    """Examples and questions of n tasks, (n, 10, 1) each: x, y, new x, new y."""
    amplitude, phase = rng.uniform(0.1, 5, (n, 1, 1)), rng.uniform(0, np.pi, (n, 1, 1))
    x, new_x = rng.uniform(-5, 5, (2, n, 10, 1))
    return [
        tg.tensor(v, dtype=tg.float32) for v in (x, amplitude * np.sin(x - phase), new_x, amplitude * np.sin(new_x - phase))
    ]


# %%
# The gradient through the inner step, against a central difference in float64.

weights = {name: p.detach().double() for name, p in net.named_parameters()}
x, y, new_x, new_y = (v[0].double() for v in tasks(1))
slope = tg.func.grad(outer)(weights, x, y, new_x, new_y)
direction = {name: tg.randn_like(w) for name, w in weights.items()}
ends = [outer({k: w + e * direction[k] for k, w in weights.items()}, x, y, new_x, new_y).item() for e in (1e-5, -1e-5)]
expected = (ends[0] - ends[1]) / 2e-5
assert abs(sum((slope[k] * direction[k]).sum().item() for k in weights) - expected) < 1e-6 * abs(expected)

# %%
# Training, with the inner step and without it.


def train(objective):
    parameters = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    optimizer = tg.optim.Adam(parameters.values(), lr=1e-3)
    batched = tg.func.vmap(objective, in_dims=(None, 0, 0, 0, 0))
    for _ in range(STEPS):
        optimizer.zero_grad()
        batched(parameters, *tasks(TASKS)).mean().backward()
        optimizer.step()
    return {name: p.detach() for name, p in parameters.items()}


meta = train(outer)
joint = train(lambda weights, x, y, new_x, new_y: loss(weights, new_x, new_y))

# %%
# New tasks: the error before and after one to ten steps on their ten examples.


def errors(weights, n=20 if QUICK else 200):
    x, y, new_x, new_y = tasks(n)
    result = []
    for k in range(11):
        result.append(tg.func.vmap(loss, in_dims=(None if k == 0 else 0, 0, 0))(weights, new_x, new_y).mean().item())
        weights = tg.func.vmap(adapted, in_dims=(None if k == 0 else 0, 0, 0))(weights, x, y)
    return result


meta_errors, joint_errors = errors(meta), errors(joint)
print(f"error after one step: {meta_errors[1]:.2f} with meta-learning, {joint_errors[1]:.2f} without")
assert QUICK or meta_errors[1] < joint_errors[1] / 2

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(meta_errors, "o-", label="meta-learning")
left.plot(joint_errors, "s-", label="trained on all tasks together")
left.set(xlabel="gradient steps on a new task", ylabel="mean squared error", ylim=(0, None))
left.legend()
x, y, _, _ = (v[0] for v in tasks(1))
line = tg.linspace(-5, 5, 200)[:, None]
for name, w in (("before", meta), ("after one step", adapted(meta, x, y))):
    right.plot(line.numpy(), tg.func.functional_call(net, w, line).detach().numpy(), label=name)
right.plot(x.numpy(), y.numpy(), "k^", label="ten examples")
right.set(title="a new task")
right.legend()
plt.show()
