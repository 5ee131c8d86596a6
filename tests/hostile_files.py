"""Files that somebody who knows the formats makes to do harm: each with the words that its error must have.

`CASES` maps a name to a `Case`. Archives are put together byte by byte here, since zipfile writes none that lie.
"""

import dataclasses
import io
import json
import os
import pickle
import struct
import zlib

import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C
DATA = np.arange(4, dtype="<f4").tobytes()
LIMIT = 1 << 22  # max_bytes of the cases that are to exceed it
CASES = {}


@dataclasses.dataclass
class Case:
    suffix: str
    data: bytes
    words: str
    max_bytes: int | None = None


def case(name, suffix, data, words, max_bytes=None):
    assert name not in CASES, name
    CASES[name] = Case(suffix, data, words, max_bytes)


# ----------------------------------------------------------------------------------------------------------------- zip


@dataclasses.dataclass
class Record:
    """A record of an archive; what is None is what it should be."""

    name: str
    data: bytes
    method: int = 0
    size: int | None = None  # claimed
    packed_size: int | None = None  # claimed
    offset: int | None = None  # claimed
    local_name: str | None = None
    crc: int | None = None
    flags: int = 0
    attributes: int = 0


def packed(r):
    if r.method == 0:
        return r.data
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return squeeze.compress(r.data) + squeeze.flush()


def zipped(*records, count=None, directory_size=None, directory_offset=None, comment=b""):
    """An archive of records, with the end of its directory as claimed."""
    file, directory = io.BytesIO(), []
    for r in records:
        body = packed(r)
        crc = zlib.crc32(r.data) if r.crc is None else r.crc
        size = len(r.data) if r.size is None else r.size
        packed_size = len(body) if r.packed_size is None else r.packed_size
        offset = file.tell() if r.offset is None else r.offset
        name, local = r.name.encode(), (r.name if r.local_name is None else r.local_name).encode()
        long = b"" if max(size, packed_size, offset) < 1 << 32 else struct.pack("<HHQQQ", 1, 24, size, packed_size, offset)
        sizes = (crc, *((0xFFFFFFFF,) * 2 if long else (packed_size, size)))
        file.write(
            struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, r.flags, r.method, 0, 0, *sizes, len(local), 0) + local + body
        )
        directory.append(
            struct.pack("<IHHHHHHIII", 0x02014B50, 20, 45, r.flags, r.method, 0, 0, *sizes)
            + struct.pack("<HHHHHII", len(name), len(long), 0, 0, 0, r.attributes, 0xFFFFFFFF if long else offset)
            + name + long
        )  # fmt: skip
    start, whole = file.tell(), b"".join(directory)
    count = len(records) if count is None else count
    directory_size = len(whole) if directory_size is None else directory_size
    directory_offset = start if directory_offset is None else directory_offset
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, directory_size, directory_offset, len(comment))
    return file.getvalue() + whole + end + comment


def npy(array=None, header=None, version=(1, 0), data=None, length=None):
    """A .npy file, with another header or length of header than it should have."""
    array = np.arange(4.0) if array is None else array
    if header is None:
        header = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}"
    text = header.encode("latin1") if isinstance(header, str) else header
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + size + text + (array.tobytes() if data is None else data)


LIST = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
SOUND = REBUILD + b"(" + LIST + b"K\x00K\x04\x85K\x01\x85\x89NtR."
KINDS = {
    ".pt": (Record("m/data.pkl", SOUND), Record("m/version", b"3\n"), Record("m/data/0", DATA)),
    ".npz": (Record("a.npy", npy()), Record("b.npy", npy()), Record("c.npy", npy())),
}


