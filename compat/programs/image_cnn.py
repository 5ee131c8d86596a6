"""A small convolutional classifier in the form of the MNIST example: Dataset, DataLoader, dropout, Adadelta, StepLR."""

import argparse
import os

import numpy as np
import torch
import torch.optim as optim
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--lr", type=float, default=1.0)
args = parser.parse_args()


class Stripes(Dataset):
    """12 x 12 images of stripes; the class is their direction."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, count)
        row, column = np.mgrid[0:12, 0:12]
        angle, shift = self.labels * (np.pi / 4), rng.uniform(0, 6, count)
        wave = np.cos(angle) * row[..., None] + np.sin(angle) * column[..., None] + shift
        self.images = (127 * (1 + np.sin(wave)) + rng.normal(0, 20, wave.shape)).clip(0, 255).astype(np.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[..., index]).float().div(255).unsqueeze(0), int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1, padding=1)
        self.dropout1 = nn.Dropout2d(0.1)
        self.dropout2 = nn.Dropout(0.3)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = self.dropout2(F.relu(self.fc1(torch.flatten(x, 1))))
        return F.log_softmax(self.fc2(x), dim=1)


def train(epoch):
    model.train()
    for batch, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch % 4 == 0:
            done, percent = batch * len(data), 100.0 * batch / len(train_loader)
            print(f"Train Epoch: {epoch} [{done}/{len(train_loader.dataset)} ({percent:.0f}%)]\tLoss: {loss.item():.6f}")


def test():
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            guess = output.argmax(dim=1, keepdim=True)
            correct += guess.eq(target.view_as(guess)).sum().item()
    print("\nTest set: Average loss: {:.4f}, Accuracy: {}/{}\n".format(loss / len(test_set), correct, len(test_set)))


device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(1)
train_set, test_set = Stripes(384, 1), Stripes(64, 2)
train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
test_loader = DataLoader(test_set, batch_size=50)
model = Net().to(device)
print(model)
optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(1, args.epochs + 1):
    train(epoch)
    test()
    scheduler.step()
    print("learning rate", scheduler.get_last_lr())

torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "net.pt")
print(os.path.exists("net.pt"), sorted(optimizer.state_dict()["state"][0]))
again = Net()
print(again.load_state_dict(torch.load("net.pt", map_location=device)["model"]))
again.eval()
print(torch.equal(again(test_set[0][0][None]), model(test_set[0][0][None])))
for name, param in again.named_parameters():
    print(name, tuple(param.shape), f"{param.abs().mean().item():.5f}")
