"""Random programs of recordings and reverse passes over shared graphs, of which each pass notes how it ended."""

import random

OPS = (
    "add", "mul", "sin", "exp", "neg", "times2", "square", "where", "unbind", "sort", "reshape", "write", "custom", "detach",
)  # fmt: skip


def make(seed, steps=40):
    """The steps of a program: (name, random numbers by which a tensor is picked, or a choice made)."""
    choose = random.Random(seed)
    names = ["op"] * 12 + ["drop"] * 4 + ["grad"] * 4 + ["backward", "backward inputs", "backward inputs", "hook", "edge"]
    return [(choose.choice(names), choose.choice(OPS), [choose.random() for _ in range(8)]) for _ in range(steps)]


def function(lib):
    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y + h, g * x + h

    return Product.apply


class Program:
    """A run of one program with a library; `log` has what can be compared."""

    def __init__(self, lib):
        self.lib, self.log, self.over = lib, [], False
        self.leaves = [lib.tensor([0.3 + i, 0.5, 0.7 - i], dtype=lib.float64, requires_grad=True) for i in range(3)]
        self.pool = list(self.leaves)
        self.hooked = []
        self.custom = function(lib)

    def pick(self, at, tracked=True):
        pool = [t for t in self.pool if t.requires_grad] if tracked else self.pool
        return pool[int(at * len(pool))]

    def apply(self, name, at):
        x, y = self.pick(at[0], False), self.pick(at[1], False)
        lib = self.lib
        if name == "unbind":
            first, second, _ = (x * 1.0).unbind()
            return [lib.stack([first, second, second]), second.expand(3)]
        if name == "sort":
            return [x.sort()[0]]
        if name == "custom":
            product, total = self.custom(
                x, y
            )  # PyTorch needs a node as a whole, if one of its outputs is an input of the pass
            return [-product, total.clone()]
        if name == "write":
            z = x.clone()
            z[:2] *= y[1:]
            return [z]
        if name == "where":
            return [lib.where(x > 0.2, x, y * 2.0)]
        return [{
            "add": lambda: x + y, "mul": lambda: x * y, "sin": lambda: x.sin(), "exp": lambda: (-x * x).exp(),
            "neg": lambda: -x, "times2": lambda: x * 2.0, "square": lambda: x**2, "detach": lambda: x.detach(),
            "reshape": lambda: x.reshape(3, 1).squeeze(1),
        }[name]()]  # fmt: skip

    def ended(self, run):
        """How a pass ended: its gradients, or that it was refused."""
        before = len(self.log)
        try:
            gradients = run()
        except RuntimeError as error:
            refused = next((t for t in ("second time", "not have been used") if t in str(error)), None)
            if refused is None:
                raise
            self.log[before:] = [refused]
            self.over = True  # PyTorch has done a part of the pass then
        else:
            self.log[before:] = sorted(self.log[before:])  # hooks of slots that do not depend on each other, in any order
            self.log.append([None if g is None else [round(v, 9) for v in g.tolist()] for g in gradients])

    def step(self, kind, op, at):
        if kind == "op":
            self.pool += self.apply(op, at)
        elif kind == "drop":
            droppable = [k for k, t in enumerate(self.pool) if not t.is_leaf or not t.requires_grad]
            if droppable:
                self.pool.pop(droppable[int(at[0] * len(droppable))])
        elif kind == "hook":
            t = self.pick(at[0])
            self.hooked.append(t)
            if at[1] < 0.5:
                t.register_hook(lambda g: self.log.append([round(v, 9) for v in g.tolist()]))
            elif not t.is_leaf:
                t.retain_grad()
        else:
            self.differentiate(kind, at)

    def differentiate(self, kind, at):
        outputs = [self.pick(at[0])] if at[1] < 0.7 else [self.pick(at[0]), self.pick(at[1])]
        if any(y is t for y in outputs for t in self.hooked):  # PyTorch runs hooks of outputs even if they are not needed
            return
        inputs = [self.pick(at[2])] if at[3] < 0.6 else [self.pick(at[2]), self.pick(at[3])]
        ones = [self.lib.ones_like(y) for y in outputs]
        retain, record = at[4] < 0.3, at[5] < 0.15
        ad = self.lib.autograd
        if kind == "edge":
            positions = [ad.graph.get_gradient_edge(t) for t in inputs]
            self.ended(lambda: ad.grad(outputs, positions, ones, retain_graph=retain, allow_unused=True))
        elif kind == "grad":
            self.ended(
                lambda: ad.grad(outputs, inputs, ones, retain_graph=retain, create_graph=record, allow_unused=at[6] < 0.7)
            )
        else:
            for t in self.pool:
                if t.is_leaf or t.retains_grad:
                    t.grad = None
            # PyTorch runs, and so frees and refuses, the nodes of inputs themselves, of which nothing is needed
            given = [t for t in inputs if t.is_leaf] or self.leaves[:1] if kind == "backward inputs" else None
            self.ended(lambda: ad.backward(outputs, ones, retain, record, inputs=given) or ())
            if not self.over:
                kept = [t.grad for t in self.pool if t.is_leaf or t.retains_grad]
                self.log.append([g if g is None else [round(v, 9) for v in g.tolist()] for g in kept])


def run(lib, steps):
    program = Program(lib)
    for step in steps:
        if not program.over:
            program.step(*step)
    return program.log
