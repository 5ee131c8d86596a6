"""Lazy layers, which take the size of their input from the first call."""

from __future__ import annotations

import inspect
from typing import Any

from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin:
    """Base of modules with uninitialised parameters; it precedes the Module class among the bases.

    A subclass creates UninitializedParameters and defines `initialize_parameters`, which is called with the arguments of the
    first call and materializes them.

    Attributes:
        cls_to_become: the class of the module after the first call; None: unchanged.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._initialize_hook = module.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters, given the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        module: Any = self
        return any([is_lazy(t) for t in (*module._parameters.values(), *module._buffers.values())])

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLayer(LazyModuleMixin):
    """Base of the lazy layers: the layer's class without its first argument, the size of the input.

    Attributes:
        _called_like: a class whose arguments and defaults replace the layer's.
        _size: name of the omitted argument and of its attribute, which is 0 until the first call.
    """

    __signature__: inspect.Signature
    _called_like: type[Any] | None = None
    _size: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if LazyLayer in cls.__bases__[0].__mro__ and issubclass(cls.__bases__[-1], Module):
            cls.cls_to_become = cls.__bases__[-1]
            eager = inspect.signature(cls._called_like or cls.cls_to_become)
            cls.__signature__ = eager.replace(parameters=list(eager.parameters.values())[1:])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        super().__init__(0, *given.args, **given.kwargs)
        module: Any = self
        self._shapes = {}  # 0 in place of the size of the input
        for table, kind in ((module._parameters, UninitializedParameter), (module._buffers, UninitializedBuffer)):
            for name, t in table.items():
                if t is not None and t.dim():
                    self._shapes[name] = tuple(t.shape)
                    table[name] = kind(dtype=t.dtype)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters, if they are materialised."""
        if getattr(self, self._size) and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Materialise and initialise the parameters for inputs of this size."""
        size = self._size_of(input)
        fresh = self.has_uninitialized_params()
        groups = getattr(self, "groups", 1)
        if size % groups:
            raise ValueError(f"{self._size} must be divisible by groups")
        setattr(self, self._size, size)
        shapes = self.__dict__.pop("_shapes")
        if fresh:
            inner = size if getattr(self, "transposed", False) else size // groups
            for name, shape in shapes.items():
                getattr(self, name).materialize([n or inner for n in shape])
            self.reset_parameters()

    def _size_of(self, input: Any) -> int:
        raise NotImplementedError


class _LastSize(LazyLayer):
    _size = "in_features"

    def _size_of(self, input: Any) -> int:
        return int(input.shape[-1])


class _Channels(LazyLayer):
    """Channels are dimension 1, or 0 of an unbatched input."""

    _size = "in_channels"
    _dims: int

    def _size_of(self, input: Any) -> int:
        least = self._dims + 1
        if input.dim() not in (least, least + 1):
            raise RuntimeError(
                f"Expected {least}D (unbatched) or {least + 1}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {input.shape}"
            )
        return int(input.shape[input.dim() - least])


class _Features(LazyLayer):
    """num_features is the number of channels: dimension 1, or 0 of an unbatched input.

    Instance norms have the defaults of batch norm, as in PyTorch: affine parameters and running statistics.
    """

    _called_like = BatchNorm1d
    _size = "num_features"

    def _size_of(self, input: Any) -> int:
        self._check_input_dim(input)  # type: ignore[attr-defined]
        single = input.dim() == getattr(self, "_dims", 0) + 1
        return int(input.shape[0 if single else 1])


class LazyLinear(_LastSize, Linear):
    """Linear whose in_features is inferred from the first input.

    Example:
        >>> layer = tg.nn.LazyLinear(2)
        >>> y = layer(tg.ones(5, 3))
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
    """


class LazyConv1d(_Channels, Conv1d):
    """Conv1d whose in_channels is inferred from the first input."""


class LazyConv2d(_Channels, Conv2d):
    """Conv2d whose in_channels is inferred from the first input."""


class LazyConv3d(_Channels, Conv3d):
    """Conv3d whose in_channels is inferred from the first input."""


class LazyConvTranspose1d(_Channels, ConvTranspose1d):
    """ConvTranspose1d whose in_channels is inferred from the first input."""


class LazyConvTranspose2d(_Channels, ConvTranspose2d):
    """ConvTranspose2d whose in_channels is inferred from the first input."""


class LazyConvTranspose3d(_Channels, ConvTranspose3d):
    """ConvTranspose3d whose in_channels is inferred from the first input."""


class LazyBatchNorm1d(_Features, BatchNorm1d):
    """BatchNorm1d whose num_features is inferred from the first input."""


class LazyBatchNorm2d(_Features, BatchNorm2d):
    """BatchNorm2d whose num_features is inferred from the first input."""


class LazyBatchNorm3d(_Features, BatchNorm3d):
    """BatchNorm3d whose num_features is inferred from the first input."""


class LazyInstanceNorm1d(_Features, InstanceNorm1d):
    """InstanceNorm1d whose num_features is inferred from the first input."""


class LazyInstanceNorm2d(_Features, InstanceNorm2d):
    """InstanceNorm2d whose num_features is inferred from the first input."""


class LazyInstanceNorm3d(_Features, InstanceNorm3d):
    """InstanceNorm3d whose num_features is inferred from the first input."""
