"""einsum and tensordot: pairwise contractions, each one matrix product (or an elementwise one where nothing is summed).

An equation is planned once per shapes; running a plan calls only recorded ops, so the result has derivatives of any
order. A label of size 1 in one operand and larger in another broadcasts.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..core.op import TABLE
from ..core.record import Box
from ..kernels.shape import _view, dim_of, shape_of
from ..programs.tracing import leaving
from . import casting
from .arguments import with_grad_fn_name
from .grad_fn_names import set_grad_fn_name
from .operands import of_one_dtype, promoted, promoted_in_full, tensor, to_dtype

Label = str | int  # a letter, or -1, -2, .. for the dimensions of an ellipsis, counted from its end
Labels = tuple[Label, ...]
Shape = tuple[int, ...]
MOST_TRIED = 6  # operands up to which every order is tried


class Preparation(NamedTuple):
    """What happens to an operand first: diagonals taken, sizes that broadcast dropped, labels that no other has summed."""

    diagonals: tuple[tuple[int, int], ...]
    shape: Shape | None
    summed: tuple[int, ...]


class Contraction(NamedTuple):
    """Operands `first` and `second` as stacks of matrices (batch, free, summed) and (batch, summed, free), multiplied.

    An order is None where it is the one that there is.
    """

    first: int
    second: int
    orders: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    shapes: tuple[Shape, Shape]
    op: str
    shape: Shape


class Plan(NamedTuple):
    """Preparations by operand, contractions (each result joins the end of the list), the order of the last one's labels.

    Preparations are None where all operands are taken as they are, the order where it is the one that there is.
    """

    preparations: tuple[Preparation, ...] | None
    contractions: tuple[Contraction, ...]
    order: tuple[int, ...] | None


def einsum(equation: Any, *operands: Any) -> Any:
    """Sum of products of the operands' elements over the labels that the output does not name.

    Args:
        equation: "ij,jk->ik"; a repeated label within an operand takes the diagonal, "..." stands for any leading dimensions
            and broadcasts, and without "->" the output has the labels that occur once, in order. Or the first operand,
            followed by its labels as a list of ints, and so on, and at last the output's labels.
        operands: the tensors, singly or as one sequence.

    Returns:
        A tensor of the operands' common dtype; a view of one operand where nothing is summed.

    Raises:
        RuntimeError: for labels that do not fit the operands' dimensions or each other's sizes.

    Example:
        >>> a, b = tg.tensor([[1, 2], [3, 4]]), tg.tensor([1, 10])
        >>> tg.einsum("ij,j->i", a, b)
        tensor([21, 43])
        >>> tg.einsum("ii", a)
        tensor(5)
    """
    if not isinstance(equation, str):
        equation, operands = _from_sublists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    if casting.OPEN and len(operands) > 1:
        operands = casting.lowered(*operands)
    xs = promoted_in_full([tensor(x) for x in operands])
    steps = plan(equation.replace(" ", ""), tuple([shape_of(x) for x in xs]))
    if len(xs) == 1 and not (steps.preparations and steps.preparations[0].summed):
        return _shown(xs[0], steps)
    return set_grad_fn_name("ViewBackward0", run(steps, xs))


def _from_sublists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    def text(labels: Sequence[Any]) -> str:
        return "".join("..." if n is Ellipsis else chr(97 + n) if n < 26 else chr(39 + n) for n in labels)

    pairs = len(arguments) // 2
    equation = ",".join(text(labels) for labels in arguments[1 : 2 * pairs : 2])
    if len(arguments) % 2:
        equation += "->" + text(arguments[-1])
    return equation, arguments[: 2 * pairs : 2]


# ------------------------------------------------------------------------------------------------------------ planning


@lru_cache(maxsize=1024)
def plan(equation: str, shapes: tuple[Shape, ...]) -> Plan:
    """The steps of an equation for operands of the given shapes."""
    inputs, output = _parse(equation, shapes)
    return plan_of(inputs, output, shapes)


def plan_of(inputs: Sequence[Labels], output: Labels, shapes: Sequence[Shape]) -> Plan:
    """The same for parsed labels."""
    _check_repeated(inputs, shapes)
    sizes = _sizes(inputs, shapes)
    distinct = [_distinct(own, shape, sizes) for own, shape in zip(inputs, shapes, strict=True)]
    labels: list[Labels] = []
    prepared = []
    for i, (diagonals, shape, names) in enumerate(distinct):
        others = {label for j, (_, _, ls) in enumerate(distinct) if j != i for label in ls} | set(output)
        prepared.append(Preparation(diagonals, shape, tuple([k for k, label in enumerate(names) if label not in others])))
        labels.append(tuple([label for label in names if label in others]))
    contractions = []
    live = list(range(len(labels)))
    for first, second in _order(labels, output, sizes):
        live = [k for k in live if k not in (first, second)]
        kept = {label for k in live for label in labels[k]} | set(output)
        step, left = _contract(first, second, labels, sizes, kept)
        if not live and left != tuple(output):  # the other way round it may come out in order
            swapped = _contract(second, first, labels, sizes, kept)
            step, left = swapped if swapped[1] == tuple(output) else (step, left)
        contractions.append(step)
        live.append(len(labels))
        labels.append(left)
    (last,) = live
    preparations = None if set(prepared) == {Preparation((), None, ())} else tuple(prepared)
    return Plan(preparations, tuple(contractions), _changed([labels[last].index(label) for label in output]))


def _changed(order: list[int]) -> tuple[int, ...] | None:
    return None if order == list(range(len(order))) else tuple(order)


def _order(labels: Sequence[Labels], output: Labels, sizes: dict[Label, int]) -> Iterator[tuple[int, int]]:
    """Pairs of operands in the order in which they are contracted: opt_einsum's if it is installed, else greedy.

    `labels` grows as the caller contracts.
    """
    live = list(range(len(labels)))
    path = _optimal_path(labels, output, sizes) if len(live) > 2 else None
    while len(live) > 1:
        if path:
            first, second = sorted(live[k] for k in path.pop(0))
        else:
            first, second = min(
                ((a, b) for k, a in enumerate(live) for b in live[k + 1 :]),
                key=lambda ab: prod(sizes[label] for label in {*labels[ab[0]], *labels[ab[1]]}),
            )
        live = [k for k in live if k not in (first, second)]
        live.append(len(labels))
        yield first, second


def _optimal_path(labels: Sequence[Labels], output: Labels, sizes: dict[Label, int]) -> list[tuple[int, int]] | None:
    """opt_einsum's contraction path, by positions among the operands that are left; None without opt_einsum."""
    try:
        paths = importlib.import_module("opt_einsum.paths")
    except ImportError:
        return None
    find = paths.optimal if len(labels) <= MOST_TRIED else paths.greedy
    path = find([set(names) for names in labels], set(output), sizes)
    return path if all(len(pair) == 2 for pair in path) else None


