"""Sine waves continued by two LSTM cells in float64, trained by L-BFGS with a closure that prints the loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

np.random.seed(2)
torch.manual_seed(0)
x = np.arange(40) + np.random.randint(-20, 20, 8).reshape(8, 1)
data = np.sin(x / 5.0).astype("float64")


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 10)
        self.lstm2 = nn.LSTMCell(10, 10)
        self.linear = nn.Linear(10, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t, c_t, h_t2, c_t2 = (torch.zeros(input.size(0), 10, dtype=torch.double) for _ in range(4))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


torch.save(data, open("data.pt", "wb"))
data = torch.load("data.pt", weights_only=False)
input, target = torch.from_numpy(data[2:, :-1]), torch.from_numpy(data[2:, 1:])
test_input, test_target = torch.from_numpy(data[:2, :-1]), torch.from_numpy(data[:2, 1:])
seq = Sequence()
seq.double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=8, line_search_fn=None)
for i in range(3):
    print("STEP: ", i)

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        print("loss:", loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        future = 10
        pred = seq(test_input, future=future)
        print("test loss:", criterion(pred[:, :-future], test_target).item())
        y = pred.detach().numpy()
print(y.shape, y.dtype, y[:, -1])
