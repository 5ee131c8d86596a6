"""The walk over the state that a function reads, and the keys of calls, by themselves: no program is made here.

What a function does not read is not to be watched either: a change of it would cost a trace.
"""

import contextlib
import functools
import math
import types
import weakref
from collections import namedtuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.jit.guards import DEPTH, ReachableState, is_foreign, is_setting, may_read, values_of
from tapegrad.jit.keys import differences, leaf_names, static_key, text
from tapegrad.jit.places import change, first_changed
from tapegrad.jit.writes import argument_at, names_of


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


class Tagged(np.ndarray):
    """An array that may have attributes."""


def sees(function, change, *arguments):
    """Whether guards of a function that is called with arguments see a change."""
    reachable = ReachableState(function, arguments)
    places = [*reachable.places, *reachable.of_modules]
    assert first_changed(places) is None
    change()
    return first_changed(places) is not None


# ------------------------------------------------------------------------------------------------ what names do not lead to


def test_texts_are_no_names_of_attributes_where_no_names_are_computed():
    a, names = Plain(k=2.0, other=2.0), ["other"]
    assert not sees(lambda x: (x * a.k, names[0]), lambda: setattr(a, "other", 3.0))
    assert sees(lambda x: (x * a.k, names[0]), lambda: setattr(a, "k", 3.0))
    assert sees(lambda x: x * a.k * getattr(a, names[0]), lambda: setattr(a, "other", 4.0))


def test_attributes_of_arrays_that_no_name_leads_to():
    a = np.zeros(3).view(Tagged)
    a.k = a.other = 2.0
    assert not sees(lambda a: a.k, lambda: setattr(a, "other", 3.0), a)
    assert sees(lambda a: a.k, lambda: setattr(a, "k", 3.0), a)


def test_settings_of_optimizers_are_compared_where_the_groups_are_read():
    optimizer, scheduler = optim.SGD([nn.Parameter(tg.ones(2))], lr=0.1), Plain(lr=0.1)
    (group,) = optimizer.param_groups

    def steps(x):
        optimizer.step()
        return x * scheduler.lr

    def reads(x):
        optimizer.step()
        return x * optimizer.param_groups[0]["lr"]

    assert not sees(steps, lambda: group.update(lr=0.2))  # an input of the program
    assert sees(steps, lambda: setattr(scheduler, "lr", 0.2))
    assert sees(reads, lambda: group.update(lr=0.3))


class Groups:
    def of(self, optimizer):
        return optimizer.param_groups


def test_settings_whose_names_are_met_before_that_of_the_groups():
    groups, optimizer = Groups(), optim.SGD([nn.Parameter(tg.ones(2))], lr=0.1)
    assert sees(lambda x: x * groups.of(optimizer)[0]["lr"], lambda: optimizer.param_groups[0].update(lr=0.2))


@pytest.mark.parametrize("cls", [np.ndarray, tg.Tensor])
def test_attributes_of_classes_of_arrays(cls):
    class Own(cls):
        k = other = 2.0

    a = np.zeros(3).view(Own) if cls is np.ndarray else tg.zeros(3).as_subclass(Own)
    for name in ("other", "k"):
        assert sees(lambda a: a.k, lambda name=name: setattr(Own, name, 3.0), a) is (name == "k")


def test_attributes_of_modules_of_the_user_s():
    m = types.ModuleType("settings_of_a_test")
    m.k = m.other = 2.0
    assert not sees(lambda x: x * m.k, lambda: setattr(m, "other", 3.0))
    assert sees(lambda x: x * m.k, lambda: setattr(m, "k", 3.0))


def test_containers_in_classes_of_the_user_s():
    class Rows:
        rows = [2.0]  # noqa: RUF012

    rows = Rows()
    assert sees(lambda x: x * rows.rows[0], lambda: rows.rows.__setitem__(0, 3.0))


def test_what_methods_of_the_package_call_does_not_concern_the_caller():
    reachable = ReachableState(lambda x, a: x.fill_diagonal_(2.0) * a)  # which calls np.arange
    assert reachable.reader is None  # so that an array as an argument does not make the call eager


class Scaled(nn.Module):
    k = 2.0

    def forward(self, x):
        return x * self.k if self.training else x