def _parse(equation: str, shapes: tuple[Shape, ...]) -> tuple[list[Labels], Labels]:
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        more = "more" if len(shapes) > len(terms) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation {equation!r}")
    inputs = [_labels(term, len(shape), i) for i, (term, shape) in enumerate(zip(terms, shapes, strict=True))]
    rank = max(sum(type(label) is int for label in labels) for labels in inputs)
    dots: Labels = tuple(range(-rank, 0))
    if arrow:
        output = _output(right, dots, {label for labels in inputs for label in labels})
    else:
        counts = Counter(label for labels in inputs for label in labels if type(label) is str)
        output = (*dots, *sorted(label for label, n in counts.items() if n == 1))
    return inputs, output


def _check_letters(term: str, where: str) -> None:
    for letter in term.replace("...", "", 1):
        if not (letter.isascii() and letter.isalpha()):
            raise RuntimeError(f"einsum(): invalid subscript given at {where}, subscripts must be in [a-zA-Z]: {letter!r}")


def _labels(term: str, rank: int, operand: int) -> Labels:
    _check_letters(term, f"operand {operand}")
    before, dots, after = term.partition("...")
    named = len(before) + len(after)
    if named > rank or (named < rank and not dots):
        but = "" if dots else " and no ellipsis was given"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({rank}) "
            f"for operand {operand}{but}"
        )
    return (*before, *range(named - rank, 0), *after)


