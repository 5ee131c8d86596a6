"""Views, writes in place and aliased memory: values, first and second gradients, refusals, and what they cost."""

import contextlib
import gc
import sys
import warnings
import weakref

import numpy as np
import pytest
from view_programs import CONSTANTS, PROGRAMS, W, X, error, finite_differences, run

import tapegrad as tg
from tapegrad.core import alias, inplace
from tapegrad.core.op import TABLE
from tapegrad.core.vjp import arrays
from tapegrad.functions.inplace import OVERLAPPING
from tapegrad.tensor import memory

# Loss, its gradient by w, and the gradient by w of half the squared gradient.
EXPECTED = {
    "row_mul": (12.7244, [0.00405, -0.0351232, 0.33275, 0.377914], [0.000462915, -0.0268757, 2.25069, 1.90425]),
    "view_then_read_view": (29.8338, [3.8416, -9.17504, 23.0947, 28.8], [149.988, -856.846, 6279.47, 6893.57]),
    "sibling_views": (14.5427, [1.5481, -5.83265, 30.4458, 22.0263], [16.8519, -186.866, 4014.94, 2161.37]),
    "view_of_view": (12.0195, [0.897669, -4.09045, 30.683, 20.2038], [6.33146, -105.974, 4725.14, 2131.46]),
    "transpose_view": (108.354, [1.7123, -284.498, 7.86434, 8.94816], [13.4237, -349831, 285.109, 289.032]),
    "reshape_view": (203.566, [0, 0, 0, 0], [0, 0, 0, 0]),
    "fill_rows": (9.2047, [0.85615, -3.44207, 19.0317, 14.496], [5.34293, -67.918, 1658.05, 962.974]),
    "fill_elements": (2.47968, [0.0647104, 0.527848, 1.59642, 4.055], [-7.69537, 43.3018, 56.852, 149.427]),
    "setitem_mask": (126.541, [0, -4.46205, 0, 0], [0, -160.031, 0, 0]),
    "setitem_integers": (7.00127, [0.24505, -1.87964, 34.6726, 10.5688], [0.664172, -30.6761, 7276.14, 762.406]),
    "setitem_broadcast": (5.0714, [1, -2.744, 10.648, 5.832], [6, -32.2694, 309.218, 113.374]),
    "self_mul": (25.9132, [2.2013, -6.25554, 18.9017, 28.3944], [70.56, -621.525, 7071.81, 11358]),
    "saved_then_mutated": (190.642, [24.6969, -34.4234, 357.696, 285.738], [3582.61, -8470.78, 517522, 327348]),
    "exp_then_mutated": (1091.17, [191.595, -379.513, 847.042, 987.92], [141586, -591155, 3.75196e+06, 4.62303e+06]),
    "exp_inplace": (581.496, [53.2512, 1.02944, 1792.4, 1032.24], [13580.4, 3.13834, 2.73012e+07, 7.82382e+06]),
    "sin_inplace_view": (9.56277, [1.69317, -3.39973, 7.08973, 8.12201], [13.0863, -50.05, 247.234, 242.841]),
    "view_saved_then_base_mutated": (32.9941, [3.0972, 1.64028, 24.2965, 26.8183], [89.6064, -7.20156, 7220.85, 5822.87]),
    "detach_shares": (6.20796, [0.85, -2.85376, 13.31, 8.63136], [4.58575, -38.0908, 569.154, 276.021]),
    "detach_write_after_save": (9.29661, [0.321056, -2.52992, 34.5425, 17.6127], [1.11936, -51.8915, 6895.48, 1981.73]),
    "detach_copy_snapshot": (147.275, [6.8492, -27.5366, 152.254, 115.968], [124.062, -1631.76, 42520.8, 23343.7]),
    "no_grad_update_between": (24.6323, [5.66057, -8.85022, 5.56291, 11.0491], [54.7224, -22.7761, -164.214, -327.761]),
    "copy_into_view": (25.4503, [3.50605, -6.72757, 17.7447, 14.472], [46.7329, -143.821, 906.091, 649.236]),
    "zero_view": (27.2703, [6.4021, -1.49175, 43.449, 33.9037], [142.922, -5.84759, 5468.69, 3515.95]),
    "iadd_view": (18.1569, [0.280076, -1.25282, 82.3361, 38.9986], [0.878087, -14.7262, 50163.7, 12235.8]),
    "chunk_update": (2.42641, [4.03299, -10.9845, 1.44402, 5.8663], [149.403, -986.462, 66.1066, 650.143]),
    "numpy_alias_after_save": (9.95394, [0.0535094, -0.826442, 27.8643, 9.51084], [0.0208708, -3.91534, 3554.18, 414.529]),
    "buffer_reused": (19.709, [1.60205, -6.88415, 40.2627, 32.1413], [18.2671, -262.346, 7014.89, 4563.74]),
    "running_state": (733.832, [0, 153.673, 126.501, 42.8141], [0, 140988, 214110, 67153.6]),
    "overlap_shift": (2.09643, [0.12815, -0.632218, 4.15858, 3.67183], [0.158817, -3.18103, 121.24, 81.2648]),
    "write_through_transpose_and_reshape": (
        85.6925, [105.699, -366.636, 39.7914, 120.046], [91231.5, -852153, 28620, 343129],
    ),
    "interleaved_row_views": (
        1.56253, [4.47804e-07, -0.00122966, 21.2319, 5.4151], [8.20141e-12, -4.81415e-05, 12040.7, 753.13],
    ),
    "data_rebind": (75.1988, [0.0629297, -1.62706, 116.718, 23.1522], [0.0101327, -5.43645, 23283.3, 886.202]),
    "scalar_view_write": (0.192208, [-0.352893, -1.41929, 0.158422, 0.179925], [-15.2078, -72.5135, 3.871, 4.24863]),
    "detached_view_written": (9.92062, [0.1017, -1.32107, 31.8237, 18.5353], [0.102187, -13.0927, 5933.54, 2035.16]),
    "view_before_and_after_write": (
        5.01901, [0.0211594, -0.483229, 42.365, 6.89863], [0.00804979, -3.10933, 16814.4, 492.75],
    ),
    "setitem_from_own_view": (31.8844, [0.754081, -3.45936, 279.111, 74.5178], [4.4727, -88.0373, 1.51095e+06, 94131.8]),
    "write_under_no_grad": (27.4169, [2.685, -9.21984, 43.923, 29.0434], [32.0231, -273.443, 4100.1, 2119.61]),
    "expand_read": (6.8624, [0.866875, -3.01511, 15.7258, 9.90682], [4.7809, -43.1675, 838.593, 380.593]),
    "view_of_leaf_read": (12.3991, [0, 0, 0, 0], [0, 0, 0, 0]),
    "dead_base": (2.10059, [0, -1.64186, 10.2284, 3.82638], [0, -14.2441, 949.923, 140.23]),
    "iterative_solver": (16.5546, [0, 30.6168, 256.478, 0], [0, 724545, 6.80087e+06, 0]),
    "unfold_read_and_write": (14.645, [9.30931, -41.4487, 11.7001, 12.8869], [1125.84, -6952.7, 1678.64, 1822.05]),
    "strided_window_written": (6.1615, [1.15733, -4.69005, 19.0317, 3.48049], [17.147, -185.01, 1658.05, 148.792]),
    "strided_view_of_view_read": (40.9229, [16.9431, -129.373, 133.186, 0], [10363.1, -125538, 131453, 0]),
    "overlapping_windows_read": (1.05118, [0.229715, -0.512397, 2.62489, 0.325597], [0.50545, -1.94747, 34.2594, 1.29686]),
    "diagonal_written": (5.66138, [1.35922, -5.53711, 14.5904, 19.6949], [12.1273, -223.089, 2191.73, 2689.25]),
    "split_parts_written": (0.602, [-4.87558, -8.64255, -2.31272, 6.05777], [-793.386, -1903.8, -361.87, 1329.62]),
    "movedim_unflatten_written": (10.3247, [0.85615, -3.44207, 23.1043, 14.496], [65.5115, -67.918, 4586.07, 962.974]),
    "index_add_in_place": (166.969, [8.7278, 3.07958, 92.8146, 123.703], [1393.04, 462.274, 91356.6, 168049]),
    "index_add_to_view": (16.6714, [5.75285, 14.5663, 39.6114, 33.8145], [239.443, 4501.84, 8792.05, 8744.99]),
    "index_copy_and_fill": (6.2731, [1.2544, -4.90449, 19.0317, 0], [11.0672, -304.128, 1767.96, 0]),
    "index_put_in_place": (100.141, [6.58738, -26.4416, 209.307, 165.055], [218.694, -4009.87, 201753, 128875]),
    "scatter_in_place": (29.2121, [5.82214, -0.239923, 33.1805, 38.6381], [290.661, -0.69527, 6591.33, 15525.5]),
    "scatter_reduce_in_place": (30.7707, [0.120283, -0.129406, 6.20742, 43.4119], [8.0376, -24.6342, 755.869, 32644.4]),
    "put_in_place": (7.55834, [0.87505, -2.79423, 22.5679, 7.56323], [6.67829, -43.6707, 2175.06, 573.076]),
    "masked_in_place": (17.4578, [1, -3.44207, 0, 14.496], [6, -159.991, 0, 997.803]),
    "turned_in_place": (9.35494, [0.85615, -4.30055, 19.0317, 14.496], [12.4916, -158.438, 1658.05, 962.974]),
    "view_turned_in_place": (158.427, [-0.307244, 194.363, 243.974, 256.181], [19597.4, 134671, 210611, 213982]),
    "zero_dim_written": (
        4961.82, [2733.95, -2516.86, 3955.07, 3235.97], [3.42183e+07, -2.83087e+07, 4.44851e+07, 3.63969e+07],
    ),
    "parts_written_over": (7.40809, [1.72407, -6.17161, 6.92076, 3.82638], [14.5454, -201.101, 143.24, 113.876]),
    "fill_rows_of_rows": (245.967, [7.09101, -3.43417, 945.87, 528.533], [534.322, -67.9923, 7.56334e+06, 2.29118e+06]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    loss, first, second = EXPECTED[name]
    got = [run(tg, PROGRAMS[name], X, W, order)[1] for order in (0, 1, 2)]
    for a, b in zip(got, (loss, first, second), strict=True):
        assert np.allclose(a, b, rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - CONSTANTS))
@pytest.mark.parametrize("order", [1, 2])
def test_program_by_finite_differences(name, order):
    function = PROGRAMS[name]
    assert error(run(tg, function, X, W, order), finite_differences(tg, function, order)) < 1e-6


def leaf(*values, dtype=tg.float64):
    return tg.tensor(values, dtype=dtype, requires_grad=True)


# ----------------------------------------------------------------------------------------- memory layouts of the base


@pytest.mark.parametrize("write", [lambda v: v.mul_(2.0), lambda v: v.copy_(v * 2.0), lambda v: v.zero_()])
def test_write_into_a_view_that_only_this_layout_allows(write):
    """The base lies column by column: reshaping its transpose is a view, reshaping a row-major array so would copy."""
    x = tg.tensor(X, requires_grad=True)
    a = x.T * 1.0
    v = a.T.reshape(12)
    write(v[1:7])
    (g,) = tg.autograd.grad((a * a).sum(), x, create_graph=True)
    factor = 0.0 if a.detach()[1, 0].item() == 0 else 2.0
    expected = 2 * X.copy()
    expected.reshape(12)[1:7] *= factor**2
    assert np.allclose(g.detach().numpy(), expected)
    (h,) = tg.autograd.grad((g * g).sum() / 2, x)
    assert np.allclose(h.numpy(), expected * np.where(expected == 0, 0, expected / X))


def test_diagonal_view_is_written():
    x = tg.tensor(X[:, :3], requires_grad=True)
    a = x * 1.0
    a.diagonal().mul_(3.0)
    (g,) = tg.autograd.grad((a * a).sum(), x)
    assert np.allclose(g.numpy(), 2 * X[:, :3] * np.where(np.eye(3), 9, 1))


# --------------------------------------------------------------------- memory that NumPy code can write to: each alias


def square_gradient(make):
    """Gradient of sum(w * c**2) by w and (c tracked) by c, written to between forward and backward, and not."""
    results = []
    for write in (False, True):
        w = leaf(1.0, 2.0, 3.0)
        c, array = make()
        loss = (w * c * c).sum()
        if write:
            array[...] = 100.0
        results.append(tg.autograd.grad(loss, w)[0].tolist())
    return results


VALUES = [0.5, -1.0, 2.0]


def ndarray_operand():
    a = np.array(VALUES)
    return a, a


def from_numpy():
    a = np.array(VALUES)
    return tg.from_numpy(a), a


def numpy_method():
    t = tg.tensor(VALUES, dtype=tg.float64)
    return t, t.numpy()


def detached_numpy():
    t = leaf(*VALUES)
    return t, t.detach().numpy()


def asarray():
    t = tg.tensor(VALUES, dtype=tg.float64)
    return t, np.asarray(t)


def memory_view():
    t = tg.tensor(VALUES, dtype=tg.float64)
    return t, np.asarray(memoryview(t.numpy()))


def derived_view():
    t = tg.tensor(VALUES, dtype=tg.float64)
    return t, t.numpy()[:]


def view_of_the_tensor():
    t = tg.tensor([*VALUES, 7.0], dtype=tg.float64)
    return t[:3], t.numpy()


def base_of_the_tensor():
    t = tg.tensor([*VALUES, 7.0], dtype=tg.float64)
    return t[:3], t[:3].numpy()


def tensor_of_a_tensor_on_an_array():
    a = np.array(VALUES)
    return tg.as_tensor(tg.from_numpy(a)).detach(), a


ALIASES = [
    ndarray_operand, from_numpy, numpy_method, detached_numpy, asarray, memory_view, derived_view, view_of_the_tensor,
    base_of_the_tensor, tensor_of_a_tensor_on_an_array,
]  # fmt: skip


@pytest.mark.parametrize("make", ALIASES, ids=lambda f: f.__name__)
def test_writes_of_numpy_code_do_not_reach_the_tape(make):
    assert square_gradient(make) == [[0.25, 1.0, 4.0]] * 2


def test_alias_taken_while_the_graph_holds_the_array():
    w, c = leaf(1.0, 2.0, 3.0), tg.tensor(VALUES, dtype=tg.float64)
    loss = (w * c * c).sum()
    n = c.numpy()
    n[:] = 100.0
    assert c.tolist() == [100.0] * 3
    assert tg.autograd.grad(loss, w)[0].tolist() == [0.25, 1.0, 4.0]


@pytest.mark.parametrize("make", ALIASES[1:], ids=lambda f: f.__name__)
def test_aliases_share_memory(make):
    t, array = make()
    array[...] = 5.0
    assert t.tolist() == [5.0] * 3
    with tg.no_grad():
        t.mul_(2.0)
    assert np.all(array[:3] == 10.0)


def test_alias_of_a_bfloat16_tensor_is_known_by_what_is_derived_from_it():
    pytest.importorskip("ml_dtypes")
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    t = tg.tensor([3.0, 4.0]).to(tg.bfloat16)
    part = memory.export(t)[:]
    loss = (w * t).sum()
    part[:] = 0
    assert t.tolist() == [0.0, 0.0]
    assert tg.autograd.grad(loss, w)[0].tolist() == [3.0, 4.0]


def test_array_that_numpy_made_of_a_gradient():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (a + b).sum().backward()
    a.grad.numpy()[:] = 7.0
    assert a.grad.tolist() == [7.0, 7.0]
    assert b.grad.tolist() == [1.0, 1.0]


def test_view_op_inside_a_rule_keeps_shared_memory_in_the_graph():
    def second(write):
        w, x = (tg.tensor(v, dtype=tg.float64, requires_grad=True) for v in ([[1.0, 2], [3, 4]], [[0.5, 1], [2, 3]]))
        y = (w * 1).reshape(2, 2)
        y[0]
        z = ((x @ y) ** 2).sum()
        (g,) = tg.autograd.grad(z, x, create_graph=True)
        del z
        tg.tape().sweep()
        if write:
            with tg.no_grad():
                y.mul_(0.0)
        return [h.tolist() for h in tg.autograd.grad((g * g).sum(), [x, w])]

    assert second(True) == second(False)


def test_expanding_shared_memory_follows_its_writes():
    a = tg.zeros(3)
    rows = a[0:1].expand(2)
    a[0] = 7.0
    assert rows.tolist() == [7.0, 7.0]


# ------------------------------------------------------------------------------------------------------------- refusals


def expect_refusal(text, call, *unchanged, kind=RuntimeError):
    before = [(t.tolist(), t.requires_grad, t.is_leaf) for t in unchanged]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)
    assert [(t.tolist(), t.requires_grad, t.is_leaf) for t in unchanged] == before


LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
NO_GRAD_VIEW = "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
EXPANDED = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)
WRITES = {
    "add_": lambda t: t.add_(1.0), "iadd": lambda t: t.__iadd__(1.0), "copy_": lambda t: t.copy_(tg.zeros(1)),
    "zero_": lambda t: t.zero_(), "fill_": lambda t: t.fill_(2.0), "clamp_": lambda t: t.clamp_(0, 1),
    "exp_": lambda t: t.exp_(), "setitem": lambda t: t.__setitem__(0, 1.0), "masked": lambda t: t.__setitem__(t > 0, 1.0),
    "ellipsis": lambda t: t.__setitem__(..., 1.0), "out": lambda t: tg.add(tg.zeros(2), 1.0, out=t),
}  # fmt: skip
writes = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())


@writes
def test_refused_on_a_leaf(write):
    x = leaf(1.0, 2.0)
    expect_refusal(LEAF, lambda: write(x), x)
    with tg.no_grad():
        write(x)
    assert x.requires_grad and x.is_leaf


@writes
def test_refused_on_a_view_of_a_leaf(write):
    x = leaf(1.0, 2.0, 3.0)
    expect_refusal(LEAF_VIEW, lambda: write(x[:2]), x)


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"setitem"}))
def test_refused_on_an_expanded_tensor(name):
    t = tg.ones(1, dtype=tg.float64)
    expect_refusal(EXPANDED, lambda: WRITES[name](t.expand(2)), t)


