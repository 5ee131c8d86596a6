"""torch.compiler: marks for a compiler that takes functions as they are; see torch.compile."""

from contextlib import nullcontext

from torch import compile as compile


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_dynamo_supported = is_inductor_supported = is_compiling


def _as_it_is(
    fn: object = None, *args: object, obj: object = None, func: object = None, mod: object = None, **kwargs: object
) -> object:
    """The function, class or module as it is, under whichever name it comes; without one, a decorator."""
    found = next((given for given in (fn, obj, func, mod) if callable(given)), None)
    return _as_it_is if found is None else found


(
    allow_in_graph, assume_constant_result, disable, disallow_in_graph, forbid_in_graph, mark_static, mark_dynamic, run,
    maybe_mark_dynamic, mark_static_address, wrap_numpy, nested_compile_region, optimize, nonstrict_trace,
) = [_as_it_is] * 14  # fmt: skip


def substitute_in_graph(original_fn: object, **kwargs: object) -> object:
    """A decorator that changes nothing."""
    return _as_it_is


def reset() -> None:
    """Nothing to forget."""


graph_break = cudagraph_mark_step_begin = reset


def set_stance(*args: object, **kwargs: object) -> nullcontext:
    """A block, as it is."""
    return nullcontext()


def list_backends(exclude_tags: object = ()) -> list:
    """The compilers: none."""
    return []
