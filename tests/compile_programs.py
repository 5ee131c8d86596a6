"""Random programs for `compile_worlds`: training steps as people write them, a few nasty ones among them.

`python tests/compile_programs.py FIRST COUNT` runs COUNT programs from seed FIRST on and prints what differs and what falls
back; `--show SEED` prints a program, `--shrink SEED` the smallest one that it can be cut to. Programs are interpreted, which
shows all but the rounding; with `--xla` they are compiled.

A program is put together from fragments: lines for the setup, the compiled function, its arguments, and what happens between
calls. In them `$name` is state, <<a|b>> a random choice.
"""

import ast
import collections
import random
import re
import sys
import time

from compile_worlds import compared, interpreted

HEAD = """
import collections
import copy
import dataclasses
import random
import types
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.nn import functional as F

DTYPE = tg.{dtype}
tg_default = tg.get_default_dtype()
GAIN = 0.5
CONFIG = {{"gain": 0.7, "depth": 2, "name": "base"}}
DATA = np.random.default_rng({seed}).standard_normal((10, 5, 3))


@dataclasses.dataclass
class Options:
    gain: float = 0.9
    steps: int = 2


@dataclasses.dataclass
class Out:
    loss: Any
    h: Any


Pair = collections.namedtuple("Pair", "loss h")


class Image(tg.Tensor):
    pass


class Scaled(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k + 0 * x, None


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.gain = nn.Parameter(tg.ones(3))
        self.register_buffer("running", tg.zeros(3))
        self.scale = 0.5

    def forward(self, x):
        y = tg.tanh(self.inner(x)) * self.gain
        if self.training:
            with tg.no_grad():
                self.running.mul_(0.9).add_(y.mean(0), alpha=0.1)
        return y + self.scale * self.running


class Residual(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(depth)])
        self.last = None

    def forward(self, x):
        for layer in self.layers:
            x = x + 0.3 * F.softplus(layer(x))
        self.last = x.detach()
        return x


def squash(x, k=1.0):
    return x / (1 + k * x * x)


def normal(i, *shape):
    n = int(np.prod(shape))
    return tg.tensor(np.resize(DATA[i % 10].ravel() * (1 + 0.1 * i), n).reshape(shape), dtype=DTYPE)


"""


class F(collections.namedtuple("F", "weight body setup between given params top")):
    """A fragment: lines for the function, the setup, between calls; arguments as (name, expression); parameters."""

    def __new__(cls, weight, body="", *, setup="", between="", given="", params="", top=""):
        return super().__new__(cls, weight, body, setup, between, given, params, top)