OVERLAPPING_BASES = {
    "expanded": lambda: tg.tensor([2.0]).expand(2).detach(), "data": lambda: tg.tensor([2.0]).expand(2).data,
    "windows": lambda: tg.tensor([1.0, 2.0, 3.0]).unfold(0, 2, 1).detach(),
    "array": lambda: tg.from_numpy(np.lib.stride_tricks.as_strided(np.array([1.0, 2.0, 3.0]), (2, 2), (8, 8))),
    "no_grad view": lambda: tg.no_grad()(lambda: leaf(2.0).expand(2))().detach(),
}  # fmt: skip


@pytest.mark.parametrize("write", [lambda t, c: t[:1].mul_(c), lambda t, c: t.__setitem__(0, c), lambda t, c: t[0].copy_(c)])
@pytest.mark.parametrize("base", OVERLAPPING_BASES.values(), ids=OVERLAPPING_BASES.keys())
def test_a_recorded_write_into_a_part_of_repeating_memory_is_refused(base, write):
    """The gradient of the other elements in the same place would be lost, which PyTorch does silently."""
    t, c = base(), tg.tensor(3.0, dtype=base().dtype, requires_grad=True)
    expect_refusal(EXPANDED, lambda: write(t, c), t, c)
    write(t, c.detach())
    assert t.max().item() >= 3.0


