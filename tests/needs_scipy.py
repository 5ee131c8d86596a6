"""The records that need SciPy (test_special proves it), and those of them that cannot run here."""

from importlib.util import find_spec

NEED_SCIPY = {"airy", "bessel_j", "bessel_k", "bessel_ke", "bessel_y"}
ABSENT = set() if find_spec("scipy") else NEED_SCIPY
