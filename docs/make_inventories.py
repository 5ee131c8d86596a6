"""Writes docs/inventories/*.inv, by which the site links to NumPy's and JAX's pages: `python docs/make_inventories.py`.

The addresses are those of both projects' generated pages: reference/generated/numpy.NAME.html, _autosummary/jax.NAME.html.
"""

from __future__ import annotations

import importlib
import pathlib
import types
import zlib

HERE = pathlib.Path(__file__).parent / "inventories"
PAGES = {
    "numpy": (["numpy", "numpy.linalg", "numpy.fft"], "reference/generated/$.html"),
    "jax": (["jax", "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax", "jax.nn", "jax.scipy.special"],
            "_autosummary/$.html"),
}  # fmt: skip


def entries(namespaces: list[str], page: str) -> list[str]:
    lines = []
    for namespace in namespaces:
        module = importlib.import_module(namespace)
        for name in sorted(vars(module)):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value) and not isinstance(value, types.ModuleType):
                role = "class" if isinstance(value, type) else "function"
                full = f"{namespace}.{name}"
                lines.append(f"{full} py:{role} 1 {page.replace('$', full)}#$ -")
    return lines


def inventory(project: str) -> bytes:
    """The inventory in Sphinx's format 2: four lines of text, then compressed lines of names."""
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    return head.encode() + zlib.compress("\n".join(entries(*PAGES[project])).encode() + b"\n", 9)


if __name__ == "__main__":
    for project in PAGES:
        (HERE / f"{project}.inv").write_bytes(inventory(project))
