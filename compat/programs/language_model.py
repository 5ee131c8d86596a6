"""A word model on generated text: LSTM, GRU or Transformer; clipped steps by hand, the best model saved whole and loaded."""

import math
import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

kind = sys.argv[1]
torch.manual_seed(1111)
rng = random.Random(0)
words = ["".join(rng.choice("bdklmnrst") + rng.choice("aeiou") for _ in range(rng.randint(1, 3))) for _ in range(60)]
vocabulary = {w: i for i, w in enumerate(dict.fromkeys(words))}
text, w = [], 0
for _ in range(1200):
    w = (w * 7 + rng.choice([1, 2, 3])) % len(words)
    text.append(vocabulary[words[w]])


def batchify(data, size):
    data = data.narrow(0, 0, data.size(0) // size * size)
    return data.view(size, -1).t().contiguous()


ids = torch.tensor(text).type(torch.int64)
train, valid = batchify(ids[:1000], 10), batchify(ids[1000:], 10)


class Recurrent(nn.Module):
    def __init__(self, n, width):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(n, width)
        self.rnn = getattr(nn, kind)(width, width, 2, dropout=0.2)
        self.decoder = nn.Linear(width, n)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return F.log_softmax(self.decoder(self.drop(out)), dim=-1), hidden


class Attention(nn.Transformer):
    def __init__(self, n, width):
        super().__init__(d_model=width, nhead=2, dim_feedforward=width, num_encoder_layers=1)
        pe = torch.zeros(100, width)
        position = torch.arange(0, 100, dtype=torch.float).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))
        self.input_emb, self.decoder = nn.Embedding(n, width), nn.Linear(width, n)

    def forward(self, x, hidden):
        mask = torch.log(torch.tril(torch.ones(len(x), len(x))))
        src = self.input_emb(x) * math.sqrt(16) + self.pe[: x.size(0), :]
        return F.log_softmax(self.decoder(self.encoder(src, mask=mask)), dim=-1), hidden


model = (Attention if kind == "Transformer" else Recurrent)(len(vocabulary), 16)
criterion, rate = nn.NLLLoss(), 0.5 if kind == "Transformer" else 2.0


def batches(data, steps=20):
    for i in range(0, data.size(0) - 1, steps):
        n = min(steps, len(data) - 1 - i)
        yield data[i : i + n], data[i + 1 : i + 1 + n].view(-1)


def detached(h):
    return h if h is None else h.detach() if isinstance(h, torch.Tensor) else tuple(detached(v) for v in h)


for epoch in range(1, 4):
    model.train()
    hidden, total = None, 0.0
    for x, target in batches(train):
        model.zero_grad()
        output, hidden = model(x, detached(hidden))
        loss = criterion(output.view(-1, len(vocabulary)), target)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            if p.grad is not None:
                p.data.add_(p.grad, alpha=-rate)
        total += loss.item()
    print("| epoch {:3d} | loss {:5.4f} | ppl {:8.3f} | norm {:.4f}".format(epoch, total / 5, math.exp(total / 5), norm))
    with open("model.pt", "wb") as f:
        torch.save(model, f)
with open("model.pt", "rb") as f:
    model = torch.load(f, weights_only=False)
if kind != "Transformer":
    model.rnn.flatten_parameters()
model.eval()
with torch.no_grad():
    losses = [criterion(model(x, None)[0].view(-1, len(vocabulary)), y).item() for x, y in batches(valid)]
print("=" * 89)
print("| End of training | valid loss {:5.4f}".format(sum(losses) / len(losses)))
print(model)
