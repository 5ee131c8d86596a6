"""Modules as functions of their parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..functions.joining import stack
from ..tensor.tensor import Tensor

R = TypeVar("R")


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given parameters and buffers in place of its own.

    Args:
        module: an `nn.Module`.
        parameter_and_buffer_dicts: tensors by name, as in `named_parameters()`; or a sequence of such dicts. For
            other names the module's own tensors are used.
        args: arguments of the module: a tuple, or a single one.
        kwargs: its keyword arguments.
        tie_weights: a tensor given for one name of a shared parameter is used for all its names.
        strict: exactly the names of all parameters and buffers must be given.

    Returns:
        The module's output. Buffers that it reassigns are stored in the given dict.

    Raises:
        TypeError: for a value that is not a tensor, or a name that does not refer to a tensor.
        ValueError: for a name in several dicts, or different tensors for the names of a tied parameter.
        RuntimeError: with `strict`, for missing or unexpected names.

    Example:
        >>> net = tg.nn.Linear(1, 1)
        >>> w = {"weight": tg.tensor([[2.0]]), "bias": tg.tensor([1.0])}
        >>> loss = lambda w, x: tg.func.functional_call(net, w, x).sum()
        >>> tg.func.grad(loss)(w, tg.tensor([[5.0]]))
        {'weight': tensor([[5.]]), 'bias': tensor([1.])}
    """
    given = merged(parameter_and_buffer_dicts)
    named = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    values = untied(given, named) if tie_weights else dict(given)
    if strict:
        check_names(values, named, module)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    return call_swapped(module, values, given, functools.partial(module, *positional, **(kwargs or {})))


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make all batch norms of a module use batch statistics only, without running statistics; returns the module.

    The module can then be used in `vmap`, where buffers cannot be written.

    Args:
        root: the module, which is changed.

    Example:
        >>> net = tg.func.replace_all_batch_norm_modules_(tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.BatchNorm1d(2)))
        >>> net[1].running_mean is None
        True
    """
    for module in root.modules():
        if "_BatchNorm" in [c.__name__ for c in type(module).__mro__]:  # nn lies above this module
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def merged(dicts: Any) -> Any:
    """The tensors of one or several dicts."""
    if isinstance(dicts, Mapping):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = list(dict.fromkeys([name for name in names if names.count(name) > 1]))
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


def untied(given: Mapping[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """The given tensors under every name that their parameters have in the module."""
    groups: dict[int, list[str]] = {}
    for name, t in named.items():
        groups.setdefault(id(t), []).append(name)
    values = dict(given)
    for names in groups.values():
        present = [name for name in names if name in given]
        if len(names) == 1 or not present:
            continue
        if any(given[name] is not given[present[0]] for name in present):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        values.update(dict.fromkeys(names, given[present[0]]))
    return values


def check_names(values: dict[str, Any], named: dict[str, Any], module: Any) -> None:
    texts = {"Unexpected": [n for n in values if n not in named], "Missing": [n for n in named if n not in values]}
    lines = [f"{kind} key(s): {', '.join(map(repr, sorted(names)))}." for kind, names in texts.items() if names]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines))


class Swapped:
    """A module with other tensors for its own, put in by `begin`; `end` puts its own back."""

    def __init__(self, module: Any, values: dict[str, Any]) -> None:
        self.places = [(*find_place(module, name, value), name, value) for name, value in values.items()]

    def begin(self) -> None:
        for members, attribute, _, _, value in self.places:
            members[attribute] = value

    def end(self, given: Any) -> None:
        """To end twice is to end once; what the module has reassigned goes into `given`."""
        for members, attribute, own, name, value in self.places:
            reassigned = members.get(attribute, own)
            if reassigned is not value and reassigned is not own and name in given and isinstance(given, dict):
                given[name] = reassigned
        for members, attribute, own, _, _ in reversed(self.places):
            if own is ABSENT:
                members.pop(attribute, None)
            else:
                members[attribute] = own


@contextmanager
def swapped(module: Any, values: dict[str, Any], given: Any) -> Iterator[None]:
    """A block in which a module has other tensors."""
    swap = Swapped(module, values)
    try:
        swap.begin()
        yield
    finally:
        swap.end(given)


def call_swapped(module: Any, values: dict[str, Any], given: Any, function: Callable[[], R]) -> R:
    """What a function gives while a module has other tensors."""
    swap = Swapped(module, values)
    try:
        try:
            swap.begin()
            return function()
        finally:
            swap.end(given)
    except BaseException:  # Ctrl-C may have come before the line above was through
        swap.end(given)
        raise


ABSENT = object()


def find_place(module: Any, name: str, value: Any) -> tuple[dict[str, Any], str, Any]:
    """Where a module keeps the tensor of a name: a dict, the key in it, and what it holds now."""
    path, _, attribute = name.rpartition(".")
    if not attribute:
        raise KeyError('tensor name can\'t be empty string ""')
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    owner = module.get_submodule(path)
    for members in (owner._parameters, owner._buffers):
        if attribute in members:
            return members, attribute, members[attribute]
    own = getattr(owner, attribute, ABSENT)
    if own is not ABSENT and own is not None and not isinstance(own, Tensor):
        raise TypeError(f"attribute `{attribute}`: {own} is not an instance of torch.Tensor")
    return owner.__dict__, attribute, owner.__dict__.get(attribute, ABSENT)


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and buffers of models of one class, for an ensemble under `vmap`.

    Args:
        models: modules of the same class and mode, at least one.

    Returns:
        (parameters, buffers), dicts of tensors stacked along a new first dimension. Parameters that require grad are new
        leaves.

    Raises:
        RuntimeError: for an empty list, or models that differ in class, mode or requires_grad of parameters.

    Example:
        >>> nets = [tg.nn.Linear(2, 1) for _ in range(3)]
        >>> params, buffers = tg.func.stack_module_state(nets)
        >>> call = lambda w, x: tg.func.functional_call(nets[0], w, x)
        >>> tg.func.vmap(call, (0, None))(params, tg.ones(5, 2)).shape
        torch.Size([3, 5, 1])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(m.training) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return ({name: stacked([p[name] for p in parameters], name) for name in parameters[0]},
            {name: stacked([b[name] for b in buffers], name) for name in buffers[0]})  # fmt: skip


def stacked(tensors: list[Any], name: str) -> Any:
    """Tensors stacked; a new leaf if they require grad."""
    tracked = {t.requires_grad for t in tensors}
    if len(tracked) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = stack(tensors)
    return result.detach().requires_grad_() if True in tracked else result
