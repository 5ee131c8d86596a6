"""torch.autograd, what operations save as an object, and a switch of PyTorch's own threads."""

from tapegrad.contexts import ContextDecorator as _ContextDecorator
from tapegrad.tensor.saved_tensors import SavedTensor as SavedTensor

_multithreading = [True]


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled was told last: backward uses no threads of its own in any case."""
    return _multithreading[-1]


class set_multithreading_enabled(_ContextDecorator):
    """Takes effect when called, and until the end of the block as a context manager; backward uses no threads of its own."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode, self._before = mode, _multithreading[-1]
        _multithreading[-1] = mode

    def present(self) -> bool:
        return self._before

    def enter(self) -> None:
        _multithreading[-1] = self.mode

    def leave(self, previous: bool) -> None:
        _multithreading[-1] = previous

    def clone(self) -> "set_multithreading_enabled":
        return set_multithreading_enabled(self.mode)
