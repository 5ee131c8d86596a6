"""torch.nn._reduction: the reductions of losses, as numbers and by the older pair of switches."""

import warnings


def get_enum(reduction: str) -> int:
    """0, 1 or 2 for "none", "mean" or "sum"."""
    known = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}
    if reduction not in known:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        text = "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead."
        warnings.warn(text, stacklevel=2)
    return known[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that two switches mean; None is True."""
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    if emit_warning:
        text = f"size_average and reduce args will be deprecated, please use reduction='{found}' instead."
        warnings.warn(text, stacklevel=2)
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The same as a number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