def test_part_of_an_expanded_tensor_that_shows_no_element_twice_is_written():
    x = leaf(1.0, 2.0)
    a = x * 2.0
    rows = a.expand(3, 2)
    rows[0] = 5.0 * x[1]
    rows[1, 0] = 7.0
    assert rows.tolist() == [[7.0, 10.0]] * 3 and a.tolist() == [7.0, 10.0]
    assert tg.autograd.grad(a.sum(), x)[0].tolist() == [0.0, 5.0]
    expect_refusal(EXPANDED, lambda: rows.__setitem__(slice(2), 1.0), a)
    expect_refusal(EXPANDED, lambda: rows.__setitem__((slice(None), 0), 1.0), a)


@writes
def test_refused_on_a_view_made_under_no_grad(write):
    x = leaf(1.0, 2.0, 3.0)
    a = x * 1.0
    with tg.no_grad():
        v = a[:2]
    expect_refusal(NO_GRAD_VIEW, lambda: (v.mul_(x[0]), write(v)), a)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("output with shape [2] doesn't match the broadcast shape [3, 2]", lambda t: t.add_(tg.ones(3, 2))),
        ("result type Float can't be cast to the desired output type Long", lambda t: t.long().add_(1.5)),
        ("result type Float can't be cast to the desired output type Long", lambda t: t.long().mul_(tg.ones(2))),
        ("fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.", lambda t: t.fill_(tg.ones(2))),
        ("Variable data has to be a tensor, but got int", lambda t: setattr(t, "data", 3)),
    ],
)
def test_refused_writes(text, call):
    t = tg.tensor([1.0, 2.0])
    expect_refusal(text, lambda: call(t), t, kind=(RuntimeError, TypeError))


def test_refused_data_of_a_leaf():
    x = leaf(1.0, 2.0)
    text = "data set to a tensor that requires gradients must be floating point or complex dtype"
    expect_refusal(text, lambda: setattr(x, "data", tg.tensor([1, 2])), x)


def test_refused_numpy_of_a_tracked_tensor():
    x = leaf(1.0, 2.0)
    text = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    for call in (x.numpy, (x * 2).numpy, lambda: np.asarray(x)):
        expect_refusal(text, call, x)


def test_refused_detach_of_a_view_in_place():
    a = leaf(1.0, 2.0) * 1.0
    expect_refusal("Can't detach views in-place. Use detach() instead.", a[:1].detach_, a)


def test_refused_write_to_a_read_only_array():
    a = np.ones(2)
    a.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = tg.from_numpy(a)
    for write in WRITES.values():
        with pytest.raises(RuntimeError, match="read-only NumPy array"):
            write(t)
    assert a.tolist() == [1.0, 1.0]
    assert t.clone().add_(1.0).tolist() == [2.0, 2.0]


def test_a_refused_write_leaves_the_history_usable():
    x = leaf(1.0, 2.0)
    a = x * 3.0
    with pytest.raises(RuntimeError):
        a.add_(tg.ones(3, 2))
    with pytest.raises((RuntimeError, IndexError)):
        a[5] = 1.0
    with pytest.raises(RuntimeError):
        a[0] = tg.ones(3)
    (a * a).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


