"""The walk over the state that a function reads, and the keys of calls, by themselves: no program is made here.

What a function does not read is not to be watched either: a change of it would cost a trace.
"""

import array
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import math
import os
import pathlib
import threading
import types
import weakref
from collections import defaultdict, namedtuple
from decimal import Decimal

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.jit.guards import (
    DEPTH,
    ReachableState,
    has_forgotten,
    implied,
    is_foreign,
    is_of_package,
    is_ours,
    is_setting,
    may_read,
    steps_itself,
    values_of,
)
from tapegrad.jit.keys import differences, hidden, is_dead, leaf_names, nearest, static_key, text, without_values
from tapegrad.jit.places import change, first_changed
from tapegrad.jit.writes import argument_at, names_of, remedy


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


class Local(threading.local):
    k = other = 1.0


def test_what_is_another_thing_in_each_thread_or_context():
    local, variable = Local(), contextvars.ContextVar("v")
    local.k = local.other = 2.0
    assert not sees(lambda x: x * local.k, lambda: setattr(local, "other", 3.0))
    assert sees(lambda x: x * local.k, lambda: setattr(local, "k", 3.0))
    assert sees(lambda x: x * local.k, lambda: delattr(local, "k"))
    assert sees(lambda x: x * variable.get(2.0), lambda: variable.set(3.0))
    assert sees(lambda x: x * variable.get(), lambda: variable.set(4.0))
    assert not sees(lambda x: x * variable.get(), lambda: variable.set(4.0))


@pytest.mark.parametrize("buffer", [bytearray(b"\2\2"), array.array("d", [2.0]), memoryview(bytearray(b"\2\2"))])
def test_buffers(buffer):
    assert sees(lambda x: x * buffer[0], lambda: buffer.__setitem__(0, 3))


def test_modules_that_name_each_other(monkeypatch):
    assert not sees(lambda x: x + len(os.path.os.path.sep), lambda: monkeypatch.setattr(os, "linesep", "?"))
    assert sees(lambda x: x + len(os.path.os.path.sep), lambda: monkeypatch.setattr(os.path, "sep", "??"))


def test_texts_are_names_in_libraries_where_names_are_computed(monkeypatch):
    names = ["tau"]
    assert not sees(lambda x: x * getattr(math, names[0]), lambda: monkeypatch.setattr(math, "e", 3.0))
    assert sees(lambda x: x * getattr(math, names[0]), lambda: monkeypatch.setattr(math, "tau", 3.0))


def test_an_attribute_that_is_added_is_seen_where_any_may_be_read():
    a = Plain(k=2.0)
    assert not sees(lambda x: x * a.k, lambda: setattr(a, "other", 3.0))
    assert sees(lambda x: x * len(vars(a)), lambda: setattr(a, "more", 3.0))


class Wrapping:
    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __call__(self, x):
        return x


def test_what_an_object_is_wrapped_around():
    a = Plain(k=2.0)
    wrapped = Wrapping(lambda x: x * a.k)
    assert sees(lambda x: wrapped(x), lambda: setattr(a, "k", 3.0))


class Counting(optim.SGD):
    def step(self):
        self.state["n"] = {"steps": self.state.get("n", {"steps": 0})["steps"] + 1}


def test_states_of_optimizers_of_the_user_s():
    optimizer = Counting([nn.Parameter(tg.ones(1))])
    optimizer.step()
    reachable = ReachableState(lambda x: x * optimizer.state["n"]["steps"])
    reachable.remember_states()
    assert first_changed(reachable.places) is None
    optimizer.state["n"]["steps"] = 5
    assert first_changed(reachable.places) is not None


def test_momenta_are_no_state_that_is_compared_unless_the_function_looks_at_them():
    p = nn.Parameter(tg.ones(1))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    p.grad = tg.ones(1)
    optimizer.step()
    for function, looks in ((lambda x: optimizer.zero_grad(), False), (lambda x: optimizer.state[p], True)):
        reachable = ReachableState(function)
        reachable.remember_states()
        before = optimizer.state[p]["momentum_buffer"]
        optimizer.state[p]["momentum_buffer"] = before + 1
        assert (first_changed(reachable.places) is not None) is looks


def test_a_module_that_is_imported_inside(monkeypatch):
    def f(x):
        import math

        return x * math.tau

    assert not sees(f, lambda: monkeypatch.setattr(math, "e", 3.0))
    assert sees(f, lambda: monkeypatch.setattr(math, "tau", 3.0))


