"""A program is trusted after it agreed with the function at the tracing call and at a call with other values."""

import functools
import time
import types
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim

pytest.importorskip("jax")
from tapegrad.core.op import TABLE, FlatIndex
from tapegrad.jit import verify
from tapegrad.jit.places import held
from tapegrad.jit.verify import Comparison
from tapegrad.programs.program import Ref

X = tg.tensor([1.0, 2.0, 3.0])


def warned(call, *arguments):
    """The results of calls, and the text of their only warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [call(*a) for a in arguments]
    (warning,) = caught
    return results, str(warning.message)


def leak(t):
    """A way to read values that traces do not notice, as a fault of tapegrad would be."""
    return float(t._d)


def test_values_that_were_baked_in_are_found_when_they_change():
    compiled = tg.compile(lambda x, t: x * leak(t))
    two, three = tg.tensor(2.0), tg.tensor(3.0)
    compiled(X, two), compiled(X, two)
    for x in (X, X + 1):  # the other argument may change before
        assert compiled(x, two).tolist() == (x * 2).tolist()
    results, message = warned(compiled, (X, three), (X, two), (X, three))
    assert [r.tolist() for r in results] == [[3.0, 6.0, 9.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]
    line = compiled.function.__code__.co_firstlineno
    assert f"mul() at {__file__}:{line} (compiled = tg.compile(lambda x, t: x * leak(t))) has another operand" in message


def test_a_clock_is_found():
    compiled = tg.compile(lambda x: x.double() * time.perf_counter())
    results, message = warned(compiled, *[(X,)] * 6)
    assert "mul() at" in message
    assert len({r[0].item() for r in results}) == 6


def test_branches_on_baked_values_are_found():
    compiled = tg.compile(lambda x: x.sin() if leak(x) > 0 else x + 1)
    positive, negative = tg.tensor(1.0), tg.tensor(-1.0)
    results, message = warned(compiled, (positive,), (positive,), (negative,), (positive,))
    assert [r.item() for r in results] == [np.sin(np.float32(1)), np.sin(np.float32(1)), 0.0, np.sin(np.float32(1))]
    assert "was sin() and is add()" in message


def test_wrong_kernels_are_found_at_the_tracing_call(monkeypatch):
    run = verify.lower.backend.call
    wrong = lambda op, *rest: run(op, *rest) * (1.001 if op.name == "cosh" else 1)  # noqa: E731
    monkeypatch.setattr(verify.lower.backend, "call", wrong)
    compiled = tg.compile(lambda x: (x.sin().cosh() * 2).sum())
    results, message = warned(compiled, (X,), (X,))
    assert results[0].tolist() == results[1].tolist() == pytest.approx((X.sin().cosh() * 2).sum().item(), rel=1e-6)
    assert "cosh() at" in message
    assert "gives other numbers" in message


def test_rounding_that_grows_is_no_difference():
    """The sign of a gradient that is nothing but rounding decides Adam's first step."""
    w = nn.Parameter(tg.tensor([0.1, 0.2, 0.3]))
    optimizer = optim.Adam([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (((x + w) - w).exp().sin() - x.exp().sin()).sum().backward()
        optimizer.step()

    compiled = tg.compile(step, fullgraph=True)
    for i in range(4):
        compiled(X / (3 + i))


def test_random_draws_state_and_gradients_are_verified():
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    states = []
    for wrap in (lambda f: f, lambda f: tg.compile(f, fullgraph=True)):
        tg.manual_seed(0)
        for p in net.parameters():
            nn.init.ones_(p)
        optimizer.state.clear()

        @wrap
        def step(x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(tg.rand(5, 3)).item() for _ in range(5)]
        states.append([*losses, *net[0].weight.detach().flatten().tolist()])
    assert states[1] == pytest.approx(states[0], rel=1e-5)


def program(code=(), **constants):
    """Operations and constants, as a comparison reads them."""
    return types.SimpleNamespace(code=list(code), constants={int(name[1:]): np.asarray(v) for name, v in constants.items()})


def instruction(op, *operands, results=()):
    return types.SimpleNamespace(op=TABLE[op], operands=operands, nondiff_operands=(), params=(), results=results)


def test_programs_with_other_constants_differ():
    nan = np.array([np.nan, 1.0])
    two, same, other, wide = (program(_0=v) for v in (nan, nan.copy(), nan + 1, nan.astype(np.float32)))
    assert Comparison(two, same, ()).same(Ref(0), Ref(0))
    for b in (other, wide, program()):
        assert not Comparison(two, b, ()).same(Ref(0), Ref(0))
        assert not Comparison(b, two, ()).same(Ref(0), Ref(0))


def test_state_corresponds_where_it_is_found_in_the_same_way():
    empty, sources = program(), ({0: "w", 1: "b"}, {5: "w", 6: "c"})
    assert Comparison(empty, empty, (), sources).same(FlatIndex(Ref(0)), FlatIndex(Ref(5)))
    for a, b in ((Ref(0), Ref(6)), (Ref(1), Ref(6)), (Ref(0), Ref(0)), (Ref(2), Ref(7))):
        assert not Comparison(empty, empty, (), sources).same(a, b)


def test_programs_with_more_operations_differ():
    sin, cos = instruction("sin", Ref(0), results=(1,)), instruction("cos", Ref(1), results=(2,))
    other = instruction("sin", Ref(2), results=(1,))
    renamed = program([instruction("sin", Ref(5), results=(7,)), instruction("cos", Ref(7), results=(1,))])
    long, short = program([sin, cos]), program([sin])
    assert Comparison(long, program([sin, cos]), [(0, 0)]).difference() is None
    assert Comparison(long, renamed, [(0, 5)]).difference() is None
    for a, b in ((long, short), (short, long)):
        assert Comparison(a, b, [(0, 0)]).difference() == (cos, "is there in one call only")
    assert Comparison(short, program([cos]), [(0, 0)]).difference() == (sin, "was sin() and is cos()")
    assert Comparison(short, program([other]), [(0, 0)]).difference() == (sin, "has another operand")


def test_operations_and_functions_that_each_call_makes_are_the_same_by_name_and_code():
    def made():
        return instruction("sin", Ref(0)), lambda x: x

    (one, f), (other, g) = made(), made()
    for i in (one, other):
        i.op = types.SimpleNamespace(name="made", outputs=1)
    comparison = Comparison(program([one]), program([other]), [(0, 0)])
    assert comparison.difference() is None
    assert comparison.same(f, g)
    assert not comparison.same(f, lambda x: x)
    other.op.outputs = 2
    assert comparison.difference() == (one, "was made() and is made()")


def test_values_of_different_types_are_not_the_same():
    same = Comparison(program(), program(), ()).same
    assert same((1, [2.0, np.nan]), (1, [2.0, np.nan]))
    for a, b in ((1, True), (1, 1.0), ([1], (1,)), (0.0, -0.0), ([1], [1, 1]), (1j, complex(-0.0, 1)), ("a", b"a")):
        assert not same(a, b)


def test_inputs_that_had_one_value_are_watched_until_another_is_verified():
    a, b = np.float32([1, 2]), np.int32(3)
    on_device = lambda *arrays: list(map(verify.lower.to_jax, arrays))  # noqa: E731
    watch, same = verify.Watch(), on_device(a.copy(), b.copy())
    watch.begin([3, 7], {3: a, 7: b})
    assert [watch.changed(same), watch.changed(same), watch.changed(on_device(a, b))] == [False, False, False]
    assert watch.changed([same[0], *on_device(b + 1)])
    assert watch.changed([*on_device(a + 1), same[1]])
    watch.release({3: a, 7: b + 1})
    assert not watch.changed([same[0], *on_device(b + 2)])
    assert watch.changed([*on_device(a + 1), same[1]])


def test_places_are_the_same_where_their_containers_are():
    rows, equal = [1], [1]
    assert verify._place((rows, 0)) == (id(rows), 0) != verify._place((equal, 0))
    assert verify._place(functools.partial(held, rows, 0)) == (id(rows), 0)
    assert verify._place((rows,)) == ([1],)
    assert verify._place(3) == 3


def test_facts_of_two_calls():
    def outline(**facts):
        return types.SimpleNamespace(program=program(), given=[], sources={}, facts=facts)

    a = outline(results=[1, (2.0, "a")])
    assert verify.first_difference(a, outline(results=[1, (2.0, "a")])) == (None, {})
    for b in (outline(results=[1, (2.0, "b")]), outline(), outline(results=[1, (2.0, "a")], writes=[])):
        for pair in ((a, b), (b, a)):
            assert verify.first_difference(*pair)[0] in ("results are others", "writes are others")


@pytest.mark.parametrize(
    "wanted, found, expected",
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True), ([1.0, 2.0], [1.0, 2.0 + 1e-14], True),
        ([1.0, 2.0], [1.0, 2.1], False), ([np.inf], [-np.inf], False), ([np.nan], [0.0], False),
        ([1e-20], [2e-20], False), ([np.inf, 1e-20], [np.inf, 2e-20], False), ([], [], True),
        ([1.0, 2.0], np.float32([1.0, 2.0]), False), ([1, 2], [1.0, 2.0], False),
        ([1.0], [[1.0]], False), (2.0, [2.0], False), ([1, 2], [1, 2], True), ([1, 2], [1, 3], False),
    ],
)  # fmt: skip
def test_numbers_agree_in_shape_and_dtype_and_up_to_rounding(wanted, found, expected):
    assert verify.agree(wanted, found, verify.WHOLE) is expected


