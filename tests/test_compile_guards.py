"""Ways in which Python state reaches a compiled function: when it changes between two calls, the next call sees it.

Each entry of `WAYS` makes a function of one tensor and a change. The function is called, the change made, and the function
called again, eagerly and compiled. The cheap test runs the programs of traces on NumPy, so that it measures guards alone.

One file over 1,000 lines, since it is one law over one table: a way that is missing is seen where all of them stand.
"""

import abc
import argparse
import array
import collections
import configparser
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import heapq
import operator
import pickle
import queue
import re
import string
import sys
import threading
import types
import typing
import warnings
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.nn import functional as F

jax = pytest.importorskip("jax")

WAYS, FURTHER = {}, set()
OPTIONAL_OF_MODULE = None


def way(make):
    WAYS[make.__name__] = make
    return make


def further(make):
    """A way that runs with --all alone."""
    FURTHER.add(make.__name__)
    return way(make)


def with_module(**values):
    """A module of the user's that a test has made."""
    module = types.ModuleType("settings_of_a_test")
    vars(module).update(values)
    return module


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


# ------------------------------------------------------------------------------------------------------------- functions


@way
def keyword_default_updated():
    def g(x, *, k=2.0):
        return x * k

    return (lambda x: g(x)), lambda: g.__kwdefaults__.update(k=3.0)


@way
def keyword_defaults_replaced():
    def g(x, *, k=2.0):
        return x * k

    return (lambda x: g(x)), lambda: setattr(g, "__kwdefaults__", {"k": 3.0})


@way
def defaults_replaced():
    def g(x, k=2.0):
        return x * k

    return (lambda x: g(x)), lambda: setattr(g, "__defaults__", (3.0,))


@way
def default_added():
    def g(x, k):
        return x * k

    def f(x):
        try:
            return g(x)
        except TypeError:
            return x

    return f, lambda: setattr(g, "__defaults__", (3.0,))


@way
def own_keyword_default():
    def f(x, *, k=2.0):
        return x * k

    return f, lambda: f.__kwdefaults__.update(k=3.0)


@way
def mutable_default_of_a_keyword():
    def g(x, *, k=[2.0]):  # noqa: B006
        return x * k[0]

    return (lambda x: g(x)), lambda: g.__kwdefaults__["k"].__setitem__(0, 3.0)


@way
def code_replaced():
    def g(x):
        return x * 2

    def h(x):
        return x * 3

    return (lambda x: g(x)), lambda: setattr(g, "__code__", h.__code__)


@way
def attribute_of_a_function():
    def g(x):
        return x * g.k

    g.k = 2.0
    return (lambda x: g(x)), lambda: setattr(g, "k", 3.0)


@way
def attribute_added_to_a_function():
    def g(x):
        return x * getattr(g, "k", 2.0)

    return (lambda x: g(x)), lambda: setattr(g, "k", 3.0)


@way
def attribute_of_the_function_itself():
    def f(x):
        return x * f.k

    f.k = 2.0
    return f, lambda: setattr(f, "k", 3.0)


@way
def closure_in_a_closure():
    k = 2.0

    def outer():
        def inner(x):
            return x * k

        return inner

    def change():
        nonlocal k
        k = 3.0

    g = outer()
    return (lambda x: g(x)), change


@way
def function_in_a_dict():
    table = {"f": lambda x: x * 2}
    return (lambda x: table["f"](x)), lambda: table.update(f=lambda x: x * 3)


@way
def function_in_a_list():
    table = [lambda x: x * 2]
    return (lambda x: table[0](x)), lambda: table.__setitem__(0, lambda x: x * 3)


@way
def state_of_a_function_in_a_dict():
    k = [2.0]
    table = {"f": lambda x: x * k[0]}
    return (lambda x: table["f"](x)), lambda: k.__setitem__(0, 3.0)


@way
def bound_method_of_another_object():
    class A:
        k = 2.0

        def g(self, x):
            return x * self.k

    a = A()
    g = a.g
    return (lambda x: g(x)), lambda: setattr(a, "k", 3.0)


@way
def bound_method_of_a_dict():
    table = {"k": 2.0}
    get = table.get
    return (lambda x: x * get("k")), lambda: table.update(k=3.0)


@way
def partial_keywords():
    p = functools.partial(lambda x, k: x * k, k=2.0)
    return (lambda x: p(x)), lambda: p.keywords.update(k=3.0)


@way
def partial_function():
    p = functools.partial(lambda x: x * 2)
    return (lambda x: p(x)), lambda: p.__setstate__((lambda x: x * 3, (), {}, {}))


@way
def partial_arguments():
    p = functools.partial(lambda k, x: x * k, 2.0)
    return (lambda x: p(x)), lambda: p.__setstate__((p.func, (3.0,), {}, {}))


@way
def partial_of_an_object():
    a = Plain(k=2.0)
    p = functools.partial(lambda a, x: x * a.k, a)
    return (lambda x: p(x)), lambda: setattr(a, "k", 3.0)


@way
def partial_compiled_itself():
    p = functools.partial(lambda x, k: x * k, k=2.0)
    return p, lambda: p.keywords.update(k=3.0)


@way
def partialmethod():
    class A:
        k = 2.0

        def g(self, x, scale):
            return x * scale * self.k

        h = functools.partialmethod(g, scale=2.0)

    a = A()
    return (lambda x: a.h(x)), lambda: vars(A)["h"].keywords.update(scale=3.0)


@way
def cached_function_cleared():
    a = Plain(k=2.0)

    @functools.lru_cache
    def g():
        return a.k

    def change():
        a.k = 3.0
        g.cache_clear()

    return (lambda x: x * g()), change


@way
def cached_function_not_cleared():
    a = Plain(k=2.0)

    @functools.lru_cache
    def g():
        return a.k

    return (lambda x: x * g()), lambda: setattr(a, "k", 3.0)


@way
def cached_function_cleared_later():
    a = Plain(k=2.0)

    @functools.lru_cache
    def g():
        return a.k

    f = tg.Tensor.mul

    def change():
        if a.k == 3.0:
            g.cache_clear()
        a.k = 3.0

    return (lambda x: f(x, g())), (change, change)


@way
def cached_function_evicted():
    a = Plain(k=2.0)

    @functools.lru_cache(maxsize=1)
    def g(i):
        return a.k + 0 * i

    def change():
        if a.k == 3.0:
            g(1)
        a.k = 3.0

    return (lambda x: x * g(0)), (change, change)


@way
def dispatched_function():
    @functools.singledispatch
    def g(k, x):
        return x * 2

    return (lambda x: g(1.0, x)), lambda: g.register(float)(lambda k, x: x * 3)


@way
def wrapped_function():
    def double(g):
        @functools.wraps(g)
        def wrapper(x):
            return g(x) * 2

        return wrapper

    k = [2.0]
    g = double(lambda x: x * k[0])
    return (lambda x: g(x)), lambda: k.__setitem__(0, 3.0)


@way
def attrgetter():
    a, get = Plain(k=2.0), operator.attrgetter("k")
    return (lambda x: x * get(a)), lambda: setattr(a, "k", 3.0)


@way
def methodcaller():
    class A:
        def scale(self):
            return 2.0

    a, get = A(), operator.methodcaller("scale")
    return (lambda x: x * get(a)), lambda: setattr(A, "scale", lambda self: 3.0)


@way
def context_manager_of_the_user():
    k = [2.0]

    @contextlib.contextmanager
    def scaled():
        yield k[0]

    def f(x):
        with scaled() as s:
            return x * s

    return f, lambda: k.__setitem__(0, 3.0)


@way
def generator_function():
    k = [2.0]

    def parts(x):
        yield x * k[0]

    return (lambda x: sum(parts(x))), lambda: k.__setitem__(0, 3.0)


# --------------------------------------------------------------------------------------------------------------- classes


@way
def base_method_reached_by_super():
    class A:
        def s(self):
            return 2.0

    class B(A):
        def s(self):
            return super().s() * 2

    b = B()
    return (lambda x: x * b.s()), lambda: setattr(A, "s", lambda self: 9.0)


@way
def base_of_a_base_reached_by_super():
    class A:
        k = 2.0

    class B(A):
        pass

    class C(B):
        k = 7.0

        def s(self):
            return super().k

    c = C()
    return (lambda x: x * c.s()), lambda: setattr(B, "k", 9.0)


@way
def base_method_reached_by_name():
    class A:
        def s(self):
            return 2.0

    class B(A):
        def s(self):
            return A.s(self) * 2

    b = B()
    return (lambda x: x * b.s()), lambda: setattr(A, "s", lambda self: 9.0)


@way
def class_of_an_object():
    class A:
        k = 2.0

    class B:
        k = 3.0

    a = A()
    return (lambda x: x * a.k), lambda: setattr(a, "__class__", B)


@way
def class_of_a_module():
    m = nn.ReLU()
    return (lambda x: m(x - 2)), lambda: setattr(m, "__class__", nn.Sigmoid)


@way
def class_of_a_module_of_the_user():
    class A(nn.Module):
        def forward(self, x):
            return x * 2

    class B(nn.Module):
        def forward(self, x):
            return x * 3

    m = A()
    return (lambda x: m(x)), lambda: setattr(m, "__class__", B)


@way
def class_asked_for():
    class A:
        pass

    class B(A):
        pass

    a = A()
    return (lambda x: x * (3 if isinstance(a, B) else 2)), lambda: setattr(a, "__class__", B)


@way
def bases_of_a_class():
    class A:
        k = 2.0

    class B:
        k = 3.0

    class C(A):
        pass

    c = C()
    return (lambda x: x * c.k), lambda: setattr(C, "__bases__", (B,))


@way
def inherited_class_attribute():
    class A:
        k = 2.0

    class B(A):
        pass

    b = B()
    return (lambda x: x * b.k), lambda: setattr(A, "k", 3.0)


@way
def inherited_class_attribute_shadowed_by_a_class():
    class A:
        k = 2.0

    class B(A):
        pass

    b = B()
    return (lambda x: x * b.k), lambda: setattr(B, "k", 3.0)


@way
def class_attribute_shadowed_by_an_object():
    class A:
        k = 2.0

    a = A()
    return (lambda x: x * a.k), lambda: setattr(a, "k", 3.0)


@way
def class_attribute_of_a_class():
    class A:
        k = 2.0

    return (lambda x: x * A.k), lambda: setattr(A, "k", 3.0)


@way
def class_attribute_that_comes():
    class A:
        pass

    a = A()
    return (lambda x: x * getattr(a, "k", 2.0)), lambda: setattr(A, "k", 3.0)