@pytest.mark.parametrize(
    "size, calls, expected",
    [
        (4, [1, 2], False),
        (4, [3, 1], False),
        (2, [1, 2], False),
        (2, [3], True),
        (None, [3, 4, 5, 6], False),
        (4, ["clear"], True),
        (4, ["clear", 1, 1, 1], True),
        (4, ["clear", 1, 2, 3], True),
    ],
)
def test_a_cache_that_has_forgotten_what_it_had(size, calls, expected):
    cached = functools.lru_cache(size)(abs)
    cached(1), cached(2), cached(2)
    then = cached.cache_info()
    for call in calls:
        cached.cache_clear() if call == "clear" else cached(call)
    assert has_forgotten(cached, then) is expected


@pytest.mark.parametrize("is_input", [False, True])
@pytest.mark.parametrize("do", [lambda s: s.update(a=np.ones(3)), lambda s: s["a"].__setitem__(0, 2.0)])
def test_an_array_that_is_replaced_or_written(do, is_input):
    space = {"a": np.ones(3)}
    exec("def f(x): return x * float(a[0])", space)
    reachable = ReachableState(space["f"])
    reachable.note_arrays({id(space["a"])} if is_input else ())
    assert first_changed(reachable.places) is None
    do(space)
    assert (first_changed(reachable.places) is None) is is_input


def test_what_a_function_that_is_called_has_cached():
    cached = functools.lru_cache(3)(abs)
    reachable = ReachableState(lambda x: x * cached(2))
    cached(2), reachable.remember_states()
    assert first_changed(reachable.places) is None
    cached(2), cached(3)
    assert first_changed(reachable.places) is None
    cached(4), cached(5)
    assert first_changed(reachable.places) is not None


class Slots:
    __slots__ = ("k", "other")

    def __init__(self):
        self.k = self.other = 2.0


def test_attributes_that_have_slots():
    a = Slots()
    assert not sees(lambda x: x * a.k, lambda: setattr(a, "other", 3.0))
    assert sees(lambda x: x * a.k, lambda: setattr(a, "k", 3.0))
    assert sees(lambda x: x * a.k, lambda: delattr(a, "k"))
    assert sees(lambda x: vars(a) or x, lambda: setattr(a, "other", 4.0))


class Numbered:
    def of(self, owner, number):
        return getattr(owner, f"number_{number}")


@pytest.mark.parametrize("owner", [types.ModuleType("settings_of_a_test"), type("Owner", (), {})])
def test_names_that_are_computed_where_other_names_lead(owner):
    numbered, owner.number_1 = Numbered(), 2.0
    assert sees(lambda x: x * numbered.of(owner, 1), lambda: setattr(owner, "number_1", 3.0))


def test_attributes_of_classes_that_nothing_names():
    members = {"__call__": len, "__x": 1, "x__": 2, "__init__": len, "__doc__": "", "k": 2.0, "f": len, "slot": Slots.k}
    for settings, expected in [
        ((False, True, False, False), {"__call__"}), ((True, True, False, False), {"__call__", "__init__"}),
        ((False, False, True, False), {"slot"}), ((False, False, False, True), {"k", "x__"}),
    ]:  # fmt: skip
        assert implied(members, *settings) == expected


def test_what_is_compared_at_each_call_does_not_grow_with_the_layers():
    few, many = (nn.Sequential(*[nn.Linear(2, 2) for _ in range(n)]) for n in (2, 20))
    assert len(ReachableState(few).places) == len(ReachableState(many).places)
    assert len(ReachableState(few).of_modules) < len(ReachableState(many).of_modules)


