"""What OneFlow's tests import beside OneFlow: its `unittest`, and `test_utils`, which a checkout of its own has."""

from __future__ import annotations

import os
import pathlib
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any


def one_process(*sizes: Any) -> Callable[[Any], Any]:
    """A decorator of tests that run on one device."""
    return lambda test: test


def several(*sizes: Any) -> Callable[[Any], Any]:
    return unittest.skip("several devices")


def install(file: pathlib.Path) -> None:
    """Make the modules known that the test file of a checkout imports."""
    os.environ.setdefault("ONEFLOW_TEST_CPU_ONLY", "1")
    import oneflow  # the drop-in

    root = next(p for p in file.parents if (p / "test_utils").is_dir())
    utils = types.ModuleType("oneflow.test_utils")
    utils.__path__ = [str(root / "test_utils")]
    own = types.ModuleType("oneflow.unittest")
    own.__dict__.update({name: value for name, value in vars(unittest).items() if not name.startswith("__")})
    own.skip_unless_1n1d = one_process  # type: ignore[attr-defined]
    for name in ("1n2d", "1n4d", "2n1d", "2n2d"):
        setattr(own, f"skip_unless_{name}", several)
    own.env = types.SimpleNamespace(eager_execution_enabled=lambda: True)  # type: ignore[attr-defined]
    support = types.ModuleType("oneflow.support")
    support.env_var_util = variables = types.ModuleType("oneflow.support.env_var_util")  # type: ignore[attr-defined]
    variables.parse_boolean_from_env = lambda name, default: default  # type: ignore[attr-defined]
    for module in (utils, own, support, variables):
        sys.modules[module.__name__] = module
    oneflow.test_utils, oneflow.unittest, oneflow.support = utils, own, support
    oneflow._oneflow_internal.Tensor = oneflow.Tensor
    oneflow.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace())
