"""tapegrad: gradients of any order for NumPy, recorded on a Wengert tape. Names follow PyTorch.

    >>> import numpy as np, tapegrad as tg
    >>> tg.func.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))  # of functions of arrays, floats or tensors
    array([ 3., 12.])
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x**3).sum().backward()  # as in PyTorch
    >>> x.grad
    tensor([ 3., 12.])

Packages: `func` (transforms of functions), `autograd`, `nn`, `optim`, `utils.data`, `distributions`, `linalg`, `fft`,
`special`, `numpy` (NumPy's names for tensors). `compile` makes one program of a training step; `viz`, `profile` and
`summary` show what runs; `save` and `load` know PyTorch's files. `python -m tapegrad --as torch program.py` runs a program
that imports torch.

The docstrings of functions have a part "Derivative:", the gradient of each argument for g, the gradient of the result with
PyTorch's convention for complex numbers; operands that were broadcast get the sum.
"""

# The functions come from the table of public names, functions/names.py; here stand the names of all else. What is not
# imported here is when its name is first asked for.

from __future__ import annotations

import types as _types
from math import e, inf, nan, pi

from .dtypes import (
    Size,
    bfloat16,
    can_cast,
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    device,
    double,
    dtype,
    finfo,
    float,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    layout,
    long,
    memory_format,
    preserve_format,
    promote_types,
    set_default_dtype,
    short,
    sparse_coo,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .dtypes import bool_ as bool
from .functions import names as _names
from .functions.create import Generator, default_generator
from .later import load as _load
from .later import mark as _mark
from .modes import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_anomaly_enabled,
    set_grad_enabled,
    tape,
)
from .moved import stand_in as _stand_in
from .tensor.access import is_tensor
from .tensor.tensor import Tensor, is_inference

__version__ = "0.1.0"

newaxis = None
globals().update({_name: _names.lines_of("tg")[_name].resolve() for _name in ("stack", "tensor")})  # not the modules
_ON_FIRST_USE = ("compat", "distributions", "examples", "overrides", "testing", "viz")  # and in no other way
_PACKAGES = (
    "amp", "autograd", "cuda", "custom", "fft", "func", "linalg", "masked", "nn", "numpy", "optim", "random",
    "serialization", "sparse", "special", "utils", *_ON_FIRST_USE,
)  # fmt: skip
_HOMES = {
    "amp": "autocast clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
    "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled",
    "func": "vmap",
    "func.control": "cond scan while_loop",
    "io": "load save",
    "jit": "compile",
    "nn.module": "typename",
    "sparse": "sparse_coo_tensor",
    "tensor.legacy": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor "
    "LongTensor ShortTensor set_default_tensor_type",
    "tensor.printing": "set_printoptions",
    "tensor.storage": "TypedStorage UntypedStorage is_storage",
    "viz.layers": "summary",
    "viz.profiling": "profile",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_FUNCTIONS = _names.finder("tg", globals())
_METHODS = {f"{line.name}_" for line in _names.at("tg_")}


def __getattr__(name: str) -> object:
    if name in _PACKAGES or name in ("io", "jit"):
        return _load(name)
    if name == "__all__":
        return sorted(set(__dir__()).difference(_ON_FIRST_USE))
    if name.startswith(("quantize", "sparse_")) and name not in _HOME:
        raise AttributeError(f"{name}: compressed sparse and quantised tensors are out of tapegrad's scope.")
    if name not in _HOME and name not in _METHODS:
        if name not in _names.lines_of("tg") and not name.startswith("_") and name in _load("func").__all__:
            raise AttributeError(f"module 'tapegrad' has no attribute {name!r}; there is tapegrad.func.{name}")
        return _FUNCTIONS(name)
    return globals().setdefault(name, getattr(_load(_HOME[name]) if name in _HOME else Tensor, name))


def __dir__() -> list[str]:
    own = [n for n, v in globals().items() if not isinstance(v, _types.ModuleType)]
    names = {*own, *_PACKAGES, *_HOME, *_METHODS, *_names.lines_of("tg")} - {"annotations"}
    return sorted([n for n in names if not n.startswith("_") or n == "__version__"])


_stand_in()
_mark()
