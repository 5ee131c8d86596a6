"""Random draws inside vmap: which samples share them, and how an aborted attempt takes them back."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from .. import errors
from ..contexts import mode
from ..core.level import LEVEL
from .undo import remember
from .vmap import Batch

LOOP: ContextVar[SampleLoop | None] = mode("tapegrad_loop", None)


class SampleLoop:
    """Samples (or chunks of them) that run one after the other: what vmap's `randomness` means for their draws.

    Attributes:
        states: generators that were drawn from, with what they were before.
    """

    def __init__(self, randomness: str) -> None:
        self.randomness = randomness
        self.outer = LOOP.get()
        self.states: dict[Any, Any] = {}

    def __enter__(self) -> SampleLoop:
        LOOP.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        LOOP.set(self.outer)

    def restart(self) -> None:
        """Begin another sample: with "same" it draws the numbers of the first."""
        for generator, state in self.states.items():
            generator.set_state(state)


def inside() -> bool:
    """Whether a transform is running, so that a draw has to be registered."""
    return LEVEL.get() is not None or LOOP.get() is not None


def register_draw(generator: Any) -> list[Batch]:
    """Remember that a generator is drawn from; the vmaps whose samples draw each its own numbers, from the outermost on.

    Raises:
        RuntimeError: inside a vmap with randomness="error".
    """
    level, loop, batches, state = LEVEL.get(), LOOP.get(), [], None
    while loop is not None:
        refuse(loop.randomness)
        if loop.randomness == "same" and generator not in loop.states:
            loop.states[generator] = state = generator.get_state() if state is None else state
        loop = loop.outer
    innermost = level
    while level is not None:
        if isinstance(level, Batch):
            refuse(level.randomness)
            if level.randomness == "different":
                batches.append(level)
        if ("draws", generator) not in level.undo:
            state = generator.get_state() if state is None else state
        level = level.outer
    if innermost is not None and state is not None:
        before = state
        remember(("draws", generator), lambda: generator.set_state(before))
    return batches[::-1]


def refuse(randomness: str) -> None:
    if randomness == "error":
        raise errors.random_in_vmap()


def differing(t: Any) -> list[Batch]:
    """The vmaps whose samples give a tensor different values, as `batches_of`, for numbers that depend on these.

    Raises:
        RuntimeError: one of them has randomness="same".
    """
    batches = batches_of(t)
    if any([level.randomness == "same" for level in batches]):
        raise errors.same_with_batched()
    return batches


def batches_of(t: Any) -> list[Batch]:
    """The vmaps whose samples give a tensor different values, from the outermost on."""
    found = []
    while t._st is not None and t._st.level is not None:
        if t._st.payload is not None and isinstance(t._st.level, Batch):
            found.append(t._st.level)
        t = t._st.primal
    return found[::-1]
