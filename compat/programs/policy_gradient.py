"""REINFORCE with a value baseline on a small control task: Categorical, log_prob, returns, scalar losses stacked."""

import math
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(543)
rng = np.random.default_rng(543)
Saved = namedtuple("Saved", ["log_prob", "value", "entropy"])


class Slope:
    """A ball on a tilting beam: keep it in the middle; actions: tilt left, none, right."""

    def reset(self):
        self.state, self.steps = rng.uniform(-0.3, 0.3, 2), 0
        return self.state.astype(np.float32)

    def step(self, action):
        place, speed = self.state
        speed = speed + 0.1 * (action - 1) + 0.05 * math.sin(place)
        self.state, self.steps = np.array([place + 0.1 * speed, speed]), self.steps + 1
        return self.state.astype(np.float32), 1.0 - abs(place), bool(abs(place) > 1) or self.steps >= 30


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(2, 32)
        self.dropout = nn.Dropout(p=0.1)
        self.action_head, self.value_head = nn.Linear(32, 3), nn.Linear(32, 1)
        self.saved, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine(x)))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


policy, env = Policy(), Slope()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    probs, value = policy(torch.from_numpy(state).float())
    m = Categorical(probs)
    action = m.sample()
    policy.saved.append(Saved(m.log_prob(action), value, m.entropy()))
    return action.item()


def finish_episode():
    total, returns = 0, deque()
    for r in policy.rewards[::-1]:
        total = r + 0.95 * total
        returns.appendleft(total)
    returns = torch.tensor(returns, dtype=torch.float32)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    losses, values = [], []
    for (log_prob, value, entropy), target in zip(policy.saved, returns):
        losses.append(-log_prob * (target - value.item()) - 0.01 * entropy)
        values.append(F.smooth_l1_loss(value, torch.tensor([target])))
    optimizer.zero_grad()
    loss = torch.stack(losses).sum() + torch.stack(values).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:], policy.saved[:]
    return loss


running = 0.0
for episode in range(1, 31):
    state, done = env.reset(), False
    while not done:
        state, reward, done = env.step(select_action(state))
        policy.rewards.append(reward)
    score, steps = sum(policy.rewards), env.steps
    running = 0.05 * score + 0.95 * running
    loss = finish_episode()
    if episode % 5 == 0:
        print(f"Episode {episode}\tsteps {steps}\tscore {score:.4f}\taverage {running:.4f}\tloss {loss:.4f}")
print(policy.action_head.bias)
