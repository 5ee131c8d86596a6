"""Shape, index, scatter and creation functions: values against NumPy, derivatives to third order, views, costs."""

import subprocess
import sys
import time

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.kernels import accumulate, numpy

RNG = np.random.default_rng(3)
A, B, V = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 4)), RNG.standard_normal(6)
CUBE = RNG.standard_normal((2, 3, 4))
POSITIONS = np.array([[0, 2, 1, 0], [2, 2, 0, 2]])


def t(a):
    return tg.tensor(a)


# --------------------------------------------------------------------------------------------------- values against NumPy

VALUES = {
    "hstack": (lambda: tg.hstack([t(A), t(A)]), lambda: np.hstack([A, A])),
    "hstack of vectors": (lambda: tg.hstack([t(V), t(1.0)]), lambda: np.hstack([V, 1.0])),
    "vstack": (lambda: tg.vstack([t(V), t(V)]), lambda: np.vstack([V, V])),
    "dstack": (lambda: tg.dstack([t(V), t(V)]), lambda: np.dstack([V, V])),
    "dstack of matrices": (lambda: tg.dstack([t(A), t(A)]), lambda: np.dstack([A, A])),
    "column_stack": (lambda: tg.column_stack([t(V), t(V)]), lambda: np.column_stack([V, V])),
    "atleast_3d of a matrix": (lambda: tg.atleast_3d(t(A)), lambda: np.atleast_3d(A)),
    "atleast_3d of a vector": (lambda: tg.atleast_3d(t(V)), lambda: np.atleast_3d(V)),
    "rot90": (lambda: tg.rot90(t(CUBE), 3, (1, 2)), lambda: np.rot90(CUBE, 3, (1, 2))),
    "rot90 twice": (lambda: tg.rot90(t(A), 2), lambda: np.rot90(A, 2)),
    "fliplr": (lambda: tg.fliplr(t(A)), lambda: np.fliplr(A)),
    "flipud": (lambda: tg.flipud(t(A)), lambda: np.flipud(A)),
    "roll in both": (lambda: tg.roll(t(A), (1, -2), (0, 1)), lambda: np.roll(A, (1, -2), (0, 1))),
    "diagflat": (lambda: tg.diagflat(t(A), -1), lambda: np.diagflat(A, -1)),
    "unfold": (
        lambda: t(A).unfold(1, 2, 1),
        lambda: np.lib.stride_tricks.sliding_window_view(A, 2, axis=1),
    ),
    "unfold in steps": (
        lambda: t(V).unfold(0, 3, 2),
        lambda: np.lib.stride_tricks.sliding_window_view(V, 3)[::2],
    ),
    "as_strided": (lambda: t(A).as_strided((2, 3), (1, 4), 1), lambda: A.reshape(-1)[[[1, 5, 9], [2, 6, 10]]]),
    "as_strided of a transpose": (lambda: t(A).T.as_strided((3,), (4,)), lambda: A[:, 0]),
    "constant_pad_nd": (
        lambda: tg.constant_pad_nd(t(A), (1, 0, -1, 2), 7.0),
        lambda: np.pad(A[1:], ((0, 2), (1, 0)), constant_values=7.0),
    ),
    "tril_indices": (lambda: tg.tril_indices(3, 4, 1), lambda: np.array(np.tril_indices(3, 1, 4))),
    "take": (lambda: tg.take(t(A), t(POSITIONS)), lambda: np.take(A, POSITIONS)),
    "argwhere": (lambda: tg.argwhere(t(A) > 0), lambda: np.argwhere(A > 0)),
    "isin": (lambda: tg.isin(t([1, 2, 3]), t([3, 1])), lambda: np.isin([1, 2, 3], [3, 1])),
    "searchsorted in rows": (
        lambda: tg.searchsorted(t(np.sort(A)), t(A)),
        lambda: np.array([np.searchsorted(r, a) for r, a in zip(np.sort(A), A, strict=True)]),
    ),
    "bincount": (lambda: tg.bincount(t([0, 2, 2]), t([1.0, 0.5, 2.0])), lambda: np.float32([1, 0, 2.5])),
    "logspace": (lambda: tg.logspace(-1, 2, 4, dtype=tg.float64), lambda: np.logspace(-1, 2, 4)),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    ours, expected = (f() for f in VALUES[name])
    expected = np.asarray(expected)
    assert ours.shape == expected.shape
    assert ours.numpy().dtype == expected.dtype
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-15)


