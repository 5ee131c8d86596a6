"""Reversing sequences with a GRU encoder and an attending decoder: teacher forcing, then greedy reading."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
SOS, EOS, LENGTH, WORDS, WIDTH = 0, 1, 6, 12, 16
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder(nn.Module):
    def __init__(self, dropout_p=0.1):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(WORDS, WIDTH), nn.Dropout(dropout_p)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class Decoder(nn.Module):
    def __init__(self, dropout_p=0.1):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(WORDS, WIDTH), nn.Dropout(dropout_p)
        self.Wa, self.Ua, self.Va = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.gru, self.out = nn.GRU(2 * WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, WORDS)

    def forward(self, keys, hidden, target=None):
        word = torch.empty(keys.size(0), 1, dtype=torch.long, device=device).fill_(SOS)
        outputs, attentions = [], []
        for i in range(LENGTH):
            scores = self.Va(torch.tanh(self.Wa(hidden.permute(1, 0, 2)) + self.Ua(keys))).squeeze(2).unsqueeze(1)
            weights = F.softmax(scores, dim=-1)
            context = torch.bmm(weights, keys)
            output, hidden = self.gru(torch.cat((self.dropout(self.embedding(word)), context), dim=2), hidden)
            outputs.append(self.out(output))
            attentions.append(weights)
            _, topi = outputs[-1].topk(1)
            word = topi.squeeze(-1).detach() if target is None else target[:, i].unsqueeze(1)
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), torch.cat(attentions, dim=1)


source = np.random.randint(2, WORDS, (64, LENGTH)).astype(np.int32)
source[:, -1] = EOS
target = np.concatenate([source[:, -2::-1], source[:, -1:]], axis=1)
data = TensorDataset(torch.LongTensor(source).to(device), torch.LongTensor(target).to(device))
loader = DataLoader(data, sampler=RandomSampler(data), batch_size=16)
encoder, decoder, criterion = Encoder().to(device), Decoder().to(device), nn.NLLLoss()
optimizers = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
for epoch in range(1, 6):
    total = 0
    for x, y in loader:
        for optimizer in optimizers:
            optimizer.zero_grad()
        scores, _ = decoder(*encoder(x), y)
        loss = criterion(scores.view(-1, scores.size(-1)), y.view(-1))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        total += loss.item()
    print("(%d %d%%) %.4f" % (epoch, epoch / 5 * 100, total / len(loader)))
encoder.eval()
decoder.eval()
with torch.no_grad():
    scores, attention = decoder(*encoder(data[0][0].unsqueeze(0)))
    print([word.item() for word in scores.topk(1)[1].squeeze()], attention[0, 0])