def archives():
    for suffix, records in KINDS.items():
        first, second, last = records
        folder = "m/" if suffix == ".pt" else ""

        def lying(words, what, /, end=None, *, suffix=suffix, first=first, second=second, last=last, **claims):
            data = zipped(first, second, dataclasses.replace(last, **claims), **(end or {}))
            case(f"{suffix} {what}", suffix, data, words)

        outside = "overlaps another one, or lies outside of the file"
        lying("zip bomb.*max_bytes=", "deflated bomb", method=8, data=bytes(100_000_000))
        lying("zip bomb.*max_bytes=", "claims 1 TB", method=8, size=1 << 40)
        lying("zip bomb.*max_bytes=", "claims 16 EB", method=8, size=(1 << 64) - 1)
        lying("another length|Bad CRC", "unpacks to more than it claims", method=8, data=bytes(100_000), size=10)
        lying("another length", "unpacks to less than it claims", method=8, data=bytes(100), size=100_000)
        lying("two sizes", "stored with two sizes", size=5)
        lying(outside, "stored beyond the end", size=1 << 20, packed_size=1 << 20)
        lying(outside, "stored beyond 4 GB", size=1 << 40, packed_size=1 << 40)
        lying(outside, "offset beyond the end", offset=1 << 30)
        lying(outside, "offset beyond 4 GB", offset=1 << 60)
        lying(outside, "offset of the first record", offset=0)
        lying(outside, "offset within the first record", offset=20)
        lying("Bad CRC|no array|failed", "wrong checksum", crc=1)
        lying("File name in directory|differ", "another name in its header", local_name="other")
        lying("outside of the archive", "absolute name", name="/etc/passwd")
        lying("outside of the archive", "name with ..", name=f"{folder}../../evil")
        lying("outside of the archive", "name of the parent", name="..")
        lying("same name", "duplicate name", name=second.name)
        lying("symbolic link", "symbolic link", attributes=0o120777 << 16)
        lying("encrypted", "encrypted", flags=1)
        lying("another method", "LZMA", method=14)
        lying("another method", "bzip2", method=12)
        lying("another method", "unknown method", method=99)
        lying("central directory", "directory longer than the file", end={"directory_size": 0xFFFFFFF0})
        lying("central directory", "directory of no length", end={"directory_size": 1})
        lying(f"{outside}|central directory", "directory before the file", end={"directory_offset": 0xFFFFFFF0})
        sound = zipped(*records)
        for n in (4, 30, 60, len(sound) // 2, len(sound) - 22, len(sound) - 1):
            case(f"{suffix} cut off at {n}", suffix, sound[:n], "central directory")
        many = zipped(*records, *[Record(f"{folder}{i}", b"") for i in range(20_000)])
        case(f"{suffix} many records", suffix, many, "the directory of its records would take.*max_bytes", LIMIT)
        whole = zipped(*[dataclasses.replace(r, data=r.data + bytes(LIMIT // 2 if i else 0)) for i, r in enumerate(records)])
        case(f"{suffix} more than asked for", suffix, whole, f"records claim.*max_bytes={LIMIT}", LIMIT)
        names = [dataclasses.replace(r, name="m" if i else "m/") for i, r in enumerate(records)]
        case(f"{suffix} names that are folders", suffix, zipped(*names), "same name|no array|not found")


def pt(pickled, *records):
    named = {"m/data.pkl": pickled, "m/version": b"3\n", "m/data/0": DATA, **dict(records)}
    return zipped(*[Record(name, data) for name, data in named.items()])


def legacy(pickled, keys=("0",), end=None, about=None, magic=MAGIC, protocol=1001):
    about = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}} if about is None else about
    head = b"".join(pickle.dumps(v, 2) for v in (magic, protocol, about))
    stored = struct.pack("<Q", 4) + DATA if end is None else end
    return head + pickled + pickle.dumps(list(keys) if isinstance(keys, tuple) else keys, 2) + stored


def records_of_pt():
    version = "with version .*, but the maximum supported version for reading is 10"
    for text in (b"11\n", b"-1\n", b"3.5", b"\xff", b"9" * 5000, b"\xc2\xb2", b""):
        case(f".pt version {text[:9]}", ".pt", pt(SOUND, ("m/version", text)), version)
    case(".pt version of a terabyte", ".pt", zipped(
        Record("m/data.pkl", SOUND), Record("m/version", b"3", 8, size=1 << 40)), "zip bomb")  # fmt: skip
    for text in (b"middle", b"", b"\x00" * 40, b"little big"):
        case(f".pt byte order {text[:9]}", ".pt", pt(SOUND, ("m/byteorder", text)), "unknown byte order")
    case(".pt no pickle", ".pt", zipped(Record("m/version", b"3")), "failed locating file data.pkl")
    case(".pt empty archive", ".pt", zipped(), "its beginning is damaged|central directory")
    case(".pt no storage", ".pt", zipped(Record("m/data.pkl", SOUND)), "failed locating file data/0")
    case(".pt two folders", ".pt", pt(SOUND, ("n/data.pkl", b"N.")), "same name")
    case(".pt script", ".pt", pt(SOUND, ("m/constants.pkl", b"N.")), "TorchScript")
    case(".pt short storage", ".pt", pt(SOUND, ("m/data/0", DATA[:15])), "holds 3 elements of float32 and should hold 4")
    case(".pt odd truth values", ".pt", pt(tensor((4,), (1,), kind=b"Bool"), ("m/data/0", b"\x00\x01\x02\xff")),
         "truth values that are neither 0 nor 1")  # fmt: skip
    kinds = b"Double Float Half Long Int Short Char Byte ComplexDouble ComplexFloat".split()
    many = b"](" + b"".join(storage(kind, count=1) for kind in kinds) + b"e."
    case(".pt one record of many dtypes", ".pt", pt(many, ("m/data/0", bytes(LIMIT // 4))), "the record.*max_bytes", LIMIT)


# -------------------------------------------------------------------------------------------------------------- pickles


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(n):
    data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data if len(data) < 256 else b"\x8b" + struct.pack("<i", len(data)) + data


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(kind=b"Float", key="0", count=4, end=b""):
    return b"(" + text("storage") + b"ctorch\n" + kind + b"Storage\n" + text(key) + text("cpu") + number(count) + end + b"tQ"


def tensor(size, stride, offset=0, count=4, kind=b"Float"):
    return REBUILD + b"(" + storage(kind, count=count) + number(offset) + numbers(size) + numbers(stride) + b"\x89NtR."


class Attack:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def call(name, *args):
    """The pickle of a call of a global."""
    return b"c" + name.replace(" ", "\n").encode() + b"\n(" + b"".join(args) + b"tR."


DEEP = b")" + b"\x85" * 50_000  # a tuple in a tuple in ..
BROAD = b")" + b"q\x01h\x01\x86" * 60  # of two times the same tuple each
ENDLESS = REBUILD + b"(" + LIST + b"K\x00" + numbers([1 << 40]) + b"K\x00\x85\x89NtR"  # a tensor of one element, repeated
FLOATS = REBUILD + b"(" + LIST + b"K\x00K\x04\x85K\x01\x85\x89NtR"
TWIN = b"(K\x01\x91q\x01(K\x02\x91q\x02" + b"(h\x01h\x02\x91q\x03(h\x01h\x02K\x03\x91q\x02h\x03q\x01" * 60
COLLIDING = b"".join(number(i * ((1 << 61) - 1)) + b"K\x00" for i in range(1, 3000))
PAIRS = b"".join(struct.pack(">cdcd", b"G", float((1 << 52) - 1000003 * j), b"G", float(j)) for j in range(3000))


def pickles():
    """Name: pickle, words of the error, and max_bytes where it is that which is to be exceeded."""
    yield "os.system", pickle.dumps(Attack(os.system, "true"), 2), "Unsupported global: GLOBAL (posix|nt).system"
    yield "eval", pickle.dumps(Attack(eval, "1"), 0), "builtins.eval"
    yield "exec in a list in a dict", pickle.dumps({"a": [Attack(exec, "1")]}, 4), "builtins.exec"
    yield "import", call("builtins __import__", text("os")), "builtins.__import__"
    yield "getattr", call("builtins getattr", text("a"), text("join")), "builtins.getattr"
    yield "a method by a dotted name", b"\x80\x04" + text("builtins") + text("str.join") + b"\x93.", "builtins.str.join"
    yield "numpy.load", call("numpy load", text("x")), "numpy.load"
    yield "tapegrad.load", call("tapegrad load", text("x")), "tapegrad.load"
    yield "torch.load", call("torch load", text("x")), "torch.load"
    yield "a layer", call("torch.nn.modules.linear Linear", b"K\x02K\x02"), "torch.nn.modules.linear.Linear"
    yield "a name with control characters", b"cos\n\x1b[31mred\n.", r"\\x1b\[31mred"
    yield "a name of a megabyte", b"cos\n" + b"a" * 1_000_000 + b"\n.", "os.aaa"
    yield "many names", b"".join(b"cos\nx%d\n0" % i for i in range(5000)) + b"N.", r"os.x99\n  \.\."
    yield "an extension", b"\x82\x01.", "no opcode 130"
    yield "an instance", b"(cposix\nsystem\nX\x01\x00\x00\x00ao.", "no opcode 111"
    yield "an old instance", b"(X\x01\x00\x00\x00aiposix\nsystem\n.", "no opcode 105"
    yield "a persistent id as text", b"Pabc\n.", "no opcode 80"
    yield "a keyword call", b"\x80\x04ctorch\nTensor\n)}\x92.", "no opcode 146"
    yield "a bytearray of 8 EB", b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f.", "cut off"
    yield "a buffer from outside", b"\x80\x05\x97.", "no opcode 151"
    yield "a type called", b"ctorch\nTensor\n)R.", "calls a value of type"
    yield "a dtype called", b"ctorch\nfloat32\n)R.", "calls a value of type dtype"
    yield "a storage type called", b"ctorch\nFloatStorage\n)R.", "calls a value of type StorageType"
    yield "a list called", b"]K\x01\x85R.", "calls a value of type list"
    yield "a call with a list", b"ctorch\nSize\n]R.", "calls a value of type Call"
    yield "a type's state", b"ctorch\nTensor\n}X\x01\x00\x00\x00aK\x01sb.", "sets the state of a"
    yield "a function's state", REBUILD + b"}" + text("_function") + b"K\x01sb.", "sets the state of a Call"
    yield "a tensor's state", FLOATS + b"}" + text("_array") + b"K\x01sb.", "sets the state of a Tensor"
    yield "items of a tensor", FLOATS + b"K\x00K\x01s.", "adds items to a Tensor"
    yield "items of a tuple", b")K\x01a.", "adds items to a tuple"
    yield "no stack", b"R.", "damaged near byte [0-9]*: IndexError"
    yield "no mark", b"t.", "damaged near byte"
    yield "no value", b".", "damaged near byte"
    yield "no end", b"N", "damaged near byte|no opcode 4"
    yield "an unknown memo", b"h\x07.", "damaged near byte"
    yield "a negative memo", b"p-5\n.", "damaged near byte"
    yield "protocol 99", b"\x80\x63N.", "damaged near byte"
    yield "a frame beyond the end", b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"N.", "cut off"
    yield "a frame that ends in a value", b"\x80\x04\x95" + struct.pack("<Q", 3) + b"X\x09\x00\x00\x00abcdefghi.", "damaged"
    for name, claim in {"text": b"\x8d", "bytes": b"\x8e"}.items():
        yield f"{name} of 8 EB", b"\x80\x04" + claim + struct.pack("<Q", (1 << 63) - 1) + b"a.", "cut off"
        yield f"{name} of 16 EB", b"\x80\x04" + claim + b"\xff" * 8 + b"a.", "damaged near byte"
    yield "text of 4 GB", b"X\xff\xff\xff\xffa.", "cut off"
    yield "bytes of -1", b"T\xff\xff\xff\xffa.", "damaged near byte"
    yield "a number of 2 GB", b"\x80\x02\x8b\xff\xff\xff\x7fa.", "cut off"
    yield "a number of -1 bytes", b"\x80\x02\x8b\xff\xff\xff\xffa.", "damaged near byte"
    yield "a number of 100,000 digits", b"L" + b"9" * 100_000 + b"L\n.", "damaged near byte"
    yield "text that is none", b"X\x02\x00\x00\x00\xff\xfe.", "damaged near byte"
    yield "a string without quotes", b"Sabc\n.", "damaged near byte"
    yield "an unhashable key", b"}]K\x01s.", "unhashable"
    yield "a key of deep tuples", b"}" + DEEP + b"K\x01s.", "too many tuples"
    yield "a key of broad tuples", b"}(" + BROAD + b"K\x01u.", "too many tuples"
    yield "a set of broad tuples", b"\x80\x04\x8f(" + BROAD + b"\x90.", "too many tuples"
    yield "frozensets compared for ever", b"\x80\x04\x8f(" + TWIN + TWIN + b"h\x01h\x02\x90.", "too many tuples"
    yield (
        "a key hashed again and again",
        b"\x80\x02}" + b"(" + b"N" * 20_000 + b"tq\x01" + b"0" + b"h\x01Ns" * 2000 + b".",
        "copied too often",
    )
    yield (
        "a great number hashed again and again",
        b"}" + number(1 << 4_000_000) + b"q\x010" + b"h\x01Ns" * 2000 + b".",
        "copied too often",
    )
    yield "integers of one hash", b"\x80\x02}(" + COLLIDING + b"u.", "keys of one hash"
    pairs = b"".join(b"h\x01" + PAIRS[i : i + 18] + b"\x86R" for i in range(0, len(PAIRS), 18))
    yield "complex numbers of one hash", b"\x80\x04cbuiltins\ncomplex\nq\x010\x8f(" + pairs + b"\x90.", "keys of one hash"
    yield "a set of a tensor", call("builtins set", ENDLESS), "no container"
    yield "a counter of a tensor", call("collections Counter", ENDLESS), "no container"
    yield "a dict of a tensor", call("collections OrderedDict", ENDLESS), "no container"
    yield "a size of a tensor", call("torch Size", ENDLESS), "no container"
    yield "a size of texts", call("torch Size", text("abc")), "TypeError"
    yield "a device by number", call("torch device", b"K\x00"), "a device that is not given"
    yield "a device that is none", call("torch device", text("x" * 100)), "damaged near byte"
    yield "a complex number of text", call("builtins complex", text("1j")), "no numbers"
    yield "a bytearray of 2 GB", call("builtins bytearray", b"J\xff\xff\xff\x7f"), "damaged near byte"
    yield "bytes in another encoding", call("_codecs encode", text("a"), text("rot13")), "another encoding"
    yield "bytes of a list", call("_codecs encode", b"]"), "damaged near byte"
    yield "a parameter of a list", call("torch._utils _rebuild_parameter", b"]\x88N"), "where a tensor is needed"
    yield (
        "a tensor made by a set",
        call("torch._tensor _rebuild_from_type_v2", b"cbuiltins\nset\nctorch\nTensor\n](K\x01eN"),
        "something else than a tensor's function",
    )
    sparse = (
        b"c"
        + b"torch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n"
        + text("torch.sparse_coo")
        + b"\x85R"
    )
    yield (
        "a sparse tensor of endless parts",
        sparse + b"(" + ENDLESS + ENDLESS + b"K\x01\x85ttR.",
        "a sparse tensor.*max_bytes",
    )
    yield "a sparse tensor of lists", sparse + b"(]]K\x01\x85ttR.", "where a tensor is needed"
    yield "another layout", call("torch.serialization _get_layout", text("torch.sparse_csr")), "layout torch.sparse_csr"
    yield "lists", b"](" + b"]" * 200_000 + b"e.", "objects of its pickle.*max_bytes", LIMIT
    yield "sets", b"\x80\x04](" + b"\x8f" * 200_000 + b"e.", "objects of its pickle.*max_bytes", LIMIT
    yield "memos", b"\x80\x04](" + b"N\x940" * 200_000 + b"e.", "objects of its pickle.*max_bytes", LIMIT
    yield "marks", b"(" * 200_000 + b"1" * 200_000 + b"N.", "objects of its pickle.*max_bytes", LIMIT
    yield (
        "ordered dicts",
        b"ccollections\nOrderedDict\nq\x01](" + b"h\x01)R" * 50_000 + b"e.",
        "its pickle.*max_bytes",
        LIMIT,
    )
    yield (
        "tensors",
        REBUILD + b"q\x01" + LIST + b"q\x02](" + b"h\x01(h\x02K\x00))\x89NtR" * 20_000 + b"e.",
        "objects of its pickle.*max_bytes",
        LIMIT,
    )
    yield "one long text", b"\x80\x04\x8d" + struct.pack("<Q", LIMIT // 4) + b"a" * (LIMIT // 4) + b".", "max_bytes", LIMIT
    yield (
        "copies of a list",
        b"](" + b"N" * 50_000 + b"eq\x05](" + b"cbuiltins\nset\nh\x05\x85R" * 400 + b"e.",
        "copied too often|objects of its pickle",
    )
    yield (
        "copies of a text",
        text("a" * 100_000) + b"q\x05](" + b"cbuiltins\nbytearray\nh\x05\x85R" * 300 + b"e.",
        "copied too often",
    )


BAD_TENSORS = {
    "beyond its storage": ((5,), (1,), 0), "two dimensions beyond": ((2, 2), (3, 2), 0), "an offset beyond": ((4,), (1,), 1),
    "a great offset": ((1,), (1,), 1 << 62), "a negative offset": ((4,), (1,), -1), "a negative size": ((-1,), (1,), 0),
    "two negative sizes": ((-2, -2), (1, 1), 0), "a negative stride": ((2,), (-1,), 3),
    "sizes whose product is 0 in 64 bits": ((1 << 32, 1 << 32), (1, 1), 0),
    "sizes times strides beyond 64 bits": ((1 << 62, 4), (1, 1 << 40), 0), "a stride of 8 EB": ((2,), ((1 << 63) - 1,), 0),
    "a size of 100 digits": ((10**100,), (0,), 0), "an offset of 100 digits": ((1,), (1,), 10**100),
    "a size of a million digits": ((1 << 3_000_000,), (0,), 0), "65 dimensions": ((1,) * 65, (1,) * 65, 0),
    "10,000 dimensions": ((1 << 62,) * 10_000, (0,) * 10_000, 0), "more strides than sizes": ((2,), (1, 1), 0),
    "fewer strides than sizes": ((2, 1), (1,), 0), "an empty one of endless width": ((1 << 62, 1 << 62, 0), (1, 1, 1), 0),
}  # fmt: skip


def tensors():
    words = "out of bounds|no integers of 64 bits|more than 64 dimensions|(shorter|longer) than argument|too big|maximum"
    for name, (size, stride, offset) in BAD_TENSORS.items():
        yield f"a tensor: {name}", tensor(size, stride, offset), words
    yield (
        "a tensor: a float as size",
        REBUILD + b"(" + LIST + b"K\x00G\x40\x00\x00\x00\x00\x00\x00\x00\x85K\x01\x85\x89NtR.",
        words,
    )
    yield "a tensor: a size for ever", REBUILD + b"(" + LIST + b"K\x00" + ENDLESS + b"K\x01\x85\x89NtR.", "no container"
    yield "a tensor: no storage", REBUILD + b"(NK\x00K\x04\x85K\x01\x85\x89NtR.", "without a storage"
    yield "a tensor: too few arguments", REBUILD + b"(" + LIST + b"tR.", "damaged near byte"
    yield (
        "a storage of no type",
        b"(" + text("storage") + b"X\x01\x00\x00\x00aX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01%stQ.",
        "whose type is a str",
    )
    yield (
        "a storage of a deep type",
        b"(" + text("storage") + DEEP + text("0") + text("cpu") + b"K\x04%stQ.",
        "whose type is a tuple",
    )
    yield (
        "a storage with a number as key",
        b"(" + text("storage") + b"ctorch\nFloatStorage\nK\x00X\x03\x00\x00\x00cpuK\x04%stQ.",
        "whose key is a int",
    )
    for name, count in {"of -1 elements": -1, "of 2**61": 1 << 61, "of 2**64": 1 << 64, "of 10**500": 10**500}.items():
        yield f"a storage {name}", storage(count=count, end=b"%s") + b".", "should hold|a storage of"
    yield "a storage that is no tuple", b"K\x01Q.", "where a file has a tuple"
    yield "a storage of two parts", b"K\x01K\x02\x86Q.", "where a file has a tuple"


def both_formats():
    for source in (pickles, tensors):
        for name, pickled, words, *limit in source():
            case(f".pt {name}", ".pt", pt(pickled.replace(b"%s", b"")), words, *limit)
            old = pickled.replace(b"%s", b"N").replace(LIST, LIST.removesuffix(b"tQ") + b"NtQ").replace(
                storage(), storage(end=b"N"))  # fmt: skip
            case(f"old {name}", ".pt", legacy(old), words, *limit)


def old_format():
    def old(name, words, *args, **settings):
        case(f"old {name}", ".pt", legacy(*args, **settings), words)

    whole = storage(end=b"N") + b"."
    old("another magic number", "Invalid magic number", b"N.", magic=MAGIC + 1)
    old("another protocol", "Invalid protocol version: 1002", b"N.", protocol=1002)
    old("a protocol of 5000 digits", "Invalid protocol version|damaged", b"N.", protocol=10**4999)
    for value in (None, [], {}, {"little_endian": 1}, "little"):
        old(f"byte order {value}", "does not say in which byte order", b"N.", about=value if value is not None else 0)
    old("storages that do not follow", "others than those that follow", whole, keys=())
    old("a storage that nothing names", "others than those that follow", b"N.")
    old("a storage twice", "others than those that follow", whole, keys=("0", "0"))
    old("storages by number", "whose key is a int", whole, keys=(0,))
    old("no list of storages", "others than those that follow", whole, keys={"0": 1})
    old("another length", "has another size", whole, end=struct.pack("<Q", 5) + DATA)
    old("a length of 16 EB", "has another size", whole, end=b"\xff" * 8 + DATA)
    old("a cut storage", "is cut off", whole, end=struct.pack("<Q", 4) + DATA[:-1])
    old("no storage", "has another size", whole, end=b"")
    old("no truth values", "truth values", storage(b"Bool", end=b"N") + b".", end=struct.pack("<Q", 4) + b"\x00\x01\x02\x03")
    for name, (start, length) in {"negative": (-1, 2), "beyond": (3, 2), "far": (1 << 62, 1 << 62)}.items():
        part = b"(" + text("1") + number(start) + number(length) + b"t"
        old(f"a part that is {name}", "a part of a storage", storage(end=part) + b".")
    old("a part of two values", "a tuple of 3 values", storage(end=b")") + b".")
    many = b"](" + b"".join(storage(key=str(i), count=1000, end=b"N") for i in range(1000)) + b"e."
    old("storages that claim the file many times", "has [0-9]* left", many, keys=tuple(map(str, range(1000))))
    sound = legacy(FLOATS.replace(LIST, LIST.removesuffix(b"tQ") + b"NtQ") + b".")
    for n in range(1, len(sound), 17):
        case(f"old cut off at {n}", ".pt", sound[:n], "damaged|cut off|another size")
    case("old empty", ".pt", b"", "Ran out of input")
    case("old text", ".pt", b"hello, world\n" * 100, "was not written by save")


# --------------------------------------------------------------------------------------------------------- .safetensors


def safetensors(header, data=DATA, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def named():
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}

    def bad(name, words, header, data=DATA, limit=None, **settings):
        case(f".safetensors {name}", ".safetensors", safetensors(header, data, **settings), words, limit)

    unknown, outside = "no known dtype, shape and data_offsets", "does not begin where another ends"
    another = "another number of bytes"
    for n in (17, 1 << 31, 1 << 40, (1 << 64) - 1):
        bad(f"header of {n} bytes", f"its header claims {n} bytes", b"{}", b"", length=n)
    bad("header of no length", "damaged", b"", b"", length=0)
    bad("header that is no JSON", "damaged", b"{'a': 1}", b"")
    bad("header that is no UTF-8", "damaged", b'{"\xff": 1}', b"")
    bad("header that is a list", "no object", [], b"")
    bad("header nested 50,000 deep", "damaged: RecursionError", b"[" * 50_000, b"")
    bad("header with a number of 5000 digits", "damaged: ValueError", b'{"a": ' + b"1" * 5000 + b"}", b"")
    bad("one name twice", "same name", b'{"a": %s, "a": %s}' % ((json.dumps(entry).encode(),) * 2))
    bad("one field twice", "same name", b'{"a": {"dtype": "F32", "dtype": "F64", "shape": [4], "data_offsets": [0, 16]}}')
    fields = [{"dtype": "F31"}, {"dtype": []}, {"shape": 4}, *({"data_offsets": v} for v in ([0], [0, 8, 9], {}))]
    for value in (3, None, [], "a", {}, *({**entry, **field} for field in fields)):
        bad(f"entry {value}", unknown, {"a": value})
    for shape in (
        [5],
        [3],
        [-4],
        [-2, -2],
        [4.0],
        ["4"],
        [True] * 4,
        [1 << 62, 4],
        [1 << 32, 1 << 32],
        [1] * 65,
        [4] * 65,
        "4444",
    ):
        bad(f"shape {shape}", another, {"a": {**entry, "shape": shape}})
    for offsets in ([16, 0], [-16, 0], [0, 1 << 63], [0, 1 << 70], [0.0, 16.0]):
        bad(f"offsets {offsets}", another, {"a": {**entry, "data_offsets": offsets}})
    bad("a tensor beyond the end", outside, {"a": {**entry, "shape": [1 << 38], "data_offsets": [0, 1 << 40]}})
    bad("a tensor that begins late", outside, {"a": {**entry, "shape": [3], "data_offsets": [4, 16]}})
    bad("two tensors on one place", outside, {"a": entry, "b": entry})
    bad("bytes that belong to none", "its tensors end at byte 16 of 20", {"a": entry}, DATA + b"abcd")
    bad("no truth values", "truth values", {"a": {"dtype": "BOOL", "shape": [16], "data_offsets": [0, 16]}})
    bad("a great header", "the header would take.*max_bytes", {str(i): 0 for i in range(50_000)}, limit=LIMIT)
    bad("a great tensor", "the tensor 'a' would take", {"a": {"dtype": "U8", "shape": [LIMIT], "data_offsets": [0, LIMIT]}},
        bytes(LIMIT), limit=LIMIT)  # fmt: skip
    case(".safetensors empty", ".safetensors", b"", "header|damaged")
    case(".safetensors of 7 bytes", ".safetensors", b"\x00" * 7, "header|damaged")


def arrays():
    def bad(name, data, words="no array of numbers"):
        case(f".npz {name}", ".npz", zipped(Record("a.npy", data)), words)

    other = "are not what its shape"

    def header(shape="(4,)", descr="'<f8'", order="False"):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"

    for shape in ("(5,)", "(3,)", "(1000000000000,)", f"({1 << 64},)", f"({1 << 32}, {1 << 32})", "(-4,)", "(-2, -2)", "()"):
        bad(f"shape {shape}", npy(header=header(shape)), other)
    for shape in ("4", "(4.0,)", "None", "('4',)", "[4]"):
        bad(f"shape {shape}", npy(header=header(shape)))
    for descr in ("'|O'", "'O'", "'<U8'", "'V8'", "'<M8[s]'", "[('a', '<f8')]", "[('a', 'O')]", "'f4,f4'", "'x'", "3",
                  "'<f16'", "'V9999999999'", "'(2,)<f8'", "{}", "['f8']"):  # fmt: skip
        bad(f"dtype {descr}", npy(header=header(descr=descr)), f"no array of numbers|{other}")
    bad("code as header", npy(header="__import__('os').system('true')"))
    bad("a call as shape", npy(header=header("(print(1),)")))
    bad("a header of 60,000 bytes", npy(header=header("(" + "1," * 30_000 + ")"), version=(1, 0)))
    bad("a header of 4 GB", npy(version=(2, 0), length=0xFFFFFFFF))
    bad("a header cut off", npy(length=60_000))
    bad("deep brackets", npy(header=header("(" * 4000 + ")" * 4000)))
    bad("another version", npy(version=(3, 0)))
    bad("no magic string", b"NUMPY" + npy())
    bad("nothing", b"")
    bad("65 dimensions", npy(header=header(f"({'1,' * 64}4)")), "damaged")
    bad("no truth values", npy(header=header("(4,)", "'|b1'"), data=b"\x00\x01\x02\x03"), "truth values")
    names = zipped(Record("a", npy()), Record("a.npy", npy()))
    case(".npz one name with and without suffix", ".npz", names, "same name")
    case(".npz text", ".npz", b"hello", "central directory")
    case(".npz empty", ".npz", b"", "central directory")
    case(".npz a plain .npy", ".npz", npy(), "central directory")


for make in (archives, records_of_pt, both_formats, old_format, named, arrays):
    make()