@way
def attribute_that_comes_by_exception():
    a = Plain()

    def f(x):
        try:
            return x * a.k
        except AttributeError:
            return x * 2.0

    return f, lambda: setattr(a, "k", 3.0)


@way
def attribute_that_goes():
    class A:
        k = 3.0

    a = A()
    a.k = 2.0
    return (lambda x: x * a.k), lambda: delattr(a, "k")


@way
def metaclass_attribute():
    class Meta(type):
        k = 2.0

    class A(metaclass=Meta):
        pass

    return (lambda x: x * A.k), lambda: setattr(Meta, "k", 3.0)


@way
def metaclass_property():
    k = [2.0]

    class Meta(type):
        @property
        def k(cls):
            return k[0]

    class A(metaclass=Meta):
        pass

    return (lambda x: x * A.k), lambda: k.__setitem__(0, 3.0)


@way
def metaclass_call():
    class Meta(type):
        k = 2.0

        def __call__(cls, x):
            return x * cls.k

    class A(metaclass=Meta):
        pass

    return (lambda x: A(x)), lambda: setattr(Meta, "k", 3.0)


@way
def constructor():
    class A:
        def __init__(self, k):
            self.k = k

    def init(self, k):
        self.k = k + 1

    return (lambda x: x * A(2.0).k), lambda: setattr(A, "__init__", init)


@way
def new_of_a_class():
    k = [2.0]

    class A:
        def __new__(cls):
            self = super().__new__(cls)
            self.k = k[0]
            return self

    return (lambda x: x * A().k), lambda: k.__setitem__(0, 3.0)


@way
def class_method():
    class A:
        k = 2.0

        @classmethod
        def s(cls):
            return cls.k

    return (lambda x: x * A.s()), lambda: setattr(A, "k", 3.0)


@way
def static_method_replaced():
    class A:
        @staticmethod
        def s():
            return 2.0

    return (lambda x: x * A.s()), lambda: setattr(A, "s", staticmethod(lambda: 3.0))


@way
def abstract_base():
    class A(abc.ABC):
        k = 2.0

        @abc.abstractmethod
        def s(self): ...

    class B(A):
        def s(self):
            return self.k

    b = B()
    return (lambda x: x * b.s()), lambda: setattr(A, "k", 3.0)


@way
def call_replaced():
    class A:
        def __call__(self, x):
            return x * 2

    a = A()
    return (lambda x: a(x)), lambda: setattr(A, "__call__", lambda self, x: x * 3)


@way
def callable_object_compiled_itself():
    class A:
        k = 2.0

        def __call__(self, x):
            return x * self.k

    a = A()
    return a, lambda: setattr(a, "k", 3.0)


@way
def comparison_of_the_user():
    class A:
        def __eq__(self, other):
            return True

        __hash__ = None

    a = A()
    return (lambda x: x * (2 if a == 1 else 3)), lambda: setattr(A, "__eq__", lambda self, other: False)


@way
def order_of_the_user():
    class A:
        k = 2.0

        def __lt__(self, other):
            return self.k < other

    a = A()
    return (lambda x: x * (2 if a < 2.5 else 3)), lambda: setattr(a, "k", 3.0)


@way
def reversed_and_length():
    class A:
        def __init__(self):
            self.values = [2.0, 3.0]

        def __reversed__(self):
            return reversed(self.values)

    a = A()
    return (lambda x: x * next(reversed(a))), lambda: a.values.append(4.0)


# ----------------------------------------------------------------------------------------------------------- descriptors


@way
def descriptor_of_the_user():
    class D:
        k = 2.0

        def __get__(self, owner, cls):
            return self.k

    class A:
        s = D()

    a = A()
    return (lambda x: x * a.s), lambda: setattr(vars(A)["s"], "k", 3.0)


@way
def descriptor_that_reads_its_owner():
    class D:
        def __get__(self, owner, cls):
            return owner._hidden

    class A:
        s = D()

    a = A()
    a._hidden = 2.0
    return (lambda x: x * a.s), lambda: setattr(a, "_hidden", 3.0)


@way
def descriptor_get_replaced():
    class D:
        def __get__(self, owner, cls):
            return 2.0

    class A:
        s = D()

    a = A()
    return (lambda x: x * a.s), lambda: setattr(D, "__get__", lambda self, owner, cls: 3.0)


@way
def property_replaced():
    class A:
        @property
        def s(self):
            return 2.0

    a = A()
    return (lambda x: x * a.s), lambda: setattr(A, "s", property(lambda self: 3.0))


@way
def property_that_reads():
    class A:
        @property
        def s(self):
            return self._s

    a = A()
    a._s = 2.0
    return (lambda x: x * a.s), lambda: setattr(a, "_s", 3.0)


@way
def setter_of_a_property():
    k = [2.0]

    class A:
        value = 0.0

        @property
        def s(self):
            return 1.0

        @s.setter
        def s(self, v):
            self.value = v * k[0]

    def f(x):
        a = A()
        a.s = 1.0
        return x * a.value

    return f, lambda: k.__setitem__(0, 3.0)


@way
def cached_property_deleted():
    class A:
        k = 2.0

        @functools.cached_property
        def s(self):
            return self.k

    a = A()

    def change():
        a.k = 3.0
        vars(a).pop("s", None)

    return (lambda x: x * a.s), change


@way
def slot():
    class A:
        __slots__ = ("k",)

    a = A()
    a.k = 2.0
    return (lambda x: x * a.k), lambda: setattr(a, "k", 3.0)


@way
def slot_of_a_base():
    class A:
        __slots__ = ("k",)

    class B(A):
        __slots__ = ()

    b = B()
    b.k = 2.0
    return (lambda x: x * b.k), lambda: setattr(b, "k", 3.0)


@way
def slot_by_a_computed_name():
    class A:
        __slots__ = ("k0", "k1")

    a, i = A(), 1
    a.k0, a.k1 = 1.0, 2.0
    return (lambda x: x * getattr(a, f"k{i}")), lambda: setattr(a, "k1", 3.0)


@way
def getattr_of_the_user():
    class A:
        def __init__(self):
            self.values = {"k": 2.0}

        def __getattr__(self, name):
            return self.values[name]

    a = A()
    return (lambda x: x * a.k), lambda: a.values.update(k=3.0)


@way
def getattribute_of_the_user():
    class A:
        def __getattribute__(self, name):
            return 2.0 if name == "k" else object.__getattribute__(self, name)

    a = A()
    return (lambda x: x * a.k), lambda: setattr(A, "__getattribute__", lambda self, name: 3.0)


@way
def getattribute_that_counts():
    seen = []

    class A:
        def __init__(self):
            self.values = {"k": 2.0}

        def __getattribute__(self, name):
            if name == "k":
                return object.__getattribute__(self, "values")["k"]
            return object.__getattribute__(self, name)

    a = A()
    seen.append(a)
    return (lambda x: x * a.k), lambda: a.values.update(k=3.0)


@way
def getattribute_that_refuses():
    class A:
        def __init__(self):
            object.__setattr__(self, "inner", {"k": 2.0})

        def __getattribute__(self, name):
            if name.startswith("_"):
                raise RuntimeError(name)
            return object.__getattribute__(self, "inner")[name]

    a = A()
    return (lambda x: x * a.k), lambda: object.__getattribute__(a, "__dict__")["inner"].update(k=3.0)


@way
def items_of_an_object():
    class A:
        def __init__(self):
            self.values = [2.0]

        def __getitem__(self, i):
            return self.values[i]

    a = A()
    return (lambda x: x * a[0]), lambda: a.values.__setitem__(0, 3.0)


# ------------------------------------------------------------------------------------------------------------ containers


@way
def user_dict():
    c = collections.UserDict(k=2.0)
    return (lambda x: x * c["k"]), lambda: c.update(k=3.0)


@way
def subclass_of_user_dict():
    class Config(collections.UserDict):
        pass

    c = Config(k=2.0)
    return (lambda x: x * c["k"]), lambda: c.update(k=3.0)


@way
def user_list():
    c = collections.UserList([2.0])
    return (lambda x: x * c[0]), lambda: c.__setitem__(0, 3.0)


@way
def user_string():
    c = collections.UserString("two")

    def change():
        c.data = "three"

    return (lambda x: x * len(c)), change


@way
def chain_map():
    c = collections.ChainMap({}, {"k": 2.0})
    return (lambda x: x * c["k"]), lambda: c.maps[1].update(k=3.0)


@way
def chain_map_shadowed():
    c = collections.ChainMap({}, {"k": 2.0})
    return (lambda x: x * c["k"]), lambda: c.update(k=3.0)


@way
def mapping_proxy():
    d = {"k": 2.0}
    c = types.MappingProxyType(d)
    return (lambda x: x * c["k"]), lambda: d.update(k=3.0)


@way
def mapping_proxy_of_nested_dicts():
    d = {"a": {"k": 2.0}}
    c = types.MappingProxyType(d)
    return (lambda x: x * c["a"]["k"]), lambda: d["a"].update(k=3.0)


@way
def view_of_a_dict():
    d = {"k": 2.0}
    c = d.values()
    return (lambda x: x * sum(c)), lambda: d.update(k=3.0)


@way
def ordered_dict_moved():
    c = collections.OrderedDict(a=2.0, b=3.0)
    return (lambda x: x * next(iter(c.values()))), lambda: c.move_to_end("a")


@way
def order_of_a_dict():
    c = {"a": 2.0, "b": 3.0}
    return (lambda x: x * next(iter(c.values()))), lambda: c.update(a=c.pop("a"))


@way
def order_of_a_nested_dict():
    c = {"c": {"a": 2.0, "b": 3.0}}

    def f(x):
        for v in c["c"].values():
            x = x * v + 1
        return x

    return f, lambda: c["c"].update(a=c["c"].pop("a"))


@way
def default_dict():
    c = collections.defaultdict(lambda: 2.0)
    c["a"] = 2.0
    return (lambda x: x * c["a"]), lambda: c.update(a=3.0)


@way
def factory_of_a_default_dict():
    c = collections.defaultdict(lambda: 2.0)

    def f(x):
        return x * c.default_factory()

    return f, lambda: setattr(c, "default_factory", lambda: 3.0)


@way
def counter():
    c = collections.Counter(a=2)
    return (lambda x: x * c["a"]), lambda: c.update("a")


@way
def deque():
    c = collections.deque([2.0, 3.0])
    return (lambda x: x * c[0]), lambda: c.rotate(1)