@pytest.fixture
def hidden(tmp_path):
    """A number in a file, which no guard sees."""
    path = tmp_path / "number"
    path.write_text("2.0")
    return path


def test_check_compares_every_nth_call_and_raises(hidden):
    compiled = tg.compile(lambda x: x * float(hidden.read_text()), check=3)
    assert [compiled(X).tolist() for _ in range(2)] == [[2.0, 4.0, 6.0]] * 2
    hidden.write_text("3.0")
    with pytest.raises(RuntimeError, match=r"differs from the function: mul\(\) at .* has another operand"):
        for _ in range(3):
            compiled(X)


def test_no_check_trusts_the_tracing_call(hidden):
    compiled = tg.compile(lambda x: x * float(hidden.read_text()), check=0)
    compiled(X)
    hidden.write_text("3.0")
    assert compiled(X).tolist() == [2.0, 4.0, 6.0]


def test_check_of_one_call_prints(capsys, hidden):
    compiled = tg.compile(lambda x: x * float(hidden.read_text()))
    assert compiled.check(X)
    assert compiled.check(X)
    assert capsys.readouterr().out == "the program of <lambda> and the function agree\n" * 2
    hidden.write_text("3.0")
    with pytest.warns(UserWarning, match="has another operand"):
        assert not compiled.check(X)
    assert "runs eagerly: the program of <lambda> differs from the function: mul() at" in capsys.readouterr().out