# fmt: off
NETS = [
    F(6, setup="$net = nn.Sequential(nn.Linear(3, 4), nn.<<Tanh|Softplus|SiLU|Sigmoid|GELU>>(), nn.Linear(4, 3))"),
    F(2, setup="$net = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Tanh())"),
    F(1, setup="$net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(<<|inplace=True>>), nn.Dropout(0.3), nn.Linear(4, 3))"),
    F(1, setup="$net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh())"),
    F(2, setup="$net = Block()"),
    F(1, setup="$net = Residual()"),
]
PRELUDES = [
    F(6, ""),
    F(5, "x = x.detach().requires_grad_()"),
    F(1, "x = x.clone().detach().requires_grad_(True)"),
    F(1, "x.requires_grad_()"),
    F(1, "x = x * 2 - 1"),
]
FORWARD = [
    F(4, "h = h @ $w", setup="$w = (normal(7, 3, 3) * 0.3).requires_grad_()", params="$w"),
    F(3, "h = h * $gain + $shift", setup="$gain = nn.Parameter(tg.ones(3, dtype=DTYPE))\n$shift = normal(8, 3)",
      params="$gain"),
    F(3, "h = tg.<<tanh|sin|sigmoid>>(h)"),
    F(2, "h = squash(h, k=<<0.5|1.5>>)"),
    F(2, "h = F.<<softplus|silu|elu>>(h)"),
    F(1, "h = tg.where(h > 0, h, 0.1 * h)"),
    F(1, "h = (h * h).cumsum(0) * 0.1 + h"),
    F(1, "h = h.softmax(-1) + h"),
    F(1, "h = tg.einsum('bi,bj->bij', h, h).mean(-1)"),
    F(1, "h = tg.cat([h[:1], h[1:] * 0.5])"),
    F(1, "h = tg.stack([h, h.flip(0)]).mean(0)"),
    F(1, "for k in range(<<2|CONFIG['depth']>>):\n    h = tg.tanh(h + 0.1 * k)"),
    F(1, "for _ in range(3):\n    k1 = -h.sin()\n    k2 = -(h + 0.05 * k1).sin()\n    h = h + 0.1 * (k1 + k2) / 2"),
    F(1, "h = h * GAIN"),
    F(1, "h = h * CONFIG['gain']"),
    F(1, "h = h * $options.gain", setup="$options = Options()"),
    F(1, "if $flag:\n    h = h.sin()\nelse:\n    h = h.cos()", setup="$flag = <<True|False>>",
      between="if i == 2: $flag = not $flag"),
    F(1, "h = $act(h)", setup="$act = tg.tanh", between="<<|if i == 2: $act = tg.sin>>"),
    F(1, "h = F.dropout(h, 0.4, training=$net.training)"),
    F(1, "h = h + 0.1 * tg.<<randn_like(h)|randn(h.shape, dtype=DTYPE)>>"),
    F(1, "h = h + tg.<<as_tensor|from_numpy>>(a).to(DTYPE)", given="a=DATA[i + 1][:4]"),
    F(1, "h = h + (a - a.mean(0)) * 0.1", given="a=normal(i + 1, 4, 3)"),
    F(1, "h = h * batch['scale'] + batch['shift'][0]",
      given="batch={'scale': normal(i, 3), 'shift': [normal(i + 1, 3), normal(i, 2)], 'name': 'x'}"),
    F(1, "h = h * k", given="k=<<0.5|2|(i % 2) + 1|True>>"),
    F(1, "h = h * opts.gain ** opts.steps", given="opts=<<Options(0.5 + (i > 2), 2)|$options>>",
      setup="$options = Options()"),
    F(1, "h = $frozen(h)",
      setup="$frozen = nn.Linear(3, 3).to(DTYPE)\nfor p in $frozen.parameters():\n    p.requires_grad_(False)"),
    F(1, "h = h * tg.linspace(0.5, 1.5, 3, dtype=DTYPE) + tg.arange(3) * 0.1"),
    F(1, "h = h + tg.nn.functional.one_hot(ids, 3).to(DTYPE) * 0.3", given="ids=tg.tensor([i % 3, 1, 0, 2])"),
    F(1, "h = $table[ids] + h", setup="$table = nn.Parameter(normal(9, 5, 3))", given="ids=tg.tensor([i % 5, 1, 1, 4])",
      params="$table"),
    F(1, "h = tg.func.vmap(lambda r: r * r.sum())(h) * 0.1 + h"),
    F(1, "h = h + z", given="z=$offset * 2", setup="$offset = normal(5, 3).requires_grad_()"),
    F(1, "h = h + 0.1 * tg.randn(3, dtype=DTYPE, generator=$source)",
      setup="$source = tg.Generator()\n$source.manual_seed(5)"),
    F(1, "for key, value in batch.items():\n    h = h * value", given="batch={'a': normal(i, 3), 'b': normal(i + 3, 3)}"),
    F(1, "for _ in range(n):\n    h = h * 0.5 + 1", given="n=2 if i < 3 else 3"),
    F(1, "h = sum(xs) + h", given="xs=[normal(i, 3), normal(i + 1, 4, 3)]"),
    F(1, "h = Scaled.apply(h, 0.5)"),
    F(1, "h = tg.func.functional_call($net, {k: v * 0.5 for k, v in $net.named_parameters()}, (h,))"),
    F(1, "h = tg.utils.checkpoint.checkpoint(squash, h, use_reentrant=False)"),
]
INPLACE = [
    F(2, "buf = tg.zeros(4, 3, dtype=DTYPE)\nbuf[0] = h[0]\nfor k in range(1, 4):\n    buf[k] = 0.5 * buf[k - 1] + h[k]\n"
         "h = buf"),
    F(1, "h = h.clone()\nh[1:] *= 0.5"),
    F(1, "h = h * 1.0\nrow = h[0]\nrow.add_(1.0)"),
    F(1, "h = h + 1\nh.mul_(0.5).sub_(0.1)"),
    F(1, "h = h.clone()\nh[:, 0] = h[:, 1] * 2"),
    F(1, "h = (h * 1).clamp_(-2, 2)"),
    F(1, "h = h.clone()\nh.view(-1)[::2] += 0.5"),
    F(1, "$cache.copy_(h.detach())\nh = h + $cache.mean()", setup="$cache = tg.zeros(4, 3, dtype=DTYPE)"),
    F(1, "$ring[$at] = h.detach().mean()\nh = h + $ring.sum()", setup="$ring = tg.zeros(4, dtype=DTYPE)\n$at = 1"),
    F(1, "$hidden = (0.9 * $hidden + h.mean(0)).detach()\nh = h + $hidden", setup="$hidden = tg.zeros(3, dtype=DTYPE)"),
    F(1, "$hidden = $hidden.detach()\nh = h + $hidden\n$hidden = tg.tanh(h.mean(0)).detach()",
      setup="$hidden = tg.zeros(3, dtype=DTYPE)"),
    F(1, "$window = tg.cat([$window[1:], h.detach()[:1]])\nh = h + $window.mean(0)",
      setup="$window = tg.zeros(3, 3, dtype=DTYPE)"),
]
LOSSES = [
    F(4, "loss = (h - $target).square().mean()", setup="$target = normal(3, 4, 3)"),
    F(2, "loss = F.mse_loss(h, y)", given="y=normal(i + 2, 4, 3)"),
    F(2, "loss = h.square().sum()"),
    F(1, "loss = F.cross_entropy(h, labels)", given="labels=tg.tensor([0, 1, 2, i % 3])"),
    F(1, "loss = h.square().mean() + 1e-2 * sum(p.square().sum() for p in $params)"),
    F(1, "loss = F.huber_loss(h, tg.zeros_like(h)) + h.abs().mean()"),
    F(1, "loss = tg.logsumexp(h.flatten(), 0)"),
]
PENALTIES = [  # after which loss depends on derivatives; x requires grad
    F(3, "(gx,) = tg.autograd.grad(h.sum(), x, create_graph=True)\nloss = loss + ((gx.norm(dim=-1) - 1) ** 2).mean()"),
    F(1, "(gx,) = tg.autograd.grad(h.square().sum(), x, create_graph=True)\n"
         "lap = sum(tg.autograd.grad(gx[:, k].sum(), x, create_graph=True)[0][:, k] for k in range(2))\n"
         "loss = loss + 0.1 * lap.square().mean()"),
    F(1, "gp = tg.autograd.grad(loss, $params, create_graph=True, allow_unused=True)\n"
         "loss = loss + 0.1 * sum(g.square().sum() for g in gp if g is not None)"),
    F(1, "force = -tg.autograd.grad(h.sum(), x, create_graph=True)[0]\nloss = loss + (force - x).square().mean()"),
]
UPDATES = [
    F(7, "$opt.zero_grad(<<|set_to_none=False>>)\nloss.backward()\n<<|nn.utils.clip_grad_norm_($params, 1.0)>>\n$opt.step()",
      setup="$opt = optim.<<SGD($params, lr=0.05)|SGD($params, lr=0.05, momentum=0.9)|Adam($params, lr=0.02)"
            "|AdamW($params, lr=0.02)|RMSprop($params, lr=0.01)|Adagrad($params, lr=0.05)>>"),
    F(2, "loss.backward()\n$opt.step()\n$opt.zero_grad()", setup="$opt = optim.<<SGD|Adam>>($params, lr=0.03)"),
    F(2, "gs = tg.autograd.grad(loss, $params, allow_unused=True)\nwith tg.no_grad():\n    for p, g in zip($params, gs):\n"
         "        if g is not None:\n            <<p -= $lr * g|p.sub_($lr * g)|p.add_(g, alpha=-$lr)>>",
      setup="$lr = 0.05"),
    F(2, "loss.backward()\nwith tg.no_grad():\n    for p in $params:\n        if p.grad is not None:\n"
         "            <<p.data -= $lr * p.grad|p.sub_(p.grad, alpha=$lr)>>\n            <<p.grad = None|p.grad.zero_()>>",
      setup="$lr = 0.05"),
    F(2, "for p in $params:\n    p.grad = None\nloss.backward()\nwith tg.no_grad():\n"
         "    for p, v in zip($params, $velocity):\n        if p.grad is not None:\n"
         "            v.mul_(0.9).add_(p.grad)\n            p.sub_(v, alpha=0.05)",
      setup="$velocity = [tg.zeros_like(p) for p in $params]"),
    F(1, "gs = tg.autograd.grad(loss, $params, allow_unused=True)\nwith tg.no_grad():\n"
         "    for n, (p, g) in enumerate(zip($params, gs)):\n        if g is not None:\n"
         "            $moments[n] = 0.9 * $moments[n] + g\n            p -= 0.05 * $moments[n]",
      setup="$moments = {n: tg.zeros_like(p) for n, p in enumerate($params)}"),
    F(1, "gs = tg.autograd.grad(loss, $params, allow_unused=True)\nfor p, g in zip($params, gs):\n"
         "    p.grad = g\n$opt.step()",
      setup="$opt = optim.Adam($params, lr=0.02)"),
    F(2, "loss.backward()"),
    F(1, "$opt.zero_grad()\nloss.backward(retain_graph=True)\n(0.5 * loss).backward()\n$opt.step()",
      setup="$opt = optim.SGD($params, lr=0.02)"),
    F(1, "(loss / 2).backward()\nif update:\n    $opt.step()\n    $opt.zero_grad()", given="update=i % 2 == 1",
      setup="$opt = optim.Adam($params, lr=0.02)"),
    F(2, ""),
]
EFFECTS = [
    F(3, "$it += 1", setup="$it = 0"),
    F(2, "$metrics['loss'] = loss.<<item()|detach()>>", setup="$metrics = {<<|'loss': 0.0>>}"),
    F(2, "$history.append(loss.<<item()|detach()>>)", setup="$history = []"),
    F(1, "$history.append(float(loss))", setup="$history = collections.deque(maxlen=3)"),
    F(2, "with tg.no_grad():\n    for p, e in zip($params, $ema):\n        e.mul_(0.9).add_(p, alpha=0.1)",
      setup="$ema = [p.detach().clone() for p in $params]"),
    F(2, "$last = h.detach()", setup="$last = tg.zeros(4, 3, dtype=DTYPE)"),
    F(1, "$total += loss.detach()", setup="$total = tg.zeros((), dtype=DTYPE)"),
    F(1, "$total = $total + loss.detach()", setup="$total = tg.zeros((), dtype=DTYPE)"),
    F(1, "logs.append(loss.detach())", given="logs=[]"),
    F(1, "info['loss'] = loss.<<detach()|item()>>", given="info={'name': 'train'}"),
    F(1, "$net.steps.add_(1)", setup="$net.register_buffer('steps', tg.tensor(0))"),
    F(1, "$count.add_(1)", setup="$count = tg.tensor(0)"),
    F(1, "$stats['mean'] = h.detach().mean()\n$stats['n'] += 4", setup="$stats = {'n': 0, 'mean': None}"),
    F(1, "$swa.update_parameters($net)", setup="$swa = optim.swa_utils.AveragedModel($net)"),
    F(1, "with tg.no_grad():\n    $net.eval()\n    seen = $net(x).mean()\n    $net.train()"),
]
NASTY = [
    F(1, "$it += 1\nloss = loss * (1 + 0.1 * $it)", setup="$it = 0"),
    F(1, "$best = min($best, loss.item())", setup="$best = 1e9"),
    F(1, "if loss > 3:\n    loss = loss * 0.5"),
    F(1, "$last = h", setup="$last = None"),
    F(1, "$first = $first if $first is not None else h.detach()", setup="$first = None"),
    F(1, "$one = h.detach().sum(0)\n$two = $one", setup="$one = $two = tg.zeros(3, dtype=DTYPE)"),
    F(1, "$one, $two = $two, $one\n$one.add_(1)", setup="$one = tg.zeros(3, dtype=DTYPE)\n$two = tg.ones(3, dtype=DTYPE)"),
    F(1, "batch.x, batch.y = batch.y, batch.x\nloss = loss + batch.x.sum()",
      given="batch=types.SimpleNamespace(x=normal(i, 2), y=normal(i + 1, 2))"),
    F(1, "info.setdefault('steps', []).append(1)\ninfo['n'] = info.get('n', 0) + 1", given="info={}"),
    F(1, "out.update(h=h.detach(), n=4)", given="out={}"),
    F(1, "with tg.no_grad():\n    x.mul_(0.5)"),
    F(1, "h.register_hook(lambda g: g * 0.5)\nloss = loss + h.sum()"),
    F(1, "h.retain_grad()"),
    F(1, "h.register_hook(lambda g: $hits.append(1))\nloss = loss + h.sum()", setup="$hits = []"),
    F(1, "z.mul_(0.5)\nloss = loss + z.sum()", given="z=$offset * 1", setup="$offset = normal(5, 3).requires_grad_()"),
    F(1, "loss = loss + F.relu(z, inplace=True).sum()", given="z=$offset * 1",
      setup="$offset = normal(5, 3).requires_grad_()"),
    F(1, "z.detach_()\nloss = loss + z.sum()", given="z=$offset * 1", setup="$offset = normal(5, 3).requires_grad_()"),
    F(1, "z.add_(1)\nloss = loss + z.sum()", given="z=normal(i, 2)"),
    F(1, "z[0] = h[0, 0]\nloss = loss + z.square().sum()", given="z=normal(i, 2)"),
    F(1, "$slots = $slots.detach()\n$slots[0] = h[0, 0]\nloss = loss + $slots.sum()",
      setup="$slots = tg.zeros(2, dtype=DTYPE)"),
    F(1, "tg.manual_seed(3)\nloss = loss + tg.rand(())"),
    F(1, "$queue.append(h.detach()[0])\n$queue.popleft()", setup="$queue = collections.deque([tg.zeros(3)] * 2)"),
    F(1, "assert loss.isfinite()"),
    F(1, "loss = loss + float(np.mean(x.detach().numpy()))"),
    F(1, "$params[0].grad = tg.ones_like($params[0])"),
    F(1, "$handle = $w0.register_hook(lambda g: g * 2)\n<<$handle.remove()|>>",
      setup="$w0 = $params[0]\n$handle = None"),
    F(1, "$flip = not $flip\nh = h * (2 if $flip else 1)\nloss = loss + h.mean()", setup="$flip = False"),
    F(1, "$params[0].requires_grad_(False)"),
    F(1, "if stop:\n    raise ValueError('stop')", given="stop=i == 2"),
    F(1, "if $fail:\n    $it = 5\n    raise ValueError('stop')", setup="$fail = False\n$it = 0",
      between="$fail = i == 1"),
    F(1, "loss = loss + random.random()"),
    F(1, "loss = loss + float(np.random.rand())"),
    F(1, "loss = loss + a.sum()\na *= 0.5", given="a=DATA[i].copy()"),
    F(1, "$array += 1.0\nloss = loss + tg.from_numpy($array).sum()", setup="$array = np.zeros(2)"),
    F(1, "$array[0] = loss.item()", setup="$array = np.zeros(2)"),
    F(1, "tg.set_grad_enabled(True)"),
    F(1, "$seen.add(h.shape[0])", setup="$seen = set()"),
    F(1, "del $pool[0]\n$pool.append(h.detach())", setup="$pool = [tg.zeros(4, 3, dtype=DTYPE)] * 2"),
    F(1, "$weights = [p.detach() for p in $params]", setup="$weights = []"),
    F(1, "$snapshot = copy.deepcopy($net)", setup="$snapshot = None"),
    F(1, "$snapshot = {k: v.clone() for k, v in $net.state_dict().items()}", setup="$snapshot = None"),
    F(1, "loss.backward(create_graph=True, retain_graph=True)"),
    F(1, "gs = tg.autograd.grad(loss, $params, create_graph=True, allow_unused=True)\n"
         "$fast = [p - 0.1 * g for p, g in zip($params, gs) if g is not None]\n"
         "loss = loss + sum(f.sum() for f in $fast)", setup="$fast = []"),
    F(1, "$net.train(not $net.training)"),
    F(1, "h.tag = 'seen'"),
    F(1, "$obj.note = $obj.note + 'x'", setup="$obj = types.SimpleNamespace(note='')"),
    F(1, "$view[0] = loss.detach()\nloss = loss + $base.sum()",
      setup="$base = tg.zeros(4, dtype=DTYPE)\n$view = $base[1:3]"),
    F(1, "nn.init.normal_($scratch)\nloss = loss + $scratch.sum()", setup="$scratch = tg.zeros(3, dtype=DTYPE)"),
]
RETURNS = [
    F(6, "return loss.detach()"), F(4, "return loss"), F(3, "return loss, h"),
    F(2, "return {'loss': loss.detach(), 'h': h.detach()}"),
    F(2, "return loss.item()"), F(1, "return Out(loss.detach(), h)"), F(1, "return Pair(loss, h.detach())"),
    F(1, "return h, x"), F(1, "return h.square(), loss, x"), F(1, "return None"), F(1, ""),
    F(1, "return [loss, (h, None), 'done']"),
    F(1, "return loss.detach(), h.shape, 3"),
]
NASTY_RETURNS = [
    F(1, "return h, h"), F(1, "return h, h.detach()"), F(1, "return h, h[0], h.T"), F(1, "return $params[0]"),
    F(1, "return $params[0][0], loss"), F(1, "return x.view(-1), loss.detach()"), F(1, "return h.detach().numpy()"),
    F(1, "return nn.Parameter(h.detach())"), F(1, "return h.detach().as_subclass(Image)"),
    F(1, "return Out(loss, [h, h])"), F(1, "return loss, $params"),
    F(1, "return (h + 1).requires_grad_(), h.detach().requires_grad_()"), F(1, "return $params[0].grad, loss"),
    F(1, "z = h.detach().requires_grad_()\nreturn (z * z).sum(), z"),
]
BETWEEN = [  # what the program does between calls
    F(2, between="if i == 2: $opt.param_groups[0]['lr'] *= 0.5"),
    F(1, setup="$sched = optim.lr_scheduler.<<ExponentialLR($opt, 0.9)|StepLR($opt, 2)>>", between="$sched.step()"),
    F(1, between="if i == 2:\n    global GAIN\n    GAIN = 0.8"),
    F(1, between="if i == <<1|2>>: CONFIG['gain'] = 0.2"),
    F(1, between="if i == 1: $net.eval()\nif i == 2: $net.train()"),
    F(1, between="if i == 2: $params[0].requires_grad_(False)\nif i == 3: $params[0].requires_grad_(True)"),
    F(1, setup="$hits = []", between="if i == 2: $params[-1].register_hook(lambda g: $hits.append(1))"),
    F(1, between="if i == 1: $tail = $params[-1].register_hook(lambda g: g * 2)\nif i == 3: $tail.remove()",
      setup="$tail = None"),
    F(1, setup="$held = [p.detach() for p in $params]", between="if i == 2: $params[0].register_hook(lambda g: g * 10)"),
    F(1, setup="$held = $net.state_dict()"),
    F(1, between="with tg.no_grad():\n    $params[0].mul_(0.9)"),
    F(1, between="$params[0].data = $params[0].data * 0.5"),
    F(1, between="if i == 2:\n    for p in $params:\n        p.grad = None"),
    F(1, between="if i == 2: $params[0].grad = tg.ones_like($params[0])"),
    F(1, setup="$window = None", between="if i == 1: $window = $params[0].detach()[0]\nif i == 2: $window.add_(0.1)"),
    F(1, setup="$seen = None", between="if i == 1: $seen = $params[0].detach().numpy()\nif i == 2: $seen *= 0.5"),
    F(1, between="tg.manual_seed(i)"),
    F(1, between="if i == 2: $net.load_state_dict({k: v * 0.5 for k, v in $net.state_dict().items()})"),
    F(1, setup="$calls = []", between="if i == 1: $net.register_forward_hook(lambda m, a, y: y * 2)"),
    F(1, between="if i == 2: $copy = copy.deepcopy($net)", setup="$copy = None"),
    F(1, between="float($params[0].sum()), str($params[0])"),
    F(1, between="if i == 2 and isinstance(result, tg.Tensor) and result.requires_grad: result.backward()"),
    F(1, between="if isinstance(result, tuple) and isinstance(result[0], tg.Tensor): result[0].detach().zero_()"),
    F(1, between="if i == 1: $opt.param_groups[0] = dict($opt.param_groups[0], lr=0.5)"),
    F(1, between="if i == 1: $opt.load_state_dict(copy.deepcopy($opt.state_dict()))"),
    F(1, between="if i == 2: squash.__defaults__ = (2.0,)"),
    F(1, between="if i == 2: $net.extra = nn.Linear(3, 3).to(DTYPE)"),
    F(1, between="if i == 2: $params[1] = nn.Parameter($params[1].detach() * 0.5)"),
    F(1, between="if i == 1: $net.apply(lambda m: m.weight.data.fill_(0.1) if isinstance(m, nn.Linear) else None)"),
]
CALLS = [  # how the function is called; DO is the call
    F(12, "return DO"),
    F(1, "out = DO\nfor t in out if isinstance(out, tuple) else [out]:\n"
         "    if isinstance(t, tg.Tensor) and t.requires_grad:\n"
         "        try:\n            t.sum().backward(retain_graph=True)\n        except RuntimeError:\n"
         "            pass\n        break\nreturn out"),
]
# fmt: on


