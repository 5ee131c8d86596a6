"""Files: torch.save's and torch.load's zip format both ways, without PyTorch, and .safetensors and .npz by their suffix.

A .pt file is a zip archive of uncompressed records: `data.pkl`, a pickle in which a tensor is a call of
`torch._utils._rebuild_tensor_v2` on a storage, and `data/<key>`, the bytes of each storage. What is known of the format was
found by reading files that PyTorch 2.13 wrote.

`load` interprets the pickle itself: it calls the few functions that rebuild tensors, and nothing that a file names.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import math
import os
import pickle
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np

from . import dtypes
from .core.modes import no_grad
from .core.record import wrap
from .core.warning import warn
from .functions import create, shape
from .kernels import devices
from .programs.tracing import reads
from .sparse import sparse_coo_tensor
from .tensor.tensor import PRIVATE, Parameter, Tensor, raw, rebuild

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "safe_globals", "save",
]  # fmt: skip
STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
}  # fmt: skip
STORAGE_OF = {name: storage for storage, name in STORAGES.items()}
VERSION, NEWEST_VERSION = 3, 10  # of the zip format: what is written, what can be read
LEGACY_MAGIC, LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # of the format before PyTorch 1.6
ALIGNMENT = 64  # of a storage's first byte in the file
EXPANSION, SMALL = 20, 1 << 26  # records may be this many times the file, and these bytes more
KEY_DEPTH, KEY_PARTS = 100, 100_000  # of the tuples within a key of a dict or a member of a set
COPIES, FEW = 8, 1 << 20  # a pickle may have this many times its bytes copied, in items, and these more
MAX_DIMS = 64  # of NumPy's arrays

_PicklerBase: Any = pickle._Pickler  # those in C cannot be told what an opcode may do
_UnpicklerBase: Any = pickle._Unpickler

# ------------------------------------------------------------------------------------------------------------- writing


class Name:
    """A global that the pickle only names: "torch FloatStorage"."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        raise TypeError(f"{self.module}.{self.name} is but a name")


named = functools.cache(Name)  # one object for each, which the pickle writes once


class Stored:
    """A storage as the pickle refers to it."""

    def __init__(self, kind: Name, key: int, count: int) -> None:
        self.kind, self.key, self.count = kind, key, count


def _rebuilder(name: str) -> Name:
    return named("torch._utils", f"_rebuild_{name}")


