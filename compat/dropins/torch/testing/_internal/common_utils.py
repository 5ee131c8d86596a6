"""torch.testing._internal.common_utils: what others' tests use of PyTorch's own helpers."""

import itertools
import os
import random
import sys
import tempfile
import unittest
from contextlib import contextmanager

import numpy as np
import torch
from torch.testing import assert_close as assert_close
from torch.testing import make_tensor as make_tensor
from torch.utils._pytree import tree_leaves

IS_LINUX, IS_MACOS, IS_WINDOWS = sys.platform == "linux", sys.platform == "darwin", sys.platform == "win32"
IS_CI = bool(os.getenv("CI"))
TEST_NUMPY = True
TEST_CUDA = TEST_MPS = TEST_MULTIGPU = TEST_WITH_ROCM = TEST_XPU = False


def set_rng_seed(seed: int = 1234) -> None:
    """Seed Python's, NumPy's and torch's generators."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextmanager
def freeze_rng_state():
    """After the block torch's generator is as before."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


class TestCase(unittest.TestCase):
    """unittest's, with assertEqual for tensors."""

    def setUp(self) -> None:
        set_rng_seed()

    def assertEqual(self, x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=True, **kwargs) -> None:
        """Equal, tensors within the tolerances of torch.testing.assert_close."""
        if isinstance(x, torch.Tensor) and isinstance(y, list | tuple):
            y = torch.as_tensor(y, dtype=x.dtype)
        elif isinstance(y, torch.Tensor) and isinstance(x, list | tuple):
            x = torch.as_tensor(x, dtype=y.dtype)
        close = torch.Tensor | np.ndarray
        if isinstance(x, list | tuple | dict):  # of numbers, too; what is in neither is compared by ==
            close |= float | complex
        if any(isinstance(v, close) for v in tree_leaves([x, y])):
            settings = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": exact_dtype, "msg": msg}
            torch.testing.assert_close(x, y, **settings)
        elif atol is not None and isinstance(x, int | float):
            self.assertLessEqual(abs(x - y), atol + (rtol or 0) * abs(y), msg)
        else:
            super().assertEqual(x, y, msg)

    def assertNotEqual(self, x, y, msg=None, **kwargs) -> None:
        """Not equal in the sense of assertEqual."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, **kwargs)


class parametrize:
    """A decorator: the test, for each of the values; instantiate_parametrized_tests makes them."""

    def __init__(self, arg_str: str, arg_values: object, name_fn: object = None) -> None:
        self.names, self.values, self.name_fn = [n.strip() for n in arg_str.split(",")], list(arg_values), name_fn

    def __call__(self, fn: object) -> object:
        fn._cases = [self, *getattr(fn, "_cases", [])]
        return fn

    def cases(self):
        """(name, arguments) of each test."""
        for value in self.values:
            args = dict(zip(self.names, value if len(self.names) > 1 else (value,), strict=True))
            name = self.name_fn(*args.values()) if self.name_fn else "_".join(f"{k}_{v}" for k, v in args.items())
            yield str(name).replace(".", "_").replace(" ", "_"), args


def instantiate_parametrized_tests(cls: type) -> type:
    """Replace the tests that parametrize marked by one for each combination of values."""
    for name, fn in list(vars(cls).items()):
        if not hasattr(fn, "_cases"):
            continue
        delattr(cls, name)
        for combination in itertools.product(*(p.cases() for p in fn._cases)):
            args = {k: v for _, part in combination for k, v in part.items()}

            def test(self, fn=fn, args=args):
                return fn(self, **args)

            setattr(cls, "_".join([name, *(n for n, _ in reversed(combination))]), test)
    return cls


subtest = lambda values, name=None, decorators=(): values  # noqa: E731


def run_tests(argv: list | None = None) -> None:
    """unittest.main."""
    unittest.main(argv=argv or sys.argv)


@contextmanager
def set_default_dtype(dtype: torch.dtype):
    """Within the block that is the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def TemporaryFileName(*args: object, **kwargs: object):
    """The path of a file that the block may write."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "file")


def skipIfRocm(fn: object) -> object:
    """The test as it is."""
    return fn


skipIfMps = skipIfXpu = slowTest = skipIfTorchDynamo = skipIfRocm