def test_the_environment_variable_sets_check(monkeypatch):
    monkeypatch.setenv("TAPEGRAD_COMPILE_CHECK", "5")
    assert tg.compile(lambda x: x).interval == 5
    assert tg.compile(lambda x: x, check=0).interval == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if x.is_contiguous() else x * 3, lambda x: x * x.stride(0), lambda x: x.contiguous().add_(1),
        lambda x: tg.as_strided(x, (3,), (1,)) * 1,
    ],
)  # fmt: skip
def test_the_layout_of_arguments_is_part_of_the_call(function):
    compiled = tg.compile(function, fullgraph=True)
    for i in range(7):
        given = [tg.full((2, 3), float(i)) if i < 4 else (tg.ones(3, 2) * i + tg.arange(2.0)).t() for _ in range(2)]
        assert compiled(given[0]).tolist() == function(given[1]).tolist()
        assert given[0].tolist() == given[1].tolist()
        assert given[0].stride() == given[1].stride()


class Written(optim.Optimizer):
    """As people write them: settings and counts read from the groups, and a number in its state."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.01, "decay": 0.1, "t": 0})

    @tg.no_grad()
    def step(self, closure=None):
        self.state["n"] = 1
        for group in self.param_groups:
            group["t"] += 1
            for p in group["params"]:
                p.add_(p.grad + group["decay"] * p, alpha=-group["lr"])


def test_settings_of_an_optimizer_of_the_users_are_guarded():
    def trained(wrap):
        w = nn.Parameter(tg.ones(2))
        optimizer = Written([w])
        scheduler = optim.lr_scheduler.StepLR(optimizer, 2, 0.1)

        @wrap
        def step(x):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        for i in range(7):
            optimizer.param_groups[0]["decay"] = 0.1 if i < 4 else 0.3
            step(X[:2] + i)
            scheduler.step()
        return w.tolist(), optimizer.param_groups[0]["t"], dict(optimizer.state)

    eager = trained(lambda f: f)
    assert eager[1] == 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = trained(tg.compile)
    assert compiled[0] == pytest.approx(eager[0])
    assert compiled[1:] == eager[1:]


class Scaled(nn.Linear):
    def __init__(self):
        super().__init__(3, 1)
        self.settings, self.shifts = {"scale": 1.0}, [1.0, 2.0]

    def forward(self, x):
        return super().forward(x) * self.settings["scale"] + sum(self.shifts)


def test_containers_that_layers_hold_are_guarded():
    layer = Scaled()
    compiled = tg.compile(layer, fullgraph=True)
    for i in range(6):
        if i == 3:
            layer.settings["scale"], layer.shifts[1] = 3.0, 5.0
        assert compiled(X + i).item() == pytest.approx(layer(X + i).item(), rel=1e-6)
