"""Sequences read by recurrent layers: a classifier (LSTM, batch norm, packed sequences), clipped gradients, a schedule."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self, kind, bidirectional=False):
        super().__init__()
        self.rnn = getattr(nn, kind)(8, 12, num_layers=2, batch_first=True, dropout=0.2, bidirectional=bidirectional)
        width = 24 if bidirectional else 12
        self.norm = nn.BatchNorm1d(width)
        self.out = nn.Linear(width, 3)

    def forward(self, x, lengths):
        lengths, order = lengths.sort(descending=True, stable=True)  # PyTorch's order of equal ones is the processor's
        output, hidden = self.rnn(pack_padded_sequence(x[order], lengths, batch_first=True))
        output, sizes = pad_packed_sequence(output, batch_first=True)
        last = output[torch.arange(len(sizes)), sizes - 1][order.argsort()]
        return self.out(self.norm(last)), hidden


label = torch.randint(0, 3, (160,))
length = torch.randint(4, 10, (160,))
rows = [torch.randn(n, 8) * 0.5 + torch.sin(torch.arange(n).float()[:, None] * (k + 1)) for n, k in zip(length, label)]
x = pad_sequence(rows, batch_first=True)
print(x.shape, x.mean())
train_set, test_set = random_split(TensorDataset(x, length, label), [128, 32])
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

for kind, both in (("LSTM", False), ("GRU", True), ("RNN", False)):
    model = Net(kind, both)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(2):
        model.train()
        total = 0.0
        for data, lengths, target in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(data, lengths)[0], target)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            total += loss.item() * len(data)
        scheduler.step()
        print(f"{kind} epoch {epoch}: loss {total / len(train_set):.5f} norm {norm:.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    model.eval()
    with torch.no_grad():
        data, lengths, target = next(iter(DataLoader(test_set, batch_size=32)))
        scores, hidden = model(data, lengths)
        print("accuracy", (scores.argmax(1) == target).float().mean().item(), [h.shape for h in hidden][:2])
print(model)
print({k: tuple(v.shape) for k, v in model.state_dict().items() if "l0" in k})
