"""PyTorch's settings of its own machinery: those that mean something on NumPy are obeyed, the others remembered."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..core.warning import warn

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "get_num_interop_threads", "get_num_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
    "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip

MODES = ("default", "warn", "error")
PRECISIONS = ("highest", "high", "medium")
_state: dict[str, Any] = {"deterministic": 0, "precision": "highest", "warn always": False, "threads": None, "interop": None}

# ------------------------------------------------------------------------------------------------------------- threads


def _blas() -> Any:
    """threadpoolctl, which reaches the threads of NumPy's BLAS; None where it is not installed."""
    try:
        return importlib.import_module("threadpoolctl")
    except ImportError:
        return None


def _positive(name: str, count: int) -> int:
    if not isinstance(count, int):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return count


def get_num_threads() -> int:
    """Number of threads of NumPy's matrix products: threadpoolctl's answer; else what was set, or the number of processors.

    Example:
        >>> tg.get_num_threads() >= 1
        True
    """
    library = _blas()
    known = [pool["num_threads"] for pool in library.threadpool_info()] if library else []
    if known:
        return max(known)  # type: ignore[no-any-return]
    return _state["threads"] or int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)


def set_num_threads(count: int, /) -> None:
    """Use that many threads for NumPy's matrix products. Needs threadpoolctl; without it the number is only remembered.

    Args:
        count: the number, >= 1.

    Raises:
        RuntimeError: for a number below 1.

    Example:
        >>> tg.set_num_threads(tg.get_num_threads())
    """
    _state["threads"] = _positive("set_num_threads", count)
    library = _blas()
    if library:
        library.threadpool_limits(limits=count)


def get_num_interop_threads() -> int:
    """Number of threads that run operations beside each other: what was set, else 1, since operations run one by one.

    Example:
        >>> tg.get_num_interop_threads() >= 1
        True
    """
    return _state["interop"] or 1


def set_num_interop_threads(count: int, /) -> None:
    """Remember a number of threads for operations beside each other; they run one by one.

    Args:
        count: the number, >= 1.

    Raises:
        RuntimeError: for a number below 1.

    Example:
        >>> tg.set_num_interop_threads(tg.get_num_interop_threads())
    """
    _state["interop"] = _positive("set_num_interop_threads", count)


# ---------------------------------------------------------------------------------------------------------- determinism


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember whether results must be the same each time, as they are here anyway.

    Args:
        mode: a bool.
        warn_only: whether operations that cannot should warn and not fail.

    Raises:
        TypeError: for another mode.

    Example:
        >>> tg.use_deterministic_algorithms(True)
        >>> tg.are_deterministic_algorithms_enabled()
        True
        >>> tg.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms(): argument 'mode' must be bool, not {type(mode).__name__}")
    _state["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for.

    Example:
        >>> tg.are_deterministic_algorithms_enabled()
        False
    """
    return bool(_state["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether deterministic algorithms were asked for with warn_only.

    Example:
        >>> tg.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _state["deterministic"] == 1  # type: ignore[no-any-return]


def get_deterministic_debug_mode() -> int:
    """What use_deterministic_algorithms set: 0 (off), 1 (warn only) or 2 (on).

    Example:
        >>> tg.get_deterministic_debug_mode()
        0
    """
    return _state["deterministic"]  # type: ignore[no-any-return]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by number or word.

    Args:
        debug_mode: 0, 1 or 2, or "default", "warn" or "error".

    Raises:
        RuntimeError: for another mode.
        TypeError: for what is neither an int nor a string.

    Example:
        >>> tg.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    known: tuple[Any, ...] = MODES if isinstance(debug_mode, str) else (0, 1, 2)
    if debug_mode not in known:
        names = "one of `default`, `warn`, `error`" if isinstance(debug_mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {names}, but got {debug_mode}")
    _state["deterministic"] = known.index(debug_mode)


# ------------------------------------------------------------------------------------------------------------ numerics


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision set; products of float32 matrices are in float32 always.

    Example:
        >>> tg.get_float32_matmul_precision()
        'highest'
    """
    return _state["precision"]  # type: ignore[no-any-return]


def set_float32_matmul_precision(precision: str) -> None:
    """Remember how much precision products of float32 matrices may lose; here they lose none.

    Args:
        precision: "highest", "high" or "medium"; another word is left with a warning.

    Example:
        >>> tg.set_float32_matmul_precision("highest")
    """
    if precision in PRECISIONS:
        _state["precision"] = precision
    else:
        known = "'highest', 'high', or 'medium'"
        warn(f"{precision} is not one of {known}; the current setFloat32MatmulPrecision call has no effect.")


def set_flush_denormal(mode: bool, /) -> bool:
    """Ask for denormal numbers to be flushed to 0: NumPy keeps them, and this says so.

    Args:
        mode: a bool.

    Returns:
        Whether the wish is fulfilled: not mode.

    Example:
        >>> tg.set_flush_denormal(True)
        False
    """
    return not mode


# ------------------------------------------------------------------------------------------------------------ warnings


def set_warn_always(b: bool, /) -> None:
    """Remember whether repeated warnings were asked for; Python's `warnings.simplefilter("always")` is what shows them.

    Args:
        b: a bool.

    Example:
        >>> tg.set_warn_always(False)
    """
    _state["warn always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """Whether set_warn_always(True) was called.

    Example:
        >>> tg.is_warn_always_enabled()
        False
    """
    return _state["warn always"]  # type: ignore[no-any-return]
