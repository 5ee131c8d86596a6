"""Dtypes of results, and values that a dtype cannot hold: what raises instead of being cut off."""

import pytest

import tapegrad as tg
from tapegrad.nn import functional as F

WHOLE = tg.tensor([1, 2, 3])
REAL = tg.tensor([1.5, 2.5, 3.5])
HALVES = REAL.half()
MASK = tg.tensor([True, False, True, True, False])
POSITIONS = tg.tensor([0, 2, 3])


def test_an_empty_tensor_counts_for_the_dtype_of_cat():
    assert tg.cat([tg.tensor([]), WHOLE]).dtype is tg.float32
    assert tg.cat([tg.zeros(0, dtype=tg.float64), REAL]).dtype is tg.float64
    assert tg.hstack([tg.zeros(0, dtype=tg.int64), tg.zeros(2, dtype=tg.uint8)]).dtype is tg.int64
    nothing = tg.zeros(0, requires_grad=True)
    joined = tg.cat([nothing, tg.ones(2, 3)], 1)
    joined.sum().backward()
    assert joined.shape == (2, 3) and nothing.grad.shape == (0,)


@pytest.mark.parametrize("dtype", [tg.bool, tg.uint8, tg.int32, tg.float16, tg.float32, tg.complex64], ids=str)
def test_dtype_arguments_are_the_dtype_of_the_result(dtype):
    for scan in (tg.cumprod, tg.cumsum):
        assert scan(WHOLE, 0, dtype=dtype).dtype is dtype
    for reduction in (tg.sum, tg.prod, tg.nansum):
        assert reduction(WHOLE, 0, dtype=dtype).dtype is dtype


def test_sums_and_products_are_formed_in_the_dtype_of_out():
    for reduction in (tg.sum, tg.prod, tg.nansum, tg.cumsum, tg.cumprod):
        out = tg.zeros(0, dtype=tg.int32)
        assert reduction(REAL, 0, out=out) is out and out.dtype is tg.int32
    assert tg.sum(REAL, 0, out=tg.zeros((), dtype=tg.int64)).item() == 6  # 1 + 2 + 3
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        tg.exp(REAL, out=tg.zeros(3, dtype=tg.int64))


def written(dtype, index, values):
    x = tg.zeros(5, dtype=dtype)
    x[index] = values
    return x.tolist()


@pytest.mark.parametrize("index", [MASK, POSITIONS, [0, 2, 3], MASK.tolist()], ids=["mask", "index", "list", "bools"])
def test_values_for_masks_and_indices_must_have_the_dtype(index):
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match, got Long for the"):
        written(tg.int64, index, REAL)
    with pytest.raises(RuntimeError, match="Index put requires"):
        written(tg.float32, index, WHOLE)
    assert written(tg.int64, index, WHOLE) == [1, 0, 2, 3, 0]


def test_what_pytorch_converts_as_it_is_written():
    for index in (slice(0, 3), (slice(0, 3), ...)):
        assert written(tg.int64, index, REAL) == [1, 2, 3, 0, 0]
    assert written(tg.int64, 1, tg.tensor(1.5)) == [0, 1, 0, 0, 0]
    assert written(tg.int64, tg.tensor(1), tg.tensor(1.5)) == [0, 1, 0, 0, 0]
    assert written(tg.int64, MASK, tg.tensor(1.5)) == written(tg.int64, MASK, 1.5) == [1, 0, 1, 1, 0]
    assert tg.zeros(5, dtype=tg.int64).index_put((MASK,), tg.tensor(1.5)).tolist() == [1, 0, 1, 1, 0]
    assert tg.zeros(3, dtype=tg.int64).copy_(REAL).tolist() == [1, 2, 3]
    for refused in (tg.tensor(True), POSITIONS):
        with pytest.raises(RuntimeError, match="Index put requires"):
            written(tg.int64, refused, tg.tensor(1.5))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.index_put_((POSITIONS,), REAL),
        lambda x: x.index_put_((POSITIONS,), REAL, accumulate=True),
        lambda x: x.scatter_(0, POSITIONS, REAL),
        lambda x: x.scatter_add_(0, POSITIONS, REAL),
        lambda x: x.scatter_reduce_(0, POSITIONS, REAL, "amax"),
        lambda x: x.masked_scatter_(MASK, REAL),
        lambda x: x.index_add_(0, POSITIONS, REAL),
        lambda x: x.index_copy_(0, POSITIONS, REAL),
        lambda x: x.put_(POSITIONS, REAL),
        lambda x: x.add_(1.5),
        lambda x: x.cumsum_(0, dtype=tg.float32),
        lambda x: x.cumprod_(0, dtype=tg.int32),
    ],
)
def test_writes_that_would_cut_off_digits_raise(write):
    x = tg.zeros(5, dtype=tg.int64)
    with pytest.raises(RuntimeError, match=r"dtype|can't be cast|same scalar type"):
        write(x)
    assert not x.any()


