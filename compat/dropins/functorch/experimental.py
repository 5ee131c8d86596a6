"""functorch.experimental: vmap in a given number of chunks, and what is now in torch.func."""

from torch.func import hessian as hessian
from torch.func import jacfwd as jacfwd
from torch.func import jvp as jvp
from torch.func import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from torch.func import vmap as _vmap

from tapegrad.func import tree as _tree
from tapegrad.func.batch import mapped_dims as _mapped_dims


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap that runs at most so many chunks of samples one after the other, of equal size but for the last."""
    _vmap(func, in_dims, out_dims, randomness)  # which checks them

    def mapped(*args, **kwargs):
        leaves, spec = _tree.flatten(args)
        dims = _mapped_dims(getattr(func, "__name__", repr(func)), in_dims, args, leaves, spec)
        n = next((x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None), 1)
        return _vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-n // chunks), 1))(*args, **kwargs)

    return mapped
