"""What rooms above this one answer for tensors: NumPy's functions, sparse tensors, what notebooks show."""

from __future__ import annotations

from typing import Any

from ..core.record import Box
from ..later import above
from .access import part_of_tensor


@part_of_tensor
class Protocols(Box):
    """The part of Tensor that they answer."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return above("numpy_ufunc")(ufunc, method, inputs, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        namespace = above("numpy_namespace")
        newest = namespace.__array_api_version__
        if api_version is not None and api_version > newest:
            raise ValueError(f"no array API of version {api_version!r}: tapegrad.numpy has {newest}")
        return namespace

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return above("numpy_function")(function, args, kwargs)

    def _repr_html_(self) -> Any:
        return above("html")(self)

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
    ) -> Any:
        """The nonzero elements as a sparse tensor in coordinate form; every dimension is sparse."""
        return above("to_sparse")(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)

    to_sparse_coo = to_sparse

    def sparse_mask(self, mask: Any) -> Any:
        """The elements at the indices of a sparse tensor, as a sparse tensor."""
        return above("sparse_mask")(self, mask)
