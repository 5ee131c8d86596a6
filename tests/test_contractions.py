"""einsum, tensordot and the products made of them: values against NumPy, derivatives against finite differences."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.functions import einsum as module

EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "ii->": [(3, 3)],
    "ii->i": [(3, 3)],
    "iij->j": [(2, 2, 3)],
    "iii->i": [(2, 2, 2)],
    "nd,nn->d": [(2, 2), (2, 2)],
    "ij->ji": [(2, 3)],
    "ij->": [(2, 3)],
    "i,i": [(3,), (3,)],
    "i,j->ij": [(3,), (4,)],
    "ij,ij->i": [(3, 4), (3, 4)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bhqd,bhkd->bhqk": [(2, 2, 3, 4), (2, 2, 5, 4)],
    "...ij,...jk->...ik": [(2, 1, 3, 4), (5, 4, 2)],
    "...,...": [(2, 3), (3,)],
    "i...->...": [(2, 3)],
    "ijk,kl,lm->im": [(2, 3, 4), (4, 5), (5, 2)],
    "ij,jk,ki->": [(2, 3), (3, 4), (4, 2)],
    "a,b,c,d->abcd": [(2,), (3,), (2,), (2,)],
    "ab,cd->": [(2, 3), (2, 2)],
    "b,bij,j->bi": [(2,), (2, 3, 4), (4,)],
    " i j , j k -> k i": [(2, 3), (3, 4)],
    "ij,jk->ik ": [(0, 3), (3, 2)],
}


def values(shapes, kind="real"):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(s) + (1j * rng.standard_normal(s) if kind == "complex" else 0.0) for s in shapes]


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation, kind):
    operands = values(EQUATIONS[equation], kind)
    result = tg.einsum(equation, *[tg.tensor(x) for x in operands])
    np.testing.assert_allclose(result.numpy(), np.einsum(equation.replace(" ", ""), *operands), rtol=1e-12, atol=1e-12)
    testing.check_grads(lambda *xs: tg.einsum(equation, *xs), operands, order=2)


@pytest.mark.parametrize("equation,shapes,full", [
    ("i,i", [(3,), (1,)], [(3,), (3,)]), ("ij,j->i", [(2, 1), (3,)], [(2, 3), (3,)]),
    ("ij,jk->ik", [(1, 3), (1, 2)], [(1, 3), (3, 2)]), ("ij,ij->ij", [(1, 3), (2, 1)], [(2, 3), (2, 3)]),
])  # fmt: skip
def test_labels_of_size_1_broadcast(equation, shapes, full):
    operands = values(shapes)
    wide = [np.broadcast_to(x, s) for x, s in zip(operands, full, strict=True)]
    result = tg.einsum(equation, *[tg.tensor(x) for x in operands])
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *wide), rtol=1e-12, atol=1e-12)
    testing.check_grads(lambda *xs: tg.einsum(equation, *xs), operands)


def test_einsum_forms():
    x, y = tg.randn(2, 3), tg.randn(3, 4)
    expected = (x @ y).tolist()
    assert tg.einsum("ij,jk->ik", [x, y]).tolist() == expected
    assert tg.einsum(x, [0, 1], y, [1, 2], [0, 2]).tolist() == expected
    assert tg.einsum(x, [0, 1], y, [1, 2]).tolist() == expected
    assert tg.einsum(x, [..., 30], [..., 30]).tolist() == x.tolist()


def test_one_operand_without_sums_gives_a_view():
    for equation, left in (("ij->ij", 0.0), ("ij->ji", 0.0), ("ii->i", 6.0)):
        x = tg.ones(3, 3)
        tg.einsum(equation, x).zero_()
        assert x.sum().item() == left
    x = tg.ones(3, 1)
    tg.einsum("ij->i", x).zero_()
    assert x.sum().item() == 3
    x = tg.ones(2, 2, requires_grad=True)
    assert tg.einsum("ij->ji", x).grad_fn.name() == "PermuteBackward0"


def test_matrix_products_are_products_of_matrices():
    """What has no batch runs as one 2-D product, so that BLAS sees it whole."""
    plan = module.plan("bij,jk->bik", ((5, 2, 3), (3, 4)))
    (step,) = plan.contractions
    assert (step.op, step.shapes) == ("matmul", ((10, 3), (3, 4)))


def test_plans_are_kept():
    module.plan.cache_clear()
    for _ in range(3):
        tg.einsum("ij,jk->ik", tg.ones(2, 3), tg.ones(3, 4))
    assert module.plan.cache_info().misses == 1


def test_three_operands_are_contracted_in_the_cheap_order():
    plan = module.plan("ij,jk,kl->il", ((100, 2), (2, 100), (100, 2)))
    assert (plan.contractions[0].first, plan.contractions[0].second) == (1, 2)


@pytest.mark.parametrize("equation,shapes,text", [
    ("ij,jk->ik", [(2, 3)], "fewer operands were provided than specified in the equation"),
    ("ij->ij", [(2, 3), (2, 3)], "more operands were provided than specified in the equation"),
    ("ij->ik", [(2, 3)], "output subscript k does not appear in the equation for any input operand"),
    ("i->i", [(2, 3)], r"the number of subscripts in the equation \(1\) does not match the number of dimensions \(2\) for "
     "operand 0 and no ellipsis was given"),
    ("ij,jk->ik", [(2, 3), (4, 4)],
     "subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"),
    ("ij,jk->ii", [(2, 3), (3, 4)], "output subscript i appears more than once in the output"),
    ("ii->i", [(2, 3)], "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    ("i1->i", [(2, 3)], "subscripts must be in"),
])  # fmt: skip
def test_einsum_errors(equation, shapes, text):
    with pytest.raises(RuntimeError, match=text):
        tg.einsum(equation, *[tg.ones(*s) for s in shapes])


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("dims,shapes", [
    (2, [(2, 3, 4), (3, 4, 2)]), (1, [(2, 3), (3, 2)]), (0, [(2, 3), (2,)]), (([0, 2], [1, 0]), [(2, 3, 4), (4, 2, 5)]),
])  # fmt: skip
def test_tensordot(dims, shapes, kind):
    x, y = values(shapes, kind)
    result = tg.tensordot(tg.tensor(x), tg.tensor(y), dims)
    np.testing.assert_allclose(result.numpy(), np.tensordot(x, y, dims), rtol=1e-12, atol=1e-12)
    testing.check_grads(lambda x, y: tg.tensordot(x, y, dims), (x, y))


def test_tensordot_errors():
    with pytest.raises(RuntimeError, match="need to match, but first has size 3 in dim 1 and second has size 2 in dim 0"):
        tg.tensordot(tg.ones(2, 3), tg.ones(2, 3), 1)
    with pytest.raises(RuntimeError, match="both dimension lists should have same length"):
        tg.tensordot(tg.ones(2, 3), tg.ones(2, 3), ([0], [0, 1]))


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("f,reference,shapes", [
    (tg.kron, np.kron, [(2, 3), (3, 2)]), (tg.kron, np.kron, [(2, 3), (3,)]), (tg.trace, np.trace, [(3, 4)]),
    (tg.cross, np.cross, [(2, 3), (2, 3)]), (lambda x, y: tg.cross(x, y, -1), np.cross, [(2, 3), (1, 3)]),
    (tg.outer, np.outer, [(2,), (3,)]),
    (lambda x, y: tg.addcmul(x, x, y, value=0.5), lambda x, y: x + 0.5 * x * y, [(2, 3), (3,)]),
    (lambda x, y: tg.addcdiv(x, y, x, value=0.5), lambda x, y: x + 0.5 * y / x, [(2, 3), (3,)]),
    (lambda x, w: tg.nn.functional.linear(x, w), lambda x, w: x @ w.T, [(3,), (2, 3)]),
    (lambda x, w, b: tg.nn.functional.linear(x, w, b), lambda x, w, b: x @ w.T + b, [(3,), (2, 3), (2,)]),
])  # fmt: skip
def test_products(f, reference, shapes, kind):
    operands = values(shapes, kind)
    np.testing.assert_allclose(f(*[tg.tensor(x) for x in operands]).numpy(), reference(*operands), rtol=1e-12, atol=1e-12)
    testing.check_grads(f, operands)


SEVERAL = {
    "ij,jk,kl->il": [(100, 2), (2, 100), (100, 2)],
    "ab,bc,cd,de->ae": [(2, 3), (3, 4), (4, 2), (2, 5)],
    "...a,ab,...b->...": [(2, 3), (3, 4), (2, 4)],
    "a,b,c,d,e,f,a->f": [(2,), (3,), (2,), (3,), (2,), (3,), (2,)],
}


@pytest.mark.parametrize("equation", SEVERAL)
@pytest.mark.parametrize("installed", [True, False])
def test_the_order_by_opt_einsum_and_without(equation, installed, monkeypatch):
    paths = pytest.importorskip("opt_einsum.paths") if installed else None
    asked = []

    def imported(name):
        if not installed:
            raise ImportError(name)
        asked.append(name)
        return paths

    monkeypatch.setattr(module.importlib, "import_module", imported)
    module.plan.cache_clear()
    operands = values(SEVERAL[equation])
    result = tg.einsum(equation, *[tg.tensor(x) for x in operands])
    module.plan.cache_clear()
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *operands), rtol=1e-10, atol=1e-12)
    assert len(asked) == installed