class Settings(nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.settings = {"k": 2.0}

    def forward(self, x):
        return x @ self.weight * self.settings["k"]


def test_items_of_what_modules_hold_are_compared_whether_a_module_changes_or_not():
    module = Settings()
    reachable = ReachableState(module)
    module.settings["k"] = 3.0
    assert first_changed(reachable.places) is not None


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
    assert ReachableState(lambda x: (np.asarray(x), np.zeros(2))).reader == "numpy.asarray"  # the first


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
        (np.s_, False), ([].append, False), (types.FunctionType, False),
        (np.vectorize, True),
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


class Stepping(optim.SGD):
    def step(self):
        return super().step()


class Around(optim.SGD):
    step = functools.wraps(optim.SGD.step)(lambda self: None)


class Same(optim.SGD):
    step = optim.SGD.step


def test_what_is_the_package_s():
    assert [is_of_package(f) for f in (tg.sin, optim.SGD.step, Same.step, contextlib.contextmanager, len, of("users"))] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
    optimizers = [cls([nn.Parameter(tg.ones(1))]) for cls in (optim.SGD, Same, Stepping, Around)]
    assert [steps_itself(o) for o in optimizers] == [False, False, True, True]
    assert [is_ours(cls) for cls in (optim.SGD, tg.Tensor, Same, Stepping, Around, Plain, Fine, int)] == [
        True, True, True, False, False, False, False, False,
    ]  # fmt: skip


class Fine:
    """A class without functions."""


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


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float


@pytest.mark.parametrize(
    "value, expected",
    [
        (2.5, "2.5"), ((1, 2.5), "(1, 2.5)"), (Point(1, ("a", None)), "Point(1, ('a', None))"), ((), "()"),
        ("a" * 80, "'" + "a" * 56 + "..."), (Plain(), "a Plain"), (1j, "1j"),
    ],
)  # fmt: skip
def test_static_values_as_text(value, expected):
    assert text(static_key(value)) == expected


@pytest.mark.parametrize(
    "value, other",
    [
        (lambda: 0.0, -0.0), (lambda: 1, True), (lambda: 1, 1.0), (lambda: 1j, complex(-0.0, 1)),
        (lambda: np.float32(2), np.float64(2)), (lambda: np.float32(0), np.float32(-0.0)),
        (lambda: (1, (2.5,)), (1, (2,))),
        (lambda: frozenset([1]), frozenset([True])),
        (lambda: Decimal("2.0"), Decimal("2.00")), (lambda: Point(1, 2), (1, 2)),
        (lambda: Frozen(1.0), Frozen(1)), (lambda: "ab", b"ab"), (lambda: pathlib.PurePosixPath("a"), "a"),
        (lambda: range(3), range(4)), (lambda: tg.float32, tg.float64),
    ],
)  # fmt: skip
def test_values_that_are_equal_but_not_the_same_have_other_keys(value, other):
    first, second = value(), value()
    assert static_key(first) == static_key(second)
    assert hash(static_key(first)) == hash(static_key(second))
    assert static_key(first) != static_key(other)


def test_objects_are_keys_by_identity():
    class Equal:
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    one, other = Equal(), Equal()
    assert static_key(one) == static_key(one) != static_key(other)


def test_keys_without_values_keep_arrays_and_flags():
    array = (2, 3), np.dtype("f4"), 0, ""
    key = (3, ("modes",), static_key(2.5), array, static_key(True), static_key(None), static_key("besides"))
    assert without_values(key, 4) == (3, ("modes",), "a value", array, (bool, True), (type(None), None), (str, "besides"))


def test_the_nearest_key_has_the_same_structure_and_the_fewest_differences():
    def key(structure, *values):
        return (structure, (True, None, tg.float32, ()), *map(static_key, values))

    names, keys = ["a", "b"], [key(1, 2, 4), key(2, 1, 3), key(1, 2, 3), key(1, 5, 6)]
    assert nearest(keys[:2], key(1, 1, 3), names) == ["argument a: 2 has become 1", "argument b: 4 has become 3"]
    assert nearest(keys, key(1, 1, 3), names) == ["argument a: 2 has become 1"]
    assert nearest(keys[1:2], key(1, 1, 3), names) == ["the arguments have another structure"]


def test_keys_of_objects_that_are_gone():
    one, other = Plain(), Plain()
    key = 1, ("on",), static_key(one), static_key(2.0), static_key(other)
    assert not is_dead(key)
    del other
    assert is_dead(key)


def test_differences_of_modes_as_text():
    before = 1, (True, None, tg.float32, (tg.device("meta"), tg.device("cpu")))
    now = 1, (False, np.float16, tg.float64, (tg.device("cpu"), tg.device("meta")))
    assert differences(before, now, []) == [
        "grad mode: off has become on", "autocast: None has become <class 'numpy.float16'>",
        "the default dtype: torch.float32 has become torch.float64", "the default device: cpu has become meta",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "part, expected",
    [
        (((2, 3), "f4"), "f4[2, 3] of NumPy"), (((), "f4", 0, ""), "f4[]"),
        (((2,), "f4", 1, ""), "f4[2] that requires grad"),
        (((2,), "f4", -1, "strides (8,)"), "f4[2] that requires grad with strides (8,)"), (((2,), "f4", 0, 1), "f4[2] on 1"),
        (((2,), "f4", 0, "", Slots), "f4[2] of class Slots"),
    ],
)  # fmt: skip
def test_arrays_as_text(part, expected):
    assert text(part) == expected


def test_what_arguments_hold_besides_their_leaves():
    rows, table = Rows([1, [2]]), {2: 1.0}
    rows.k = 3
    assert list(hidden("a", [1, rows, "text", None])) == [("the class of a[1]", Rows), ("a[1].k", 3)]
    assert list(hidden("a", rows, {id(rows)})) == []
    assert list(hidden("a", table)) == [("the keys of a", (2,))]
    assert list(hidden("a", defaultdict(list, b=1))) == [("the class of a", defaultdict), ("the default of a", list)]
    record = Record(tg.ones(1))
    assert list(hidden("a", record)) == [("the class of a", Record)]
    assert list(hidden("a", record, fields=True)) == [("the class of a", Record), ("a.k", 2)]


class Rows(list):
    """A list that may have attributes."""


@dataclasses.dataclass
class Record:
    x: tg.Tensor
    k: int = 2


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


N = 1


def sets_a_global():
    global N
    N = N + 1  # here


def changing():
    """Functions that change what they read, where they do, and what to do instead."""
    a, table, rows, members, n = Plain(k=1), {"k": 1}, [1], {1}, 1
    net, scheduler = nn.Linear(2, 2), optim.lr_scheduler.StepLR(optim.SGD([nn.Parameter(tg.ones(1))], lr=0.1), 1)

    def attribute():
        k = a.k
        a.k = k + 1  # here

    def item():
        n, k = len(rows), table["k"]
        table["k"] = n + k  # here

    def appended():
        rows.insert(0, rows[0])  # here

    def of_set():
        members.add(len(members) + 1)  # here

    def variable():
        nonlocal n
        n = n + 1  # here

    def twice():
        rows[0] = rows[0] + 1
        rows[0] = rows[0] + 1

    net.register_forward_hook(print)
    without = nn.ReLU()
    without.register_forward_hook(print).remove()

    def hooked():
        net.register_forward_hook(print)

    def called():  # which notices that no hook is left
        without(tg.ones(2))

    def scheduled():
        a.step = scheduler.last_epoch
        scheduler.step()  # here

    for function in (attribute, item, appended, of_set, variable, sets_a_global, twice):
        yield pytest.param(function, "return it instead, or keep it in a tensor", id=function.__name__)
    for function in (hooked, called):
        yield pytest.param(function, "register and remove hooks outside the compiled function", id=function.__name__)
    yield pytest.param(scheduled, "call the scheduler's step() outside the compiled function", id="scheduled")


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("function, advice", [*changing()])
def test_what_to_do_instead_of_a_change_and_where(function, advice):
    reachable = ReachableState(function)
    function()
    places = [*reachable.places, *reachable.of_modules]
    lines, first = inspect.getsourcelines(function)
    here = [(first + i, line.strip()) for i, line in enumerate(lines) if "# here" in line]
    where = f" ({__file__}:{here[0][0]}: {here[0][1]})" if here else ""
    assert remedy(reachable, first_changed(places)) == advice + where


def test_names_under_which_a_function_knows_an_object():
    rows, other = [1.0], [2.0]
    a = Plain(own=rows, more=other)
    reachable = ReachableState(lambda x: x * rows[0] * other[0] * a.own[0] * a.more[0])
    assert names_of(reachable, rows) == {"rows", "own"}


@pytest.mark.parametrize(
    "path, expected",
    [
        ((0, 1), "rows"),
        ((0, 0, "a", 2), "x['a'][2]"),
        ((0, 3), "3"),
        ((0, 5), "5"),
        ((1, "rows", 0), "rows[0]"),
        ((1, "k"), "k"),
    ],
)
def test_containers_among_arguments_have_names(path, expected):
    assert argument_at(lambda x, rows, **more: x, path, []) == expected


def test_the_line_that_changes_an_argument():
    def f(x, rows):
        rows["a"].append(x)
        return x

    line = f.__code__.co_firstlineno + 1
    for path in ((0, 1, "a"), (1, "rows", "a")):
        assert argument_at(f, path, []) == f"rows['a'] ({__file__}:{line}: rows[\"a\"].append(x))"
