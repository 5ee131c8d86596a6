"""The methods and operators of Tensor that the table of public names states."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import dtypes, errors, modes
from ..core.op import TABLE
from ..core.state import is_recording
from ..functions import index, names
from ..functions.inplace import run_in_place
from . import memory
from .access import raw

COMPRESSED = [
    "col_indices", "crow_indices", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_csc", "to_sparse_csr",
]  # fmt: skip
SPARSE = ["coalesce", "indices", "is_coalesced", "values"]  # of sparse tensors only; see `sparse`


class LazyMethod:
    """A method that is made when it is first looked up, and then replaces this."""

    __slots__ = ("form", "line", "name")

    def __init__(self, name: str, line: names.Line, form: str) -> None:
        self.name, self.line, self.form = name, line, form

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.made().__get__(instance, owner)

    def made(self) -> Any:
        function = self.line.resolve()  # may import the module of a function, so not under the lock
        with MAKING:
            found = vars(TableMethods)[self.name]
            if found is self:
                found = _method(self.line, self.form, function)
                setattr(TableMethods, self.name, found)
        return found


MAKING = threading.RLock()


def _method(line: names.Line, form: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if form in ("Tensor_", "view_"):
        return _in_place(function, form)
    if form in names.OPERATORS:
        return getattr(function, "operator", function)
    return getattr(TableMethods, line.name + "_") if form in names.IN_PLACE_OPERATORS else function


def _lazy_methods() -> dict[str, LazyMethod]:
    """Names of methods and operators."""
    found = {}
    for line in names.LINES:
        for form in line.forms:
            if form == "Tensor":
                name = line.name
            elif form in ("Tensor_", "view_"):
                name = line.name + "_"
            elif (name := names.OPERATORS.get(form) or names.IN_PLACE_OPERATORS.get(form, "")) == "":
                continue
            found[name] = LazyMethod(name, line, form)
    return found


def methods() -> dict[str, Callable[..., Any]]:
    """Names of methods and operators to their functions: all of them, for those who look through the class."""
    return {name: getattr(TableMethods, name) for name in LATER}


LATER = _lazy_methods()


@functools.cache
def _in_place(function: Callable[..., Any], form: str) -> Callable[..., Any]:
    name = function.__name__
    if form == "view_":
        return _view_method(name, function)
    if name in index.WRITES:
        return _part_writing_method(name, function, index.WRITES[name])
    return _overwriting_method(name, function)


def _overwriting_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    op = TABLE.get({"pow": "pow_scalar"}.get(name, name))

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run_in_place(self, name, function, op, args, kwargs)

    if "dtype" in inspect.signature(function).parameters:
        method = _keeping_dtype(method)
    return _named_inplace(method, name, function)


def _keeping_dtype(method: Callable[..., Any]) -> Callable[..., Any]:
    def keeping_dtype(self: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        own = raw(self).dtype
        if dtype is not None and own.kind != "b" and dtypes.to_numpy(dtype) != own:
            a, b = errors.c_name(own), errors.c_name(dtypes.to_numpy(dtype))
            raise RuntimeError(f"Bad in-place call: input tensor dtype {a} and output tensor dtype {b} should match")
        return method(self, *args, **kwargs)

    return keeping_dtype


def _named_inplace(
    method: Callable[..., Any],
    name: str,
    function: Callable[..., Any],
    summary: str = "{}() written into this tensor; returns it.",
) -> Callable[..., Any]:
    """The method with the text of its function."""
    method.__name__, method.__qualname__, method.__module__ = name + "_", f"Tensor.{name}_", "tapegrad"
    signature = inspect.signature(function)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p for p in signature.parameters.values() if p.name not in ("out", "axis", "keepdims")]
    )
    method.__doc__ = f"{summary.format(name)}\n\n{inspect.cleandoc(function.__doc__ or '')}"
    return method


def _part_writing_method(name: str, function: Callable[..., Any], plan: Callable[..., Any]) -> Callable[..., Any]:
    """A write of a part: only that part is touched."""
    reduced = _overwriting_method(name, function)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "reduce" in kwargs:
            return reduced(self, *args, **kwargs)
        raw(self)
        return index.write_into(self, plan(self, *args, **kwargs))

    return _named_inplace(method, name, function)


def _view_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_recording() or not self.requires_grad:
            view = function(self, *args, **kwargs)
        else:  # under no_grad the values stay as they are, and so does where they come from
            with modes.enable_grad():
                view = function(self, *args, **kwargs)
        return memory.become(self, view, name)

    return _named_inplace(method, name, function, "Turn this tensor into its {}(); returns it.")


def _raises(error: Exception) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise type(error)(*error.args)

    return method


def _absent() -> dict[str, Callable[..., Any]]:
    """Methods of PyTorch's other kinds of tensors: they say why they are not here."""
    return {
        **{name: _raises(errors.out_of_scope(name, "compressed sparse tensors")) for name in COMPRESSED},
        **{name: _raises(errors.not_sparse(name)) for name in SPARSE},
    }


if TYPE_CHECKING:
    from .._methods import TableMethods as TableMethods
else:
    TableMethods = type("TableMethods", (), {"__slots__": (), "__module__": __name__, **LATER, **_absent()})
