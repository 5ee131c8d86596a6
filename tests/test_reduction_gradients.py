"""Gradients of reductions, scans and ties, where other libraries went wrong (see gradient_cases.py)."""

import pytest
from gradient_cases import JX, PT, TF, TG, attempt, check, con, grad, inf, leaf, registry

import tapegrad as T

CASES, case = registry()


@case(
    "S1",
    "prod Hessian with two zeros",
    [(PT, "issues", 106789)],
    "first gradient (all 0) comes back detached, so second derivatives read as 0",
    "d2/dx2dx3 = 2*3",
)
def prod_hessian_with_two_zeros():
    x = leaf([2.0, 3.0, 0.0, 0.0])
    (g,) = grad(x.prod(), x, create_graph=True)
    return [(g.requires_grad, True), (attempt(lambda: grad(g[2], x)[0]), [0, 0, 0, 6])]


@case(
    "S1",
    "cumprod with zeros",
    [(TF, "issues", 119430), (TF, "issues", 3862), ("tracel-ai/burn", "pull", 5141), ("pymc-devs/pytensor", "pull", 1911)],
    "division by x gives NaN, or 0 after a silent nan->0",
    "prefix product times reverse recurrence, no division",
)
def cumprod_with_zeros():
    x = leaf([3.0, 0.0, 2.0])
    x.cumprod(0).sum().backward()
    return [(x.grad, [1, 9, 0])]


@case(
    "S1",
    "cummax sends each output to the index it was read from",
    [(PT, "pull", 26637)],
    "first version of the backward lost the repeats",
    "counts of use",
)
def cummax_sends_each_output_to_the_index_it_was_read_from():
    x = leaf([3.0, 1.0, 2.0])
    T.cummax(x, 0)[0].sum().backward()
    return [(x.grad, [3, 0, 0])]


@case(
    "S1",
    "elementwise maximum of equal tensors",
    [(PT, "issues", 56734)],
    "both or only one side gets the whole gradient",
    "1/2 + 1/2; maximum(a, a) has slope 1",
)
def elementwise_maximum_of_equal_tensors():
    a, b = leaf(1.0), leaf(1.0)
    T.maximum(a, b).backward()
    c = leaf(2.0)
    T.maximum(c, c).backward()
    return [(a.grad, 0.5), (b.grad, 0.5), (c.grad, 1)]


@case(
    "S1",
    "tie count overflows half precision",
    [(TG, "issues", 12296)],
    "number of ties counted in float16 becomes inf, gradient 0",
    "1/70000 each (count in a wide type)",
)
def tie_count_overflows_half_precision():
    x = T.ones(70000, dtype=T.float16, requires_grad=True)
    x.amax().backward()
    return [(abs(float(x.grad[0]) - 1 / 70000) < 1e-6, True)]


@case(
    "S4",
    "std of a constant vector / of one element",
    [(PT, "issues", 4320), (JX, "issues", 11716), (TF, "issues", 56830)],
    "0/0 = NaN from the square root",
    "0 is a subgradient (or document NaN)",
)
def std_of_a_constant_vector_of_one_element():
    x = leaf([1.0, 1.0, 1.0])
    x.std().backward()
    y = leaf([7.0])
    y.std(correction=0).backward()
    return [(x.grad, [0, 0, 0]), (y.grad, [0])]


@case(
    "S2",
    "logsumexp of a masked-out larger entry",
    [(JX, "issues", 23842)],
    "shift by the global max instead of the masked max: NaN",
    "[1, 0]",
)
def logsumexp_of_a_masked_out_larger_entry():
    x = leaf([0.0, 100.0])
    T.where(T.tensor([True, False]), x, con(-inf)).logsumexp(0).backward()
    return [(x.grad, [1, 0])]


@case(
    "S2",
    "fully masked softmax row, not used in the loss",
    [(PT, "issues", 41508), (PT, "pull", 131060), (PT, "pull", 196170)],
    "0 * NaN from the dead row poisons shared parameters",
    "0 for the dead row; p(1-p) in the live one",
)
def fully_masked_softmax_row_not_used_in_the_loss():
    s = leaf([[1.0, 2.0], [-inf, -inf]])
    s.softmax(1)[0, 0].backward()
    q = 0.19661193324148185
    return [(s.grad, [[q, -q], [0, 0]])]


@pytest.mark.parametrize("title", CASES)
def test_case(title):
    check(CASES[title])
