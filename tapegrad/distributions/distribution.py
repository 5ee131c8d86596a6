"""The base of all distributions: shapes, checks of parameters and values, expansion."""

from __future__ import annotations

import warnings
from typing import Any, Self

from ..dtypes import Size
from ..modes import no_grad
from ..tensor.tensor import Tensor
from . import constraints
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, undifferentiated

__all__ = ["Distribution"]


class Distribution:
    """Base of distributions, over tensors of shape sample_shape + batch_shape + event_shape.

    A family stores its parameters as attributes named in `arg_constraints`, and defines those of `rsample` (differentiable
    samples) or `sample`, `log_prob`, `cdf`, `icdf`, `entropy`, `mean`, `mode`, `variance` and `support` that exist.

    Args:
        batch_shape: shape of the batch of independent distributions.
        event_shape: shape of one value of one distribution.
        validate_args: check parameters now, and values passed to log_prob, cdf and icdf. Default: the setting of
            set_default_validate_args, initially True unless Python runs with -O.

    Raises:
        ValueError: if a parameter violates its constraint.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions created later check parameters and values by default.

        Raises:
            ValueError: if value is neither True nor False.
        """
        if value not in (True, False):
            raise ValueError(f"value must be True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _take(self, validate_args: bool | None, event_shape: Any = (), /, **parameters: Any) -> None:
        """Initialise with parameters, broadcast to the batch shape."""
        values = broadcast_all(*parameters.values())
        vars(self).update(zip(parameters, values, strict=True))
        Distribution.__init__(self, values[0].shape, event_shape, validate_args)

    def _check_parameters(self) -> None:
        try:
            conditions = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in conditions.items():
            computed = name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or computed:
                continue
            value = getattr(self, name)
            if not constraints.holds(constraint, value):
                raise ValueError(
                    f"Expected parameter {name} ({described(value)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """A distribution with a larger batch shape; parameters are expanded, not copied.

        Args:
            batch_shape: the new batch shape.
            _instance: instance to fill, passed by a subclass with its own __init__.

        Raises:
            NotImplementedError: if the subclass has its own __init__ and does not define expand.
        """
        new: Self = self._get_checked_instance(None, _instance)
        rank = len(self._batch_shape)
        new_shape = Size(batch_shape)
        inherited = [vars(base).get("arg_constraints") for base in reversed(type(self).__mro__)]
        conditions = {k: v for own in inherited if isinstance(own, dict) for k, v in own.items()} | self.arg_constraints
        for name, value in vars(self).items():
            if isinstance(value, Distribution):
                value = value.expand(new_shape + value.batch_shape[rank:])
            elif isinstance(value, Tensor) and name in conditions:
                value = value.expand(new_shape + value.shape[value.ndim - conditions[name].event_dim :])
            elif name in vars(new):  # already set by a subclass
                continue
            setattr(new, name, value)
        new._batch_shape = new_shape
        return new

    @property
    def batch_shape(self) -> Size:
        """Shape of the batch of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """Constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def support(self) -> constraints.Constraint:
        """The support: a constraint."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """Expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """Value of highest probability (density)."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """Variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """Square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of shape sample_shape + batch_shape + event_shape, without gradient."""
        with no_grad():
            return undifferentiated(self.rsample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Reparameterised samples, differentiable in the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Deprecated: sample((n,))."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density or log probability of values, of shape sample_shape + batch_shape."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Cumulative distribution function: P(X <= value)."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Inverse of the cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension.

        Args:
            expand: expand over the batch; False leaves batch dimensions of size 1.
        """
        raise NotImplementedError

    def _enumerated(self, values: Any, expand: bool) -> Tensor:
        """Values along a new first dimension, followed by the batch dimensions."""
        event = values.shape[1:]
        values = values.reshape(-1, *[1] * len(self._batch_shape), *event)
        result: Tensor = values.expand(-1, *self._batch_shape, *event) if expand else values
        return result

    def entropy(self) -> Tensor:
        """Entropy -E[log_prob], in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy())."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """Shape of a sample."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Tensor) -> None:
        """Check a value passed to log_prob, cdf or icdf.

        Raises:
            ValueError: if it is not a tensor, does not broadcast to the distribution's shape, or is outside the support.
        """
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, own = value.shape, self._batch_shape + self._event_shape
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(shape), reversed(own), strict=False)):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {own}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not constraints.holds(support, value):
            raise ValueError(
                f"Expected value argument ({described(value)}) to be within the support ({support!r}) of the distribution "
                f"{self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """The instance that expand fills: a new one unless a subclass passed one."""
        kind: Any = type(self)
        # not by __module__, which a drop-in changes
        home: Any = cls or next(k for k in kind.__mro__ if k.__init__.__globals__["__package__"] == __package__)
        if _instance is None and kind.__init__ is not home.__init__:
            raise NotImplementedError(
                f"Subclass {kind.__name__} of {home.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return kind.__new__(kind) if _instance is None else _instance

    def __repr__(self) -> str:
        try:
            named = [(name, vars(self)[name]) for name in self.arg_constraints if name in vars(self)]
        except NotImplementedError:
            named = []
        shown = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in named]
        return f"{type(self).__name__}({', '.join(shown)})"


class ProbsOrLogits(Distribution):
    """Base of families given by probs or by logits; the other one is computed at its first use."""

    _is_binary = True

    def _take_either(self, probs: Any, logits: Any) -> Any:
        """Store the parameter that is given, probs or logits, and return it."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        (value,) = broadcast_all(value)
        setattr(self, name, value)
        return value

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds, or log probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self) -> Tensor:
        result: Tensor = vars(self)["probs" if "probs" in vars(self) else "logits"]
        return result

    @property
    def param_shape(self) -> Size:
        """Shape of the probabilities."""
        size: Size = self._param.size()
        return size

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        """An uninitialised tensor of the parameters' dtype."""
        return self._param.new(*args, **kwargs)


def described(value: Any) -> str:
    """Type and shape of a value, for messages."""
    return f"{type(value).__name__} of shape {tuple(value.shape)}"
