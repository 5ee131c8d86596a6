"""torch.library: operators that a program writes in Python and calls by name. There are no others to register with."""

from collections.abc import Callable, Sequence

from torch.autograd import Function

_OPERATORS: dict = {}  # "namespace::name": its CustomOpDef


class _Call(Function):
    @staticmethod
    def forward(ctx: object, op: "CustomOpDef", keywords: dict, *args: object) -> object:
        ctx.op = op
        output = op._function(*args, **keywords)
        if op._setup is not None:
            named = {"keyword_only_inputs": keywords} if keywords else {}
            op._setup(ctx, inputs=args, output=output, **named)
        return output

    @staticmethod
    def backward(ctx: object, *grads: object) -> tuple:
        if ctx.op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {ctx.op._qualname}.default but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        result = ctx.op._backward(ctx, *grads)
        return (None, None, *(result if isinstance(result, tuple) else (result,)))


class CustomOpDef:
    """An operator: a function of tensors that autograd and vmap do not look into."""

    def __init__(self, qualname: str, function: Callable):
        self._qualname, self._function, self._setup, self._backward = qualname, function, None, None
        self._namespace, self._name = qualname.split("::")
        self.default = self  # the only overload

    def __call__(self, *args: object, **kwargs: object) -> object:
        return _Call.apply(self, kwargs, *args)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Give the operator its backward(ctx, *grads); setup_context(ctx, inputs, output) says what to keep for it."""
        self._backward, self._setup = backward, setup_context

    def register_kernel(self, device_types: object, fn: Callable | None = None, /) -> Callable:
        """Another function for tensors on these devices; counts if the CPU is one of them."""
        if fn is None:
            return lambda fn: self.register_kernel(device_types, fn)
        if device_types is None or "cpu" in ([device_types] if isinstance(device_types, str) else device_types):
            self._function = fn
        return fn

    def register_fake(self, fn: Callable, /) -> Callable:
        """Nothing: results without values are not computed here."""
        return fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: object, device_types: object = None,
    schema: str | None = None, tags: object = None,
) -> object:  # fmt: skip
    """An operator of that name ("namespace::name") from a function; without one, a decorator."""
    if fn is None:
        return lambda fn: custom_op(name, fn, mutates_args=mutates_args)
    if name.count("::") != 1:
        raise ValueError(f"custom_op: expected a name like 'namespace::name', got {name!r}")
    if mutates_args not in ((), []):
        raise NotImplementedError("torch.library.custom_op: operators that write into their arguments are not recorded here")
    _OPERATORS[name] = CustomOpDef(name, fn)
    return _OPERATORS[name]


triton_op = custom_op


def _of(op: object) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _OPERATORS:
        raise RuntimeError(f"torch.library: there is no operator {op!r}; custom_op makes one")
    return _OPERATORS[op]


def register_autograd(
    op: object, backward: Callable, /, *, setup_context: Callable | None = None, lib: object = None
) -> None:
    """`CustomOpDef.register_autograd` of an operator or its name."""
    _of(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: object, device_types: object, func: Callable | None = None, /, *, lib: object = None) -> Callable:
    """`CustomOpDef.register_kernel` of an operator or its name."""
    return _of(op).register_kernel(device_types, func)


def register_fake(op: object, func: Callable | None = None, /, *, lib: object = None, **kwargs: object) -> Callable:
    """Nothing: results without values are not computed here. Without a function, a decorator."""
    return func if func is not None else lambda func: func


impl_abstract = register_fake


class _Namespace:
    def __init__(self, name: str):
        self.__name__ = name

    def __getattr__(self, name: str) -> CustomOpDef:
        if (found := _OPERATORS.get(f"{self.__name__}::{name}")) is None:
            raise AttributeError(
                f"there is no operator {self.__name__}.{name}: tapegrad has none in C++, and only those of "
                "torch.library.custom_op by name"
            )
        return found


class _Overloads:
    """torch.ops.aten.name: PyTorch's function of that name; each overload, as in torch.ops.aten.add.Tensor, is the same."""

    def __init__(self, name: str, function: Callable):
        self.__name__, self._function = name, function

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> "_Overloads":
        if overload.startswith("_"):
            raise AttributeError(overload)
        return self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _to_copy(t: object, **options: object) -> object:
    """A copy with another dtype or device."""
    kept = ("dtype", "device", "memory_format")
    return t.to(**{name: options[name] for name in kept if options.get(name) is not None}, copy=True)


def _slice(t: object, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> object:
    """t[start:end:step] along dim."""
    return t[(slice(None),) * (dim % t.ndim) + (slice(start, end, step),)]


def _index(t: object, indices: Sequence) -> object:
    """t[indices], of which None takes all of a dimension."""
    return t[tuple(slice(None) if i is None else i for i in indices)]


def _no_sparse(*args: object, **kwargs: object) -> object:
    """Raises."""
    raise NotImplementedError("torch.ops.aten: tapegrad's products of sparse matrices are torch.sparse.mm and addmm")


_MADE = {  # operators that are functions of no module
    "_to_copy": _to_copy, "alias": lambda t: t.view_as(t), "_pin_memory": lambda t, device=None: t, "slice": _slice,
    "index": _index, "_sparse_addmm": _no_sparse, "_sparse_mm_reduce_impl": _no_sparse,
}  # fmt: skip


class _Aten(_Namespace):
    def __getattr__(self, name: str) -> _Overloads:
        import torch

        prefix, _, rest = name.partition("_")
        if name in _MADE:
            return self.__dict__.setdefault(name, _Overloads(name, _MADE[name]))
        special = {"linalg": torch.linalg, "special": torch.special, "fft": torch.fft}.get(prefix)
        for place, own in ((special, rest), (torch, name), (torch.Tensor, name), (torch.nn.functional, name)):
            if callable(found := getattr(place, own, None)) and not name.startswith("__"):
                return self.__dict__.setdefault(name, _Overloads(name, found))
        raise AttributeError(f"torch.ops.aten.{name}: tapegrad has no function of this name")


class _Operators:
    """torch.ops: the operators by namespace and name."""

    aten = _Aten("aten")

    def __getattr__(self, name: str) -> _Namespace:
        if not any(op.startswith(f"{name}::") for op in _OPERATORS):
            raise AttributeError(f"torch.ops.{name}: tapegrad has no operators in C++")
        return _Namespace(name)

    def load_library(self, path: object) -> None:
        """Raises."""
        raise NotImplementedError("torch.ops.load_library: tapegrad has no operators in C++")


ops = _Operators()
