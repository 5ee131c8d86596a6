"""Indices and views of tensors of few dimensions, and shapes that are changed in place: values and gradients."""

import numpy as np
import pytest

import tapegrad as tg


def leaf(values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def test_a_scalar_bool_index_adds_a_dimension():
    x = tg.arange(3.0)
    x[x.sum() > 0] = 9
    assert x.tolist() == [9, 9, 9]
    x = tg.arange(6.0).reshape(2, 3)
    assert x[True].shape == (1, 2, 3) and x[None, False].shape == (1, 0, 2, 3)
    x = tg.arange(3.0, requires_grad=True)
    y = x[x.sum() > 0]
    y.sum().backward()
    assert y.tolist() == [[0, 1, 2]] and x.grad.tolist() == [1, 1, 1]
    z = tg.tensor(2.0)
    assert z[z > 0].tolist() == [2] and z[z < 0].tolist() == []
    z[z > 0] = 5
    assert z.item() == 5


def test_scalars_take_part_in_indexing_operations():
    x = tg.tensor(2.0)
    assert tg.masked_select(x, x > 0).tolist() == [2]
    assert tg.nonzero(x).shape == (1, 0) and [i.tolist() for i in tg.nonzero(x, as_tuple=True)] == [[0]]
    assert tg.gather(x, 0, tg.tensor(0)).item() == 2 and x.movedim(0, 0).item() == 2 and tg.norm(x, dim=0).item() == 2


def test_what_is_not_repeated_by_expand_may_be_written():
    x = tg.ones(2, 3)
    x.expand(1, 2, 3).add_(1)
    a, _ = tg.broadcast_tensors(x, x)
    a += 1
    assert (x == 3).all()


def test_as_strided_counts_in_elements_of_the_tensor_that_it_is_given():
    z = leaf([1.0, 2.0, 3.0, 4.0]) * (1 + 10j)
    part = z.imag[1:]
    assert part.storage_offset() == 3 and part.as_strided((2, 2), (1, 2)).tolist() == [[20, 30], [3, 4]]
    x = leaf([1.0, 2.0, 3.0, 4.0])
    z = x * (1 + 10j)
    z.imag[1:].as_strided((2,), (4,)).mul_(3)
    assert z.tolist() == [1 + 10j, 2 + 60j, 3 + 30j, 4 + 120j]
    z.imag.sum().backward()
    assert x.grad.tolist() == [10, 30, 10, 30]
    x = leaf([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    pairs = tg.view_as_complex(x.reshape(3, 2) * 1.0)
    with pytest.raises(RuntimeError, match="setStorage"):
        pairs.as_strided((2,), (2,), 2)


@pytest.mark.parametrize(
    "turn",
    [
        lambda t: t.unsqueeze_(0), lambda t: t.t_(), lambda t: t.transpose_(0, 1), lambda t: t.squeeze_(),
        lambda t: t.swapaxes_(0, 1), lambda t: t.as_strided_((2, 3), (3, 1)),
    ],
)  # fmt: skip
def test_a_shape_changed_in_place_under_no_grad_keeps_its_history(turn):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x * 3
    part = y[:]
    for t in (y, part):
        with tg.no_grad():
            turn(t)
        assert t.requires_grad
        assert tg.autograd.grad((t * t).sum(), x, retain_graph=True)[0].tolist() == (18 * x).tolist()


def test_an_element_of_a_tensor_without_dimensions():
    """The gradient of x[None] beside that of another use of x: one of them was lost."""
    for f in (lambda x: x[None] * x, lambda x: x * x[None][0], lambda x: (x * 1)[...] * x, lambda x: x[None, None] * x):
        x = leaf(0.7)
        f(x).sum().backward()
        assert x.grad.item() == 1.4
        assert tg.func.grad(lambda x, f=f: f(x).sum())(0.7) == 1.4
    x = leaf([0.7, 0.8])
    y = x[0]
    (y[None] * y).sum().backward()
    assert x.grad.tolist() == [1.4, 0.0]


def test_errors_of_indices():
    x = tg.ones(4, 4)
    with pytest.raises(TypeError, match="slice indices must be integers or None"):
        x["0":"1"]
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        tg.empty(10, 0)[:, [0, 1]]
    with pytest.raises(RuntimeError, match="dtype of indices should be Long"):
        tg.take_along_dim(x, tg.zeros(4, 1, dtype=tg.int32), dim=1)
    with pytest.raises(TypeError, match="expected 'shape' to be int or sequence of ints"):
        tg.unravel_index(tg.tensor([1]), tg.tensor([1, 2, 3]))
    with pytest.raises(TypeError, match="expected 'shape' sequence to only contain ints"):
        tg.unravel_index(tg.tensor([1]), (1, 2, 2.0))
    with pytest.raises(TypeError, match="flip\\(\\) missing 1 required positional arguments"):
        x.flip()
    with pytest.raises(RuntimeError, match="to have dtype of long, but got"):
        tg.tensor_split(x, tg.tensor(1.5))


def test_bytes_as_a_mask_are_deprecated():
    x = tg.tensor([1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert x[tg.tensor([1, 0, 1], dtype=tg.uint8)].tolist() == [1, 3]


def test_values_that_fit_no_place_are_refused_before_their_dtype_is():
    x = tg.arange(4)
    for value in ([], [1.0, 2.0, 3.0]):
        with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[\d\] .* result of shape \[4\]"):
            x[x > -1] = tg.tensor(value)
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[x > -1] = tg.tensor([1.5, 1.5, 1.5, 1.5])
    for accumulate in (False, True):
        with pytest.raises(RuntimeError, match=r"value tensor of shape \[1\] .* indexing result of shape \[\]"):
            tg.zeros(3).index_put((tg.tensor(1),), tg.tensor([1.0]), accumulate)


def test_elements_cannot_be_deleted():
    x = tg.ones(3)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]


@pytest.mark.parametrize("one", [1, tg.tensor(1)])
def test_numbers_are_applied_before_arrays_that_a_slice_separates(one):
    x = leaf([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]])
    y = x[one, :, [1, 0]]
    assert y.tolist() == [[8, 7], [10, 9], [12, 11]]
    assert x[..., one].shape == (2, 3) and x[[0, 1], one, :].shape == (2, 2) and x[[0], :, [1]].shape == (1, 3)
    assert x[:, one, None, [1, 0]].tolist() == [[[4, 3]], [[10, 9]]] and x[one, True, :, [0]].shape == (1, 3)
    (y * tg.tensor([[1.0, 2.0]])).sum().backward()
    assert x.grad.tolist() == [[[0, 0]] * 3, [[2, 1]] * 3]
    z = x.detach().clone()
    z[one, :, [1, 0]] = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=tg.float64)
    assert z[1].tolist() == [[2, 1], [4, 3], [6, 5]] and z[0].tolist() == x[0].tolist()
    each = tg.func.vmap(lambda t: t[one, :, [1, 0]])(tg.stack([x.detach(), z]))
    assert each.tolist() == [y.tolist(), [[1, 2], [3, 4], [5, 6]]]


def test_a_mask_behind_an_ellipsis_must_fit():
    x = tg.zeros(2, 3)
    assert x[..., tg.tensor([True, False, True])].shape == (2, 2)
    for key in ((..., tg.tensor([True, False])), (..., tg.ones(3, 3) > 0), (None, ..., tg.ones(2) > 0)):
        with pytest.raises(IndexError, match="The shape of the mask"):
            x[key]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 2"):
        x[..., tg.ones(1, 2, 3) > 0]


@pytest.mark.parametrize("key", [[], [0], tg.tensor([[0], [0]]), np.array([0]), tg.zeros(0, dtype=tg.int64)])
def test_an_array_as_index_needs_a_dimension(key):
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        tg.tensor(2.0, requires_grad=True)[key]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 1"):
        tg.zeros(3, requires_grad=True)[:, key]


def test_as_strided_of_a_reversed_leaf_finds_its_elements():
    base = tg.arange(6.0)
    x = base[::-1].detach().requires_grad_()
    y = x.as_strided((3,), (2,))
    assert y.tolist() == [0.0, 2.0, 4.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "repeats", "dim", "size"), [([1.0, 2.0], 2, None, 4), ([[1.0, 2.0]], [2, 1], 1, 3), ([2, 1], None, None, 3)]
)
def test_the_output_size_of_repeat_interleave_is_checked(values, repeats, dim, size):
    x, counts = tg.tensor(values), tg.tensor(repeats) if isinstance(repeats, list) else repeats
    assert x.repeat_interleave(counts, dim, output_size=size).numel() == size
    with pytest.raises(RuntimeError, match=f"Invalid output_size, expected {size} but got {size - 1}"):
        x.repeat_interleave(counts, dim, output_size=size - 1)
