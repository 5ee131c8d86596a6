"""Base of optimizers: parameter groups, state, hooks, and the ways in which an update formula runs.

A formula is written once, with the operations of `arithmetic`. It runs

- in place on NumPy arrays: a step allocates nothing. A parameter or state tensor whose array is referenced elsewhere, for
  example by a tape entry, is copied first. Small parameters are updated together, see `buckets`;
- on tensors, recorded (`differentiable=True`), with the results and their history written in place; the same, without
  recording, for complex parameters (as pairs of real numbers) and inside transforms;
- on tensors as a pure function, see `functional`.
"""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import numpy as np

from .. import dtypes
from ..contexts import restoring
from ..core import alias, inplace
from ..core.record import fixed, functional, running_trace, wrap
from ..core.state import is_recording
from ..core.warning import warn
from ..functions.complex_and_bits import view_as_complex_copy, view_as_real, view_as_real_copy
from ..functions.create import full_like
from ..functions.elementwise import where
from ..functions.inplace import check_writable, count_write
from ..modes import enable_grad, no_grad, set_grad_enabled
from ..nn.module import typename
from ..programs.tracing import grad_accessed, holds_now, suspended, unfit
from ..tensor.access import raw
from ..tensor.graph import RemovableHandle, hook_into
from ..tensor.tensor import Tensor
from . import buckets
from .arithmetic import Arrays, Tensors

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
Group = dict[str, Any]
TENSORS = Tensors()
LARGE_BYTES = 1 << 20  # parameters beyond this are updated in parts
PART_BYTES = 1 << 18  # with its state and temporaries a part stays in the cache


class _RequiredParameter:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _RequiredParameter()
_global_optimizer_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Any] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) before each step of any optimizer; it may return new (args, kwargs)."""
    return hook_into(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) after each step of any optimizer."""
    return hook_into(_global_optimizer_post_hooks, hook)


def given(values: dict[str, Any], **before: str) -> dict[str, Any]:
    """The settings among the local variables of an `__init__`; `a="b"` inserts a before b, as in PyTorch's groups."""
    names = [k for k in values if k not in ("self", "params", "__class__")]
    for name, last in before.items():
        names.remove(name)
        names.insert(names.index(last), name)
    return {k: values[k] for k in names}


def check(what: str, value: Any, low: float = 0.0) -> None:
    """Raise ValueError for a setting below `low`."""
    if not value >= low:
        raise ValueError(f"Invalid {what}: {value}")


def check_size(lr: Any, what: str = "lr") -> None:
    """Raise ValueError for a setting that is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor {what} must be 1-element")


def check_lr(lr: Any) -> None:
    check_size(lr)
    check("learning rate", lr)


def check_betas(betas: Any) -> None:
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def writable(t: Any) -> Any:
    """The tensor's array for writing; copied first if it is referenced elsewhere."""
    array = inplace.target(t)
    if array is None:
        array = t._d = t._d.copy(order="K")
    return array


def overwrite(t: Any, value: Any) -> None:
    """Write the value and history of a tensor into another, in place."""
    check_writable(t, "step", is_recording() and (alias.slot_of(t) != 0 or alias.slot_of(value) != 0))
    inplace.assign(t, value, "step")


def gradient_of(p: Any, read: bool = True) -> Any:
    """The parameter's gradient, or None; noted in a running trace."""
    grad_accessed(p, read)
    return getattr(p, "_g", None)


def special(t: Any) -> bool:
    """Whether a tensor cannot be updated through its array: complex, on another device, or inside a transform."""
    return raw(t).dtype.kind == "c" or (t._st is not None and (functional(t._d) or alias.has_level(t)))


def plain(value: Any) -> Any:
    """A setting as a number, also if it is a tensor."""
    if isinstance(value, tuple | list):
        return tuple([plain(v) for v in value])
    return value.item() if isinstance(value, Tensor) else value


def scalar_setting(value: Any) -> Any:
    """A setting for formulas on tensors: a tensor is reshaped to 0 dimensions."""
    if isinstance(value, tuple | list):
        return tuple([scalar_setting(v) for v in value])
    return _to_scalar(value)


