"""Random programs of operations, views, writes, hooks and aliases, and what finite differences say of their derivatives.

`python -m tests.random_programs --count 5000 --seed 0` runs as many; each that fails is shortened and printed.

A program is a list of steps, chosen by a seed and kept as lines of Python that run on a library `L` (tapegrad or PyTorch).
Beside each line stands what it does to NumPy arrays. `World` runs these on a memory that says what is differentiated:
tensors that share memory and gradients belong to one `Family`; `detach()`, `.data`, `.numpy()` and views made under no_grad
belong to another one on the same memory. A write by one family adds to the others what it added to the values, as a
constant. Constants are those of the run at the point where derivatives are taken, so finite differences leave them alone.
"""

import argparse
import collections
import functools
import itertools
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

REAL = np.longdouble  # of 64 bits or more
SHAPES = {"x": (3, 4), "w": (4,), "c": ()}
LARGEST, MOST_DIMS, MOST_ELEMENTS, LENGTH, POOL = 3.0, 3, 36, 24, 7


class Form(NamedTuple):
    """A kind of step: its line on tensors a and b, the same on arrays, and parameters that suit the shapes, or None."""

    text: str
    arrays: Callable
    fit: Callable = lambda choose, *shapes: ()
    ties: Callable = lambda p, *arrays: 0  # elements at which it has no derivative


def number(choose, *shapes):
    return round(choose.uniform(0.4, 1.4), 2)


def dim(choose, a, *others):
    return choose.randrange(-len(a), len(a)) if a else None


def row(choose, a, *others):
    return choose.randrange(-a[0], a[0]) if a else None


def rows(choose, a, *others):
    """Some rows, none twice."""
    return choose.sample(range(a[0]), choose.randint(1, a[0])) if a else None


def repeated_rows(choose, a, *others):
    return [choose.randrange(a[0]) for _ in range(choose.randint(1, 4))] if a else None


def marks(choose, a, *others):
    """One of True and False for each row, True at least once."""
    return [k == 0 or choose.random() < 0.5 for k in range(a[0])][:: choose.choice((1, -1))] if a else None


def start(choose, a, *others):
    return choose.randrange(a[0] - 1) if a and a[0] > 1 else None


def matrix(choose, a, *others):
    return () if len(a) == 2 else None


def along(choose, a, *others):
    return () if a else None


def two_dims(choose, a, *others):
    return () if len(a) >= 2 else None


def together(choose, a, b):
    try:
        return number(choose) if math.prod(np.broadcast_shapes(a, b)) <= MOST_ELEMENTS else None
    except ValueError:
        return None


def marked(choose, a, b):
    """A mark for each of the last dimension."""
    if together(choose, a, b) is None or not a:
        return None
    return marks(choose, a[-1:])


def same(choose, a, b):
    return dim(choose, a) if a == b else None


def equal(choose, a, b):
    return number(choose) if a == b else None


def outer_fits(choose, a, b):
    return together(choose, (*a, 1), b)


def multiplied(choose, a, b):
    return () if len(a) == 2 and b and len(b) < 3 and a[-1] == b[max(len(b) - 2, 0)] else None


def into(choose, a, b):
    """b can be written to a."""
    return number(choose) if together(choose, a, b) is not None and np.broadcast_shapes(a, b) == a else None


def into_row(choose, a, b):
    return row(choose, a) if a and into(choose, a[1:], b) is not None else None


def into_rows(choose, a, b):
    return rows(choose, a) if into_row(choose, a, b) is not None else None


def into_marked(choose, a, b):
    return marks(choose, a) if into_row(choose, a, b) is not None else None


def like_rows(choose, a, b):
    return repeated_rows(choose, a) if a and b and a[1:] == b[1:] else None


def softmax(a, axis):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def with_rows(a, index, value):
    a = a.copy()
    a[index] = value
    return a


def with_rows_added(a, index, values):
    a = a.copy()
    np.add.at(a, index, values)
    return a


def taken(b, n):
    """n rows of b, repeated if there are fewer."""
    return b[np.arange(n) % len(b)]


def zeros(a):
    return int((np.abs(a) < 1e-9).sum())


def equals(p, a):
    return zeros(np.diff(np.sort(a, p), axis=p))


