"""What PyTorch's test files use of their private helpers, written anew on public functions."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import random
import re
import tempfile
import unittest
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.testing import assert_close, make_tensor  # noqa: F401

# ------------------------------------------------------------------------------------------------------------- conditions

TEST_NUMPY = True
TEST_SCIPY = True
TEST_CUDA = TEST_CUDNN = TEST_MULTIGPU = TEST_PRIVATEUSE1 = False
IS_LINUX = True
IS_WINDOWS = IS_MACOS = IS_PPC = IS_JETSON = IS_FBCODE = IS_S390X = False
MACOS_VERSION = 0.0
GRADCHECK_NONDET_TOL = 0.0
TESTS_DIR = tempfile.gettempdir()
dtype2prec_DONTUSE = {torch.float: 1e-5, torch.double: 1e-5, torch.half: 1e-2, torch.bfloat16: 1e-1}

# ------------------------------------------------------------------------------------------------------------------ dtypes

numpy_to_torch_dtype_dict = {
    np.dtype(n).type: getattr(torch, t)
    for n, t in [("bool", "bool"), ("uint8", "uint8"), ("uint16", "uint16"), ("uint32", "uint32"), ("uint64", "uint64"),
                 ("int8", "int8"), ("int16", "int16"), ("int32", "int32"), ("int64", "int64"), ("float16", "float16"),
                 ("float32", "float32"), ("float64", "float64"), ("complex64", "complex64"), ("complex128", "complex128")]
    if hasattr(torch, t)
}  # fmt: skip
torch_to_numpy_dtype_dict = {t: n for n, t in numpy_to_torch_dtype_dict.items()} | {torch.bfloat16: np.float32}
float_to_corresponding_complex_type_map = {torch.float32: torch.complex64, torch.float64: torch.complex128}
if hasattr(torch, "complex32"):
    float_to_corresponding_complex_type_map[torch.float16] = torch.complex32

_FLOATING = (torch.float32, torch.float64)
_INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_COMPLEX = (torch.complex64, torch.complex128)
_SETS = {
    "floating_types": _FLOATING, "floating_types_and_half": (*_FLOATING, torch.half), "integral_types": _INTEGRAL,
    "complex_types": _COMPLEX, "floating_and_complex_types": _FLOATING + _COMPLEX, "all_types": _FLOATING + _INTEGRAL,
    "all_types_and_complex": _FLOATING + _INTEGRAL + _COMPLEX, "all_types_and_half": (*_FLOATING, *_INTEGRAL, torch.half),
    "double_types": (torch.float64, torch.complex128),
}  # fmt: skip


def _dtype_sets():
    for name, dtypes in _SETS.items():
        yield name, lambda dtypes=dtypes: dtypes
        yield f"{name}_and", lambda *more, dtypes=dtypes: dtypes + more


globals().update(_dtype_sets())


def get_all_dtypes(include_half=True, include_bfloat16=True, include_bool=True, include_complex=True, **kwargs):
    return (
        get_all_int_dtypes()
        + get_all_fp_dtypes(include_half, include_bfloat16)
        + [torch.bool] * include_bool
        + (list(_COMPLEX) * include_complex)
    )


def get_all_math_dtypes(device):
    return get_all_int_dtypes() + get_all_fp_dtypes(include_half=True) + list(_COMPLEX)


def get_all_int_dtypes():
    return list(_INTEGRAL)


def get_all_complex_dtypes(include_complex32=False):
    return list(_COMPLEX)


def get_all_fp_dtypes(include_half=True, include_bfloat16=True):
    return [*_FLOATING, *[torch.half] * include_half, *[torch.bfloat16] * include_bfloat16]


# ------------------------------------------------------------------------------------------------------------- parameters


class subtest:
    def __init__(self, arg_values, name=None, decorators=()):
        self.arg_values, self.name, self.decorators = arg_values, name, decorators


def _text(value):
    name = getattr(value, "__name__", None) if callable(value) else None
    return str(name or value).replace(".", "_").replace(" ", "_")


class parametrize:
    """Marks a test with its values; `_expanded` makes one test of each."""

    def __init__(self, arg_str, arg_values, name_fn=None):
        self.names = [n.strip() for n in arg_str.split(",") if n.strip()]
        self.values, self.name_fn = list(arg_values), name_fn

    def __call__(self, test):
        test.__dict__.setdefault("parameters", []).append(self)
        return test

    def rows(self):
        for value in self.values:
            own = value if isinstance(value, subtest) else subtest(value)
            given = own.arg_values if len(self.names) > 1 else (own.arg_values,)
            pairs = list(zip(self.names, given, strict=True))
            named = self.name_fn(*given) if self.name_fn else "_".join(f"{n}_{_text(v)}" for n, v in pairs)
            yield dict(pairs), own.name or named, own.decorators


def dtypes(*values):
    def decorate(test):
        test.__dict__["dtypes"] = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        return test

    return decorate


dtypesIfCPU = dtypes


def precisionOverride(precisions):
    def decorate(test):
        test.__dict__["precisions"] = precisions
        return test

    return decorate


def toleranceOverride(tolerances):
    return precisionOverride({k: v.atol for k, v in tolerances.items()})


class tol:
    def __init__(self, atol, rtol):
        self.atol, self.rtol = atol, rtol


def ops(*args, **kwargs):
    """Tests over PyTorch's own table of operations are left out: compat/opinfo.py runs that table."""
    return unittest.skip("PyTorch's table of operations")


