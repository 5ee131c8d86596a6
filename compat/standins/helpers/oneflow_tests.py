"""What OneFlow's tests import beside OneFlow: its `unittest`, and `test_utils`, which a checkout of its own has.

Tests and their harness were written for Python 3.8, NumPy 1 and PyTorch 1: `of_its_time` bridges what has changed since.
"""

from __future__ import annotations

import collections.abc
import functools
import importlib
import os
import pathlib
import sys
import types
import typing
import unittest
from collections.abc import Callable
from typing import Any

import numpy as np


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
    for name in ("1n2d", "1n4d", "2n1d", "2n2d", "2n4d"):
        setattr(own, f"skip_unless_{name}", several)
    own.dataset_dir = no_data  # type: ignore[attr-defined]
    own.env = types.SimpleNamespace(eager_execution_enabled=lambda: True)  # type: ignore[attr-defined]
    support = types.ModuleType("oneflow.support")
    support.env_var_util = variables = types.ModuleType("oneflow.support.env_var_util")  # type: ignore[attr-defined]
    variables.parse_boolean_from_env = lambda name, default: default  # type: ignore[attr-defined]
    for module in (utils, own, support, variables):
        sys.modules[module.__name__] = module
    oneflow.test_utils, oneflow.unittest, oneflow.support = utils, own, support
    oneflow._oneflow_internal.Tensor = oneflow.Tensor
    oneflow._oneflow_internal.flags = types.SimpleNamespace(cuda_version=lambda: 0)
    of_its_time()


def no_data(*path: Any) -> str:
    raise unittest.SkipTest("data sets of OneFlow's test machines")


def of_its_time() -> None:
    """What the tests and their harness use of versions of Python, NumPy and PyTorch that are gone."""
    os.environ.setdefault("ONEFLOW_CI", "0")
    for name, now in (("product", np.prod), ("bool", np.bool_), ("int", int), ("float", float), ("cumproduct", np.cumprod)):
        if name not in vars(np):
            setattr(np, name, now)
    reshape = np.reshape
    np.reshape = functools.wraps(reshape)(  # type: ignore[assignment]
        lambda a, *args, newshape=None, **kw: reshape(a, *args, **kw) if newshape is None else reshape(a, newshape, **kw)
    )
    argsort = np.argsort  # of NumPy 1: stable for short arrays

    def stable(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **rest: Any) -> Any:
        return argsort(a, axis, kind if kind or rest else "stable", order, **rest)

    np.argsort = functools.wraps(argsort)(stable)  # type: ignore[assignment]
    collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
    try:
        generators = importlib.import_module("oneflow.test_utils.automated_test_util.generators")
        dual = importlib.import_module("oneflow.test_utils.automated_test_util.torch_flow_dual_object")
    except ImportError:  # without PyTorch there are no tests that compare with it
        return
    # Annotations of PyTorch's layers say tuple[int, int] where they said Tuple[int, int]; the harness has a class tuple.
    generators.tuple.__class_getitem__ = classmethod(lambda cls, items: typing.Tuple[items])  # type: ignore[attr-defined] # noqa: UP006
    plain = dual.torch_original.Tensor.numpy
    dual.torch_original.Tensor.numpy = lambda t, **kw: plain(t.clone() if t._is_zerotensor() else t, **kw)
    made = dual.GetDualObject

    def pair(name: str, pytorch: Any, oneflow: Any) -> Any:
        result = made(name, pytorch, oneflow)
        if isinstance(pytorch, np.ndarray):  # a NotImplemented of two arrays counted as true before Python 3.9
            type(result).__array_function__ = on_both
        return result

    def part(value: Any, name: str) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(part(v, name) for v in value)
        return getattr(value, name) if isinstance(value, dual.DualObject) else value

    def on_both(self: Any, function: Any, kinds: Any, args: Any, kwargs: Any) -> bool:
        return all(function(*part(args, of), **kwargs) for of in ("pytorch", "oneflow"))

    dual.GetDualObject = pair
