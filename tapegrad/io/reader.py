"""Unpicklers: one that calls nothing but the functions of `rebuild`, and one that trusts the file."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

from .rebuild import HARMLESS, SAFE, TORCH, Call, Unknown, add_safe_globals, checked_key, is_safe

COPIES, FEW = 8, 1 << 20  # a pickle may have this many times its bytes copied, in items, and these more
PACKAGE = __name__.partition(".")[0]

_UnpicklerBase: Any = pickle._Unpickler  # that in C cannot be told what an opcode may do

_REFUSED = {
    code[0] for code in (
    pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.NEWOBJ_EX, pickle.PERSID, pickle.BYTEARRAY8,
    pickle.NEXT_BUFFER, pickle.READONLY_BUFFER,
)}  # fmt: skip
_FILLING: tuple[tuple[bytes, type, str], ...] = (
    (pickle.APPEND, list, "load_append"), (pickle.APPENDS, list, "load_appends"), (pickle.SETITEM, dict, "load_setitem"),
    (pickle.SETITEMS, dict, "load_setitems"), (pickle.ADDITEMS, set, "load_additems"),
)  # fmt: skip
COPIED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


def _filler(kind: type, name: str) -> Callable[[Any], None]:
    """An opcode that adds items to containers of one type."""
    usual = getattr(_UnpicklerBase, name)
    items = 2 if kind is dict else 1

    def fill(self: Any) -> None:
        many = name.endswith("s")
        value = self.metastack[-1][-1] if many else self.stack[-1 - items]
        if kind is not list:
            for key in self.stack[::items] if many else self.stack[-items:-1]:
                if isinstance(key, tuple):
                    checked_key(key)
        if isinstance(value, kind) or is_safe(type(value)):
            usual(self)
        elif type(value) is not Unknown:
            raise pickle.UnpicklingError(f"Weights only load failed. The file adds items to a {type(value).__name__}")
        elif many:
            self.pop_mark()
        else:
            del self.stack[-items:]

    return fill


class Restricted(_UnpicklerBase):  # type: ignore[misc]
    """An unpickler that makes tensors, containers, numbers and strings, and calls nothing else.

    Globals that are not allowed become placeholders, so that all of them can be named at the end.
    """

    def __init__(self, file: Any, encoding: str, storage: Callable[..., Any]) -> None:
        super().__init__(file, encoding=encoding)
        self.persistent_load = storage
        self.unknown: dict[str, None] = {}
        start = file.tell()
        self.file, self.size = file, file.seek(0, os.SEEK_END)
        file.seek(start)
        self._file_read = self.bounded
        self.copies = COPIES * (self.size - start) + FEW

    def bounded(self, count: int) -> Any:
        """Read bytes of the file; a length beyond its end allocates nothing."""
        if count > FEW and count > self.size - self.file.tell():
            raise EOFError("a value is cut off")
        return self.file.read(count)

    def copying(self, *values: Any) -> None:
        """Count items about to be copied: a short file can request many copies of a long value."""
        self.copies -= sum(len(v) for v in values if isinstance(v, COPIED))
        if self.copies < 0:
            raise pickle.UnpicklingError("Weights only load failed. The file has its values copied too often")

    def load(self) -> Any:
        result = super().load()
        if self.unknown:
            self.refuse(list(self.unknown))
        return result

    def refuse(self, names: list[str]) -> None:
        listed = "\n".join(f"  {name}" for name in names)
        raise pickle.UnpicklingError(
            f"Weights only load failed. Unsupported global: GLOBAL {names[0]} was not an allowed global by default. The "
            f"file uses these globals, and nothing of it was run:\n{listed}\nIf you trust what they do, allow them by "
            f"{add_safe_globals.__module__}.add_safe_globals([...]), or load a file of your own with weights_only=False."
        )

    def find_class(self, module: str, name: str) -> Any:
        path = f"{module.replace('__builtin__', 'builtins')}.{name}"
        for known in (TORCH, HARMLESS, SAFE):
            if path in known:
                return known[path]
        self.unknown[path] = None
        return Unknown()

    def called(self, make: Callable[..., Any]) -> None:
        args, function = self.stack.pop(), self.stack.pop()
        if type(function) is Unknown or (type(args) is tuple and any(type(a) is Unknown for a in args)):
            self.stack.append(Unknown())
        elif type(args) is tuple and (type(function) is Call or is_safe(function)):
            self.copying(*args)
            self.stack.append(make(function, args))
        else:
            raise pickle.UnpicklingError(
                f"Weights only load failed. The file calls a value of type {type(function).__name__}"
            )

    def load_reduce(self) -> None:
        self.called(lambda function, args: function(*args))

    def load_newobj(self) -> None:
        self.called(lambda kind, args: kind(*args) if type(kind) is Call else kind.__new__(kind, *args))

    def load_dict(self) -> None:
        for key in self.stack[::2]:
            checked_key(key)
        _UnpicklerBase.load_dict(self)

    def load_frozenset(self) -> None:
        for key in self.stack:
            checked_key(key)
        _UnpicklerBase.load_frozenset(self)

    def load_build(self) -> None:
        state = self.stack.pop()
        value = self.stack[-1]
        if type(value) is Unknown:
            return
        if is_safe(type(value)):
            self.stack.append(state)
            _UnpicklerBase.load_build(self)
        elif isinstance(value, OrderedDict) and isinstance(state, dict):
            self.copying(state)
            value.__dict__.update(state)
        else:
            raise pickle.UnpicklingError(f"Weights only load failed. The file sets the state of a {type(value).__name__}")

    dispatch: ClassVar[dict[int, Any]] = {
        code: read for code, read in _UnpicklerBase.dispatch.items() if code not in _REFUSED
    }
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.FROZENSET[0]] = load_frozenset
    for _code, _kind, _usual in _FILLING:
        dispatch[_code[0]] = _filler(_kind, _usual)


class Trusted(pickle.Unpickler):
    """An unpickler that imports and calls what the file names; PyTorch's tensors and layers become tapegrad's."""

    def __init__(self, file: Any, encoding: str, storage: Callable[..., Any]) -> None:
        super().__init__(file, encoding=encoding)
        self.storage = storage

    def persistent_load(self, pid: Any) -> Any:
        return self.storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        known = TORCH.get(f"{module}.{name}")
        if known is not None:
            return known
        root, *parts = module.split(".")
        while root == "torch":  # the module of that name here, or a package above it that shows the name
            with contextlib.suppress(ImportError):
                namespace = importlib.import_module(".".join([PACKAGE, *parts]))
                if hasattr(namespace, name):
                    return getattr(namespace, name)
            if not parts:
                break
            parts.pop()
        return super().find_class(module, name)