def test_numbers_that_do_not_fit_raise():
    for fill in (
        lambda: tg.full_like(tg.zeros(1, dtype=tg.uint8), -3.0),
        lambda: tg.zeros(1, dtype=tg.uint8).fill_(-0.5),
        lambda: F.threshold(tg.zeros(1, dtype=tg.uint8), 0, 300),
    ):
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8_t without overflow"):
            fill()
    assert tg.full_like(tg.zeros(1, dtype=tg.uint8), -3).item() == 253
    with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type"):
        tg.zeros(3).index_fill_(0, POSITIONS[:1], 1j)
    with pytest.raises(RuntimeError, match=r"inferred dtype c10::complex<float> can't be safely cast"):
        tg.linspace(0, 1j, 3, dtype=tg.float32)
    with pytest.raises(RuntimeError, match="rfftfreq requires a floating point or complex dtype"):
        tg.fft.rfftfreq(3, dtype=tg.int64)
    with pytest.raises(RuntimeError, match="input_lengths must be integral"):
        F.ctc_loss(tg.zeros(3, 1, 2), tg.tensor([[1]]), tg.tensor([2.5]), tg.tensor([1]))
    with pytest.raises(RuntimeError, match="convertible without narrowing"):
        tg.linalg.matrix_norm(tg.ones(2, 2, dtype=tg.float64), dtype=tg.float32)


def test_integers_take_the_whole_part_of_factors():
    assert tg.addcmul(WHOLE, WHOLE, WHOLE, value=2.7).tolist() == [3, 10, 21]
    assert F.threshold(WHOLE, 1.5, 2.7).tolist() == [2, 2, 3]
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        tg.addcdiv(REAL, WHOLE, WHOLE)


SQUARE = tg.ones(3, 3)


@pytest.mark.parametrize(
    "product",
    [
        lambda x, y: tg.addmm(y, x, x),
        lambda x, y: tg.addmv(y[0], x, x[0]),
        lambda x, y: tg.baddbmm(y[None], x[None], x[None]),
        lambda x, y: tg.addbmm(y, x[None], x[None]),
        lambda x, y: tg.inner(x, y),
        lambda x, y: tg.tensordot(x, y, 1),
        lambda x, y: tg.linalg.cross(x, y),
        lambda x, y: F.bilinear(x, x, x[None], y[0, :1]),
        lambda x, y: F.prelu(x, y[0]),
        lambda x, y: F.binary_cross_entropy(x, y),
        lambda x, y: F.cross_entropy(x, tg.tensor([0, 1, 2]), y[0]),
        lambda x, y: tg.linalg.householder_product(x, y[0]),
    ],
)
def test_products_of_two_dtypes_raise(product):
    product(SQUARE, SQUARE)
    with pytest.raises(RuntimeError):
        product(SQUARE, SQUARE.double())


def test_losses_have_the_dtype_that_pytorch_writes_them_into():
    assert F.huber_loss(HALVES, REAL).dtype is F.soft_margin_loss(HALVES, REAL).dtype is tg.float16
    assert F.huber_loss(REAL, HALVES).dtype is F.smooth_l1_loss(HALVES, REAL).dtype is tg.float32
    assert F.binary_cross_entropy_with_logits(REAL, HALVES).dtype is tg.float16
    assert F.poisson_nll_loss(HALVES, WHOLE, full=True).dtype is tg.float16
    assert F.mse_loss(MASK, MASK.float()).item() == 0
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        F.binary_cross_entropy_with_logits(REAL, WHOLE)


def test_other_results():
    assert tg.ldexp(HALVES, WHOLE).dtype is tg.float16
    assert tg.normal(HALVES, REAL).dtype is tg.float16 and tg.normal(REAL, HALVES).dtype is tg.float32
    assert tg.special.chebyshev_polynomial_t(WHOLE, tg.tensor([2.0], dtype=tg.float64)).dtype is tg.float64
    assert tg.all(REAL, dim=()).tolist() == [True] * 3 and tg.any(REAL - 1.5, ()).tolist() == [False, True, True]
    assert F.linear(SQUARE, SQUARE[0]).shape == (3,) and F.linear(SQUARE[0], SQUARE[0]).item() == 3
    mask = tg.zeros(3, 3)
    for dtype in (tg.float16, tg.float64):
        x = SQUARE.to(dtype)
        assert F.scaled_dot_product_attention(x, x, x, mask).dtype is dtype


def test_cosine_similarity_promotes():
    assert F.cosine_similarity(WHOLE, REAL, dim=0).dtype is tg.float32
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point, yet common dtype is Long"):
        F.cosine_similarity(WHOLE, WHOLE, dim=0)