# ------------------------------------------------------------------------------------------- semantics of the operations


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda a, w: a.add_(w), ([3.0, 5.0], [1, 1], [1, 1])),
        (lambda a, w: a.sub_(w, alpha=2), ([-3.0, -4.0], [1, 1], [-2, -2])),
        (lambda a, w: a.mul_(w), ([2.0, 6.0], [2, 3], [1, 2])),
        (lambda a, w: a.div_(w), ([0.5, 2 / 3], [1 / 2, 1 / 3], [-1 / 4, -2 / 9])),
        (lambda a, w: a.copy_(w), ([2.0, 3.0], [0, 0], [1, 1])),
        (lambda a, w: a.zero_(), ([0.0, 0.0], [0, 0], [0, 0])),
        (lambda a, w: a.zeros_(), ([0.0, 0.0], [0, 0], [0, 0])),
        (lambda a, w: a.fill_(4.0), ([4.0, 4.0], [0, 0], [0, 0])),
        (lambda a, w: a.fill_(w[0]), ([2.0, 2.0], [0, 0], [2, 0])),
        (lambda a, w: a.clamp_(max=1.5), ([1.0, 1.5], [1, 0], [0, 0])),
        (lambda a, w: a.neg_(), ([-1.0, -2.0], [-1, -1], [0, 0])),
        (lambda a, w: a.pow_(3), ([1.0, 8.0], [3, 12], [0, 0])),
        (lambda a, w: a.masked_fill_(tg.tensor([True, False]), 9.0), ([9.0, 2.0], [0, 1], [0, 0])),
        (lambda a, w: a.__setitem__(0, w[1]), ([3.0, 2.0], [0, 1], [0, 1])),
        (lambda a, w: a.__setitem__(tg.tensor([False, True]), w[0]), ([1.0, 2.0], [1, 0], [1, 0])),
        (lambda a, w: a.__setitem__([1, 0], w), ([3.0, 2.0], [0, 0], [1, 1])),
        (lambda a, w: a.__setitem__([0, 0], w), ([3.0, 2.0], [0, 1], [0, 1])),
        (lambda a, w: a.__setitem__([0], a[[0]] + w[0]), ([3.0, 2.0], [1, 1], [1, 0])),
        (lambda a, w: a.index_add_(0, tg.tensor([0, 0]), w), ([6.0, 2.0], [1, 1], [1, 1])),
    ],
)
def test_written_in_place(write, expected):
    x, w = leaf(1.0, 2.0), leaf(2.0, 3.0)
    a = x * 1.0
    view = a[:]
    for target in (a, None):
        if target is None:  # the same write through a view
            a = x * 1.0
            target = view = a[:]
        write(target, w)
        values, by_x, by_w = expected
        assert a.requires_grad and view.requires_grad
        assert np.allclose(a.tolist(), values) and view.tolist() == a.tolist()
        gx, gw = tg.autograd.grad(a.sum(), [x, w], materialize_grads=True)
        assert np.allclose(gx.tolist(), by_x) and np.allclose(gw.tolist(), by_w)


def test_augmented_item_assignment():
    x, w = leaf(1.0, 2.0, 3.0), leaf(10.0, 20.0)
    a = x * 1.0
    a[[0, 2]] += w
    a[1] *= w[0]
    a[a > 15.0] -= 1.0
    assert a.tolist() == [11.0, 19.0, 22.0]
    gx, gw = tg.autograd.grad(a.sum(), [x, w])
    assert gx.tolist() == [1.0, 10.0, 1.0] and gw.tolist() == [3.0, 1.0]


def test_overwritten_by_a_constant_still_requires_grad():
    x = leaf(1.0, 2.0)
    a = x * 1.0
    a.zero_()
    assert a.requires_grad and not a.is_leaf
    a.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("how", ["plain", "create_graph", "hooks", "anomaly"])
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2)])
def test_tensors_of_several_shapes_overwritten_by_constants(sizes, how):
    """What leads to a constant ends there; it is not added to what leads to another one."""
    x = leaf(1.0, 2.0, 3.0)
    a, b = (x[:n] * 2.0 for n in sizes)
    a.zero_()
    b.fill_(4.0)
    seen = []
    if how == "hooks":
        a.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
        b.grad_fn.register_prehook(lambda outputs: None)
    with tg.autograd.set_detect_anomaly(how == "anomaly"):
        ((a * 3.0).sum() + (b * b).sum() + (x * x).sum()).backward(create_graph=how == "create_graph")
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert seen == [(None,)] * (how == "hooks")


def test_out_takes_the_history_of_the_result():
    x = leaf(1.0, 2.0)
    out = tg.zeros(2, dtype=tg.float64)
    assert tg.mul(x, 3.0, out=out) is out
    assert tg.autograd.grad(out.sum(), x)[0].tolist() == [3.0, 3.0]


def test_assigning_data():
    p = leaf(1.0, 2.0)
    loss = (p * p).sum()
    p.data = tg.tensor([5.0, 6.0], dtype=tg.float64)
    assert p.is_leaf and p.requires_grad and p.tolist() == [5.0, 6.0]
    p.data -= 1.0
    p.data.mul_(2.0)
    assert p.tolist() == [8.0, 10.0]
    loss.backward()
    assert p.grad.tolist() == [2.0, 4.0]


def test_assigning_data_of_a_named_tensor_shares_its_memory():
    p, t = leaf(1.0, 2.0), tg.zeros(2, dtype=tg.float64)
    p.data = t
    t.add_(3.0)
    assert p.tolist() == [3.0, 3.0]


def test_assigning_data_of_a_stale_view_keeps_the_present_history():
    x = leaf(1.0, 2.0)
    a = x * 1.0
    v = a[:1]
    a.mul_(3.0)
    v.data = tg.tensor([7.0], dtype=tg.float64)
    assert tg.autograd.grad(v.sum(), x)[0].tolist() == [3.0, 0.0]


def test_detach_in_place_leaves_views_tracked():
    x = leaf(1.0, 2.0)
    a = x * 2.0
    v = a[:1]
    a.detach_()
    assert not a.requires_grad and a.is_leaf and v.requires_grad
    assert tg.autograd.grad(v.sum(), x)[0].tolist() == [2.0, 0.0]


def test_view_of_an_untracked_tensor_becomes_a_leaf_of_its_own():
    base = tg.zeros(3)
    v = base[:2]
    v.requires_grad_()
    assert v.is_leaf and v.requires_grad and not base.requires_grad
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2.0, 2.0]


def test_views_follow_a_base_that_becomes_a_leaf():
    base = tg.zeros(3)
    v = base[:2]
    base.requires_grad_()
    assert v.requires_grad and not v.is_leaf
    v.sum().backward()
    assert base.grad.tolist() == [1.0, 1.0, 0.0]


def test_requires_grad_off_between_forward_and_backward():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    loss = (x * w).sum()
    x.requires_grad_(False)
    loss.backward()
    assert x.grad is None and w.grad.tolist() == [1.0, 2.0]
    x.requires_grad_()
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_stale_view_as_operand_of_an_unrecorded_write():
    x = leaf(1.0, 2.0)
    a = x * 1.0
    v = a[:1]
    kept = a * a
    with tg.no_grad():
        a.mul_(5.0)
        b = tg.zeros(1, dtype=tg.float64)
        b.add_(v)
    assert b.tolist() == [5.0] and kept.tolist() == [1.0, 4.0]


