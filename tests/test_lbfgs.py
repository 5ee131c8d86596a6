"""Paths of LBFGS, with and without its line search, for functions on which the search extends, brackets and turns back."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.optim import lbfgs

FUNCTIONS = {
    "rosenbrock": lambda w: 100 * (w[1] - w[0] ** 2) ** 2 + (1 - w[0]) ** 2,
    "quartic": lambda w: (w**4).sum() + 0.1 * w[0] * w[1] - w[1],
    "steep": lambda w: 1e3 * (w[0] ** 2 + 0.01 * w[1] ** 2).sqrt() + w[1] ** 2,
    "wave": lambda w: (3 * w).sin().sum() + 0.5 * (w * w).sum(),
    "plane": lambda w: w[0] + 2 * w[1],  # without an end: the search extends as often as it may
    "shallow": lambda w: 1e-3 * ((w[0] - 3) ** 2 + (w[0] * w[1] - 1) ** 2),
}
# (function, first step length, line search): evaluations of three steps and where they end; PyTorch 2.13's
PATHS = {
    ("rosenbrock", 1.0, None): (12, -0.1981486460559, -0.3075173835233),
    ("rosenbrock", 1.0, "strong_wolfe"): (16, -0.5378302256216, 0.2961099017322),
    ("rosenbrock", 0.05, None): (12, -1.114563924848, 1.042736442317),
    ("rosenbrock", 0.05, "strong_wolfe"): (16, -1.034707904739, 1.070931501485),
    ("rosenbrock", 20.0, "strong_wolfe"): (17, 1.454008193467, 2.124192407185),
    ("quartic", 1.0, None): (9, -0.2513593673903, 0.6351963080914),
    ("quartic", 1.0, "strong_wolfe"): (11, -0.2513593673903, 0.6351963080914),
    ("quartic", 0.05, None): (12, -0.9738392500989, 0.8731983843281),
    ("quartic", 0.05, "strong_wolfe"): (15, -0.6622536976169, 0.7298536964506),
    ("quartic", 20.0, "strong_wolfe"): (15, -0.2507733546682, 0.6363538333641),
    ("steep", 1.0, "strong_wolfe"): (17, -0.003692587786536, -0.07844883301765),
    ("steep", 0.05, "strong_wolfe"): (16, 0.01612443629168, 0.848495482209),
    ("steep", 20.0, "strong_wolfe"): (17, -0.0401811387018, 0.571453967151),
    ("wave", 1.0, None): (7, -0.4710391660468, 1.407958070038),
    ("wave", 1.0, "strong_wolfe"): (8, -0.4710447622204, 1.407954645886),
    ("wave", 0.05, None): (12, -0.5084346153615, 1.281071435109),
    ("wave", 0.05, "strong_wolfe"): (16, -0.475739123389, 1.405014132795),
    ("wave", 20.0, "strong_wolfe"): (15, -0.4710433192683, 1.40795683042),
    ("plane", 0.05, "strong_wolfe"): (18, -1092.95, -2182.5),
    ("shallow", 1.0, None): (12, 3.000013130244, 0.3333235739116),
    ("shallow", 1.0, "strong_wolfe"): (15, 2.99962123078, 0.3327758435849),
    ("shallow", 0.05, None): (12, 0.4911989329354, 1.646978259753),
    ("shallow", 0.05, "strong_wolfe"): (16, 2.226979919976, 0.2522556103502),
    ("shallow", 20.0, "strong_wolfe"): (18, -0.2621824692346, -13.81789234314),
}


@pytest.mark.parametrize(("name", "lr", "search"), PATHS)
def test_path(name, lr, search):
    w = tg.tensor([-1.2, 1.0], dtype=tg.float64, requires_grad=True)
    optimizer = tg.optim.LBFGS([w], lr=lr, max_iter=4, history_size=3, line_search_fn=search)
    evaluations = []

    def closure():
        optimizer.zero_grad()
        loss = FUNCTIONS[name](w)
        loss.backward()
        evaluations.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    count, *end = PATHS[name, lr, search]
    assert len(evaluations) == count
    np.testing.assert_allclose(w.tolist(), end, rtol=1e-8)


def test_minimiser_of_a_cubic():
    """Of t**3 - 3 * t it is 1, from points in either order; bounds hold."""

    def between(a, b, bounds=None):
        at = [(t, t**3 - 3 * t, 3 * t * t - 3) for t in (a, b)]
        return lbfgs._cubic_interpolate(*at[0], *at[1], bounds)

    assert between(0.25, 2.0) == pytest.approx(1.0) and between(2.0, 0.25) == pytest.approx(1.0)
    assert between(0.25, 2.0, (1.25, 3.0)) == 1.25 and between(2.0, 0.25, (-1.0, 0.5)) == 0.5


def test_a_line_falls_up_to_a_bound():
    falling, rising = ((0.0, 0.0, -2.0), (1.0, -2.0, -2.0)), ((0.0, 0.0, 2.0), (1.0, 2.0, 2.0))
    assert lbfgs._cubic_interpolate(*falling[0], *falling[1], (0.5, 10.0)) == 10.0
    assert lbfgs._cubic_interpolate(*rising[0], *rising[1], (0.5, 10.0)) == 0.5
    assert lbfgs._cubic_interpolate(*falling[1], *falling[0], (0.5, 10.0)) == 10.0


@pytest.mark.parametrize("ends", [(1.0, 2.0), (2.0, 1.0)])
def test_a_second_length_near_an_end_is_moved_inwards(ends):
    bracket = [lbfgs.Point(t, 0.0, None, 0.0) for t in ends]
    assert lbfgs._inside(1.5, bracket, True) == (1.5, False)
    assert lbfgs._inside(1.05, bracket, False) == (1.05, True)
    assert lbfgs._inside(1.05, bracket, True) == (1.1, False) and lbfgs._inside(1.0, bracket, False) == (1.1, False)
    assert lbfgs._inside(1.95, bracket, True) == (1.9, False) and lbfgs._inside(2.0, bracket, False) == (1.9, False)


def test_the_search_evaluates_as_often_as_it_may():
    lengths = []

    def falling(x, t, d):
        lengths.append(t)
        return -t, tg.tensor([-1.0])

    found = lbfgs._strong_wolfe(falling, None, 1.0, tg.tensor([1.0]), 0.0, tg.tensor([-1.0]), -1.0, max_ls=2)
    assert lengths == [1.0, 10.0, 100.0] and found[3] == 3


@pytest.mark.parametrize("least", [0.3, 1.1])
def test_the_bracket_is_kept_where_the_new_end_falls_towards_the_other(least):
    """Else the minimum would lie outside, whichever end is the lower one."""

    def valley(x, t, d):
        value = (1 + 100 * (float(t) - least) ** 2) ** 0.5
        return value, tg.tensor([100 * (float(t) - least) / value], dtype=tg.float64)

    direction = tg.ones(1, dtype=tg.float64)
    value, slope = valley(None, 0.0, None)
    found = lbfgs._strong_wolfe(valley, None, 1.3, direction, value, slope, float(slope), c2=0.01)
    assert abs(found[2] - least) < 1e-4 and found[3] == 4


def test_a_parameter_without_a_gradient_stays():
    w, unused = tg.tensor([3.0], requires_grad=True), tg.tensor([5.0], requires_grad=True)
    optimizer = tg.optim.LBFGS([unused, w], lr=0.5, max_iter=1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert unused.tolist() == [5.0] and w.tolist() == [2.5]