@way
def list_sorted():
    c = [3.0, 2.0]
    return (lambda x: x * c[0]), lambda: c.sort()


@way
def list_in_a_tuple():
    c = ([2.0],)
    return (lambda x: x * c[0][0]), lambda: c[0].__setitem__(0, 3.0)


@way
def set_changed():
    c = {1}
    return (lambda x: x * (3 if 2 in c else 2)), lambda: c.add(2)


@way
def named_tuple_of_objects():
    class P(typing.NamedTuple):
        a: typing.Any

    p = P(Plain(k=2.0))
    return (lambda x: x * p.a.k), lambda: setattr(p.a, "k", 3.0)


@way
def subclass_of_list_with_attributes():
    class L(list):
        pass

    c = L([1.0])
    c.k = 2.0
    return (lambda x: x * c.k), lambda: setattr(c, "k", 3.0)


@way
def subclass_of_dict_with_attributes():
    class D(dict):
        pass

    c = D(a=1.0)
    c.k = 2.0
    return (lambda x: x * c.k), lambda: setattr(c, "k", 3.0)


@way
def attribute_dict():
    class D(dict):
        def __getattr__(self, name):
            return self[name]

    c = D(k=2.0)
    return (lambda x: x * c.k), lambda: c.update(k=3.0)


@way
def bytes_changed():
    c = bytearray([2])
    return (lambda x: x * c[0]), lambda: c.__setitem__(0, 3)


@way
def array_of_python():
    c = array.array("d", [2.0])
    return (lambda x: x * c[0]), lambda: c.__setitem__(0, 3.0)


@way
def simple_namespace():
    c = types.SimpleNamespace(k=2.0)
    return (lambda x: x * c.k), lambda: setattr(c, "k", 3.0)


@way
def parsed_arguments():
    c = argparse.Namespace(k=2.0)
    return (lambda x: x * vars(c)["k"]), lambda: setattr(c, "k", 3.0)


@way
def zero_of_another_sign():
    c = Plain(k=0.0)
    return (lambda x: x / c.k), lambda: setattr(c, "k", -0.0)


@way
def number_of_another_type():
    c = Plain(k=2)
    return (lambda x: x * (3 if isinstance(c.k, bool) else 2) + c.k), lambda: setattr(c, "k", 2.0)


@way
def element_equal_in_a_frozenset():
    c = Plain(k=frozenset([1]))
    return (lambda x: x * (3 if isinstance(next(iter(c.k)), bool) else 2)), lambda: setattr(c, "k", frozenset([True]))


# -------------------------------------------------------------------------------------------- dataclasses, enums and more


@way
def dataclass_field():
    @dataclasses.dataclass
    class C:
        k: float

    c = C(2.0)
    return (lambda x: x * c.k), lambda: setattr(c, "k", 3.0)


@way
def dataclass_default():
    @dataclasses.dataclass
    class C:
        k: float = 2.0

    return (lambda x: x * C.k), lambda: setattr(C, "k", 3.0)


@way
def dataclass_read_as_dict():
    @dataclasses.dataclass
    class C:
        k: float

    c = C(2.0)
    return (lambda x: x * dataclasses.asdict(c)["k"]), lambda: setattr(c, "k", 3.0)


@way
def dataclass_with_slots():
    @dataclasses.dataclass(slots=True)
    class C:
        k: float

    c = C(2.0)
    return (lambda x: x * c.k), lambda: setattr(c, "k", 3.0)


@way
def frozen_dataclass_by_force():
    @dataclasses.dataclass(frozen=True)
    class C:
        k: float

    c = C(2.0)
    return (lambda x: x * c.k), lambda: object.__setattr__(c, "k", 3.0)


@way
def post_init():
    k = [2.0]

    @dataclasses.dataclass
    class C:
        a: float

        def __post_init__(self):
            self.a = self.a * k[0]

    return (lambda x: x * C(1.0).a), lambda: k.__setitem__(0, 3.0)


@way
def enum_member():
    class E(enum.Enum):
        A = 2.0
        B = 3.0

    c = Plain(e=E.A)
    return (lambda x: x * c.e.value), lambda: setattr(c, "e", E.B)


@way
def enum_attribute():
    class E(enum.Enum):
        A = 1

    E.A.k = 2.0
    return (lambda x: x * E.A.k), lambda: setattr(E.A, "k", 3.0)


@way
def weak_reference_to_an_object():
    a = Plain(k=2.0)
    r = weakref.ref(a)
    return (lambda x: x * r().k), lambda: setattr(a, "k", 3.0)


@way
def weak_reference_replaced():
    a, b = Plain(k=2.0), Plain(k=3.0)
    c = Plain(r=weakref.ref(a), keep=(a, b))
    return (lambda x: x * c.r().k), lambda: setattr(c, "r", weakref.ref(b))


@way
def weak_reference_that_died():
    c = Plain(a=Plain(k=2.0))
    r = weakref.ref(c.a)
    return (lambda x: x * (3.0 if r() is None else 2.0)), lambda: delattr(c, "a")


@way
def weak_proxy():
    a = Plain(k=2.0)
    p = weakref.proxy(a)
    return (lambda x: x * p.k), lambda: setattr(a, "k", 3.0)


@way
def weak_dict():
    a = Plain()
    d = weakref.WeakKeyDictionary({a: 2.0})
    return (lambda x: x * d[a]), lambda: d.__setitem__(a, 3.0)


@way
def weak_set():
    a = Plain()
    s = weakref.WeakSet()
    return (lambda x: x * (3 if a in s else 2)), lambda: s.add(a)


@way
def context_variable():
    variable = contextvars.ContextVar("variable", default=2.0)
    return (lambda x: x * variable.get()), lambda: variable.set(3.0)


@way
def context_variable_with_an_object():
    variable = contextvars.ContextVar("variable")
    a = Plain(k=2.0)
    variable.set(a)
    return (lambda x: x * variable.get().k), lambda: setattr(a, "k", 3.0)


@way
def thread_local():
    local = threading.local()
    local.k = 2.0
    return (lambda x: x * local.k), lambda: setattr(local, "k", 3.0)


@way
def element_of_an_array():
    a = np.array([2.0, 5.0])
    return (lambda x: x * float(a[0])), lambda: a.__setitem__(0, 3.0)


@way
def shape_of_an_array():
    c = Plain(a=np.ones(2))
    return (lambda x: x * len(c.a)), lambda: setattr(c, "a", np.ones(3))


@way
def large_array_replaced():
    c = Plain(a=np.full(2000, 2.0))
    return (lambda x: x * float(c.a[7])), lambda: setattr(c, "a", np.full(2000, 3.0))


@way
def array_that_is_an_operand():
    a = np.array([2.0, 5.0, 1.0])
    return (lambda x: x * a), lambda: a.__setitem__(0, 3.0)


@way
def memory_view():
    c = memoryview(bytearray(8)).cast("d")
    c[0] = 2.0
    return (lambda x: x * c[0]), lambda: c.__setitem__(0, 3.0)


# --------------------------------------------------------------------------------------------------------------- modules


@way
def attribute_of_a_python_module():
    m = with_module(k=2.0)
    return (lambda x: x * m.k), lambda: setattr(m, "k", 3.0)


@way
def getattr_of_a_python_module():
    values = {"k": 2.0}
    m = with_module(__getattr__=lambda name: values[name])
    return (lambda x: x * m.k), lambda: values.update(k=3.0)


@way
def getattr_of_a_python_module_shadowed():
    m = with_module(__getattr__=lambda name: 2.0)
    return (lambda x: x * m.k), lambda: setattr(m, "k", 3.0)


@way
def attribute_of_a_python_module_that_comes():
    m = with_module()
    return (lambda x: x * getattr(m, "k", 2.0)), lambda: setattr(m, "k", 3.0)


@way
def computed_name_in_a_python_module():
    m, i = with_module(k0=1.0, k1=2.0), 1
    return (lambda x: x * getattr(m, f"k{i}")), lambda: setattr(m, "k1", 3.0)


@way
def name_from_a_dict_in_a_python_module():
    m, c = with_module(small=2.0), {"name": "small"}
    return (lambda x: x * getattr(m, c["name"])), lambda: setattr(m, "small", 3.0)


@way
def computed_name_in_a_class():
    class A:
        k0, k1 = 1.0, 2.0

    a, i = A(), 1
    return (lambda x: x * getattr(a, f"k{i}")), lambda: setattr(A, "k1", 3.0)


@way
def computed_name_in_an_object():
    a, i = Plain(k0=1.0, k1=2.0), 1
    return (lambda x: x * getattr(a, "k" + str(i))), lambda: setattr(a, "k1", 3.0)


@way
def computed_name_in_globals():
    globals()["computed_1"], i = 2.0, 1
    return (lambda x: x * globals()[f"computed_{i}"]), lambda: globals().update(computed_1=3.0)


@way
def module_imported_inside():
    sys.modules["settings_of_a_test"] = m = with_module(k=2.0)

    def f(x):
        import settings_of_a_test

        return x * settings_of_a_test.k

    return f, lambda: setattr(m, "k", 3.0)


@way
def module_imported_inside_under_another_name():
    sys.modules["settings_of_a_test"] = m = with_module(k=2.0)

    def f(x):
        import settings_of_a_test as settings

        return x * settings.k

    return f, lambda: setattr(m, "k", 3.0)


@way
def name_imported_inside():
    sys.modules["settings_of_a_test"] = m = with_module(k=2.0)

    def f(x):
        from settings_of_a_test import k

        return x * k

    return f, lambda: setattr(m, "k", 3.0)


@way
def module_replaced_in_sys_modules():
    sys.modules["settings_of_a_test"] = with_module(k=2.0)

    def f(x):
        import settings_of_a_test

        return x * settings_of_a_test.k

    return f, lambda: sys.modules.update(settings_of_a_test=with_module(k=3.0))


@way
def global_that_is_none():
    globals()["OPTIONAL_OF_MODULE"] = None
    return (
        lambda x: x * (2.0 if OPTIONAL_OF_MODULE is None else OPTIONAL_OF_MODULE),
        lambda: globals().update(OPTIONAL_OF_MODULE=3.0),
    )


# ------------------------------------------------------------------------------------------------- modules of this package


@way
def functional_patched():
    return (lambda x: tg.nn.functional.relu(x - 2)), lambda: patch(tg.nn.functional, "relu", lambda x: x * 10)


@way
def functional_patched_under_another_name():
    return (lambda x: F.relu(x - 2)), lambda: patch(F, "relu", lambda x: x * 10)


