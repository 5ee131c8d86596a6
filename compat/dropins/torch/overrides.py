"""torch.overrides: no class overrides PyTorch's functions here (`__torch_function__` is not asked)."""

from torch import Tensor


def has_torch_function(relevant_args: object) -> bool:
    """False."""
    return False


has_torch_function_unary = has_torch_function


def has_torch_function_variadic(*args: object) -> bool:
    """False."""
    return False


def handle_torch_function(public_api: object, relevant_args: object, *args: object, **kwargs: object) -> object:
    """The function's result."""
    return public_api(*args, **kwargs)


def is_tensor_like(inp: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(inp, Tensor)


def wrap_torch_function(dispatcher: object) -> object:
    """A decorator that changes nothing."""
    return lambda function: function
