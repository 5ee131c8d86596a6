"""What rooms above this one answer for tensors: NumPy's functions, and sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.record import Box
from .access import part_of_tensor

Function = Callable[..., Any]
numpy_ufunc: Function
numpy_function: Function
numpy_namespace: Any
dense_to_sparse: Function
dense_at_places: Function


def use_numpy(ufunc: Function, function: Function) -> None:
    """Name what answers NumPy's protocols; `tapegrad.numpy` does."""
    global numpy_ufunc, numpy_function
    numpy_ufunc, numpy_function = ufunc, function


def use_namespace(module: Any) -> None:
    """Name what `__array_namespace__` gives; `tapegrad.numpy` does."""
    global numpy_namespace
    numpy_namespace = module


def use_sparse(to_sparse: Function, sparse_mask: Function) -> None:
    """Name what makes sparse tensors of dense ones; `tapegrad.sparse` does."""
    global dense_to_sparse, dense_at_places
    dense_to_sparse, dense_at_places = to_sparse, sparse_mask


@part_of_tensor
class Protocols(Box):
    """The part of Tensor that they answer."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_ufunc(ufunc, method, inputs, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        newest = numpy_namespace.__array_api_version__
        if api_version is not None and api_version > newest:
            raise ValueError(f"no array API of version {api_version!r}: tapegrad.numpy has {newest}")
        return numpy_namespace

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_function(function, args, kwargs)

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
    ) -> Any:
        """The nonzero elements as a sparse tensor in coordinate form; every dimension is sparse."""
        return dense_to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)

    to_sparse_coo = to_sparse

    def sparse_mask(self, mask: Any) -> Any:
        """The elements at the indices of a sparse tensor, as a sparse tensor."""
        return dense_at_places(self, mask)
