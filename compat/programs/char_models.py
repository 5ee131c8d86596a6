"""Models of characters, trained and sampled one after another: bigram, MLP, bag of words, RNN, GRU, transformer."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader

SYLLABLES = ["ka", "ri", "mo", "ne", "lu", "sha", "to", "vi", "el", "an"]


@dataclass
class Config:
    block_size: int
    vocab_size: int
    n_layer: int = 2
    n_embd: int = 16
    n_head: int = 4


class Words(Dataset):
    def __init__(self, words):
        self.words, chars = words, sorted(set("".join(words)))
        self.longest = max(len(w) for w in words)
        self.stoi = {c: i + 1 for i, c in enumerate(chars)}
        self.itos = {i: c for c, i in self.stoi.items()}

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        ix = torch.tensor([self.stoi[c] for c in self.words[index]], dtype=torch.long)
        x, y = torch.zeros(self.longest + 1, dtype=torch.long), torch.zeros(self.longest + 1, dtype=torch.long)
        x[1 : 1 + len(ix)] = ix
        y[: len(ix)] = ix
        y[len(ix) + 1 :] = -1
        return x, y


class Bigram(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros((config.vocab_size, config.vocab_size)))

    def forward(self, idx):
        return self.logits[idx]


class MLP(nn.Module):
    """The last tokens side by side; places before the start hold a token of their own."""

    def __init__(self, config, context=3):
        super().__init__()
        self.context, self.blank = context, config.vocab_size
        self.wte = nn.Embedding(config.vocab_size + 1, config.n_embd)
        hidden = nn.Linear(context * config.n_embd, 32)
        self.mlp = nn.Sequential(hidden, nn.Tanh(), nn.Linear(32, config.vocab_size))

    def forward(self, idx):
        embedded = []
        for _ in range(self.context):
            embedded.append(self.wte(idx))
            idx = torch.roll(idx, 1, 1)
            idx[:, 0] = self.blank
        return self.mlp(torch.cat(embedded, -1))


class Attention(nn.Module):
    """Causal self-attention; without keys and queries it is the mean of what came before."""

    def __init__(self, config, learned=True):
        super().__init__()
        self.n_head, self.learned = config.n_head if learned else 1, learned
        self.c_attn = nn.Linear(config.n_embd, (3 if learned else 1) * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        mask = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        parts = self.c_attn(x).split(C, dim=2)
        heads = [p.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for p in parts]
        if self.learned:
            att = (heads[0] @ heads[1].transpose(-2, -1)) * (1.0 / math.sqrt(heads[0].size(-1)))
        else:
            att = torch.zeros((B, 1, T, T), device=x.device)
        att = F.softmax(att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf")), dim=-1)
        return self.c_proj((att @ heads[-1]).transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config, learned):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = Attention(config, learned)
        self.mlp = nn.ModuleDict(
            dict(c_fc=nn.Linear(config.n_embd, 32), c_proj=nn.Linear(32, config.n_embd), act=nn.GELU(approximate="tanh"))
        )
        m = self.mlp
        self.mlpf = lambda x: m.c_proj(m.act(m.c_fc(x)))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, config, learned=True):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                h=nn.ModuleList([Block(config, learned) for _ in range(config.n_layer)]),
                ln_f=nn.LayerNorm(config.n_embd),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


class Cell(nn.Module):
    """A plain or a gated cell, written out."""

    def __init__(self, config, gated):
        super().__init__()
        self.gated, size = gated, (2 * config.n_embd, config.n_embd)
        self.start = nn.Parameter(torch.zeros(1, config.n_embd))
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.new = nn.Linear(*size)
        if gated:
            self.reset, self.update = nn.Linear(*size), nn.Linear(*size)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, idx):
        h, states = self.start.expand((idx.size(0), -1)), []
        for x in self.wte(idx).unbind(1):
            if self.gated:
                both = torch.cat([x, h], dim=1)
                r, z = torch.sigmoid(self.reset(both)), torch.sigmoid(self.update(both))
                h = (1 - z) * h + z * torch.tanh(self.new(torch.cat([x, r * h], dim=1)))
            else:
                h = torch.tanh(self.new(torch.cat([x, h], dim=1)))
            states.append(h)
        return self.lm_head(torch.stack(states, 1))


@torch.no_grad()
def generate(model, idx, steps, top_k):
    for _ in range(steps):
        logits = model(idx)[:, -1, :]
        v, _ = torch.topk(logits, top_k)
        logits[logits < v[:, [-1]]] = -float("Inf")
        idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
    return idx


torch.manual_seed(3407)
parts = torch.randint(0, len(SYLLABLES), (300, 3)).tolist()
words = ["".join(SYLLABLES[i] for i in row[: 2 + k % 2]) for k, row in enumerate(parts)]
data = Words(words)
config = Config(block_size=data.longest + 1, vocab_size=len(data.stoi) + 1)
print(config)
MODELS = {
    "bigram": Bigram, "mlp": MLP, "bow": lambda c: Transformer(c, learned=False), "rnn": lambda c: Cell(c, False),
    "gru": lambda c: Cell(c, True), "transformer": Transformer,
}  # fmt: skip
for name, build in MODELS.items():
    model = build(config)
    print(f"{name} #params: {sum(p.numel() for p in model.parameters())}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8)
    sampler = torch.utils.data.RandomSampler(data, replacement=True, num_samples=int(1e10))
    batches = iter(DataLoader(data, batch_size=16, sampler=sampler))
    for step in range(21):
        X, Y = [t.to("cpu") for t in next(batches)]
        logits = model(X)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), Y.view(-1), ignore_index=-1)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} | loss {loss.item():.4f}")
    for row in generate(model, torch.zeros(4, 1, dtype=torch.long), config.block_size - 1, top_k=6)[:, 1:].tolist():
        row = row[: row.index(0)] if 0 in row else row
        print("".join(data.itos[i] for i in row))