def test_unravel_index():
    positions = np.array([[0, 5], [23, 11]])
    expected = np.unravel_index(positions, CUBE.shape)
    for got, want in zip(tg.unravel_index(t(positions), CUBE.shape), expected, strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("how", ["tensor_split", "hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("where", [2, (1, 2)])
def test_splits_are_views(how, where):
    a = np.arange(64.0).reshape(4, 4, 4)
    x = t(a)
    parts = getattr(tg, how)(x, where)
    expected = {"tensor_split": np.array_split}.get(how) or getattr(np, how)
    for part, want in zip(parts, expected(a, where), strict=True):
        np.testing.assert_array_equal(part.numpy(), want)
    parts[0].fill_(-1.0)
    assert (x == -1).sum() == parts[0].numel() > 0


# ---------------------------------------------------------------------------------------------- derivatives to third order

SRC = np.array([[0.7, -1.2, 0.4, 2.0], [1.5, 0.3, -0.6, 0.8]])
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
DERIVATIVES = {
    **{
        f"scatter_reduce {how} {own}": (
            lambda x, v, how=how, own=own: tg.scatter_reduce(x * x, 0, t(POSITIONS), v * v.exp(), how, include_self=own),
            (A, SRC),
        )
        for how in REDUCTIONS
        for own in (True, False)
    },
    **{
        f"index_reduce {how}": (
            lambda x, v, how=how: tg.index_reduce(x.sin(), 1, t([3, 0, 3, 3]), v.exp(), how, include_self=how != "mean"),
            (B, SRC),
        )
        for how in REDUCTIONS[1:]
    },
    "scatter multiply": (lambda x, v: tg.scatter(x, 0, t(POSITIONS), v, reduce="multiply") ** 2, (A, SRC)),
    "scatter of a 0-dim tensor": (
        lambda x: tg.scatter_add(x * x, 0, t([0, 0]), x.reshape(1).expand(2).exp()),
        (np.array(0.3),),
    ),
    "put": (lambda x, v: tg.put(x.sin(), t([[3, 3], [0, 11]]), v[:, :2] ** 2, accumulate=True) ** 2, (A, SRC)),
    "masked_scatter": (lambda x, v: tg.masked_scatter(x.sin(), t(A > 0), v.expand(3, 2, 4).reshape(-1) ** 2), (A, SRC)),
    "index_copy": (lambda x, v: tg.index_copy(x.exp(), 0, t([2, 0]), v.sin()) ** 2, (A, SRC)),
    "as_strided, overlapping": (lambda x: x.exp().as_strided((3, 3), (2, 1)).sin(), (A,)),
    "as_strided past a part": (lambda x: (x * x)[1:, 1:].as_strided((2, 3), (1, 4), 1).sin(), (A,)),
    "as_strided_scatter": (lambda x, v: tg.as_strided_scatter(x.sin(), v.exp()[:, :2], (2, 2), (1, 5), 1) ** 2, (A, SRC)),
    "unfold": (lambda x: x.exp().unfold(1, 3, 1).prod(-1), (A,)),
    "unfold, wide": (lambda x: x.exp().unfold(0, 5, 1).prod(-1), (V,)),
    "rot90": (lambda x: tg.rot90(x.sin(), 1) ** 2, (A,)),
    "block_diag": (lambda x, y: tg.block_diag(x.sin(), y[0], y[1, 1].exp()) ** 2, (A, B)),
    "cartesian_prod": (lambda x, y: tg.cartesian_prod(x[:, 0], y[1]).prod(1) ** 2, (A, B)),
    "combinations": (lambda x: tg.combinations(x, 3).prod(1), (V,)),
    "constant_pad_nd": (lambda x: tg.constant_pad_nd(x.exp(), (1, -2, -1, 1), 2.0) ** 2, (A,)),
    "sum_to_size": (lambda x: x.exp().sum_to_size(1, 4) ** 2, (A,)),
    "fill": (lambda x, v: tg.fill(x.exp(), v[0, 0] ** 2) * x, (A, SRC)),
    "take": (lambda x: tg.take(x.exp(), t(POSITIONS)) ** 2, (A,)),
    "copies of views": (lambda x: tg.diagonal_copy(tg.permute_copy(x.exp(), (1, 0))) * tg.select_copy(x, 0, 1)[:3], (A,)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, exhaustive):
    """To third order, without --all to second."""
    f, inputs = DERIVATIVES[name]
    testing.check_grads(f, inputs, order=3 if exhaustive else 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("own", [True, False])
def test_product_of_zeros_at_every_order(own):
    """Division by the factors, as a formula would do it, gives nan or 0 here."""
    x, v = np.array([0.0, 2.0, 3.0, 0.5]), np.array([0.0, 0.0, 1.5, 4.0, 2.0, 0.0])
    positions = t([0, 1, 1, 1, 2, 3])
    testing.check_grads(lambda x, v: tg.scatter_reduce(x, 0, positions, v, "prod", include_self=own), (x, v), order=3)
    testing.check_grads(lambda x, v: tg.index_reduce(x, 0, positions, v, "prod", include_self=own), (x, v), order=3)


def test_equal_extremes_share_the_gradient():
    x, v = t([1.0, 5.0]).requires_grad_(), t([5.0, 5.0, 1.0]).requires_grad_()
    y = tg.scatter_reduce(x, 0, t([1, 1, 0]), v, "amax")
    gx, gv = tg.autograd.grad(y, (x, v), t([2.0, 3.0]))
    assert gx.tolist() == [1.0, 1.0]
    assert gv.tolist() == [1.0, 1.0, 1.0]


def test_nan_is_the_extreme_and_gets_the_gradient():
    v = t([1.0, np.nan, 3.0]).requires_grad_()
    y = tg.scatter_reduce(tg.zeros(1, dtype=v.dtype), 0, t([0, 0, 0]), v, "amax")
    assert y.isnan().all()
    assert tg.autograd.grad(y.sum(), v)[0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("dtype", [tg.float32, tg.float16, tg.int64])
def test_reductions_keep_the_dtype(how, dtype):
    x = tg.ones(3, dtype=dtype)
    y = tg.scatter_reduce(x, 0, t([0, 0, 2]), tg.full((3,), 2, dtype=dtype), how)
    expected = {"sum": [5, 1, 3], "prod": [4, 1, 2], "mean": [5 / 3, 1, 1.5], "amax": [2, 1, 2], "amin": [1, 1, 1]}[how]
    assert y.dtype is dtype
    np.testing.assert_allclose(y.tolist(), np.asarray(expected).astype(x.numpy().dtype), rtol=1e-3)


# --------------------------------------------------------------------------------------------------- memory that is shared


def test_as_strided_shows_the_block_that_a_part_lies_in():
    x = tg.arange(12.0).reshape(3, 4)
    part = x[1:, 1:]
    assert part.as_strided((2,), (1,)).tolist() == [5.0, 6.0]
    assert part.as_strided((2,), (4,), 0).tolist() == [0.0, 4.0]
    part.as_strided((2,), (4,), 0).fill_(-1.0)
    assert x[:, 0].tolist() == [-1.0, -1.0, 8.0]


def test_as_strided_past_a_leaf_is_a_copy_with_the_rest_constant():
    block = tg.arange(6.0)
    leaf = block[2:4].detach().requires_grad_()
    y = leaf.as_strided((4,), (1,), 1)
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert tg.autograd.grad((y * y).sum(), leaf)[0].tolist() == [4.0, 6.0]


@pytest.mark.counted
def test_as_strided_past_a_part_whose_base_is_gone_is_refused():
    x = tg.ones(4, requires_grad=True)
    part = (x * x)[2:]
    part.sum()  # from here on nothing remembers the base
    with pytest.raises(RuntimeError, match="keep the larger one"):
        part.as_strided((2,), (1,), 0)
    with tg.no_grad():
        assert part.as_strided((2,), (1,), 0).tolist() == [1.0, 1.0]
    assert part.as_strided((1,), (1,), 3).requires_grad


@pytest.mark.parametrize("make", [lambda x: x.unfold(0, 3, 1), lambda x: x.as_strided((2, 3), (1, 1))])
def test_writes_into_overlapping_views_are_refused(make):
    x = tg.arange(6.0)
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        make(x).mul_(2.0)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    "shape, strides", [((2, 3), (3, 1)), ((2, 3), (1, 2)), ((3, 2), (2, 3)), ((2, 2), (2, 1)), ((1, 4), (0, 1))]
)
def test_strides_that_do_not_overlap(shape, strides):
    a = np.zeros(20, np.int64)
    assert not numpy.overlaps(numpy.restrided(a, shape, tuple(8 * n for n in strides)))


@pytest.mark.parametrize("shape, strides", [((3, 3), (2, 1)), ((2, 4), (3, 1)), ((2, 2), (0, 1)), ((2, 2, 2), (4, 2, 2))])
def test_strides_that_overlap(shape, strides):
    a = np.zeros(20, np.int64)
    assert numpy.overlaps(numpy.restrided(a, shape, tuple(8 * n for n in strides)))


def test_resize_keeps_what_fits():
    x = tg.arange(6)
    view = x[:2]
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]]
    view[0] = 9
    assert x[0, 0] == 9
    x.resize_(10)
    assert x[:6].tolist() == [9, 1, 2, 3, 4, 5]


def test_resize_looks_at_the_memory_from_the_first_element_on():
    x = tg.arange(6)
    turned = x.view(2, 3).t()
    assert turned.resize_(3, 2).stride() == (1, 3)
    assert turned.resize_(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    turned[0, 1] = 9
    assert x.tolist() == [0, 9, 2, 3, 4, 5]
    assert x[2:4].resize_(4).tolist() == [2, 3, 4, 5]
    assert tg.arange(8)[::2].resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x[2:4].resize_(5)[:4].tolist() == [2, 3, 4, 5]


def test_resize_in_a_memory_format():
    x = tg.arange(24.0)
    assert x.resize_(1, 2, 3, 4, memory_format=tg.channels_last).stride() == (24, 1, 8, 2)
    assert x[0, 1, 0].tolist() == [1, 3, 5, 7]
    assert tg.zeros(24).resize_as_(x, memory_format=tg.preserve_format).stride() == (24, 1, 8, 2)
    assert tg.zeros(24).resize_as_(x).stride() == (24, 12, 4, 1)
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        x.resize_(24, memory_format=tg.channels_last)


@pytest.mark.parametrize("shape, first", [([2, 4, 2**29, 2**29], "Storage size"), ([0, 4, 2**61], "Stride")])
@pytest.mark.parametrize("make", [lambda s: tg.zeros(1).resize_(s), tg.zeros, tg.ones, tg.empty, lambda s: tg.full(s, 1.0)])
def test_sizes_that_no_memory_holds(make, shape, first):
    with pytest.raises(RuntimeError, match=f"{first} calculation overflowed with sizes="):
        make(shape)


def test_steps_of_tensors_without_elements():
    x = tg.zeros(2, 3, 4, 5)
    assert x[:, :, :, 1][:, 1:1].stride() == (60, 20, 5)
    assert x[2:].stride() == (60, 20, 5, 1)
    assert tg.zeros(5, 0, 3).stride() == (3, 3, 1)
    assert tg.zeros(0).stride() == (1,)


def test_bits_in_a_wider_dtype_must_begin_and_step_at_its_multiples():
    x = tg.zeros(4, 6, dtype=tg.int16)
    assert x.view(tg.int32).shape == (4, 3) and x[:, 2:].view(tg.int32).stride() == (3, 1)
    with pytest.raises(RuntimeError, match=r"self.storage_offset\(\) must be divisible by 2"):
        x[:, 1:5].view(tg.int32)
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 4"):
        x.view(tg.int64)
    with pytest.raises(RuntimeError, match=r"self.stride\(0\) must be divisible by 2"):
        x.as_strided((4, 2), (3, 1)).view(tg.int32)
    with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
        x.t().view(tg.int32)
    assert tg.zeros(0, 5, 64).view(tg.int16).stride() == (640, 128, 1)


@pytest.mark.counted
def test_the_result_goes_into_the_memory_of_out():
    out = tg.zeros(1, 3)
    row, place = out[0], out.data_ptr()
    with pytest.warns(UserWarning, match=r"was resized since it had shape \[1, 3\]"):
        tg.add(tg.ones(2), 1, out=out)
    assert out.tolist() == [2, 2] and row.tolist() == [2, 2, 0]
    tg.stack([tg.ones(1), tg.zeros(1)], out=out.resize_(2, 1))
    assert out.tolist() == [[1], [0]] and row.tolist() == [1, 0, 0] and out.data_ptr() == place
    private = tg.zeros(3)
    place = private.data_ptr()
    assert tg.add(tg.ones(3), 1, out=private) is private and private.data_ptr() == place
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    saved = x.detach().clone().requires_grad_() * 1
    y = (saved * x).sum()
    with tg.no_grad():
        tg.zeros(2, out=saved)
    y.backward()
    assert x.grad.tolist() == [1, 2]


def test_numbers_in_a_row_resize_an_out_of_another_size():
    out = tg.zeros(2, 3)
    with pytest.warns(UserWarning, match="The out tensor will be resized"):
        tg.arange(4, out=out)
    assert out.tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="unsupported range: -5 -> nan"):
        tg.arange(-5, float("nan"))
    with pytest.raises(RuntimeError, match="invalid size, possible overflow"):
        tg.arange(1e-38, 3e38)


def test_a_part_of_overlapping_windows_is_written():
    x = tg.ones(10)
    windows = x.unfold(0, 3, 2)
    windows[1, 0] = 0
    assert x.tolist() == [1, 1, 0, 1, 1, 1, 1, 1, 1, 1] and windows[0, 2] == 0
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        windows[:] = 1


def test_vectors_without_elements_join_along_any_dimension():
    assert tg.cat([tg.zeros(0), tg.zeros(0)], 1).shape == (0,)
    assert tg.cat([tg.zeros(0), tg.zeros(2, 3)], 1).shape == (2, 3)


def test_view_in_another_dtype_shares_the_bits_without_a_gradient():
    x = tg.tensor([1.0, -2.0], requires_grad=True)
    bits = (x * 1).view(tg.int32)
    assert bits.tolist() == [0x3F800000, -0x40000000]
    assert not bits.requires_grad
    y = tg.zeros(2)
    y.view(tg.int32).fill_(0x3F800000)
    assert y.tolist() == [1.0, 1.0]


@pytest.mark.counted
def test_writes_of_a_part_do_not_touch_the_rest():
    """An index_add_ of two rows moves two rows, not the buffer."""
    buffer = tg.zeros(200_000, 16)
    before = buffer.data_ptr()
    rows = tg.ones(2, 16)
    index = tg.tensor([5, 199_999])
    writes = [
        lambda: buffer.index_add_(0, index, rows),
        lambda: buffer.index_copy_(0, index, rows),
        lambda: buffer.index_put_((index,), rows),
        lambda: buffer.index_fill_(0, index, 1.0),
        lambda: buffer.put_(index, rows[:, 0]),
        lambda: buffer.scatter_add_(0, index[:, None], rows),
    ]
    for write in writes:
        write()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            write()
            times.append(time.perf_counter() - start)
        assert min(times) < 5e-4  # a pass over the buffer takes ten times that
    assert buffer.data_ptr() == before


# ---------------------------------------------------------------------------------------------------------- other libraries


def test_dlpack_shares_memory_both_ways():
    x = tg.arange(3.0)
    a = np.from_dlpack(x)
    x[0] = 7.0
    assert a[0] == 7.0
    b = np.arange(3.0)
    y = tg.from_dlpack(b)
    b[1] = 5.0
    assert y.tolist() == [0.0, 5.0, 2.0]
    assert tg.asarray(b, copy=True).data_ptr() != y.data_ptr() == tg.asarray(b).data_ptr()


def test_what_dlpack_readers_write_does_not_change_a_gradient():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    a = np.from_dlpack(y.detach())
    z = (y * y).sum()
    if a.flags.writeable:
        a[:] = 0.0
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_frombuffer_shares_memory():
    buffer = bytearray(8)
    x = tg.frombuffer(buffer, dtype=tg.int16, offset=2, count=2)
    x[0] = 1
    assert buffer == b"\0\0\1\0\0\0\0\0"


# ------------------------------------------------------------------------------------------------------------ scattered sums


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("with_scipy", [True, False])
def test_rows_are_added_up_the_same_with_and_without_scipy(with_scipy, dtype, monkeypatch):
    if with_scipy:
        pytest.importorskip("scipy")
    else:
        monkeypatch.setattr(accumulate, "_csc_array", lambda: None)
    index = RNG.integers(0, 50, 3000)
    rows = RNG.integers(-8, 8, (3000, 32)).astype(dtype)
    expected = np.zeros((50, 32), dtype)
    np.add.at(expected, index, rows)
    got = accumulate.add_at_rows(50, index, rows)
    assert got.dtype == rows.dtype
    assert got.flags.c_contiguous and got.flags.writeable
    np.testing.assert_array_equal(got, expected)


def test_scipy_is_not_imported_for_small_sums():
    code = "import sys, tapegrad as tg; tg.zeros(9, 4).index_add(0, tg.tensor([1, 1]), tg.ones(2, 4)); "
    code += "sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("shape, key", [
    ((4,), (np.array([0, -1, 0]),)), ((4, 3), (np.array([0, -1, 0]),)), ((4, 3), (np.array([[0, 1], [1, -4]]),)),
    ((4, 3), (slice(None), np.array([2, 2, -1]))), ((4, 3), (np.array([0, 0]), np.array([-1, 2]))),
    ((2, 4, 3), (slice(None), np.array([1, 1]))), ((2, 4, 3), (np.array([1, 1]), slice(0, 2))), ((2, 3), (1, slice(1, 3))),
])  # fmt: skip
@pytest.mark.parametrize("large", [1, 300])
def test_index_add_of_every_form(shape, key, large):
    """The ways for few and for many elements give NumPy's sums; repeated places add up."""
    key = tuple(np.repeat(k, large, axis=-1) if isinstance(k, np.ndarray) else k for k in key)
    x = RNG.standard_normal(shape)
    v = RNG.standard_normal(x[key].shape)
    expected = x.copy()
    np.add.at(expected, key, v)
    index = tuple(t(k) if isinstance(k, np.ndarray) else k for k in key)
    got = tg.zeros(shape, dtype=tg.float64)
    got.copy_(t(x))
    got.index_put_(index, t(v), accumulate=True)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12)
    out_of_place = tg.index_put(t(x), index, t(v), accumulate=True)
    np.testing.assert_allclose(out_of_place.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_steps_in_memory_of_tensors_without_elements():
    assert tg.empty(0, 3).stride() == (3, 1) and tg.empty(2, 0, 3).stride() == (3, 3, 1) and tg.empty(0).stride() == (1,)


def test_numbers_in_a_row_fill_a_part_of_another_tensor():
    x = tg.zeros(2, 3)
    tg.arange(0, 4, out=x.narrow(1, 1, 2))
    assert x.tolist() == [[0, 0, 1], [0, 2, 3]]
    tg.range(1, 4, out=x.narrow(1, 0, 2))
    assert x.tolist() == [[1, 2, 1], [3, 4, 3]]
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        x.resize_(2**40, 2**40)


# -------------------------------------------------------------------------------------- the argument itself, as in PyTorch

SAME = {
    "flatten": lambda x: x.flatten(0, 0),
    "Flatten": lambda x: tg.nn.Flatten()(x),
    "broadcast_tensors": lambda x: tg.broadcast_tensors(x, x[0])[0],
    "sum_to_size": lambda x: x.sum_to_size(x.shape),
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to("cpu", tg.float32),
    "float": lambda x: x.float(),
    "positive": lambda x: +x,
    "real": lambda x: x.real,
    "conj": lambda x: x.conj(),
    "atleast_2d": lambda x: tg.atleast_2d(x),
    "Identity": lambda x: tg.nn.Identity()(x),
    "Dropout in eval": lambda x: tg.nn.Dropout().eval()(x),
    "Dropout(0)": lambda x: tg.nn.Dropout(0.0)(x),
    "asarray": lambda x: tg.asarray(x, requires_grad=True),
    "requires_grad_": lambda x: x.requires_grad_(),
}
VIEWS_OF_IT = {
    "squeeze": lambda x: x.squeeze(),
    "reshape": lambda x: x.reshape(x.shape),
    "view": lambda x: x.view_as(x),
    "expand": lambda x: x.expand(x.shape),
    "broadcast_to": lambda x: tg.broadcast_to(x, x.shape),
    "movedim": lambda x: x.movedim(0, 0),
    "permute": lambda x: x.permute(0, 1),
    "narrow": lambda x: x.narrow(0, 0, 2),
    "chunk": lambda x: x.chunk(1)[0],
    "index": lambda x: x[...],
    "einsum": lambda x: tg.einsum("ij->ij", x),
    "Unflatten": lambda x: tg.nn.Unflatten(1, (3,))(x),
}
COPIES_OF_IT = {
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(tg.float32, copy=True),
    "repeat": lambda x: x.repeat(1, 1),
    "cat": lambda x: tg.cat([x]),
    "pad": lambda x: tg.nn.functional.pad(x, (0, 0), mode="reflect"),
    "pixel_shuffle": lambda x: tg.pixel_shuffle(x[None], 1)[0],
    "clamp": lambda x: x.clamp(-9, 9),
}


@pytest.mark.parametrize("call", SAME.values(), ids=SAME.keys())
def test_argument_itself(call):
    for x in (tg.ones(2, 3), tg.ones(2, 3, requires_grad=True), tg.ones(2, 3, requires_grad=True) * 2):
        assert call(x) is x


@pytest.mark.parametrize("call", VIEWS_OF_IT.values(), ids=VIEWS_OF_IT.keys())
def test_new_view_of_the_argument(call):
    x = tg.ones(2, 3, requires_grad=True)
    y = call(x)
    assert y is not x and not y.is_leaf
    y.data.zero_()
    assert not x.any()


@pytest.mark.parametrize("call", COPIES_OF_IT.values(), ids=COPIES_OF_IT.keys())
def test_copy_of_the_argument(call):
    base = tg.ones(2, 3, requires_grad=True) * 2
    for x in (base, base[...]):  # a view shares its memory with what a view op makes of it
        y = call(x)
        y.data.zero_()
        assert x.all() and y.requires_grad


def test_complex_number_transposed_is_conjugated():
    z = tg.tensor(2.0 + 1.0j)
    assert z.H.item() == z.mH.item() == z.adjoint().item() == 2.0 - 1.0j and z.mT is z
    x = tg.tensor(2.0)
    assert x.H is x and x.mH is x and x.mT is x and x.adjoint() is x


def test_movedim_of_a_number():
    assert tg.tensor(2.0, requires_grad=True).movedim(0, -1).grad_fn.name() == "AliasBackward0"
    with pytest.raises(IndexError, match="Dimension out of range"):
        tg.tensor(2.0).movedim(0, 1)


def test_as_strided_of_a_detached_view_shares_memory():
    x = tg.arange(6.0).reshape(2, 3)
    x.diagonal().detach().as_strided((2,), (1,), 1).fill_(-1.0)
    assert x.tolist() == [[0.0, -1.0, -1.0], [3.0, 4.0, 5.0]]


def test_steps_of_new_dimensions():
    x = tg.zeros(3, 4)
    assert x[None, :, None].stride() == (12, 4, 4, 1)
    assert x[..., None].stride() == (4, 1, 1)
    assert x.unsqueeze(0).stride() == (12, 4, 1)
    assert tg.zeros(1, 4, 2, 1).expand(1, 4, 2, 3).stride() == (8, 2, 1, 0)


def test_ravel_copies_what_is_not_in_row_major_order():
    x = tg.zeros(4, 3)
    x.ravel()[0] = 1
    x[:, :1].ravel()[1] = 1
    x.flatten()[2] = 1
    x[:, :1].flatten()[3] = 1
    assert x.tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]]
