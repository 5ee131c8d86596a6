"""Named results of functions that return several tensors, printed as PyTorch prints them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from .. import dialect

RANKED = ("max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin")
FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(RANKED, ("values", "indices")),
    "aminmax": ("min", "max"), "frexp": ("mantissa", "exponent"), "geqrf": ("a", "tau"),
    "histogram": ("hist", "bin_edges"), "histogramdd": ("hist", "bin_edges"),
    "qr": ("Q", "R"), "svd": ("U", "S", "V"), "slogdet": ("sign", "logabsdet"), "lu_unpack": ("P", "L", "U"),
    "triangular_solve": ("solution", "cloned_coefficient"),
    "linalg_cholesky_ex": ("L", "info"), "linalg_qr": ("Q", "R"), "linalg_lu": ("P", "L", "U"),
    "linalg_lu_factor": ("LU", "pivots"), "linalg_lu_factor_ex": ("LU", "pivots", "info"),
    "linalg_eigh": ("eigenvalues", "eigenvectors"), "linalg_eig": ("eigenvalues", "eigenvectors"),
    "linalg_svd": ("U", "S", "Vh"), "linalg_slogdet": ("sign", "logabsdet"), "linalg_inv_ex": ("inverse", "info"),
    "linalg_solve_ex": ("result", "info"), "linalg_lstsq": ("solution", "residuals", "rank", "singular_values"),
}  # fmt: skip


class Result:
    """What the named tuples below share."""

    __slots__ = ()
    _fields: tuple[str, ...]

    def __repr__(self) -> str:
        name = f"{dialect.current.prefix}.return_types.{type(self).__name__}"
        return f"{name}(\n" + ",\n".join(f"{field}={getattr(self, field)!r}" for field in self._fields) + ")"

    def __reduce__(self) -> Any:
        return result, (type(self).__name__, *self)  # type: ignore[misc]


TYPES: dict[str, Any] = {}


def type_of(name: str) -> Any:
    """The type of what the function of that name gives: a named tuple with the fields that FIELDS gives it."""
    if name not in TYPES:
        fields = namedtuple(name, FIELDS[name])  # type: ignore[misc]
        members = {"__slots__": (), "__module__": f"{dialect.current.prefix}.return_types"}
        TYPES.setdefault(name, type(name, (Result, fields), members))  # another thread may have been quicker
    return TYPES[name]


def result(name: str, *values: Any) -> Any:
    """The result of the function of that name."""
    return type_of(name)(*values)