def _output(term: str, dots: Labels, known: set[Label]) -> Labels:
    _check_letters(term, "the output")
    before, found, after = term.partition("...")
    output: Labels = (*before, *(dots if found else ()), *after)
    for label in output:
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in known:
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
    return output


def _sizes(inputs: Sequence[Labels], shapes: Sequence[Shape]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for i, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for label, n in zip(labels, shape, strict=True):
            seen = sizes.setdefault(label, n)
            if seen == 1:
                sizes[label] = n
            elif n not in (1, seen):
                name = "..." if type(label) is int else label
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {n} for operand {i} which does not broadcast with previously seen "
                    f"size {seen}"
                )
    return sizes


def _check_repeated(inputs: Sequence[Labels], shapes: Sequence[Shape]) -> None:
    for i, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        first: dict[Label, int] = {}
        for label, n in zip(labels, shape, strict=True):
            if first.setdefault(label, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {n} != "
                    f"{first[label]}"
                )


def _distinct(
    labels: Labels, shape: Shape, sizes: dict[Label, int]
) -> tuple[tuple[tuple[int, int], ...], Shape | None, Labels]:
    """Diagonals that leave each label once, the shape without sizes that broadcast (None: as it is), and the labels left."""
    names, lengths = list(labels), list(shape)
    diagonals = []
    for label in dict.fromkeys(labels):
        while names.count(label) > 1:
            a = names.index(label)
            b = names.index(label, a + 1)
            diagonals.append((a, b))
            names = [*names[:a], *names[a + 1 : b], *names[b + 1 :], label]
            lengths = [*lengths[:a], *lengths[a + 1 : b], *lengths[b + 1 :], lengths[a]]
    full = [k for k, label in enumerate(names) if lengths[k] == sizes[label]]
    dropped = tuple([lengths[k] for k in full]) if len(full) < len(names) else None
    return tuple(diagonals), dropped, tuple([names[k] for k in full])


def _contract(
    first: int, second: int, labels: Sequence[Labels], sizes: dict[Label, int], kept: set[Label]
) -> tuple[Contraction, Labels]:
    a, b = labels[first], labels[second]
    both = [label for label in a if label in b]
    batch = [label for label in both if label in kept]
    summed = [label for label in both if label not in kept]
    free_a = [label for label in a if label not in b]
    free_b = [label for label in b if label not in a]

    def of(names: Sequence[Label]) -> Shape:
        return tuple([sizes[label] for label in names])

    if summed:
        op = "matmul"
        head = of(batch)
        shapes = (*head, prod(of(free_a)), prod(of(summed))), (*head, prod(of(summed)), prod(of(free_b)))
        orders = [*batch, *free_a, *summed], [*batch, *summed, *free_b]
    else:
        op = "mul"
        shapes = (*of(batch), *of(free_a), *[1] * len(free_b)), (*of(batch), *[1] * len(free_a), *of(free_b))
        orders = [*batch, *free_a], [*batch, *free_b]
    result = (*batch, *free_a, *free_b)
    positions = _changed([a.index(label) for label in orders[0]]), _changed([b.index(label) for label in orders[1]])
    return Contraction(first, second, positions, shapes, op, of(result)), result


# ------------------------------------------------------------------------------------------------------------- running


def run(p: Plan, operands: Sequence[Any]) -> Any:
    """Carry a plan out on tensors."""
    xs = list(operands)
    if p.preparations:
        xs = [_prepared(x, step) for x, step in zip(xs, p.preparations, strict=True)]
        if any(step.summed for step in p.preparations):
            xs = promoted(xs)  # sums of integers are int64
    for step in p.contractions:
        x = _arranged(xs[step.first], step.orders[0], step.shapes[0])
        y = _arranged(xs[step.second], step.orders[1], step.shapes[1])
        xs.append(_reshaped(TABLE[step.op].call(x, y), step.shape))
    result = _arranged(xs[-1], p.order)
    return result if p.contractions else result.contiguous()