def test_retained_gradient_is_that_of_the_present_value():
    x = leaf(1.0, 1.0)
    a = x * 2.0
    a.retain_grad()
    a.mul_(3.0)
    (a * 5.0).sum().backward()
    assert a.retains_grad and a.grad.tolist() == [5.0, 5.0] and x.grad.tolist() == [30.0, 30.0]


def test_hooks_stay_with_the_value_they_were_registered_on():
    x, log = leaf(1.0, 1.0), []
    a = x * 2.0
    a.register_hook(lambda g: log.append(("before", g.tolist())))
    a.mul_(3.0)
    a.register_hook(lambda g: log.append(("after", g.tolist())))
    (a * 5.0).sum().backward()
    assert log == [("after", [5.0, 5.0]), ("before", [15.0, 15.0])]


def test_gradients_in_one_block():
    flat = tg.zeros(4, dtype=tg.float64)
    a, b, c = leaf(1.0, 1.0), leaf(1.0, 1.0), leaf(1.0, 1.0, 1.0, 1.0)
    a.grad, b.grad, c.grad = flat[:2], flat[2:], flat
    ((a * 2.0 + b * 3.0).sum() + (c * 5.0).sum()).backward()
    assert flat.tolist() == [7.0, 7.0, 8.0, 8.0]
    assert a.grad.tolist() == [7.0, 7.0]


def test_gradients_that_two_leaves_share():
    a, b, g = leaf(1.0, 1.0), leaf(1.0, 1.0), tg.zeros(2, dtype=tg.float64)
    a.grad = b.grad = g
    (a * 2.0 + b * 3.0).sum().backward()
    assert a.grad is g and b.grad is g and g.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_two_leaves_are_written_independently(create_graph):
    a, b, seed = leaf(1.0, 1.0), leaf(1.0, 1.0), tg.ones(2, dtype=tg.float64)
    (a + b).backward(seed, create_graph=create_graph)
    with tg.no_grad():
        a.grad.zero_()
    assert b.grad.tolist() == seed.tolist() == [1.0, 1.0]
    ga, gb = tg.autograd.grad(a + b, (a, b), seed, create_graph=create_graph)
    with tg.no_grad():
        ga.zero_()
    assert gb.tolist() == seed.tolist() == [1.0, 1.0]


def test_accumulation_is_in_place_and_none_starts_anew():
    x = leaf(1.0, 2.0)
    (x * 2.0).sum().backward()
    g = x.grad
    (x * 2.0).sum().backward()
    assert x.grad is g and g.tolist() == [4.0, 4.0]
    x.grad = None
    (x * 2.0).sum().backward()
    assert x.grad is not g and x.grad.tolist() == [2.0, 2.0] and g.tolist() == [4.0, 4.0]


def test_accumulation_does_not_reach_a_graph_that_saved_the_gradient():
    x = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
    (x * 3.0).backward()
    y = x * x.grad
    (x * 3.0).backward()
    assert isinstance(x.grad.detach().numpy(), np.ndarray) and x.grad.item() == 6.0
    assert tg.autograd.grad(y, x)[0].item() == 3.0


# ----------------------------------------------------------------------------------------------------- what it costs


@contextlib.contextmanager
def counted(monkeypatch):
    """Counts moves of shared blocks and copies of private arrays."""
    moves = []
    unshare, target = alias.Store.unshare, inplace.target

    def counting_unshare(self):
        moves.append(self.root.nbytes)
        unshare(self)

    def counting_target(t):
        result = target(t)
        if result is None:
            moves.append(t._d.nbytes)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(alias.Store, "unshare", counting_unshare)
        patch.setattr(inplace, "target", counting_target)
        yield moves


FILLS = {
    "setitem": lambda b, i, row: b.__setitem__(i, row),
    "view": lambda b, i, row: b[i].copy_(row),
    "augmented": lambda b, i, row: b[i].add_(row),
}


def fill(rows, put, recurrence=False):
    w = tg.ones(64, dtype=tg.float64, requires_grad=True)
    buffer = tg.zeros(rows + 1, 64, dtype=tg.float64)
    for i in range(rows):
        put(buffer, i + 1, tg.tanh(buffer[i] * w) if recurrence else w * float(i))
    return w, buffer


@pytest.mark.counted
@pytest.mark.parametrize("put", FILLS.values(), ids=FILLS.keys())
def test_filling_rows_copies_nothing(put, monkeypatch):
    with counted(monkeypatch) as moves:
        w, buffer = fill(1000, put)
    assert moves == []
    assert tg.autograd.grad(buffer.sum(), w)[0].tolist() == [499500.0] * 64


def large_copies(function, nbytes):
    """How often a call copies an array of at least nbytes, or makes one of zeros."""
    count = 0

    def watch(frame, event, called):
        nonlocal count
        if event == "c_call":
            owner = getattr(called, "__self__", None)
            large = isinstance(owner, np.ndarray) and owner.nbytes >= nbytes
            count += (called.__name__ in ("copy", "astype") and large) or called.__name__ == "zeros"

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("recurrence", [False, True])
@pytest.mark.parametrize("put", FILLS.values(), ids=FILLS.keys())
def test_backward_through_a_filled_buffer_is_linear(put, recurrence):
    _, buffer = fill(1000, put, recurrence)
    loss = buffer.sum()
    assert large_copies(loss.backward, buffer.nbytes) < 5


@pytest.mark.counted
def test_optimiser_steps_copy_nothing_and_leave_parameters_private(monkeypatch):
    steps = {
        "sub_": lambda p: p.sub_(p.grad * 1e-5),
        "data_sub": lambda p: p.data.sub_(p.grad * 1e-5),
        "data_augmented": lambda p: setattr(p, "data", p.data.__isub__(p.grad * 1e-5)),
        "data_rebind": lambda p: setattr(p, "data", p.data - p.grad * 1e-5),
    }
    for name, step in steps.items():
        p = tg.ones(20, 20, requires_grad=True)
        with counted(monkeypatch) as moves:
            for _ in range(50):
                p.grad = None
                (p @ p.t()).sum().backward()
                with tg.no_grad():
                    step(p)
        (p * 1.0).detach()
        assert moves == [], name
        assert p._st is None, name


