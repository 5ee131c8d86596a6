"""A DataLoader's worker processes.

Parent and each worker communicate through one socket: a worker that dies leaves no lock held, its end is seen as the end of
the stream, and no named resource can leak. A message is a pickle followed by its arrays. Through a
socket a batch of 200 kB takes 0.05 ms and one of 40 MB 35 ms; through shared memory (memfd) these take 0.2 and 37 ms.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core.state import FIRST_USE, RECORDING, TAPE, THREAD, is_recording, set_recording
from ....core.tape import TAPES
from ....functions.create import manual_seed
from ....kernels.random import release
from ....tensor.tensor import Tensor
from . import MP_STATUS_CHECK_INTERVAL, ExceptionWrapper
from .collate import default_collate

DATA, ERROR, END = "data", "error", "end"  # kinds of answers


@dataclass(frozen=True)
class WorkerInfo:
    """Result of get_worker_info(): the worker's id, the number of workers, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_worker_info: WorkerInfo | None = None


def start_afresh() -> None:
    """Begin with an empty tape, as a worker process does: what its parent recorded is dropped."""
    for tape in TAPES:
        tape.clear()
    TAPES.clear()
    THREAD.__dict__.clear()
    TAPE.set(None)
    if is_recording():
        RECORDING.set(FIRST_USE)


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo in a worker process of a DataLoader; None elsewhere.

    Example:
        >>> tg.utils.data.get_worker_info() is None
        True
    """
    return _worker_info


@dataclass
class Job:
    """The settings that the workers of one DataLoader share."""

    fetcher: Callable[..., Any]
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    num_workers: int
    init_fn: Any
    recording: bool
    owner: int | None = None  # the parent's process id: workers exit when it ends; None if they are not its children


# ----------------------------------------------------------------------------------------------------------- messages


class Pickler(pickle.Pickler):
    """A pickler that raises for tensors whose history would be lost."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and not obj.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries. If you just want to transfer the data, call detach() on the tensor before "
                "serializing (e.g., putting it on the queue)."
            )
        return NotImplemented


def encoded(message: Any, copies: bool = False) -> list[Any]:
    """Bytes of a message: number of parts, their sizes, the pickle, the arrays (copies of them, if asked for)."""
    arrays: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    Pickler(file, 5, buffer_callback=arrays.append).dump(message)
    parts: list[Any] = [file.getbuffer(), *[a.raw() for a in arrays]]
    if copies:
        parts = [bytes(p) for p in parts]
    return [struct.pack(f"<{len(parts) + 1}Q", len(parts), *[memoryview(p).nbytes for p in parts]), *parts]


def decoded(read: Callable[[int], Any]) -> Any:
    """Decode a message, read by read(number of bytes)."""
    (count,) = struct.unpack("<Q", read(8))
    pickled, *arrays = [read(size) for size in struct.unpack(f"<{count}Q", read(8 * count))]
    return pickle.loads(pickled, buffers=arrays)


def filled(receive: Callable[[Any], int], size: int) -> Any:
    """A buffer of the given size, filled by receive(buffer) -> number of bytes; EOFError at the end of the stream."""
    block: Any = np.empty(size, np.uint8)
    rest = memoryview(block)
    while rest.nbytes:
        got = receive(rest)
        if not got:
            raise EOFError
        rest = rest[got:]
    return block


# ---------------------------------------------------------------------------------------------------------- the worker


def worker_loop(sock: Any, job: Job, base_seed: int, worker_id: int) -> None:
    """Main function of a worker process, with its own tape, transforms and modes."""
    import signal
    from contextvars import Context

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles an interrupt at the terminal
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # drop the parent's signal handler
    for worker in tuple(WORKERS):
        worker.sock.close()  # a copy of the parent's end: while it is open, the worker is not told that that was closed
    Context().run(_serve, sock, job, base_seed, worker_id)


def _seed_all(base_seed: int, worker_id: int) -> None:
    import random

    random.seed(base_seed + worker_id)
    manual_seed(base_seed + worker_id)
    # PyTorch's seed for NumPy, determined by experiment: a SeedSequence of these four words
    release(np.random.mtrand._rand)
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))


def _serve(sock: Any, job: Job, base_seed: int, worker_id: int) -> None:
    global _worker_info
    import queue
    import threading
    from multiprocessing.connection import wait

    start_afresh()
    if not job.recording:
        set_recording(False)
    _seed_all(base_seed, worker_id)
    _worker_info = WorkerInfo(worker_id, job.num_workers, base_seed + worker_id, job.dataset)
    where = f"in DataLoader worker process {worker_id}"
    answers: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
    threading.Thread(target=_send_all, args=(sock, answers), daemon=True).start()  # the next batch is loaded meanwhile

    def receive(block: Any) -> int:
        while not wait([sock], MP_STATUS_CHECK_INTERVAL):
            if job.owner is not None and os.getppid() != job.owner:  # sibling processes may keep the socket open
                return 0
        return int(sock.recv_into(block))

    fetcher, failure = _started(job, worker_id, where, first=True)
    while True:
        try:
            number, index = decoded(lambda size: filled(receive, size))
        except (EOFError, OSError):
            return
        if number is None:
            fetcher, failure = _started(job, worker_id, where, first=False)
            continue
        answers.put(_answer(number, index, fetcher, failure, where, job.collate_fn is not default_collate))


def _started(job: Job, worker_id: int, where: str, first: bool) -> tuple[Any, ExceptionWrapper | None]:
    """A new fetcher for the dataset, or the exception raised while creating it."""
    try:
        if first and job.init_fn is not None:
            job.init_fn(worker_id)
        return job.fetcher(job.dataset, job.auto_collation, job.collate_fn, job.drop_last), None
    except Exception:
        return None, ExceptionWrapper(where=where)


