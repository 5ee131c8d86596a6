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
import re
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..dialect import Recorded
from ..later import Table

Rule = Callable[..., Any] | float | None
KINDS = ("elementwise", "linear", "bilinear", "general", "constant")


class Reads(NamedTuple):
    """What a rule reads: which arguments, whether the result, of which arguments the shape alone, and which outputs."""

    arguments: frozenset[int]
    answer: bool
    shapes: frozenset[int]
    outputs: frozenset[int]


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
    'saves= says what its rules read: argument names as in the rules, "ans" for the result, "x.shape" for a shape alone, '
    '"ans[1]" for one of several results; '
    'one text for all rules, as saves="x ans", or one a rule, as saves=("y", "x"); "" for nothing, "*" for everything'
)
EVERYTHING = "*"
HOST = "host"  # the forward runs on NumPy's arrays, called back from a compiled program
JAX_REMEDY = (
    "nothing says what runs on JAX: make the forward a ufunc of NumPy's, or a function whose first parameter, xp, is the "
    'array namespace; or name a kernel of tapegrad.kernels.jax, as in jax="shape.reshape"; jax="host" calls NumPy back'
)


class Op:
    """One record of the table; see the module's docstring for the kinds and the signature of rules.

    Attributes:
        forward: raw arrays (then parameters) to a raw array, or to a tuple of them when `outputs` > 1.
        rules: one rule per array argument.
        arity: number of array arguments; -1: the first argument is a sequence of arrays. By default one for each rule.
            A single rule of several arguments is `joint`, as that of a sequence: it takes which of them are wanted, last,
            and gives a list of cotangents.
        singular: the derivative can be infinite or nan at a finite value.
        outputs: number of outputs; the first `differentiable` of them, by default all, take part in gradients.
        zero_filled: the rules take zeros for the cotangent of an output that got none, in place of None.
        constant_in: in what the derivative is constant and PyTorch's depends on it: recorded cotangents stay connected with
            it, with derivative 0. In the form of `saves`; "" where what is saved is only compared, in PyTorch as well.
        saves: what the rules read, which an entry keeps: see SAVES_REMEDY; linear ops may leave it out for nothing.
            `saved` has it by rule, `saved_outputs` which of several outputs an entry keeps, if any.
        params: names of the parameters that follow the arrays; by default as the first rule calls them, or else the forward.
        in_place: the op of an array that is written into, on raw arrays: in_place(x, *args, *params).
        raw_backward: backward on raw arrays of an entry in the layout that the op has on its quick path, where more than the
            rule's text is to be gained.
        shortcut: makes of the backward on raw arrays, which trusts its products, one that may read the entry's residual.
        zero_blocks: what stays 0 where a cotangent is wholly 0 in it: "slices" along the parameter `dim` or `dims` (the
            result lacks them unless there is a parameter `keepdim` that is set, or none), or "matrices".
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
        series: whether the text of `jvp` runs on power series, too, or else is given tensors of a lower order; or what gives
            coefficient k of the result's series, better than a text: series(xp, k, *args, *params).
        samples: yields (arrays, params) on which the laws run.
        jax: what JAX runs in place of `forward`: see `kernels.jax.forwards`. None for a ufunc of NumPy's and for a kernel
            that is handed its array namespace, of which `forward` is the one on NumPy's.

    What the machine adds: `call`, the recording function, which `record.make` sets; `id`, the first of the numbers that
    entries carry, see `number`; and in a variant for a renamed node `n_hidden_slots`.
    """

    __slots__ = (
        "arity", "batch", "call", "constant_in", "differentiable", "display", "forward", "id", "in_place", "integers",
        "jax", "joint", "jvp", "kind", "n_hidden_slots", "name", "outputs", "params", "raw_backward", "refuses", "rules",
        "samples", "saved", "saved_outputs", "saves", "saves_nothing", "series", "shortcut", "singular", "wide",
        "zero_blocks", "zero_filled",
    )  # fmt: skip
    id: int
    saved_outputs: frozenset[int]

    def __init__(
        self,
        name: str,
        kind: str,
        forward: Callable[..., Any],
        rules: Sequence[Rule] = (),
        *,
        arity: int | None = None,
        singular: bool = False,
        outputs: int = 1,
        differentiable: int | None = None,
        zero_filled: bool = False,
        saves: str | Sequence[str] | None = None,
        constant_in: str | Sequence[str] | None = None,
        params: Sequence[str] | None = None,
        in_place: Callable[..., None] | None = None,
        raw_backward: Callable[..., None] | None = None,
        shortcut: Callable[[Any], Any] | None = None,
        zero_blocks: str | None = None,
        display: str | Callable[[Recorded], str] | None = None,
        integers: str = "keep",
        wide: bool | None = None,
        refuses: Callable[[str, Any, list[Any]], None] | None = None,
        batch: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        series: bool | Callable[..., Any] = True,
        jax: str | Callable[..., Any] | None = None,
        samples: Callable[[], Any] | None = None,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"op {name}: unknown kind {kind}")
        if jax is None and not (isinstance(forward, types.MethodType) or hasattr(forward, "nin")):
            raise TypeError(f"op {name}: {JAX_REMEDY}")
        self.name, self.kind, self.forward, self.jax = name, kind, forward, jax
        self.arity = arity if arity is not None else len(rules) or 1
        self.joint = self.arity > 1 and len(rules) == 1
        self.rules: tuple[Rule, ...] = tuple(rules) * (self.arity if self.joint else 1) or (None,) * abs(self.arity)
        if len(self.rules) != abs(self.arity):
            raise TypeError(f"op {name}: {len(rules)} rules for {arity} arguments; one for each, or one for all")
        self.singular, self.outputs, self.zero_filled = singular, outputs, zero_filled
        self.differentiable = outputs if differentiable is None else differentiable
        self.params, self.zero_blocks = self._parameters() if params is None else tuple(params), zero_blocks
        if zero_blocks not in (None, "matrices", "slices" if {"dim", "dims"}.intersection(self.params) else None):
            raise TypeError(f'op {name}: zero_blocks is "matrices", or "slices", which takes a "dim" or "dims" in params=')
        self.raw_backward, self.shortcut, self.in_place, self.refuses = raw_backward, shortcut, in_place, refuses
        self.integers, self.samples = integers, samples
        self.batch, self.jvp, self.series = batch, jvp, series
        self.wide = kind != "linear" if wide is None else wide
        self.display = node_name(display or "".join(part.capitalize() for part in name.split("_")))
        self.saves = saves
        self.saved = self._saved()
        self.constant_in = self._by_rule(constant_in) if constant_in else () if constant_in == "" else None
        self.saved_outputs = frozenset().union(*[reads.outputs for reads in self.saved])
        self.saves_nothing = not any(reads.arguments or reads.answer for reads in self.saved)
        self.call: Callable[..., Any] = forward
        self.n_hidden_slots = 0
        enter(self)
        number(self)

    def _saved(self) -> tuple[Reads, ...]:
        saves = self.saves
        if saves is None:
            if self.kind != "linear" and any(map(callable, self.rules)):
                raise TypeError(f"op {self.name}: {SAVES_REMEDY}")
            saves = ""
        return self._by_rule(saves)

    def _by_rule(self, saves: str | Sequence[str]) -> tuple[Reads, ...]:
        texts = [saves] * len(self.rules) if isinstance(saves, str) else list(saves)
        if len(texts) != len(self.rules):
            raise TypeError(f"op {self.name}: {len(texts)} texts for {len(self.rules)} rules; {SAVES_REMEDY}")
        return tuple([self._read_by(rule, text) for rule, text in zip(self.rules, texts, strict=True)])

    def _parameters(self) -> tuple[str, ...]:
        """Names that follow the arrays in the first rule, or in the forward; that of a ufunc has none."""
        rule = next(filter(callable, self.rules), None)
        if rule is None:
            function, first, last = getattr(self.forward, "__func__", self.forward), abs(self.arity), None
            first += function is not self.forward  # the array namespace
        else:
            function, first = rule, abs(self.arity) + (2 if self.kind == "elementwise" else 3)
            last = -1 if self.joint or self.arity < 0 else None  # which arguments are wanted
        code = getattr(function, "__code__", None)
        return () if code is None else code.co_varnames[: code.co_argcount][first:last]

    def _read_by(self, rule: Rule, saves: str) -> Reads:
        nothing: frozenset[int] = frozenset()
        if not callable(rule):
            return Reads(nothing, False, nothing, nothing)
        outputs = range(self.outputs)
        if saves == EVERYTHING:
            every = frozenset(range(abs(self.arity)))  # of a linear op the values do not matter
            if self.kind == "linear":
                return Reads(nothing, False, every, nothing)
            return Reads(every, True, nothing, frozenset(outputs))
        first = 2 if self.kind == "elementwise" else 3
        arguments = rule.__code__.co_varnames[first : first + abs(self.arity)]
        answers = {"ans", *[f"ans[{i}]" for i in outputs]} if self.outputs > 1 else {"ans"}
        words = set(saves.split())
        unknown = words - answers - {f"{name}{part}" for name in arguments for part in ("", ".shape")}
        if unknown:
            raise TypeError(f"op {self.name}: saves= names {min(unknown)!r}, but its rule takes {arguments}; {SAVES_REMEDY}")
        return Reads(
            frozenset([i for i, name in enumerate(arguments) if name in words]),
            bool(words & answers),
            frozenset([i for i, name in enumerate(arguments) if f"{name}.shape" in words]),
            frozenset([i for i in outputs if "ans" in words or f"ans[{i}]" in words]),
        )

    def slice_of(self, params: tuple[Any, ...]) -> tuple[Any, bool]:
        """Of an op whose zero blocks are slices: their dimensions, and whether the result lacks these."""
        given = dict(zip(self.params, params, strict=False))
        return given["dims"] if "dims" in given else given["dim"], not given.get("keepdim", True)

    def on(self, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The recorded op on operands in a sequence, whether or not it takes them as one."""
        return self.call(args, *params) if self.arity < 0 else self.call(*args, *params)

    def alias(self, name: str, display: str) -> Op:
        """Enter the record under another name, too, which its printed form and its node have; all else is shared."""
        other = self.variant(name=name, display=node_name(display))
        enter(other)
        return other

    def variant(self, **fields: Any) -> Op:
        """A copy that differs in some fields, with numbers of its own; TABLE does not know it."""
        other = copy.copy(self)
        for field, value in fields.items():
            setattr(other, field, value)
        number(other)
        return other

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.kind}>"


def node_name(display: str | Callable[[Recorded], str]) -> str | Callable[[Recorded], str]:
    return display if callable(display) or COMPLETE.search(display) else display + "Backward0"


TABLE: Table[Op] = Table()
GENERAL, GENERAL_HALF, SCALAR, PACKED = 1, 2, 3, 4
NUMBERING = threading.Lock()
BY_ID: list[Op] = []  # an entry's number to its op; see `number`
EMPTIED: dict[int, Callable[[Any], Any]] = {}  # by number: what remains of an entry whose rule may not read what it saved


def enter(op: Op) -> None:
    if not TABLE.enter(op.name, op):
        raise ValueError(f"op {op.name} is defined twice")


def number(op: Op) -> None:
    """Give a record the numbers that tape entries carry.

    `id`: plain layout. `id` + GENERAL: general layout; + GENERAL_HALF: general layout, rules run in float32; + SCALAR: plain
    layout, floats for arrays. Each of them + PACKED: what the entry saved went through hooks (see `saved`).
    """
    with NUMBERING:
        op.id = len(BY_ID)
        BY_ID.extend((op,) * (2 * PACKED))