@pytest.mark.counted
def test_live_row_views_are_written_without_copies(monkeypatch):
    x = tg.ones(200, 8, requires_grad=True)
    a = x * 2.0
    rows = [a[i] for i in range(200)]
    with counted(monkeypatch) as moves:
        for i, row in enumerate(rows):
            row.mul_(float(i))
    assert moves == []
    assert tg.autograd.grad(a.sum(), x)[0][:, 0].tolist() == [2.0 * i for i in range(200)]


def test_a_shared_tensor_that_is_read_for_ever_does_not_grow():
    w = leaf(1.0, 2.0)
    t = tg.tensor([3.0, 4.0], dtype=tg.float64)
    view = t[:1]
    for _ in range(2000):
        w * t
        t.numpy()
    store = t._st.store
    tg.tape().sweep()
    assert not store.is_held() and len(store.exports) <= 64
    assert view.item() == 3.0


@pytest.mark.counted
def test_a_tensor_is_private_again_when_its_views_are_gone():
    x = leaf(1.0, 2.0)
    a = x * 1.0
    v, d = a[:1], a.detach()
    a * a
    assert a._st is not None
    del v, d
    a * a
    assert a._st is None


@pytest.mark.counted
def test_parameter_shares_the_memory_of_its_data():
    t = tg.zeros(2)
    p = tg.nn.Parameter(t)
    with tg.no_grad():
        t.add_(1.0)
    assert p.tolist() == [1.0, 1.0]
    del t
    p * 1.0
    assert p._st is None


def test_views_are_not_garbage_for_the_cyclic_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        a = x * 1.0
        v = a[:1]
        v.mul_(2.0)
        refs = [weakref.ref(a), weakref.ref(v), weakref.ref(a.detach())]
        del a, v
        assert [r() for r in refs] == [None] * 3
    finally:
        gc.enable()


# --------------------------------------------------------------------------------------------- versions, bases, and parts


@pytest.mark.counted
def test_version_counts_writes_in_place():
    x = tg.zeros(3)
    assert x._version == 0
    x.add_(1.0)
    v, d, apart = x[:2], x.detach(), x.data
    assert (v._version, d._version, apart._version) == (1, 1, 0)
    v.mul_(2.0)
    d.zero_()
    apart.mul_(3.0)
    assert (x._version, v._version, d._version, apart._version) == (3, 3, 3, 1)
    x[0] = 1.0
    x[0] += 1.0
    tg.add(x, 1.0, out=x)
    tg.nn.ReLU(inplace=True)(x)
    tg.nn.init.ones_(x)
    assert x._version == 9
    del v, d, apart
    (x * 1.0).sum()
    assert x._st is None and x._version == 9
    x.numpy()[0] = 3.0
    x.data = tg.ones(3)
    tg.autograd.graph.increment_version(x)
    assert x._version == 10 and x.clone()._version == 0


def test_version_of_a_tensor_without_views():
    x = tg.zeros(2)
    x.add_(1.0)
    x.mul_(2.0)
    x.sin_()
    assert x._version == 3


def test_version_of_what_is_recorded_and_of_parameters():
    y = tg.ones(2, 2, requires_grad=True) * 2.0
    y.relu_()
    y.t_()
    y.detach_()
    assert y._version == 2
    p = tg.nn.Parameter(tg.ones(2))
    for k, make in enumerate((tg.optim.SGD, tg.optim.Adam)):
        p.grad = tg.ones(2)
        make([p], 0.1).step()
        assert p._version == k + 1


def test_base_of_a_view():
    b = tg.ones(4, requires_grad=True) * 2.0
    v = b[:2]
    assert v._base is b and v[:1]._base is b and v._is_view() and b.expand(2, 4)._base is b
    assert b._base is None and b.detach()._base is None and v.data._base is None and not b._is_view()
    with tg.no_grad():
        assert b.view(2, 2)._base is b
    del b
    base = v._base
    base.mul_(3.0)
    assert base.tolist() == [6.0] * 4 and v.tolist() == [6.0] * 2 and v._base is base and base.requires_grad
    t = tg.ones(2, 2).t_()
    assert t._base is None and not t._is_view()


def test_parts_of_complex_numbers_are_assigned():
    w = leaf(1.0, 2.0)
    z = tg.zeros(2, dtype=tg.complex128)
    z.real = w
    z.imag = 3.0 * w
    assert z.tolist() == [1 + 3j, 2 + 6j]
    assert tg.autograd.grad((z * z).real.sum(), w)[0].tolist() == [-16.0, -32.0]
    z = tg.zeros(2, dtype=tg.complex64)
    z.imag = 2.0
    z.real = tg.ones(1)
    assert z.tolist() == [1 + 2j] * 2
    x = tg.zeros(2)
    x.real = tg.tensor([3.0, 4.0])
    assert x.tolist() == [3.0, 4.0]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag = 1.0
    with pytest.raises(TypeError, match="can't assign a NoneType to a torch.FloatTensor"):
        z.real = None
    expect_refusal(LEAF_VIEW, lambda: setattr(tg.ones(2, dtype=tg.complex64, requires_grad=True), "real", 1.0))


SHAPE_CHANGES = {
    "unsqueeze_": lambda t: t.unsqueeze_(0), "squeeze_": lambda t: t.squeeze_(), "t_": lambda t: t.t_(),
    "transpose_": lambda t: t.transpose_(0, 0), "swapaxes_": lambda t: t.swapaxes_(0, 0),
    "swapdims_": lambda t: t.swapdims_(0, 0), "as_strided_": lambda t: t.as_strided_((2,), (1,)),
    "twice": lambda t: t.unsqueeze_(0).unsqueeze_(1),
}  # fmt: skip


