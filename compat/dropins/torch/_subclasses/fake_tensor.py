"""torch._subclasses.fake_tensor: no tensor is without values."""


class FakeTensor:
    """No tensor is one."""


def is_fake(x: object) -> bool:
    """False."""
    return False
