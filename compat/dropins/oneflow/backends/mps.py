"""oneflow.backends.mps: not there."""


def is_available() -> bool:
    """False."""
    return False