def interval(array: Any) -> tuple[int, int]:
    """First address and end of what an array spans."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def storable(array: Any) -> Any:
    """The array, or a dense copy where its steps are negative or odd, or it leaves out elements of its memory."""
    low, high = interval(array)
    odd = any(s < 0 or s % array.itemsize for s in array.strides)
    return np.ascontiguousarray(array) if odd or array.size * array.itemsize < high - low else array


class Blocks:
    """The storages of a file: one for each stretch of memory that arrays of one dtype cover together."""

    def __init__(self, arrays: Iterable[Any]) -> None:
        self.spans: dict[Any, list[tuple[int, int]]] = {}
        self.keys: dict[Any, int] = {}
        self.contents: list[Any] = []  # bytes, by key
        for array in sorted((a for a in arrays if a.size), key=interval):
            low, high = interval(array)
            spans = self.spans.setdefault(array.dtype, [])
            if spans and low < spans[-1][1] and (low - spans[-1][0]) % array.itemsize == 0:
                spans[-1] = spans[-1][0], max(high, spans[-1][1])
            else:
                spans.append((low, high))

    def place(self, array: Any) -> tuple[int, int, int, Any]:
        """(key, elements of the storage, offset in elements, the array as it lies there)."""
        low, high = interval(array)
        for start, end in self.spans.get(array.dtype, ()):
            if start <= low and high <= end and (low - start) % array.itemsize == 0:
                if (low, high) == (start, end):
                    break
                return self._key(array, start, end), (end - start) // array.itemsize, (low - start) // array.itemsize, array
        array = storable(array)
        low, high = interval(array) if array.size else (0, 0)
        return self._key(array, low, high), (high - low) // array.itemsize, 0, array

    def _key(self, array: Any, start: int, end: int) -> int:
        key = (array.dtype, start, end) if end > start else len(self.contents)
        if key not in self.keys:
            self.keys[key] = len(self.contents)
            self.contents.append((array, _memory(array, start, end)))  # the array keeps the memory alive
        return self.keys[key]


def _memory(array: Any, start: int, end: int) -> Any:
    """The bytes between two addresses of the allocation that an array lies in."""
    import ctypes

    return memoryview((ctypes.c_char * (end - start)).from_address(start)).cast("B") if end > start else b""


class Writer(_PicklerBase):  # type: ignore[misc]
    """A pickler that writes tensors, sizes, dtypes and devices as PyTorch does.

    Without `blocks` it only collects the arrays of the tensors, in `arrays`.
    """

    def __init__(self, file: Any, protocol: int, blocks: Blocks | None, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.blocks, self.legacy = blocks, legacy
        self.arrays: list[Any] = []

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if id(obj) in self.memo:
            super().save(obj, save_persistent_id)
        elif type(obj) is Name:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            self.memoize(obj)
        elif isinstance(obj, dtypes.dtype):
            self.save(named("torch", obj._name))
        elif type(obj) is dtypes.Size:
            self.save_reduce(named("torch", "Size"), (tuple(obj),), obj=obj)
        elif type(obj) is dtypes.device:
            self.save_reduce(named("torch", "device"), tuple(v for v in (obj.type, obj.index) if v is not None), obj=obj)
        elif isinstance(obj, dtypes.layout):
            self.save_reduce(named("torch.serialization", "_get_layout"), (f"torch.{obj._name}",), obj=obj)
        elif isinstance(obj, Tensor):
            self.save_reduce(*self.form(obj), obj=obj)
        else:
            super().save(obj, save_persistent_id)

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not Stored:
            return None
        return ("storage", obj.kind, str(obj.key), "cpu", obj.count, *((None,) if self.legacy else ()))

    def form(self, t: Any) -> tuple[Name, tuple[Any, ...]]:
        """The function and the arguments that rebuild a tensor."""
        if t.is_sparse:
            return _rebuilder("sparse_tensor"), (t.layout, (t._indices(), t._values(), t.shape, t.is_coalesced()))
        function, args = self.plain_form(t)
        attributes = {k: v for k, v in t.__dict__.items() if k not in PRIVATE}
        hooks: Any = OrderedDict()
        if isinstance(t, Parameter):
            data = Rebuilt(function, args)
            if attributes:
                return _rebuilder("parameter_with_state"), (data, t.requires_grad, hooks, attributes)
            return _rebuilder("parameter"), (data, t.requires_grad, hooks)
        kind = type(t)
        if attributes or (kind is not Tensor and kind.__name__ != "Tensor"):
            written = named("torch", "Tensor") if kind.__name__ == "Tensor" else kind
            return named("torch._tensor", "_rebuild_from_type_v2"), (function, written, args, attributes)
        return function, args

    def plain_form(self, t: Any) -> tuple[Name, tuple[Any, ...]]:
        reads(t, "saving")
        array = devices.host(raw(t))
        self.arrays.append(array)
        key, count, offset, array = (0, 0, 0, array) if self.blocks is None else self.blocks.place(array)
        strides = tuple(s // array.itemsize for s in array.strides)
        tracked = t.requires_grad and not isinstance(t, Parameter)
        if t.dtype._name not in STORAGE_OF:
            raise TypeError(f"files have no tensors of {t.dtype}: convert it first, with .to(dtype)")
        storage = Stored(named("torch", STORAGE_OF[t.dtype._name]), key, count)
        return _rebuilder("tensor_v2"), (storage, offset, array.shape, strides, tracked, OrderedDict())


class Rebuilt:
    """A call that stands within the arguments of another."""

    def __init__(self, function: Name, args: tuple[Any, ...]) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


def _pickled(obj: Any, protocol: int, legacy: bool = False) -> tuple[bytes, list[Any]]:
    """The pickle of an object, and its storages: (array, bytes) by key."""
    survey = Writer(io.BytesIO(), protocol, None)
    survey.dump(obj)
    file, blocks = io.BytesIO(), Blocks(survey.arrays)
    Writer(file, protocol, blocks, legacy).dump(obj)
    return file.getvalue(), blocks.contents


def _write_zip(file: Any, name: str, obj: Any, protocol: int) -> None:
    import zipfile

    pickled, contents = _pickled(obj, protocol)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(record: str, data: Any) -> None:
            info = zipfile.ZipInfo(f"{name}/{record}")
            start = file.tell() + 30 + len(info.filename.encode()) + 4
            if len(data) * 1.05 > zipfile.ZIP64_LIMIT:
                start += 20  # zipfile puts the long sizes there
            gap = -start % ALIGNMENT
            info.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
            archive.writestr(info, data)

        add("data.pkl", pickled)
        add(".format_version", b"1")
        add(".storage_alignment", str(ALIGNMENT).encode())
        add("byteorder", sys.byteorder.encode())
        for key, (_, data) in enumerate(contents):
            add(f"data/{key}", data)
        add("version", f"{VERSION}\n".encode())


def _write_legacy(file: Any, name: str, obj: Any, protocol: int) -> None:
    pickled, contents = _pickled(obj, protocol, legacy=True)
    sizes = {"short": 2, "int": 4, "long": 4}
    about = {"protocol_version": LEGACY_PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for value in (LEGACY_MAGIC, LEGACY_PROTOCOL, about):
        pickle.dump(value, file, protocol=2)
    file.write(pickled)
    pickle.dump([str(key) for key in range(len(contents))], file, protocol=2)
    for array, data in contents:
        file.write((len(data) // array.itemsize).to_bytes(8, sys.byteorder))
        file.write(data)


def _named_arrays(obj: Any, suffix: str) -> dict[str, Any]:
    if not isinstance(obj, dict) or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in obj.items()):
        raise TypeError(f"a {suffix} file holds a dict of names and tensors, as a state_dict; got {type(obj).__name__}")
    for t in obj.values():
        reads(t, "saving")
    return {name: np.ascontiguousarray(raw(t)).reshape(t.shape) for name, t in obj.items()}


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as e:
        raise ImportError(".safetensors files need the package safetensors: pip install safetensors") from e
    return safetensors.numpy


def _write_safetensors(file: Any, name: str, obj: Any, protocol: int) -> None:
    arrays = _named_arrays(obj, ".safetensors")
    file.write(_safetensors().save(arrays))


def _write_npz(file: Any, name: str, obj: Any, protocol: int) -> None:
    arrays = _named_arrays(obj, ".npz")
    unknown = [name for name, array in arrays.items() if array.dtype.isbuiltin != 1]
    if unknown:
        raise TypeError(f"NumPy's files do not know the dtype of {unknown[0]!r}: use .safetensors or .pt")
    np.savez(file, **arrays)


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write an object with tensors in it to a file that PyTorch can read too.

    Tensors that share memory share it in the file; of a tensor that shows a small part of a block only that part is written.
    A file is replaced only when the new one is complete. Objects other than tensors, containers, numbers and strings are
    pickled as classes of this package or of the program.

    Args:
        obj: a tensor, a state_dict, nested containers of them, or any object that can be pickled.
        f: a path, or a binary file to write to. A path ending in .safetensors or .npz gets these formats, which hold a dict
            of names and tensors.
        pickle_module: accepted, not used.
        pickle_protocol: of the pickle within the file.

    Raises:
        TypeError: for something else than a dict of tensors in a .safetensors or .npz file.
        ValueError: for pickle_protocol 0.
        RuntimeError: if the folder does not exist.
    """
    if pickle_protocol == 0:
        raise ValueError("protocol 0 has no place for tensors: take 1 or higher")
    write: Any = _write_zip if _use_new_zipfile_serialization else _write_legacy
    if not isinstance(f, str | os.PathLike):
        if not hasattr(f, "write"):
            raise AttributeError(
                f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {f!r}"
            )
        whole = io.BytesIO()
        write(whole, "archive", obj, pickle_protocol)
        f.write(whole.getbuffer())
        return
    path = os.path.realpath(os.fspath(f))
    stem, suffix = os.path.splitext(os.path.basename(path))
    write = {".safetensors": _write_safetensors, ".npz": _write_npz}.get(suffix, write)
    with _replacing(path) as file:
        write(file, stem, obj, pickle_protocol)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[Any]:
    """A file that takes the place of `path` when all is written, and leaves it as it is on an exception."""
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe, or a folder, which open refuses
        with open(path, "wb") as file:
            yield file
        return
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    temporary = f"{path}.{os.urandom(8).hex()}.part"  # of this call alone, whatever threads and processes save
    file = open(temporary, "xb")  # noqa: SIM115 - what follows removes it
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


