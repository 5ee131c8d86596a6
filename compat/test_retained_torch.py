"""Retained gradients and hooks belong to a tensor's version, as in PyTorch: random programs of views, writes, hooks, passes.

A step that PyTorch refuses is left out on both sides; a pass that it refuses ("modified by an inplace operation") ends the
comparison. Gradients of zero count as none: an overwritten value passes none on here, and zeros there.
"""

import random
import sys
import warnings

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

VIEWS = {
    "row": lambda lib, t, k: t[k % max(t.shape[0], 1)],
    "rows": lambda lib, t, k: t[k % max(t.shape[0], 1) :],
    "narrow": lambda lib, t, k: t.narrow(-1, 0, t.shape[-1] - k % 2),
    "all": lambda lib, t, k: t[...],
    "transposed": lambda lib, t, k: t.mT if t.dim() > 1 else t.view(-1),
    "permuted": lambda lib, t, k: t.permute(tuple(range(t.dim()))[::-1]),
    "diagonal": lambda lib, t, k: t.diagonal(),
    "expanded": lambda lib, t, k: t.unsqueeze(0).expand(2, *t.shape),
    "flat": lambda lib, t, k: t.flatten(),
    "view": lambda lib, t, k: t.view(-1),
    "reshape": lambda lib, t, k: t.reshape(-1, 1),
    "unsqueeze": lambda lib, t, k: t.unsqueeze(0),
    "squeeze": lambda lib, t, k: t.squeeze(),
    "chunk": lambda lib, t, k: t.chunk(2, -1)[k % 2],
    "split": lambda lib, t, k: t.split(1)[k % max(t.shape[0], 1)],
    "unbind": lambda lib, t, k: t.unbind(-1)[k % max(t.shape[-1], 1)],
    "detach": lambda lib, t, k: t.detach(),
    "data": lambda lib, t, k: t.data,
    "clone": lambda lib, t, k: t.clone(),
}
WRITES = {
    "mul_": lambda lib, t, u, k: t.mul_(k + 2.0),
    "imul": lambda lib, t, u, k: t.__imul__(0.5),
    "add_": lambda lib, t, u, k: t.add_(u.reshape(-1)[0], alpha=k),
    "sub_same": lambda lib, t, u, k: t.sub_(u),
    "setitem": lambda lib, t, u, k: t.__setitem__(k % max(t.shape[0], 1), u.reshape(-1)[k % 2]),
    "setitem_number": lambda lib, t, u, k: t.__setitem__(0, 3.0),
    "setitem_mask": lambda lib, t, u, k: t.__setitem__(lib.ones_like(t, dtype=lib.bool), u.reshape(-1)[0]),
    "setitem_list": lambda lib, t, u, k: t.__setitem__([0], u.reshape(-1)[0]),
    "copy_": lambda lib, t, u, k: t.copy_(u),
    "zero_": lambda lib, t, u, k: t.zero_(),
    "fill_": lambda lib, t, u, k: t.fill_(u.reshape(-1)[0]),
    "neg_": lambda lib, t, u, k: t.neg_(),
    "relu": lambda lib, t, u, k: lib.nn.ReLU(inplace=True)(t),
    "leaky": lambda lib, t, u, k: lib.nn.functional.leaky_relu(t, 0.5, inplace=True),
    "index_add_": lambda lib, t, u, k: t.index_add_(0, lib.tensor([0]), u[:1]),
    "index_fill_": lambda lib, t, u, k: t.index_fill_(0, lib.tensor([0]), 2.0),
    "masked_fill_": lambda lib, t, u, k: t.masked_fill_(lib.ones_like(t, dtype=lib.bool), 1.5),
    "no_grad": lambda lib, t, u, k: lib.no_grad()(lambda: t.mul_(2.0))(),
    "data": lambda lib, t, u, k: t.data.mul_(2.0),
    "set_data": lambda lib, t, u, k: setattr(t, "data", t.data * 2.0),
    "detached": lambda lib, t, u, k: t.detach().add_(1.0),
    "numpy": lambda lib, t, u, k: t.detach().numpy().__imul__(2.0),
    "out": lambda lib, t, u, k: lib.no_grad()(lambda: lib.mul(t, 2.0, out=t))(),
    "detach_": lambda lib, t, u, k: t.detach_(),
}
UNSEEN = {"data", "set_data", "numpy"}  # PyTorch computes wrong gradients where these write what an operation saved
UNRECORDED = {"no_grad", "out", "detached"}  # PyTorch forgets the hooks of views where these write
SEVERAL = {"chunk", "split", "unbind"}
LOOKS = {
    "tolist": lambda t: t.tolist(),
    "is_leaf": lambda t: t.is_leaf,
    "grad_fn": lambda t: t.grad_fn,
    "shape": lambda t: t.shape,
    "compared": lambda t: t > 0,
    "requires_grad": lambda t: t.requires_grad,
}
STEPS = (
    ["view"] * 5
    + ["write"] * 5
    + ["retain"] * 3
    + ["hook"] * 3
    + ["node_hook", "use", "use", "product", "look", "drop", "pass"]
)