modules = optims = ops


def skipCPUIf(condition, reason):
    return unittest.skipIf(bool(condition), str(reason))


def largeTensorTest(*args, **kwargs):
    return unittest.skip("needs much memory")


def deviceCountAtLeast(count):
    return unittest.skip("another device")


def onlyNativeDeviceTypes(test):
    return test


onlyCPU = onlyNativeDeviceTypes


def _expanded(name, test, more):
    """(name, keyword arguments, decorators) of the tests that a marked one stands for."""
    rows = [list(p.rows()) for p in test.__dict__.get("parameters", ())]
    for combined in itertools.product(*rows, more):
        arguments, names, decorators = {}, [], []
        for given, own, wrappers in combined:
            arguments |= given
            names.append(own)
            decorators += wrappers
        yield "_".join([name, *filter(None, names)]), arguments, decorators


def _bound(test, arguments, decorators, dtype=None):
    @functools.wraps(test)
    def run(self):
        self.precision = test.__dict__.get("precisions", {}).get(dtype, 0.0)
        return test(self, **arguments)

    run.__dict__.pop("parameters", None)
    for decorate in decorators:
        run = decorate(run)
    return run


def instantiate_parametrized_tests(cls):
    for name, test in list(vars(cls).items()):
        if name.startswith("test") and hasattr(test, "parameters"):
            delattr(cls, name)
            for own, arguments, decorators in _expanded(name, test, [({}, "", ())]):
                setattr(cls, own, _bound(test, arguments, decorators))
    return cls


def _by_dtype(test):
    chosen = test.__dict__.get("dtypes")
    if chosen is None:
        return [({}, "", (), None)]
    rows = []
    for d in chosen:
        if isinstance(d, list | tuple):
            rows.append(({"dtypes": d}, "_".join(map(_text, d)).replace("torch_", ""), (), None))
        else:
            rows.append(({"dtype": d}, _text(d).removeprefix("torch_"), (), d))
    return rows


def instantiate_device_type_tests(cls, scope, except_for=None, only_for=None, **kwargs):
    """A class for the processor in place of the generic one."""
    scope.pop(cls.__name__, None)
    if only_for is not None and not re.search("cpu|privateuse1", str(only_for).lower()):
        return
    body = {}
    for name, test in vars(cls).items():
        if not (name.startswith("test") and callable(test)):
            continue
        for given, dtype_name, _, dtype in _by_dtype(test):
            for own, arguments, decorators in _expanded(f"{name}_cpu", test, [(given, dtype_name, ())]):
                arguments = {"device": "cpu"} | arguments
                body[own] = _bound(test, arguments, decorators, dtype)
        body[name] = None  # hides the generic test
    made = type(f"{cls.__name__}CPU", (cls,), {**body, "device_type": "cpu", "__module__": scope.get("__name__")})
    scope[made.__name__] = made


# ------------------------------------------------------------------------------------------------------------------- tests


