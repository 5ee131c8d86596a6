"""torch._C: of PyTorch's C++ part the few names that Python programs use."""

from tapegrad.compat import mirror as _mirror
from tapegrad.core.level import LEVEL as _LEVEL

_mirror(__name__, "tapegrad", ["Generator", "Size", "device", "dtype", "*Tensor"])
_LinAlgError = LinAlgError  # noqa: F821
TensorBase = _TensorBase = Tensor  # noqa: F821 - shown by mirror
_TensorMeta = type(Tensor)  # noqa: F821
has_lapack, has_cuda, has_mps, has_openmp, has_mkl, _has_mkldnn = True, False, False, False, False, False


def _log_api_usage_once(name: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _are_functorch_transforms_active() -> bool:
    """Whether a function is being mapped or differentiated forward: grad and vjp change nothing about its tensors here."""
    return _LEVEL.get() is not None


def _is_alias_of(a: object, b: object) -> bool:
    """Whether two tensors have the same memory."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _nothing(*args: object, **kwargs: object) -> None:
    """A setting of PyTorch's compiler: nothing to set."""


(
    _jit_set_bailout_depth, _jit_set_nvfuser_enabled, _jit_set_profiling_executor, _jit_set_profiling_mode,
    _jit_set_texpr_fuser_enabled, _jit_override_can_fuse_on_cpu, _jit_override_can_fuse_on_gpu,
    _debug_set_fusion_group_inlining,    _jit_set_num_profiled_runs, _set_graph_executor_optimize,
) = [_nothing] * 10  # fmt: skip


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """False: no operation warns that it runs once for each sample."""
    return False


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Nothing to show."""


_mirror(__name__, "tapegrad.overrides", ["DisableTorchFunction*", "*has_torch_function*"])
from tapegrad.overrides import _disabled_torch_function_impl as _disabled_torch_function_impl
from tapegrad.overrides import _get_current_function_mode


def _is_torch_function_mode_enabled() -> bool:
    """Whether the program is inside a mode of its own for functions."""
    return _get_current_function_mode() is not None