class Program:
    """One program on one library. `skipped`: steps to leave out; found on PyTorch."""

    def __init__(self, lib, seed, create_graph, skipped=None):
        self.lib, self.random, self.create_graph = lib, random.Random(seed), create_graph
        self.skipped, self.found = skipped, []
        self.log, self.seed = [], seed
        self.w = lib.tensor([[1.5, -2.0], [0.5, 1.25]], dtype=lib.float64, requires_grad=True)
        self.pool, self.handles, self.total = [("b", self.w * 2.0)], [], self.w.sum()
        self.kept = []  # what may be looked at in the end

    def run(self, length):
        text = []
        for i in range(length):
            step, a, b, k = (
                self.random.choice(STEPS), self.random.random(), self.random.random(), self.random.randrange(4)
            )  # fmt: skip
            name = self.random.choice(list({"view": VIEWS, "write": WRITES, "look": LOOKS}.get(step, "-")))
            (label, t), (other, u) = self.pool[int(a * len(self.pool))], self.pool[int(b * len(self.pool))]
            if (i in self.skipped) if self.skipped is not None else self.left_out(step, name, label):
                self.found.append(i)
                continue
            before = self.total
            text.append(f"{step} {name} {label} {other} {k}")
            try:
                self.step(step, name, label, t, u, k)
            except (RuntimeError, IndexError, ValueError, TypeError, AttributeError) as e:
                if self.skipped is not None or step == "pass":
                    e.add_note("\n".join(text))
                    raise
                self.total = before
                text.pop()
                self.found.append(i)
        self.text = text
        self.end()
        return self

    def left_out(self, step, name, label):
        """Whether a step would lead to where PyTorch differs for reasons of its own; the seed chooses what is left out."""
        saving = self.seed % 2 == 0
        unrecorded = self.seed % 4 == 1
        way = set(label.split("."))
        apart = not way.isdisjoint({"detach", "data"})
        with_views = any("." in other for other, _ in self.pool)
        return (
            (step == "product" and not saving)
            or (step == "view" and name == "data" and saving)
            or (step == "write" and name in ("relu", "leaky") and unrecorded)
            or (step == "write" and not unrecorded and (name in UNRECORDED or apart))
            or (step == "write" and name in UNSEEN and saving)
            or (step == "write" and name in ("set_data", "detach_") and with_views)
            or (step in ("hook", "node_hook", "retain") and "." in label and unrecorded)
            or (name == "zero_" and "expanded" in way)  # which PyTorch writes as it writes no other
            or (step == "node_hook" and not SEVERAL.isdisjoint(way))
        )

    def step(self, step, name, label, t, u, k):
        if step == "view":
            self.pool.append((f"{label}.{name}", VIEWS[name](self.lib, t, k)))
            if len(self.pool) > 6:
                self.pool.pop(0)
        elif step == "write":
            WRITES[name](self.lib, t, u, k)
        elif step == "retain":
            t.is_leaf  # PyTorch does nothing for a view that became tracked and was not looked at
            t.retain_grad()
            self.kept.append((label, t))
        elif step == "hook":
            t.is_leaf  # PyTorch ends the process, or registers with an earlier version, where the view is stale
            tag = f"{label} {len(self.handles)}"
            factor = 2.0 if k == 1 else None
            self.handles.append(t.register_hook(lambda g: self.say(tag, g, factor)))
        elif step == "node_hook":
            tag = f"node of {label} {len(self.handles)}"
            self.handles.append(t.grad_fn.register_prehook(lambda g: self.say(tag, g[0], None)))
        elif step == "use":
            self.total = self.total + t.sum() * (k + 1.0)
        elif step == "product":
            self.total = self.total + (t * self.w.reshape(-1)[k]).sum()
        elif step == "look":
            self.log.append((name, str(LOOKS[name](t)) if name in ("tolist", "requires_grad") else ""))
        elif step == "drop" and len(self.pool) > 2:
            self.pool.pop(k % 2)
        elif step == "pass" and k == 0:
            self.backward(self.total, retain_graph=True)

    def say(self, tag, g, factor):
        if g is not None and g.any():
            self.log.append((tag, (g.detach() + 0.0).tolist()))
        return None if factor is None else g * factor

    def end(self):
        total = self.total
        for _, t in self.pool:
            if t.requires_grad:
                total = total + (t * 0.5).sum()
        self.backward(total, create_graph=self.create_graph)
        self.tell()
        if self.create_graph:
            self.backward(sum((g * g).sum() * self.w.sum() for g in self.gradients()))
            self.tell()

    def backward(self, y, **kwargs):
        """A pass; the order in which hooks of independent branches run is not compared."""
        before = len(self.log)
        y.backward(**kwargs)
        self.log[before:] = sorted(self.log[before:], key=str)

    def gradients(self):
        return [t.grad for _, t in [("w", self.w), *self.kept] if t.grad is not None]

    def tell(self):
        for label, t in [("w", self.w), *self.kept]:
            g = t.grad
            self.log.append(
                (f"{label}.grad", None if g is None or not g.any() else (g.detach() + 0.0).tolist(), t.retains_grad)
            )


def compare(seed, length=14):
    """None, or why the program is of no use."""
    create_graph = seed % 3 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Program(torch, seed, create_graph)
        try:
            theirs.run(length)
        except RuntimeError:
            return "refused"
        if not any("grad" in entry[0] and entry[1] is not None for entry in theirs.log[1:]):
            return "empty"
        ours = Program(tg, seed, create_graph, set(theirs.found)).run(length)
    assert ours.log == theirs.log, "\n".join(["", *theirs.text])
    return None


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_random_programs(start):
    outcomes = [compare(seed) for seed in range(start, start + 100)]
    assert outcomes.count(None) > 50


if __name__ == "__main__":
    tally = {}
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            outcome = compare(seed, int(sys.argv[3]) if len(sys.argv) > 3 else 14)
        except Exception as e:
            outcome = type(e).__name__
            if len(sys.argv) > 4:
                raise
            print("seed", seed, type(e).__name__, str(e).split("\n")[0][:150])
        tally[outcome] = tally.get(outcome, 0) + 1
    print(tally)
