"""The op record: one operation, stated once.

A record gives an operation's forward on raw arrays and its derivative, written against a namespace `xp`. The same
text runs on raw arrays (`xp` maps each op's name to its forward) and on tensors (`xp` maps it to the recording call),
so a derivative is itself recorded and can be differentiated again.

Kinds and the signature of their rules (one per array argument; None: not differentiable; a number: a constant factor):

- elementwise:  d(xp, ans, *args, *params)        local derivative; the engine multiplies by the cotangent
- linear:       t(xp, g, ans, *args, *params)     transpose
- bilinear:     t(xp, g, ans, *args, *params)     one transpose per argument
- general:      v(xp, g, ans, *args, *params)     vector-Jacobian product
- constant:     no rule

A rule calls only names of the table through `xp` and operators, uses Python scalars as constants, never branches on
values and never mutates. What it reads is what the tape saves: `saves` says which arguments (or only their shapes) that is.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from ..dialect import Recorded

Rule = Callable[..., Any] | float | None
KINDS = ("elementwise", "linear", "bilinear", "general", "constant")


class FlatIndex:
    """A parameter of ops: an index of single elements, their places in the flattened array, in the result's shape.

    They count from 0 on.
    """

    __slots__ = ("at",)

    def __init__(self, at: Any) -> None:
        self.at = at

    def __repr__(self) -> str:
        return f"FlatIndex({self.at!r})"


COMPLETE = re.compile(r"Backward\d|::")  # names of nodes to which nothing is to be added

SAVES_REMEDY = (
    'saves= says what its rules read: argument names as in the rules, "ans" for the result, "x.shape" for a shape alone; '
    'one text for all rules, as saves="x ans", or one a rule, as saves=("y", "x"); "" for nothing, "*" for everything'
)
EVERYTHING = "*"


class Op:
    """One record of the table; see the module's docstring for the kinds and the signature of rules.

    Attributes:
        forward: raw arrays (then parameters) to a raw array, or to a tuple of them when `outputs` > 1.
        rules: one rule per array argument.
        arity: number of array arguments; -1: the first argument is a sequence of arrays.
        saves_all: whether `saves` was "*": nothing is known of what the rules read.
        save_for: per argument, (indices of arguments it reads, whether it reads the answer).
        singular: the derivative can be infinite or nan at a finite value.
        outputs: number of outputs; `differentiable` of them take part in gradients (the first ones).
        joint: one rule for all arguments, as for a sequence of arrays: it takes which are wanted, last, and gives a list.
        keeps: the outputs that are saved where a rule reads the answer; by default all.
        absent: the rules take None for the cotangent of an output that got none, in place of zeros.
        into: adds the transpose of a linear op into a given raw buffer: into(buffer, g, *params).
        saves: what the rules read, which an entry keeps: see SAVES_REMEDY; linear ops may leave it out for nothing.
        params: names of the parameters that follow the arrays.
        raw_backward: backward of a plain entry on raw arrays, where more than the rule's text is to be gained.
        matrices: each matrix of a batch has a result of its own: one whose cotangents are wholly 0 gets cotangent 0.
        row: rows of the cotangent that are wholly 0 stay 0: positions among `params` of the dims that make a row and
            of keepdim (None: the result has the argument's shape).
        display: the name that PyTorch prints for the backward node, or a function that gives it; without "Backward0".
        integers: what happens to integer operands: "float" (to the default dtype), "keep".
        wide: 16-bit operands are computed in float32, forward and backward, and the result rounded once. False for what
            moves elements only, as most linear ops do; a linear op that adds elements up is wide.
        refuses: raises for operands of dtypes that have no implementation: refuses(name, common dtype, given dtypes).
        batch: the op over a batch: batch(op, n, args, batched, params). An argument marked in `batched` carries a leading
            dimension of length n that the op does not know of; so does the result, or each of them. Written with calls of
            the table, so that it is recorded. Elementwise ops need none; without one, others are called n times.
        jvp: forward derivative of a general op: jvp(xp, tangents, ans, *args, *params), one tangent an argument, None for
            zero; gives the tangent of the result, or a list of them. Without one it is derived by transposing the vjp.
        on_series: whether the text of `jvp` runs on power series, too; else it is given tensors of a lower order.
        samples: yields (arrays, params) on which the laws run.
    """

    __slots__ = (
        "absent",
        "arity",
        "batch",
        "call",
        "differentiable",
        "display",
        "forward",
        "general",
        "half",
        "id",
        "integers",
        "into",
        "joint",
        "jvp",
        "keeps",
        "kind",
        "matrices",
        "n_hidden_slots",
        "name",
        "on_series",
        "outputs",
        "params",
        "raw_backward",
        "refuses",
        "row",
        "rules",
        "samples",
        "save_for",
        "saves_all",
        "saves_nothing",
        "scalar",
        "shape_of",
        "singular",
        "wide",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        forward: Callable[..., Any],
        rules: Sequence[Rule] = (),
        *,
        arity: int = 1,
        singular: bool = False,
        outputs: int = 1,
        differentiable: int = 1,
        absent: bool = False,
        joint: bool = False,
        keeps: Sequence[int] | None = None,
        saves: str | Sequence[str] | None = None,
        params: Sequence[str] = (),
        into: Callable[..., None] | None = None,
        raw_backward: Callable[..., None] | None = None,
        row: tuple[int, int | None] | None = None,
        matrices: bool = False,
        display: str | Callable[[Recorded], str] | None = None,
        integers: str = "keep",
        wide: bool | None = None,
        refuses: Callable[[str, Any, list[Any]], None] | None = None,
        batch: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        on_series: bool = True,
        samples: Callable[[], Any] | None = None,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"op {name}: unknown kind {kind}")
        self.name, self.kind, self.forward, self.arity = name, kind, forward, arity
        self.rules: tuple[Rule, ...] = tuple(rules) * (arity if joint else 1) or (None,) * abs(arity)
        self.joint = joint
        self.singular, self.outputs, self.differentiable = singular, outputs, differentiable
        self.params, self.absent = tuple(params), absent
        self.keeps = frozenset(range(outputs) if keeps is None else keeps)
        self.raw_backward, self.refuses = raw_backward, refuses
        self.into, self.row, self.integers, self.samples = into, row, integers, samples
        self.matrices, self.batch, self.jvp, self.on_series = matrices, batch, jvp, on_series
        self.wide = kind != "linear" if wide is None else wide
        display = display or "".join(part.capitalize() for part in name.split("_"))
        self.display = display if callable(display) or COMPLETE.search(display) else display + "Backward0"
        self.saves_all = saves == EVERYTHING
        reads = self._reads(saves)
        self.save_for = tuple([(values, ans) for values, ans, _ in reads])
        self.shape_of = tuple([shapes for _, _, shapes in reads])
        self.saves_nothing = not any(args or ans for args, ans in self.save_for)
        self.call: Callable[..., Any] = forward
        self.id = self.general = self.half = self.scalar = -1
        self.n_hidden_slots = 0
        register(self)

    def _reads(self, saves: str | Sequence[str] | None) -> list[tuple[frozenset[int], bool, frozenset[int]]]:
        """For each rule: arguments whose values it reads, whether it reads the answer, arguments whose shape it reads."""
        if saves is None:
            if self.kind != "linear" and any(map(callable, self.rules)):
                raise TypeError(f"op {self.name}: {SAVES_REMEDY}")
            saves = ""
        texts = [saves] * len(self.rules) if isinstance(saves, str) else list(saves)
        if len(texts) != len(self.rules):
            raise TypeError(f"op {self.name}: {len(texts)} texts for {len(self.rules)} rules; {SAVES_REMEDY}")
        return [self._read_by(rule, text) for rule, text in zip(self.rules, texts, strict=True)]

    def _read_by(self, rule: Rule, saves: str) -> tuple[frozenset[int], bool, frozenset[int]]:
        if not callable(rule):
            return frozenset(), False, frozenset()
        if saves == EVERYTHING:
            every = frozenset(range(abs(self.arity)))  # of a linear op the values do not matter
            return (frozenset(), False, every) if self.kind == "linear" else (every, True, frozenset())
        first = 2 if self.kind == "elementwise" else 3
        arguments = rule.__code__.co_varnames[first : first + abs(self.arity)]
        words = [word for word in saves.split() if word != "ans"]
        unknown = [word for word in words if word.removesuffix(".shape") not in arguments]
        if unknown:
            raise TypeError(f"op {self.name}: saves= names {unknown[0]!r}, but its rule takes {arguments}; {SAVES_REMEDY}")
        return (
            frozenset([i for i, name in enumerate(arguments) if name in words]),
            "ans" in saves.split(),
            frozenset([i for i, name in enumerate(arguments) if f"{name}.shape" in words]),
        )

    def on(self, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The recorded op on operands in a sequence, whether or not it takes them as one."""
        return self.call(args, *params) if self.arity < 0 else self.call(*args, *params)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.kind}>"


TABLE: dict[str, Op] = {}
PACKED = 4
BY_ID: list[Op] = []  # an entry's number to its op; see `register`


def register(op: Op) -> None:
    """Enter a record into the table."""
    if op.name in TABLE:
        raise ValueError(f"op {op.name} is defined twice")
    TABLE[op.name] = op
    number(op)


def number(op: Op) -> None:
    """Give a record the numbers that tape entries carry.

    `id`: plain layout; `general`: general layout; `half`: general layout, rules run in float32;
    `scalar`: plain layout, floats for arrays. Each of them plus PACKED:
    what the entry saved went through hooks (see `saved`).
    """
    op.id, op.general, op.half, op.scalar = (len(BY_ID) + i for i in range(PACKED))
    BY_ID.extend((op,) * (2 * PACKED))


@functools.cache
def renamed_op(entry_number: int, display: str, n_hidden_slots: int) -> int:
    """The number of an entry of a copy of its op, whose node has another name and stands for hidden slots before it, too."""
    op = BY_ID[entry_number]
    copied = copy.copy(op)
    copied.display, copied.n_hidden_slots = display, n_hidden_slots
    number(copied)
    return copied.id + entry_number - op.id
