"""Python's containers and type questions where values may be boxes. A container of boxes is one of Python's own."""

import builtins

from autograd.core import ContainerVSpace as ContainerVSpace
from autograd.tracer import getval


def isinstance(x, types):
    """Whether x, or the value of a box x, is of one of the types."""
    return builtins.isinstance(getval(x), types)


def type(x):
    """The type of x, or of the value of a box x."""
    return builtins.type(getval(x))


class _Kind(builtins.type):
    """A type whose instances are those of one of Python's containers."""

    def __instancecheck__(cls, instance):
        return builtins.isinstance(instance, cls.kind)

    def __call__(cls, *args, **kwargs):
        return cls.kind(*args, **kwargs)


class tuple(metaclass=_Kind):
    """Python's tuple, whose items may be boxes."""

    kind = builtins.tuple


class list(metaclass=_Kind):
    """Python's list, whose items may be boxes."""

    kind = builtins.list


class dict(metaclass=_Kind):
    """Python's dict, whose values may be boxes."""

    kind = builtins.dict


class SequenceBox(metaclass=_Kind):
    """What stands for a list or tuple of boxes: one."""

    kind = (builtins.list, builtins.tuple)


class DictBox(dict):
    """What stands for a dict of boxes: one."""