def test_attributes_of_modules_are_compared_whether_a_module_says_that_it_changed_or_not():
    module, space = Scaled(), types.SimpleNamespace(k=2.0)
    of_space = lambda x: x * space.k  # noqa: E731
    for owner, name, function in ((module, "k", module), (module, "training", module), (space, "k", of_space)):
        reachable = ReachableState(function)
        vars(owner)[name] = 3.0
        assert first_changed(reachable.places) is not None  # those of_modules wait for a change of some module


def test_what_a_method_s_weak_reference_leads_to():
    groups = Plain(k=2.0)
    groups.reader = types.MethodType(lambda self: self.k, groups)
    reference = weakref.WeakMethod(groups.reader)
    assert sees(lambda x: x * reference()(), lambda: setattr(groups, "k", 3.0))


@pytest.mark.parametrize("now", [None, 2.0, [1.0, 2.0], np.zeros(3), np.array([None])])
def test_an_array_that_is_replaced(now):
    space = {"a": np.ones(3)}
    exec("def f(x): return x * float(a[0])", space)
    reachable = ReachableState(space["f"])
    reachable.note_arrays(())
    assert first_changed(reachable.places) is None
    space["a"] = now
    assert all([first_changed([place]) is not None for place in reachable.places[-2:]])  # the array, its values


@pytest.mark.parametrize(
    "value, expected",
    [(None, b""), (2.0, b""), (np.array([None]), b""), (np.int8([1, 2]), b"\1\2"), (np.ones(2048, np.int8), b"\1" * 128)],
)
def test_values_by_which_an_array_is_known_again(value, expected):
    assert values_of(lambda: value) == expected


# ------------------------------------------------------------------------------------------------------------------ closures


def test_variables_of_closures_have_names():
    w, m, asarray = tg.ones(2), math, np.asarray

    def f(x):
        return w * x * m.tau, asarray(x)

    reachable = ReachableState(f)
    assert reachable.names[id(w)] == "w"
    assert reachable.reader == "asarray"


def test_a_library_in_a_closure(monkeypatch):
    m = math
    for name, is_named in (("tau", True), ("e", False)):
        assert sees(lambda x: x * m.tau, lambda name=name: monkeypatch.setattr(math, name, 3.0)) is is_named


# ------------------------------------------------------------------------------------------------------------------- depth

NESTED = {
    "a list": lambda v: [v],
    "a dict": lambda v: {"a": v},
    "a set": lambda v: frozenset((v,)),
    "a closure": lambda v: lambda: v,
    "a closure of Python's": contextlib.contextmanager,
    "a default": lambda v: lambda v=v: v,
    "a keyword's default": lambda v: lambda *, v=v: v,
}


class Leaf(list):
    """A list that may be a member of a set."""

    __hash__ = object.__hash__


@pytest.mark.parametrize("kind", NESTED)
def test_each_container_or_call_between_counts_once(kind):
    def seen(levels):
        leaf = value = Leaf([2.0])
        for _ in range(levels):
            value = NESTED[kind](value)
        return sees(lambda: value, lambda: leaf.append(3.0))

    assert [seen(levels) for levels in (1, DEPTH - 1, DEPTH)] == [True, True, False]


# ---------------------------------------------------------------------------------------------------- functions of libraries


def of(module, kind=types.FunctionType):
    """A function or class that says that it is some module's."""

    def f():
        return 1

    found = f if kind is types.FunctionType else type("C", (), {})
    found.__module__ = module
    return found


@pytest.mark.parametrize(
    "value, expected",
    [
        (np.asarray, True), (np.random.rand, True), (np.sin, False), (np.concatenate, False), (np.float32, False),
        (np.errstate, False), (math.sin, False), (functools.partial, False), (3.0, False),
        (bytes, True), (memoryview, True), (len, False), (bytearray, True), (dict, False),
        (tg.sin, False), (of("scipy.linalg"), True), (of("scipy", type), True), (of("struct"), True),
        (of("torch.nn"), False), (of("torch", type), False), (of("oneflow"), False), (of("users"), False),
    ],
)  # fmt: skip
def test_who_may_read_an_array_without_asking_it(value, expected):
    assert may_read(value) is expected


