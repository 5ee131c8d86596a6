"""torch.utils.benchmark: Timer, and the Measurement it gives."""

import math
import statistics
import timeit as _timeit
from dataclasses import dataclass, field

import torch as _torch

timer = _timeit.default_timer
_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))


@dataclass
class Measurement:
    """Times of a statement.

    Attributes:
        number_per_run: how often it ran for each of raw_times.
        raw_times: seconds.
    """

    number_per_run: int
    raw_times: list
    stmt: str = "pass"
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1
    metadata: dict = field(default_factory=dict)

    @property
    def times(self) -> list:
        """Seconds for one run of the statement."""
        return [t / self.number_per_run for t in self.raw_times]

    mean = property(lambda self: statistics.mean(self.times))
    median = property(lambda self: statistics.median(self.times))
    has_warnings = False

    @property
    def iqr(self) -> float:
        """Distance of the quartiles."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    title = property(lambda self: " ".join(p for p in (self.label or self.stmt, self.sub_label) if p))

    def __repr__(self) -> str:
        unit, scale = next(((u, s) for u, s in reversed(_UNITS) if self.median >= s), _UNITS[0])
        runs = len(self.raw_times)
        spread = f"\n  IQR:    {self.iqr / scale:.2f} {unit}" if runs > 3 else ""
        what = "Median" if runs > 1 else ""
        value = f"{what + ': ' if what else ''}{self.median / scale:.2f} {unit}"
        plural, each = ("s", "per measurement") if runs != 1 else ("", "")
        return (
            f"<{__name__}.utils.common.Measurement object at {hex(id(self))}>\n{self.title}\n  {value}{spread}\n"
            f"  {runs} measurement{plural}, {self.number_per_run} runs {each}, {self.num_threads} thread"
            f"{'s' if self.num_threads != 1 else ''}"
        )


class Timer:
    """Times a statement, as timeit.Timer does.

    Args:
        stmt, setup, globals: as timeit's.
        label, sub_label, description, env: for the Measurement.
        num_threads: reported; NumPy's libraries choose their own.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: object = timer,
        globals: dict | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int | None = None, language: object = None,
    ) -> None:  # fmt: skip
        names = {"torch": _torch, **(globals or {})}
        self._timer = _timeit.Timer(stmt, setup, timer, names)
        self._about = {
            "stmt": stmt, "label": label, "sub_label": sub_label, "description": description, "env": env,
            "num_threads": num_threads or _torch.get_num_threads(),
        }  # fmt: skip

    def _measured(self, number: int, times: list) -> Measurement:
        return Measurement(number, times, **self._about)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run it `number` times, after some to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return self._measured(number, [self._timer.timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not there, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    autorange = repeat

    def blocked_autorange(self, callback: object = None, min_run_time: float = 0.2) -> Measurement:
        """Run it in blocks of so many runs that the clock does not matter, for at least min_run_time seconds."""
        number = 1
        while self._timer.timeit(number) < min_run_time / 1000:
            number *= 10
        return self._blocks(number, min_run_time, lambda times: True, math.inf, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: object = None
    ) -> Measurement:
        """As blocked_autorange, until the quartiles are within threshold of the median."""
        number = 1
        while self._timer.timeit(number) < min_run_time / 10:
            number *= 10

        def steady(times: list) -> bool:
            m = self._measured(number, times)
            return len(times) > 3 and m.iqr < threshold * m.median

        return self._blocks(number, min_run_time, steady, max_run_time, callback)

    def _blocks(self, number: int, least: float, enough: object, most: float, callback: object) -> Measurement:
        times: list = []
        total = 0.0
        while total < most and (total < least or not enough(times)):
            times.append(self._timer.timeit(number))
            total += times[-1]
            if callback:
                callback(number, times[-1])
        return self._measured(number, times)