@way
def functional_patched_that_a_layer_calls():
    m = nn.ReLU()
    return (lambda x: m(x - 2)), lambda: patch(F, "relu", lambda x, inplace: x * 10)


@way
def function_of_the_package_patched():
    return (lambda x: tg.sin(x)), lambda: patch(tg, "sin", tg.cos)


@way
def function_of_the_package_in_a_nested_module_patched():
    return (lambda x: tg.special.expit(x)), lambda: patch(tg.special, "expit", tg.cos)


@way
def module_of_the_package_patched():
    return (lambda x: tg.nn.functional.relu(x)), lambda: patch(tg.nn, "functional", Plain(relu=tg.cos))


@way
def method_of_tensors_patched():
    return (lambda x: x.sin()), lambda: patch(tg.Tensor, "sin", tg.Tensor.cos)


@way
def forward_of_a_layer_patched():
    m = nn.Sigmoid()
    return (lambda x: m(x)), lambda: patch(nn.Sigmoid, "forward", lambda self, x: x * 10)


@way
def flag_of_a_module_in_its_dict():
    class M(nn.Module):
        def forward(self, x):
            return x * (2 if self.training else 3)

    m = M()
    return (lambda x: m(x)), lambda: vars(m).update(training=False)


@way
def forward_of_an_instance_patched():
    m = nn.Sigmoid()
    return (lambda x: m(x)), lambda: setattr(m, "forward", lambda x: x * 10)


@way
def call_of_modules_patched():
    m = nn.Sigmoid()
    return (lambda x: m(x)), lambda: patch(nn.Module, "__call__", lambda self, x: x * 10)


@way
def method_of_modules_patched():
    m = nn.Linear(3, 3)
    nn.init.ones_(m.weight), nn.init.zeros_(m.bias)
    return (
        lambda x: x * sum([p.detach().sum() for p in m.parameters()]),
        lambda: patch(nn.Module, "parameters", lambda self: [self.weight, self.weight]),
    )


@way
def setting_of_an_optimizer_that_a_method_reads():
    class Groups:
        def of(self, optimizer):
            return optimizer.param_groups

    groups, o = Groups(), optim.SGD([nn.Parameter(tg.ones(2))], lr=2.0)
    return (lambda x: x * groups.of(o)[0]["lr"]), lambda: o.param_groups[0].update(lr=3.0)


@way
def step_of_an_optimizer_patched():
    p = nn.Parameter(tg.tensor([1.0]))
    o = optim.SGD([p], lr=0.5)

    def f(x):
        p.grad = tg.ones(1)
        o.step()
        return x * p.detach()

    return f, lambda: patch(optim.SGD, "step", lambda self: None)


@way
def numpy_function_patched():
    return (lambda x: np.sin(x)), lambda: patch(np, "sin", np.cos)


@way
def math_function_patched():
    import math

    return (lambda x: x * math.sqrt(4.0)), lambda: patch(math, "sqrt", lambda v: v)


def around(function, values):
    """What users put around a function of the package."""

    @functools.wraps(function)
    def scaled(*args, **kwargs):
        return function(*args, **kwargs) * values.k

    return scaled


@way
def state_of_a_function_that_is_put_into_a_library():
    g = Plain(k=2.0)
    patch(F, "relu", lambda x: x * g.k)
    return (lambda x: F.relu(x)), lambda: setattr(g, "k", 3.0)


@way
def state_of_a_function_that_is_put_around_a_library_s():
    g = Plain(k=2.0)
    patch(F, "relu", around(F.relu, g))
    return (lambda x: F.relu(x)), lambda: setattr(g, "k", 3.0)


@way
def state_of_an_object_that_is_put_into_a_library():
    class G:
        k = 2.0

        def __call__(self, x):
            return x * self.k

    patch(F, "relu", G())
    return (lambda x: F.relu(x)), lambda: setattr(G, "k", 3.0)


@way
def state_of_a_class_that_is_put_into_a_library():
    class G(nn.ReLU):
        k = 2.0

        def forward(self, x):
            return super().forward(x) * self.k

    patch(nn, "ReLU", G)
    return (lambda x: nn.ReLU()(x)), lambda: setattr(G, "k", 3.0)


@way
def state_of_a_method_that_is_put_into_a_library():
    class G:
        k = 2.0

        @classmethod
        def apply(cls, x):
            return x * cls.k

    patch(F, "relu", G.apply)
    return (lambda x: F.relu(x)), lambda: setattr(G, "k", 3.0)


@way
def state_of_a_module_that_is_put_into_a_library():
    m = with_module(k=2.0)
    patch(nn, "init", m)
    return (lambda x: x * nn.init.k), lambda: setattr(m, "k", 3.0)


@way
def state_of_a_function_that_a_layer_calls():
    g, m = Plain(k=2.0), nn.ReLU()
    patch(F, "relu", around(F.relu, g))
    return (lambda x: m(x)), lambda: setattr(g, "k", 3.0)


@way
def state_of_a_method_that_is_put_into_tensors():
    g = Plain(k=2.0)
    patch(tg.Tensor, "sin", lambda self: self * g.k)
    return (lambda x: x.sin()), lambda: setattr(g, "k", 3.0)


@way
def state_of_a_property_that_is_put_into_tensors():
    g = Plain(k=2.0)
    patch(tg.Tensor, "mT", property(lambda self: self * g.k))
    return (lambda x: x.mT), lambda: setattr(g, "k", 3.0)


@way
def state_of_a_forward_that_is_put_into_a_layer():
    g, m = Plain(k=2.0), nn.Sequential(nn.Sigmoid())
    patch(nn.Sigmoid, "forward", around(nn.Sigmoid.forward, g))
    return (lambda x: m(x)), lambda: setattr(g, "k", 3.0)


@way
def state_of_what_is_around_the_forward_of_a_layer():
    g = Plain(k=2.0)

    class Scaled(nn.Sigmoid):
        forward = around(nn.Sigmoid.forward, g)

    m = Scaled()
    return (lambda x: m(x)), lambda: setattr(g, "k", 3.0)


@way
def state_of_what_is_around_the_step_of_an_optimizer():
    g, p = Plain(k=2.0), nn.Parameter(tg.tensor([1.0]))

    def around_step(step):
        @functools.wraps(step)
        def scaled(self):
            step(self)
            with tg.no_grad():
                p.mul_(g.k)

        return scaled

    class Scaled(optim.SGD):
        step = around_step(optim.SGD.step)

    o = Scaled([p], lr=0.5)

    def f(x):
        p.grad = tg.ones(1)
        o.step()
        return x * p.detach()

    return f, lambda: setattr(g, "k", 3.0)


@way
def entry_of_parameters_written():
    m = nn.Linear(3, 3)
    nn.init.ones_(m.weight), nn.init.zeros_(m.bias)
    return (lambda x: m(x).detach()), lambda: m._parameters.update(weight=nn.Parameter(m.weight.detach() * 2))


@way
def entry_of_parameters_removed():
    m = nn.Linear(3, 3)
    nn.init.ones_(m.weight), nn.init.ones_(m.bias)
    return (lambda x: m(x).detach()), lambda: m._parameters.__setitem__("bias", None)


@way
def entry_of_buffers_written():
    m = nn.BatchNorm1d(3).eval()
    return (
        lambda x: m(x.reshape(1, 3)).detach(),
        lambda: m._buffers.__setitem__("running_mean", tg.ones(3)),
    )


@way
def entry_of_modules_written():
    m = nn.Sequential(nn.ReLU(), nn.Sigmoid())
    return (lambda x: m(x)), lambda: m._modules.__setitem__("0", nn.Tanh())


@way
def entries_of_modules_reordered():
    m = nn.Sequential(nn.ReLU(), nn.Sigmoid())

    def change():
        m._modules["0"] = m._modules.pop("0")

    return (lambda x: m(x - 2)), change


@way
def item_of_a_module_list():
    m = nn.ModuleList([nn.ReLU(), nn.Sigmoid()])
    return (lambda x: m[0](x - 2)), lambda: m.__setitem__(0, nn.Tanh())


@way
def module_dict_updated():
    m = nn.ModuleDict({"a": nn.ReLU()})
    return (lambda x: m["a"](x - 2)), lambda: m.update({"a": nn.Tanh()})


@way
def setting_of_a_layer():
    m = nn.LeakyReLU(0.5)
    return (lambda x: m(x - 2)), lambda: setattr(m, "negative_slope", 0.25)


@way
def attribute_of_a_module_of_the_user():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2.0

        def forward(self, x):
            return x * self.k

    m = M()
    return (lambda x: m(x)), lambda: setattr(m, "k", 3.0)


@way
def attribute_of_a_module_of_the_user_written_directly():
    class M(nn.Module):
        k = 2.0

        def forward(self, x):
            return x * self.k

    m = M()
    return (lambda x: m(x)), lambda: vars(m).update(k=3.0)


@way
def hooks_cleared():
    m = nn.ReLU()
    m.register_forward_hook(lambda module, args, out: out * 10)
    return (lambda x: m(x)), lambda: m._forward_hooks.clear()


@way
def hook_of_all_modules():
    m = nn.ReLU()

    def change():
        handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 10)
        PATCHED.append(handle.remove)

    return (lambda x: m(x)), change


@way
def param_group_replaced():
    p = nn.Parameter(tg.tensor([1.0]))
    o = optim.SGD([p], lr=0.1)

    def f(x):
        p.grad = tg.ones(1)
        o.step()
        return x * p.detach()

    return f, lambda: o.param_groups.__setitem__(0, dict(o.param_groups[0], lr=10.0))


@way
def param_groups_replaced():
    p = nn.Parameter(tg.tensor([1.0]))
    o = optim.SGD([p], lr=0.1)

    def f(x):
        p.grad = tg.ones(1)
        o.step()
        return x * p.detach()

    return f, lambda: setattr(o, "param_groups", [dict(o.param_groups[0], lr=10.0)])


@way
def params_of_a_group_replaced():
    p, q = nn.Parameter(tg.tensor([1.0])), nn.Parameter(tg.tensor([1.0]))
    o = optim.SGD([p], lr=0.1)

    def f(x):
        p.grad, q.grad = tg.ones(1), tg.ones(1)
        o.step()
        return x * p.detach() * q.detach()

    return f, lambda: o.param_groups[0].update(params=[q])


@way
def setting_of_a_group():
    p = nn.Parameter(tg.tensor([1.0]))
    o = optim.SGD([p], lr=0.1, momentum=0.5)

    def f(x):
        p.grad = tg.ones(1)
        o.step()
        return x * p.detach()

    return f, lambda: o.param_groups[0].update(momentum=0.25, lr=0.2)


