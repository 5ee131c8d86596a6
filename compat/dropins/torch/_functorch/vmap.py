"""torch._functorch.vmap: private names of vmap, which some programs import."""

from torch import Tensor as Tensor
from torch._C._functorch import _add_batch_dim as _add_batch_dim
from torch._C._functorch import _remove_batch_dim as _maybe_remove_batch_dim  # noqa: F401
from torch.func import vmap as vmap
from torch.utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from torch.utils._pytree import tree_flatten as tree_flatten
from torch.utils._pytree import tree_unflatten as tree_unflatten


def _get_name(func: object) -> str:
    """A function's name, or what it prints as."""
    return getattr(func, "__name__", None) or repr(func)
