"""Mixed precision (torch.amp): operations in 16 bits, and losses scaled so that gradients do not underflow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from . import dtypes
from .contexts import ContextDecorator
from .core.record import running_trace
from .core.warning import warn
from .functions import casting, create
from .functions.elementwise import where
from .functions.joining import stack
from .later import mark as _mark
from .modes import no_grad
from .tensor.tensor import Tensor

__all__ = [
    "GradScaler", "autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled",
]  # fmt: skip

DEFAULTS = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
HALVES = (dtypes.bfloat16, dtypes.float16)
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", Tensor, list[Tensor], tuple[Tensor, ...])


class autocast(ContextDecorator):
    """Matrix products and convolutions of float32 tensors run in a 16-bit dtype, losses in float32, as in PyTorch.

    A context manager or decorator. The operations are those of PyTorch's CPU autocast; float64 is not cast. There is no CUDA
    device, so "cuda" warns and has no effect, as in PyTorch on a machine without one.

    Args:
        device_type: "cpu" or "cuda".
        dtype: bfloat16 (the default on the CPU; needs ml_dtypes) or float16.
        enabled: if False, nothing is cast inside, even within another autocast context.
        cache_enabled: no effect; parameters are cast at each use.

    Raises:
        ValueError: if device_type is not a string.
        RuntimeError: if device_type is neither "cpu" nor "cuda".

    Example:
        >>> with tg.autocast("cpu", dtype=tg.float16):
        ...     print((tg.ones(2, 2) @ tg.ones(2, 2)).dtype)
        torch.float16
    """

    def __init__(
        self, device_type: str, dtype: dtypes.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _check_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        super().__init__()
        self.device, self.fast_dtype = device_type, get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and device_type == "cuda":
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            enabled = False
        elif enabled and self.fast_dtype not in HALVES:
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports "
                f"dtypes of {', '.join(map(str, HALVES))} currently."
            )
            enabled = False
        self._enabled = enabled

    def present(self) -> Any:
        return casting.present()

    def enter(self) -> None:
        if self.device == "cpu":
            casting.enter(dtypes.to_numpy(self.fast_dtype) if self._enabled else None, self._previous[-1])

    def leave(self, previous: Any) -> None:
        casting.leave(previous)

    def entered(self, previous: Any) -> autocast:
        return self

    def __call__(self, func: F) -> F:
        """Decorator: each call of func runs inside this context."""
        if not callable(func):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(func).__name__}.")

        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return call  # type: ignore[return-value]


def _check_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast exists for a device type: True for "cpu" and "cuda".

    Args:
        device_type: name of a device type, such as "cpu".

    Example:
        >>> tg.amp.is_autocast_available("cpu"), tg.amp.is_autocast_available("mps")
        (True, False)
    """
    return device_type in DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is active for a device type; always False for "cuda".

    Args:
        device_type: "cpu" or "cuda", the default, as in PyTorch.

    Example:
        >>> with tg.autocast("cpu", dtype=tg.float16):
        ...     print(tg.is_autocast_enabled("cpu"), tg.is_autocast_enabled("cuda"))
        True False
    """
    return device_type == "cpu" and casting.current() is not None


def is_autocast_cpu_enabled() -> bool:
    """Whether CPU autocast is active.

    Example:
        >>> with tg.autocast("cpu", dtype=tg.float16):
        ...     print(tg.is_autocast_cpu_enabled())
        True
    """
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype of the active autocast context, else the default: bfloat16 for "cpu", float16 for "cuda".

    Args:
        device_type: "cpu" or "cuda".

    Example:
        >>> with tg.autocast("cpu", dtype=tg.float16):
        ...     print(tg.get_autocast_dtype("cpu"))
        torch.float16
        >>> tg.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    current = casting.current() if device_type == "cpu" else None
    return DEFAULTS[device_type] if current is None else dtypes.of(current)


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """The dtype of the active CPU autocast, else the default, bfloat16: get_autocast_dtype("cpu").

    Example:
        >>> tg.get_autocast_cpu_dtype()
        torch.bfloat16
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """The dtype of autocast for "cuda", float16: get_autocast_dtype("cuda").

    Example:
        >>> tg.get_autocast_gpu_dtype()
        torch.float16
    """
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """False: casts of parameters are not cached.

    Example:
        >>> tg.is_autocast_cache_enabled()
        False
    """
    return False