def adam():
    p = nn.Parameter(tg.tensor([1.0]))
    o = optim.Adam([p], lr=0.1)

    def f(x):
        p.grad = p.detach() * 2
        o.step()
        return x * p.detach()

    return p, o, f


@way
def state_of_an_optimizer_cleared():
    p, o, f = adam()
    kept = []

    def change():
        kept.append(dict(o.state[p]))
        o.state.clear()

    return f, change


@way
def state_of_an_optimizer_replaced():
    _, o, f = adam()
    kept = []

    def change():
        kept.append(o.state)
        o.state = collections.defaultdict(dict)

    return f, change


@way
def state_of_a_parameter_replaced():
    p, o, f = adam()
    kept = []

    def change():
        kept.append(o.state[p])
        o.state[p] = {k: v.clone() * 2 for k, v in kept[0].items()}

    return f, change


@way
def tensor_in_the_state_of_a_parameter_replaced():
    p, o, f = adam()
    kept = []

    def change():
        kept.append(o.state[p]["exp_avg"])
        o.state[p]["exp_avg"] = tg.ones(1)

    return f, change


@way
def state_of_an_optimizer_loaded():
    _, o, f = adam()
    kept = []

    def change():
        kept.append(o.state_dict())
        new = {
            "state": {0: {k: v.clone() * 2 for k, v in kept[0]["state"][0].items()}},
            "param_groups": kept[0]["param_groups"],
        }
        o.load_state_dict(new)

    return f, change


@way
def tensor_attribute_replaced():
    a = Plain(w=tg.tensor([2.0]))
    kept = [a.w]
    return (lambda x: x * a.w), lambda: (kept.append(a.w), setattr(a, "w", tg.tensor([3.0])))


@way
def tensor_with_an_attribute():
    w = tg.tensor([1.0])
    w.k = 2.0
    return (lambda x: x * w * w.k), lambda: setattr(w, "k", 3.0)


@way
def class_of_a_tensor():
    w = nn.Parameter(tg.tensor([1.0]))
    c = Plain(w=w)
    return (
        lambda x: x * (2.0 if isinstance(c.w, nn.Parameter) else 3.0),
        lambda: setattr(c, "w", tg.tensor([1.0])),
    )


@way
def default_dtype_inside():
    tg.set_default_dtype(tg.float32)
    PATCHED.append(lambda: tg.set_default_dtype(tg.float32))
    return (lambda x: (tg.zeros(1) + 1 / 3).double() * x), lambda: tg.set_default_dtype(tg.float64)


@way
def compiled_function_of_another():
    k = [2.0]
    g = tg.compile(lambda x: x * k[0])
    return (lambda x: g(x)), lambda: k.__setitem__(0, 3.0)


# ---------------------------------------------------------------------------------------------------------- further ways


@further
def class_decorator_wrapped():
    def deco(cls):
        class W2(cls):
            pass

        return W2

    @deco
    class A:
        k = 2.0

    a = A()
    return (lambda x: x * a.k), lambda: setattr(A.__mro__[1], "k", 3.0)


@further
def mixin_order():
    class M1:
        def s(self):
            return 2.0

    class M2:
        def s(self):
            return 3.0

    class A(M1, M2):
        pass

    a = A()
    return (lambda x: x * a.s()), lambda: delattr(M1, "s")


@further
def super_two_args():
    class A:
        def s(self):
            return 2.0

    class B(A):
        def s(self):
            return 5.0

        def t(self):
            return super().s()

    b = B()
    return (lambda x: x * b.t()), lambda: setattr(A, "s", lambda self: 3.0)


@further
def super_classmethod():
    class A:
        @classmethod
        def s(cls):
            return cls.k

        k = 2.0

    class B(A):
        @classmethod
        def s(cls):
            return super().s() * 1

    return (lambda x: x * B.s()), lambda: setattr(A, "k", 3.0)


@further
def super_property():
    class A:
        @property
        def s(self):
            return 2.0

    class B(A):
        @property
        def s(self):
            return super().s * 1

    b = B()
    return (lambda x: x * b.s), lambda: setattr(A, "s", property(lambda self: 3.0))


@further
def super_init():
    class A:
        def __init__(self):
            self.k = 2.0

    class B(A):
        def __init__(self):
            super().__init__()

    def i(self):
        self.k = 3.0

    return (lambda x: x * B().k), lambda: setattr(A, "__init__", i)


@further
def module_super_forward():
    class A(nn.Module):
        def forward(self, x):
            return x * 2

    class B(A):
        def forward(self, x):
            return super().forward(x) * 1

    b = B()
    return (lambda x: b(x)), lambda: setattr(A, "forward", lambda self, x: x * 3)


@further
def module_super_of_ours():
    class B(nn.ReLU):
        def forward(self, x):
            return super().forward(x) * 1

    b = B()
    old = nn.ReLU.forward
    return (
        (lambda x: b(x - 2)),
        lambda: setattr(nn.ReLU, "forward", lambda self, x: x * 3),
        lambda: setattr(nn.ReLU, "forward", old),
    )


@further
def conv_functional_patched():
    m = nn.Linear(3, 3, bias=False)
    m.weight.data.fill_(1.0)
    old = F.linear
    return (
        (lambda x: m(x).detach()),
        lambda: setattr(F, "linear", lambda x, w, b=None: x * 5),
        lambda: setattr(F, "linear", old),
    )


@further
def init_patched():
    old = tg.zeros
    return (lambda x: x + tg.zeros(3)), lambda: setattr(tg, "zeros", tg.ones), lambda: setattr(tg, "zeros", old)


@further
def from_import_function_global_rebound():
    g = {"relu": F.relu, "tg": tg}
    exec("def f(x): return relu(x-2)", g)
    return g["f"], lambda: g.update(relu=lambda x: x * 7)


@further
def group_setting_custom():
    p = nn.Parameter(tg.ones(3))
    o = optim.SGD([dict(params=[p], tag=2.0)], lr=0.1)
    return (lambda x: x * o.param_groups[0]["tag"]), lambda: o.param_groups[0].update(tag=3.0)


@further
def add_param_group():
    p, q = nn.Parameter(tg.ones(3)), nn.Parameter(tg.ones(3))
    o = optim.SGD([p], lr=0.1)

    def f(x):
        p.grad = tg.ones(3)
        q.grad = tg.ones(3)
        o.step()
        return q.detach() * x

    return f, lambda: o.add_param_group({"params": [q]})


@further
def defaults_dict_of_optimizer():
    p = nn.Parameter(tg.ones(3))
    o = optim.SGD([p], lr=0.1)
    return (lambda x: x * o.defaults["lr"]), lambda: o.defaults.update(lr=3.0)


@further
def lr_read_by_python():
    p = nn.Parameter(tg.ones(3))
    o = optim.SGD([p], lr=2.0)
    return (lambda x: x * o.param_groups[0]["lr"]), lambda: o.param_groups[0].update(lr=3.0)


@further
def nested_config():
    c = Plain(a=Plain(b={"c": [Plain(k=2.0)]}))
    return (lambda x: x * c.a.b["c"][0].k), lambda: setattr(c.a.b["c"][0], "k", 3.0)


@further
def dict_get_default():
    d = {}
    return (lambda x: x * d.get("k", 2.0)), lambda: d.update(k=3.0)


@further
def dict_in_test():
    d = {}
    return (lambda x: x * (3 if "k" in d else 2)), lambda: d.update(k=1)


@further
def dict_len_by_bool():
    d = {}
    return (lambda x: x * (3 if d else 2)), lambda: d.update(k=1)


@further
def list_comprehension_over_global():
    values = [1.0, 1.0]
    return (lambda x: sum([x * v for v in values])), lambda: values.append(1.0)


@further
def star_args_list():
    values = [2.0]

    def g(x, *a):
        return x * a[0]

    return (lambda x: g(x, *values)), lambda: values.__setitem__(0, 3.0)


@further
def star_kwargs_dict():
    d = {"k": 2.0}

    def g(x, k):
        return x * k

    return (lambda x: g(x, **d)), lambda: d.update(k=3.0)


@further
def enum_member_list():
    class E(enum.Enum):
        A = 1
        B = 2

    values = [E.A]
    return (lambda x: x * (2 if values[0] is E.A else 3)), lambda: values.__setitem__(0, E.B)


@further
def int_flag():
    class Fl(enum.IntFlag):
        A = 1
        B = 2

    c = Plain(f=Fl.A)
    return (lambda x: x * (3 if c.f & Fl.B else 2)), lambda: setattr(c, "f", Fl.A | Fl.B)


@further
def configparser_():
    c = configparser.ConfigParser()
    c["a"] = {"k": "2"}
    return (lambda x: x * c.getfloat("a", "k")), lambda: c["a"].__setitem__("k", "3")


@further
def string_template():
    t = string.Template("$a")
    return (lambda x: x * len(t.substitute(a="xx"))), lambda: setattr(t, "template", "$a$a")


@further
def regex_replaced():
    c = Plain(r=re.compile("a"))
    return (lambda x: x * len(c.r.findall("ab"))), lambda: setattr(c, "r", re.compile("[ab]"))


@further
def custom_mapping():
    class M(collections.abc.Mapping):
        def __init__(self):
            self._d = {"k": 2.0}

        def __getitem__(self, k):
            return self._d[k]

        def __iter__(self):
            return iter(self._d)

        def __len__(self):
            return len(self._d)

    m = M()
    return (lambda x: x * m["k"]), lambda: m._d.update(k=3.0)


@further
def custom_mapping_get():
    class M(collections.abc.Mapping):
        def __init__(self):
            self._d = {}

        def __getitem__(self, k):
            return self._d[k]

        def __iter__(self):
            return iter(self._d)

        def __len__(self):
            return len(self._d)

    m = M()
    return (lambda x: x * m.get("k", 2.0)), lambda: m._d.update(k=3.0)


@further
def custom_sequence_iter():
    class S:
        def __init__(self):
            self.v = [2.0]

        def __iter__(self):
            yield from self.v

    q = S()
    return (lambda x: sum(x * v for v in q)), lambda: q.v.append(1.0)


@further
def bool_of_object():
    class B:
        on = True

        def __bool__(self):
            return self.on

    b = B()
    return (lambda x: x * (2 if b else 3)), lambda: setattr(b, "on", False)


@further
def float_of_object():
    class B:
        k = 2.0

        def __float__(self):
            return self.k

    b = B()
    return (lambda x: x * float(b)), lambda: setattr(b, "k", 3.0)


