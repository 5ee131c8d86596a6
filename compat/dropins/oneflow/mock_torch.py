"""``import torch`` gives tapegrad's drop-in for torch, printing as OneFlow does."""

from tapegrad import compat
from tapegrad.compat.finder import FINDER


class enable:
    """Make ``import torch`` give tapegrad, from the call on or inside a with block.

    What the program has imported of PyTorch before stays as it is.
    """

    def __init__(self, *_: object, **__: object) -> None:
        self.enable = "torch" in FINDER.roots  # whether it was on before
        compat.install("torch", replace=True)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not self.enable:
            compat.remove("torch")


class disable:
    """Undo ``enable``, from the call on or inside a with block."""

    def __init__(self) -> None:
        self.enable = "torch" in FINDER.roots
        compat.remove("torch")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self.enable:
            compat.install("torch", replace=True)
