"""Running numbers: plain ones of outside that a function changes at each call, and only computes with.

While a call is traced a `Number` stands for each, as for all that is computed of them: the step count of an optimizer
written by hand, `self.t += 1` and `m / (1 - 0.9**self.t)`. The formulas are kept, and Python computes them anew before each
run of the program; what tensors meet of them are inputs of it. Whatever else Python does with such a number ends the trace.
"""

from __future__ import annotations

import ast
import functools
import gc
import operator
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import record
from ..core.alias import has_level
from ..core.op import TABLE
from ..core.record import MARK, Box, getframe, peek_data, running_trace
from ..programs.trace import user_location
from ..programs.tracing import abort_trace, unfit
from .effects import Effect, Store, swapped
from .inputs import Stale
from .numbers import Integer
from .pending import is_on_device
from .places import Place, held, identity
from .source import functions_of
from .uses import Names, constant_of, is_callee, is_key, is_outside, mentioned, parents_of

WHAT = (
    "Python code that does more than compute with a number which changes from call to call (write n ** 0.5 for "
    "math.sqrt(n), or keep the number in a tensor)"
)
KINDS = (int, float)
LARGEST = 1 << 53  # integers up to here are exact as floats
WITH_TENSORS = frozenset(("add", "div", "divide", "mul", "multiply", "rsub", "sub", "subtract", "true_divide"))


class Of(NamedTuple):
    """An operand that is a running number."""

    number: int


