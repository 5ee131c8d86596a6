"""A classifier on generated pictures: dataset, loader, network, training, test, saving. Argument: the library."""

import importlib
import os
import sys
import tempfile

import numpy as np

library = sys.argv[1] if len(sys.argv) > 1 else "oneflow"
flow = importlib.import_module(library)
nn = importlib.import_module(library + ".nn")
data = importlib.import_module(library + ".utils.data")
flow.manual_seed(0)
BATCH_SIZE = 64


class Pictures(data.Dataset):
    """8 x 8 pictures of four classes: a bright quarter under noise."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, size)
        self.pictures = rng.normal(0, 0.7, (size, 1, 8, 8)).astype(np.float32)
        for picture, label in zip(self.pictures, self.labels, strict=True):
            row, column = 4 * (label // 2), 4 * (label % 2)
            picture[0, row : row + 4, column : column + 4] += 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return flow.tensor(self.pictures[i]), int(self.labels[i])


train_dataloader = data.DataLoader(Pictures(1024, 1), BATCH_SIZE, shuffle=True)
test_dataloader = data.DataLoader(Pictures(256, 2), BATCH_SIZE, shuffle=False)
for X, y in train_dataloader:
    print("X:", tuple(X.shape), "y:", tuple(y.shape), X.dtype == flow.float32, y.dtype == flow.int64)
    break

device = "cuda" if flow.cuda.is_available() else "cpu"
print(f"Using {device} device")


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 4),
        )

    def forward(self, x):
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


model = NeuralNetwork().to(device)
print(model)
loss_fn = nn.CrossEntropyLoss().to(device)
optimizer = flow.optim.SGD(model.parameters(), lr=1e-1)


def train(batches, model, loss_fn, optimizer):
    size = len(batches.dataset)
    for batch, (x, y) in enumerate(batches):
        x, y = x.to(device), y.to(device)
        pred = model(x)
        loss = loss_fn(pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % 8 == 0:
            print(f"loss: {loss.item():>7f}  [{batch * BATCH_SIZE:>5d}/{size:>5d}]")


def test(batches, model, loss_fn):
    model.eval()
    test_loss, correct = 0, 0
    with flow.no_grad():
        for x, y in batches:
            x, y = x.to(device), y.to(device)
            pred = model(x)
            test_loss += loss_fn(pred, y).item()
            correct += int((pred.argmax(1) == y).sum().item())
    print(f"test: accuracy {100 * correct / len(batches.dataset):>0.1f}%, loss {test_loss / len(batches):>8f}")
    model.train()


for epoch in range(3):
    print(f"epoch {epoch + 1}")
    train(train_dataloader, model, loss_fn, optimizer)
    test(test_dataloader, model, loss_fn)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model")
    flow.save(model.state_dict(), path)
    again = NeuralNetwork()
    again.load_state_dict(flow.load(path))
x, y = next(iter(test_dataloader))
print(bool((again(x) == model(x)).all()), loss_fn(model(x), y))
