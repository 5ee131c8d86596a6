""".safetensors and .npz files: a dict of names and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.record import wrap
from ..programs.tracing import leaving
from ..tensor.tensor import Tensor
from .rebuild import MADE


def _named_arrays(obj: Any, suffix: str) -> dict[str, Any]:
    if not isinstance(obj, dict) or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in obj.items()):
        raise TypeError(f"a {suffix} file holds a dict of names and tensors, as a state_dict; got {type(obj).__name__}")
    return {name: np.ascontiguousarray(leaving(t, "saving")).reshape(t.shape) for name, t in obj.items()}


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as e:
        raise ImportError(".safetensors files need the package safetensors: pip install safetensors") from e
    return safetensors.numpy


def write_safetensors(file: Any, name: str, obj: Any, protocol: int) -> None:
    arrays = _named_arrays(obj, ".safetensors")
    file.write(_safetensors().save(arrays))


def write_npz(file: Any, name: str, obj: Any, protocol: int) -> None:
    arrays = _named_arrays(obj, ".npz")
    unknown = [name for name, array in arrays.items() if array.dtype.isbuiltin != 1]
    if unknown:
        raise TypeError(f"NumPy's files do not know the dtype of {unknown[0]!r}: use .safetensors or .pt")
    np.savez(file, **arrays)


def read_named(file: Any, suffix: str) -> dict[str, Any]:
    """The tensors of a .safetensors or .npz file."""
    try:
        arrays = _safetensors().load(file.read()) if suffix == ".safetensors" else np.load(file, allow_pickle=False)
        tensors = {name: wrap(np.array(array)) for name, array in arrays.items()}
        MADE.get().extend(tensors.values())
        return tensors
    except (OSError, ImportError, MemoryError):
        raise
    except Exception as e:
        raise RuntimeError(f"the {suffix} file is damaged: {e}") from e