@pytest.mark.parametrize("change", SHAPE_CHANGES.values(), ids=SHAPE_CHANGES)
def test_views_depend_on_a_base_whose_shape_was_changed_in_place(change):
    def case(first_view):
        a = leaf(1.0, 2.0)
        y = a * 2.0
        v = first_view(y)
        change(y)
        return a, y, v

    def flat(g):
        return g.reshape(-1).tolist()

    a, y, v = case(lambda y: y[:1])
    y.mul_(3.0)
    assert [flat(g) for g in tg.autograd.grad((v * v).sum(), [y, a])] == [[12.0, 0.0], [72.0, 0.0]]
    a, y, v = case(lambda y: y[:1])
    v.mul_(3.0)
    assert [flat(g) for g in tg.autograd.grad((y * y).sum() + v.sum(), [y, a])] == [[13.0, 8.0], [78.0, 16.0]]
    a, y, v = case(lambda y: y[:1])
    y.register_hook(lambda g: g * 2.0)
    y.mul_(3.0)
    y.register_hook(lambda g: g * 5.0)
    v.mul_(2.0)
    y.register_hook(lambda g: g * 7.0)
    (v * v).sum().backward()
    assert a.grad.tolist() == [20160.0, 0.0]
    a, y, v = case(lambda y: y[:1])
    y.retain_grad()
    (v**3).sum().backward(create_graph=True)
    assert flat(y.grad) == [12.0, 0.0] and tg.autograd.grad(y.grad.sum(), a)[0].tolist() == [24.0, 0.0]
    y = tg.zeros(2)
    v = y[:1]
    change(y)
    y += leaf(1.0, 2.0).reshape(y.shape)
    y.register_hook(lambda g: g * 2.0)
    assert tg.autograd.grad((v * v).sum(), y)[0].reshape(-1).tolist() == [2.0 * 2.0, 0.0]


def test_a_constant_written_into_a_base_whose_shape_was_changed_in_place():
    y = leaf(1.0, 2.0, 3.0, 4.0).reshape(2, 2) * 2.0
    v = y.view(4)
    y.t_()
    y.copy_(tg.zeros(2, 2))
    assert y.requires_grad and v.requires_grad and v.tolist() == [0.0] * 4


def test_looking_at_a_view_does_not_move_what_it_retains():
    y = leaf(1.0, 2.0) * 2.0
    v = y[:1]
    v.retain_grad()
    old = (v + 1.0).sum()
    y.mul_(3.0)
    with tg.no_grad():
        v * 1.0
    old.backward()
    assert v.grad.tolist() == [1.0]


def test_every_tensor_of_a_block_has_an_array_of_its_own():
    """By these it is counted who reads the block."""
    y, w = tg.ones(4), tg.ones(3, requires_grad=True)
    t = y[1:]
    v = alias.view(t, TABLE["alias"])
    assert v._d is not t._d
    loss = (t * w).sum()
    y.add_(1.0)
    loss.backward()
    assert w.grad.tolist() == [1.0] * 3 and v.tolist() == [2.0] * 3


def test_strides_over_the_base_of_a_detached_part():
    x, w = tg.arange(24.0).reshape(2, 3, 4).clone(), tg.ones(2, 3, 4, requires_grad=True)
    part = x[1].detach()[1:][1]
    outside = part.as_strided((2,), (1,), 13)
    loss = (x * w).sum()
    x.add_(100.0)  # into a new block, since the tape keeps the old one
    assert outside.tolist() == [113.0, 114.0]
    outside.mul_(2.0)
    assert x[1, 0].tolist() == [112.0, 226.0, 228.0, 115.0]
    loss.backward()
    assert w.grad[1, 0].tolist() == [12.0, 13.0, 14.0, 15.0]


def test_the_last_view_shares_the_block_with_its_storage_and_its_strides():
    """Though no other tensor shares it until they are asked for."""
    x = tg.arange(6.0, requires_grad=True)
    a = (x * 1.0)[2:5]
    whole = a.as_strided((6,), (1,), 0)
    a.mul_(2.0)
    assert whole.tolist() == [0.0, 1.0, 4.0, 6.0, 8.0, 5.0]
    assert tg.autograd.grad(whole.sum(), x)[0].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 1.0]
    b = (tg.arange(6.0) * 1.0)[2:5]
    b.untyped_storage().fill_(0)
    assert b.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.counted
def test_a_result_goes_into_the_memory_of_the_last_view():
    a = (tg.arange(6.0) * 1.0)[2:5]
    at = a.data_ptr()
    tg.add(tg.ones(3), 1.0, out=a)
    assert a.tolist() == [2.0, 2.0, 2.0] and a.data_ptr() == at


def test_a_view_that_changes_its_shape_in_place_stays_a_view_of_its_base():
    y = leaf(1.0, 2.0) * 2.0
    v = y[:]
    w = v[:1]
    v.unsqueeze_(0)
    v.mul_(3.0)
    loss = (w * w).sum()
    assert tg.autograd.grad(loss, [y, v], allow_unused=True, retain_graph=True)[1] is None
    assert tg.autograd.grad(loss, y)[0].tolist() == [12.0, 0.0] and v._base is y


@pytest.mark.counted
def test_a_tensor_without_views_that_changes_its_shape_in_place_is_private_again():
    y = leaf(1.0, 2.0) * 2.0
    y.unsqueeze_(0)
    assert (y * 1.0)._st is None and y._st is None
    z = leaf(1.0, 2.0) * 2.0
    z.unsqueeze_(0)
    seen = weakref.ref(z)
    z.register_hook(lambda g, z=z: g)
    del z  # no entry reads it, so that its hooks belong to it alone
    gc.collect()
    assert seen() is None


def test_views_with_overlapping_elements_are_those_that_writes_look_for():
    def overlaps(op, x, params):
        shown = op.forward(x, *params)
        return np.may_share_memory(shown, x) and arrays.overlaps(shown)

    linear = [op for op in TABLE.values() if op.kind == "linear" and op.arity == op.outputs == 1 and op.samples]
    assert {op.name for op in linear if any(overlaps(op, s[0][0], s[1]) for s in op.samples())} == OVERLAPPING
