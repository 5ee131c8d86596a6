"""torch.autograd.forward_ad, and the number of the innermost dual level."""

from tapegrad.autograd.forward_ad import innermost as _innermost


def __getattr__(name: str) -> int:
    if name == "_current_level":
        level = _innermost()
        return -1 if level is None else level.number
    raise AttributeError(name)
