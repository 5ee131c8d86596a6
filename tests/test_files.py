"""Files: what is written is read back, sharing memory; no code in a file is run; damaged files raise errors."""

import collections
import io
import os
import pickle
import random
import struct
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.io.legacy import LEGACY_MAGIC
from tapegrad.io.rebuild import TORCH, Call
from tapegrad.io.writer import Name, Rebuilt, Stored, Writer

CHECKPOINT = Path(__file__).with_name("pytorch_checkpoint.pt")  # written by PyTorch 2.13
REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError)


def round_trip(value, **settings):
    file = io.BytesIO()
    tg.save(value, file, **settings)
    file.seek(0)
    return tg.load(file)


def same(a, b):
    assert type(a) is type(b) and a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


# --------------------------------------------------------------------------------------------------------- right values


def test_a_checkpoint_of_pytorch():
    c = tg.load(CHECKPOINT)
    assert list(c) == ["model", "optimizer", "epoch", "shared", "half"] and c["epoch"] == 3
    weight = [[-0.105294, 0.2793229], [-0.6819807, -0.6203874], [-0.3723452, 0.0896159]]
    net = nn.Linear(2, 3)
    net.load_state_dict(c["model"])
    np.testing.assert_allclose(net.weight.detach().numpy(), weight, rtol=1e-5)
    optimizer = tg.optim.Adam(net.parameters(), lr=1.0)
    optimizer.load_state_dict(c["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.1 and optimizer.state[net.bias]["step"].item() == 1.0
    np.testing.assert_allclose(optimizer.state[net.weight]["exp_avg"].numpy(), 0.1, rtol=1e-6)
    w, row, turned = c["shared"]
    row[:] = 9.0
    assert w.tolist() == [[0, 1, 2], [9, 9, 9]] and turned.tolist() == [[0, 9], [1, 9], [2, 9]]
    assert c["half"].dtype is tg.float16


DTYPES = [
    tg.float64, tg.float32, tg.float16, tg.int64, tg.int32, tg.int16, tg.int8, tg.uint8, tg.bool, tg.complex64,
    tg.complex128,
]  # fmt: skip


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (2, 0, 3)])
def test_every_dtype_and_shape(dtype, shape, legacy):
    t = tg.randn(*shape).to(dtype)
    same(round_trip(t, _use_new_zipfile_serialization=not legacy), t)


def test_containers_and_other_values():
    value = {
        "list": [1, 2.5, None, True, "text", b"bytes", 1j, 10**40], "tuple": (tg.Size([2, 3]), tg.float32, tg.device("cpu")),
        "set": {1, 2}, 3: collections.OrderedDict(a=1), "counter": collections.Counter("aab"),
    }  # fmt: skip
    again = round_trip(value)
    assert again == value and type(again["tuple"][0]) is tg.Size and type(again["counter"]) is collections.Counter


def test_parameters_flags_and_attributes():
    p = nn.Parameter(tg.ones(2))
    p.lr = 0.5
    q = nn.Parameter(tg.zeros(1), requires_grad=False)
    t = tg.ones(3, requires_grad=True)
    t.note = "kept"
    p2, q2, t2 = round_trip((p, q, t))
    same(p2, p), same(q2, q), same(t2, t)
    assert p2.lr == 0.5 and t2.note == "kept" and t2.grad is None and t2.is_leaf


def test_the_same_tensor_stays_one():
    t = tg.ones(2)
    a, b = round_trip([t, t])
    assert a is b


def test_shared_memory_stays_shared_and_no_more_of_it_is_written():
    big = tg.arange(1_000_000.0)
    row, part, block = big[10:20], big[15:30], big[:10].reshape(2, 5).t()
    file = io.BytesIO()
    tg.save([row, part, block, block[1], big[::2][:3]], file)
    assert len(file.getvalue()) < 10_000
    file.seek(0)
    row2, part2, block2, line, sparse = tg.load(file)
    row2[5] = -1.0
    assert part2[0].item() == -1.0
    line[0] = 7.0
    assert block2[1, 0].item() == 7.0 and block2.stride() == (1, 5) and sparse[0].item() == 0.0


