"""save under bad conditions: short writes, full disks, killed and interrupted processes, two at once; and its cost."""

import io
import itertools
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import tapegrad as tg
from tapegrad.io import replacing

SUFFIXES = [".pt", ".npz", ".safetensors"]
posix = pytest.mark.skipif(os.name != "posix", reason="signals, devices and limits as POSIX has them")


def program(code, *args, **settings):
    """A process that runs a program with tapegrad."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import os, sys, time, tapegrad as tg\n{code}", *map(str, args)], **settings
    )


def whole(path):
    """The one number that a file of the tests below holds a thousand times."""
    values = set(tg.load(path)["a"].tolist())
    assert len(values) == 1
    return values.pop()


def save(path, number):
    tg.save({"a": tg.full((1000,), float(number))}, path)


class Short(io.RawIOBase):
    """An unbuffered file that takes at most some bytes at a time."""

    def __init__(self, *most):
        self.most, self.data = itertools.cycle(most), b""

    def writable(self):
        return True

    def write(self, data):
        count = next(self.most)
        if count is None:
            return None
        self.data += bytes(data[:count])
        return min(count, len(data))


@pytest.mark.parametrize("legacy", [False, True])
def test_files_that_take_a_part_at_a_time(legacy):
    value = {"a": tg.arange(1000.0)}
    file = Short(7, 1, 100)
    tg.save(value, file, _use_new_zipfile_serialization=not legacy)
    assert tg.load(io.BytesIO(file.data))["a"].tolist() == value["a"].tolist()


@pytest.mark.parametrize("most", [(100, None), (100, 0), (None,), (0,)])
def test_files_that_take_nothing_more(most):
    with pytest.raises(OSError, match=r"write\(\) of Short took (100|0) of [0-9]+ bytes, then returned (None|0)"):
        tg.save(tg.ones(1000), Short(*most))


@pytest.mark.parametrize("answer", [-1, 1 << 60, "7", 2.0])
def test_files_that_answer_nonsense(answer):
    class Odd:
        def write(self, data):
            return answer

    with pytest.raises(OSError, match=r"write\(\) of Odd took 0 of"):
        tg.save(tg.ones(2), Odd())


def test_files_that_do_not_count():
    class Silent:
        data = b""

        def write(self, data):
            self.data += bytes(data)

    file = Silent()
    tg.save(tg.ones(2), file)
    assert tg.load(io.BytesIO(file.data)).tolist() == [1, 1]


@posix
def test_a_pipe_that_is_full():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(reading, "rb"), pytest.raises(OSError, match="then returned None"), open(writing, "wb", buffering=0) as file:
        tg.save(tg.ones(1 << 18), file)


@posix
@pytest.mark.every(3)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_named_pipe(tmp_path, suffix):
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as reader:
        save(path, 3)
        data = reader.stdout.read()
    (tmp_path / f"file{suffix}").write_bytes(data)
    assert whole(tmp_path / f"file{suffix}") == 3
    writer = program("open(sys.argv[1], 'wb').write(open(sys.argv[2], 'rb').read())", path, tmp_path / f"file{suffix}")
    assert whole(path) == 3
    assert writer.wait() == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_device_that_is_full():
    with pytest.raises(OSError, match="No space left"):
        tg.save(tg.ones(3), "/dev/full")
    for buffering in (0, -1):
        with pytest.raises(OSError, match="No space left"), open("/dev/full", "wb", buffering=buffering) as file:
            tg.save(tg.ones(3), file)


@posix
@pytest.mark.every(3)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_disk_that_is_full(tmp_path, suffix):
    """By a limit of the process on the size of files, of which the write after it is an error."""
    path = tmp_path / f"m{suffix}"
    save(path, 1)
    code = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: tg.save({'a': tg.zeros(100_000)}, sys.argv[1])\n"
        "except OSError as e: sys.exit(3)"
    )
    assert program(code, path).wait() == 3
    assert whole(path) == 1 and os.listdir(tmp_path) == [path.name]


STOPPING = (
    "sync = os.fsync\n"
    "def stop(number):\n"
    "    print('written', flush=True)\n"
    "    sys.stdin.readline()\n"
    "    sync(number)\n"
    "os.fsync = stop\n"
    "tg.save({'a': tg.full((1000,), 2.0)}, sys.argv[1])\n"
)


def stopped(path):
    """A process that has written its file, but not put it into its place: it waits for a line."""
    process = program(STOPPING, path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"written\n"
    return process


def ended(process):
    process.stdin.close()
    process.stdout.close()
    return process.wait()


@posix
@pytest.mark.every(3)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_a_killed_process_leaves_is_removed_by_the_next_save(tmp_path, suffix):
    path, other = tmp_path / f"m{suffix}", tmp_path / f"m{suffix}.0123456789abcdef.part.pt"
    save(path, 1)
    other.write_bytes(b"of somebody else")
    process = stopped(path)
    process.kill()
    assert ended(process) == -signal.SIGKILL
    assert whole(path) == 1 and len(os.listdir(tmp_path)) == 3
    save(path, 3)
    assert whole(path) == 3 and sorted(os.listdir(tmp_path)) == sorted([path.name, other.name])


@posix
@pytest.mark.exhaustive
def test_processes_killed_at_any_moment(tmp_path):
    path, rng = tmp_path / "m.pt", random.Random(0)
    save(path, -1)
    seen = set()
    code = (
        "for i in range(10**6):\n"
        "    tg.save({'a': tg.full((100_000,), float(i))}, sys.argv[1])\n"
        "    if i == 0: print(flush=True)"
    )
    for _ in range(20):
        with program(code, path, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.random() * 0.1)
            process.kill()
        seen.add(whole(path))
    save(path, -2)
    assert whole(path) == -2 and os.listdir(tmp_path) == ["m.pt"] and len(seen) > 2


@posix
def test_two_processes_that_save_to_one_path(tmp_path):
    """Each is whole, and the one that ends last stays; an unfinished file in use is not removed."""
    path = tmp_path / "m.pt"
    process = stopped(path)
    save(path, 1)
    assert whole(path) == 1 and len(os.listdir(tmp_path)) == 2
    process.stdin.write(b"\n")
    assert ended(process) == 0
    assert whole(path) == 2 and os.listdir(tmp_path) == ["m.pt"]


@posix
@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", [".pt", ".npz"])
def test_processes_that_save_to_one_path_again_and_again(tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    save(path, 0)
    code = "for i in range(60): tg.save({'a': tg.full((1000,), float(sys.argv[2]))}, sys.argv[1])"
    processes = [program(code, path, n) for n in (1, 2)]
    seen = set()
    while any(p.poll() is None for p in processes):
        seen.add(whole(path))
    assert [p.returncode for p in processes] == [0, 0] and seen <= {0, 1, 2}
    assert whole(path) in (1, 2) and os.listdir(tmp_path) == [path.name]


def traced(act, visit, step="line"):
    """Run `act`, with `visit()` called at each line, or each instruction ("opcode"), of tapegrad's modules for files."""
    folder = os.path.dirname(replacing.__file__)

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(folder):
            return None
        frame.f_trace_opcodes = step == "opcode"
        if event == step:
            visit()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)