def test_which_functions_say_how_something_is_set():
    assert is_setting(tg.is_grad_enabled)
    assert not any(map(is_setting, (tg.get_rng_state, tg.is_tensor, tg.sin, len, of("users"), None)))


def test_nothing_of_the_package_and_of_numpy_is_foreign():
    modules = [
        tg,
        nn,
        nn.functional,
        nn.init,
        optim,
        tg.func,
        tg.special,
        tg.linalg,
        tg.fft,
        tg.autograd,
        np,
        math,
        functools,
    ]
    spaces = [
        *map(vars, modules),
        *[vars(cls) for cls in (tg.Tensor, nn.Module, nn.Linear, nn.LSTM, optim.Optimizer, optim.Adam)],
    ]
    assert not [name for space in spaces for name, value in list(space.items()) if is_foreign(value)]


@pytest.mark.parametrize(
    "value",
    [
        of("users"), of("users", type), of("users", type)(), types.ModuleType("users"),
        classmethod(of("users")), staticmethod(of("users")),
        property(None, of("users")), functools.cached_property(of("users")), functools.partial(of("users")),
        functools.lru_cache(of("users")), types.MethodType(of("users"), tg.Tensor),
        types.MethodType(tg.sin, of("users", type)),
        functools.wraps(of("users"))(lambda: 1), functools.wraps(tg.sin)(lambda: 1), tg.no_grad()(of("users")),
    ],
)  # fmt: skip
def test_what_users_put_into_libraries_is_foreign(value):
    assert is_foreign(value)


# --------------------------------------------------------------------------------------------------------------------- keys

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "value, expected",
    [
        (2.5, "2.5"), ((1, 2.5), "(1, 2.5)"), (Point(1, ("a", None)), "Point(1, ('a', None))"), ((), "()"),
        ("a" * 80, "'" + "a" * 56 + "..."), (Plain(), "a Plain"), (1j, "1j"),
    ],
)  # fmt: skip
def test_static_values_as_text(value, expected):
    assert text(static_key(value)) == expected


def test_differences_of_modes_as_text():
    before = 1, (True, None, tg.float32, (tg.device("meta"), tg.device("cpu")))
    now = 1, (False, np.float16, tg.float64, (tg.device("cpu"), tg.device("meta")))
    assert differences(before, now, []) == [
        "grad mode: off has become on", "autocast: None has become <class 'numpy.float16'>",
        "the default dtype: torch.float32 has become torch.float64", "the default device: cpu has become meta",
    ]  # fmt: skip


def test_names_of_leaves():
    t, rows = tg.ones(1), [1, 2]
    a, b = {"x": t, "y": [t, (2.0, t)]}, t
    every = ["a['x']", "a['y'][0]", "a['y'][1][0]", "a['y'][1][1]", "b", "2", "c[0]", "c[1]"]
    function = lambda a, b, *more, c: a  # noqa: E731
    assert leaf_names(function, (a, b, t), {"c": rows}) == every
    assert leaf_names(function, (a, b, t), {"c": rows}, {id(rows), id(a["y"])}) == ["a['x']", "a['y']", "b", "2", "c"]


# ------------------------------------------------------------------------------------------------------- texts on changes


def test_a_group_that_is_added_to_an_optimizer_is_called_so():
    optimizer = optim.SGD([nn.Parameter(tg.ones(2))], lr=0.1)
    reachable = ReachableState(lambda: optimizer.step())
    optimizer.add_param_group({"params": [nn.Parameter(tg.ones(2))]})
    assert change(first_changed(reachable.places)) == "the number of items or attributes changed from 1 to 2"


def test_names_under_which_a_function_knows_an_object():
    rows, other = [1.0], [2.0]
    a = Plain(own=rows, more=other)
    reachable = ReachableState(lambda x: x * rows[0] * other[0] * a.own[0] * a.more[0])
    assert names_of(reachable, rows) == {"rows", "own"}


@pytest.mark.parametrize(
    "path, expected",
    [((0, 1), "rows"), ((0, 0, "a", 2), "x['a'][2]"), ((0, 5), "5"), ((1, "rows", 0), "rows[0]"), ((1, "k"), "k")],
)
def test_containers_among_arguments_have_names(path, expected):
    assert argument_at(lambda x, rows, **more: x, path, []) == expected
