"""torch.profiler: a program that profiles itself runs; nothing is measured, and asking for figures raises."""

import enum
from contextlib import ContextDecorator

_NO_FIGURES = "tapegrad has no profiler: run the program under python -m cProfile"


class ProfilerActivity(enum.Enum):
    """What would be measured."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """What would be done at a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


class record_function(ContextDecorator):
    """A named part of the program: as a with block or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> "record_function":
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class profile(ContextDecorator):
    """A part of the program to profile; it runs, nothing is measured."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __enter__(self) -> "profile":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def start(self) -> None:
        """Nothing."""

    stop = step = start

    def events(self, *args: object, **kwargs: object) -> object:
        """Raises: nothing was measured."""
        raise NotImplementedError(f"torch.profiler: {_NO_FIGURES}")

    export_chrome_trace = export_memory_timeline = export_stacks = key_averages = table = total_average = events


emit_nvtx = emit_itt = profile


class itt:
    """Intel's tracing, which is not there."""

    @staticmethod
    def is_available() -> bool:
        return False


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **kwargs: object) -> object:
    """Which steps would be measured: a function of the step's number."""
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < skip_first or (repeat and (step - skip_first) // cycle >= repeat):
            return ProfilerAction.NONE
        at = (step - skip_first) % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> object:
    """What would write the figures; it is never called."""
    return profile.events


def supported_activities() -> set:
    """What can be measured: nothing."""
    return set()


def kineto_available() -> bool:
    """False."""
    return False