def test_a_column_is_written_without_the_rest():
    file = io.BytesIO()
    tg.save(tg.zeros(1000, 1000)[:, 3], file)
    assert len(file.getvalue()) < 8_000


def test_expanded_tensors_stay_small():
    file = io.BytesIO()
    tg.save(tg.ones(1).expand(1_000_000), file)
    assert len(file.getvalue()) < 5_000
    file.seek(0)
    assert tg.load(file).sum().item() == 1_000_000


def test_tied_parameters():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    state = round_trip(net.state_dict())
    state["0.weight"][0, 0] = 5.0
    assert state["1.weight"][0, 0].item() == 5.0
    assert state._metadata == net.state_dict()._metadata


def test_loaded_leaves_are_trained_and_differentiated():
    w = round_trip(tg.tensor([1.0, 2.0], requires_grad=True))
    (w**3).sum().backward(create_graph=True)
    (w.grad.sum()).backward()
    np.testing.assert_allclose(w.grad.detach().numpy(), [3 + 6, 12 + 12])


def test_views_within_transforms_and_computed_tensors():
    x = tg.ones(3, requires_grad=True)
    y = x * 2
    same(round_trip(y), y.detach().requires_grad_())


@pytest.mark.parametrize("mapped", [False, True])
def test_paths(tmp_path, mapped):
    path = tmp_path / "model.pt"
    tg.save({"w": tg.arange(6.0)}, path)
    with zipfile.ZipFile(path) as z:
        assert "model/data.pkl" in z.namelist() and z.read("model/version") == b"3\n"
        info = z.getinfo("model/data/0")
    start = info.header_offset
    with open(path, "rb") as f:
        f.seek(start + 26)
        name, extra = struct.unpack("<HH", f.read(4))
    assert (start + 30 + name + extra) % 64 == 0  # PyTorch maps aligned storages
    loaded = tg.load(str(path), map_location="cpu", mmap=mapped)
    assert loaded["w"].tolist() == [0, 1, 2, 3, 4, 5]
    loaded["w"][0] = 3.0
    assert tg.load(path)["w"][0].item() == 0.0


