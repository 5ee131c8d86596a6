"""Base of optimizers: parameter groups, state, and writing into parameters.

An update works on raw arrays, in place. A parameter (or state tensor) whose array something else holds, as a tape entry
that may still be differentiated, moves to a copy first; where nothing does, a step allocates nothing: temporaries live in
scratch arrays, one for each shape and dtype.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core import alias
from ..core.modes import enable_grad
from ..core.record import wrap
from ..tensor import Tensor, raw


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()


def writable(t: Any) -> Any:
    """The tensor's array, to be written for real: a copy is taken first if something else holds it."""
    array = alias.target(t)
    if array is None:
        array = t._d = t._d.copy(order="K")
    return array


def zeros_for(p: Any) -> Any:
    """A tensor of zeros like a parameter, for its state."""
    return wrap(np.zeros_like(raw(p)))


class Optimizer:
    """Base class of optimizers; a subclass defines `update`.

    Args:
        params: tensors, (name, tensor) pairs, or dicts, one a group, with "params" and settings of that group.
        defaults: settings of groups that do not give them.

    Attributes:
        param_groups: the groups, as dicts.
        state: a dict for each parameter that has been updated.

    Raises:
        TypeError: for a single tensor or things that are no tensors.
        ValueError: for an empty list, computed tensors, missing settings, or a parameter in two groups.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}"
            )
        if defaults.get("differentiable"):
            raise NotImplementedError("differentiable=True: differentiate through updates written with tensors instead")
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._scratch: dict[Any, Any] = {}
        self.stepped = False  # schedulers ask
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    # ---------------------------------------------------------------------------------------------------------- steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss anew, with gradients, and returns it.

        Returns:
            What the closure returned, or None.
        """
        self.stepped = True
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with np.errstate(all="ignore"):
            for group in self.param_groups:
                for p in group["params"]:
                    g = getattr(p, "_g", None)
                    if g is not None:
                        self.update(p, raw(g), group)
        return loss

    def update(self, p: Any, g: Any, group: dict[str, Any]) -> None:
        """Update one parameter, in place.

        Args:
            p: the parameter.
            g: the array of its gradient, which must not be written.
            group: the settings.
        """
        raise NotImplementedError

    def scratch(self, like: Any, number: int = 0) -> Any:
        """A temporary array of an array's shape and dtype, kept for the next steps; `number` tells several apart."""
        key = (like.shape, like.dtype, number)
        try:
            return self._scratch[key]
        except KeyError:
            array = self._scratch[key] = np.empty_like(like)
            return array

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                g = getattr(p, "_g", None)
                if g is None:
                    continue
                if set_to_none:
                    p._g = None
                else:
                    g.detach_().requires_grad_(False).zero_()

    # --------------------------------------------------------------------------------------------------------- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own; settings that are left out take the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group
        group["params"] = self._checked(group)
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len(group["params"]) != len(set(group["params"])):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
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

    def _checked(self, group: dict[str, Any]) -> list[Any]:
        """The group's parameters as a list of leaves; names of (name, parameter) pairs go to "param_names"."""
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead."
            )
        given = [params] if isinstance(params, Tensor) else list(params)
        names = [p[0] for p in given if isinstance(p, tuple)]
        if names:
            if len(names) < len(given):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = names
            given = [p[1] for p in given]
        for p in given:
            if not isinstance(p, Tensor):
                kind = type(p)
                name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {name}")
            if not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        return given

    # ---------------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """The state as a dict: "state" by number of the parameter, and "param_groups" with these numbers as "params".

        The tensors in it are those of the optimizer, not copies.
        """
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            groups.append({**packed, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state of an optimizer of the same structure: copies, floating point in each parameter's dtype.

        Raises:
            ValueError: if the number or the sizes of the groups differ.
        """
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
        self.state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                self.state[owners[key]] = {k: loaded(owners[key], k, v) for k, v in value.items()}
            else:
                self.state[key] = copy.deepcopy(value)
        self.param_groups = saved

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _scratch={}, stepped=False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"


def loaded(p: Any, key: str, value: Any) -> Any:
    """A copy of a saved state value; in the parameter's dtype where both are floating point, "step" excepted."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    value = value.detach().clone()
    return value if key == "step" or not p.is_floating_point() else value.to(p.dtype)