@further
def index_of_object():
    class B:
        k = 1

        def __index__(self):
            return self.k

    b = B()
    return (lambda x: x[b] * 1), lambda: setattr(b, "k", 2)


@further
def rmul_of_object():
    class B:
        k = 2.0

        def __rmul__(self, o):
            return o * self.k

        __array_ufunc__ = None

    b = B()
    return (lambda x: x * b), lambda: setattr(b, "k", 3.0)


@further
def format_of_object():
    class B:
        k = 2

        def __format__(self, spec):
            return "x" * self.k

    b = B()
    return (lambda x: x * len(f"{b}")), lambda: setattr(b, "k", 3)


@further
def str_of_object():
    class B:
        k = 2

        def __str__(self):
            return "x" * self.k

    b = B()
    return (lambda x: x * len(str(b))), lambda: setattr(b, "k", 3)


@further
def hash_eq_in_dict():
    class B:
        k = 1

        def __hash__(self):
            return self.k

        def __eq__(self, o):
            return isinstance(o, int) and self.k == o

    b = B()
    d = {1: 2.0, 2: 3.0}
    return (lambda x: x * d[b]), lambda: setattr(b, "k", 2)


@further
def context_manager_class():
    class C:
        k = 2.0

        def __enter__(self):
            return self.k

        def __exit__(self, *a):
            pass

    c = C()

    def f(x):
        with c as k:
            return x * k

    return f, lambda: setattr(c, "k", 3.0)


@further
def iter_next_class():
    class It:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n <= 0:
                raise StopIteration
            self.n -= 1
            return 1.0

    c = Plain(n=2)
    return (lambda x: sum(x * v for v in It(c.n))), lambda: setattr(c, "n", 3)


@further
def length_hint():
    class B:
        k = 2

        def __len__(self):
            return self.k

    b = B()
    return (lambda x: x * len(b)), lambda: setattr(b, "k", 3)


@further
def lambda_default_arg():
    fs = [lambda x, k=k: x * k for k in (2.0, 3.0)]
    c = Plain(i=0)
    return (lambda x: fs[c.i](x)), lambda: setattr(c, "i", 1)


@further
def nested_partial():
    p = functools.partial(functools.partial(lambda a, b, x: x * a * b, 2.0), 1.0)

    def change():
        p.__setstate__((p.func, (3.0, 1.0), {}, None))

    return (lambda x: p(x)), change


@further
def partial_attribute():
    p = functools.partial(lambda x: x * p.k)
    p.k = 2.0
    return (lambda x: p(x)), lambda: setattr(p, "k", 3.0)


@further
def lru_cache_attribute():
    @functools.lru_cache
    def g():
        return 2.0

    g.k = 2.0
    return (lambda x: x * g.k), lambda: setattr(g, "k", 3.0)


@further
def wrapped_attribute():
    def inner(x):
        return x * 2

    @functools.wraps(inner)
    def outer(x):
        return outer.__wrapped__(x)

    return (lambda x: outer(x)), lambda: setattr(outer, "__wrapped__", lambda x: x * 3)


@further
def reduce_operator():
    c = Plain(op=operator.add)
    return (lambda x: functools.reduce(c.op, [x, x, x])), lambda: setattr(c, "op", operator.mul)


@further
def itemgetter_():
    g = operator.itemgetter("k")
    d = {"k": 2.0}
    return (lambda x: x * g(d)), lambda: d.update(k=3.0)


@further
def map_filter():
    k = [2.0]
    return (lambda x: sum(map(lambda v: v * k[0], [x]))), lambda: k.__setitem__(0, 3.0)


@further
def generator_in_list():
    k = [2.0]

    def g():
        yield from k

    return (lambda x: x * next(g())), lambda: k.__setitem__(0, 3.0)


@further
def recursion():
    c = Plain(n=2)

    def g(x, n):
        return x if n == 0 else g(x, n - 1) * 2

    return (lambda x: g(x, c.n)), lambda: setattr(c, "n", 3)


@further
def mutual_recursion_cell():
    k = [2.0]

    def a(x, n):
        return b(x, n - 1) if n else x

    def b(x, n):
        return a(x, n - 1) * k[0] if n else x * k[0]

    return (lambda x: a(x, 3)), lambda: k.__setitem__(0, 3.0)


@further
def nonlocal_in_inner():
    k = 2.0

    def outer():
        def set_(v):
            nonlocal k
            k = v

        return set_

    s = outer()
    return (lambda x: x * k), lambda: s(3.0)


@further
def class_in_function_default():
    class A:
        k = 2.0

    def g(x, cls=A):
        return x * cls.k

    return (lambda x: g(x)), lambda: setattr(A, "k", 3.0)


@further
def type_annotations_read():
    class A:
        k: float = 2.0

    return (lambda x: x * len(A.__annotations__)), lambda: A.__annotations__.update(j=int)


@further
def slots_and_dict():
    class A:
        __slots__ = ("__dict__", "k")

    a = A()
    a.k = 1.0
    a.j = 2.0
    return (lambda x: x * a.j * a.k), lambda: setattr(a, "j", 3.0)


@further
def slot_deleted():
    class A:
        __slots__ = ("k",)

    a = A()
    a.k = 3.0

    def f(x):
        try:
            return x * a.k
        except AttributeError:
            return x * 2

    return f, lambda: delattr(a, "k")


@further
def slot_added():
    class A:
        __slots__ = ("k",)

    a = A()

    def f(x):
        try:
            return x * a.k
        except AttributeError:
            return x * 2

    return f, lambda: setattr(a, "k", 3.0)


@further
def own_dict_replaced():
    a = Plain(k=2.0)
    return (lambda x: x * a.k), lambda: setattr(a, "__dict__", {"k": 3.0})


@further
def borg():
    shared = {"k": 2.0}

    class B:
        def __init__(self):
            self.__dict__ = shared

    return (lambda x: x * B().k), lambda: shared.update(k=3.0)


@further
def data_descriptor_added():
    class A:
        pass

    a = A()
    a.k = 2.0
    return (lambda x: x * a.k), lambda: setattr(A, "k", property(lambda s: 3.0))


@further
def nondata_descriptor_on_class():
    class D:
        def __get__(self, o, c):
            return 2.0 if o is None else 5.0

    class A:
        k = D()

    return (lambda x: x * A.k), lambda: setattr(D, "__get__", lambda s, o, c: 3.0)


@further
def descriptor_set_name_storage():
    class D:
        def __set_name__(self, o, n):
            self.n = "_" + n

        def __get__(self, o, c):
            return getattr(o, self.n)

        def __set__(self, o, v):
            setattr(o, self.n, v)

    class A:
        k = D()

    a = A()
    a.k = 2.0
    return (lambda x: x * a.k), lambda: setattr(a, "k", 3.0)


@further
def getattr_delegation():
    inner = Plain(k=2.0)

    class A:
        def __init__(self, i):
            self._i = i

        def __getattr__(self, n):
            return getattr(self._i, n)

    a = A(inner)
    return (lambda x: x * a.k), lambda: setattr(inner, "k", 3.0)


@further
def getattribute_delegation():
    inner = Plain(k=2.0)

    class A:
        def __init__(self, i):
            object.__setattr__(self, "_i", i)

        def __getattribute__(self, n):
            return getattr(object.__getattribute__(self, "_i"), n)

    a = A(inner)
    return (lambda x: x * a.k), lambda: setattr(inner, "k", 3.0)


@further
def getattribute_argument():
    class A:
        def __init__(self, k):
            object.__setattr__(self, "d", {"k": k})

        def __getattribute__(self, n):
            if n.startswith("__"):
                raise KeyError(n)
            return object.__getattribute__(self, "d")[n]

    a = A(2.0)
    return (lambda x: x * a.k), lambda: object.__getattribute__(a, "d").update(k=3.0)


@further
def computed_attr_via_loop():
    c = Plain(lr_a=1.0, lr_b=2.0)

    def f(x):
        for n in ("a", "b"):
            x = x * getattr(c, "lr_" + n)
        return x

    return f, lambda: setattr(c, "lr_b", 3.0)


@further
def computed_in_class_by_dict():
    class C:
        a = 2.0
        b = 3.0

    d = {"n": "a"}
    return (lambda x: x * getattr(C, d["n"])), lambda: d.update(n="b")


@further
def computed_functional_patched():
    d = {"n": "relu"}
    old = F.relu
    return (
        (lambda x: getattr(F, d["n"])(x - 2)),
        lambda: setattr(F, "relu", lambda x: x * 9),
        lambda: setattr(F, "relu", old),
    )


@further
def setattr_hasattr_toggle():
    c = Plain()
    return (lambda x: x * (3 if hasattr(c, "flag") else 2)), lambda: setattr(c, "flag", 1)


@further
def vars_of_class():
    class C:
        k = 2.0

    return (lambda x: x * vars(C)["k"]), lambda: setattr(C, "k", 3.0)


@further
def dir_of_object():
    c = Plain(a=1)
    return (lambda x: x * len([n for n in dir(c) if not n.startswith("_")])), lambda: setattr(c, "b", 1)


@further
def operator_attrgetter_dotted():
    c = Plain(a=Plain(k=2.0))
    g = operator.attrgetter("a.k")
    return (lambda x: x * g(c)), lambda: setattr(c.a, "k", 3.0)


@further
def contextvar_run():
    v = contextvars.ContextVar("v", default=2.0)

    def g():
        return v.get()

    return (lambda x: x * g()), lambda: v.set(3.0)


@further
def thread_local_subclass():
    class L(threading.local):
        k = 2.0

    local = L()
    return (lambda x: x * local.k), lambda: setattr(local, "k", 3.0)


@further
def queue_():
    q = queue.Queue()
    q.put(1)
    return (lambda x: x * q.qsize()), lambda: q.put(2)


@further
def heap():
    h = [2.0, 5.0]
    return (lambda x: x * h[0]), lambda: heapq.heappush(h, 1.0)


@further
def mutable_in_frozenset_obj():
    a = Plain(k=2.0)
    s = frozenset([a])
    return (lambda x: x * next(iter(s)).k), lambda: setattr(a, "k", 3.0)


@further
def obj_in_set():
    a = Plain(k=2.0)
    s = {a}
    return (lambda x: x * next(iter(s)).k), lambda: setattr(a, "k", 3.0)


@further
def obj_as_dict_key():
    a = Plain(k=2.0)
    d = {a: 1}
    return (lambda x: x * next(iter(d)).k), lambda: setattr(a, "k", 3.0)