# ------------------------------------------------------------------------------------------------------------- reading


class Storage:
    """The elements of a storage in a file, and the tensor made of them first."""

    def __init__(self, array: Any) -> None:
        self.array, self.tensor = array, None

    def tensor_of(self, size: Any, stride: Any, offset: int) -> Any:
        """A tensor on a part of the storage; those of one storage see each other's writes."""
        array = self.array
        steps = [0 if n <= 1 else s for n, s in zip(size, stride, strict=True)]
        last = offset + sum((n - 1) * s for n, s in zip(size, steps, strict=True))
        count = math.prod(size)
        if min((*size, *steps, offset), default=0) < 0 or (count and last >= array.size):
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
                f"{array.itemsize} are out of bounds for storage of size {array.nbytes}"
            )
        if self.tensor is None and offset == 0 and count == array.size:
            shown = np.lib.stride_tricks.as_strided(array, size, [s * array.itemsize for s in steps])
            if shown.flags.c_contiguous:
                self.tensor = wrap(array.reshape(size))
                return self.tensor
            if interval(shown)[1] - interval(shown)[0] == array.nbytes:
                self.tensor = wrap(shown)
                return self.tensor
        if not count:
            return wrap(np.empty(size, array.dtype))
        if self.tensor is None:
            self.tensor = wrap(array)
        with no_grad():
            return shape.as_strided(self.tensor, size, stride, offset)


