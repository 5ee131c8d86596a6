"""torch.__config__: what computes: NumPy."""

import json

import numpy as np

import tapegrad


def show() -> str:
    """The versions, and how NumPy was built."""
    built = json.dumps(np.show_config(mode="dicts"), indent=2)
    return f"tapegrad {tapegrad.__version__} on NumPy {np.__version__}\n{built}\n"


def parallel_info() -> str:
    """Threads are those of NumPy's libraries."""
    return "Threads: those of NumPy's libraries\n"
