"""torch._C._functorch: what programs ask of a tensor inside torch.func's transforms."""

from tapegrad.func import control as _control

is_batchedtensor = _control.is_batched


def _no_parts(*args: object, **kwargs: object) -> object:
    """Raises: a batch has no parts that programs could put on or take off."""
    raise NotImplementedError("torch._C._functorch: tapegrad's vmap adds and removes batch dimensions itself")


_add_batch_dim = _remove_batch_dim = get_unwrapped = _no_parts