def test_whole_modules_and_optimizers():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.BatchNorm1d(3))
    optimizer = tg.optim.Adam(net.parameters())
    net(tg.randn(4, 2)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    tg.save({"net": net, "state": optimizer.state_dict()}, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="tapegrad.nn.linear.Linear"):
        tg.load(file)
    file.seek(0)
    again = tg.load(file, weights_only=False)["net"].eval()
    x = tg.randn(4, 2)
    np.testing.assert_array_equal(again(x).detach().numpy(), net.eval()(x).detach().numpy())


def test_environment_variables_of_load(monkeypatch):
    file = io.BytesIO()
    tg.save({"rows": np.arange(3)}, file)

    def load(**options):
        file.seek(0)
        return tg.load(file, **options)["rows"].tolist()

    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert load() == [0, 1, 2]
    with pytest.raises(pickle.UnpicklingError):
        load(weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        load()
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        load(weights_only=False)


class Point:
    def __init__(self, x):
        self.x = x


def test_allowed_classes():
    with pytest.raises(pickle.UnpicklingError, match="Point"):
        round_trip([Point(tg.ones(1))])
    with tg.serialization.safe_globals([Point]):
        assert tg.serialization.get_safe_globals() == [Point]
        assert round_trip([Point(tg.ones(1))])[0].x.item() == 1.0
    assert tg.serialization.get_safe_globals() == []
    tg.serialization.add_safe_globals([(Point, f"{__name__}.Point")])
    try:
        assert round_trip(Point(3)).x == 3
    finally:
        tg.serialization.clear_safe_globals()


def test_names_of_what_is_refused(tmp_path):
    names = [f"{__name__}.Point", "tapegrad.nn.linear.Linear"]
    for form in (True, False):
        path = tmp_path / f"{form}.pt"
        tg.save([Point(tg.ones(1)), nn.Linear(2, 1)], path, _use_new_zipfile_serialization=form)
        assert tg.serialization.get_unsafe_globals_in_checkpoint(path) == names
        with tg.serialization.safe_globals([Point]), open(path, "rb") as file:
            assert tg.serialization.get_unsafe_globals_in_checkpoint(file) == names[1:]
    tg.save(nn.Linear(2, 1).state_dict(), path)
    assert tg.serialization.get_unsafe_globals_in_checkpoint(path) == []


def test_numpy_files(tmp_path):
    state = nn.Linear(3, 2).state_dict()
    tg.save(state, tmp_path / "w.npz")
    with np.load(tmp_path / "w.npz") as arrays:
        assert sorted(arrays) == ["bias", "weight"]
    again = tg.load(tmp_path / "w.npz")
    same(again["weight"], state["weight"])
    np.savez(tmp_path / "bad.npz", a=np.array([print], dtype=object))
    with pytest.raises(RuntimeError, match="no array of numbers"):
        tg.load(tmp_path / "bad.npz")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_formats_of_named_tensors_refuse_other_values(tmp_path, suffix):
    for value in (tg.ones(2), {"a": 3}, {1: tg.ones(1)}):
        with pytest.raises(TypeError, match="dict of names and tensors"):
            tg.save(value, tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


def test_safetensors_without_the_package(tmp_path):
    path = tmp_path / "w.safetensors"
    state = {f"{d}/é": tg.arange(3).to(d) for d in DTYPES if d is not tg.complex128}
    tg.save({**state, "empty": tg.zeros(0, 3), "one": tg.tensor(2.0)}, path)
    again = tg.load(path)
    for name, t in state.items():
        same(again[name], t)
    assert again["empty"].shape == (0, 3) and again["one"].item() == 2.0
    with pytest.raises(TypeError, match="no complex128"):
        tg.save({"a": tg.ones(1, dtype=tg.complex128)}, path)


def test_safetensors_are_those_of_the_package(tmp_path):
    package = pytest.importorskip("safetensors.numpy")
    state = {"z": tg.arange(6.0).reshape(2, 3), "a.b": tg.tensor([1, 2]), "half": tg.ones(3).half(), "f": tg.tensor(True)}
    tg.save(state, tmp_path / "w.safetensors")
    assert (tmp_path / "w.safetensors").read_bytes() == package.save({k: t.numpy() for k, t in state.items()})


def test_names_in_numpy_files_stay_in_their_folder(tmp_path):
    for name in ("/a", "a/../../b", ".."):
        with pytest.raises(ValueError, match="would lie outside of"):
            tg.save({name: tg.ones(1)}, tmp_path / "w.npz")
    np.savez(tmp_path / "w.npz", **{"a/b": np.arange(3, dtype=">f4"), "columns": np.asfortranarray(np.ones((2, 3)))})
    again = tg.load(tmp_path / "w.npz")
    assert again["a/b"].tolist() == [0, 1, 2] and again["a/b"].dtype is tg.float32 and again["columns"].stride() == (1, 2)


def test_safetensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    state = {"a.b": tg.arange(6.0).reshape(2, 3).t(), "n": tg.tensor([1, 2]), "z": tg.tensor(True)}
    tg.save(state, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(numpy.load_file(tmp_path / "w.safetensors")["a.b"], state["a.b"].numpy())
    again = tg.load(tmp_path / "w.safetensors")
    for name, t in state.items():
        same(again[name], t)
    again["n"][0] = 5
    (tmp_path / "w.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    with pytest.raises(RuntimeError, match="its header claims 16 bytes in a file of 10 bytes"):
        tg.load(tmp_path / "w.safetensors")


# ------------------------------------------------------------------------------------------------- what is left in place


class Unpicklable:
    def __reduce__(self):
        raise ValueError("no")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "m.pt"
    tg.save(tg.ones(2), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="no"):
        tg.save([tg.ones(3), Unpicklable()], path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.pt"]
    file = io.BytesIO()
    with pytest.raises(ValueError, match="no"):
        tg.save([tg.ones(3), Unpicklable()], file)
    assert file.getvalue() == b""


def test_a_process_that_dies_while_saving_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.pt"
    tg.save(tg.ones(2), path)
    code = (
        "import os, zipfile, tapegrad as tg\n"
        "usual = zipfile.ZipFile.writestr\n"
        "def die(self, info, data):\n"
        "    usual(self, info, data)\n"
        "    if 'data/0' in info.filename: os._exit(9)\n"
        "zipfile.ZipFile.writestr = die\n"
        f"tg.save(tg.zeros(2), {str(path)!r})\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    assert tg.load(path).tolist() == [1.0, 1.0]


def test_threads_that_save_to_one_path(tmp_path):
    failures = []

    def work(n):
        try:
            for _ in range(20):
                tg.save({"a": tg.full((100,), float(n)), "n": n}, tmp_path / "m.pt")
                value = tg.load(tmp_path / "m.pt")
                assert value["a"].tolist() == [value["n"]] * 100
        except Exception as e:
            failures.append(e)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures and os.listdir(tmp_path) == ["m.pt"]


@pytest.mark.skipif(os.name != "posix", reason="files are locked on POSIX systems")
def test_a_new_file_that_another_save_takes_for_a_leftover(tmp_path, monkeypatch):
    """It has locked the file before its maker could, and removes it then."""
    import fcntl

    from tapegrad.io import replacing

    lock, removers = replacing._lock, []

    def remove(file, name):
        time.sleep(0.05)
        os.unlink(name)
        file.close()

    def locked_by_another(file, *args, **kwargs):
        if not removers:
            other = open(file.name, "rb+")  # noqa: SIM115 - its remover closes it
            fcntl.flock(other, fcntl.LOCK_EX)
            removers.append(threading.Thread(target=remove, args=(other, file.name)))
            removers[0].start()
        return lock(file, *args, **kwargs)

    monkeypatch.setattr(replacing, "_lock", locked_by_another)
    with replacing.replacing(str(tmp_path / "m.pt")):
        removers[0].join()
    assert os.listdir(tmp_path) == ["m.pt"]


def test_links_and_modes_survive(tmp_path):
    target, link = tmp_path / "real.pt", tmp_path / "link.pt"
    tg.save(tg.ones(1), target)
    target.chmod(0o640)
    link.symlink_to(target)
    tg.save(tg.zeros(1), link)
    assert link.is_symlink() and tg.load(target).item() == 0.0 and target.stat().st_mode & 0o777 == 0o640


def test_missing_folders_files_and_methods(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        tg.save(tg.ones(1), tmp_path / "no" / "m.pt")
    with pytest.raises(FileNotFoundError):
        tg.load(tmp_path / "no.pt")
    with pytest.raises(AttributeError, match="'read' attribute"):
        tg.load(3)
    with pytest.raises(ValueError, match="protocol 0"):
        tg.save(tg.ones(1), tmp_path / "m.pt", pickle_protocol=0)
    with pytest.raises(AttributeError, match="'write' attribute"):
        tg.save(tg.ones(1), 3)
    with pytest.raises(EOFError, match="Ran out of input"):
        tg.load(io.BytesIO())
    with pytest.raises(RuntimeError, match="cuda|CUDA"):
        tg.load(CHECKPOINT, map_location="cuda")


# ----------------------------------------------------------------------------------------------------------- bad files


def archive(pickled, records=(), compression=zipfile.ZIP_STORED, **extra):
    """A file in memory with this pickle and these records."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as z:
        for name, data in {"version": b"3\n", "data.pkl": pickled, **dict(records), **extra}.items():
            z.writestr(f"m/{name}", data)
    file.seek(0)
    return file


RUN = []


def run(*args):
    RUN.append(args)


class Attack:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


EVIL = {
    "eval": Attack(eval, "RUN.append(1)"),
    "system": Attack(os.system, "true"),
    "own function": Attack(run, 1),
    "nested": {"state": [collections.OrderedDict(a=Attack(run, 2))]},
    "getattr": Attack(getattr, "a", "join"),
    "codec": Attack(__import__("_codecs").encode, "text", "rot13"),
}  # fmt: skip


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("name", EVIL)
def test_nothing_is_run(name, protocol):
    for file in (archive(pickle.dumps(EVIL[name], protocol)), io.BytesIO(pickle.dumps(EVIL[name], protocol))):
        with pytest.raises(REFUSALS):
            tg.load(file)
    assert not RUN


HAND_WRITTEN = {
    "a class's state": b"ctorch\nTensor\n}X\x01\x00\x00\x00aK\x01sb.",
    "a function's defaults": b"ctorch._utils\n_rebuild_tensor_v2\nN}X\x0c\x00\x00\x00__defaults__)s\x86b.",
    "state of the known functions": b"ccollections\nOrderedDict\n}X\x09\x00\x00\x00_functionK\x01sb.",
    "items of a class": b"ctorch\nTensor\nK\x01K\x02s.",
    "appending to a set": b"cbuiltins\nset\n)RK\x01a.",
    "an extension": b"\x82\x01.",
    "an instance": b"(cposix\nsystem\nX\x01\x00\x00\x00ao.",
    "an old instance": b"(X\x01\x00\x00\x00aiposix\nsystem\n.",
    "a tensor called": b"ctorch\nTensor\n)R.",
    "a dtype called": b"ctorch\nfloat32\n)R.",
    "new object": b"\x80\x02ctorch\nTensor\n)\x81.",
    "a million-byte claim": b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "a long string claim": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fab.",
    "no stack": b"R.",
    "a storage of no type": b"(X\x07\x00\x00\x00storageX\x01\x00\x00\x00aX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ.",
    "bytearray": b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
}


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_hand_written_pickles(name):
    calls = [v for v in TORCH.values() if isinstance(v, Call)]
    before = [(c._function, getattr(c._function, "__defaults__", None)) for c in calls]
    with pytest.raises(REFUSALS):
        tg.load(archive(HAND_WRITTEN[name], {"data/0": b"1234"}))
    assert before == [(c._function, getattr(c._function, "__defaults__", None)) for c in calls]


DEEP = b")" + b"\x85" * 200_000  # a tuple in a tuple in ..
BROAD = b")" + b"q\x01h\x01\x86" * 60  # of two times the same tuple each
LONG = b"](" + b"N" * 100_000 + b"eq\x05"
KEYED = {
    "item": b"\x80\x02}%sK\x01s.", "items": b"\x80\x02}(%sK\x01u.", "dict": b"\x80\x02(%sK\x01d.",
    "frozenset": b"\x80\x04(%s\x91.", "set": b"\x80\x04\x8f(%s\x90.", "set called": b"cbuiltins\nset\n](%se\x85R.",
    "frozenset called": b"cbuiltins\nfrozenset\n](%se\x85R.", "counter": b"ccollections\nCounter\n](%se\x85R.",
    "ordered": b"ccollections\nOrderedDict\n](%sK\x01\x86e\x85R.",
}  # fmt: skip


@pytest.mark.every(3)
@pytest.mark.parametrize("value", [DEEP, pytest.param(BROAD, marks=pytest.mark.exhaustive)], ids=["deep", "broad"])
@pytest.mark.parametrize("name", KEYED)
def test_keys_whose_hash_would_never_end(name, value):
    with pytest.raises(pickle.UnpicklingError, match="too many tuples within each other"):
        tg.load(archive(KEYED[name] % value))
    kept = b")K\x01\x85K\x02\x86"  # ((1,), 2) on an empty tuple
    if name != "ordered":
        tg.load(archive(KEYED[name] % kept[1:]))


def legacy(pickled, end=b""):
    """A file of the old format in memory."""
    about = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    head = b"".join(pickle.dumps(v, 2) for v in (LEGACY_MAGIC, 1001, about))
    return io.BytesIO(head + pickled + end)


STORED = b"(X\x07\x00\x00\x00storage%s%sX\x03\x00\x00\x00cpuK\x04%stQ."
FLOATS, ZERO = b"ctorch\nFloatStorage\n", b"X\x01\x00\x00\x000"


@pytest.mark.exhaustive
@pytest.mark.parametrize("value", [DEEP, BROAD], ids=["deep", "broad"])
def test_errors_do_not_print_what_never_ends(value):
    for kind, key in ((value, ZERO), (FLOATS, value)):
        for file in (archive(STORED % (kind, key, b""), {"data/0": DATA}), legacy(STORED % (kind, key, b"N"))):
            with pytest.raises(pickle.UnpicklingError, match="a storage whose (type|key) is a tuple"):
                tg.load(file)
    for file in (archive(b"c_codecs\nencode\nX\x01\x00\x00\x00a%s\x86R." % value), legacy(b"N.", b"](%se." % value)):
        with pytest.raises(pickle.UnpicklingError, match="another encoding|whose key is a tuple"):
            tg.load(file)
    magic = pickle.dumps(LEGACY_MAGIC, 2)
    with pytest.raises(RuntimeError, match="Invalid protocol version: tuple"):
        tg.load(io.BytesIO(magic + value + b"."))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["builtins\nset", "builtins\nfrozenset", "collections\nCounter", "builtins\nset"])
def test_values_copied_again_and_again(name):
    call = b"c%s\nh\x05\x85R" % name.encode()
    with pytest.raises(pickle.UnpicklingError, match="copied too often|the objects of its pickle .* max_bytes"):
        tg.load(archive(LONG + b"0](" + call * 2000 + b"e."))
    assert len(tg.load(archive(LONG + b"0](" + call * 3 + b"e."))) == 3


def test_claims_of_the_old_format_allocate_nothing():
    for claim in (b"\x8e", b"\x8d", b"\x95"):
        with pytest.raises(pickle.UnpicklingError, match="cut off"):
            tg.load(legacy(b"\x80\x04" + claim + struct.pack("<Q", 1 << 50) + b"abc."))


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("content", [b"garbage garbage garbage", b"hello", b"S\n.", b"F1.x\n."])
def test_a_file_of_another_kind(content, weights_only):
    with pytest.raises(pickle.UnpicklingError, match="The file was not written by save, or its beginning is damaged"):
        tg.load(io.BytesIO(content), weights_only=weights_only)


def test_an_empty_file_that_is_to_be_mapped(tmp_path):
    (tmp_path / "m.pt").touch()
    with pytest.raises(EOFError, match="Ran out of input"):
        tg.load(tmp_path / "m.pt", mmap=True)


def test_all_unknown_globals_are_named():
    value = {"a": Attack(run), "b": [Point(1)], "c": {"d": Attack(os.getcwd)}}
    with pytest.raises(pickle.UnpicklingError) as caught:
        tg.load(archive(pickle.dumps(value, 2)))
    for name in ("test_files.run", "test_files.Point", "posix.getcwd"):
        assert name in str(caught.value)
    assert str(caught.value).startswith("Weights only load failed.")
    assert "allow them by tapegrad.serialization.add_safe_globals([...])" in str(caught.value)


def tensor_pickle(size, stride, offset=0, count=4, kind="FloatStorage"):
    """The pickle of one tensor on the storage data/0."""
    rebuild = Name("torch._utils", "_rebuild_tensor_v2")
    stored = Stored(Name("torch", kind), 0, count)
    file = io.BytesIO()
    call = Rebuilt(rebuild, (stored, offset, size, stride, False, collections.OrderedDict()))
    Writer(file, 2, None).dump(call)
    return file.getvalue()


DATA = np.arange(4, dtype="<f4").tobytes()


def test_tensors_within_a_storage():
    t = tg.load(archive(tensor_pickle((2, 2), (1, 2)), {"data/0": DATA}))
    assert t.tolist() == [[0, 2], [1, 3]]
    t = tg.load(archive(tensor_pickle((3, 2), (1, 1)), {"data/0": DATA}))
    assert t.tolist() == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    "size, stride, offset",
    [((5,), (1,), 0), ((2, 2), (3, 2), 0), ((4,), (1,), 1), ((4,), (1,), -1), ((-1,), (1,), 0), ((2,), (-1,), 3),
     ((1 << 62,) * 100_000, (0,) * 100_000, 0), ((1 << 3_000_000,), (0,), 0), ((1,) * 65, (1,) * 65, 0),
     ((1 << 62, 4), (1, 1 << 40), 0), ((2,), (1, 1), 0), ((2.0,), (1,), 0), ((2,), (1,), None)],
)  # fmt: skip
def test_tensors_outside_of_their_storage(size, stride, offset):
    with pytest.raises(REFUSALS):
        tg.load(archive(tensor_pickle(size, stride, offset), {"data/0": DATA}))


def test_a_storage_shorter_than_said():
    with pytest.raises(RuntimeError, match="should hold 1000000"):
        tg.load(archive(tensor_pickle((4,), (1,), count=1_000_000), {"data/0": DATA}))
    with pytest.raises(RuntimeError, match="failed locating file data/0"):
        tg.load(archive(tensor_pickle((4,), (1,))))


def test_byte_orders():
    swapped = np.arange(4, dtype=">f4").tobytes()
    assert tg.load(archive(tensor_pickle((4,), (1,)), {"data/0": swapped, "byteorder": b"big"})).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="byte order"):
        tg.load(archive(tensor_pickle((4,), (1,)), {"data/0": swapped, "byteorder": b"middle"}))


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_protocols(protocol):
    file = io.BytesIO()
    tg.save({"a": tg.ones(2), "b": ("x", b"y", {1}, 2**70)}, file, pickle_protocol=protocol)
    file.seek(0)
    value = tg.load(file)
    assert value["a"].tolist() == [1, 1] and value["b"] == ("x", b"y", {1}, 2**70)


def test_newer_versions_scripts_and_names():
    with pytest.raises(RuntimeError, match="version 11, but the maximum supported version for reading is 10"):
        tg.load(archive(b"N.", version=b"11\n"))
    with pytest.raises(RuntimeError, match="TorchScript"):
        tg.load(archive(b"N.", {"constants.pkl": b""}))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("m/data.pkl", b"N.")
        z.writestr("m/../../evil", b"x")
    file.seek(0)
    with pytest.raises(RuntimeError, match="outside of the archive"):
        tg.load(file)


def test_zip_bombs_are_refused_and_compressed_files_read():
    with pytest.raises(RuntimeError, match="zip bomb"):
        tg.load(archive(tensor_pickle((4,), (1,)), {"data/0": bytes(100_000_000)}, zipfile.ZIP_DEFLATED))
    t = tg.load(archive(tensor_pickle((4,), (1,)), {"data/0": DATA}, zipfile.ZIP_DEFLATED))
    assert t.tolist() == [0, 1, 2, 3]


def test_overlapping_records_are_no_bomb_either():
    file = archive(tensor_pickle((4,), (1,)), {"data/0": DATA})
    data = bytearray(file.getvalue())
    place = data.rindex(b"m/data/0") - 46
    struct.pack_into("<II", data, place + 20, 3_000_000_000, 3_000_000_000)
    with pytest.raises(RuntimeError, match="overlaps another one, or lies outside of the file"):
        tg.load(io.BytesIO(bytes(data)))


def written(kind):
    if kind == "pytorch":
        return CHECKPOINT.read_bytes()
    file = io.BytesIO()
    value = {
        "a": tg.arange(12.0).reshape(3, 4),
        "b": [nn.Parameter(tg.ones(2)), 3, "x"],
        "c": collections.OrderedDict(d=1.5),
    }
    tg.save(value, file, _use_new_zipfile_serialization=kind == "zip")
    return file.getvalue()


def attempt(data):
    try:
        tg.load(io.BytesIO(data))
    except REFUSALS:
        return 1
    return 0


@pytest.mark.parametrize("kind", ["zip", "legacy", "pytorch"])
def test_truncated_files(kind):
    data = written(kind)
    for n in range(0, len(data), 7 if kind == "legacy" else 41):
        assert attempt(data[:n]) == 1


@pytest.mark.parametrize("kind", ["zip", "legacy", "pytorch"])
def test_altered_files(kind):
    """An error or a value, never a crash, a hang or another kind of error; RUN stays empty."""
    data, rng = written(kind), random.Random(3)
    refused = 0
    for _ in range(400):
        bad = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        refused += attempt(bytes(bad))
    assert refused > 40


def test_altered_pickles_in_sound_archives():
    """Zip checksums do not protect against one who writes them: the pickle itself is altered here."""
    source = zipfile.ZipFile(io.BytesIO(written("zip")))
    records = {n.partition("/")[2]: source.read(n) for n in source.namelist()}
    pickled, rng, refused = records.pop("data.pkl"), random.Random(4), 0
    for _ in range(1500):
        bad = bytearray(pickled)
        for _ in range(rng.choice((1, 2, 4))):
            bad[rng.randrange(len(bad))] = rng.choice((*pickled, rng.randrange(256)))
        refused += attempt(archive(bytes(bad), records).getvalue())
    assert refused > 500 and not RUN
