"""A Hamiltonian network of a mass on a spring: the time derivative is a gradient, its error trains the network."""

import numpy as np
import torch

torch.manual_seed(0)
np.random.seed(0)


class MLP(torch.nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super(MLP, self).__init__()
        self.linear1 = torch.nn.Linear(inputs, hidden)
        self.linear2 = torch.nn.Linear(hidden, hidden)
        self.linear3 = torch.nn.Linear(hidden, outputs, bias=None)
        for layer in [self.linear1, self.linear2, self.linear3]:
            torch.nn.init.orthogonal_(layer.weight)

    def forward(self, x):
        return self.linear3(torch.tanh(self.linear2(torch.tanh(self.linear1(x)))))


class HNN(torch.nn.Module):
    def __init__(self, n, net):
        super(HNN, self).__init__()
        self.net = net
        eye = torch.eye(n)
        self.M = torch.cat([eye[n // 2 :], -eye[: n // 2]])

    def time_derivative(self, x):
        F1, F2 = self.net(x).split(1, 1)
        conservative = torch.autograd.grad(F1.sum(), x, create_graph=True)[0] @ torch.eye(*self.M.shape)
        solenoidal = torch.autograd.grad(F2.sum(), x, create_graph=True)[0] @ self.M.t()
        return conservative + solenoidal


radius, angle = np.random.rand(100) * 0.9 + 0.1, np.random.rand(100) * 2 * np.pi
state = np.stack([radius * np.cos(angle), radius * np.sin(angle)]).T
dx = np.stack([2 * state[:, 1], -2 * state[:, 0]]).T
x = torch.tensor(state + 0.1 * np.random.randn(*state.shape), requires_grad=True, dtype=torch.float32)
dxdt = torch.Tensor(dx)
model = HNN(2, MLP(2, 40, 2))
optim = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-4)
for step in range(61):
    loss = (dxdt - model.time_derivative(x)).pow(2).mean()
    loss.backward()
    optim.step()
    optim.zero_grad()
    if step % 10 == 0:
        print("step {}, train_loss {:.4e}".format(step, loss.item()))
error = (dxdt - model.time_derivative(x)) ** 2
print("Final loss {:.4e} +/- {:.4e}".format(error.mean().item(), error.std().item() / np.sqrt(error.shape[0])))


def rk4(fun, y, dt):
    k1 = fun(y)
    k2 = fun(y + dt / 2 * k1)
    k3 = fun(y + dt / 2 * k2)
    return dt / 6 * (k1 + 2 * k2 + 2 * k3 + fun(y + dt * k3))


point = torch.tensor([0.5, 0.0], requires_grad=True, dtype=torch.float32).view(1, 2)
for _ in range(3):
    point = point + rk4(model.time_derivative, point, 0.1)
print(point.data.numpy().reshape(-1).round(3), sorted(model.state_dict()))
