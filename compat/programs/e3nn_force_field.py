"""An equivariant force field on e3nn: energies, forces, and the gradient of a loss of both; it needs e3nn."""

import sys

try:
    from e3nn import nn, o3
except ImportError:
    sys.exit("needs e3nn")
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def drawn(module):
    """The module with weights that do not depend on the order in which it was made."""
    generator = torch.Generator().manual_seed(1)
    for p in module.parameters():
        p.data = torch.randn(p.shape, generator=generator)
    return module


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.harmonics = o3.Irreps.spherical_harmonics(2)
        self.gate = nn.Gate("8x0e", [torch.tanh], "4x0e", [torch.sigmoid], "4x1o")
        self.first = drawn(o3.FullyConnectedTensorProduct("1x0e", self.harmonics, self.gate.irreps_in))
        self.second = drawn(o3.FullyConnectedTensorProduct(self.gate.irreps_out, self.harmonics, "1x0e"))
        self.mix = drawn(o3.Linear(self.gate.irreps_out, self.gate.irreps_out))

    def forward(self, positions):
        n = len(positions)
        i, j = torch.where(~torch.eye(n, dtype=torch.bool))
        vectors = positions[i] - positions[j]
        length = vectors.norm(dim=1, keepdim=True)
        angular = o3.spherical_harmonics(self.harmonics, vectors, True, normalization="component") * torch.exp(-length)
        h = self.gate(self.first(length, angular).reshape(n, n - 1, -1).sum(1))
        h = self.mix(h)
        return self.second(h[j], angular).sum()


field = Field()
positions = torch.randn(5, 3, requires_grad=True)
rotation = o3.rand_matrix()
energy = field(positions)
print("energy", energy.item())
print("invariance", (field(positions @ rotation.T) - energy).abs().item() < 1e-10)
(forces,) = torch.autograd.grad(-energy, positions, create_graph=True)
print("forces", forces)
loss = energy.square() + forces.square().sum()
loss.backward()
print("loss", loss.item())
for name, p in field.named_parameters():
    print(name, p.grad.norm().item())
print("position", positions.grad)
product = o3.FullyConnectedTensorProduct("2x0e+1x1o", "0e+1o", "2x0e+1x1o", compile_right=True)
print("right", drawn(product).right(torch.ones(2, 4)).square().sum().item())
