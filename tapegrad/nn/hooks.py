"""Hooks on the calls of modules, of one module or of all, and on the gradients that pass through them.

A module's hooks are in its `__dict__`, in tables by id; those of all modules are in `EVERYWHERE`, under the same names. The
id of a hook that is called with other arguments than the rest of its table is also in a second table.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.function import Function
from ..core.level import level_of
from ..core.state import TASK
from ..functions import create
from ..levels.vmap import Batch
from ..modes import is_grad_enabled
from ..tensor.graph import CHANGES, RemovableHandle, hook_into, owned_hooks
from ..tensor.tensor import Tensor

CALL_TABLES = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")
TABLES = (
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_hooks_without_result", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks_with_module", "_load_state_dict_post_hooks",
)  # fmt: skip


def counted(method: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    """A method that changes a table, and counts it."""

    def changing(self: Any, *args: Any, **kwargs: Any) -> Any:
        count()
        return method(self, *args, **kwargs)

    return changing


def changed() -> None:
    RemovableHandle.changes = next(CHANGES)


class HookTable(OrderedDict[int, Any]):
    """Hooks by id; one that is removed without its handle, as by `clear()`, counts as a change of hooks, too."""

    __delitem__ = counted(OrderedDict.__delitem__, changed)
    clear = counted(OrderedDict.clear, changed)
    pop = counted(OrderedDict.pop, changed)
    popitem = counted(OrderedDict.popitem, changed)

    def __reduce__(self) -> Any:
        """In files an OrderedDict, as PyTorch's is; see `restored`."""
        return OrderedDict, (), None, None, iter(self.items())


def restored(state: dict[str, Any]) -> dict[str, Any]:
    """Tables of hooks from the state of a file; those that older versions lack are empty."""
    found = {name: HookTable(state[name]) for name in CALL_TABLES if type(state.get(name)) in (dict, OrderedDict)}
    return {**tables(), **state, **found}


def tables() -> dict[str, Any]:
    """Empty tables."""
    made: dict[str, Any] = {"_is_full_backward_hook": None}
    for name in CALL_TABLES:
        made[name] = HookTable()
    for name in TABLES:
        made[name] = {}
    return made


EVERYWHERE: dict[str, Any] = {"_hooked": False, **tables()}
REGISTRATIONS: dict[str, dict[int, Any]] = {"parameter": {}, "buffer": {}, "module": {}}


def enter(owner: dict[str, Any], table: str, hook: Any, prepend: bool = False, **marks: bool) -> RemovableHandle:
    """Add a hook to a table, at the end or at the front; `marks` are suffixes of the second tables that list its id."""
    handle = hook_into(owner[table], hook, *[owner[f"{table}_{name}"] for name, on in marks.items() if on])
    if prepend:
        owner[table].move_to_end(handle.id, last=False)
    if table in CALL_TABLES:
        owner["_hooked"] = True
    return handle


def are_left(owner: dict[str, Any]) -> bool:
    """Whether there are hooks on calls."""
    return any([owner[name] for name in CALL_TABLES])


