"""Every law on every sample of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..core.op import Op
from ..table.samples.common import Sample
from .compiled import compiled
from .law import LAWS, record_of, samples_of
from .reverse import saves_necessary


def check(op: Op | str, laws: Iterable[str] | None = None) -> None:
    """Run every law (or the named ones) on every sample of a record; with JAX, compile the record as well.

    Silent if all hold.

    Args:
        op: a record, or its name.
        laws: names of laws; None: all.

    Raises:
        LawError: for the first law that is broken, with the sample, both values and a line that repeats it.

    Example:
        >>> tg.testing.check("sin", ["vjp"])
    """
    op = record_of(op)
    names = list(LAWS if laws is None else laws)
    samples = samples_of(op)
    for name in names:
        for sample in applicable(name, samples, op.kind):
            LAWS[name](op, sample.arrays, sample.params)
    if laws is None:
        saves_necessary(op)
        compiled(op)


DIFFERENTIATING = ("vjp", "second_order", "third_order", "jvp", "mixed_orders", "taylor", "laplacian")


def applicable(law: str, samples: Sequence[Sample], kind: str) -> Iterator[Sample]:
    """The samples a law runs on: finite differences only where the record is smooth, third order on the first of these.

    Of a linear record that is not smooth somewhere, a convention hides part of the gradient (an embedding's padding row).
    """
    if law not in DIFFERENTIATING and (law, kind) != ("adjoint", "linear"):
        yield from samples
        return
    smooth = [s for s in samples if s.smooth]
    yield from smooth[:1] if law == "third_order" else smooth
