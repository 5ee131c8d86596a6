"""Hinton's forward-forward training: layers that subclass nn.Linear and hold an optimizer of their own."""

import torch
import torch.nn as nn
from torch.optim import Adam

torch.manual_seed(0)
CLASSES, THRESHOLD = 4, 2.0


def overlay(x, y):
    marked = x.clone()
    marked[:, :CLASSES] *= 0.0
    marked[range(x.shape[0]), y] = x.max()
    return marked


def other(y):
    wrong = y.clone()
    for index, label in enumerate(y):
        allowed = list(range(CLASSES))
        allowed.remove(label.item())
        wrong[index] = torch.tensor(allowed)[torch.randint(len(allowed), size=(1,))].item()
    return wrong


class Layer(nn.Linear):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        self.relu = torch.nn.ReLU()
        self.opt = Adam(self.parameters(), lr=0.03)

    def forward(self, x):
        direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.relu(torch.mm(direction, self.weight.T) + self.bias.unsqueeze(0))

    def train(self, positive, negative):
        for step in range(20):
            good, bad = self.forward(positive).pow(2).mean(1), self.forward(negative).pow(2).mean(1)
            loss = torch.log1p(torch.exp(torch.cat([-good + THRESHOLD, bad - THRESHOLD]))).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if step % 5 == 0:
                print("Loss: ", loss.item())
        return self.forward(positive).detach(), self.forward(negative).detach()


def predict(x):
    scores = []
    for label in range(CLASSES):
        h, goodness = overlay(x, label), []
        for layer in layers:
            h = layer(h)
            goodness = goodness + [h.pow(2).mean(1)]
        scores += [sum(goodness).unsqueeze(1)]
    return torch.cat(scores, 1).argmax(1)


centres = torch.rand(CLASSES, 40)
y = torch.randint(0, CLASSES, (200,))
x = (centres[y] + 0.2 * torch.randn(200, 40)).clamp_(0, 1)
layers = [Layer(40, 32), Layer(32, 32)]
positive, negative = overlay(x, y), overlay(x, other(y))
for i, layer in enumerate(layers):
    print("training layer: ", i)
    positive, negative = layer.train(positive, negative)
print("train error:", 1.0 - predict(x).eq(y).float().mean().item())
print(layers[0], sum(p.numel() for layer in layers for p in layer.parameters()))
