"""torch.utils._python_dispatch: what programs ask of tensors of other kinds, of which there are none."""


def is_traceable_wrapper_subclass(t: object) -> bool:
    """False: no tensor wraps others."""
    return False