class TestCase(unittest.TestCase):
    precision = 0.0
    rel_tol = 0.0
    device_type = "cpu"
    exact_dtype = True
    longMessage = True
    maxDiff = None

    def setUp(self):
        torch.manual_seed(1234)
        random.seed(1234)
        np.random.seed(1234)

    @contextlib.contextmanager
    def _stepping(self):
        yield

    def assertEqual(self, x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=None, exact_device=False,
                    exact_layout=False, exact_stride=False, exact_is_coalesced=False):  # fmt: skip
        if atol is None and rtol is None and self.precision:
            atol, rtol = self.precision, 1.3e-6
        exact = self.exact_dtype if exact_dtype is None else exact_dtype
        self._equal(x, y, msg, atol, rtol, equal_nan, exact)
        if exact_stride and isinstance(x, torch.Tensor):
            super().assertEqual(x.stride(), y.stride())

    def _equal(self, x, y, msg, atol, rtol, equal_nan, exact):
        def again(a, b):
            return self._equal(a, b, msg, atol, rtol, equal_nan, exact)

        tensors = isinstance(x, torch.Tensor), isinstance(y, torch.Tensor)
        if isinstance(x, np.generic | np.ndarray) or isinstance(y, np.generic | np.ndarray):
            as_tensor = lambda v: v if isinstance(v, torch.Tensor) else torch.as_tensor(np.asarray(v))  # noqa: E731
            return self._equal(as_tensor(x), as_tensor(y), msg, atol, rtol, equal_nan, exact and all(tensors))
        if any(tensors):
            if not all(tensors):
                other = y if tensors[0] else x
                own = x if tensors[0] else y
                if isinstance(other, bool | int | float | complex):
                    other = torch.tensor(other, dtype=own.dtype).expand(own.shape)
                elif isinstance(other, list | tuple):
                    other = torch.tensor(other, dtype=own.dtype)
                x, y = (own, other) if tensors[0] else (other, own)
                exact = False
            assert_close(
                x.detach(), y.detach(), atol=atol, rtol=rtol, equal_nan=equal_nan, check_dtype=exact, check_device=False,
                check_layout=False, msg=None if msg is None else (lambda text: f"{text}\n{msg}"),
            )  # fmt: skip
        elif isinstance(x, bool | str | bytes | type) or isinstance(y, bool | str | bytes | type) or x is None or y is None:
            super().assertEqual(x, y, msg)
        elif isinstance(x, int | float | complex) and isinstance(y, int | float | complex):
            if isinstance(x, int) and isinstance(y, int) and atol is None:
                super().assertEqual(x, y, msg)
            else:
                assert_close(
                    x, y, atol=atol, rtol=rtol, equal_nan=equal_nan, check_dtype=False,
                    msg=None if msg is None else (lambda text: f"{text}\n{msg}"),
                )  # fmt: skip
        elif isinstance(x, Mapping) and isinstance(y, Mapping):
            super().assertEqual(set(x), set(y), msg)
            for key in x:
                again(x[key], y[key])
        elif isinstance(x, set | frozenset):
            super().assertEqual(x, y, msg)
        elif isinstance(x, Sequence) and isinstance(y, Sequence):
            super().assertEqual(len(x), len(y), msg)
            for a, b in zip(x, y, strict=True):
                again(a, b)
        else:
            super().assertEqual(x, y, msg)

    assertEqualIgnoreType = functools.partialmethod(assertEqual, exact_dtype=False)
    assertEqualTypeString = unittest.TestCase.assertEqual

    def assertNotEqual(self, x, y, msg=None, *, atol=None, rtol=None, **kwargs):
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **kwargs)

    def assertAlmostEqual(self, x, y, places=None, msg=None, delta=None, **kwargs):
        atol = 10.0 ** -(7 if places is None else places) if delta is None else delta
        self.assertEqual(x, y, msg, atol=atol, rtol=0, **kwargs)

    def assertRaisesRegex(self, expected_exception, expected_regex, *args, **kwargs):
        return super().assertRaisesRegex(expected_exception, expected_regex, *args, **kwargs)

    def assertObjectIn(self, obj, iterable):
        self.assertTrue(any(obj is item for item in iterable))

    def assertExpectedInline(self, actual, expect, skip=0):
        super().assertEqual(actual, expect)

    def assertExpected(self, *args, **kwargs):
        raise unittest.SkipTest("compares with a file")

    assertExpectedRaises = assertExpectedStripMangled = assertExpected

    @contextlib.contextmanager
    def assertNotWarn(self, *args, **kwargs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        super().assertEqual([str(w.message) for w in caught], [])

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category, regex=""):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        found = [w for w in caught if issubclass(w.category, category)]
        self.assertTrue(found, "no warning")
        self.assertRegex(str(found[0].message), regex)

    def assertLeaksNoCudaTensors(self, name=None):
        return contextlib.nullcontext()

    def checkModule(self, *args, **kwargs):
        raise unittest.SkipTest("torch.jit")

    checkScript = checkTrace = checkModule

    def genSparseTensor(self, *args, **kwargs):
        raise unittest.SkipTest("sparse tensors")

    def compare_with_numpy(self, torch_fn, np_fn, tensor_like, device=None, dtype=None, **kwargs):
        t = tensor_like if isinstance(tensor_like, torch.Tensor) else torch.tensor(tensor_like, device=device, dtype=dtype)
        a = t.detach().float().numpy() if t.dtype is torch.bfloat16 else t.detach().numpy()
        self.assertEqual(torch_fn(t), torch.as_tensor(np_fn(a)), exact_dtype=False, **kwargs)

    def runWithPytorchAPIUsageStderr(self, code):
        raise unittest.SkipTest("starts a process")

    run_process_no_exception = runWithPytorchAPIUsageStderr


