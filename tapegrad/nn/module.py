"""Module: parameters, buffers and submodules under names, with PyTorch's methods, errors and printed form."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from ..arrays import dtypes
from ..core.modes import no_grad
from ..core.node import Handle, hook_into
from ..ops import create
from ..tensor import Parameter, Tensor, raw

M = TypeVar("M", bound="Module")


def typename(value: Any) -> str:
    """PyTorch's name of a value's type in error texts."""
    if isinstance(value, Parameter):
        return "torch.nn.parameter.Parameter"
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def indented(text: str, by: int = 2) -> str:
    """The text with all lines but the first indented."""
    return text.replace("\n", "\n" + " " * by)


def shown(module: Any, *names: str) -> str:
    """Attributes of a module as its extra_repr: "kernel_size=2, stride=1"."""
    return ", ".join(f"{name}={getattr(module, name)!r}" for name in names)


class Hook(NamedTuple):
    """A forward (pre-)hook and how it is called."""

    function: Callable[..., Any]
    with_kwargs: bool
    always_call: bool = False


class IncompatibleKeys(NamedTuple):
    """What load_state_dict returns: keys the module expected but did not find, and keys it did not expect."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module:
    """Base class of layers and networks.

    A subclass calls `super().__init__()`, assigns parameters (`Parameter`), submodules and buffers as attributes, and
    defines `forward`. Calling the module calls `forward`, and the hooks if there are any.

    Attributes:
        training: whether the module is in training mode; see `train` and `eval`.
    """

    training: bool
    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args:
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _modules={}, _non_persistent_buffers_set=set(),
            _forward_hooks={}, _forward_pre_hooks={},
        )  # fmt: skip

    # --------------------------------------------------------------------------------------------------------- calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; a subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._forward_hooks or self._forward_pre_hooks:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_with_hooks(self, args: Any, kwargs: Any) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            args, kwargs = self._run_pre_hook(hook, args, kwargs)
        hooks = list(self._forward_hooks.values())
        done = 0
        result = None
        try:
            result = self.forward(*args, **kwargs)
            for hook in hooks:
                done += 1
                result = self._run_hook(hook, args, kwargs, result)
        except Exception:
            for hook in hooks[done:]:
                if hook.always_call:
                    result = self._run_hook(hook, args, kwargs, result)
            raise
        return result

    def _run_pre_hook(self, hook: Hook, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if not hook.with_kwargs:
            changed = hook.function(self, args)
            if changed is None:
                return args, kwargs
            return changed if isinstance(changed, tuple) else (changed,), kwargs
        changed = hook.function(self, args, kwargs)
        if changed is None:
            return args, kwargs
        if isinstance(changed, tuple) and len(changed) == 2:
            return changed
        raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")

    def _run_hook(self, hook: Hook, args: Any, kwargs: Any, result: Any) -> Any:
        given = (args, kwargs, result) if hook.with_kwargs else (args, result)
        changed = hook.function(self, *given)
        return result if changed is None else changed

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call hook(module, args) before every forward; what it returns, if not None, replaces the arguments.

        With `with_kwargs` the hook is called as hook(module, args, kwargs) and returns None or (args, kwargs).
        `prepend` puts it before the hooks there are. Returns a handle whose `remove()` takes the hook away.
        """
        return hooked(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call hook(module, args, output) after every forward; what it returns, if not None, replaces the output.

        With `with_kwargs` the hook is called as hook(module, args, kwargs, output); with `always_call` also after an
        exception. `prepend` puts it before the hooks there are. Returns a handle whose `remove()` takes the hook away.
        """
        return hooked(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    # ------------------------------------------------------------------------------------------------------ attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = own.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            if "_parameters" not in self.__dict__:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, self.__dict__, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in self.__dict__:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if name in self._parameters:
                raise cannot_assign(value, "as parameter", name, "torch.nn.Parameter or None expected")
            self._forget(name, self.__dict__, self._buffers)
            self._modules[name] = value
        elif not self._assign_member(name, value):
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *places: dict[str, Any]) -> None:
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _assign_member(self, name: str, value: Any) -> bool:
        """Assign a tensor, None or something else to a registered name; False if the name is not registered."""
        own = self.__dict__
        if name in own.get("_parameters", ()):
            if value is not None:
                raise cannot_assign(value, "as parameter", name, "torch.nn.Parameter or None expected")
            self._parameters[name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise cannot_assign(value, "as child module", name, "torch.nn.Module or None expected")
            self._modules[name] = None
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise cannot_assign(value, "as buffer", name, "torch.nn.Buffer, torch.Tensor or None expected")
            self._buffers[name] = value
        else:
            return False
        return True

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        keys = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(k for k in keys if not k[0].isdigit())

    def _check_name(self, kind: str, name: Any, members: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter under a name; None registers the name without one.

        Raises:
            TypeError: if param is not a Parameter.
            KeyError: for a name that is taken, empty or contains a dot.
            ValueError: for a computed tensor.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise cannot_assign(param, "object to parameter", name, "torch.nn.Parameter or None required")
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module's state but is no parameter; non-persistent ones are not saved."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise cannot_assign(tensor, "object to buffer", name, "torch Tensor or None required")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule under a name; None registers the name without one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    register_module = add_module

    # ------------------------------------------------------------------------------------------------------- traversal

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct submodules, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(name, module) of this module (its name is the prefix) and all below it, parents first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules():
            yield module

    def _named_members(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        owners = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, value in module.__dict__[kind].items():
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """(name, parameter) of this module and, with recurse, of all below it; shared parameters once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """The parameters of this module and, with recurse, of all below it."""
        seen: set[int] = set()
        todo: list[Module] = [self]
        visited: set[int] = set()
        while todo:
            module = todo.pop()
            if id(module) in visited:
                continue
            visited.add(id(module))
            for param in module._parameters.values():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield param
            if recurse and module._modules:
                todo += [child for child in reversed(module._modules.values()) if child is not None]

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """(name, buffer) of this module and, with recurse, of all below it."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """The buffers of this module and, with recurse, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; AttributeError if there is none."""
        module: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module  # type: ignore[no-any-return]

    def get_parameter(self, target: str) -> Any:
        """The parameter of a dotted name; AttributeError if there is none."""
        return self._member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Any:
        """The buffer of a dotted name; AttributeError if there is none."""
        return self._member(target, "_buffers", "a buffer")

    def _member(self, target: str, kind: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        value = module.__dict__[kind].get(name)
        if value is None:
            raise AttributeError(f"`{name}` is not {what}")
        return value

    # ----------------------------------------------------------------------------------------------------- modes, dtype

    def train(self: M, mode: bool = True) -> M:
        """Set training mode here and in all submodules; returns the module. Dropout and BatchNorm heed it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: train(False). Recording of gradients stays as it is."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Switch requires_grad of all parameters; returns the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zeros."""
        for param in self.parameters():
            clear_grad(param, set_to_none)

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call fn on every submodule, then on the module itself; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Replace the values of parameters, their gradients and buffers by fn of them; the Parameters stay the same."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for param in self._parameters.values():
                if param is None:
                    continue
                param.data = fn(param.data)
                grad = getattr(param, "_g", None)
                if grad is not None:
                    param.grad = fn(grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False) -> M:
        """Floating-point parameters and buffers in another dtype; to(dtype), to(device), to(tensor). In place.

        Raises:
            TypeError: for an integer dtype.
        """
        for a in args:
            if isinstance(a, Tensor):
                dtype = a.dtype
            elif isinstance(a, str | dtypes.device):
                device = a
            elif a is not None and not isinstance(a, bool):
                dtype = a
        create.check_device(device)
        if dtype is None:
            return self
        target = dtypes.of(dtypes.to_numpy(dtype))
        if not (target.is_floating_point or target.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={target}")
        return self._apply(lambda t: t.to(target) if dtypes.is_inexact(raw(t).dtype) else t)

    def type(self: M, dst_type: Any) -> M:
        """All parameters and buffers in another dtype, integer ones too. In place."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self: M) -> M:
        """Floating-point parameters and buffers in float32. In place."""
        return self._floating(dtypes.float32)

    def double(self: M) -> M:
        """Floating-point parameters and buffers in float64. In place."""
        return self._floating(dtypes.float64)

    def half(self: M) -> M:
        """Floating-point parameters and buffers in float16. In place."""
        return self._floating(dtypes.float16)

    def bfloat16(self: M) -> M:
        """Floating-point parameters and buffers in bfloat16. In place."""
        return self._floating(dtypes.bfloat16)

    def _floating(self: M, dtype: Any) -> M:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def cpu(self: M) -> M:
        """On the CPU, where it is."""
        return self

    def cuda(self: M, device: Any = None) -> M:
        """On a CUDA device; raises, since there is none here."""
        create.check_device("cuda")
        return self

    # ------------------------------------------------------------------------------------------------------------ state

    def get_extra_state(self) -> Any:
        """What state_dict keeps besides tensors; a subclass may define it, with set_extra_state."""
        raise NotImplementedError

    def set_extra_state(self, state: Any) -> None:
        """Take what get_extra_state gave."""
        raise NotImplementedError

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not Module.get_extra_state

    def _state(self) -> dict[str, Any]:
        """Parameters and persistent buffers by name."""
        skipped = self._non_persistent_buffers_set
        members = {**self._parameters, **{k: v for k, v in self._buffers.items() if k not in skipped}}
        return {k: v for k, v in members.items() if v is not None}

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers of this module and all below it, by dotted name.

        The tensors share memory with the module's, without history; keep_vars=True gives the parameters themselves.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state():
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy values by dotted name into the parameters and buffers, in place.

        Args:
            state_dict: what `state_dict` of a module of the same structure gave.
            strict: raise if keys are missing or unexpected; else they are only returned.
            assign: put the given tensors in place of the module's own, instead of copying.

        Raises:
            RuntimeError: naming every missing or unexpected key (with strict) and every size mismatch.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = IncompatibleKeys([], [])
        failures: list[str] = []
        metadata = getattr(state_dict, "_metadata", None) or {}
        given = OrderedDict(state_dict)
        for prefix, module in self._with_prefixes(""):
            local = dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(given, prefix, local, strict, keys.missing_keys, keys.unexpected_keys, failures)
        if strict:
            for kind, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                if names:
                    failures.insert(0, f"{kind} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in names) + ". ")
        if failures:
            lines = "\n\t".join(failures)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return keys

    def _with_prefixes(self, prefix: str) -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module._with_prefixes(f"{prefix}{name}.")

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load this module's own members; a subclass may override it to accept older layouts."""
        own = self._state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, member in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_member(name, member, key, state_dict[key], assign, error_msgs)
            else:
                missing_keys.append(key)
        if self._has_extra_state():
            if prefix + "_extra_state" in state_dict:
                self.set_extra_state(state_dict[prefix + "_extra_state"])
            else:
                missing_keys.append(prefix + "_extra_state")
            own["_extra_state"] = None
        for key in state_dict:
            if key.startswith(prefix):
                first, *rest = key[len(prefix) :].split(".", 1)
                if (first not in self._modules) if rest else (first not in own):
                    unexpected_keys.append(key)

    def _load_member(self, name: str, member: Any, key: str, value: Any, assign: bool, failures: list[str]) -> None:
        if not isinstance(value, Tensor):
            failures.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(value)}"
            )
            return
        if member.shape == () and value.shape == (1,):
            value = value[0]
        if value.shape != member.shape:
            failures.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
                f"model is {member.shape}."
            )
            return
        with no_grad():
            if not assign:
                member.copy_(value)
            elif isinstance(member, Parameter) and not isinstance(value, Parameter):
                setattr(self, name, Parameter(value, requires_grad=member.requires_grad))
            else:
                setattr(self, name, value)

    # ---------------------------------------------------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the printed form shows of the module itself; a subclass may define it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        lines = own + [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if not lines:
            return f"{self._get_name()}()"
        if len(own) == len(lines) == 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def hooked(hooks: dict[int, Any], hook: Hook, prepend: bool) -> Handle:
    """Add a hook to a module's hooks, at the end or at the front."""
    before = dict(hooks) if prepend else {}
    handle = hook_into(hooks, hook)
    for key, value in before.items():
        del hooks[key]
        hooks[key] = value
    return handle


def cannot_assign(value: Any, role: str, name: str, wanted: str) -> TypeError:
    """The error for an attribute of the wrong kind."""
    return TypeError(f"cannot assign '{typename(value)}' {role} '{name}' ({wanted})")


def clear_grad(t: Any, set_to_none: bool) -> None:
    """Drop a tensor's gradient, or set it to zeros in place."""
    grad = getattr(t, "_g", None)
    if grad is None:
        return
    if set_to_none:
        t._g = None
    else:
        grad.detach_().requires_grad_(False).zero_()