def clear_autocast_cache() -> None:
    """No effect: casts of parameters are not cached.

    Example:
        >>> tg.clear_autocast_cache()
    """


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None
) -> Callable[..., Any]:
    """Decorator for the forward of an autograd.Function that fixes the dtype in which it runs under autocast.

    Args:
        fwd: the method; None: a decorator is returned.
        device_type: "cpu" or "cuda".
        cast_inputs: floating-point inputs are cast to this dtype and autocast is off inside; None: autocast stays on.

    Example:
        >>> class Square(tg.autograd.Function):
        ...     @staticmethod
        ...     @tg.amp.custom_fwd(device_type="cpu", cast_inputs=tg.float32)
        ...     def forward(ctx, x):
        ...         return x * x
        >>> with tg.autocast("cpu", dtype=tg.float16):
        ...     print(Square.apply(tg.ones(2, dtype=tg.float16)).dtype)
        torch.float32
    """
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return forward(ctx, *args, **kwargs)
        to = dtypes.to_numpy(cast_inputs)
        with autocast(device_type, enabled=False):
            return forward(ctx, *casting.cast(args, to), **casting.cast(kwargs, to))

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorator for the backward of an autograd.Function: it runs under autocast if the forward (custom_fwd) did.

    Args:
        bwd: the method; None: a decorator is returned.
        device_type: "cpu" or "cuda".

    Raises:
        ValueError: for a device_type that is not a string.

    Example:
        >>> class Double(tg.autograd.Function):
        ...     @staticmethod
        ...     @tg.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @tg.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return 2 * g
        >>> tg.func.grad(Double.apply)(tg.tensor(3.0))
        tensor(2.)
    """
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return backward(ctx, *args, **kwargs)

    return call


class GradScaler:
    """Scales a loss so that 16-bit gradients do not underflow, and skips steps whose gradients overflow.

    `scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()`. By default an overflow halves the scale, and
    growth_interval steps without one double it. For "cuda" (the default), which is not available, it warns and is
    disabled, as in PyTorch on a machine without a GPU.

    Args:
        device: "cuda" or "cpu".
        init_scale: the first scale.
        growth_factor: factor (> 1) applied to the scale after growth_interval consecutive steps without inf or nan.
        backoff_factor: factor (< 1) applied to the scale after a step with inf or nan.
        growth_interval: number of consecutive steps after which the scale grows.
        enabled: if False, losses and steps are passed through unchanged.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if enabled and device == "cuda":
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            enabled = False
        if enabled and growth_factor <= 1:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._enabled, self._growth_factor = enabled, growth_factor
        self._backoff_factor, self._growth_interval = backoff_factor, growth_interval
        # tensors, so that a compiled program reads and writes them
        self._scale, self._growth_tracker = create.tensor(float(init_scale), dtype=dtypes.float32), create.tensor(0)
        self._scaled = False
        self._found: dict[int, Any] = {}  # by id of an optimiser: a tensor, whether its gradients contained inf or nan
        self._stepped: set[int] = set()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Files of 0.1.0 have the scale and the count as numbers."""
        self.__dict__.update(state)
        self._scale = create.as_tensor(self._scale, dtype=dtypes.float32)
        self._growth_tracker = create.as_tensor(self._growth_tracker)

    def is_enabled(self) -> bool:
        """Whether scaling is enabled."""
        return self._enabled

    @overload
    def scale(self, outputs: T) -> T: ...
    @overload
    def scale(self, outputs: Iterable[Tensor]) -> Iterable[Tensor]: ...
    def scale(self, outputs: Any) -> Any:
        """The loss times the scale; for a list, tuple or other iterable, each of its losses."""
        if not self._enabled:
            return outputs
        self._scaled = True
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _check_scaled(self, name: str) -> None:
        if not self._scaled:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimiser's parameters by the scale, as before clipping; otherwise step() does it.

        Raises:
            RuntimeError: if called twice for an optimiser since the last update().
            ValueError: for gradients in float16.
        """
        if not self._enabled:
            return
        self._check_scaled("unscale_")
        key = id(optimizer)
        if key in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if key in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype is dtypes.float16 for g in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with no_grad():
            for g in gradients:
                g.mul_(1 / self._scale)
            finite = [g.isfinite().all() for g in gradients]
            self._found[key] = stack(finite).all().logical_not() if finite else create.tensor(False)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call optimizer.step(*args, **kwargs) on the unscaled gradients; skip it if they contain inf or nan.

        Raises:
            RuntimeError: if a closure is given, or for a second step before update().
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scaled("step")
        key = id(optimizer)
        if key in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if key not in self._found:
            self.unscale_(optimizer)
        found, step_unless = self._found[key], getattr(optimizer, "_step_unless", None)
        if running_trace() is not None and step_unless is not None and not args and not kwargs and step_unless(found):
            result = None
        else:
            result = None if found else optimizer.step(*args, **kwargs)
        self._stepped.add(key)
        return result

    def update(self, new_scale: Any = None) -> None:
        """Set the scale for the next step, after all optimisers have stepped: new_scale, or by growth and backoff."""
        if not self._enabled:
            return
        self._check_scaled("update")
        if new_scale is not None:
            self._scale.fill_(new_scale)
        elif not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        else:
            found = stack(list(self._found.values())).any()
            count = self._growth_tracker + 1
            grows = count == self._growth_interval
            grown = self._scale * self._growth_factor
            larger = where(grows & grown.isfinite(), grown, self._scale)
            self._scale.copy_(where(found, self._scale * self._backoff_factor, larger))
            self._growth_tracker.copy_(where(found | grows, 0, count))
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The scale; 1.0 if disabled."""
        return self._scale.item() if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Factor of the scale after growth_interval steps without inf or nan."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set growth_factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Factor of the scale after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set backoff_factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Number of consecutive steps without inf or nan after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set growth_interval."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and counts as a dict; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale.item(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker.item(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of state_dict().

        Raises:
            RuntimeError: for an empty dict.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale.fill_(float(state_dict["scale"]))
        self._growth_tracker.fill_(int(state_dict["_growth_tracker"]))
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()