class NNTestCase(TestCase):
    def _forward(self, module, input):
        with freeze_rng_state():
            return module(*input) if isinstance(input, tuple) else module(input)

    def _backward(self, module, input, output, grad_output, create_graph=False):
        output.backward(grad_output, retain_graph=True, create_graph=create_graph)
        return input.grad

    def _zero_grad_parameters(self, module):
        for p in module.parameters():
            if p.grad is not None:
                p.grad.zero_()
                p.grad.detach_()

    def _zero_grad_input(self, input):
        for i in input if isinstance(input, list | tuple) else [input]:
            if i.requires_grad and i.grad is not None:
                i.grad.zero_()
                i.grad.detach_()

    def _get_parameters(self, module):
        params = list(module.parameters())
        return params, [p.grad if p.grad is not None else torch.zeros_like(p) for p in params]


# -------------------------------------------------------------------------------------------------------------------- vmap

op_db = additional_op_db = []  # PyTorch's table of operations: see `ops`


def check_vmap_fallback(test, thunk, *args, **kwargs):
    """The test, whichever operations run once for each sample."""
    thunk()


def compute_quantities_for_vmap_test(
    op, args, kwargs, in_dims, out_dim=0, batch_size=2, compute_loop_out=True, clone_inputs=False
):
    """What a loop over the samples gives, and vmap."""

    def given():
        return [a.clone() if clone_inputs and isinstance(a, torch.Tensor) else a for a in args]

    def sample(values, i):
        return [v if d is None else v.select(d, i) for v, d in zip(values, in_dims, strict=True)]

    size = next(a.shape[d] for a, d in zip(args, in_dims, strict=True) if d is not None)
    loop_out = None
    if compute_loop_out:
        rows = [op(*sample(given(), i), **kwargs) for i in range(size)]
        several = isinstance(rows[0], tuple | list)
        loop_out = [torch.stack(c, out_dim) for c in zip(*rows, strict=True)] if several else torch.stack(rows, out_dim)
    yield loop_out, torch.func.vmap(op, tuple(in_dims), out_dim)(*given(), **kwargs)


def get_fallback_and_vmap_exhaustive(op, arg_values, kwarg_values, *, batch_size=3, compute_loop_out=True, **_):
    """A loop and vmap for every choice of the tensors that are batched, in front or at the end."""
    places = [(None, 0, -1) if isinstance(a, torch.Tensor) else (None,) for a in arg_values]
    for in_dims in itertools.product(*places):
        if all(d is None for d in in_dims):
            continue
        args = [a if d is None else torch.stack([a] * batch_size, d) for a, d in zip(arg_values, in_dims, strict=True)]
        yield from compute_quantities_for_vmap_test(op, args, kwarg_values, in_dims, compute_loop_out=compute_loop_out)


def run_tests(*args, **kwargs): ...


def load_tests(loader, tests, pattern):
    return tests


def slowTest(test):
    return unittest.skip("slow")(test)


