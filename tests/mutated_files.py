"""Sound files of every format, altered at random: loading one gives a value or LoadError, in bounded time and memory.

`python -m tests.mutated_files --count 20000 [--first SEED]` makes, from seeds, that many files and loads each in a process
whose memory is limited; a file that takes longer than SECONDS, more memory than its `max_bytes`, ends the process, runs code
or gives another error is a fault, which is printed with its seed. `--only SEED` loads one file here and shows its error.
"""

import argparse
import codecs
import collections
import functools
import io
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np

import tapegrad as tg
from tapegrad import nn
from tapegrad.io import LoadError, limits

CHECKPOINT = Path(__file__).with_name("pytorch_checkpoint.pt")  # written by PyTorch 2.13
SECONDS = 10  # for a file of a few kilobytes; sound ones take milliseconds
ROOM = 1 << 30  # bytes of address space beyond those of the process at its start
SLACK = 200_000  # bytes of a call's own: frames, an error and its traceback
EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
EVENTS, WATCHING = [], []  # of Python's audit hook
FORBIDDEN = ("os.", "subprocess.", "exec", "pickle.find_class", "socket.", "shutil.", "ctypes.dlopen")


def saved(value, suffix=".pt", **settings):
    """The bytes of a file that holds a value."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sound{suffix}"
        tg.save(value, path, **settings)
        return path.read_bytes()


@functools.cache
def sources():
    """Sound files: (suffix, bytes)."""
    tg.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    optimizer = tg.optim.Adam(net.parameters())
    net(tg.randn(4, 2)).sum().backward()
    optimizer.step()
    weight = tg.arange(12.0).reshape(3, 4)
    values = {
        "shared": [weight, weight.t(), weight[1:], tg.ones(1).expand(5)],
        "other": (1.5, 1 << 70, "text", b"bytes", {1, (2, 3)}, 1j, tg.Size([2]), tg.float16, tg.device("cpu"), bytearray(2)),
        "sparse": tg.eye(3).to_sparse(), "flags": tg.tensor([True, False]), "ordered": collections.OrderedDict(a=1),
        "counter": collections.Counter("aab"), "parameter": nn.Parameter(tg.ones(2)),
    }  # fmt: skip
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), **values}
    named = {**net.state_dict(), "flags": tg.tensor([True, False]), "numbers": tg.arange(6).reshape(2, 3)}
    squeezed = io.BytesIO()
    np.savez_compressed(squeezed, **{k: v.detach().numpy() for k, v in named.items()})
    made = [(".pt", saved(state, pickle_protocol=p)) for p in (1, 2, 4, 5)]
    made += [(".pt", saved(state, pickle_protocol=p, _use_new_zipfile_serialization=False)) for p in (2, 4)]
    made += [(".pt", CHECKPOINT.read_bytes()), (".pt", rewritten(made[1][1], {}, zipfile.ZIP_DEFLATED))]
    return [
        *made,
        (".npz", saved(named, ".npz")),
        (".npz", squeezed.getvalue()),
        (".safetensors", saved(named, ".safetensors")),
    ]


def rewritten(data, changes, method=zipfile.ZIP_STORED):
    """An archive with some records changed and right checksums: these are no protection against one who writes them."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", method) as new:
        for info in old.infolist():
            new.writestr(info.filename, changes.get(info.filename, old.read(info)))
    return file.getvalue()


