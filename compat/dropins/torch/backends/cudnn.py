"""torch.backends.cudnn: not there; its switches can be set and change nothing."""

from contextlib import contextmanager


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
):
    """The switches are so in the block, and as before after it."""
    given = dict(locals())
    before = {name: globals()[name] for name in given}
    globals().update(given)
    try:
        yield
    finally:
        globals().update(before)
