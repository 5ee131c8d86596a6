"""torch.autograd, and a switch of PyTorch's own threads."""

from contextlib import nullcontext as _nullcontext


class set_multithreading_enabled(_nullcontext):
    """backward uses no threads of its own: nothing to switch."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, mode: bool) -> None:
        super().__init__()
