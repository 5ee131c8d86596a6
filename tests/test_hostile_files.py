"""Files made to do harm: one clear error that names the file, no code run, no more memory than allowed, no hang."""

import contextlib
import io
import re
import sys
import time
import tracemalloc

import pytest
from hostile_files import CASES, LIST, pt, text
from mutated_files import FORBIDDEN, run, sources, summary

import tapegrad as tg
from tapegrad.io import limits

EVENTS = []
WATCHING = []


def watch(event, args):
    if WATCHING and event.startswith(FORBIDDEN):
        EVENTS.append((event, args))


sys.addaudithook(watch)


@contextlib.contextmanager
def nothing_runs():
    """Fails for what Python reports of programs, of code, of names looked up by pickle and of sockets meanwhile."""
    EVENTS.clear()
    WATCHING.append(True)
    try:
        yield
    finally:
        WATCHING.clear()
    assert not EVENTS


def refusal(path, max_bytes=None, **settings):
    """The error of load, and the most memory that was held meanwhile."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(tg.serialization.LoadError) as caught, nothing_runs():
            tg.load(path, max_bytes=max_bytes, **settings)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - start < 20
    return caught.value, peak


@pytest.mark.every(4)
@pytest.mark.parametrize("name", CASES)
def test_a_file_is_refused(name, tmp_path):
    case = CASES[name]
    path = tmp_path / f"hostile{case.suffix}"
    path.write_bytes(case.data)
    error, peak = refusal(path, case.max_bytes)
    assert re.search(case.words, str(error)), str(error)
    assert repr(str(path)) in str(error) and type(error) is tg.serialization.LoadError and len(str(error)) < 20_000
    budget = limits.Budget(io.BytesIO(case.data), case.max_bytes)
    assert peak < budget.limit + 100_000  # of the call itself: the error, its traceback


def test_there_are_many():
    assert len(CASES) >= 200 and {c.suffix for c in CASES.values()} == {".pt", ".npz", ".safetensors"}


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith(".pt") and CASES[n].max_bytes is None])
@pytest.mark.every(16)
def test_a_mapped_file_is_refused(name, tmp_path):
    if "checksum" in name or "another name" in name:
        pytest.skip("a record that is mapped is not read, so its checksum is not computed")
    path = tmp_path / "hostile.pt"
    path.write_bytes(CASES[name].data)
    error, _ = refusal(path, mmap=True)
    assert repr(str(path)) in str(error)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process's memory are read and set as on Linux")
def test_altered_files_load_or_are_refused(tmp_path):
    """`python -m tests.mutated_files` makes more of them."""
    results = run(1_000_000, 300, tmp_path)
    outcomes = {r[2] for r in results}
    assert len(results) == 300 and outcomes == {"loaded", "refused"}, summary(results)


def test_sound_files_load_within_max_bytes(tmp_path):
    """What is counted is at most 64 times a file of any kind, without what every file may have besides."""
    for suffix, data in sources():
        path = tmp_path / f"sound{suffix}"
        path.write_bytes(data)
        tg.load(path, max_bytes=limits.EXPANSION * len(data))


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".safetensors"])
def test_max_bytes_is_exact_for_large_tensors(suffix, tmp_path):
    path = tmp_path / f"m{suffix}"
    tg.save({"a": tg.zeros(1 << 20)}, path)
    assert tg.load(path, max_bytes=(4 << 20) + 20_000)["a"].shape == (1 << 20,)
    with pytest.raises(tg.serialization.LoadError, match="max_bytes=4194304 for all that a file of [0-9]* bytes holds"):
        tg.load(path, max_bytes=4 << 20)
    with pytest.raises(ValueError, match="max_bytes is a number of bytes"):
        tg.load(path, max_bytes=-1)
    if suffix == ".pt":
        assert tg.load(path, max_bytes=100_000, mmap=True)["a"].shape == (1 << 20,)


def test_a_stream_is_read_up_to_max_bytes():
    class Endless:
        def read(self, count):
            return bytes(count)

    with pytest.raises(tg.serialization.LoadError, match="more than max_bytes=5000000"):
        tg.load(Endless(), max_bytes=5_000_000)


def test_errors_of_reading_and_of_trusted_pickles_are_not_changed(tmp_path):
    class Broken(io.BytesIO):
        def read(self, *args):
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error") as caught:
        tg.load(Broken())
    assert type(caught.value) is OSError and caught.value.__notes__ == ["while tapegrad loaded a file of type Broken"]
    path = tmp_path / "m.pt"
    tg.save(Failing(), path)
    with pytest.raises(KeyError) as caught:
        tg.load(path, weights_only=False)
    assert caught.value.args == (105,) and repr(str(path)) in caught.value.__notes__[0]


def fail():
    raise KeyError(105)


class Failing:
    def __reduce__(self):
        return fail, ()


def test_a_state_in_a_file_replaces_nothing_of_the_engine(tmp_path):
    """Attributes come from files: those that tapegrad or a dict uses are left out."""
    pieces = (
        b"ccollections\nOrderedDict\n)R}(",
        text("items"),
        b"K\x01",
        text("_metadata"),
        b"}",
        text("note"),
        b"K\x02ub.",
    )
    state = tg.load(io.BytesIO(pt(b"".join(pieces))))
    assert list(state.items()) == [] and state.note == 2 and state._metadata == {}
    names = ("_hooks", "_node_hooks", "_post_hooks", "_retains", "grad", "shape", "backward")
    attributes = b"}(" + b"".join(text(name) + b"cbuiltins\nset\n" for name in names) + text("note") + b"K\x02u"
    call = b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n("
    t = tg.load(io.BytesIO(pt(call + LIST + b"K\x00K\x04\x85K\x01\x85\x88Nt" + attributes + b"tR.")))
    assert t.__dict__ == {"note": 2} and t.shape == (4,)
    (t * t).sum().backward()
    assert t.grad.tolist() == [0, 2, 4, 6]


def test_hostile_values_do_not_get_into_modules(tmp_path):
    """A sound file may hold anything: load_state_dict raises and leaves the parameters as they were."""
    net = tg.nn.Linear(2, 1)
    before = net.weight.tolist()
    endless = tg.zeros(1).expand(1 << 40)
    for state in ({"weight": endless, "bias": net.bias}, {"weight": 3, "bias": net.bias}, {3: endless}, {"weight": []}):
        path = tmp_path / "m.pt"
        tg.save(state, path)
        with pytest.raises((RuntimeError, TypeError, AttributeError)):
            net.load_state_dict(tg.load(path))
        assert net.weight.tolist() == before