class Call:
    """A function that a file may call; nothing in a file can change it."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class Unknown:
    """What a global becomes that may not be used, until all of them are listed."""


class StorageType(Call):
    """A name such as torch.FloatStorage, which gives the name of its dtype; a file cannot call it."""


def dtype_of(kind: Any) -> str:
    if type(kind) is not StorageType:
        raise pickle.UnpicklingError(f"a storage whose type is a {type(kind).__name__}")
    return str(kind())


def _key(value: Any) -> Any:
    """The value, whose hash may be taken: through too many tuples that takes for ever, through too deep ones the C stack."""
    level, parts = [value], 0
    for _ in range(KEY_DEPTH):
        level = [v for v in level if isinstance(v, tuple)]
        if not level:
            return value
        parts += sum(map(len, level))
        if parts > KEY_PARTS:
            break
        level = [v for t in level for v in t]
    raise pickle.UnpicklingError("Weights only load failed. The file has a key of too many tuples within each other")


def _storage_key(key: Any) -> str:
    if type(key) is not str:
        raise pickle.UnpicklingError(f"a storage whose key is a {type(key).__name__}")
    return key


MADE: ContextVar[list[Any]] = ContextVar("tapegrad_made")
"""The tensors that the running call of `load` has made."""


def _rebuild_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None, metadata: Any = None
) -> Any:
    numbers = (offset, *size, *stride)
    if not isinstance(storage, Storage) or not all(type(n) is int and abs(n) < 1 << 63 for n in numbers):
        raise pickle.UnpicklingError("a tensor without a storage, or with sizes that are no integers of 64 bits")
    if len(numbers) > 1 + 2 * MAX_DIMS:
        raise pickle.UnpicklingError(f"a tensor of more than {MAX_DIMS} dimensions")
    t = storage.tensor_of(tuple(size), tuple(stride), offset)
    MADE.get().append(t)
    return t.requires_grad_() if requires_grad is True else t


def _layout(name: Any) -> Any:
    if name != "torch.sparse_coo":
        raise pickle.UnpicklingError(f"a tensor of layout {name}, which tapegrad has not")
    return dtypes.sparse_coo


def _rebuild_sparse(layout: Any, parts: Any) -> Any:
    indices, values, size, *coalesced = parts
    if not isinstance(indices, Tensor) or not isinstance(values, Tensor):
        raise pickle.UnpicklingError("a sparse tensor whose parts are no tensors")
    return sparse_coo_tensor(indices, values, size, is_coalesced=coalesced == [True])


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
    p = Parameter(data, bool(requires_grad))
    MADE.get().append(p)
    return _with_state(p, state)


def _rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    if not isinstance(function, Call):
        raise pickle.UnpicklingError("a tensor that something else than a tensor's function makes")
    t = function(*args)
    if kind is not type(t) and isinstance(kind, type) and issubclass(kind, Tensor):
        t = rebuild(kind, raw(t), t.requires_grad, {})
        MADE.get().append(t)
    return _with_state(t, state)


def _with_state(t: Any, state: Any) -> Any:
    """A tensor with the attributes that a program had set on it."""
    if isinstance(t, Tensor) and isinstance(state, dict):
        t.__dict__.update({k: v for k, v in state.items() if type(k) is str and not hasattr(type(t), k)})
    return t


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError("bytes written in another encoding than latin1")
    return text.encode("latin1")  # type: ignore[no-any-return]


def _bytearray(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    return bytearray(data if isinstance(data, bytes) else _encoded(data, encoding))


def _set(items: Any = ()) -> set[Any]:
    return set(map(_key, items))


def _frozenset(items: Any = ()) -> frozenset[Any]:
    return frozenset(map(_key, items))


def _ordered(items: Any = ()) -> Any:
    return OrderedDict(items if isinstance(items, dict) else ((_key(k), v) for k, v in items))


def _counter(items: Any = ()) -> Any:
    return Counter(items if isinstance(items, dict) else map(_key, items))


TORCH: dict[str, Any] = {
    "torch._utils._rebuild_tensor": Call(_rebuild_v2),
    "torch._utils._rebuild_tensor_v2": Call(_rebuild_v2),
    "torch._utils._rebuild_sparse_tensor": Call(_rebuild_sparse),
    "torch.serialization._get_layout": Call(_layout),
    "torch._utils._rebuild_parameter": Call(_rebuild_parameter),
    "torch._utils._rebuild_parameter_with_state": Call(_rebuild_parameter),
    "torch._tensor._rebuild_from_type_v2": Call(_rebuild_from_type),
    "torch.Size": Call(dtypes.Size),
    "torch.device": Call(dtypes.device),
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": StorageType(lambda: "uint8"),
    **{f"torch.{name}": StorageType(lambda dtype=dtype: dtype) for name, dtype in STORAGES.items()},
    **{f"torch.{name}": getattr(dtypes, "bool_" if name == "bool" else name) for name in STORAGE_OF},
}
HARMLESS: dict[str, Any] = {
    "collections.OrderedDict": Call(_ordered),
    "collections.Counter": Call(_counter),
    "builtins.set": Call(_set),
    "builtins.frozenset": Call(_frozenset),
    "builtins.complex": Call(complex),
    "builtins.bytearray": Call(_bytearray),
    "_codecs.encode": Call(_encoded),
}
SAFE: dict[str, Any] = {}  # what programs added


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` use these classes and functions of a file too; a pair (object, "module.name") says under which name."""
    for item in safe_globals:
        value, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        SAFE[name] = value


