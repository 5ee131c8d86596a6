"""A sine fitted by a polynomial: gradients by hand, by backward(), with a module and an optimizer. Argument: the library."""

import importlib
import math
import sys

import numpy as np

library = sys.argv[1] if len(sys.argv) > 1 else "oneflow"
flow = importlib.import_module(library)
nn = importlib.import_module(library + ".nn")

x = np.linspace(-math.pi, math.pi, 2000)
y = np.sin(x)
powers = np.stack([x, x**2, x**3], 1)


def by_hand(steps, rate):
    w, b = np.zeros(3), 0.0
    for step in range(steps):
        residual = powers @ w + b - y
        if step % 500 == 499:
            print("by hand", step, f"{(residual**2).sum():.4f}")
        w -= rate * 2 * powers.T @ residual
        b -= rate * 2 * residual.sum()
    return w


def by_backward(steps, rate):
    inputs, wanted = flow.tensor(powers, dtype=flow.float32), flow.tensor(y, dtype=flow.float32)
    w = flow.zeros(3, requires_grad=True)
    b = flow.zeros(1, requires_grad=True)
    for step in range(steps):
        residual = flow.matmul(inputs, w) + b - wanted
        loss = flow.sum(residual**2)
        loss.backward()
        if step % 500 == 499:
            print("by backward", step, f"{loss.item():.4f}")
        with flow.no_grad():
            w -= rate * w.grad
            b -= rate * b.grad
            w.grad.zero_()
            b.grad.zero_()
    return w.detach().numpy()


def by_module(steps, rate):
    model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1))
    with flow.no_grad():
        for p in model.parameters():
            p.fill_(0.0)
    loss_fn = nn.MSELoss(reduction="sum")
    optimizer = flow.optim.SGD(model.parameters(), lr=rate)
    inputs, wanted = flow.tensor(powers, dtype=flow.float32), flow.tensor(y, dtype=flow.float32)

    def step():
        loss = loss_fn(model(inputs), wanted)
        loss.backward()
        return loss

    if hasattr(nn, "Graph"):  # OneFlow's compiled step: the same numbers

        class Step(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer)

            def build(self):
                return step()

        run = Step()
    else:

        def run():
            optimizer.zero_grad()
            loss = step()
            optimizer.step()
            return loss.detach()

    for n in range(steps):
        loss = run()
        if n % 500 == 499:
            print("by module", n, f"{loss.numpy().item():.4f}")
    return model[0].weight.detach().numpy()[0]


results = [fit(2000, 1e-6) for fit in (by_hand, by_backward, by_module)]
print(np.round(results[0], 4))
print(all(np.allclose(r, results[0], atol=1e-3) for r in results))