def test_tolerances_for_each_matrix_leave_the_gradient_its_shape():
    x = tg.eye(3, dtype=tg.float64).requires_grad_()
    inverses = tg.linalg.pinv(x, atol=tg.tensor([0.1, 0.2], dtype=tg.float64))
    inverses.sum().backward()
    assert inverses.shape == (2, 3, 3) and x.grad.shape == (3, 3) and x.grad[0, 0].item() == -2


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "cumsum", "cumprod"])
def test_an_out_of_another_dtype_than_asked_for(name):
    x = tg.ones(2, 3)
    out = tg.empty(0, dtype=tg.float64)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        getattr(tg, name)(x, 0, dtype=tg.float32, out=out)
    assert getattr(tg, name)(x, 0, dtype=tg.float64, out=out).dtype == tg.float64


@pytest.mark.parametrize("name, more", [
    ("max", (0,)), ("min", (0,)), ("mode", (0,)), ("median", (0,)), ("nanmedian", (0,)), ("kthvalue", (1, 0)),
    ("topk", (2,)), ("sort", ()), ("cummax", (0,)), ("cummin", (0,)),
])  # fmt: skip
def test_values_and_indices_go_into_an_out_of_their_dtypes_alone(name, more):
    x = tg.arange(9.0).reshape(3, 3)
    for wrong, text in (((tg.float64, tg.int64), "'Float' but got 'Double' for values"),
                        ((tg.float32, tg.int32), "'Long' but got 'Int' for indices")):  # fmt: skip
        with pytest.raises(RuntimeError, match=text):
            getattr(tg, name)(x, *more, out=tuple(tg.empty(0, dtype=d) for d in wrong))
    out = tg.empty(0), tg.empty(0, dtype=tg.int64)
    assert tg.equal(getattr(tg, name)(x, *more, out=out)[0], out[0]) and out[1].numel()


def test_a_single_element_counts_in_full_for_the_dtype_where_it_is_expanded_first():
    vector, single = tg.ones(2), tg.tensor(2.0, dtype=tg.float64)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss):
        for pair in ((vector, single), (single, vector)):
            with pytest.warns(UserWarning, match="target size"):
                assert loss(*pair).dtype is loss(*pair, reduction="none").dtype is tg.float64
    for function in (tg.kron, F.cosine_similarity):
        for pair in ((tg.ones(2, 2), single), (single, tg.ones(2, 2))):
            assert function(*pair).dtype is tg.float64
    assert tg.kron(tg.ones(2, dtype=tg.int32), tg.tensor(2)).dtype is tg.int64
    assert tg.kron(HALVES, tg.tensor(2.0)).dtype is tg.float32
    for equation, given in (("i,->i", (vector, single)), (",i->", (single, vector)), ("i,i,->i", (vector, vector, single))):
        assert tg.einsum(equation, *given).dtype is tg.float64
    assert tg.einsum("i,->i", vector, tg.tensor(2)).dtype is tg.float32


def test_a_single_element_does_not_count_for_the_dtype_of_block_diag():
    joined = tg.block_diag(tg.ones(2), tg.tensor(2.0, dtype=tg.float64))
    assert joined.dtype is tg.float32 and joined.tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    assert tg.block_diag(tg.ones(2), tg.ones(1, dtype=tg.float64)).dtype is tg.float64
    assert tg.block_diag(tg.tensor(1.0), tg.tensor(2.0, dtype=tg.float64)).dtype is tg.float64


def test_lerp_takes_a_single_weight_of_another_dtype():
    a, b = tg.ones(2), tg.full((2,), 2.0)
    for weight, dtype in ((tg.float64, tg.float32), (tg.int64, tg.float32), (tg.complex64, tg.complex64)):
        y = tg.lerp(a, b, tg.tensor(1, dtype=weight))
        assert y.dtype is dtype and y.tolist() == [2.0, 2.0]
    assert a.clone().lerp_(b, tg.tensor(0.5, dtype=tg.float64)).tolist() == [1.5, 1.5]
    assert tg.lerp(a[0], b[0], tg.tensor(0.5, dtype=tg.float64)).dtype is tg.float64
    weight = tg.tensor(0.5, dtype=tg.float64, requires_grad=True)
    tg.lerp(a, b, weight).sum().backward()
    assert weight.grad.dtype is tg.float64 and weight.grad == 2.0
    for end, w in ((b, tg.ones(1, dtype=tg.float64)), (b.double(), tg.tensor(0.5))):
        with pytest.raises(RuntimeError, match="expected dtype float for"):
            tg.lerp(a, end, w)
    with pytest.raises(RuntimeError, match="can't be cast"):
        a.clone().lerp_(b, tg.tensor(0.5j))


def test_numbers_are_not_rounded_to_the_16_bits_of_what_they_are_written_into():
    x = tg.tensor([1000.0], dtype=tg.float16)
    assert (x * 1.0005).tolist() == x.mul_(1.0005).tolist() == [1000.5]