def _answer(number: int, index: Any, fetcher: Any, failure: Any, where: str, copies: bool) -> list[Any]:
    status: str = DATA
    result: Any = None
    try:
        if failure is None:
            result = fetcher.fetch(index)
        else:
            status, result = ERROR, failure
    except StopIteration as e:
        if getattr(fetcher, "samples", None) is not None:
            status = END
        else:
            status, result = ERROR, ExceptionWrapper((type(e), e, e.__traceback__), where)
    except Exception:
        status, result = ERROR, ExceptionWrapper(where=where)
    try:
        return encoded((number, status, result), copies)
    except Exception:
        if status == ERROR:
            result.exc_type = RuntimeError  # the type cannot be pickled
            return encoded((number, ERROR, result))
        return encoded((number, ERROR, ExceptionWrapper(where=where)))


def _send_all(sock: Any, answers: Any) -> None:
    while True:
        try:
            for part in answers.get():
                sock.sendall(part)
        except OSError:  # the parent has closed
            return


# ---------------------------------------------------------------------------------------------------------- the parent


def ready(sock: Any, writing: bool, pause: float) -> bool:
    """Whether a socket becomes writable or readable within a number of seconds."""
    import select

    if not hasattr(select, "poll"):
        return any(select.select([] if writing else [sock], [sock] if writing else [], [], pause))
    poll = select.poll()
    poll.register(sock, select.POLLOUT if writing else select.POLLIN)
    return bool(poll.poll(pause * 1000))


WORKERS: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """The parent's view of a worker process."""

    def __init__(self, context: Any, job: Job, base_seed: int, worker_id: int) -> None:
        import socket

        self.sock, self.theirs = socket.socketpair()
        WORKERS.add(self)
        self.sock.setblocking(False)
        self.active = True  # False once its stream has ended
        self.pending = 0
        self.process = context.Process(target=worker_loop, args=(self.theirs, job, base_seed, worker_id), daemon=True)

    def start(self) -> None:
        """Start the process; whoever is to stop it knows it already."""
        try:
            self.process.start()
        finally:
            self.theirs.close()

    def _moved(self, writing: bool, block: Any, limit: float) -> int:
        """Number of bytes sent from or received into a block; waits while the worker is alive; 0 if it has died."""
        deadline = time.monotonic() + limit if limit else None
        while True:
            try:
                return self.sock.send(block) if writing else self.sock.recv_into(block)
            except BlockingIOError:
                pass
            except ConnectionError:
                return 0
            pause = MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                pause = max(0.0, min(pause, deadline - time.monotonic()))
            if ready(self.sock, writing, pause):
                continue
            if not self.process.is_alive():
                return 0
            if deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {limit} seconds")

    def send(self, message: Any) -> None:
        """Send a message."""
        for part in encoded(message):
            rest = memoryview(part)
            while rest.nbytes:
                sent = self._moved(True, rest, 0)
                if not sent:
                    raise self.death()
                rest = rest[sent:]

    def receive(self, limit: float) -> Any:
        """The next message: (task, status, result)."""

        def read(size: int) -> Any:
            return filled(lambda block: self._moved(False, block, limit), size)

        try:
            return decoded(read)
        except EOFError:
            raise self.death() from None

    def death(self) -> RuntimeError:
        """The error for a process that has died."""
        self.process.join(1)
        code = self.process.exitcode
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f", killed by signal {-code}"
        return RuntimeError(
            f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly{how}. "
            "With num_workers=0 the dataset runs in this process, where its error shows."
        )


def stop(workers: list[Worker], owner: int) -> None:
    """End the processes; those that do not exit within a few seconds are terminated."""
    if os.getpid() != owner:  # a forked copy of the parent's iterator
        return
    import socket

    for w in workers:
        with contextlib.suppress(OSError):
            w.sock.shutdown(socket.SHUT_RDWR)
        w.sock.close()
        w.theirs.close()
    deadline = time.monotonic() + MP_STATUS_CHECK_INTERVAL
    for w in [w for w in workers if w.process.pid is not None]:  # the others were not started
        w.process.join(max(0.0, deadline - time.monotonic()))
        for end in (w.process.terminate, w.process.kill):
            if w.process.is_alive():
                end()
                w.process.join(1)
        if not w.process.is_alive():
            w.process.close()
    workers.clear()


def start(workers: list[Worker], method: Any, job: Job, base_seed: int) -> None:
    """Start a job's processes and append them to the list."""
    # Loaded whole now: were stop() the first to import it, a collection during the import would run another's stop().
    import multiprocessing.connection

    context = method or multiprocessing.get_context()
    job.owner = None if context.get_start_method() == "forkserver" else os.getpid()
    for i in range(job.num_workers):
        workers.append(Worker(context, job, base_seed, i))
        workers[-1].start()


def first_ready(workers: list[Worker], limit: float) -> Worker:
    """The first worker that has a message, or has died."""
    from multiprocessing.connection import wait

    deadline = time.monotonic() + limit if limit else None
    while True:
        pause = MP_STATUS_CHECK_INTERVAL if deadline is None else max(0.0, deadline - time.monotonic())
        ready = wait([w.sock for w in workers], min(pause, MP_STATUS_CHECK_INTERVAL))
        for w in workers:
            if w.sock in ready or not w.process.is_alive():
                return w
        if deadline is not None and time.monotonic() >= deadline:
            raise RuntimeError(f"DataLoader timed out after {limit} seconds")
