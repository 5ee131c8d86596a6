"""torch.utils.dlpack: arrays of other libraries, also as the capsules of older programs."""

import tapegrad
from tapegrad import to_dlpack as to_dlpack


class _Owner:
    """A capsule as an object of the protocol, on the CPU."""

    def __init__(self, capsule: object):
        self.capsule = capsule

    def __dlpack__(self, **kwargs: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: object) -> tapegrad.Tensor:
    """A tensor on the memory of another library's array, or of a capsule that to_dlpack gave."""
    return tapegrad.from_dlpack(_Owner(ext_tensor) if type(ext_tensor).__name__ == "PyCapsule" else ext_tensor)
