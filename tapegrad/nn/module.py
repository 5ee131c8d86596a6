"""Module: named parameters, buffers and submodules, with PyTorch's methods, errors and printed form."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from .. import dtypes
from ..core.record import wrap
from ..functions import create
from ..functions.memory_format import rank_of
from ..kernels import devices
from ..later import above
from ..modes import no_grad
from ..programs.tracing import grad_accessed, leaving
from ..tensor.access import destination, raw
from ..tensor.graph import CHANGES, RemovableHandle
from ..tensor.tensor import Parameter, Tensor
from . import hooks
from .error_context import locate
from .hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .parameter import Buffer, is_lazy, way_back

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip

M = TypeVar("M", bound="Module")
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T_destination = TypeVar("T_destination", bound=dict[str, Any])
EVERYWHERE = hooks.EVERYWHERE


def typename(obj: Any, /) -> str:
    """PyTorch's name of an object's type: "torch.FloatTensor" for a tensor, with the module for other classes.

    Args:
        obj: any object.

    Example:
        >>> tg.typename(tg.zeros(2)), tg.typename(3), tg.typename(np.zeros(2))
        ('torch.FloatTensor', 'int', 'numpy.ndarray')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def indented(text: str, by: int = 2) -> str:
    """The text with all lines but the first indented; blank lines become empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *[" " * by + line if line.strip() else "" for line in rest]])


def shown(module: Any, *names: str) -> str:
    """Attributes of a module as its extra_repr: "kernel_size=2, stride=1"."""
    return ", ".join(f"{name}={getattr(module, name)!r}" for name in names)


class IncompatibleKeys(NamedTuple):
    """Result of load_state_dict: expected keys that were missing, and keys that were not expected."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def changed() -> None:
    Module.changes = next(CHANGES)


class Table(dict[str, Any]):
    """The parameters, buffers or submodules of a module; an entry that is written directly counts as a change of modules."""

    __slots__ = ()
    __setitem__ = hooks.counted(dict.__setitem__, changed)
    __delitem__ = hooks.counted(dict.__delitem__, changed)
    __ior__ = hooks.counted(dict.__ior__, changed)
    clear = hooks.counted(dict.clear, changed)
    pop = hooks.counted(dict.pop, changed)
    popitem = hooks.counted(dict.popitem, changed)
    setdefault = hooks.counted(dict.setdefault, changed)
    update = hooks.counted(dict.update, changed)

    def __reduce__(self) -> Any:
        """In files a dict, as PyTorch's is; `Module.__setstate__` makes a table of it."""
        return dict, (), None, None, iter(self.items())


