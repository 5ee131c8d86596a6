"""Running programs, and comparing what they print: the same text, numbers within 1e-4 relative."""

import math
import os
import re
import subprocess
import sys

NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


def output(command, folder, *paths):
    """What `python command` prints, run in a folder, with these paths on the search path of modules."""
    path = os.pathsep.join([*map(str, paths), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def close(ours, wanted):
    """Whether a printed number equals another, but for 1e-4 of it and one in its last digit."""
    mantissa, _, exponent = wanted.partition("e")
    last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return math.isclose(float(ours), float(wanted), rel_tol=1e-4, abs_tol=1.01 * last)


def difference(ours, wanted):
    """The first lines that differ, or None."""
    for line, other in zip(ours.splitlines(), wanted.splitlines(), strict=True):
        same = NUMBER.sub("#", line) == NUMBER.sub("#", other)
        if not same or not all(map(close, NUMBER.findall(line), NUMBER.findall(other))):
            return f"got: {line}\nwanted: {other}"
    return None
