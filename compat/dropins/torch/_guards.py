"""torch._guards: what programs ask of tensors without values, of which there are none."""


def active_fake_mode() -> None:
    """None."""


def detect_fake_mode(inputs: object = None) -> None:
    """None."""
