"""Unpicklers: one that calls nothing but the functions of `rebuild`, and one that trusts the file."""

from __future__ import annotations

import contextlib
import importlib
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

from .limits import BUDGET, LoadError
from .rebuild import HARMLESS, SAFE, TORCH, Call, Unknown, add_safe_globals, checked_key, free_attributes, is_safe

PACKAGE = __name__.partition(".")[0]

_UnpicklerBase: Any = pickle._Unpickler  # that in C cannot be told what an opcode may do

_REFUSED = {
    code[0] for code in (
    pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.NEWOBJ_EX, pickle.PERSID,
    pickle.NEXT_BUFFER, pickle.READONLY_BUFFER,
)}  # fmt: skip
_FILLING: tuple[tuple[bytes, type, str], ...] = (
    (pickle.APPEND, list, "load_append"), (pickle.APPENDS, list, "load_appends"), (pickle.SETITEM, dict, "load_setitem"),
    (pickle.SETITEMS, dict, "load_setitems"), (pickle.ADDITEMS, set, "load_additems"),
)  # fmt: skip
OBJECTS, MOST_NAMES = "the objects of its pickle", 100
COPIED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
TEXTS = (str, bytes, bytearray)
PER_CHARACTER, PER_ITEM, SHORT = 8, 128, 16  # bytes; of texts longer than SHORT, of an item in a dict or set
OPCODE = 24  # bytes that an opcode makes, at most, but for these and what is counted where it is read
_BYTES: dict[bytes, int] = {
    pickle.MARK: 88, pickle.EMPTY_LIST: 88, pickle.LIST: 88, pickle.EMPTY_DICT: 96, pickle.DICT: 96, pickle.EMPTY_SET: 248,
    pickle.FROZENSET: 248, pickle.TUPLE: 72, pickle.TUPLE1: 72, pickle.TUPLE2: 80, pickle.TUPLE3: 88,
    **dict.fromkeys((pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE), PER_ITEM),
    **dict.fromkeys((pickle.LONG, pickle.LONG1, pickle.LONG4, pickle.INT, pickle.BININT, pickle.BINFLOAT, pickle.FLOAT), 64),
    **dict.fromkeys((pickle.STRING, pickle.SHORT_BINSTRING, pickle.BINSTRING, pickle.UNICODE, pickle.SHORT_BINUNICODE,
                     pickle.BINUNICODE, pickle.BINUNICODE8, pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8,
                     pickle.BYTEARRAY8), 160),
    **dict.fromkeys((pickle.REDUCE, pickle.NEWOBJ, pickle.BINPERSID, pickle.GLOBAL, pickle.STACK_GLOBAL), 512),
}  # fmt: skip


def _filler(kind: type, name: str) -> Callable[[Any], None]:
    """An opcode that adds items to containers of one type."""
    usual = getattr(_UnpicklerBase, name)
    items = 2 if kind is dict else 1

    def fill(self: Any) -> None:
        many = name.endswith("s")
        value = self.metastack[-1][-1] if many else self.stack[-1 - items]
        if kind is not list:
            keys = self.stack[::items] if many else self.stack[-items:-1]
            self.budget.take(PER_ITEM * len(keys), OBJECTS)
            for key in keys:
                checked_key(key)
        if isinstance(value, kind) or is_safe(type(value)):
            usual(self)
        elif type(value) is not Unknown:
            raise LoadError(f"Weights only load failed. The file adds items to a {type(value).__name__}")
        elif many:
            self.pop_mark()
        else:
            del self.stack[-items:]

    return fill


def _charged(read: Callable[[Any], None], cost: int) -> Callable[[Any], None]:
    """An opcode that takes the memory of what it makes from the budget."""

    def charged(self: Any) -> None:
        budget = self.budget
        budget.left -= cost
        if budget.left < 0:
            raise budget.exceeded(f"{OBJECTS} take {budget.limit - budget.left} bytes")
        read(self)

    return charged


