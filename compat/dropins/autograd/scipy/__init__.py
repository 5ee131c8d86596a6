"""autograd's SciPy: functions of scipy that take boxes."""

from autograd.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