class Writer:
    """Writes the program of a seed."""

    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(f"compile {seed}")
        self.style = self.chosen(["closure"] * 5 + ["method"] * 4 + ["global"] * 3 + ["module"])
        self.is_method = self.style in ("method", "module")
        self.names = []
        self.made = set()
        self.body, self.setup, self.between, self.given, self.params = [], [], [], [], []

    def chosen(self, options):
        return self.rng.choice(options)

    def pick(self, fragments):
        return self.rng.choices(fragments, [f.weight for f in fragments])[0]

    def several(self, fragments, counts):
        """As many different ones as one of the counts says."""
        found = []
        for _ in range(self.chosen(counts)):
            f = self.pick(fragments)
            if f not in found:
                found.append(f)
        return found

    def lines(self, text, prefix):
        text = re.sub(r"<<(.*?)>>", lambda m: self.chosen(m[1].split("|")), text, flags=re.S)
        self.names += [n for n in re.findall(r"\$(\w+)", text) if n not in self.names]
        return [line for line in re.sub(r"\$", prefix, text).split("\n") if line.strip()]

    def add(self, f):
        """Add a fragment, unless it makes state or an argument that another one has."""
        made = set(re.findall(r"^\$(\w+) = ", f.setup, re.M)) | set(re.findall(r"^(\w+)=", f.given))
        if made & self.made:
            return
        self.made |= made
        inner, outer = ("self.", "t.") if self.is_method else ("", "")
        self.setup += self.lines(f.setup, outer)
        self.body += self.lines(f.body, inner)
        self.between += self.lines(f.between, outer)
        self.params += self.lines(f.params, outer)
        self.given += self.lines(f.given, outer)

    def source(self):
        rng = self.rng
        dtype = "float32" if rng.random() < 0.15 else "float64"
        nasty = rng.random() < 0.25
        self.add(self.pick(NETS))
        prelude, update = self.pick(PRELUDES), self.pick(UPDATES)
        penalised = "requires_grad_(" in prelude.body and rng.random() < 0.6
        self.add(prelude)
        self.body.append("h = x")
        used_net = False
        for f in [self.pick(FORWARD) for _ in range(rng.randint(1, 3))]:
            if not used_net and rng.random() < 0.6:
                used_net = True
                self.add(F(1, "h = $net(h)"))
            self.add(f)
        if not used_net:
            self.add(F(1, "h = $net(h)"))
        if rng.random() < 0.3:
            self.add(self.pick(INPLACE))
        at = len(self.setup)  # where the list of parameters stands, which losses and updates name
        self.add(self.pick(LOSSES))
        if penalised:
            self.add(self.pick(PENALTIES))
        bad = [self.pick(NASTY)] if nasty and rng.random() < 0.7 else []
        early = bad if bad and ("loss =" in bad[0].body or "loss.backward" in bad[0].body) else []
        for f in early:
            self.add(f)
        self.add(update)
        for f in [*self.several(EFFECTS, (0, 0, 1, 1, 2)), *([] if early else bad)]:
            self.add(f)
        returned = self.pick(NASTY_RETURNS) if nasty and (not bad or rng.random() < 0.2) else self.pick(RETURNS)
        self.add(returned)
        for f in self.several(BETWEEN, (0, 0, 1, 1, 2)):
            if "$opt" not in f.between + f.setup or "$opt" in update.setup:
                self.add(f)
        outer = "t." if self.is_method else ""
        parameters = f"{outer}params = [{', '.join([f'*{outer}net.parameters()', *self.params])}]"
        self.setup[at:at] = [f"{outer}net.to(DTYPE)", parameters]
        self.names.append("params") if "params" not in self.names else None
        return HEAD.format(dtype=dtype, seed=self.seed) + self.assembled()

    def assembled(self):
        """The program around the fragments."""
        names = ", ".join(self.names)
        arguments = ["x=normal(i, 4, 3)", *self.given]
        parameters = ", ".join(a.partition("=")[0] for a in arguments)
        do = "function(*given.values())" if self.rng.random() < 0.7 else "function(**given)"
        call = [line.replace("DO", do) for line in self.lines(self.pick(CALLS).body, "")]
        is_global, is_method, is_module = self.style == "global", self.is_method, self.style == "module"
        head = f"def {'forward' if is_module else 'step'}({'self, ' if is_method else ''}{parameters}):"
        stored = stores("\n".join(self.body), self.names)
        scope = [f"{'global' if is_global else 'nonlocal'} {', '.join(stored)}"] if stored and not is_method else []
        step = [head, *indented([*scope, *self.body]), ""]
        declared = [f"global {names}"] if is_global else [f"nonlocal {names}"] if self.style == "closure" else []
        top = (
            [f"class Trainer{'(nn.Module)' if is_module else ''}:", *indented(step)]
            if is_method
            else step
            if is_global
            else []
        )
        build = [*([f"global {names}"] if is_global else []), *(["t = Trainer()"] if is_method else []), *self.setup]
        build += step if self.style == "closure" else []
        defined = set(re.findall(r"^(?:t\.)?(\w+) = ", "\n".join(self.setup).replace("one = two =", "one =\ntwo ="), re.M))
        build += [f"{n} = None" for n in self.names if n not in defined and not is_method and n not in ("one", "two")]
        build += [f"function = wrap({'t' if is_module else 't.step' if is_method else 'step'})", "", "def arguments(i):"]
        build += indented([f"return dict({', '.join(arguments)})"])
        build += ["", "def call(given):", *indented(call), "", "def between(i, result):"]
        build += indented([*[d for d in declared if not is_method], *self.between, "return None"])
        state = "{'t': t}" if is_method else "{" + ", ".join(f"{n!r}: {n}" for n in self.names) + "}"
        build += ["", "def state():", *indented([f"return {state}"]), "", "return arguments, call, between, state"]
        return "\n".join([*top, "", "def build(wrap):", *indented(build), ""])


