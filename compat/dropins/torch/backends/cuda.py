"""torch.backends.cuda: not there; its switches can be set and change nothing."""

import types
from contextlib import contextmanager

matmul = types.SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)
cufft_plan_cache = types.SimpleNamespace(size=0, max_size=0, clear=lambda: None)
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """False."""
    return False


is_flash_attention_available = is_ck_sdpa_available = is_built


def preferred_linalg_library(backend: object = None) -> str:
    """The library for linear algebra: NumPy's."""
    return "default"


preferred_blas_library = preferred_linalg_library


def _switch(name: str) -> tuple:
    def enable(enabled: bool) -> None:
        """Remember it; there is one implementation of attention."""
        _sdp[name] = enabled

    return enable, lambda: _sdp[name]


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


@contextmanager
def sdp_kernel(*args: object, **kwargs: object):
    """The block, as it is: there is one implementation of attention."""
    yield {}
