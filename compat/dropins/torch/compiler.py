"""torch.compiler: nothing is compiled, functions run as they are."""

from contextlib import nullcontext

from torch import compile as compile


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_dynamo_supported = is_inductor_supported = is_compiling


def _as_it_is(fn: object = None, *args: object, **kwargs: object) -> object:
    """The function as it is; without one, a decorator."""
    return fn if callable(fn) else _decorator


def _decorator(fn: object) -> object:
    return fn


(
    allow_in_graph, assume_constant_result, disable, disallow_in_graph, forbid_in_graph, mark_static, mark_dynamic, run,
    maybe_mark_dynamic, mark_static_address, wrap_numpy, nested_compile_region, optimize, nonstrict_trace,
) = [_as_it_is] * 14  # fmt: skip


def substitute_in_graph(original_fn: object, **kwargs: object) -> object:
    """A decorator that changes nothing."""
    return _decorator


def reset() -> None:
    """Nothing to forget."""


graph_break = cudagraph_mark_step_begin = reset


def set_stance(*args: object, **kwargs: object) -> nullcontext:
    """A block, as it is."""
    return nullcontext()


def list_backends(exclude_tags: object = ()) -> list:
    """The compilers: none."""
    return []
