"""Random numbers that depend on parameters smoothly: gamma numbers, points of the simplex; and binomial ones.

The public functions of the records in `table.sampling`.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..core.op import TABLE
from ..core.record import Box
from ..table.sampling import _gamma_path, _simplex_path
from .arguments import with_out
from .create import drawn_from
from .joining import stack
from .operands import floating
from .shape import broadcast_tensors


def _standard_gamma(input: Any, generator: Any = None) -> Any:
    """Gamma numbers of rate 1, each element the shape of one; differentiable in the shapes, to any order."""
    a = floating(input, "gamma_cpu", "biuc")
    return _gamma_path(a, a.detach(), drawn_from(lambda g, shapes: g.standard_gamma(shapes), a.detach(), generator))


def _sample_dirichlet(input: Any, generator: Any = None) -> Any:
    """Points of the simplex, distributed as Dirichlet's with the concentrations along the last dimension.

    Differentiable in the concentrations, to any order.
    """
    a = floating(input, "dirichlet", "biuc")
    return _simplex_path(a, a.detach(), drawn_from(lambda g, shapes: g.dirichlet(shapes), a.detach(), generator))


@with_out
def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """Numbers of successes in count trials of probability prob, which broadcast; they carry no gradient.

    Args:
        count: float tensor of numbers of trials.
        prob: tensor of probabilities, of count's dtype.
        generator: the stream to draw from, default the one that `manual_seed` seeds.

    Returns:
        Tensor of their dtype and common shape.

    Raises:
        TypeError: for what is not a tensor.
        ValueError: for integers.
        RuntimeError: for two different dtypes.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.binomial(tg.tensor([10.0, 100.0]), tg.tensor([0.5, 0.9]))
        tensor([ 7., 89.])
    """
    given = {"count": count, "prob": prob}
    for position, (name, value) in enumerate(given.items(), 1):
        if not isinstance(value, Box):
            raise TypeError(
                f"binomial(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
            )
    for name, value in given.items():
        if value._d.dtype.kind in "biuc":
            found = errors.dtype_name(value._d.dtype)
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {found}")
    if count._d.dtype != prob._d.dtype:
        wrong, wanted = errors.dtype_name(prob._d.dtype), errors.dtype_name(count._d.dtype)
        raise RuntimeError(f"Found dtype {wrong} but expected {wanted}: count and prob must have one dtype")
    both = stack([t.detach() for t in broadcast_tensors(count, prob)], -1)
    return drawn_from(lambda g, pairs: g.binomial(pairs[..., 0], pairs[..., 1]), both, generator)


def _standard_gamma_grad(self: Any, output: Any) -> Any:
    """The derivative of a gamma number by its shape `self`."""
    return -TABLE["gamma_ratio"].call(self, output, 1)


def _dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """The derivative of a part of a simplex point by its concentration, over 1 - x; total is the concentrations' sum."""
    return TABLE["beta_ratio"].call(alpha, total - alpha, x, 1, 0) / (x - 1.0)
