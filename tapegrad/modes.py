"""Switches of recording: context managers that also work as calls and as decorators of any kind of function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from . import errors
from .contexts import ContextDecorator
from .core.state import ANOMALY, INFERENCE, RECORDING, current_tape, is_recording, restore_recording, set_recording
from .core.warning import warn

F = TypeVar("F", bound=Callable[..., Any])


class GradMode(ContextDecorator):
    """A context manager, also a decorator, of which recording is restored on leaving."""

    def present(self) -> Any:
        return RECORDING.get()

    def leave(self, previous: Any) -> None:
        restore_recording(previous)


class BareGradMode(GradMode):
    """A mode that decorates without parentheses, too."""

    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls) -> Self: ...
    def __new__(cls, orig_func: Any = None) -> Any:
        return cls()(orig_func) if callable(orig_func) else super().__new__(cls)


class no_grad(BareGradMode):
    """Nothing is recorded inside: results do not require grad.

    Example:
        >>> w = tg.ones(2, requires_grad=True)
        >>> with tg.no_grad():
        ...     w -= 0.5  # not recorded
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
    """

    def enter(self) -> None:
        set_recording(False)


class enable_grad(BareGradMode):
    """Recording is on inside, also within no_grad.

    Example:
        >>> w = tg.ones(2, requires_grad=True)
        >>> with tg.no_grad(), tg.enable_grad():
        ...     print((2 * w).requires_grad)
        True
    """

    def enter(self) -> None:
        set_recording(True)


class set_grad_enabled(GradMode):
    """Recording on or off: takes effect at once when called, and until the end of the block as a context manager.

    Example:
        >>> w = tg.ones(2, requires_grad=True)
        >>> with tg.set_grad_enabled(False):
        ...     print((2 * w).requires_grad)
        False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._initial = RECORDING.get()
        set_recording(self.mode)

    def present(self) -> Any:
        return self._initial

    def enter(self) -> None:
        set_recording(self.mode)

    def clone(self) -> GradMode:
        return enable_grad() if self.mode else no_grad()

    def __call__(self, function: F) -> F:
        restore_recording(self._initial)
        return super().__call__(function)


class inference_mode(GradMode):
    """no_grad under another name; is_inference_mode_enabled() tells.

    Example:
        >>> w = tg.ones(2, requires_grad=True)
        >>> with tg.inference_mode():
        ...     print((2 * w).requires_grad)
        False
    """

    mode: bool

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else super().__new__(cls)

    if not TYPE_CHECKING:  # checkers would take it instead of __new__

        def __init__(self, mode: bool = True) -> None:
            super().__init__()
            self.mode = mode is not False

    def present(self) -> Any:
        return RECORDING.get(), INFERENCE.get()

    def enter(self) -> None:
        set_recording(not self.mode)
        INFERENCE.set(self.mode)

    def leave(self, previous: Any) -> None:
        restore_recording(previous[0])
        INFERENCE.set(previous[1])

    def clone(self) -> GradMode:
        return inference_mode(self.mode)


class AnomalyMode(GradMode):
    """Base of the switches of anomaly mode."""

    mode, check_nan = True, True

    def present(self) -> Any:
        return ANOMALY.get()

    def enter(self) -> None:
        ANOMALY.set((self.mode, self.check_nan))

    def leave(self, previous: Any) -> None:
        ANOMALY.set(previous)

    def clone(self) -> GradMode:
        copy = AnomalyMode()
        copy.mode, copy.check_nan = self.mode, self.check_nan
        return copy


class set_detect_anomaly(AnomalyMode):
    """Anomaly mode: a nan that appears in a backward pass raises, naming the op and the line that recorded it.

    Example:
        >>> with tg.autograd.set_detect_anomaly(True):
        ...     print(tg.is_anomaly_enabled())
        True
    """

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        super().__init__()
        self.mode, self.check_nan = mode, check_nan
        self._initial = ANOMALY.get()
        self.enter()

    def present(self) -> Any:
        return self._initial

    def __call__(self, function: F) -> F:
        ANOMALY.set(self._initial)
        return super().__call__(function)


class detect_anomaly(AnomalyMode):
    """Anomaly mode for a block or a function; see set_detect_anomaly.

    A pass that fails warns with the line that recorded the operation; with `check_nan`, a nan in a gradient fails it.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self.check_nan = check_nan
        warn(errors.ANOMALY_ON)


def is_grad_enabled() -> bool:
    """Whether operations are recorded here: not inside no_grad.

    Example:
        >>> with tg.no_grad():
        ...     print(tg.is_grad_enabled())
        False
    """
    return is_recording()


def is_inference_mode_enabled() -> bool:
    """Whether inference_mode is on here.

    Example:
        >>> with tg.inference_mode():
        ...     print(tg.is_inference_mode_enabled())
        True
    """
    return INFERENCE.get()


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on here.

    Example:
        >>> with tg.autograd.set_detect_anomaly(True):
        ...     print(tg.is_anomaly_enabled())
        True
    """
    return ANOMALY.get()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, where it is on, raises for a nan.

    Example:
        >>> tg.is_anomaly_check_nan_enabled()
        True
    """
    return ANOMALY.get()[1]


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off here.

    Args:
        enabled: whether backward passes name the operation and the line that recorded it, for an error in them.
        check_nan: whether a nan that appears in a backward pass is such an error.

    Example:
        >>> tg.set_anomaly_enabled(True)
        >>> tg.is_anomaly_enabled()
        True
        >>> tg.set_anomaly_enabled(False)
    """
    ANOMALY.set((enabled, check_nan))


def tape() -> Any:
    """The tape of this thread (or task), the list of the operations recorded so far: `len`, `print` and `clear` work on it.

    Example:
        >>> tg.tape().clear()
        >>> y = tg.ones(2, requires_grad=True).sin().sum()
        >>> len(tg.tape())
        2
    """
    return current_tape()
