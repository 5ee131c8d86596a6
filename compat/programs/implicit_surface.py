"""A signed distance function fitted to points of a sphere and their normals, with the eikonal loss around it."""

import numpy as np
import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(0)
rng = np.random.default_rng(0)


def gradient(inputs, outputs):
    ones = torch.ones_like(outputs, requires_grad=False, device=outputs.device)
    return grad(outputs=outputs, inputs=inputs, grad_outputs=ones, create_graph=True, retain_graph=True, only_inputs=True)[
        0
    ][:, -3:]


class ImplicitNet(nn.Module):
    def __init__(self, d_in, dims, skip_in=(), radius_init=1, beta=100):
        super().__init__()
        dims = [d_in] + dims + [1]
        self.num_layers, self.skip_in = len(dims), skip_in
        for layer in range(self.num_layers - 1):
            out_dim = dims[layer + 1] - d_in if layer + 1 in skip_in else dims[layer + 1]
            lin = nn.Linear(dims[layer], out_dim)
            if layer == self.num_layers - 2:
                torch.nn.init.normal_(lin.weight, mean=np.sqrt(np.pi) / np.sqrt(dims[layer]), std=0.00001)
                torch.nn.init.constant_(lin.bias, -radius_init)
            else:
                torch.nn.init.constant_(lin.bias, 0.0)
                torch.nn.init.normal_(lin.weight, 0.0, np.sqrt(2) / np.sqrt(out_dim))
            setattr(self, "lin" + str(layer), lin)
        self.activation = nn.Softplus(beta=beta)

    def forward(self, input):
        x = input
        for layer in range(self.num_layers - 1):
            if layer in self.skip_in:
                x = torch.cat([x, input], -1) / np.sqrt(2)
            x = getattr(self, "lin" + str(layer))(x)
            if layer < self.num_layers - 2:
                x = self.activation(x)
        return x


sphere = rng.standard_normal((400, 3))
sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
data = torch.tensor(np.hstack([0.8 * sphere, sphere])).float()
data.requires_grad_()
sigma = torch.from_numpy(rng.uniform(0.02, 0.05, 400)).float()
network = ImplicitNet(3, [32] * 4, skip_in=[2])
optimizer = torch.optim.Adam([{"params": network.parameters(), "lr": 0.002, "weight_decay": 0}])
for epoch in range(13):
    indices = torch.tensor(rng.choice(data.shape[0], 64, False))
    current = data[indices]
    points = current[:, :3]
    local = points.unsqueeze(0) + torch.randn_like(points.unsqueeze(0)) * sigma[indices].unsqueeze(0).unsqueeze(-1)
    around = torch.rand(1, 8, 3, device=points.device) * 3.6 - 1.8
    outside = torch.cat([local, around], dim=1).squeeze()
    network.train()
    for group in optimizer.param_groups:
        group["lr"] = np.maximum(0.002 * (0.5 ** (epoch // 8)), 5.0e-6)
    on, off = network(points), network(outside)
    surface_loss = (on.abs()).mean()
    eikonal_loss = ((gradient(outside, off).norm(2, dim=-1) - 1) ** 2).mean()
    normals_loss = ((gradient(points, on) - current[:, -3:]).abs()).norm(2, dim=1).mean()
    loss = surface_loss + 0.1 * eikonal_loss + normals_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 3 == 0:
        parts = (loss.item(), surface_loss.item(), eikonal_loss.item(), normals_loss.item())
        print("Epoch [{}]\tLoss: {:.6f}\tSurface: {:.6f}\tEikonal: {:.6f}\tNormals: {:.6f}".format(epoch, *parts))
torch.save({"epoch": 12, "model_state_dict": network.state_dict()}, "latest.pth")
saved = torch.load("latest.pth")
network.load_state_dict(saved["model_state_dict"])
print(saved["epoch"], network(torch.zeros(1, 3)))
