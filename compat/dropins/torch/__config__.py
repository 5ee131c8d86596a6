"""torch.__config__: what computes: NumPy."""

import contextlib
import io

import numpy as np

import tapegrad


def show() -> str:
    """The versions, and NumPy's libraries."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        np.show_config()
    return f"tapegrad {tapegrad.__version__} on NumPy {np.__version__}\n{text.getvalue()}"


def parallel_info() -> str:
    """Threads are those of NumPy's libraries."""
    return "Threads: those of NumPy's libraries\n"