def steps(act, step="line"):
    count = itertools.count()
    traced(act, lambda: next(count), step)
    return next(count)


@pytest.mark.parametrize("step", ["line", pytest.param("opcode", marks=pytest.mark.exhaustive)])
def test_an_interrupt_anywhere(tmp_path, step):
    """The file is the old or the new one, whole, and the next save leaves nothing else."""
    path = tmp_path / "m.pt"
    save(path, 0)
    total = steps(lambda: save(path, 0), step)
    value, seen, interrupted = 0.0, set(), 0
    for n in [*range(0, total, max(7, total // 300)), *range(total - (30 if step == "line" else 200), total)]:
        countdown = iter(range(n))

        def visit(countdown=countdown):
            if next(countdown, None) is None:
                raise KeyboardInterrupt

        try:
            traced(lambda n=n: save(path, n + 1), visit, step)
        except KeyboardInterrupt:
            interrupted += 1
        found = whole(path)
        assert found in (value, n + 1)
        seen.add(found == n + 1)
        assert len(os.listdir(tmp_path)) <= 2
        value = found
    save(path, -1)
    assert whole(path) == -1 and os.listdir(tmp_path) == ["m.pt"] and interrupted > 50 and seen == {True, False}


@pytest.mark.parametrize(
    "make", [lambda n: [tg.ones(2) for _ in range(n)], lambda n: list(tg.ones(n, 2))], ids=["own", "views"]
)
def test_the_cost_is_linear_in_the_number_of_tensors(make):
    """By the lines that run, which do not depend on the machine: twice as many for twice as many tensors."""

    def cost(n):
        value = make(n)
        return steps(lambda: tg.save(value, io.BytesIO()))

    small, middle, large = cost(50), cost(100), cost(200)
    assert large - middle < 2.1 * (middle - small)


def test_sparse_tensors_among_others():
    """Their parts are arrays made for the occasion, which lie in no storage that was found before."""
    eye = tg.eye(3).to_sparse()
    value = [tg.arange(6).reshape(2, 3), eye, tg.tensor([7]), tg.zeros(2, 2).to_sparse()]
    for legacy in (False, True):
        file = io.BytesIO()
        tg.save(value, file, _use_new_zipfile_serialization=not legacy)
        file.seek(0)
        a, b, c, d = tg.load(file)
        assert a.tolist() == value[0].tolist() and c.tolist() == [7] and d.to_dense().tolist() == [[0, 0], [0, 0]]
        assert b.to_dense().tolist() == eye.to_dense().tolist() and b.indices().tolist() == [[0, 1, 2]] * 2
