"""PyTorch's names on tapegrad."""

from .torch_version import TorchVersion as _TorchVersion

__version__ = _TorchVersion("2.13.0+tapegrad")


class OutOfMemoryError(RuntimeError):
    """A device has no memory left; never raised here."""


def compile(model: object = None, *args: object, **kwargs: object) -> object:
    """The function or module as it is: nothing is compiled. Without one, a decorator."""
    return model if callable(model) else lambda fn: fn
