"""What the machine asks of the rooms above it: one protocol each, implemented by one object there and connected once.

`kernels.backend`, `levels.connection` and `tensor.connection` hand theirs to `core.connect` when they are imported. Core
calls them by `arrays`, `levels` and `facade`; no other call of core runs upwards.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from .op import Op


class ArrayBackend(Protocol):
    """Arrays: the type that the tape saves, and the few functions of them that no record has."""

    type: Any
    float32: Any
    float64: Any
    ufunc: Any
    taken: str

    def as_array(self, value: Any, /) -> Any: ...
    def zeros(self, shape: tuple[int, ...], dtype: Any, /) -> Any: ...
    def ones_like(self, x: Any, /) -> Any: ...
    def multiply(self, x: Any, y: Any, /, *, out: Any) -> Any: ...
    def unbroadcast(self, g: Any, shape: tuple[int, ...], /) -> Any:
        """Sum a broadcast result back to a shape."""

    def finite(self, x: Any, /) -> bool: ...
    def all_finite(self, xs: Iterable[Any], /) -> bool: ...
    def mask_nonfinite(self, t: Any, g: Any, /) -> Any:
        """A product g * d with its non-finite elements at g == 0 set to 0."""

    def owns(self, x: Any, /) -> bool:
        """Whether an array may be written into, as far as it knows."""

    def ensure_owned(self, x: Any, /) -> Any:
        """The array if nothing else refers to its memory, else a copy."""

    def fits(self, d: Any, g: Any, /) -> bool:
        """Whether the product g * d may be written into d."""

    def may_share(self, x: Any, y: Any, /) -> bool: ...
    def overlaps(self, x: Any, /) -> bool:
        """Whether two elements of an array lie in one place."""

    def can_store(self, source: Any, target: Any, /) -> bool:
        """Whether a result of one dtype may be written into an array of another."""

    def beside(self, x: Any, other: Any, /) -> Any:
        """An array on the device of another one."""

    def on_device(self, op: Op, xs: list[Any], params: tuple[Any, ...], /) -> Any:
        """An op's forward on arrays of which some are of other devices."""

    def keep_freed_memory(self) -> object:
        """To be called when a first large result is recorded."""

    def run_silent(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """function(*args) in a context in which NumPy is silent; a RuntimeError beginning with `taken` if one is in it."""

    def silently(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The same, in any case."""

    def quietly(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """function(*args) without floating-point warnings, in the context of the caller."""


class LevelProtocol(Protocol):
    """Forward transforms: what is done with a tensor that stands at a level."""

    def run(self, op: Op, tensors: Sequence[Any], params: tuple[Any, ...], /) -> Any:
        """Run an op of which some operand is at a level."""

    def view(self, t: Any, op: Any, params: tuple[Any, ...], /) -> Any: ...
    def detached(self, t: Any, /) -> Any: ...
    def assign(self, t: Any, result: Any, constant: bool = False, /) -> Any:
        """Give t the value and history of a result; with `constant` its derivatives at all levels stay."""

    def relabelled(self, t: Any, slot: int, /) -> Any:
        """A tensor of the same value under another slot, with the hooks that t keeps alive."""

    def refresh(self, t: Any, /) -> None:
        """Bring a view up to date with the tensor it looks at."""

    def promote_alias(self, t: Any, /) -> None:
        """Make a tensor on a block that a transform wrote into a view of what stands for the block."""

    def remember_value(self, t: Any, /) -> None:
        """To be called before a tensor is written in place, which an open level may have to take back."""

    def remember_gradient(self, t: Any, /) -> None:
        """The same before its `.grad` changes."""

    def backward_of_floats(self, replay: Any, op: Op, /) -> Any:
        """Backward of entries that saved floats for arrays."""

    def backward_linked(self, inner: Any, op: Op, /) -> Any:
        """A recorded backward whose cotangents stay connected with what the record says the derivative is constant in."""

    def add_zeros(self, link: Any, g: Any, cot: dict[int, Any], need: Any, /) -> None:
        """Send zeros to what a cotangent is connected with in that way."""

    def reached_by_links(self, walk: Any, reached: Iterable[int], /) -> dict[int, int]:
        """The inputs of a pass that get zeros because of that alone, each with a slot on which these depend, or 0."""

    def fill(self, finals: dict[int, Any], slot_of: dict[int, int], tensors: Iterable[Any], /) -> None: ...
    def batched_gradient(
        self, ys: list[Any], wanted: list[Any], gs: list[Any], retain: bool, record: bool, unused_ok: bool,
        materialize: bool, /,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Gradients for a batch of cotangents."""


class Facade(Protocol):
    """Tensors: the classes that results are boxed in, and what makes operands of anything else."""

    Tensor: Any
    Parameter: Any
    Scalar: Any
    GradientEdge: Any

    def operands(self, op: Op, args: tuple[Any, ...], /) -> Any:
        """What an op runs on, of promoted dtypes; a ForeignOperand error if an argument is none."""

    def foreign(self, error: Any, args: tuple[Any, ...], is_operator: bool, /) -> Any:
        """What an object among the operands answers to `__torch_function__`, or NotImplemented, or the error."""

    def stack(self, tensors: list[Any], /) -> Any: ...
    def tensor_at(self, edge: Any, output: bool, /) -> Any:
        """A tensor that stands for a gradient edge where gradients are taken: of an output, or by an input."""

    def first_tensor(self) -> object:
        """To be called when a first tensor is made."""

    def tape_text(self, tape: Any, /) -> str:
        """The printed form of a tape."""

    def tape_html(self, tape: Any, /) -> str:
        """What notebooks show of a tape."""


arrays = cast(ArrayBackend, types.SimpleNamespace())
levels = cast(LevelProtocol, types.SimpleNamespace())
facade = cast(Facade, types.SimpleNamespace())
