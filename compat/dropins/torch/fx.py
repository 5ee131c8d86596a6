"""torch.fx: there are no graphs of programs; functions that were marked for it run as they are."""


def wrap(fn_or_name: object) -> object:
    """The function as it is."""
    return fn_or_name