def enter_backward(owner: dict[str, Any], hook: Any, full: bool, where: str, prepend: bool = False) -> RemovableHandle:
    """Add a backward hook to its table, which holds either full or older hooks."""
    if owner["_is_full_backward_hook"] is not None and owner["_is_full_backward_hook"] != full:
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
        )
    owner["_is_full_backward_hook"] = full
    return enter(owner, "_backward_hooks", hook, prepend)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, args) before every module's forward; a result other than None replaces the arguments.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Example:
        >>> handle = tg.nn.module.register_module_forward_pre_hook(lambda module, args: (2 * args[0],))
        >>> tg.nn.Identity()(tg.ones(2))
        tensor([2., 2.])
        >>> handle.remove()
    """
    return enter(EVERYWHERE, "_forward_pre_hooks", hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call hook(module, args, output) after every module's forward; a result other than None replaces the output.

    Args:
        hook: with with_kwargs it is called as hook(module, args, kwargs, output).
        with_kwargs: whether the hook takes the keyword arguments of the call.
        always_call: also call it where forward raises.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Example:
        >>> hook = lambda module, args, output: print(type(module).__name__, tuple(output.shape))
        >>> handle = tg.nn.module.register_module_forward_hook(hook)
        >>> y = tg.nn.Sequential(tg.nn.Linear(2, 3), tg.nn.ReLU())(tg.ones(1, 2))
        Linear (1, 3)
        ReLU (1, 3)
        Sequential (1, 3)
        >>> handle.remove()
    """
    return enter(EVERYWHERE, "_forward_hooks", hook, with_kwargs=with_kwargs, always_called=always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_output) before the backward of every module; see Module.register_full_backward_pre_hook.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Example:
        >>> hook = lambda module, grad_output: print(type(module).__name__, grad_output)
        >>> handle = tg.nn.module.register_module_full_backward_pre_hook(hook)
        >>> tg.nn.Tanh()(tg.zeros(1, requires_grad=True)).sum().backward()
        Tanh (tensor([1.]),)
        >>> handle.remove()
    """
    return enter(EVERYWHERE, "_backward_pre_hooks", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) after the backward of every module; see Module.register_full_backward_hook.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Raises:
        RuntimeError: if register_module_backward_hook was called before.

    Example:
        >>> hook = lambda module, grad_input, grad_output: print(type(module).__name__, grad_input, grad_output)
        >>> handle = tg.nn.module.register_module_full_backward_hook(hook)
        >>> tg.nn.Tanh()(tg.zeros(1, requires_grad=True)).sum().backward()
        Tanh (tensor([1.]),) (tensor([1.]),)
        >>> handle.remove()
    """
    return enter_backward(EVERYWHERE, hook, True, "as a global Module hook")


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Deprecated: call hook(module, grad_input, grad_output) on the last operation of every module.

    register_module_full_backward_hook calls hooks with the gradients of all inputs; a process has hooks of one kind.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Raises:
        RuntimeError: if register_module_full_backward_hook was called before.

    Example:
        >>> handle = tg.nn.module.register_module_full_backward_hook(print)
        >>> handle.remove()
        >>> try:
        ...     tg.nn.module.register_module_backward_hook(print)
        ... except RuntimeError as e:
        ...     print(str(e).split(" as ")[0])
        Cannot use both regular backward hooks and full backward hooks
    """
    return enter_backward(EVERYWHERE, hook, False, "as a global Module hook")


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, parameter) when a parameter is registered; a result other than None replaces it.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Example:
        >>> hook = lambda module, name, parameter: print(name, tuple(parameter.shape))
        >>> handle = tg.nn.module.register_module_parameter_registration_hook(hook)
        >>> layer = tg.nn.Linear(2, 3)
        weight (3, 2)
        bias (3,)
        >>> handle.remove()
    """
    return hook_into(REGISTRATIONS["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, buffer) when a buffer is registered; a result other than None replaces it.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Example:
        >>> hook = lambda module, name, buffer: print(name)
        >>> handle = tg.nn.module.register_module_buffer_registration_hook(hook)
        >>> tg.nn.Module().register_buffer("mask", tg.ones(2))
        mask
        >>> handle.remove()
    """
    return hook_into(REGISTRATIONS["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, submodule) when a submodule is registered; a result other than None replaces it.

    Returns:
        A handle; `handle.remove()` takes the hook away.

    Example:
        >>> hook = lambda module, name, submodule: print(name, submodule)
        >>> handle = tg.nn.module.register_module_module_registration_hook(hook)
        >>> net = tg.nn.Sequential(tg.nn.ReLU())
        0 ReLU()
        >>> handle.remove()
    """
    return hook_into(REGISTRATIONS["module"], hook)


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """The value after the registration hooks of its kind have run."""
    for hook in list(REGISTRATIONS[kind].values()):
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


# --------------------------------------------------------------------------------------------------------------- calls


def call(module: Any, args: Any, kwargs: Any) -> Any:
    """Run the forward hooks and a module's forward."""
    own = module.__dict__
    for owner in (EVERYWHERE, own):
        if owner.get("_hooked") and not are_left(owner):
            owner["_hooked"] = False
            owner["_hooked"] = are_left(owner)  # another thread may have added one
    done: set[int] = set()
    result = None
    try:
        for owner in (EVERYWHERE, own):
            for key, hook in list(owner["_forward_pre_hooks"].items()):
                args, kwargs = run_before(hook, key in owner["_forward_pre_hooks_with_kwargs"], module, args, kwargs)
        passing = Passing.of(module)
        if passing is not None:
            args = passing.enter(args)
        result = module.forward(*args, **kwargs)
        for key, hook, owner in forward_hooks(own):
            done.add(key)
            result = run_after(hook, key in owner["_forward_hooks_with_kwargs"], module, args, kwargs, result)
        if passing is not None:
            result = passing.leave(result)
        watch_last(module, args, result)
        return result
    except Exception:
        for key, hook, owner in forward_hooks(own):
            if key in owner["_forward_hooks_always_called"] and key not in done:
                result = run_always(hook, key in owner["_forward_hooks_with_kwargs"], module, args, kwargs, result)
        raise


def forward_hooks(own: dict[str, Any]) -> list[tuple[int, Any, dict[str, Any]]]:
    """The forward hooks of all modules and of this one, with their ids and tables."""
    return [(key, hook, owner) for owner in (EVERYWHERE, own) for key, hook in list(owner["_forward_hooks"].items())]


def run_before(hook: Any, with_kwargs: bool, module: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    changed = hook(module, args, kwargs) if with_kwargs else hook(module, args)
    if changed is None:
        return args, kwargs
    if not with_kwargs:
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")


def run_after(hook: Any, with_kwargs: bool, module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if changed is None else changed


def run_always(hook: Any, with_kwargs: bool, module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """Run a hook after an exception; an exception of its own is suppressed, since it would hide the first."""
    try:
        return run_after(hook, with_kwargs, module, args, kwargs, result)
    except Exception as e:
        warnings.warn(
            "module forward hook with ``always_call=True`` raised an exception that was silenced as another error was "
            f"raised in forward: {e}",
            stacklevel=4,
        )
        return result


# ------------------------------------------------------------------------------------------------------------ gradients


class BackwardHookFunction(Function):
    """The identity; hooks are registered on its node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        ctx.mark_non_differentiable(*[t for t, need in zip(tensors, ctx.needs_input_grad, strict=True) if not need])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangents


class Passing:
    """One call of a module with full backward hooks, and the gradients collected for it in a backward pass.

    Attributes:
        inputs: positions of the tensors among the positional arguments; None if none of them has a gradient.
        outputs: the same for the outputs.
    """

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.inputs: list[int] | None = None
        self.outputs: list[int] | None = None
        self.n_inputs = self.n_outputs = 0
        self.metas: list[Any] = []  # of the inputs: shape and dtype

    @staticmethod
    def of(module: Any) -> Passing | None:
        """A record of the call, if the module has full backward hooks."""
        owners = (EVERYWHERE, module.__dict__)
        pre = [hook for owner in owners for hook in list(owner["_backward_pre_hooks"].values())]
        full_owners = [owner for owner in owners if owner["_is_full_backward_hook"]]
        full = [hook for owner in full_owners for hook in list(owner["_backward_hooks"].values())]
        return Passing(module, full, pre) if full or pre else None

    def enter(self, args: Any) -> Any:
        """The arguments, passed through a node with a hook."""
        self.n_inputs = len(args)
        self.metas = [(v.shape, v.dtype) for v in args if isinstance(v, Tensor)]
        args, self.inputs = watched(args, self.after)
        return args

    def leave(self, result: Any) -> Any:
        """The result, passed through a node with a hook."""
        if not isinstance(result, Tensor | tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=4,
            )
        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        results, self.outputs = watched(results, self.before)
        return results if isinstance(result, tuple) else results[0]

    def before(self, _: Any, grad_outputs: Any) -> Any:
        """Called with the gradients of the outputs."""
        grads: Any = at_positions(self.outputs, grad_outputs, self.n_outputs)
        for hook in self.pre_hooks:
            grads = answer(hook(self.module, grads), grads, "Backward pre hook", "grad_output")
        if self.inputs is not None:
            TASK.get().values[self] = grads  # on self, gradients with a history would form a cycle with the graph
        else:
            self.without_inputs(grads)
        return tuple([grads[i] for i in self.outputs or ()])

    def without_inputs(self, grad_outputs: Any) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook "
            "for more details.",
            stacklevel=4,
        )
        for hook in self.hooks:
            result = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all "
                    "gradients."
                )

    def after(self, grad_inputs: Any, _: Any) -> Any:
        """Called with the gradients of the inputs."""
        grad_outputs = TASK.get().values.pop(self, None)
        if grad_outputs is None:  # the gradients did not pass through the outputs
            return None
        filled = [create.zeros(m[0], dtype=m[1]) if g is None else g for g, m in zip(grad_inputs, self.metas, strict=True)]
        grads: Any = at_positions(self.inputs, filled, self.n_inputs)
        for hook in self.hooks:
            grads = answer(hook(self.module, grads, grad_outputs), grads, "Backward hook", "grad_input")
        return tuple([None if g is None else grads[i] for g, i in zip(grad_inputs, self.inputs or (), strict=True)])


def watched(values: Any, act: Callable[[Any, Any], Any]) -> tuple[Any, list[int] | None]:
    """A tuple whose tensors pass through one node with a hook, and their positions; unchanged if none requires grad."""
    positions = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not is_grad_enabled() or not any([values[i].requires_grad for i in positions]):
        return values, None

    def hook(grad_inputs: Any, grad_outputs: Any) -> Any:
        return act(grad_inputs, grad_outputs)

    full = list(values)
    made = list(BackwardHookFunction.apply(*[values[i] for i in positions]))
    for i, t in zip(positions, made, strict=True):
        full[i] = t
    hook_into(owned_hooks([recorded(t) for t in made]).post, hook)
    return (type(values)(*full) if hasattr(values, "_fields") else tuple(full)), positions


def recorded(t: Any) -> Any:
    """The tensor with a place in the graph: inside forward transforms, its primal."""
    while not t._s and (level := level_of(t)) is not None:
        if isinstance(level, Batch) and t.requires_grad:
            raise RuntimeError(
                "a full backward hook of a module cannot see the gradients of single samples outside of vmap: call the "
                "module under no_grad(), differentiate inside of vmap, as in vmap(grad(f)), or remove the hook"
            )
        t = t._st.primal
    return t


def at_positions(positions: list[int] | None, grads: Sequence[Any], n: int) -> tuple[Any, ...]:
    """A tuple of n gradients: those given at their positions, None elsewhere."""
    found = dict(zip(positions or (), grads, strict=True))
    return tuple([found.get(i) for i in range(n)])


def answer(result: Any, grads: Any, who: str, what: str) -> Any:
    """The gradients that a hook returned."""
    if result is None:
        return grads
    result = (result,) if isinstance(result, Tensor) else result
    if len(result) != len(grads):
        raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(result)}, but expected {len(grads)}")
    return result


# --------------------------------------------------------------------------------------------------- hooks of older code


def watch_last(module: Any, args: Any, result: Any) -> None:
    """Register the older backward hooks on the node that computed the (first) output."""
    owners = [o for o in (EVERYWHERE, module.__dict__) if o["_backward_hooks"] and not o["_is_full_backward_hook"]]
    if not owners:
        return
    first = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    grad_fn = first.grad_fn
    if grad_fn is None:
        return
    for owner in owners:
        for hook in list(owner["_backward_hooks"].values()):
            grad_fn.register_hook(functools.partial(hook, module))
    text = missing(args, result, grad_fn)
    if text:
        warnings.warn(f"Using {text}", FutureWarning, stacklevel=4)


def missing(args: Any, result: Any, grad_fn: Any) -> str:
    """PyTorch's warning about gradients of this call that such hooks do not see; "" if they see all."""
    advice = "Please use register_full_backward_hook to get the documented behavior."
    results = (result,) if isinstance(result, Tensor) else result
    for values, verb, what in ((results, "return", "grad_output"), (args, "take as input", "grad_input")):
        if not (isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)):
            return (
                f"non-full backward hooks on a Module that does not {verb} a single Tensor or a tuple of Tensors is "
                f"deprecated and will be removed in future versions. This hook will be missing some of the {what}. {advice}"
            )
    start = "a non-full backward hook when "
    lost = "is deprecated and will be removed in future versions. This hook will be missing some "
    made = {t.grad_fn for t in results if t.grad_fn is not None}
    if len(made) > 1:
        return f"{start}outputs are generated by different autograd Nodes {lost}grad_output. {advice}"
    if {node for node, _ in grad_fn.next_functions} != {t.grad_fn for t in args if t.grad_fn is not None}:
        return f"{start}the forward contains multiple autograd Nodes {lost}grad_input. {advice}"
    return ""
