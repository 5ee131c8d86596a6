"""Random programs against finite differences; what the oracle tells apart; programs that were once wrong."""

import functools

import pytest
import random_programs
from random_programs import Program, Step, Wrong, check, make, outcome, shortened, tally

import tapegrad as tg

checked = functools.partial(check, L=tg)


STARTS = [pytest.param(k, marks=[pytest.mark.exhaustive] * (k >= 40)) for k in range(0, 800, 20)]


@pytest.mark.parametrize("start", STARTS)
def test_programs_agree_with_finite_differences(start):
    results, reports = tally(20, start, checked)
    assert not reports, reports[0]
    assert sum(n for orders, n in results.items() if orders == 3) >= 10


def test_all_forms_occur():
    """A form that no program can have is a mistake in its choice."""
    steps = {(step.kind, step.name) for seed in range(400) for step in make(seed).steps}
    names = {name for _, name in steps}
    tables = "VIEWS IN_ORDER OPERATIONS ARRAY_OPERATIONS WRITES ARRAY_WRITES HOOKS WATCHES ALIASES"
    assert {name for table in tables.split() for name in getattr(random_programs, table)} - names == set()
    assert {"source", "from_numpy", "derivative", "drop"} <= {kind for kind, _ in steps}


def test_a_program_is_the_same_for_a_seed():
    assert make(7).text() == make(7).text() != make(8).text()


SCALED = Step("operation", "scaled", ("x",), "a", 2.0)
WRITTEN = Step("writing", "add_number", ("a",), "", 1.0)
WRONG = {  # steps, and lines of the last one that do not what the arrays do
    "a write that a view does not see": (
        [SCALED, Step("view", "same", ("a",), "v"), WRITTEN],
        lambda step, a, b, for_torch: [f"{a} = {a} + 1.0"],
    ),
    "a derivative without its factor": (
        [SCALED],
        lambda step, a, b, for_torch: [f"{step.out} = ({a} * 2.0).detach() + {a} - {a}.detach()"],
    ),
    "a constant that is differentiated": (
        [SCALED, Step("alias", "detach", ("a",), "d")],
        lambda step, a, b, for_torch: [f"{step.out} = {a}[...]"],
    ),
    "a value that is a constant": (
        [SCALED, Step("view", "same", ("a",), "v")],
        lambda step, a, b, for_torch: [f"{step.out} = {a}.detach()"],
    ),
    "a hook that is not called": (
        [Step("hook", "seen", ("x",), "h")],
        lambda step, a, b, for_torch: ["h_p = probe('h', x)", "h = x + h_p"],
    ),
    "a hook that does not change the gradient": (
        [Step("hook", "doubled", ("x",), "h")],
        lambda step, a, b, for_torch: ["h_p = probe('h', x)", "h = x + h_p"],
    ),
    "a hook that sees another gradient": (
        [Step("hook", "seen", ("x",), "h")],
        lambda *_: ["h_p = probe('h', x)", "h = x + h_p", "h.register_hook(lambda g: seen.append(('h', 2 * g)))"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_comparison_finds(name, monkeypatch):
    steps, lines = WRONG[name]
    program = Program(0, steps)
    assert checked(program) == 3
    kind = steps[-1].kind
    right = getattr(Step, f"lines_of_{kind}")
    choose = lambda step, *args: (lines if step is steps[-1] else right)(step, *args)  # noqa: E731
    monkeypatch.setattr(Step, f"lines_of_{kind}", choose)
    with pytest.raises(Wrong):
        checked(program)
    more = Program(0, [Step("operation", "sin", ("w",), "s"), *steps, Step("operation", "tanh", ("w",), "t")])
    assert shortened(more, checked).text() == program.text()


def test_tensors_overwritten_by_constants_of_several_shapes():
    steps = [Step("operation", "scaled", (name,), f"a_{name}", 2.0) for name in ("x", "w")]
    steps += [Step("writing", "zero_", (f"a_{name}",)) for name in ("x", "w")]
    assert outcome(Program(0, steps), checked) == (3, None)