class Allowed(dict[int, Any]):
    """The opcodes of a pickle that are read."""

    def __missing__(self, code: int) -> Any:
        raise LoadError(f"Weights only load failed. A file of tensors has no opcode {code} in its pickle")


def reason(e: Exception) -> str:
    """What an exception says, in short: the text of some is that of a value in the file."""
    return type(e).__name__ if isinstance(e, KeyError) or not str(e) else f"{type(e).__name__}: {str(e)[:200]}"


class Restricted(_UnpicklerBase):  # type: ignore[misc]
    """An unpickler that makes tensors, containers, numbers and strings, and calls nothing else.

    Globals that are not allowed become placeholders, so that all of them can be named at the end.
    """

    def __init__(self, file: Any, encoding: str, storage: Callable[..., Any]) -> None:
        super().__init__(file, encoding=encoding)
        self.persistent_load = storage
        self.unknown: dict[str, None] = {}
        self.budget = BUDGET.get()
        start = file.tell()
        self.file, self.end = file, file.seek(0, 2)
        file.seek(start)
        self._file_read, self._file_readline = self.bounded, self.bounded_line

    def bounded(self, count: int) -> Any:
        """Read bytes of the file; a length beyond its end allocates nothing."""
        if count > SHORT:
            if count > self.end - self.file.tell():
                raise EOFError("a value is cut off")
            self.budget.take(PER_CHARACTER * count, "a text or number of the file's pickle")
        return self.file.read(count)

    def bounded_line(self) -> Any:
        line = self.file.readline(self.budget.left // PER_CHARACTER + 1)
        self.budget.take(PER_CHARACTER * len(line), "a line of the file's pickle")
        return line

    def copying(self, *values: Any) -> None:
        """Count what is about to be copied."""
        for value in values:
            if isinstance(value, COPIED):
                self.budget.work(len(value))
                self.budget.take((PER_CHARACTER if isinstance(value, TEXTS) else PER_ITEM) * len(value), OBJECTS)

    def load(self) -> Any:
        try:
            result = super().load()
        except (LoadError, OSError, ImportError, MemoryError):
            raise
        except Exception as e:
            raise LoadError(
                f"Weights only load failed. The pickle is damaged near byte {self.file.tell()}: {reason(e)}"
            ) from e
        if self.unknown:
            self.refuse(list(self.unknown))
        return result

    def refuse(self, names: list[str]) -> None:
        names = [name if name.isprintable() and len(name) <= 200 else repr(name[:200]) for name in names[:MOST_NAMES]]
        listed = "\n".join(f"  {name}" for name in names) + ("\n  .." if len(self.unknown) > MOST_NAMES else "")
        raise LoadError(
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
            raise LoadError(f"Weights only load failed. The file calls a value of type {type(function).__name__}")

    def load_reduce(self) -> None:
        self.called(lambda function, args: function(*args))

    def load_newobj(self) -> None:
        self.called(lambda kind, args: kind(*args) if type(kind) is Call else kind.__new__(kind, *args))

    def load_dict(self) -> None:
        self.budget.take(PER_ITEM * len(self.stack), OBJECTS)
        for key in self.stack[::2]:
            checked_key(key)
        _UnpicklerBase.load_dict(self)

    def load_frozenset(self) -> None:
        self.budget.take(PER_ITEM * len(self.stack), OBJECTS)
        for key in self.stack:
            checked_key(key)
        _UnpicklerBase.load_frozenset(self)

    def load_bytearray8(self) -> None:
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(length)))

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
            value.__dict__.update(free_attributes(value, state))
        else:
            raise LoadError(f"Weights only load failed. The file sets the state of a {type(value).__name__}")

    dispatch: ClassVar[dict[int, Any]] = Allowed(
        (code, read) for code, read in _UnpicklerBase.dispatch.items() if code not in _REFUSED
    )
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.FROZENSET[0]] = load_frozenset
    for _code, _kind, _usual in _FILLING:
        dispatch[_code[0]] = _filler(_kind, _usual)
    for _byte, _read in dispatch.items():
        dispatch[_byte] = _charged(_read, _BYTES.get(bytes([_byte]), OPCODE))


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
