"""A polynomial of degree 4 fitted by hand-written gradient steps: Linear, smooth L1, ``param.data.add_``."""

import torch
import torch.nn.functional as F

torch.manual_seed(5)
DEGREE = 4
weight, bias = torch.randn(DEGREE, 1) * 5, torch.randn(1) * 5


def features(x):
    return torch.cat([x.unsqueeze(1) ** i for i in range(1, DEGREE + 1)], 1)


def described(w, b):
    return "y = " + "".join(f"{v:+.2f} x^{i} " for i, v in enumerate(w, 1)) + "{:+.2f}".format(b[0])


model = torch.nn.Linear(weight.size(0), 1)
print(model)
for step in range(60):
    x = features(torch.rand(32) * 2 - 1)
    y = x.mm(weight) + bias.item()
    model.zero_grad()
    loss = F.smooth_l1_loss(model(x), y)
    loss.backward()
    for param in model.parameters():
        param.data.add_(-0.1 * param.grad)
    if step % 10 == 0:
        print(step, loss.item(), model.weight.grad.norm().item())
print("Loss: {:.6f} after {} steps".format(loss.item(), step + 1))
print("learned:\t" + described(model.weight.view(-1), model.bias))
print("actual:\t" + described(weight.view(-1), bias))