class HasForward(Protocol[P, R]):
    """Protocol of `__call__`'s self: gives a call forward's parameters and result type in type checkers."""

    _hooked: bool

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Module:
    """Base class of layers and networks.

    A subclass calls `super().__init__()`, assigns parameters (`Parameter`), submodules and buffers as attributes, and
    defines `forward`. Calling the module calls `forward` and its hooks.

    Attributes:
        training: whether the module is in training mode; see `train` and `eval`.

    Example:
        >>> class Affine(tg.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scale = tg.nn.Parameter(tg.tensor(2.0))
        ...     def forward(self, x):
        ...         return self.scale * x
        >>> net = Affine()
        >>> net(tg.tensor(3.0)).backward()
        >>> [(name, p.grad) for name, p in net.named_parameters()]
        [('scale', tensor(3.))]
    """

    training: bool
    changes = 0  # another number after each change of attributes of modules; see `jit.guards`
    call_super_init = False
    dump_patches = False
    T_destination = T_destination
    _version = 1
    _hooked = False  # whether there may be hooks around calls
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")
        members = {"_parameters": Table(), "_buffers": Table(), "_modules": Table()}
        self.__dict__.update(hooks.tables(), training=True, **members, _non_persistent_buffers_set=set())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state; states of older versions lack some tables of hooks."""
        tables = "_parameters", "_buffers", "_modules"
        members = {name: Table(state[name]) for name in tables if type(state.get(name)) in (dict, OrderedDict)}
        self.__dict__.update({"_non_persistent_buffers_set": set(), **hooks.restored(state), **members})

    # --------------------------------------------------------------------------------------------------------- calling

    if TYPE_CHECKING:
        forward: Callable[..., Any]
    else:

        def forward(self, *input: Any) -> Any:
            """The computation; a subclass defines it, with any arguments."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if self._hooked or EVERYWHERE["_hooked"]:
                return hooks.call(self, args, kwargs)  # type: ignore[no-any-return]
            return self.forward(*args, **kwargs)
        except Exception as error:
            locate(error, self, args, kwargs)
            raise

    _call_impl = __call__

    def compile(self, **options: Any) -> None:
        """Compile the module's calls from now on, in place; options as of `tapegrad.compile`."""
        above("compile_module")(self, **options)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args) before every forward; a result other than None replaces the arguments.

        With `with_kwargs` the hook is called as hook(module, args, kwargs) and returns None or (args, kwargs).
        `prepend` puts it before existing hooks. Returns a handle whose `remove()` unregisters the hook.
        """
        return hooks.enter(self.__dict__, "_forward_pre_hooks", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args, output) after every forward; a result other than None replaces the output.

        With `with_kwargs` the hook is called as hook(module, args, kwargs, output); with `always_call` it also runs
        after an exception. `prepend` puts it before existing hooks. Returns a handle whose `remove()` unregisters the hook.
        """
        marks = {"with_kwargs": with_kwargs, "always_called": always_call}
        return hooks.enter(self.__dict__, "_forward_hooks", hook, prepend, **marks)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_output) when a backward pass has the gradients of the module's outputs.

        grad_output is a tuple with None for outputs without a gradient; a result other than None replaces it.
        """
        return hooks.enter(self.__dict__, "_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when a backward pass has the gradients of the module's inputs.

        Both are tuples: grad_input has one element for each positional argument (None if it is not a tensor or has no
        gradient), grad_output one for each output. A result other than None replaces grad_input. Under create_graph the
        hook is recorded.

        Raises:
            RuntimeError: if register_backward_hook was called before.
        """
        return hooks.enter_backward(self.__dict__, hook, True, "on a single Module", prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) on the operation that computed the output; for older code.

        grad_input holds the gradients of that operation's inputs, not of the module's; see register_full_backward_hook.

        Raises:
            RuntimeError: if register_full_backward_hook was called before.
        """
        return hooks.enter_backward(self.__dict__, hook, False, "on a single Module")

    # ------------------------------------------------------------------------------------------------------ attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = own.get(kind)
            if members is not None and name in members:
                return members[name]
        if hasattr(type(self), name):  # a property raised AttributeError: again, for its own message
            return object.__getattribute__(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        Module.changes = next(CHANGES)
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise cannot_assign(value, "as parameter", name, "torch.nn.Parameter or None expected")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, self._buffers)
            self._modules[name] = hooks.registered("module", self, name, value)
        elif name in own.get("_modules", ()):
            if value is not None:
                raise cannot_assign(value, "as child module", name, "torch.nn.Module or None expected")
            self._modules[name] = hooks.registered("module", self, name, None)
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            self._assign_buffer(name, value)
        else:
            if name in hooks.CALL_TABLES:
                own["_hooked"] = True
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *places: dict[str, Any]) -> None:
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _assign_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise cannot_assign(value, "as buffer", name, "torch.nn.Buffer, torch.Tensor or None expected")
        persistent = name not in self.__dict__.get("_non_persistent_buffers_set", ())
        if isinstance(value, Buffer):
            persistent = value.persistent
        self.register_buffer(name, value, *(() if persistent else (False,)))

    def __delattr__(self, name: str) -> None:
        Module.changes = next(CHANGES)
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
            KeyError: for a name that exists, is empty or contains a dot.
            ValueError: for a tensor that is not a leaf.
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
        Module.changes = next(CHANGES)
        self._parameters[name] = None if param is None else hooks.registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is part of the module's state but not a parameter; state_dict omits non-persistent buffers."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise cannot_assign(tensor, "object to buffer", name, "torch Tensor or None required")
        Module.changes = next(CHANGES)
        self._buffers[name] = hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule under a name; None registers the name without one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        Module.changes = next(CHANGES)
        self._modules[name] = hooks.registered("module", self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """The same as add_module."""
        self.add_module(name, module)

    # ------------------------------------------------------------------------------------------------------- traversal

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) pairs of the direct submodules, without duplicates."""
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
        """(name, module) pairs of this module (named by the prefix) and all its descendants, parents first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all its descendants."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        owners = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) pairs of this module and, with recurse, its descendants; shared parameters once."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with recurse, of its descendants."""
        if type(self).named_parameters is not Module.named_parameters:
            for _, param in self.named_parameters(recurse=recurse):
                yield param
            return
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
    ) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) pairs of this module and, with recurse, of its descendants."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with recurse, of its descendants."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name; raises AttributeError if there is none."""
        module: Module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            found = getattr(module, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the submodule at a dotted name; with strict, it must replace an existing one.

        Raises:
            ValueError: for an empty name, or if module is not a Module.
            AttributeError: if the parent, or with strict the submodule, does not exist.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name; raises AttributeError if there is none."""
        member: Parameter = self._member(target, "_parameters", "an nn.Parameter")
        return member

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name; raises AttributeError if there is none."""
        member: Tensor = self._member(target, "_buffers", "a buffer")
        return member

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
        """Set training mode in this module and its descendants, as dropout and batch norm need; returns the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: train(False). Gradient recording is not affected."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set requires_grad of all parameters; returns the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros with set_to_none=False."""
        for param in self.parameters():
            clear_grad(param, set_to_none)

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call fn on every submodule, then on the module itself; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Replace the values of parameters, gradients and buffers by fn(value); the Parameter objects stay the same."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for param in self._parameters.values():
                if param is None:
                    continue
                if is_lazy(param):
                    param._like = fn(param._like)
                    continue
                param.data = fn(param.data)
                grad = getattr(param, "_g", None)
                if grad is not None:
                    param.grad = fn(grad)
        Module.changes = next(CHANGES)
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer._like = fn(buffer._like)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self: M, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> M:
        """Move parameters and buffers to a device, or cast the floating-point ones to a dtype, in place.

        Called as `Tensor.to`: to(dtype), to(device), to(device, dtype), to(tensor).

        With the memory format channels_last (or channels_last_3d) tensors of 4 (5) dimensions get that order.

        On the device 'meta', used for a module whose parameters `functional_call` supplies, values are dropped: the
        placeholders take no memory and are nan (0 for integers).

        Raises:
            TypeError: for an integer dtype.
            RuntimeError: for a device that is not available.
        """
        if "meta" in [str(d) for d in (*args, device) if isinstance(d, str | dtypes.device)]:
            return self._apply(without_values)
        if (rank := rank_of(memory_format)) is not None:
            self.to(*args, dtype=dtype, device=device)
            return self._apply(lambda t: t.to(memory_format=memory_format) if t.ndim == rank else t)
        dtype, device = destination(args, dtype, device)
        if dtype is None:
            return self if device is None else self._apply(lambda t: t.to(device))
        target = dtypes.of(dtypes.to_numpy(dtype))
        if not (target.is_floating_point or target.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={target}")
        if target.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules might "
                "not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )
        return self._apply(lambda t: t.to(target if dtypes.is_inexact(raw(t).dtype) else t.dtype, device=device))

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Replace parameters and buffers by uninitialised memory, in place."""
        return self._apply(lambda t: create.empty_like(t, device=device), recurse)

    def share_memory(self: M) -> M:
        """Move parameters and buffers to memory that processes share, in place.

        See `Tensor.share_memory_`.
        """
        return self._apply(Tensor.share_memory_)

    def type(self: M, dst_type: Any) -> M:
        """Cast all parameters and buffers, integer ones included, to a dtype, in place."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: M) -> M:
        """Cast floating-point parameters and buffers to float32, in place."""
        return self._floating(dtypes.float32)

    def double(self: M) -> M:
        """Cast floating-point parameters and buffers to float64, in place."""
        return self._floating(dtypes.float64)

    def half(self: M) -> M:
        """Cast floating-point parameters and buffers to float16, in place."""
        return self._floating(dtypes.float16)

    def bfloat16(self: M) -> M:
        """Cast floating-point parameters and buffers to bfloat16, in place."""
        return self._floating(dtypes.bfloat16)

    def _floating(self: M, dtype: Any) -> M:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU, in place."""
        return self.to("cpu")

    def cuda(self: M, device: Any = None) -> M:
        """Move parameters and buffers to a CUDA device, in place; raises RuntimeError if JAX finds none."""
        return self.to("cuda" if device is None else device)

    def xpu(self: M, device: Any = None) -> M:
        """Raises RuntimeError: XPU devices are not supported."""
        return self.to("xpu")

    def ipu(self: M, device: Any = None) -> M:
        """Raises RuntimeError: IPU devices are not supported."""
        return self.to("ipu")

    def mtia(self: M, device: Any = None) -> M:
        """Raises RuntimeError: MTIA devices are not supported."""
        return self.to("mtia")

    # ------------------------------------------------------------------------------------------------------------ state

    def get_extra_state(self) -> Any:
        """Non-tensor state for state_dict; a subclass may define it together with set_extra_state."""
        raise no_extra_state("get")

    def set_extra_state(self, state: Any) -> None:
        """Restore what get_extra_state returned."""
        raise no_extra_state("set")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before state_dict collects the module's own state."""
        return hooks.enter(self.__dict__, "_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata) after state_dict has collected the module's state.

        The dict contains the state of the module and its descendants; the hook may change it in place and returns None.
        """
        return hooks.enter(self.__dict__, "_state_dict_hooks", hook, without_result=True)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As register_state_dict_post_hook, but a result of the outermost module's hook replaces the dict."""
        public = self._state_dict_hooks_without_result
        if any(key in public and other == hook for key, other in self._state_dict_hooks.items()):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return hooks.enter(self.__dict__, "_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) before
        the module loads its own state; it may change the dict and the lists in place."""
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        return hooks.enter(self.__dict__, "_load_state_dict_pre_hooks", hook, with_module=with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, incompatible_keys) after the module and its descendants have loaded their state.

        It may change the lists of missing and unexpected keys in place, before they are reported; it returns None.
        """
        return hooks.enter(self.__dict__, "_load_state_dict_post_hooks", hook)

    def _state(self) -> dict[str, Any]:
        """Parameters and persistent buffers by name."""
        skipped = self._non_persistent_buffers_set
        members = {**self._parameters, **{k: v for k, v in self._buffers.items() if k not in skipped}}
        return {k: v for k, v in members.items() if v is not None}

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Parameters and persistent buffers of this module and its descendants, by dotted name.

        The tensors are detached and share memory with the module's; keep_vars=True returns the parameters themselves.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination, prefix, keep_vars = [*args, *[destination, prefix, keep_vars][len(args) :]]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for key, hook in list(self._state_dict_hooks.items()):
            changed = hook(self, destination, prefix, metadata)
            if changed is not None:
                if key in self._state_dict_hooks_without_result:
                    raise RuntimeError("state_dict post-hook must return None")
                destination = changed
        return destination  # type: ignore[no-any-return]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add this module's own state to the dict; a subclass may override it."""
        for name, value in self._state().items():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy values by dotted name into the parameters and buffers, in place.

        Args:
            state_dict: the `state_dict()` of a module of the same structure.
            strict: raise if keys are missing or unexpected; otherwise they are only returned.
            assign: replace the module's tensors by the given ones instead of copying; requires_grad is kept, and what
                several modules share stays shared: as with copying, the value loaded last counts.

        Raises:
            RuntimeError: lists every missing or unexpected key (with strict) and every size mismatch; the module is
                unchanged.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = IncompatibleKeys([], [])
        failures: list[str] = []
        restore = snapshot(self)
        ties = tied(self) if assign else []
        try:
            given: Any = OrderedDict(state_dict)
            given._metadata = getattr(state_dict, "_metadata", None) or {}
            self._load(given, "", given._metadata, assign, keys, failures)
            for member, places in ties:
                tie(member, places)
            if strict:
                for kind, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                    if names:
                        failures.insert(0, f"{kind} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in names) + ". ")
            if failures:
                lines = "\n\t".join(failures)
                raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        except BaseException:
            restore()
            raise
        return keys

    def _load(
        self, given: Any, prefix: str, metadata: Any, assign: bool, keys: IncompatibleKeys, failures: list[str]
    ) -> None:
        """Load this module, then its descendants, each from the keys with its prefix."""
        local = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        self._load_from_state_dict(given, prefix, local, True, keys.missing_keys, keys.unexpected_keys, failures)
        for name, child in self._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                part = {k: v for k, v in given.items() if k.startswith(below)}
                child._load(part, below, metadata, assign, keys, failures)
        for hook in list(self._load_state_dict_post_hooks.values()):
            if hook(self, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                    "incompatible_keys need to be modified, it should be done inplace."
                )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load this module's own tensors; a subclass may override it to accept older layouts."""
        lists = (missing_keys, unexpected_keys, error_msgs)
        for key, hook in list(self._load_state_dict_pre_hooks.items()):
            first = (self,) if key in self._load_state_dict_pre_hooks_with_module else ()
            hook(*first, state_dict, prefix, local_metadata, strict, *lists)
        own = self._state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, member in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_member(name, member, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + "_extra_state"
        wanted = type(self).set_extra_state is not Module.set_extra_state
        if wanted and extra in state_dict:
            self.set_extra_state(state_dict[extra])
        elif strict and wanted != (extra in state_dict):
            (missing_keys if wanted else unexpected_keys).append(extra)
        for key in state_dict if strict else ():
            if key.startswith(prefix) and key != extra:
                first_name, *rest = key[len(prefix) :].split(".", 1)
                if first_name not in (self._modules if rest else own):
                    unexpected_keys.append(key)

    def _load_member(self, name: str, member: Any, key: str, value: Any, assign: bool, failures: list[str]) -> None:
        if not isinstance(value, Tensor):
            failures.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(value)}"
            )
            return
        if is_lazy(member) and is_lazy(value):
            return
        if is_lazy(member):
            member.materialize(value.shape)
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
                setattr(self, name, value.requires_grad_(member.requires_grad) if isinstance(member, Parameter) else value)

    # ---------------------------------------------------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The module's own part of its printed form; a subclass may override it."""
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

    def _repr_html_(self) -> Any:
        return above("html")(self)


Place = tuple["Module", str]


def tied(module: Module) -> list[tuple[Tensor, list[Place]]]:
    """Parameters and buffers that stand in several places of a module and its descendants."""
    places: dict[int, tuple[Tensor, list[Place]]] = {}
    for part in module.modules():
        for name, member in part._state().items():
            places.setdefault(id(member), (member, []))[1].append((part, name))
    return [found for found in places.values() if len(found[1]) > 1]


def tie(member: Tensor, places: list[Place]) -> None:
    """Put what has last replaced a member in all its places."""
    replaced = [t for part, name in places if (t := part._state().get(name, member)) is not member]
    for part, name in places if replaced else ():
        setattr(part, name, replaced[-1])


def snapshot(module: Module) -> Callable[[], None]:
    """A function that restores the present values of a module's parameters and buffers."""
    tables = [(table, dict(table)) for m in module.modules() for table in (m._parameters, m._buffers)]
    members = {id(t): t for _, table in tables for t in table.values() if t is not None and not is_lazy(t)}
    values = [(t, devices.copied(raw(t))) for t in members.values()]
    unshaped = [way_back(t) for _, table in tables for t in table.values() if is_lazy(t)]

    def restore() -> None:
        for table, before in tables:
            table.clear()
            table.update(before)
        for back in unshaped:
            back()
        with no_grad():
            for t, value in values:
                if leaving(t, "what a failed load_state_dict() undoes").tobytes() != value.tobytes():
                    t.copy_(wrap(value))

    return restore


def no_extra_state(act: str) -> RuntimeError:
    """The error for a name that the module does not have."""
    return RuntimeError(
        f"Reached a code path in Module.{act}_extra_state() that should never be called. Define it in the subclass."
    )


def cannot_assign(value: Any, role: str, name: str, wanted: str) -> TypeError:
    """The error for an attribute of the wrong kind."""
    return TypeError(f"cannot assign '{typename(value)}' {role} '{name}' ({wanted})")


def without_values(t: Any) -> Any:
    """A tensor of the same shape and dtype that takes no memory, all nan or 0: a placeholder for the device 'meta'."""
    a = raw(t)
    return wrap(np.broadcast_to(np.array(np.nan if dtypes.is_inexact(a.dtype) else 0, a.dtype), a.shape))


def clear_grad(t: Any, set_to_none: bool) -> None:
    """Set a tensor's gradient to None, or to zeros in place."""
    grad_accessed(t, not set_to_none)
    grad = getattr(t, "_g", None)
    if grad is None:
        return
    if set_to_none:
        t._g = None
    else:
        (grad.requires_grad_(False) if grad.is_leaf else grad.detach_()).zero_()
