"""torch.cpu: the one device."""

from contextlib import nullcontext


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def set_device(device: object) -> None:
    """Nothing to choose."""


synchronize = set_device


class Stream:
    """A queue of work; the CPU's is worked off at once."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        """Nothing to wait for."""


def current_stream(device: object = None) -> Stream:
    """A queue."""
    return Stream()


def stream(stream: Stream) -> nullcontext:
    """The block, as it is."""
    return nullcontext()