@further
def fn_as_dict_key():
    k = [2.0]
    d = {(lambda x: x * k[0]): 1}
    return (lambda x: next(iter(d))(x)), lambda: k.__setitem__(0, 3.0)


@further
def dict_items_view():
    d = {"k": 2.0}
    v = d.items()
    return (lambda x: x * dict(v)["k"]), lambda: d.update(k=3.0)


@further
def tuple_equal_replaced():
    c = Plain(t=(1, 2.0))
    return (lambda x: x * c.t[1]), lambda: setattr(c, "t", (1, 3.0))


@further
def namedtuple_field_obj():
    N = collections.namedtuple("N", "a")
    n = N(a={"k": 2.0})
    return (lambda x: x * n.a["k"]), lambda: n.a.update(k=3.0)


@further
def str_subclass():
    class S(str):
        k = 2.0

    s = S("a")
    return (lambda x: x * s.k), lambda: setattr(S, "k", 3.0)


@further
def int_subclass_attr():
    class Whole(int):
        pass

    i = Whole(2)
    i.k = 2.0
    return (lambda x: x * i.k), lambda: setattr(i, "k", 3.0)


@further
def exception_class_attr():
    class E(Exception):
        k = 2.0

    def f(x):
        try:
            raise E
        except E as e:
            return x * e.k

    return f, lambda: setattr(E, "k", 3.0)


@further
def registry_of_types():
    d = {int: 2.0, float: 3.0}
    c = Plain(v=1)
    return (lambda x: x * d[type(c.v)]), lambda: setattr(c, "v", 1.0)


@further
def singledispatchmethod():
    class A:
        @functools.singledispatchmethod
        def g(self, v):
            return 2.0

    a = A()
    return (
        lambda x: x * a.g(1)
    ), lambda: A.g.register(int)(lambda s, v: 3.0) if 0 else vars(A)["g"].register(int, lambda s, v: 3.0)


@further
def distributions_attr():
    from tapegrad import distributions as D

    d = D.Normal(tg.zeros(3), tg.ones(3))
    return (lambda x: d.log_prob(x)), lambda: setattr(d, "loc", tg.ones(3))


@further
def scheduler_attr():
    p = nn.Parameter(tg.ones(3))
    o = optim.SGD([p], lr=0.1)
    s = optim.lr_scheduler.StepLR(o, 1)
    return (lambda x: x * s.get_last_lr()[0]), lambda: (o.step(), s.step())


@further
def functional_settings_of_layer():
    m = nn.Softplus(beta=1.0)
    return (lambda x: m(x)), lambda: setattr(m, "beta", 3.0)


@further
def batchnorm_momentum():
    m = nn.BatchNorm1d(3, momentum=0.1)
    return (lambda x: (m(tg.stack([x, x + 1])), m.running_mean * 1)[1]), lambda: setattr(m, "momentum", 0.5)


@further
def parametrized():
    m = nn.Linear(3, 3, bias=False)
    m.weight.data.fill_(1.0)

    class Par(nn.Module):
        k = 2.0

        def forward(self, X):
            return X * self.k

    nn.utils.parametrize.register_parametrization(m, "weight", Par())
    return (lambda x: m(x).detach()), lambda: setattr(Par, "k", 3.0)


@further
def module_getattr_override():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ReLU()
            self.d = {"k": 2.0}

        def __getattr__(self, n):
            if n == "k":
                return self.d["k"]
            return super().__getattr__(n)

        def forward(self, x):
            return x * self.k

    m = M()
    return (lambda x: m(x)), lambda: m.d.update(k=3.0)


@further
def module_property():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self._k = 2.0

        @property
        def k(self):
            return self._k

        def forward(self, x):
            return x * self.k

    m = M()
    return (lambda x: m(x)), lambda: setattr(m, "_k", 3.0)


@further
def module_list_in_plain_list():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ls = [nn.ReLU()]

        def forward(self, x):
            return self.ls[0](x - 2)

    m = M()
    return (lambda x: m(x)), lambda: m.ls.__setitem__(0, nn.Sigmoid())


@further
def module_vars_written_existing():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2.0

        def forward(self, x):
            return x * self.k

    m = M()
    return (lambda x: m(x)), lambda: vars(m).update(k=3.0)


@further
def object_setattr_on_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2.0

        def forward(self, x):
            return x * self.k

    m = M()
    return (lambda x: m(x)), lambda: object.__setattr__(m, "k", 3.0)


@further
def autograd_function():
    class Fn(tg.autograd.Function):
        k = 2.0

        @staticmethod
        def forward(ctx, x):
            return x * Fn.k

        @staticmethod
        def backward(ctx, g):
            return g

    return (lambda x: Fn.apply(x)), lambda: setattr(Fn, "k", 3.0)


@further
def global_default_device_dtype_fn():
    return (
        (lambda x: x * tg.get_default_dtype().itemsize),
        lambda: tg.set_default_dtype(tg.float64),
        lambda: tg.set_default_dtype(tg.float32),
    )


@further
def deterministic_flag():
    return (
        (lambda x: x * (3 if tg.are_deterministic_algorithms_enabled() else 2)),
        lambda: tg.use_deterministic_algorithms(True),
        lambda: tg.use_deterministic_algorithms(False),
    )


@further
def exec_defined():
    g = {"k": 2.0}
    exec("def h(x): return x*k", g)
    h = g["h"]
    return (lambda x: h(x)), lambda: g.update(k=3.0)


@further
def eval_in_function():
    d = {"k": 2.0}
    return (lambda x: x * eval("k", d)), lambda: d.update(k=3.0)


# ---------------------------------------------------------------------------------------------------------------- the test

PATCHED = []


def patch(owner, name, value):
    """Set an attribute until the end of the test."""
    PATCHED.append(functools.partial(setattr, owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def results(name, wrap):
    """What the function returns before and after the changes, two calls each beyond those in which it is traced."""
    function, changes, *restore = WAYS[name]()
    function = wrap(function)
    found = []
    try:
        for change in (*(changes if isinstance(changes, tuple) else (changes,)), lambda: None):
            found += [np.array(function(tg.tensor([1.0, 2.0, 3.0])).detach()).tolist() for _ in range(3)]
            change()
    finally:
        for undo in restore:
            undo()
        while PATCHED:
            PATCHED.pop()()
        sys.modules.pop("settings_of_a_test", None)
    return found


class OnNumPy:
    """An executable that runs its program on NumPy."""

    def __init__(self, program, donated, kept, placement):
        self.program, self.numbers = program, (*donated, *kept)
        self.seconds, self.shardings = (0.0, 0.0), [None] * len(program.results)

    def run(self, donated, kept):
        from tapegrad.jit import lower
        from tapegrad.jit.nans import run_checked

        environment = dict(self.program.constants)
        for n, a in zip(self.numbers, (*donated, *kept), strict=True):
            if (tuple(a.shape), a.dtype) != (tuple(self.program.metas[n][0]), self.program.metas[n][1]):
                raise TypeError("other shapes")
            environment[n] = np.array(a)
        with np.errstate(all="ignore"):
            return [lower.to_jax(np.asarray(r)) for r in self.program.run(environment, run_checked)]


EAGER = set()  # ways that make the function run eagerly at every call


@pytest.fixture
def on_numpy(monkeypatch):
    from tapegrad.jit import lower, sharing

    monkeypatch.setattr(lower, "Executable", OnNumPy)
    monkeypatch.setattr(sharing, "EXECUTABLES", {})


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in FURTHER)) for n in WAYS])
def test_a_change_is_seen_by_the_next_call(name):
    check(name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WAYS)
def test_a_change_is_seen_by_the_next_call_of_xla_s_program(name):
    check(name)