def stores(body, names):
    """Which of the names the lines bind."""
    nodes = ast.walk(ast.parse("def f():\n" + "\n".join(indented(body.split("\n")))))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return [n for n in names if n in bound]


def indented(lines):
    return ["    " + line if line else line for line in lines]


def source_of(seed):
    return Writer(seed).source()


# ------------------------------------------------------------------------------------------------------- as a program


def kind(difference):
    """A difference without values, to see whether two are of a kind."""
    return None if difference is None else re.sub(r"\[[-+\d., \]\[enaif]*\]|\d+", "#", difference)[:120]


def smaller(text, wanted):
    """The text with every statement taken away without which the worlds differ in the same way."""

    def attempts(tree):
        for node in ast.walk(tree):
            for field in ("body", "orelse"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    for i in range(len(block)):
                        yield block, i

    changed = True
    while changed:
        changed = False
        k = 0
        while True:
            tree = ast.parse(text)
            places = list(attempts(tree))
            if k >= len(places):
                break
            block, i = places[k]
            if isinstance(block[i], ast.Pass) and len(block) == 1:
                k += 1
                continue
            del block[i]
            if not block:
                block.append(ast.Pass())
            shorter = ast.unparse(tree)
            if kind(difference_of(shorter)) == wanted:
                text, changed = shorter, True
            else:
                k += 1
    return text


def difference_of(text):
    try:
        return compared(text).difference
    except Exception:
        return None


def main(arguments):
    on_xla = "--xla" in arguments
    arguments = [a for a in arguments if a != "--xla"]
    with interpreted(not on_xla):
        return run(arguments)


def run(arguments):
    if arguments[0] in ("--show", "--shrink"):
        text = source_of(int(arguments[1]))
        print(text if arguments[0] == "--show" else smaller(text, kind(compared(text).difference)))
        return 0
    first, count = map(int, arguments)
    counts, began = collections.Counter(), time.process_time()
    for seed in range(first, first + count):
        report = compared(source_of(seed))
        counts["different" if report.difference else "equal"] += 1
        counts["compiled" if report.compiled else "eager"] += 1
        counts["invalid"] += bool(report.raised)
        if report.raised:
            print(seed, "RAISES", report.raised[0])
        if report.difference or not report.compiled:
            print(seed, report, flush=True)
    print(dict(counts), f"{(time.process_time() - began) / count:.2f} s each")
    return counts["different"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