VIEWS = {
    "row": Form("{a}[{p}]", lambda p, a: a[p], row),
    "rows": Form("{a}[{p}:]", lambda p, a: a[p:], start),
    "every_second": Form("{a}[..., ::2]", lambda p, a: a[..., ::2], along),
    "turned": Form("{a}.swapaxes(0, -1)", lambda p, a: a.swapaxes(0, -1), two_dims),
    "transposed": Form("{a}.T", lambda p, a: a.T, matrix),
    "diagonal": Form("{a}.diagonal()", lambda p, a: a.diagonal(), matrix),
    "last": Form("{a}.unbind(-1)[-1]", lambda p, a: a[..., -1], along),
    "chunk": Form("{a}.chunk(2)[0]", lambda p, a: a[: (len(a) + 1) // 2], along),
    "unsqueezed": Form("{a}.unsqueeze(0)", lambda p, a: a[None]),
    "expanded": Form("{a}.expand(2, *{a}.shape)", lambda p, a: np.broadcast_to(a, (2, *a.shape))),
    "windows": Form("{a}.unfold(0, 2, 1)", lambda p, a: np.lib.stride_tricks.sliding_window_view(a, 2, 0), start),
    "same": Form("{a}[...]", lambda p, a: a[...]),
}
IN_ORDER = {  # views of contiguous memory
    "flat": Form("{a}.reshape(-1)", lambda p, a: a.reshape(-1)),
    "contiguous": Form("{a}.contiguous()", lambda p, a: a),
}
OPERATIONS = {
    "sin": Form("{a}.sin()", lambda p, a: np.sin(a)),
    "tanh": Form("{a}.tanh()", lambda p, a: np.tanh(a)),
    "sigmoid": Form("{a}.sigmoid()", lambda p, a: 1 / (1 + np.exp(-a))),
    "bell": Form("(-{a} * {a}).exp()", lambda p, a: np.exp(-a * a)),
    "root": Form("({a} * {a} + {p}).sqrt()", lambda p, a: np.sqrt(a * a + p), number),
    "square": Form("{a} ** 2", lambda p, a: a * a),
    "cube": Form("{a} ** 3", lambda p, a: a * a * a),
    "scaled": Form("{p} * {a}", lambda p, a: a * p, number),
    "shifted": Form("{a} - {p}", lambda p, a: a - p, number),
    "abs": Form("{a}.abs()", lambda p, a: np.abs(a), ties=lambda p, a: zeros(a)),
    "relu": Form("{a}.relu()", lambda p, a: np.maximum(a, 0), ties=lambda p, a: zeros(a)),
    "clamp": Form("{a}.clamp(-{p}, {p})", lambda p, a: np.clip(a, -p, p), number, lambda p, a: zeros(np.abs(a) - p)),
    "sum": Form("{a}.sum({p})", lambda p, a: a.sum(p), dim),
    "sum_of_all": Form("{a}.sum()", lambda p, a: a.sum()),
    "mean": Form("{a}.mean({p}, keepdim=True)", lambda p, a: a.mean(p, keepdims=True), dim),
    "prod": Form("{a}.prod({p})", lambda p, a: a.prod(p), dim),
    "amax": Form("{a}.amax({p})", lambda p, a: a.max(p), dim, equals),
    "max": Form("{a}.max({p}).values", lambda p, a: a.max(p), dim, equals),
    "sort": Form("{a}.sort({p}).values", lambda p, a: np.sort(a, p), dim, equals),
    "cumsum": Form("{a}.cumsum({p})", lambda p, a: a.cumsum(p), dim),
    "softmax": Form("{a}.softmax({p})", lambda p, a: softmax(a, p), dim),
    "logsumexp": Form("{a}.logsumexp({p})", lambda p, a: np.log(np.exp(a).sum(p)), dim),
    "flip": Form("{a}.flip(0)", lambda p, a: a[::-1], along),
    "take_rows": Form("{a}[{p}]", lambda p, a: a[p], repeated_rows),
    "index_select": Form("{a}.index_select(0, L.tensor({p}))", lambda p, a: a[p], repeated_rows),
    "masked": Form("{a}[L.tensor({p})]", lambda p, a: a[np.array(p)], marks),
    "clone": Form("{a}.clone()", lambda p, a: a),
    "custom": Form("Cube.apply({a})", lambda p, a: a**3),
    "custom_of_result": Form("Bell.apply({a})", lambda p, a: np.exp(-a * a)),
    "mul": Form("{a} * {b}", lambda p, a, b: a * b, together),
    "add": Form("{a} + {b}", lambda p, a, b: a + b, together),
    "sub": Form("{a} - {b}", lambda p, a, b: a - b, together),
    "div": Form("{a} / ({b} * {b} + {p})", lambda p, a, b: a / (b * b + p), together),
    "maximum": Form("L.maximum({a}, {b})", lambda p, a, b: np.maximum(a, b), together, lambda p, a, b: zeros(a - b)),
    "lerp": Form("L.lerp({a}, {b}, {p})", lambda p, a, b: a + p * (b - a), together),
    "atan2": Form("L.atan2({a}, {b} * {b} + {p})", lambda p, a, b: np.arctan2(a, b * b + p), together),
    "where": Form("L.where(L.tensor({p}), {a}, {b})", lambda p, a, b: np.where(p, a, b), marked),
    "where_less": Form("L.where({a} < {p}, {a}, {b})", lambda p, a, b: np.where(a < p, a, b), together,
                       lambda p, a, b: zeros(a - p)),
    "matmul": Form("{a} @ {b}", lambda p, a, b: a @ b, multiplied),
    "gram": Form("{a} @ {a}.T", lambda p, a: a @ a.T, matrix),
    "einsum": Form("L.einsum('ij,kj->ik', {a}, {b})", lambda p, a, b: np.einsum("ij,kj->ik", a, b),
                   lambda choose, a, b: () if len(a) == len(b) == 2 and a[1] == b[1] else None),
    "outer": Form("{a}[..., None] * {b}", lambda p, a, b: a[..., None] * b, outer_fits),
    "cat": Form("L.cat([{a}, {b}], {p})", lambda p, a, b: np.concatenate([a, b], p), same),
    "stack": Form("L.stack([{a}, {b}, {a}])", lambda p, a, b: np.stack([a, b, a]), equal),
    "checkpoint": Form("checkpoint(lambda s, t: s.sin() * t, {a}, {b}, use_reentrant=False)",
                       lambda p, a, b: np.sin(a) * b, together),
    "custom_product": Form("Product.apply({a}, {b})", lambda p, a, b: a * b, equal),
}  # fmt: skip
ARRAY_OPERATIONS = {  # b is a NumPy array
    "mul_array": Form("{a} * {b}", lambda p, a, b: a * b, together),
    "array_mul": Form("{b} * {a}", lambda p, a, b: a * b, together),
    "add_array": Form("L.add({a}, {b})", lambda p, a, b: a + b, together),
}
WRITES = {
    "mul_number": Form("{a}.mul_({p})", lambda p, a: a * p, number),
    "add_number": Form("{a} += {p}", lambda p, a: a + p, number),
    "sin_": Form("{a}.sin_()", lambda p, a: np.sin(a)),
    "sigmoid_": Form("{a}.sigmoid_()", lambda p, a: 1 / (1 + np.exp(-a))),
    "clamp_": Form("{a}.clamp_(-{p}, {p})", lambda p, a: np.clip(a, -p, p), number, lambda p, a: zeros(np.abs(a) - p)),
    "square_": Form("{a} *= {a}", lambda p, a: a * a),
    "zero_": Form("{a}.zero_()", lambda p, a: 0 * a),
    "fill_row": Form("{a}[{p}] = 0.4", lambda p, a: with_rows(a, p, 0.4), row),
    "fill_marked": Form("{a}[L.tensor({p})] = 0.6", lambda p, a: with_rows(a, np.array(p), 0.6), marks),
    "mul_": Form("{a}.mul_({b})", lambda p, a, b: a * b, into),
    "add_": Form("{a}.add_({b}, alpha={p})", lambda p, a, b: a + p * b, into),
    "imul": Form("{a} *= {b}", lambda p, a, b: a * b, into),
    "copy_": Form("{a}.copy_({b})", lambda p, a, b: b, into),
    "lerp_": Form("{a}.lerp_({b}, {p})", lambda p, a, b: a + p * (b - a), equal),
    "addcmul_": Form("{a}.addcmul_({b}, {b}, value={p})", lambda p, a, b: a + p * b * b, into),
    "set_row": Form("{a}[{p}] = {b}", lambda p, a, b: with_rows(a, p, b), into_row),
    "set_rows": Form("{a}[{p}] = {b}", lambda p, a, b: with_rows(a, p, b), into_rows),
    "set_marked": Form("{a}[L.tensor({p})] = {b}", lambda p, a, b: with_rows(a, np.array(p), b), into_marked),
    "set_all": Form("{a}[...] = {b}", lambda p, a, b: b, into),
    "out": Form("L.mul({b}, {p}, out={a})", lambda p, a, b: b * p, equal),
    "index_add_": Form("{a}.index_add_(0, L.tensor({p}), {b}[[k % len({b}) for k in range(len({p}))]])",
                       lambda p, a, b: with_rows_added(a, p, taken(b, len(p))), like_rows),
}  # fmt: skip
ARRAY_WRITES = {
    "mul_number": WRITES["mul_number"]._replace(text="{a} *= {p}"),
    "fill_row": WRITES["fill_row"],
    "add_number": WRITES["add_number"],
}
HOOKS = {  # the gradient becomes a linear function of itself, here the transpose
    "seen": Form("{h}.register_hook(lambda g: seen.append(('{h}', g)))", None),
    "doubled": Form("{h}.register_hook(lambda g: g * 2.0)", lambda a: a * 2),
    "flipped": Form("{h}.register_hook(lambda g: g.flip(0))", lambda a: a[::-1], along),
    "halved_by_node": Form("{h}.grad_fn.register_prehook(lambda gs: (gs[0] * 0.5,))", lambda a: a * 0.5),
    "retained": Form("{h}.retain_grad()", None),
}
WATCHES = {  # hooks that change nothing, of any tensor
    "tensor": Form("{a}.requires_grad and {a}.register_hook(lambda g: None)", None),
    "node": Form("{a}.grad_fn and {a}.grad_fn.register_hook(lambda inputs, outputs: None)", None),
    "before_node": Form("{a}.grad_fn and {a}.grad_fn.register_prehook(lambda outputs: None)", None),
}
ALIASES = {
    "detach": Form("{a}.detach()", None),
    "data": Form("{a}.data", None),
    "leaf": Form("{a}.detach().requires_grad_()", None),
    "numpy": Form("{a}.detach().numpy()", None),
}


# ---------------------------------------------------------------------------------------- what is differentiated


class Family:
    """The values of a block of memory as functions of the inputs, for the tensors that share gradients."""

    def __init__(self, values, refuses=False):
        self.values, self.refuses = values, refuses  # recorded writes: of leaves, of no_grad views, where elements repeat


@dataclass
class Memory:
    families: list
    row_major: bool = True


@dataclass
class Part:
    """A tensor or an array: `places` are its elements' positions in the block."""

    memory: Memory
    family: Family
    places: np.ndarray
    is_array: bool = False

    def read(self):
        return self.family.values[self.places]

    def is_contiguous(self):
        flat = self.places.ravel()
        return bool((np.diff(flat) == 1).all())

    def overlaps(self, other):
        return self.memory is other.memory

    def holds_elements_once(self):
        return len(np.unique(self.places)) == self.places.size


class World:
    """Runs steps on arrays. Without `constants`, it notes those of this run; with them, it takes these."""

    def __init__(self, point, constants=None):
        self.noted = [] if constants is None else None
        self.constants = iter(constants or ())
        self.ties = 0
        self.parts = {name: self.new(value, refuses=True) for name, value in point.items()}

    def constant(self, values):
        if self.noted is None:
            return next(self.constants)
        self.noted.append(np.array(values))
        return values

    def new(self, values, refuses=False, row_major=True):
        values = np.asarray(values, REAL)
        family = Family(values.reshape(-1).copy(), refuses)
        return Part(Memory([family], row_major), family, np.arange(values.size).reshape(values.shape))

    def other_family(self, part, refuses=False):
        family = Family(self.constant(part.family.values).copy(), refuses or not part.holds_elements_once())
        part.memory.families.append(family)
        return family

    def write(self, part, values, recorded):
        old = part.read()
        values = np.broadcast_to(values, old.shape)
        change = self.constant(values - old)
        for family in part.memory.families:
            if recorded and family is part.family:
                family.values[part.places] = values
            else:
                family.values[part.places] += change

    def run(self, step):
        parts = [self.parts[name] for name in step.inputs]
        getattr(self, step.kind)(step, *parts)

    def applied(self, form, step, *parts):
        arrays = [part.read() for part in parts]
        self.ties += form.ties(step.chosen, *arrays)
        return form.arrays(step.chosen, *arrays)

    def operation(self, step, *parts):
        values = self.applied((OPERATIONS | ARRAY_OPERATIONS)[step.name], step, *parts)
        values = self.constant(values) if step.free else values
        in_order = all(part.memory.row_major and part.is_contiguous() for part in parts)
        self.parts[step.out] = self.new(values, row_major=in_order)

    def view(self, step, a):
        family = self.other_family(a, refuses=True) if step.free and step.name != "contiguous" else a.family
        places = (VIEWS | IN_ORDER)[step.name].arrays(step.chosen, a.places)
        self.parts[step.out] = Part(a.memory, family, places)

    def alias(self, step, a):
        family = self.other_family(a, refuses=step.name == "leaf")
        self.parts[step.out] = Part(a.memory, family, a.places, is_array=step.name == "numpy")

    def source(self, step):
        """A NumPy array, and the tensor that shares its memory."""
        self.parts[step.out] = self.new(np.asarray(step.chosen), row_major=True)
        self.parts[step.out].is_array = True

    def from_numpy(self, step, a):
        self.parts[step.out] = Part(a.memory, self.other_family(a), a.places)

    def writing(self, step, a, *others):
        forms = ARRAY_WRITES if a.is_array else WRITES
        self.write(a, self.applied(forms[step.name], step, a, *others), not step.free)

    def hook(self, step, a):
        values, transposed = a.read(), HOOKS[step.name].arrays
        if transposed is not None:
            before = self.constant(values)
            values = before + transposed(values - before)
        self.parts[step.out] = self.new(values, row_major=a.memory.row_major and a.is_contiguous())

    def watch(self, step, a):
        pass

    def derivative(self, step, a):
        self.parts[step.out] = self.new(np.cos(a.read()), row_major=a.memory.row_major and a.is_contiguous())

    def drop(self, step, a):
        del self.parts[step.inputs[0]]


# ------------------------------------------------------------------------------------------------- steps and programs


@dataclass(frozen=True)
class Step:
    kind: str
    name: str
    inputs: tuple
    out: str = ""
    chosen: object = ()
    free: bool = False  # not recorded
    way: int = 0  # of writing without recording
    overlapping: bool = False  # what is written shares memory with what is read

    def lines(self, for_torch):
        a, b = (*self.inputs, *self.inputs, "", "")[:2] if len(self.inputs) != 1 else (*self.inputs, "")
        b = f"{b}.clone()" if self.overlapping and for_torch else b
        return getattr(self, "lines_of_" + self.kind)(a, b, for_torch)

    def filled(self, form, a, b):
        return form.text.format(a=a, b=b, p=self.chosen)

    def lines_of_operation(self, a, b, for_torch):
        line = f"{self.out} = {self.filled((OPERATIONS | ARRAY_OPERATIONS | VIEWS | IN_ORDER)[self.name], a, b)}"
        return [f"with L.no_grad(): {line}" if self.free else line]

    lines_of_view = lines_of_operation

    def lines_of_alias(self, a, b, for_torch):
        name = "detach" if for_torch and self.name in ("data", "numpy") else self.name  # PyTorch does not see their writes
        return [f"{self.out} = {self.filled(ALIASES[name], a, b)}"]

    def lines_of_source(self, a, b, for_torch):
        return [f"{self.out} = {'L.tensor' if for_torch else 'np.array'}({self.chosen}{', dtype=L.float64' * for_torch})"]

    def lines_of_from_numpy(self, a, b, for_torch):
        return [f"{self.out} = {a}.detach()" if for_torch else f"{self.out} = L.from_numpy({a})"]

    def lines_of_writing(self, a, b, for_torch):
        if not self.free or self.way == 3:  # an array
            return [self.filled((ARRAY_WRITES if self.way == 3 else WRITES)[self.name], a, b)]
        form = WRITES[self.name]
        if self.way == 0:
            return [f"with L.no_grad(): {self.filled(form, a, b)}"]
        made = f"{a}.data" if self.way == 1 and not for_torch else f"{a}.detach()"
        return [f"t = {made}", self.filled(form, "t", "t" if b == a else b), "del t"]

    def lines_of_hook(self, a, b, for_torch):
        probe = f"{self.out}_p"
        return [
            f"{probe} = probe('{self.out}', {a})",
            f"{self.out} = {a} + {probe}",
            HOOKS[self.name].text.format(h=self.out),
        ]

    def lines_of_watch(self, a, b, for_torch):
        return [] if for_torch else [self.filled(WATCHES[self.name], a, b)]  # PyTorch 2.13 crashes in register_hook of some

    def lines_of_derivative(self, a, b, for_torch):
        probe = f"{self.out}_p"
        return [
            f"{probe} = probe('{self.out}', {a})",
            f"{self.out} = {a} + {probe}",
            f"{self.out} = L.autograd.grad({self.out}.sin().sum(), {self.out}, create_graph=True)[0]",
        ]

    def lines_of_drop(self, a, b, for_torch):
        return [f"del {a}"]


def points(seed):
    """The values of the inputs, and three directions for derivatives."""
    rng = np.random.default_rng(seed)
    values = {name: rng.uniform(0.3, 1.3, shape) * rng.choice([-1, 1], shape) for name, shape in SHAPES.items()}
    return values, [{name: rng.standard_normal(shape) for name, shape in SHAPES.items()} for _ in range(3)]


@dataclass
class Program:
    seed: int
    steps: list = field(default_factory=list)

    def text(self, for_torch=False):
        """Lines of a program, after which `alive` names the tensors that the loss reads."""
        lines = [line for step in self.steps for line in step.lines(for_torch)]
        return "\n".join([*lines, f"loss = {self.loss()}"])

    def loss(self):
        return " + ".join(f"({name} * {name}.sin()).sum()" for name in self.alive())

    def alive(self):
        """The inputs and results that are left at the end, arrays excluded."""
        names = dict.fromkeys(SHAPES)
        for step in self.steps:
            if step.out and step.kind != "source" and not (step.kind == "alias" and step.name == "numpy"):
                names[step.out] = None
            if step.kind == "drop":
                names.pop(step.inputs[0], None)
        return list(names)

    def without(self, k):
        """The program without a step and what depends on its result."""
        gone, steps = {self.steps[k].out} - {""}, []
        for step in self.steps[:k] + self.steps[k + 1 :]:
            if gone & set(step.inputs):
                gone |= {step.out} - {""}
            else:
                steps.append(step)
        return Program(self.seed, steps)

    def value(self, point, constants=None):
        """The loss at a point, by arrays, and the world that computed it."""
        world = World(point, constants)
        for step in self.steps:
            world.run(step)
        total = REAL(0)
        for name in self.alive():
            values = world.parts[name].read()
            total += (values * np.sin(values)).sum()
        return total, world


# How often each kind of step is chosen.
KINDS = {"view": 20, "operation": 44, "writing": 24, "hook": 7, "alias": 6, "source": 2, "derivative": 3, "watch": 4}


class Maker:
    """Chooses the steps of a program, which it runs on arrays to know shapes, memory and values."""

    def __init__(self, seed, length=LENGTH):
        self.choose = random.Random(seed)
        self.program = Program(seed)
        self.world = World(points(seed)[0])
        self.names = itertools.count()
        while len(self.program.steps) < length:
            kind = self.choose.choices(list(KINDS), list(KINDS.values()))[0]
            getattr(self, kind)()
            while len(self.world.parts) > len(SHAPES) + POOL:
                self.add(Step("drop", "", (self.choose.choice([n for n in self.world.parts if n not in SHAPES]),)))

    def add(self, step):
        self.world.run(step)
        self.program.steps.append(step)

    def out(self):
        return f"v{next(self.names)}"

    def pick(self, arrays=(False,)):
        """A tensor, or an array, one of the last made half of the time."""
        names = [n for n, part in self.world.parts.items() if part.is_array in arrays]
        name = self.choose.choice(names[-2:] if self.choose.random() < 0.5 else names)
        return name, self.world.parts[name]

    def view(self):
        name, a = self.pick()
        forms = VIEWS | (IN_ORDER if a.memory.row_major and a.is_contiguous() else {})
        form = self.choose.choice(list(forms))
        chosen = forms[form].fit(self.choose, a.places.shape)
        if chosen is None:
            return
        places = forms[form].arrays(chosen, a.places)
        if places.ndim <= MOST_DIMS and places.size <= MOST_ELEMENTS:
            self.add(Step("view", form, (name,), self.out(), chosen, free=self.choose.random() < 0.05))

    def operation(self):
        with_array = any(part.is_array for part in self.world.parts.values()) and self.choose.random() < 0.2
        forms = ARRAY_OPERATIONS if with_array else OPERATIONS
        form = self.choose.choice(list(forms))
        for _ in range(6):
            picked = [self.pick(), *[self.pick((with_array,)) for _ in range("{b}" in forms[form].text)]]
            chosen = forms[form].fit(self.choose, *[part.places.shape for _, part in picked])
            if chosen is not None:
                break
        else:
            return
        values = forms[form].arrays(chosen, *[part.read() for _, part in picked])
        if np.ndim(values) <= MOST_DIMS and np.size(values) <= MOST_ELEMENTS and np.abs(values).max() < LARGEST:
            names = tuple(name for name, _ in picked)
            self.add(Step("operation", form, names, self.out(), chosen, free=self.choose.random() < 0.08))

    def writing(self):
        name, a = self.pick((False, True))
        if not a.holds_elements_once():
            return
        forms = ARRAY_WRITES if a.is_array else WRITES
        form = self.choose.choice(list(forms))
        others = [self.pick() for _ in range("{b}" in forms[form].text)]
        chosen = forms[form].fit(self.choose, a.places.shape, *[b.places.shape for _, b in others])
        if chosen is None:
            return
        values = forms[form].arrays(chosen, a.read(), *[b.read() for _, b in others])
        if np.abs(values).max() > LARGEST:
            return
        free = a.is_array or a.family.refuses or self.choose.random() < 0.25
        way = 3 if a.is_array else self.choose.randrange(3)
        names = (name, *[b for b, _ in others])
        self.add(Step("writing", form, names, "", chosen, free, way, any(b.overlaps(a) for _, b in others)))

    def hook(self):
        name, a = self.pick()
        form = self.choose.choice(list(HOOKS))
        if HOOKS[form].fit(self.choose, a.places.shape) is not None:
            self.add(Step("hook", form, (name,), self.out()))

    def watch(self):
        self.add(Step("watch", self.choose.choice(list(WATCHES)), (self.pick()[0],)))

    def alias(self):
        self.add(Step("alias", self.choose.choice(list(ALIASES)), (self.pick()[0],), self.out()))

    def source(self):
        array = self.out()
        self.add(Step("source", "", (), array, [number(self.choose) for _ in range(4)]))
        self.add(Step("from_numpy", "", (array,), self.out()))

    def derivative(self):
        self.add(Step("derivative", "", (self.pick()[0],), self.out()))


def make(seed, length=LENGTH):
    return Maker(seed, length).program


# --------------------------------------------------------------------------------------------------- runs of programs


class Found(NamedTuple):
    """What a library says of a program. `derivatives`: along one direction (by a plain pass, a recorded one), two, three."""

    values: dict
    derivatives: list
    probes: dict
    seen: list
    retained: dict


def functions_of(L):
    """autograd.Functions of a library, by name."""

    class Cube(L.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a**3

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    class Bell(L.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            result = (-a * a).exp()
            ctx.save_for_backward(a, result)
            return result

        @staticmethod
        def backward(ctx, g):
            a, result = ctx.saved_tensors
            return -2 * a * result * g

    class Product(L.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return b * g, a * g

    return {f.__name__: f for f in (Cube, Bell, Product)}


FUNCTIONS = {}


def array(t):
    return t.detach().numpy().copy()


def found_by(L, program):
    """Runs a program on a library."""
    point, directions = points(program.seed)
    directions = [{name: L.tensor(v, dtype=L.float64) for name, v in d.items()} for d in directions]
    probes, seen = {}, []

    def probe(name, like):
        probes[name] = L.zeros(like.shape, dtype=L.float64, requires_grad=True)
        return probes[name]

    functions = FUNCTIONS.get(L.__name__) or FUNCTIONS.setdefault(L.__name__, functions_of(L))
    names = {"L": L, "np": np, "probe": probe, "seen": seen, "checkpoint": L.utils.checkpoint.checkpoint} | functions
    names |= {name: L.tensor(value, dtype=L.float64, requires_grad=True) for name, value in point.items()}
    leaves = {name: names[name] for name in point}
    exec(program.text(for_torch=L.__name__ == "torch"), names)
    loss = names.pop("loss")
    values = {name: array(names[name]) for name in program.alive()} | {"loss": array(loss)}
    loss.backward(retain_graph=True)
    first = {name: zero_or(leaf.grad, leaf) for name, leaf in leaves.items()}
    by_probes = {name: zero_or(p.grad, p) for name, p in probes.items()}
    hooked = [step.out for step in program.steps if step.kind == "hook" and step.name == "retained" and step.out in names]
    retained = {name: None if names[name].grad is None else array(names[name].grad) for name in hooked}
    calls = [(name, array(g)) for name, g in seen]
    derivatives = [sum((first[name] * array(d)).sum() for name, d in directions[0].items())]
    total = loss
    for d, after in zip(directions, (*directions[1:], None), strict=True):
        gradients = L.autograd.grad(total, list(leaves.values()), create_graph=after is not None, allow_unused=True)
        terms = [(g * d[name]).sum() for name, g in zip(leaves, gradients, strict=True) if g is not None]
        total = sum(terms, L.zeros((), dtype=L.float64))
        derivatives.append(array(total))
        if not total.requires_grad:
            break
    return Found(values, [float(v) for v in derivatives], by_probes, calls, retained)


def zero_or(gradient, leaf):
    return np.zeros(tuple(leaf.shape)) if gradient is None else array(gradient)


def by_differences(program):
    """[(derivative in the first n directions, what its error may be)] for n = 1, 2, 3; and the world at the point.

    Mixed central differences of two steps, extrapolated. Nothing where the point lies on a kink: values that are equal there
    differ beside it.
    """
    point, directions = points(program.seed)
    point = {name: value.astype(REAL) for name, value in point.items()}
    _, world = program.value(point)
    beside = {name: value + 1e-3 * directions[0][name] for name, value in point.items()}
    if program.value(beside, world.noted)[1].ties != world.ties:
        return [], world
    found = []
    for n in range(1, 4):
        step = float(np.finfo(REAL).eps) ** (1 / (n + 4))
        coarse, fine = (difference(program, point, directions[:n], h, world.noted) for h in (step, step / 2))
        found.append((float(fine + (fine - coarse) / 3), float(abs(fine - coarse)) / 3))
    return found, world


def difference(program, point, directions, step, constants):
    total = REAL(0)
    for signs in itertools.product((1, -1), repeat=len(directions)):
        at = {
            name: value + step * sum(s * d[name] for s, d in zip(signs, directions, strict=True))
            for name, value in point.items()
        }
        total += math.prod(signs) * program.value(at, constants)[0]
    return total / (2 * step) ** len(directions)


class Wrong(AssertionError):
    pass


def close(what, got, expected, tolerance=1e-9):
    error = np.abs(np.asarray(got, float) - np.asarray(expected, float)).max(initial=0)
    if np.shape(got) != np.shape(expected) or not error <= tolerance * max(1.0, np.abs(expected).max(initial=0)):
        raise Wrong(f"{what}: {got} instead of {expected}")


def check(program, L):
    """Compares values and derivatives to third order with `World`; the number of orders that differences can tell."""
    found = found_by(L, program)
    expected, world = by_differences(program)
    for name in program.alive():
        close(f"value of {name}", found.values[name], world.parts[name].read())
    close("derivative of a recorded pass", found.derivatives[1], found.derivatives[0])
    derivatives = found.derivatives[1:] + [0.0] * 3
    told = 0
    for order, (value, uncertain) in enumerate(expected, 1):
        if uncertain > 1e-4 * max(1.0, abs(value)):  # a kink nearby, or too steep
            break
        close(f"derivative of order {order}", derivatives[order - 1], value, 1e-6 + uncertain / max(1.0, abs(value)))
        told = order
    check_hooks(program, found)
    return told


def check_hooks(program, found):
    """A hook sees, and retain_grad keeps, the gradient that a leaf added to the tensor gets."""
    written = set()
    for step in reversed(program.steps):
        if step.kind == "hook":
            gradient = found.probes[step.out]
            calls = [g for name, g in found.seen if name == step.out]
            for call in calls:
                close(f"gradient that the hook of {step.out} saw", call, gradient)
            if step.name == "seen" and bool(calls) < gradient.any():
                raise Wrong(f"the hook of {step.out} was not called")
            if step.out in found.retained and step.out not in written:
                kept = found.retained[step.out]
                close(f"retained gradient of {step.out}", np.zeros_like(gradient) if kept is None else kept, gradient)
        elif step.kind in ("view", "alias", "writing"):  # a write may have given the tensor another version
            written |= set(step.inputs)


def outcome(program, checked):
    """What `checked` returns for a program, and what it raises; one of them is None."""
    try:
        return checked(program), None
    except Exception as e:
        return None, e


def shortened(program, checked):
    """The program without the steps that its failure does not need."""
    kind = type(outcome(program, checked)[1])
    k = len(program.steps)
    while k:
        k -= 1
        shorter = program.without(min(k, len(program.steps) - 1))
        if type(outcome(shorter, checked)[1]) is kind:
            program, k = shorter, min(k, len(shorter.steps))
    return program


def report(program, checked):
    """A failing program, shortened, and what is wrong."""
    program = shortened(program, checked)
    point = {name: np.round(v, 3).tolist() for name, v in points(program.seed)[0].items()}
    return f"seed {program.seed}: {outcome(program, checked)[1]!r}\n{point}\n{program.text()}"


def tally(count, seed, checked, length=LENGTH):
    """Checks `count` programs: how often each result came, and reports of what failed."""
    results, reports = collections.Counter(), []
    for k in range(seed, seed + count):
        program = make(k, length)
        result, error = outcome(program, checked)
        results[result if error is None else type(error).__name__] += 1
        if error is not None:
            reports.append(report(program, checked))
    return results, reports


def main(checked, what):
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=LENGTH)
    options = parser.parse_args()
    results, reports = tally(options.count, options.seed, checked, options.length)
    print(f"{options.count} programs from seed {options.seed}; {what}: {dict(results)}")
    print("\n\n".join(reports))
    sys.exit(bool(reports))


if __name__ == "__main__":
    import tapegrad

    main(functools.partial(check, L=tapegrad), "orders that finite differences confirmed")
