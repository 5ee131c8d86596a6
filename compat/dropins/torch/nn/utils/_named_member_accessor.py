"""torch.nn.utils._named_member_accessor: one helper that programs call."""

import torch

_MISSING = object()


def swap_tensor(module: torch.nn.Module, name: str, tensor: object, allow_missing: bool = False) -> object:
    """Put a tensor in the place of the module's of that name, as what it was, and return that one."""
    if "." in name or not name:
        raise KeyError('tensor name can\'t contain "."' if name else 'tensor name can\'t be empty string ""')
    for table in (module._parameters, module._buffers):
        if name in table:
            before = table[name]
            table[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    setattr(module, name, tensor)
    return before
