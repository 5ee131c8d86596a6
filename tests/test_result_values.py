"""Data types of results and of tensors made from lists, and evenly spaced values bit for bit; as in PyTorch."""

import numpy as np
import pytest

import tapegrad as tg


def test_dtypes_of_results():
    assert tg.where(tg.tensor([True]), 1.0, 2.0).dtype == tg.float32
    assert tg.where(tg.tensor([True, False]), tg.tensor([3, 2]), np.float64(2.5)).tolist() == [3, 2.5]
    assert tg.tensor([100, 27], dtype=tg.int8).sum(dtype=tg.int8).dtype == tg.int8


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([np.float64(1)], "float64"), ([1.0, np.float64(1)], "float64"), ([np.float16(1), 1], "float16"),
        ([np.int32(1)], "int32"), ([1, np.int32(1)], "int64"), ([np.ones(2), np.zeros(2)], "float64"),
        ([np.ones(2, np.int32), [1, 2]], "int64"), ([[np.float64(1)], [2.0]], "float64"), ([np.bool_(True)], "bool"),
        ([np.complex128(1)], "complex128"), ([1, 2.5], "float32"), ([True, np.float32(2)], "float32"),
    ],
)  # fmt: skip
def test_arrays_in_a_list_keep_their_dtype(data, dtype):
    assert str(tg.tensor(data).dtype) == f"torch.{dtype}"


def test_a_numpy_number_fills_as_a_python_number():
    assert tg.full((2,), np.float64(1)).dtype is tg.float32


def test_evenly_spaced_values_are_pytorchs_bit_for_bit():
    def hexed(t):
        return [float.hex(v).replace("0000000p", "p") for v in t.tolist()]

    assert hexed(tg.linspace(0, 1, 4)) == ["0x0.0p+0", "0x1.555556p-2", "0x1.555554p-1", "0x1.000000p+0"]
    third = tg.linspace(-1, 1, 7, dtype=tg.float64)[3:5]
    assert [float.hex(v) for v in third.tolist()] == ["0x1.0000000000000p-54", "0x1.5555555555556p-2"]
    assert hexed(tg.arange(0, 1.7, 0.1))[12:15] == ["0x1.333334p+0", "0x1.4cccccp+0", "0x1.666666p+0"]
    assert tg.logspace(0.1, 4.9, 9, dtype=tg.int64).tolist() == [1, 3, 10, 31, 100, 316, 1000, 3162, 10000]
    assert tg.arange(5.5, dtype=tg.int64).tolist() == [0, 1, 2, 3, 4]
