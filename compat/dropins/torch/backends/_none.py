"""A library that is not there: it says so; its switches can be set and change nothing."""

from contextlib import contextmanager

enabled = True
benchmark = deterministic = verbose = False
benchmark_limit = 10
allow_tf32 = True
fp32_precision = "none"
strategy = None
engine, supported_engines = "none", ["none"]
VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """False."""
    return False


is_built = is_acl_available = is_available


def version() -> None:
    """None."""


def is_acceptable(tensor: object) -> bool:
    """Whether the library would compute with the tensor: False."""
    return False


def get_cpu_capability() -> str:
    """The vector instructions that PyTorch's kernels were built for: it has none here."""
    return "DEFAULT"


@contextmanager
def flags(*args: object, **kwargs: object):
    """The block, as it is."""
    yield


def set_flags(*args: object, **kwargs: object) -> tuple:
    """Nothing to set."""
    return args