def _shown(x: Any, p: Plan) -> Any:
    """One operand without sums: a view, as in PyTorch."""
    for step in p.preparations or ():
        for a, b in step.diagonals:
            x = _view(x, "diagonal", 0, a, b)
        if step.shape is not None:
            x = _view(x, "reshape", step.shape)
    return _view(x, "permute", p.order or tuple(range(len(shape_of(x)))))


def _prepared(x: Any, step: Preparation) -> Any:
    for a, b in step.diagonals:
        x = TABLE["diagonal"].call(x, 0, a, b)
    if step.shape is not None:
        x = _reshaped(x, step.shape)
    if not step.summed:
        return x
    wide = to_dtype(x, np.dtype(np.int64)) if x._d.dtype.kind in "biu" else x
    return TABLE["sum"].call(wide, step.summed, False)


def _arranged(x: Any, order: tuple[int, ...] | None, shape: Shape | None = None) -> Any:
    if order is not None:
        x = TABLE["permute"].call(x, order)
    return x if shape is None else _reshaped(x, shape)


def _reshaped(x: Any, shape: Shape) -> Any:
    return x if x._d.shape == shape else TABLE["reshape"].call(x, shape)


# ----------------------------------------------------------------------------------------------------------- tensordot


@with_grad_fn_name("ViewBackward0")
@casting.in_16_bits
def tensordot(a: Any, b: Any, dims: Any = 2, *, axes: Any = None) -> Any:
    """Sum of products over pairs of dimensions.

    Args:
        a, b: tensors of one dtype.
        dims: the number of last dimensions of a and first of b to sum over, default 2, or two sequences of dimensions.
        axes: NumPy's name of dims.

    Returns:
        A tensor of a's other dimensions followed by b's.

    Raises:
        RuntimeError: if the sizes of a pair differ, or the sequences differ in length, or the dtypes differ.

    Example:
        >>> tg.tensordot(tg.ones(3, 4, 5), tg.ones(4, 3, 2), dims=([1, 0], [0, 1])).shape
        torch.Size([5, 2])
    """
    x, y = tensor(a), tensor(b)
    of_one_dtype("both inputs should have same dtype, but got", x, y)
    sx, sy = shape_of(x), shape_of(y)
    dims = dims if axes is None else axes
    if isinstance(dims, Box):
        numbers = leaving(dims, "dims that are a tensor")
        dims = numbers.item() if numbers.size == 1 else numbers.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(len(sx), len(sy)):
            raise RuntimeError(f"tensordot expects dims >= 0 and at most the operands' dimensions, but got dims={dims}")
        left, right = tuple(range(len(sx) - dims, len(sx))), tuple(range(dims))
    else:
        left, right = [tuple(d) if isinstance(d, list | tuple) else (d,) for d in dims]
        left, right = tuple([dim_of(d, len(sx)) for d in left]), tuple([dim_of(d, len(sy)) for d in right])
    if len(left) != len(right):
        raise RuntimeError(f"both dimension lists should have same length: got {list(left)} and {list(right)}")
    return to_dtype(run(_tensordot_plan(sx, sy, left, right), [x, y]), x._d.dtype)


@lru_cache(maxsize=1024)
def _tensordot_plan(sx: Shape, sy: Shape, left: tuple[int, ...], right: tuple[int, ...]) -> Plan:
    for d, e in zip(left, right, strict=True):
        if sx[d] != sy[e] and 1 not in (sx[d], sy[e]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {sx[d]} in dim {d} and second has size {sy[e]} in "
                f"dim {e}"
            )
    a: list[Label] = [f"x{d}" for d in range(len(sx))]
    b: list[Label] = [f"y{d}" for d in range(len(sy))]
    for d, e in zip(left, right, strict=True):
        b[e] = a[d]
    output = [label for d, label in enumerate(a) if d not in left] + [label for e, label in enumerate(b) if e not in right]
    return plan_of([tuple(a), tuple(b)], tuple(output), [sx, sy])