def get_safe_globals() -> list[Any]:
    """The classes and functions that were added."""
    return list(SAFE.values())


def clear_safe_globals() -> None:
    """Forget the classes and functions that were added."""
    SAFE.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Within the block `load` may use these classes and functions too; see `add_safe_globals`."""
    before = dict(SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        SAFE.clear()
        SAFE.update(before)


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


def _is_safe(value: Any) -> bool:
    return any(value is v for v in SAFE.values())


def _filler(kind: type, name: str) -> Callable[[Any], None]:
    """An opcode that adds items, for containers of one kind."""
    usual = getattr(_UnpicklerBase, name)
    items = 2 if kind is dict else 1

    def fill(self: Any) -> None:
        many = name.endswith("s")
        value = self.metastack[-1][-1] if many else self.stack[-1 - items]
        if kind is not list:
            for key in self.stack[::items] if many else self.stack[-items:-1]:
                if isinstance(key, tuple):
                    _key(key)
        if isinstance(value, kind) or _is_safe(type(value)):
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
        """Bytes of the file; a claim of more than there are allocates nothing."""
        if count > FEW and count > self.size - self.file.tell():
            raise EOFError("a value is cut off")
        return self.file.read(count)

    def copying(self, *values: Any) -> None:
        """Count items that are about to be copied: a short file can have a long value copied again and again."""
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
            f"tapegrad.serialization.add_safe_globals([...]), or load a file of your own with weights_only=False."
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
        elif type(args) is tuple and (type(function) is Call or _is_safe(function)):
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
            _key(key)
        _UnpicklerBase.load_dict(self)

    def load_frozenset(self) -> None:
        for key in self.stack:
            _key(key)
        _UnpicklerBase.load_frozenset(self)

    def load_build(self) -> None:
        state = self.stack.pop()
        value = self.stack[-1]
        if type(value) is Unknown:
            return
        if _is_safe(type(value)):
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
    """An unpickler that imports and calls what the file names; PyTorch's tensors and layers become this package's."""

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
                namespace = importlib.import_module(".".join([str(__package__), *parts]))
                if hasattr(namespace, name):
                    return getattr(namespace, name)
            if not parts:
                break
            parts.pop()
        return super().find_class(module, name)


class Records:
    """The records of a zip archive, and the storages in them."""

    def __init__(self, file: Any, size: int, mapped: Any) -> None:
        import zipfile

        try:
            self.archive = zipfile.ZipFile(file)
        except Exception as e:
            raise _unreadable("failed finding central directory") from e
        infos = self.archive.infolist()
        if sum(info.file_size for info in infos) > EXPANSION * size + SMALL:
            raise _unreadable(f"its records claim far more bytes than the file's {size}, as those of a zip bomb do")
        for info in infos:
            if info.filename.startswith("/") or ".." in info.filename.split("/"):
                raise _unreadable(f"a record is named {info.filename!r}, outside of the archive")
        self.names = {info.filename.partition("/")[2]: info for info in infos}
        self.file, self.mapped = file, mapped
        self.storages: dict[Any, Any] = {}
        if "constants.pkl" in self.names:
            raise RuntimeError("the file holds a TorchScript program, which only PyTorch can run")
        version = self.text("version", str(VERSION))
        if not version.isdigit() or not int(version) <= NEWEST_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version[:20]}, but the maximum supported version for "
                f"reading is {NEWEST_VERSION}. This version of tapegrad is older than the file."
            )
        order = self.text("byteorder", "little")
        if order not in ("little", "big"):
            raise _unreadable(f"unknown byte order {order[:20]!r}")
        self.swapped = order != sys.byteorder

    def text(self, name: str, default: str) -> str:
        return self.read(name).tobytes().decode("ascii", "replace").strip() if name in self.names else default

    def read(self, name: str) -> Any:
        """The bytes of a record, as a new array."""
        try:
            info = self.names[name]
        except KeyError:
            raise _unreadable(f"failed locating file {name}: file not found", "locating record") from None
        if self.mapped is not None and not info.compress_type:
            self.file.seek(info.header_offset + 26)
            lengths = self.file.read(4)
            start = info.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
            return self.mapped[start : start + info.file_size]
        data = np.empty(info.file_size, np.uint8)
        try:
            with self.archive.open(info) as opened:
                record: Any = opened
                view: Any = memoryview(data.data)
                done = 0
                while done < len(data) and (n := record.readinto(view[done:])):
                    done += n
                if record.read(1) or done < len(data):
                    raise EOFError("another length than its header says")
        except Exception as e:
            raise _unreadable(f"reading {name}: {e}") from e
        return data

    def storage(self, pid: Any) -> Any:
        _, kind, key, _, count = pid
        if type(kind) is Unknown:
            return kind
        name, key = dtype_of(kind), _storage_key(key)
        if (key, name) not in self.storages:
            array = elements(self.read(f"data/{key}"), name, self.swapped)
            if type(count) is not int or count > array.size:
                raise _unreadable(f"data/{key} holds {array.size} elements of {name} and should hold {count}")
            self.storages[key, name] = Storage(array)
        return self.storages[key, name]


def elements(data: Any, name: str, swapped: bool) -> Any:
    """Bytes as an array of a dtype."""
    dtype = dtypes.to_numpy(TORCH[f"torch.{name}"])
    array = data[: data.size // dtype.itemsize * dtype.itemsize].view(np.uint16 if name == "bfloat16" else dtype)
    array = array.byteswap() if swapped else array
    return array.view(dtype) if name == "bfloat16" else array


def _unreadable(why: str, doing: str = "reading zip archive") -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed {doing}: {why}")


def _read_zip(file: Any, size: int, unpickler: Any, encoding: str, mapped: Any) -> Any:
    records = Records(file, size, mapped)
    return unpickler(io.BytesIO(records.read("data.pkl").tobytes()), encoding, records.storage).load()


def _read_legacy(file: Any, size: int, unpickler: Any, encoding: str, mapped: Any) -> Any:
    storages: dict[Any, Storage] = {}
    swapped = False

    def storage(pid: Any) -> Any:
        _, kind, key, _, count, part = pid
        if type(kind) is Unknown:
            return kind
        dtype, key = dtypes.to_numpy(TORCH[f"torch.{dtype_of(kind)}"]), _storage_key(key)
        if key not in storages:
            if type(count) is not int or not 0 <= count * dtype.itemsize <= size:
                raise pickle.UnpicklingError(f"a storage of {count} elements in a file of {size} bytes")
            storages[key] = Storage(np.empty(count, dtype))
        if part is None:
            return storages[key]
        key_of_part, start, length = part
        return storages.setdefault(_storage_key(key_of_part), Storage(storages[key].array[start : start + length]))

    def plain() -> Any:
        return Restricted(file, encoding, storage).load()

    if plain() != LEGACY_MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if (protocol := plain()) != LEGACY_PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {protocol if type(protocol) is int else type(protocol).__name__}")
    swapped = (plain()["little_endian"] is True) != (sys.byteorder == "little")
    result = unpickler(file, encoding, storage).load()
    for key in plain():
        array = storages[_storage_key(key)].array
        if int.from_bytes(file.read(8), "big" if (sys.byteorder == "big") != swapped else "little") != array.size:
            raise RuntimeError(f"storage {key} has another size than its tensors say")
        data = file.read(array.nbytes)
        if len(data) < array.nbytes:
            raise EOFError(f"storage {key} is cut off")
        words = (
            np.frombuffer(data, f"u{array.itemsize}") if array.itemsize in (2, 4, 8) else np.frombuffer(data, array.dtype)
        )
        array.view(words.dtype)[...] = words.byteswap() if swapped else words
    return result


def _destination(map_location: Any) -> dtypes.device:
    """The device that tensors go to: the CPU, unless one is named."""
    if isinstance(map_location, dict):
        named = [create.check_device(v) for v in map_location.values()]
        return next((to for to in named if to is not devices.CPU), devices.CPU)
    return devices.CPU if map_location is None or callable(map_location) else create.check_device(map_location)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, encoding: str = "utf-8",
) -> Any:  # fmt: skip
    """Read a file of `save` or torch.save: the zip format, the one before PyTorch 1.6, .safetensors and .npz (by suffix).

    Nothing in the file is run: tensors, containers, numbers and strings are made, anything else is refused. Tensors that
    were on another device come to the CPU, unless map_location names one. Tensors that shared memory share it again there.

    Args:
        f: a path, or a binary file.
        map_location: the device that all tensors go to; a dict of devices, of which the first other than the CPU counts. A
            function is accepted, and all tensors come to the CPU.
        pickle_module: accepted, not used.
        weights_only: False allows any pickled object, which can run arbitrary code: for trusted files only. Layers
            and optimizers of PyTorch become those of this package. None is True, unless PyTorch's environment variable
            TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is 1; TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 makes it True always.
        mmap: read storages from disk when they are used; needs a path.
        encoding: of strings that Python 2 wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        RuntimeError: for a damaged, truncated or too new archive, and for one that would unpack to far more than it is.
        pickle.UnpicklingError: for a damaged pickle, and for globals that are not allowed, which are listed by name.
    """
    to = _destination(map_location)
    made: list[Any] = []
    before = MADE.get(made)
    MADE.set(made)
    try:
        result = _loaded(f, Restricted if _weights_only(weights_only) else Trusted, mmap, encoding)
    finally:
        MADE.set(before)
    if to is not devices.CPU:
        for t in made:
            t.data = t.data.to(to)
    return result


def _loaded(f: Any, unpickler: Any, mmap: bool | None, encoding: str) -> Any:
    if not isinstance(f, str | os.PathLike):
        if not hasattr(f, "read"):
            raise AttributeError(
                f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, got {f!r}"
            )
        if mmap:
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _read(f if hasattr(f, "seek") and f.seekable() else io.BytesIO(f.read()), unpickler, encoding, None)
    path = os.fspath(f)
    suffix = os.path.splitext(path)[1]
    with open(path, "rb") as file:
        if suffix in (".safetensors", ".npz"):
            return _read_named(file, suffix)
        return _read(file, unpickler, encoding, np.memmap(path, np.uint8, "c") if mmap and os.path.getsize(path) else None)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names of the classes and functions in a file for which `load` refuses it; nothing in the file is run.

    Args:
        f: a path, or a binary file, of what `save` or torch.save wrote.

    Raises:
        The error of `load` for a missing or damaged file.
    """
    found: list[str] = []

    class Listing(Restricted):
        def refuse(self, names: list[str]) -> None:
            found.extend(names)

    with open(f, "rb") if isinstance(f, str | os.PathLike) else contextlib.nullcontext(f) as file:
        MADE.set([])
        _read(file, Listing, "utf-8", None)
    return found