class Running:
    """The running numbers of a traced call.

    Attributes:
        places: where those of outside are.
        kinds: the types of all, in order: of those of outside, and of what was computed.
        code: (function, operands) for each that was computed.
        now: the values of all at the present call.
        ends: which number each place holds after the call.
        problem: why no program can do the same; None.
    """

    def __init__(self, places: Sequence[Place], trace: Any) -> None:
        self.places = [(container, key) for container, key, _ in places]
        self.kinds: list[type] = [type(value) for *_, value in places]
        self.code: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.now: list[Any] = [value for *_, value in places]
        self.ends: list[int] = []
        self.problem: str | None = None
        self.made: list[Number] = []
        self.trace: Any = weakref.ref(trace)

    def begin(self) -> None:
        """Put numbers that stand for the others in their places."""
        for i, (container, key) in enumerate(self.places):
            Store(container, key).apply(container, [self._number(i)])

    def _number(self, i: int) -> Number:
        self.made.append(made := Number(self, i, self.now[i]))
        return made

    def end(self, put_back: Callable[[dict[int, Any]], None], call: Any) -> None:
        """Put plain numbers in their places again.

        Args:
            put_back: the same for all other places; see `Containers.put_back`.
            call: whose result is to have plain numbers, which the program gives like those that have left tensors.
        """
        if not self.places:
            return
        for container, key in self.places:
            now = held(container, key)
            if type(now) is Number:
                self.ends.append(now.number)
                Store(container, key).apply(container, [now.value])
            else:
                self.problem = f"the function sets {key!r}, which changes from call to call, to another value"
            del now  # if nothing else holds it, it is gone
        call.result = swapped(call.result, Returned({id(n): n for n in self.made}))
        others = Found({id(n): n.value for n in self.made})
        put_back(others)
        left = [weakref.ref(n) for n in self.made]
        self.made.clear()
        if any([ref() is not None for ref in left]):
            gc.collect()
        if others.found or any([ref() is not None for ref in left]):
            self.problem = "the function stores a number that changes from call to call"

    def given(self, number: Number) -> Any:
        """The number itself, for the caller."""
        trace = running_trace()
        if trace is None or trace is not self.trace() or abs(number.value) > LARGEST:
            abort_trace(WHAT)
            return number.value
        value = Integer(number.value) if type(number.value) is int else number.value * 1.0  # an object of its own
        read = functools.partial(self._there, number.number)
        what = trace.add_input(record.asarray(number.value), read, "a number").number
        trace.left[id(value)] = value, what, (), user_location()
        return value

    def result(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """What Python computes of numbers."""
        value = function(*map(plain, operands))
        trace, types_known = running_trace(), [type(v) in KINDS or type(v) is Number for v in (*operands, value)]
        if trace is None or trace is not self.trace() or not all(types_known):
            abort_trace(WHAT)
            return value
        self.code.append((function, tuple([Of(v.number) if type(v) is Number else v for v in operands])))
        self.kinds.append(type(value))
        self.now.append(value)
        return self._number(len(self.now) - 1)

    def tensor(self, number: Number, dtype: Any) -> Any:
        """A tensor for a number among operands; the number itself where no trace runs any more."""
        trace = running_trace()
        if trace is None or trace is not self.trace() or abs(number.value) > LARGEST:
            abort_trace(WHAT)
            return number.value
        array = record.asarray(float(number.value))
        trace.add_input(array, functools.partial(self._value, number.number), "a number")
        t = record.wrap(array)
        return t if dtype == array.dtype else TABLE["cast"].call(t, dtype)

    def _there(self, number: int) -> Any:
        return self.now[number]

    def _value(self, number: int) -> float:
        return float(self.now[number])

    def compute(self) -> None:
        """Compute all numbers anew.

        Raises:
            Stale: if that gives something of another type, or an error.
        """
        now = [held(container, key) for container, key in self.places]
        try:
            for function, operands in self.code if [type(v) for v in now] == self.kinds[: len(now)] else ():
                now.append(function(*[now[v.number] if type(v) is Of else v for v in operands]))
        except ArithmeticError as e:
            raise Stale(f"a number that it computes is none now: {e}") from None
        if [type(v) for v in now] != self.kinds or any([abs(v) > LARGEST for v in now if type(v) is int]):
            raise Stale("a number that changes from call to call is of another type now")
        self.now = now

    def effects(self) -> list[Effect]:
        """The changes of the places."""
        ends = zip(self.places, self.ends, strict=True)
        return [Advance(self, *place, end) for i, (place, end) in enumerate(ends) if end != i]

    def signature(self) -> tuple[Any, ...]:
        """Equal for two traces of a function that compute the same."""
        return [(identity(c), key) for c, key in self.places], self.kinds, self.code, self.ends


class Advance(Effect):
    """A place is set to a number that Python has computed."""

    __slots__ = ("number", "running")

    def __init__(self, running: Running, at: Any, key: Any, number: int) -> None:
        super().__init__(at, key)
        self.running, self.number = running, number

    def apply(self, container: Any, values: list[Any]) -> None:
        Store(self.at, self.key).apply(container, [self.running.now[self.number]])


class Found(dict[int, Any]):
    """Objects to be put in place of others; says whether any was."""

    found = False

    def __getitem__(self, key: int) -> Any:
        self.found = True
        return super().__getitem__(key)


class Returned(dict[int, Any]):
    """What stands for numbers in a result, by id; gives the numbers."""

    def __getitem__(self, key: int) -> Any:
        n = super().__getitem__(key)
        return n.running.given(n)


class Number:
    """Stands for a number while a call is traced: arithmetic is traced, all else ends the trace and sees the number."""

    __slots__ = ("__weakref__", "number", "running", "value")

    def __init__(self, running: Running, number: int, value: Any) -> None:
        self.running, self.number, self.value = running, number, value

    def __eq__(self, other: object) -> bool:
        return self._equals(other, MARK in getframe(1).f_globals)

    def __ne__(self, other: object) -> bool:
        return not self._equals(other, MARK in getframe(1).f_globals)

    def _equals(self, other: object, by_package: bool) -> bool:
        found = bool(self.value == plain(other))
        if not by_package or type(other) is not int or other != 1:
            abort_trace(WHAT)
        elif found:  # else the package asks whether it can leave a factor out: it need not
            unfit("a number that changes from call to call is 1 at this one")
        return found

    def __getattr__(self, name: str) -> Any:
        abort_trace(WHAT)
        return getattr(self.value, name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        abort_trace(WHAT)
        return np.asarray(self.value, *args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        abort_trace(WHAT)
        return getattr(ufunc, method)(*map(plain, inputs), **kwargs)

    def __copy__(self) -> Any:
        abort_trace(WHAT)
        return self.value

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        abort_trace(WHAT)
        return type(self.value), (self.value,)

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of the package with such a number among its arguments."""
        given = dict(enumerate(args)) | (kwargs or {})
        tensors = [v for v in given.values() if issubclass(type(v), Box)]
        dtypes = {peek_data(v).dtype for v in tensors}
        is_plain = not any([has_level(v) or is_on_device(v) for v in tensors]) and len(dtypes) == 1 and dtypes <= FLOATS
        if is_plain and function.__name__ in WITH_TENSORS and given.keys() <= OPERANDS:
            (dtype,) = dtypes
            given = {key: v.running.tensor(v, dtype) if type(v) is Number else v for key, v in given.items()}
        else:
            abort_trace(WHAT)
        found = {key: plain(v) for key, v in given.items()}
        return function(*[found.pop(i) for i in range(len(args))], **found)


OPERANDS = {0, 1, "alpha", "input", "other"}
FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}


def plain(value: Any) -> Any:
    """The number itself, for one that stands for it."""
    return value.value if type(value) is Number else value


def _computing(function: Callable[..., Any]) -> tuple[Any, Any]:
    """The two methods of an operator."""

    def method(self: Number, other: Any) -> Any:
        return NotImplemented if issubclass(type(other), Box) else self.running.result(function, (self, other))

    def reflected(self: Number, other: Any) -> Any:
        return NotImplemented if issubclass(type(other), Box) else self.running.result(function, (other, self))

    return method, reflected


def _of_one(function: Callable[..., Any]) -> Any:
    return lambda self: self.running.result(function, (self,))


def _reading(name: str) -> Any:
    def method(self: Number, *args: Any) -> Any:
        abort_trace(WHAT)
        return getattr(self.value, name)(*map(plain, args))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _method, _reflected = _computing(getattr(operator, _name))
    setattr(Number, f"__{_name}__", _method)
    setattr(Number, f"__r{_name}__", _reflected)
for _name in ("neg", "pos"):
    setattr(Number, f"__{_name}__", _of_one(getattr(operator, _name)))
for _name in (
    "abs", "bool", "ceil", "complex", "divmod", "float", "floor", "format", "ge", "gt", "hash", "index", "int",
    "le", "lt", "rdivmod", "repr", "round", "str", "trunc",
):  # fmt: skip
    setattr(Number, f"__{_name}__", _reading(f"__{_name}__"))


# ------------------------------------------------------------------------------------------------- which may be such numbers

UNLIKE = frozenset(("isinstance", "issubclass", "replace", "type"))  # with these a function may tell them from others
ARITHMETIC = WITH_TENSORS | {"addcdiv", "addcmul"}
OF_CONTAINERS = frozenset(name for c in (list, dict, set, str) for name in dir(c))


def are_only_computed_with(functions: list[types.FunctionType], names: Names, root: types.CodeType) -> bool:
    """Whether functions do no more than arithmetic with what has one of the names, by their source."""
    own = {f.__name__ for f in functions}
    returning: set[str] = set()  # functions that return what they compute of it
    known: set[str] | None = None
    while known != returning:
        known = set(returning)
        for f in functions:
            trees, words = functions_of(f.__code__), mentioned(f.__code__)
            if not UNLIKE.isdisjoint(words) or (not trees and not words.isdisjoint(frozenset(known).union(*names))):
                return False
            for tree in trees:
                found = Arithmetic(f, tree, own, names, known)
                if not found.fits():
                    return False
                if found.returns and f.__code__ is not root:
                    returning.add(f.__name__)
    return True


class Arithmetic:
    """Where the values of names go in a function, and what is computed of them as long as it may be a plain number.

    Attributes:
        own: names of all functions that are not the package's.
        returning: of those that return such a value.
        returns: whether this one may do so.
    """

    def __init__(self, f: types.FunctionType, tree: Any, own: set[str], names: Names, returning: set[str]) -> None:
        self.code, self.tree, self.own, self.of_outside, self.returning = f.__code__, tree, own, names, returning
        self.globals = f.__globals__
        self.returns = False
        self.parents = parents_of(tree)
        self.outside = {name for name in names.variables if is_outside(self.code, name)}
        self.variables: set[str] = set()  # that have been looked at

    def fits(self) -> bool:
        texts = self.of_outside.attributes | self.of_outside.items
        for node in self.parents:
            if constant_of(node) in texts and not is_key(node, self.parents):
                return False
            name = getattr(node, "id", None) or getattr(node, "attr", None)
            if name in self.returning and isinstance(node, ast.Name | ast.Attribute):
                if not self.used(self.parents[node] if is_callee(node, self.parents) else node):
                    return False
            elif self.is_one(node) and not is_callee(node, self.parents):
                is_read = isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
                if not (self.used(node) if is_read else self.stored(node)):
                    return False
        return True

    def is_one(self, node: ast.AST) -> bool:
        """Whether an expression has one of the names."""
        if isinstance(node, ast.Name):
            return node.id in self.outside
        if isinstance(node, ast.Attribute):
            return node.attr in self.of_outside.attributes
        return isinstance(node, ast.Subscript) and constant_of(node.slice) in self.of_outside.items

    def stored(self, node: ast.AST) -> bool:
        """Whether a target is one of an ordinary assignment."""
        while isinstance(parent := self.parents[node], ast.Tuple):
            node = parent
        return isinstance(parent, ast.Assign | ast.AugAssign)

    def used(self, node: ast.AST) -> bool:
        """Whether what an expression gives is only computed with; an attribute or an item is none of a number."""
        parent: Any = self.parents.get(node)
        if isinstance(parent, ast.keyword):
            node, parent = parent, self.parents[parent]
        if isinstance(parent, ast.BinOp) or (isinstance(parent, ast.UnaryOp) and not isinstance(parent.op, ast.Not)):
            return self.used(parent)
        if isinstance(parent, ast.Call):
            return node is not parent.func and self.takes(parent, node)
        if isinstance(parent, ast.Assign):
            return all([self.is_one(t) or is_data(t) or self.variable(t) for t in parent.targets])
        if isinstance(parent, ast.AugAssign):
            return not isinstance(parent.target, ast.Name) or self.is_one(parent.target) or self.variable(parent.target)
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load)
        return isinstance(parent, ast.Attribute | ast.Expr) or self.returned(parent)

    def returned(self, node: ast.AST) -> bool:
        """Whether something is part of what the function returns; in what the traced one does such a number is found."""
        while isinstance(node, ast.Tuple | ast.List | ast.Dict):
            node = self.parents[node]
        around = node
        while not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            around = self.parents[around]
        fits = around is self.tree and (isinstance(node, ast.Return) or node is self.tree)
        self.returns |= fits
        return fits

    def takes(self, call: ast.Call, argument: ast.AST) -> bool:
        """Whether a call may be given such a number.

        Methods of tensors, and functions of the package, for arithmetic may; other functions where they take tensors alone.
        """
        name = getattr(call.func, "attr", "__")
        module = self.globals.get(getattr(getattr(call.func, "value", None), "id", ""))
        is_function = isinstance(module, types.ModuleType) and MARK in vars(module) and hasattr(record.Tensor, name)
        if name.rstrip("_") in ARITHMETIC:
            return is_function or name not in self.own | OF_CONTAINERS
        return is_function and call.args[:1] == [argument]

    def variable(self, target: ast.AST) -> bool:
        """Whether a target is a variable of the function, which may hold such a number then and is used as one."""
        name = getattr(target, "id", None)
        if name not in self.code.co_varnames or name in self.code.co_cellvars:
            return False
        if name in self.variables:
            return True
        self.variables.add(name)
        found = [node for node in self.parents if isinstance(node, ast.Name) and node.id == name]
        return all([self.used(node) for node in found if isinstance(node.ctx, ast.Load)])


def is_data(target: ast.AST) -> bool:
    """Whether a target is `t.data` or `t.grad`, which no number can be."""
    return isinstance(target, ast.Attribute) and target.attr in ("data", "grad")