def settings_of(group: Group) -> Group:
    """The group's settings for formulas on tensors. A traced program reads variable ones at each run."""
    h = {k: scalar_setting(v) for k, v in group.items() if k not in ("params", "param_names")}
    trace = running_trace()
    return h if trace is None else {k: trace.setting(group, k, v) for k, v in h.items()}


def exact(t: Any) -> Any:
    """A 0-dim state tensor as a NumPy scalar; inside a transform, or where it has a history, as a float64 tensor."""
    if alias.slot_of(t) or alias.has_level(t) or running_trace() is not None:
        return t.to(dtypes.float64)
    return raw(t)[()]


def _listed(params: Any) -> list[Any]:
    if not isinstance(params, Iterable):
        remedy = ". Pass its parameters()." if hasattr(params, "parameters") else ""
        raise TypeError(f"'{type(params).__name__}' object is not iterable{remedy}")
    return list(params)


def between_hooks(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A step, after and before the hooks of its optimizer and of all."""
    self = args[0]
    for hook in [*_global_optimizer_pre_hooks.values(), *self._hooks("step_pre").values()]:
        result = hook(self, args, kwargs)
        if result is not None:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{function} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
    out = function(*args, **kwargs)
    for hook in [*self._hooks("step_post").values(), *_global_optimizer_post_hooks.values()]:
        hook(self, args, kwargs)
    return out


def hooked(function: F) -> F:
    """Decorator: a `step` with hooks; a nested call of a base class's `step` runs no hooks."""

    @functools.wraps(function)
    @restoring
    def step(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        if self._stepping:
            return function(*args, **kwargs)
        try:
            try:
                self._opt_called = self._stepping = True
                return between_hooks(function, *args, **kwargs)
            finally:
                self._stepping = False
        except BaseException:  # Ctrl-C may have come before the line above
            self._stepping = False
            raise

    step.hooked = True  # type: ignore[attr-defined]
    return step  # type: ignore[return-value]


class Optimizer:
    """Base class of optimizers; a subclass defines `step`, or `start` and `formula`.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of parameter groups, with "params" and settings.
        defaults: default settings of the groups.

    Attributes:
        param_groups: the groups, as dicts.
        state: a dict of state tensors for each parameter that has been updated.

    Raises:
        TypeError: if params is a single tensor, or contains non-tensors.
        ValueError: for an empty list, tensors that are not leaves, missing settings, or a parameter in two groups.
    """

    scalars: tuple[str, ...] = ("step",)  # names of the 0-dim tensors of a parameter's state
    elementwise = True  # whether the formula is elementwise
    _scheduled = _opt_called = False  # whether a scheduler is attached; whether a step has run since
    _stepping = False
    profile_hook_step = staticmethod(hooked)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._prepare()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = _listed(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _prepare(self) -> None:
        """Create what pickles omit: hooks, scratch arrays, buckets; wrap `step` to call the hooks."""
        for name in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre",
                     "load_state_dict_post"):  # fmt: skip
            self.__dict__.setdefault(f"_optimizer_{name}_hooks", OrderedDict())
        self._arrays = Arrays()
        self._plans: dict[int, buckets.Plan] = {}
        kind: Any = type(self)
        if not getattr(kind.step, "hooked", False):
            kind.step = hooked(kind.step)

    # ---------------------------------------------------------------------------------------------------------- steps

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The result of the closure, or None.
        """
        if type(self).formula is Optimizer.formula:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        recorded = bool(self.defaults.get("differentiable"))
        with set_grad_enabled(recorded), np.errstate(all="ignore"):
            groups = [[p for p in group["params"] if gradient_of(p) is not None] for group in self.param_groups]
            if recorded:
                for p in [p for ready in groups for p in ready]:
                    check_writable(p, "step", True)
            self._arrays.operations.clear()  # what an interrupted step has left
            in_place: list[Any] = []
            for number, (group, ready) in enumerate(zip(self.param_groups, groups, strict=True)):
                if recorded or not self.elementwise or running_trace() is not None:
                    for p in ready:
                        self._step_on_tensors(p, group)
                elif ready:
                    self._step_in_place(number, group, ready)
                    in_place += ready
            self._arrays.run()
            for p in in_place:
                count_write(p)
        return loss

    def _step_unless(self, skipped: Any) -> bool:
        """A step in a traced program that changes nothing where `skipped` holds; False if the optimizer cannot do that."""
        hooks = (
            *_global_optimizer_pre_hooks,
            *_global_optimizer_post_hooks,
            *self._hooks("step_pre"),
            *self._hooks("step_post"),
        )
        if type(self).step is not Optimizer.step or hooks or self.defaults.get("differentiable"):
            return False
        if holds_now(skipped, "a step of an optimizer is skipped"):
            return True
        params = [p for group in self.param_groups for p in group["params"] if gradient_of(p) is not None]
        tables = [self.state.get(p, {}).copy() for p in params]
        tensors = [t for p, table in zip(params, tables, strict=True) for t in (p, *table.values())]
        with no_grad():
            before = [t.clone() for t in tensors]
            self.step()
            if any(self.state.get(p, {}).keys() != table.keys() for p, table in zip(params, tables, strict=True)):
                unfit("the first step of an optimizer, which may be skipped at a later call")
            for t, old in zip(tensors, before, strict=True):
                t.copy_(where(skipped, old, t))
        return True

    def start(self, group: Group) -> dict[str, Any]:
        """The initial state of a parameter: for each name the fill value."""
        return {}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: Group) -> Any:
        """The update of one parameter; returns the new parameter.

        Args:
            m: the operations, `Arrays` or `Tensors`.
            p, g: parameter and gradient, after weight decay and maximize.
            s: the state, updated in place; "step" already includes this step.
            h: the settings.
        """
        raise NotImplementedError

    def _state_of(self, p: Any, group: Group) -> dict[str, Any]:
        """The parameter's state, initialised if it is new."""
        state = self.state.get(p, {})
        first = self.start(group)
        if len(state) < len(first):
            with suspended():
                state.update({k: self.begun(p, k, v) for k, v in first.items() if k not in state})
            self.state[p] = state
        return state

    def begun(self, p: Any, name: str, value: Any) -> Any:
        """An initial state tensor."""
        if name in self.scalars:
            return wrap(np.full((), float(value), _get_scalar_dtype().numpy))
        return full_like(p, complex(value, value) if p.is_complex() else float(value))

    def prepared(self, m: Any, p: Any, g: Any, h: Group) -> tuple[Any, Any]:
        """Parameter and gradient after maximize and weight decay."""
        if h.get("maximize"):
            g = m.neg(g)
        decay = h.get("weight_decay", 0)
        if not isinstance(decay, Tensor) and not decay:
            return p, g
        if h.get("decoupled_weight_decay"):
            return m.mul(p, 1 - h["lr"] * decay, p), g
        return p, m.addmul(g, p, decay)

    def updated(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: Group) -> Any:
        """Count the step, apply maximize and weight decay, and run the formula."""
        if "step" in s:
            s["step"] = (s["step"] if isinstance(s["step"], Tensor) else float(s["step"])) + 1
        p, g = self.prepared(m, p, g, h)
        return self.formula(m, p, g, s, h)

    def _step_in_place(self, number: int, group: Group, ready: list[Any]) -> None:
        plan, names = self._plans.get(number), list(self.start(group))
        if plan is None or not plan.fits(self.state, ready, names):
            members = [(p, self._state_of(p, group)) for p in ready]
            self._plans[number] = plan = buckets.Plan(members, self.scalars, names)
        h = {k: plain(v) for k, v in group.items() if k not in ("params", "param_names")}
        for bucket in plan.buckets:
            bucket.step(self, h)
        for p in plan.single:
            if special(p) or special(p._g):
                self._step_on_tensors(p, group)
            else:
                self._step_one(p, self._state_of(p, group), h)
                if plan.twice:
                    self._arrays.run()

    def _step_one(self, p: Any, state: dict[str, Any], h: Group) -> None:
        """Note the update of one parameter in place."""
        array, gradient = writable(p), raw(p._g)
        s = {k: raw(t)[()] if k in self.scalars else writable(t) for k, t in state.items()}
        dense = [array, gradient, *[v for k, v in s.items() if k not in self.scalars]]
        if array.nbytes > LARGE_BYTES and all([a.flags.c_contiguous and a.shape == array.shape for a in dense]):
            s = self._run_in_parts(array, gradient, s, h)
        else:
            self._run(array, gradient, s, h)
        for k, value in s.items():
            if k not in state:
                self._arrays.set(self.state[p], k, wrap(value))
            elif k in self.scalars:
                self._arrays.set(writable(state[k]), ..., value)

    def _run(self, array: Any, gradient: Any, s: dict[str, Any], h: Group) -> None:
        """Note the update of an array and its state in place; scalars and new arrays of the state are put into `s`."""
        self._arrays.begin(array)
        new = self.updated(self._arrays, array, gradient, s, h)
        if new is not array:
            self._arrays.set(array, ..., new)

    def _run_in_parts(self, array: Any, gradient: Any, s: dict[str, Any], h: Group) -> dict[str, Any]:
        """The same for parts that fit the cache, one after the other; the state afterwards."""
        found = dict(s)
        size = PART_BYTES // array.itemsize
        for start in range(0, array.size, size):
            part = slice(start, start + size)
            own = {k: v if k in self.scalars else v.reshape(-1)[part] for k, v in s.items()}
            self._run(array.reshape(-1)[part], gradient.reshape(-1)[part], own, h)
            for k, value in own.items():
                if np.ndim(value) == 0:
                    found[k] = value
                elif k not in s:
                    if k not in found:
                        found[k] = np.empty(array.shape, value.dtype)
                    self._arrays.set(found[k].reshape(-1), part, value)
        return found

    def evolved(self, p: Any, g: Any, state: dict[str, Any], group: Group) -> tuple[Any, dict[str, Any]]:
        """New parameter and state as new tensors."""
        h = settings_of(group)
        s = {k: exact(t) if k in self.scalars else t for k, t in state.items()}
        parts = p.is_complex() and self.elementwise
        if parts:
            s = {k: t if k in self.scalars else view_as_real_copy(t) for k, t in s.items()}
            new = self.updated(TENSORS, view_as_real_copy(p), view_as_real_copy(g), s, h)
        else:
            new = self.updated(TENSORS, p, g, s, h)
        result = {}
        for k, value in s.items():
            dtype = state[k].dtype if k in state else p.dtype
            if k in self.scalars:
                value = value if isinstance(value, Tensor) else fixed(np.full((), value, dtype.numpy))
            elif parts:
                value = view_as_complex_copy(value)
            result[k] = value.to(dtype)
        return (view_as_complex_copy(new) if parts else new).to(p.dtype), result

    def _step_on_tensors(self, p: Any, group: Group) -> None:
        """Update one parameter by new tensors, whose values and histories are written into its own."""
        state = self._state_of(p, group)
        new, found = self.evolved(p, p._g, state, group)
        try:
            self._overwrite(p, new, state, found)
        except KeyboardInterrupt:  # not between a parameter and its state
            self._overwrite(p, new, state, found)
            raise

    def _overwrite(self, p: Any, new: Any, state: dict[str, Any], found: dict[str, Any]) -> None:
        overwrite(p, new)
        for k, value in found.items():
            if k in state:
                overwrite(state[k], value)
            else:
                self.state[p][k] = value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros with set_to_none=False."""
        for group in self.param_groups:
            for p in group["params"]:
                g = gradient_of(p, not set_to_none)
                if g is None:
                    continue
                if set_to_none:
                    p._g = None
                else:
                    (g.requires_grad_(False) if g.is_leaf else g.detach_()).zero_()

    # --------------------------------------------------------------------------------------------------------- groups

    def add_param_group(self, param_group: Group) -> None:
        """Add a parameter group; missing settings take the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group
        group["params"] = self._checked(group)
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len(group["params"]) != len(set(group["params"])):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information"
            )
        for other in self.param_groups:
            if ("param_names" in group) != ("param_names" in other):
                kind = "with names" if "param_names" in group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{kind} to the optimizer"
                )
            if not set(other["params"]).isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)
        if (trace := running_trace()) is not None:
            trace.groups_made.append(group)

    def _checked(self, group: Group) -> list[Any]:
        """The group with its parameters as a list of leaves; names of (name, parameter) pairs go to "param_names"."""
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead."
            )
        found = [params] if isinstance(params, Tensor) else _listed(params)
        names = [p[0] for p in found if isinstance(p, tuple)]
        if names:
            if len(names) < len(found):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = names
            found = [p[1] for p in found]
        for p in found:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(p)}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        return found

    # ---------------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """The state as a dict: "state" by parameter index, and "param_groups" with these indices as "params".

        Its tensors are those of the optimizer, not copies.
        """
        for hook in list(self._hooks("state_dict_pre").values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            start += len(group["params"])
            packed = {k: v for k, v in group.items() if k != "params"}
            groups.append({**packed, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._hooks("state_dict_post").values()):
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of an optimizer of the same structure: copies, on each parameter's device and in its dtype.

        Raises:
            ValueError: if the number or sizes of the groups, or the shape of a state tensor, differ; nothing is then
                changed.
        """
        state_dict = state_dict.copy()
        for hook in list(self._hooks("load_state_dict_pre").values()):
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        owners: dict[Any, Any] = {}
        for group, new in zip(self.param_groups, saved, strict=True):
            owners.update(zip(new["params"], group["params"], strict=True))
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        state: dict[Any, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                self._check_shapes(key, owners[key], value)
                state[owners[key]] = loaded(owners[key], None, value)
            else:
                state[key] = copy.deepcopy(value)
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in list(self._hooks("load_state_dict_post").values()):
            hook(self)

    def _check_shapes(self, number: Any, p: Any, state: dict[str, Any]) -> None:
        if type(self).step is not Optimizer.step or not self.elementwise:
            return
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape != (() if name in self.scalars else p.shape):
                raise ValueError(
                    f"loaded state dict has {name!r} of shape {tuple(value.shape)} for parameter {number} of shape "
                    f"{tuple(p.shape)}"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                if default is not required:
                    group.setdefault(name, default)
            for values in [self.state[p] for p in group["params"] if p in self.state]:
                if isinstance(values.get("step"), int | float):
                    values["step"] = wrap(np.full((), values["step"], _get_scalar_dtype().numpy))

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            text += f"\nParameter Group {i}\n" + "".join(lines)
        return text + ")"

    # ---------------------------------------------------------------------------------------------------------- hooks

    def _hooks(self, name: str) -> OrderedDict[int, Any]:
        found: OrderedDict[int, Any] = self.__dict__[f"_optimizer_{name}_hooks"]
        return found

    def _register(self, name: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        hooks = self._hooks(name)
        handle = hook_into(hooks, hook)
        if prepend:
            hooks.move_to_end(next(reversed(hooks)), last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) before state_dict."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) on the result of state_dict; it may return another dict."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before a state is loaded; it may return another dict."""
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) after a state is loaded."""
        return self._register("load_state_dict_post", hook, prepend)

    def _accelerator_graph_capture_health_check(self) -> None:
        """No effect; called by optimizers written for PyTorch."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check


def loaded(p: Any, key: Any, value: Any) -> Any:
    """A copy of a saved state value on the parameter's device and, if floating-point, in its dtype; "step" is kept."""
    if isinstance(value, dict):
        return {k: loaded(p, k, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([loaded(p, None, v) for v in value])
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    value = value.detach().clone()
    if key == "step":
        return value
    return value.to(p.device, p.dtype) if p.is_floating_point() else value.to(p.device)


# ------------------------------------------------------------------------ what optimizers written for PyTorch import

_params_doc = _foreach_doc = _fused_doc = _capturable_doc = _differentiable_doc = _maximize_doc = ""


def _use_grad_for_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a `step` that records only if the optimizer is differentiable."""

    @functools.wraps(function)
    @restoring
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return function(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    return lambda function: function


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _to_scalar(x: Any) -> Any:
    """A tensor of one element as a 0-dim tensor."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _get_scalar_dtype(is_fused: Any = None) -> Any:
    """The dtype of counters."""
    wide = not is_fused and dtypes.get_default_dtype() is dtypes.float64
    return dtypes.float64 if wide else dtypes.float32


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """(False, False): there are no fused or foreach kernels."""
    return False, False


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex tensors in lists by real views (view_as_real)."""
    for i, p in enumerate(params):
        if p.is_complex():
            for values in (params, *state_and_grads):
                values[i] = view_as_real(values[i])