def expectedFailureIf(condition):
    return unittest.expectedFailure if condition else (lambda test: test)


# ---------------------------------------------------------------------------------------------------------------- contexts


@contextlib.contextmanager
def set_default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def freeze_rng_state():
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


@contextlib.contextmanager
def disable_gc():
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


@contextlib.contextmanager
def set_warn_always_context(value):
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(value)
    try:
        yield
    finally:
        torch.set_warn_always(before)


@contextlib.contextmanager
def TemporaryFileName(*args, **kwargs):
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "file")


@contextlib.contextmanager
def TemporaryDirectoryName(suffix=None):
    with tempfile.TemporaryDirectory(suffix=suffix) as folder:
        yield folder


def swap(values):
    return lambda test: test


class DeterministicGuard:
    def __init__(self, deterministic, *, warn_only=False, fill_uninitialized_memory=True):
        self.deterministic, self.warn_only = deterministic, warn_only

    def __enter__(self):
        self.before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)

    def __exit__(self, *_):
        torch.use_deterministic_algorithms(self.before)


def suppress_warnings(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return test(*args, **kwargs)

    return run


# --------------------------------------------------------------------------------------------------------------- gradients


def gradcheck(fn, inputs, **kwargs):
    return torch.autograd.gradcheck(fn, inputs, **{"check_batched_grad": False, **kwargs})


def gradgradcheck(fn, inputs, grad_outputs=None, **kwargs):
    return torch.autograd.gradgradcheck(fn, inputs, grad_outputs, **{"check_batched_grad": False, **kwargs})


def _assertGradAndGradgradChecks(test_case, apply_fn, inputs, **kwargs):
    test_case.assertTrue(gradcheck(apply_fn, inputs, **kwargs))
    test_case.assertTrue(gradgradcheck(apply_fn, inputs, **kwargs))


def mask_not_all_zeros(shape):
    while True:
        result = torch.randn(shape).gt(0)
        if result.sum() > 0:
            return result


def prod_single_zero(size):
    result = torch.randn(size, size)
    result[0, 1] = 0
    return result


def random_square_matrix_of_rank(n, rank, dtype=torch.double, device="cpu"):
    u, _, vh = torch.linalg.svd(torch.randn(n, n, dtype=dtype))
    s = torch.zeros(n, dtype=dtype)
    s[:rank] = torch.arange(1, rank + 1, dtype=dtype)
    return (u * s) @ vh


# ------------------------------------------------------------------------------------------------------------------ layers


def _test_module_empty_input(test_case, module, inp, check_size=True, inference=False):
    if not inference:
        inp.requires_grad_(True)
    out = module(inp)
    if not inference:
        out.backward(torch.rand_like(out))
    if check_size:
        test_case.assertEqual(out.size(), inp.size())
    if not inference:
        for p in module.parameters():
            if p.requires_grad:
                test_case.assertEqual(p.grad, torch.zeros_like(p.grad))
        test_case.assertEqual(inp.grad, torch.zeros_like(inp))


def _test_bfloat16_ops(test_case, op, device, inp_dims=(), prec=1e-2, scale_factor=None):
    wide = torch.randn(inp_dims, dtype=torch.float32, requires_grad=True)
    out = op(wide)
    g = torch.randn_like(out)
    out.backward(g)
    narrow = wide.detach().bfloat16().requires_grad_()
    got = op.bfloat16()(narrow) if hasattr(op, "bfloat16") else op(narrow)
    got.backward(g.bfloat16())
    test_case.assertEqual(out, got, atol=prec, rtol=prec, exact_dtype=False)
    test_case.assertEqual(wide.grad, narrow.grad, atol=prec, rtol=prec, exact_dtype=False)


def _create_basic_net():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer_dummy_param = torch.nn.Parameter(torch.empty(3, 5))
            self.layer_dummy_buf = torch.nn.Buffer(torch.zeros(1, 3, 3, 7))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l1 = Layer()
            self.dummy_param = torch.nn.Parameter(torch.empty(3, 5))
            self.dummy_buf = torch.nn.Buffer(torch.zeros(7, 3, 3, 1))

    layer, net = Layer(), Net()
    return layer, net, torch.nn.Sequential(net)


def download_file(url):
    raise unittest.SkipTest("downloads a file")
