"""torch.multiprocessing: Python's multiprocessing. Tensors after share_memory_() stay shared, others are copied."""

import multiprocessing as _python
import multiprocessing.connection as _connection
import signal as _signal
import traceback as _traceback
from multiprocessing import *  # noqa: F403

get_all_sharing_strategies = lambda: {"file_descriptor", "file_system"}  # noqa: E731
_strategy = "file_descriptor"


def get_sharing_strategy() -> str:
    """What set_sharing_strategy set."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember it; memory is shared by file descriptors."""
    global _strategy
    assert new_strategy in get_all_sharing_strategies()
    _strategy = new_strategy


class ProcessException(Exception):
    """A process of spawn failed.

    Attributes:
        error_index: which of them.
        error_pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """It raised an exception; the message is its traceback."""


class ProcessExitedException(ProcessException):
    """It ended by a signal or an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _run(fn: object, i: int, args: tuple, errors: object) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(_traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes of spawn(join=False)."""

    def __init__(self, processes: list, errors: list) -> None:
        self.processes, self._errors = processes, errors
        self._running = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list:
        """Their process ids."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for one of them; True when all have ended well.

        Raises:
            ProcessRaisedException, ProcessExitedException: one failed; the others are ended.
        """
        if not self._running:
            return True
        failed = None
        for sentinel in _connection.wait(list(self._running), timeout):
            i = self._running.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
                break
        if failed is None:
            return not self._running
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(grace_period)
        raise self._failure(failed)

    def _failure(self, i: int) -> ProcessException:
        process, code = self.processes[i], self.processes[i].exitcode
        if not self._errors[i].empty():
            text = f"\n\n-- Process {i} terminated with the following error:\n{self._errors[i].get()}"
            return ProcessRaisedException(text, i, process.pid)
        if code < 0:
            name = _signal.Signals(-code).name
            return ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, code, name)
        return ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: object, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn",
    numa_options: object = None,
) -> ProcessContext | None:  # fmt: skip
    """Call fn(i, *args) in nprocs processes; see spawn."""
    context = _python.get_context(start_method)
    errors = [context.SimpleQueue() for _ in range(nprocs)]
    processes = [
        context.Process(target=_run, args=(fn, i, args, errors[i]), daemon=daemon) for i in range(nprocs)
    ]  # fmt: skip
    for process in processes:
        process.start()
    started = ProcessContext(processes, errors)
    while join and not started.join():
        pass
    return None if join else started


def spawn(
    fn: object, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call fn(i, *args) for i below nprocs, each in a new process.

    Args:
        join: wait for all; else their ProcessContext is given.

    Raises:
        ProcessRaisedException: one raised; the message has its traceback.
        ProcessExitedException: one ended by a signal or an exit code.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
