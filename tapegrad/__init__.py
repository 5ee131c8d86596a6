"""tapegrad: gradients of any order for NumPy, recorded on a Wengert tape. Names follow PyTorch.

The functions come from the table of public names, `functions/names.py`; here stand the names of all else.
"""

from __future__ import annotations

import importlib as _importlib
import types as _types
from math import e, inf, nan, pi

from . import (
    amp,
    autograd,
    cuda,
    custom,
    fft,
    func,
    linalg,
    masked,
    nn,
    numpy,
    optim,
    random,
    serialization,
    sparse,
    special,
    utils,
)
from .amp import (
    autocast,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
)
from .core.record import mark_package as _mark_package
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
from .func import vmap
from .func.control import cond, scan, while_loop
from .functions import names as _names
from .functions.create import Generator, default_generator
from .io import load, save
from .jit import compile
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
from .nn.module import typename
from .sparse import sparse_coo_tensor
from .tensor.access import is_tensor
from .tensor.legacy import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    set_default_tensor_type,
)
from .tensor.printing import set_printoptions
from .tensor.storage import TypedStorage, UntypedStorage, is_storage
from .tensor.tensor import Tensor, is_inference

__version__ = "0.1.0"

newaxis = None
globals().update(_names.namespace("tg"))
globals().update({f"{line.name}_": getattr(Tensor, f"{line.name}_") for line in _names.at("tg_")})

_ON_FIRST_USE = ("compat", "distributions", "overrides", "testing")
_MODULES = (
    "amp", "autograd", "cuda", "custom", "fft", "func", "linalg", "masked", "nn", "numpy", "optim", "random",
    "serialization", "sparse", "special", "utils", *_ON_FIRST_USE,
)  # fmt: skip


def __getattr__(name: str) -> _types.ModuleType:
    if name in _ON_FIRST_USE:
        return _importlib.import_module(f".{name}", __name__)
    if name.startswith(("quantize", "sparse_")):
        raise AttributeError(f"{name}: compressed sparse and quantised tensors are out of tapegrad's scope.")
    raise AttributeError(f"module 'tapegrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {n for n, v in globals().items() if not n.startswith("_") and not isinstance(v, _types.ModuleType)}
    return sorted({*names, *_MODULES, "__version__"} - {"annotations"})


_stand_in()
_mark_package(__name__)
