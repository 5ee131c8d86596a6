"""Whose words are printed: PyTorch's, unless a drop-in for another library speaks another dialect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Recorded(NamedTuple):
    """A recorded operation, as far as the name of its node depends on it.

    Attributes:
        op: tapegrad's name of the operation.
        display: PyTorch's name of the node, or the function that gives it.
        number: which operand, 0 or 1, is a Python number; None if none is.
        shapes: of the operands, as far as the tape knows them; empty once the operation is released.
        params: what follows the arrays; empty once the operation is released.
    """

    op: str
    display: str | Callable[[Any], str]
    number: int | None = None
    shapes: tuple[Any, ...] = ()
    params: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How values, nodes and errors are worded.

    Attributes:
        prefix: stands before the names of dtypes and sizes, as in ``torch.float32``.
        every_dtype: whether a tensor prints its dtype also where its values tell it.
        index: the number with which a device prints that has none.
        parameter: stands before the printed form of a Parameter.
        leaves_show_node: whether a leaf that has a gradient prints its node in place of ``requires_grad=True``.
        numpy_detaches: whether a tensor that requires grad gives its values to NumPy, as ``detach()`` would.
        node: the name of a recorded operation's node; None for PyTorch's.
        node_form: how a node prints: its name, its address.
        leaf: the name of the node where a leaf's gradient is accumulated, and the name with which it prints.
        texts: sentences that stand in place of PyTorch's, by the name of the function in ``errors``.
    """

    prefix: str = "torch"
    every_dtype: bool = False
    index: int | None = None
    parameter: str = "Parameter containing:\n"
    leaves_show_node: bool = False
    numpy_detaches: bool = False
    node: Callable[[Recorded], str] | None = None
    node_form: str = "<{} object at {}>"
    leaf: tuple[str, str] = ("torch::autograd::AccumulateGrad", "AccumulateGrad")
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)


PYTORCH = Dialect()
current = PYTORCH


def speak(dialect: Dialect) -> Dialect:
    """Print in a dialect from now on, in all threads; return the one that was spoken before."""
    global current
    before, current = current, dialect
    return before


def sentence(name: str, text: str, **facts: object) -> str:
    """The sentence of the dialect for an error, or else text."""
    own = current.texts.get(name)
    return text if own is None else own.format(**facts)
