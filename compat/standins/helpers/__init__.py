"""Stand-ins for the private helpers of PyTorch's own tests, the same for PyTorch and the drop-in.

`install()` puts them under the modules that test files import. What a file asks for and nothing here has becomes a
`Missing`: a test that uses one is skipped, and says which.
"""

from __future__ import annotations

import importlib
import sys
import types
import unittest
from typing import Any, ClassVar

CONDITIONS = ("TEST_", "IS_", "HAS_", "SM", "RUN_", "BUILD_", "USE_", "PLATFORM_")
PASSING = ("skip", "expectedFailure", "xfail", "slow", "disable", "mark", "retry", "with_tf32", "tf32_on", "gcIf", "serial")
ONLY_ELSEWHERE = tuple(f"only{d}" for d in ("CUDA", "MPS", "XLA", "XPU", "PRIVATEUSE1", "Accelerator", "On", "MTIA", "HPU"))
TORCH_MODULES = (
    "torch.testing._internal", "torch.testing._internal.common_utils", "torch.testing._internal.common_device_type",
    "torch.testing._internal.common_dtype", "torch.testing._internal.common_cuda", "torch.testing._internal.common_nn",
    "torch.testing._internal.common_methods_invocations", "torch.testing._internal.common_modules",
    "torch.testing._internal.common_optimizers", "torch.testing._internal.common_jit",
    "torch.testing._internal.common_quantization", "torch.testing._internal.common_distributed",
    "torch.testing._internal.common_mkldnn", "torch.testing._internal.inductor_utils",
    "torch.testing._internal.common_subclass", "torch.testing._internal.logging_tensor",
    "torch.testing._internal.autograd_function_db", "torch.testing._internal.custom_op_db",
    "torch.testing._internal.opinfo", "torch.testing._internal.opinfo.core", "torch.testing._internal.opinfo.refs",
    "torch.testing._internal.opinfo.definitions", "torch.testing._internal.hop_db", "torch.testing._internal.two_tensor",
    "common_utils", "common_device_type", "common_methods_invocations", "common_cuda", "common_nn",
    "functorch_additional_op_db", "functorch_lagging_op_db", "torch_npu", "torch_npu.testing",
    "torch_npu.testing.common_utils", "torch_npu.testing.common_distributed", "torchvision",
)  # fmt: skip


class Missing:
    """A helper that is not here: fine as long as nobody calls it; a decorator of it skips what it decorates."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return unittest.skip(f"helper {self._name}")(args[0])
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __iter__(self) -> Any:
        return iter(())

    def __enter__(self) -> Any:
        raise unittest.SkipTest(f"helper {self._name}")

    def __exit__(self, *_: Any) -> None: ...

    def __bool__(self) -> bool:
        return False

    def __mro_entries__(self, bases: Any) -> Any:
        return (Absent,)


class Absent:
    """Base of classes that derive from a helper that is not here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return Missing(name)


def bare_or_called(*args: Any, **kwargs: Any) -> Any:
    """A decorator of no effect, written with or without arguments."""
    if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
        return args[0]
    return lambda f: f


def elsewhere(*args: Any, **kwargs: Any) -> Any:
    decorate = unittest.skip("another device")
    return decorate(args[0]) if len(args) == 1 and isinstance(args[0], types.FunctionType | type) else decorate


class Helpers(types.ModuleType):
    """A module that has what `common` defines, and an answer to every other name."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        common = importlib.import_module("helpers.common")
        if hasattr(common, name):
            return getattr(common, name)
        if name.startswith(CONDITIONS):
            return False
        if name.startswith(ONLY_ELSEWHERE) and not name.startswith("onlyOnCPU"):
            return elsewhere
        if name.startswith((*PASSING, "only")):
            return bare_or_called
        return Missing(name)


def install() -> None:
    importlib.import_module("torch.testing")
    for module in TORCH_MODULES:
        sys.modules[module] = Helpers(module)
    sys.modules["torch.testing"]._internal = sys.modules["torch.testing._internal"]  # type: ignore[attr-defined]
