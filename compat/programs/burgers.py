"""A physics-informed network for Burgers' equation: its coefficients found from samples, by Adam and then L-BFGS."""

from collections import OrderedDict

import numpy as np
import torch

np.random.seed(1234)
torch.manual_seed(0)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super(DNN, self).__init__()
        parts = []
        for i in range(len(layers) - 2):
            parts += [("layer_%d" % i, torch.nn.Linear(layers[i], layers[i + 1])), ("activation_%d" % i, torch.nn.Tanh())]
        parts.append(("layer_%d" % (len(layers) - 2), torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(parts))

    def forward(self, x):
        return self.layers(x)


class Identification:
    def __init__(self, X, u, layers):
        self.x = torch.tensor(X[:, 0:1], requires_grad=True).float().to(device)
        self.t = torch.tensor(X[:, 1:2], requires_grad=True).float().to(device)
        self.u = torch.tensor(u).float().to(device)
        self.lambda_1 = torch.nn.Parameter(torch.tensor([0.0], requires_grad=True).to(device))
        self.lambda_2 = torch.nn.Parameter(torch.tensor([-6.0], requires_grad=True).to(device))
        self.dnn = DNN(layers).to(device)
        self.dnn.register_parameter("lambda_1", self.lambda_1)
        self.dnn.register_parameter("lambda_2", self.lambda_2)
        self.lbfgs = torch.optim.LBFGS(
            self.dnn.parameters(), lr=1.0, max_iter=6, max_eval=500, history_size=50, tolerance_grad=1e-5,
            tolerance_change=1.0 * np.finfo(float).eps, line_search_fn="strong_wolfe",
        )  # fmt: skip
        self.adam = torch.optim.Adam(self.dnn.parameters())
        self.iter = 0

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)

        def derivative(y, x):
            return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), retain_graph=True, create_graph=True)[0]

        u_t, u_x = derivative(u, t), derivative(u, x)
        return u_t + self.lambda_1 * u * u_x - torch.exp(self.lambda_2) * derivative(u_x, x)

    def loss_func(self):
        loss = torch.mean((self.u - self.net_u(self.x, self.t)) ** 2) + torch.mean(self.net_f(self.x, self.t) ** 2)
        self.lbfgs.zero_grad()
        loss.backward()
        self.iter += 1
        if self.iter % 5 == 0:
            l2 = torch.exp(self.lambda_2.detach()).item()
            print("Loss: %e, l1: %.5f, l2: %.5f" % (loss.item(), self.lambda_1.item(), l2))
        return loss

    def train(self, steps):
        for _ in range(steps):
            self.adam.step(self.loss_func)
        self.lbfgs.step(self.loss_func)


x, t = np.meshgrid(np.linspace(-1, 1, 25), np.linspace(0, 0.3, 8))
u = -np.sin(np.pi * x) * np.exp(-t)
X = np.hstack((x.flatten()[:, None], t.flatten()[:, None]))
chosen = np.random.choice(len(X), 120, replace=False)
model = Identification(X[chosen], u.flatten()[chosen][:, None], [2, 16, 16, 16, 1])
model.train(30)
predicted = model.net_u(model.x, model.t).detach().cpu().numpy()
print("Error u: %e" % (np.linalg.norm(u.flatten()[chosen][:, None] - predicted, 2) / np.linalg.norm(u)))
print("Error l1: %.3f%%" % (np.abs(model.lambda_1.detach().cpu().numpy()[0] - 1.0) * 100))
print(model.dnn)