def check(name):
    eager = results(name, lambda f: f)
    before = tg.compile.stats()["calls"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = results(name, tg.compile)
    np.testing.assert_allclose(compiled, eager, rtol=1e-6, strict=False)
    assert (tg.compile.stats()["calls"] > before) is (name not in EAGER)


# ----------------------------------------------------------------------------------------------------------- the arguments


class Always:
    """Equal to everything."""

    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


@dataclasses.dataclass
class Batch:
    x: typing.Any
    n: int = 2
    name: str = "two"
    sizes: typing.Any = None

    def scale(self):
        return SCALES[self.name]


class Rows(list):
    k = 2.0


SCALES = {"two": 2.0, "three": 3.0}


def with_attribute(t, **values):
    vars(t).update(values)
    return t


def subclass_of_list(k):
    rows = Rows([tg.ones(1)])
    rows.k = k
    return rows


class Tagged(tg.Tensor):
    pass


ARGUMENTS = {  # a function of a tensor and something, and several of these, which differ
    "equal objects": (lambda x, b: x * b.k, [Always(2.0), Always(2.0), Always(3.0)]),
    "field of a dataclass": (lambda x, b: b.x * b.n, [Batch(tg.ones(3)), Batch(tg.ones(3)), Batch(tg.ones(3), 3)]),
    "text in a dataclass": (
        lambda x, b: x * b.scale(), [Batch(tg.ones(3)), Batch(tg.ones(3)), Batch(tg.ones(3), name="three")],
    ),
    "object in a dataclass": (
        lambda x, b: x * b.sizes.k, [Batch(tg.ones(3), sizes=Always(k)) for k in (2.0, 2.0, 3.0)],
    ),
    "attribute of a list": (lambda x, b: x * b.k, [subclass_of_list(k) for k in (2.0, 2.0, 3.0)]),
    "one and True": (lambda x, b: x * (3 if b is True else 2), [1, 1, True]),
    "one and True as keys": (
        lambda x, b: x * (3 if next(iter(b)) is True else 2), [{1: tg.ones(1)}, {1: tg.ones(1)}, {True: tg.ones(1)}],
    ),
    "numbers of NumPy": (lambda x, b: x / b, [np.float32(0.0), np.float32(0.0), np.float32(-0.0)]),
    "sets": (
        lambda x, b: x * (3 if next(iter(b)) is True else 2), [frozenset([1]), frozenset([1]), frozenset([True])],
    ),
    "order of a dict": (
        lambda x, b: x * next(iter(b.values())), [{"a": 2.0, "b": 3.0}] * 2 + [{"b": 3.0, "a": 2.0}],
    ),
    "class of a tensor": (
        lambda x, b: x * (2 if isinstance(b, nn.Parameter) else 3),
        [nn.Parameter(tg.ones(1), False), nn.Parameter(tg.ones(1), False), tg.ones(1)],
    ),
    "subclass of a tensor": (
        lambda x, b: x * (2 if type(b).__name__ == "Tagged" else 3),
        [tg.ones(1).as_subclass(Tagged), tg.ones(1).as_subclass(Tagged), tg.ones(1)],
    ),
    "attribute of a tensor": (lambda x, b: x * b.k, [with_attribute(tg.ones(1), k=k) for k in (2.0, 2.0, 3.0)]),
    "attribute of a tensor, perhaps": (
        lambda x, b: x * getattr(b, "k", 2.0), [tg.ones(1), tg.ones(1), with_attribute(tg.ones(1), k=3.0)],
    ),
    "equal objects in a tuple": (lambda x, b: x * b[0].k, [(Always(k),) for k in (2.0, 2.0, 3.0)]),
    "functions": (lambda x, b: b(x), [tg.sin, tg.sin, tg.cos]),
    "partials": (lambda x, b: b(x), [functools.partial(tg.mul, other=k) for k in (2.0, 2.0, 3.0)]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*an argument has attributes of its own")
@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_differ_are_not_taken_for_each_other(name):
    function, arguments = ARGUMENTS[name]
    x = tg.tensor([1.0, 2.0, 3.0])
    compiled = tg.compile(function)
    for b in [b for b in arguments for _ in range(3)]:
        np.testing.assert_allclose(compiled(x, b).numpy(), function(x, b).numpy(), rtol=1e-6)


def eager_calls(calls):
    """How many of the calls ran the function itself, traced or not."""
    before = tg.compile.stats()
    for call in calls:
        call()
    after = tg.compile.stats()
    assert after["calls"] - before["calls"] + after["traces"] - before["traces"] <= len(calls)
    return len(calls) - (after["calls"] - before["calls"])


class Trainer:
    def __init__(self, k):
        self.k, self.w = k, tg.tensor([1.0, 2.0])

    @tg.compile
    def step(self, x):
        self.w.add_(x)
        return self.w * self.k


def test_instances_share_executables():
    """A class with a decorated method: the limit of eight is one of different executables, not of objects."""
    from tapegrad.jit.sharing import EXECUTABLES

    trainers = [Trainer(2.0) for _ in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in trainers * 4:
            t.step(tg.ones(2))
    assert all([t.w.tolist() == [5.0, 6.0] for t in trainers])
    programs = [p for s in Trainer.step.specializations.values() for p in s.programs]
    assert len(programs) == 12
    assert len({id(p.executable) for p in programs}) == 1
    assert eager_calls([lambda t=t: t.step(tg.ones(2)) for t in trainers]) == 0
    assert programs[0].executable in EXECUTABLES.values()


def test_arguments_that_a_program_does_not_depend_on_need_no_other_executable():
    compiled = tg.compile(lambda x, epoch: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epoch in [*range(20)] * 3:
            compiled(tg.ones(2), epoch)
    assert len({id(p.executable) for s in compiled.specializations.values() for p in s.programs}) == 1


def test_copies_of_a_model_share_executables():
    model = nn.Linear(2, 1)
    steps = [tg.compile(copy.deepcopy(model).forward) for _ in range(3)]
    for step in steps * 3:
        np.testing.assert_allclose(step(tg.ones(1, 2)).detach(), model(tg.ones(1, 2)).detach(), rtol=1e-6)
    assert len({id(p.executable) for f in steps for s in f.specializations.values() for p in s.programs}) == 1


# ----------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.usefixtures("on_numpy")
def test_what_is_deleted_is_freed():
    """Modules, optimizers, tensors, arrays and objects that a program depends on are not kept alive by it."""
    space = {"tg": tg}
    exec("def f(x): return net(x) * scale * a.k * float(array[0]) + len(optimizer.param_groups)", space)
    exec("def g(x, a): return x * a.k", space)
    compiled, by_argument = tg.compile(space["f"]), tg.compile(space["g"])
    for _ in range(2):
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        given = {"net": net, "scale": tg.ones(3), "a": Plain(k=2.0), "array": np.ones(3)}
        space.update(given, optimizer=optim.SGD(net.parameters(), lr=0.1))
        other = Always(2.0)
        for _ in range(3):
            compiled(tg.ones(1, 3)), by_argument(tg.ones(3), other)
        assert any([s.programs for s in compiled.specializations.values()])
        held = [*given.values(), space["optimizer"], net[0], net[0].weight, other, space["a"]]
        refs = [weakref.ref(v) for v in held]
        del net, given, other, held
        for name in ("net", "scale", "a", "array", "optimizer"):
            del space[name]
        gc.collect()
        assert [r() for r in refs] == [None] * len(refs)
        assert not any([s.programs for f in (compiled, by_argument) for s in f.specializations.values()])
    by_argument(tg.ones(3), Always(3.0))
    assert len(by_argument.specializations) == 1  # those of objects that are gone went with the next new one


# ---------------------------------------------------------------------------------------------------- arrays as arguments

USES = {  # everyday uses of a NumPy argument, which compile
    "as_tensor": lambda x, a: tg.as_tensor(a) * 2,
    "as_tensor in another dtype": lambda x, a: tg.as_tensor(a, dtype=tg.float32) * 2,
    "from_numpy": lambda x, a: tg.from_numpy(a) * 2,
    "from_numpy returned": lambda x, a: tg.from_numpy(a),
    "tensor": lambda x, a: tg.tensor(a) * 2,
    "asarray": lambda x, a: tg.asarray(a).float() * 2,
    "Tensor": lambda x, a: tg.Tensor(a) * 2,
    "FloatTensor": lambda x, a: tg.FloatTensor(a) * 2,
    "operand": lambda x, a: x * a + a * x - a,
    "matmul": lambda x, a: a @ x.double(),
    "shape and dtype": lambda x, a: x * a.shape[0] * len(a) * a.ndim * (2 if a.dtype == np.float64 else 3),
    "instance": lambda x, a: tg.as_tensor(a) * (2 if isinstance(a, np.ndarray) else 3),
    "in a dict": lambda x, a: tg.as_tensor({"a": a}["a"]) * 2,
    "index": lambda x, a: x[tg.as_tensor(a).long() % 3],
    "ufunc of a tensor": lambda x, a: np.sin(x) * a,
    "function of NumPy of a tensor": lambda x, a: np.sum(x * a),
}
READS = {  # values that Python or NumPy read of it, which make the call eager
    "element": lambda a: a[0],
    "item": lambda a: a.item(0),
    "loop": lambda a: sum(a),
    "maximum": lambda a: max(a),
    "comparison": lambda a: (a == 2.0).all(),
    "sum": lambda a: a.sum(),
    "cumulative sum": lambda a: a.cumsum()[0],
    "part": lambda a: a.real[0],
    "transpose": lambda a: a.T[0],
    "copy": lambda a: a.copy()[0],
    "flat": lambda a: a.flat[0],
    "data": lambda a: a.data[0],
    "base": lambda a: a.base[0] if a.base is not None else a[0],
    "view": lambda a: a.view(np.ndarray)[0],
    "array protocol": lambda a: a.__array__()[0],
    "array interface": lambda a: len(a.__array_interface__) * a[0],
    "ctypes": lambda a: a.ctypes.data % 1 + a[0],
    "memory view": lambda a: memoryview(a)[0],
    "asarray": lambda a: np.asarray(a)[0],
    "array": lambda a: np.array(a)[0],
    "array of a list": lambda a: np.array([a, a])[0, 0],
    "contiguous": lambda a: np.ascontiguousarray(a)[0],
    "buffer": lambda a: np.frombuffer(a)[0],
    "iterator": lambda a: float(next(np.nditer(a))),
    "enumeration": lambda a: next(np.ndenumerate(a))[1],
    "written into another": lambda a: filled(np.zeros(3), a)[0],
    "tensor of a list": lambda a: tg.tensor([a, a])[0, 0].item(),
    "ufunc": lambda a: np.sin(a)[0],
    "function of NumPy": lambda a: np.concatenate([a, a])[0],
    "pickle": lambda a: pickle.loads(pickle.dumps(a))[0],
    "bytes": lambda a: a.tobytes()[7],
}


def filled(b, a):
    b[:] = a
    return b


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("name", USES)
def test_uses_of_array_arguments_that_compile(name):
    compiled = tg.compile(USES[name], fullgraph=True)
    x = tg.tensor([1.0, 2.0, 3.0])
    before = tg.compile.stats()["calls"]
    for k in (1.0, 1.0, 2.0, 3.0):
        a = np.array([1.0, 2.0, 4.0]) * k
        want, got = USES[name](x, a.copy()), compiled(x, a)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
    assert tg.compile.stats()["calls"] > before


@pytest.mark.filterwarnings("ignore:tapegrad.compile", "ignore:the matrix subclass")
@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize(
    "name, kind",
    [(name, "array") for name in READS]
    + [(name, kind) for kind in ("memmap", "matrix", "masked array", "record array") for name in ("item", "sum")],
)
def test_values_read_from_array_arguments_are_those_of_each_call(name, kind, tmp_path):
    def make(v):
        a = np.full(3, v)
        if kind == "memmap":
            m = np.memmap(tmp_path / "a", float, "w+", shape=3)
            m[:] = a
            return m
        if kind == "matrix":
            return np.matrix([v])
        if kind == "masked array":
            return np.ma.masked_array(a)
        return a.view(np.recarray) if kind == "record array" else a

    read = READS[name]
    compiled = tg.compile(lambda x, a: x * float(read(a)))
    for v in (2.0, 2.0, 2.0, 3.0, 3.0):
        want = float(read(make(v)))
        assert compiled(tg.ones(1), make(v)).item() == np.float32(want)


class Hostile:
    """An object that answers nothing that its author did not think of."""

    def __init__(self, k):
        object.__setattr__(self, "values", {"k": k})

    def __getattribute__(self, name):
        if name.startswith("__"):
            raise KeyError(name)
        return object.__getattribute__(self, "values")[name]


@pytest.mark.usefixtures("on_numpy")
def test_objects_with_getattribute_as_arguments_and_results():
    one, x = Hostile(2.0), tg.ones(1)
    compiled, nested = tg.compile(lambda x, a: (x * a.k, a)), tg.compile(lambda x, a: x * a[0].k)
    for k in (2.0, 2.0, 2.0, 3.0, 3.0):
        object.__getattribute__(one, "values")["k"] = k
        got, same = compiled(x, one)
        assert same is one
        assert [got.item(), nested(x, [one]).item(), nested(x, [Hostile(k + 1)]).item()] == [k, k, k + 1]