def altered(data, rng, others):
    """Bytes with one to four changes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1) if rng.random() < 0.7 else rng.choice((0, 8, max(0, len(data) - 22)))
        width = rng.choice((1, 2, 4, 8))
        kind = rng.randrange(7)
        if kind == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:  # a length, count or offset
            data[at : at + width] = (rng.choice(EXTREMES) & ((1 << 8 * width) - 1)).to_bytes(
                width, rng.choice(("little", "big"))
            )
        elif kind == 2:
            number = int.from_bytes(data[at : at + width], "little") + rng.choice((-1, 1, 2, -(1 << 7), 1 << 16))
            data[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
        elif kind == 3:
            del data[at : at + rng.randrange(1, 40)]
        elif kind == 4:  # a piece once more, many times perhaps
            piece = data[at : at + rng.randrange(1, 60)]
            data[at:at] = piece * rng.choice((1, 2, 2, 500))
        elif kind == 5:
            del data[at + 1 :]
        else:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            data[at : at + rng.randrange(30)] = other[start : start + rng.randrange(1, 200)]
        if not data:
            break
    return bytes(data)


def mutated(seed):
    """(suffix, bytes) of the file of a seed."""
    rng = random.Random(seed)
    suffix, data = rng.choice(sources())
    others = [d for _, d in sources()]
    if data[:2] == b"PK" and rng.random() < 0.6:  # what is in the records, not the archive
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            name = rng.choice(names) if rng.random() < 0.4 else next((n for n in names if n.endswith("data.pkl")), names[0])
            record = archive.read(name)
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        return suffix, rewritten(data, {name: altered(record, rng, [record, *others])}, method)
    return suffix, altered(data, rng, others)


def attempt(data, suffix, folder):
    """What becomes of a file: "loaded", "refused", or a fault; and the seconds and bytes that it took."""
    path = Path(folder) / f"mutated{suffix}"
    path.write_bytes(data)
    limit = limits.Budget(io.BytesIO(data), None).limit
    EVENTS.clear()
    tracemalloc.start()
    start = time.perf_counter()
    WATCHING.append(True)
    try:
        tg.load(path)
        outcome = "loaded"
    except LoadError as e:
        outcome = "refused" if repr(str(path)) in str(e) else f"an error that does not name the file: {e}"
    except Exception as e:
        outcome = f"{type(e).__name__}: {e}"
    WATCHING.clear()
    taken = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if EVENTS:
        outcome = f"it ran {EVENTS[0]}"
    if peak > limit + SLACK:
        outcome = f"{peak} bytes where max_bytes is {limit}"
    return outcome, taken, peak


def watch(event, args):
    if WATCHING and event.startswith(FORBIDDEN):
        EVENTS.append((event, args))


def work(first, count, folder):
    """Load files in this process, whose memory is limited from here on, and print what becomes of each."""
    for suffix, data in sources():  # the first time modules are imported
        assert attempt(data, suffix, folder)[0] == "loaded", suffix
    codecs.lookup("raw_unicode_escape")  # Python's module for an opcode that sound files have not
    sys.addaudithook(watch)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for seed in range(first, first + count):
        suffix, data = mutated(seed)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)  # whose signal ends the process
        print(json.dumps([seed, suffix, *attempt(data, suffix, folder)]), flush=True)


def run(first, count, folder):
    """The results of `work`, in another process after each one that does not come back."""
    results, last = [], first + count
    while first < last:
        command = [sys.executable, __file__, "--work", str(folder), "--first", str(first), "--count", str(last - first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                results.append(json.loads(line))
                first = results[-1][0] + 1
        if process.returncode == 1:  # an exception of this program's own
            raise RuntimeError("a process of the run has failed; its error stands above")
        if first < last:
            how = "no end" if process.returncode == -signal.SIGALRM else f"the process ended with {process.returncode}"
            results.append([first, "", how, float(SECONDS), 0])
            first += 1
    return results


def summary(results):
    """The figures of a run, and its faults by seed."""
    faults = [r for r in results if r[2] not in ("loaded", "refused")]
    outcomes = collections.Counter(r[2] if r[2] in ("loaded", "refused") else "faults" for r in results)
    lines = [f"{len(results)} files: " + ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))]
    for suffix in sorted({r[1] for r in results}):
        of = [r for r in results if r[1] == suffix]
        seconds, size = (max(r[k] for r in of) for k in (3, 4))
        lines.append(f"{suffix or 'unknown'}: {len(of)} files, each at most {seconds:.2f} s and {size} bytes")
    return "\n".join(lines + [f"seed {r[0]}: {r[2]}" for r in faults])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.first, options.count, options.work)
    elif options.only is not None:
        suffix, data = mutated(options.only)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"mutated{suffix}"
            path.write_bytes(data)
            print(tg.load(path))
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(summary(run(options.first, options.count, folder)))


if __name__ == "__main__":
    main()
