"""The Kullback-Leibler divergence, dispatched on the types of the two distributions."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Rule] = {}
_KL_MEMOIZE: dict[tuple[type, type], Rule] = {}
_LOCK = threading.RLock()


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Decorator: register a function of (p, q) as KL(p, q) for these types and their subclasses.

    Of several matching functions the one for the most specific types is used. The types need not be subclasses of
    Distribution: base classes of distributions are allowed.

    Args:
        type_p, type_q: classes.

    Raises:
        TypeError: if an argument is not a type.

    Example:
        >>> class Fixed(tg.distributions.Distribution):
        ...     arg_constraints = {}
        >>> @tg.distributions.register_kl(Fixed, Fixed)
        ... def fixed_fixed(p, q):
        ...     return tg.zeros(())
        >>> tg.distributions.kl_divergence(Fixed(), Fixed())
        tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a subclass of Distribution but got {kind}")

    def register(rule: Rule) -> Rule:
        with _LOCK:
            _KL_REGISTRY[type_p, type_q] = rule
            _KL_MEMOIZE.clear()
        return rule

    return register


def _rule_of(type_p: type, type_q: type) -> Rule:
    """The function for the most specific types; warns if those for p and for q are different functions."""
    fitting = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type {type_q.__name__}; register_kl adds one."
        )
    distance = {(p, q): (type_p.__mro__.index(p), type_q.__mro__.index(q)) for p, q in fitting}
    by_p = min(fitting, key=lambda pair: distance[pair])
    by_q = min(fitting, key=lambda pair: distance[pair][::-1])
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({by_p[0].__name__}, "
            f"{by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Any, q: Any) -> Tensor:
    """KL(p, q) = E_p[log p(x) - log q(x)], of the batch shape; differentiable with respect to the parameters.

    Args:
        p, q: distributions.

    Raises:
        NotImplementedError: if no function is registered for these types.

    Example:
        >>> d = tg.distributions
        >>> d.kl_divergence(d.Normal(1.0, 1.0), d.Normal(0.0, 1.0))  # (mean - 0)**2 / 2
        tensor(0.5000)
    """
    types = type(p), type(q)
    rule = _KL_MEMOIZE.get(types)
    if rule is None:
        with _LOCK:
            rule = _KL_MEMOIZE[types] = _rule_of(*types)
    return rule(p, q)