def _weights_only(asked: bool | None) -> bool:
    """weights_only, with the environment variables that override it for programs that cannot be edited."""
    always, never = (
        os.environ.get(f"TORCH_FORCE_{which}WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
        for which in ("", "NO_")
    )
    if always and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if always or asked is not None:
        return always or bool(asked)
    if never:
        warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not "
            "explicitly passed to `load`, forcing weights_only=False."
        )
    return not never


def _read_named(file: Any, suffix: str) -> dict[str, Any]:
    """The tensors of a .safetensors or .npz file."""
    try:
        arrays = _safetensors().load(file.read()) if suffix == ".safetensors" else np.load(file, allow_pickle=False)
        tensors = {name: wrap(np.array(array)) for name, array in arrays.items()}
        MADE.get().extend(tensors.values())
        return tensors
    except (OSError, ImportError, MemoryError):
        raise
    except Exception as e:
        raise RuntimeError(f"the {suffix} file is damaged: {e}") from e


def _read(file: Any, unpickler: Any, encoding: str, mapped: Any) -> Any:
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    read = _read_zip if head == b"PK\x03\x04" else _read_legacy
    if unpickler is Trusted:
        return read(file, size, unpickler, encoding, mapped)
    try:
        return read(file, size, unpickler, encoding, mapped)
    except (pickle.UnpicklingError, RuntimeError, OSError, ImportError, MemoryError):
        raise
    except Exception as e:
        raise pickle.UnpicklingError(f"Weights only load failed. The file is damaged: {type(e).__name__}: {e}") from e


def __dir__() -> list[str]:
    return sorted(__all__)
