"""A stand-in for gymnasium in the record of real programs: the cart-pole, with its physics written here."""

import math
import types

import numpy as np

__version__ = "0.0+standin"


class CartPole:
    """A pole on a cart (Barto, Sutton and Anderson 1983); action 0 pushes left, 1 right; a reward of 1 a step.

    The state is (place, speed, angle, angular speed); an episode ends when the pole or the cart is too far out, and is cut
    off after limit steps.
    """

    def __init__(self, limit, threshold):
        self.limit = limit
        self.spec = types.SimpleNamespace(reward_threshold=threshold, max_episode_steps=limit)
        self.observation_space = types.SimpleNamespace(shape=(4,), dtype=np.float32)
        self.action_space = types.SimpleNamespace(n=2, sample=lambda: int(self.random.integers(2)))
        self.random = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.state, self.steps = self.random.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        place, speed, angle, turn = self.state
        gravity, masses, pole, half, dt = 9.8, 1.1, 0.1, 0.5, 0.02
        push = (10.0 if action == 1 else -10.0) + pole * half * turn**2 * math.sin(angle)
        inertia = half * (4 / 3 - pole * math.cos(angle) ** 2 / masses)
        turning = (gravity * math.sin(angle) - math.cos(angle) * push / masses) / inertia
        moving = (push - pole * half * turning * math.cos(angle)) / masses
        self.state = np.array([place + dt * speed, speed + dt * moving, angle + dt * turn, turn + dt * turning])
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return self.state.astype(np.float32), 1.0, bool(fallen), self.steps >= self.limit, {}

    def render(self):
        raise NotImplementedError("the stand-in draws nothing")

    def close(self):
        """Nothing is held."""


def make(name, render_mode=None, **options):
    if name not in ("CartPole-v0", "CartPole-v1"):
        raise ValueError(f"the stand-in has CartPole-v0 and CartPole-v1, not {name!r}")
    return CartPole(200, 195.0) if name == "CartPole-v0" else CartPole(500, 475.0)
