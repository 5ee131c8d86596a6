"""Boxes, which stand for values while they are differentiated, and the functions that take them.

A box holds a tensor of tapegrad: what is recorded is recorded on tapegrad's tape.
"""

import warnings

import numpy as np

import tapegrad as tg
from autograd.wrap_util import wraps
from tapegrad.autograd import Function
from tapegrad.core.level import level_of
from tapegrad.func import tree
from tapegrad.func.reverse import converted
from tapegrad.functions.index import getitem
from tapegrad.numpy import namespace
from tapegrad.numpy.arguments import FUNCTIONS
from tapegrad.numpy.ufuncs import UFUNCS, call_ufunc
from tapegrad.tensor.access import raw
from tapegrad.tensor.tensor import Tensor

FLOATS = (float, complex, np.floating, np.complexfloating)
LONG = {"g": np.float64, "G": np.complex128}  # by characters of NumPy: what long doubles become

# --------------------------------------------------------------------------------------------------------------- boxes


class Box:
    """What a function sees in place of a value that is differentiated."""

    __slots__ = ("__weakref__", "_tensor")
    __array_priority__ = 90.0

    def __init__(self, tensor):
        self._tensor = tensor

    @property
    def _value(self):
        """The value without its history: an ndarray or a NumPy scalar."""
        return self._tensor.detach().numpy()[()]

    @classmethod
    def register(cls, value_type):
        """Not there: a box holds a tensor."""
        raise NotImplementedError(f"there are boxes for arrays and numbers only, not for {value_type.__name__}")

    def __bool__(self):
        return bool(self._value)

    def __str__(self):
        return f"Autograd {type(self).__name__} with value {self._value!s}"


class ArrayBox(Box):
    """A box with the methods of an ndarray; it cannot be written into."""

    __slots__ = ()
    __module__ = "autograd.numpy.numpy_boxes"
    __array_priority__ = 100.0
    __hash__ = object.__hash__

    shape = property(lambda self: tuple(raw(self._tensor).shape))
    ndim = property(lambda self: raw(self._tensor).ndim)
    size = property(lambda self: raw(self._tensor).size)
    dtype = property(lambda self: raw(self._tensor).dtype)
    T = property(lambda self: boxed(self._tensor.T))

    def __getitem__(self, index):
        return boxed(getitem(self._tensor, unboxed(index), as_numpy=True))

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __array_namespace__(self, *, api_version=None):
        from autograd import numpy

        return numpy

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if foreign(inputs) or "out" in kwargs:
            return NotImplemented
        if method == "__call__":
            return with_boxes(ufunc)(*inputs, **kwargs)
        return boxed(call_ufunc(ufunc, method, unboxed(inputs), unboxed(kwargs)))

    def __array_function__(self, function, types, args, kwargs):
        if foreign(args):
            return NotImplemented
        return with_boxes(function)(*args, **kwargs)


def isbox(x):
    """Whether x is a box."""
    return type(x) is ArrayBox


def getval(x):
    """The value of a box; other things as they are."""
    return x._value if type(x) is ArrayBox else x


def holds_box(values):
    """Whether there is a box among values, or in lists, tuples and dicts among them."""
    for v in values:
        kind = type(v)
        if kind is ArrayBox:
            return True
        if isinstance(v, list | tuple):
            if holds_box(v):
                return True
        elif kind is dict and holds_box(v.values()):
            return True
    return False


def foreign(values):
    """Whether another library has a say in what an operation of these values is."""
    for v in values:
        own = getattr(type(v), "__array_ufunc__", None)
        if own is not None and type(v) is not ArrayBox and own is not np.ndarray.__array_ufunc__:
            return not isinstance(v, np.generic)
    return False


def mapped(function, value):
    """function of a value, or of the items of lists, tuples and dicts in it."""
    if isinstance(value, tuple):
        items = [mapped(function, v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [mapped(function, v) for v in value]
    if type(value) is dict:
        return {k: mapped(function, v) for k, v in value.items()}
    return function(value)


def held(array):
    """An array in a dtype that a tensor can have; the precision of a long double is lost."""
    return array.astype(LONG[array.dtype.char]) if array.dtype.char in LONG else array


def unboxed(value):
    """Tensors in place of boxes, and arrays in place of what can be one."""
    kind = type(value)
    if kind is ArrayBox:
        return value._tensor
    if kind is float or kind is int:
        return value
    if kind is np.ndarray:
        return held(value)
    if isinstance(value, list | tuple | dict):
        return mapped(unboxed, value)
    if hasattr(kind, "__array__") and not isinstance(value, np.generic):
        return held(np.asarray(value))  # a Series of pandas, for example
    return value


def boxed(value):
    """A box for a tensor that is tracked; NumPy's arrays and scalars for others."""
    if isinstance(value, Tensor):
        value = converted(value, np.generic)
        return ArrayBox(value) if isinstance(value, Tensor) else value
    return mapped(boxed, value) if isinstance(value, list | tuple) else value


def present(tensor):
    """What a rule sees of a tensor: a box if something records, else the value."""
    if level_of(tensor) is None and not tg.is_grad_enabled():
        return tensor.detach().numpy()[()]
    return boxed(tensor)


def tensor_of(value):
    """A number, an array or a box as a tensor."""
    if type(value) is ArrayBox:
        return value._tensor
    array = held(np.array(value))
    return tg.from_numpy(array if array.dtype.kind in "fc" else array.astype(np.float64))


# --------------------------------------------------------------------------------------- functions that NumPy has too

_WITH_BOXES = {}  # a function: the first that was made of it, which also NumPy's own dispatch leads to
# Functions of the values alone: what they give has no gradient, or their gradient is 0.
CONSTANT = {
    np.ndim, np.shape, np.size, np.isscalar, np.iscomplexobj, np.isrealobj, np.result_type, np.iscomplex, np.isreal,
    np.floor, np.ceil, np.round, np.rint, np.around, np.fix, np.trunc, np.sign, np.floor_divide, np.zeros_like,
    np.ones_like, np.empty_like, np.can_cast, np.min_scalar_type, np.issubdtype, np.iterable, np.array_str,
    np.array_repr, np.array2string, np.shares_memory, np.may_share_memory, np.copyto,
}  # fmt: skip


def with_boxes(function):
    """A function or ufunc of NumPy that takes boxes as well; without a box among its arguments it is NumPy's."""
    return _WITH_BOXES.get(function) or recorded(function, _run_of(function))


def named(function):
    """What a namespace shows for a function: it takes boxes, and is differentiated if tapegrad knows how."""
    known = function in _WITH_BOXES or function in FUNCTIONS or function in UFUNCS or function in CONSTANT
    return with_boxes(function) if known else primitive(function)


def recorded(function, run):
    """A function that is run(*tensors) of boxes, and itself of other arguments."""
    constant, ufunc = function in CONSTANT, isinstance(function, np.ufunc)

    def on_boxes(*args, **kwargs):
        if ufunc and foreign(args):
            return function(*args, **kwargs)
        if constant:
            return function(*mapped(getval, args), **mapped(getval, kwargs))
        tensors = [unboxed(a) for a in args]
        return boxed(run(*tensors, **unboxed(kwargs)) if kwargs else run(*tensors))

    return composed(function, on_boxes)


def composed(function, on_boxes):
    """A function that is on_boxes, which is written with boxes, if an argument is one, and itself of other arguments."""

    def wrapped(*args, **kwargs):
        for a in args:
            if type(a) is ArrayBox:
                break
        else:
            if not (holds_box(args) or (kwargs and holds_box(kwargs.values()))):
                return function(*args, **kwargs)
        if wrapped in primitive_vjps or wrapped in primitive_jvps:
            return _call(wrapped, args, kwargs)
        return on_boxes(*args, **kwargs)

    _WITH_BOXES.setdefault(function, wrapped)
    return _marked(wraps(function)(wrapped), function)


def _run_of(function):
    """The function on tensors."""
    if isinstance(function, np.ufunc):
        return lambda *args, **kwargs: call_ufunc(function, "__call__", args, kwargs)
    if function in FUNCTIONS:
        row = FUNCTIONS[function]
        return lambda *args, **kwargs: row(*namespace._wrapped(args, len(args)), **kwargs)
    return function


def _marked(wrapped, function):
    wrapped.fun = function
    wrapped._is_autograd_primitive = True
    return wrapped


SHORT = {
    "negative": "neg", "subtract": "sub", "multiply": "mul", "power": "pow", "equal": "eq", "not_equal": "ne",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
}  # fmt: skip
for _name in (
    "negative", "add", "subtract", "multiply", "power", "mod", "true_divide", "floor_divide", "matmul", "equal", "not_equal",
    "greater", "greater_equal", "less", "less_equal", "abs",
):  # fmt: skip
    _operator = SHORT.get(_name, _name.replace("_divide", "div"))
    setattr(ArrayBox, f"__{_operator}__", with_boxes(getattr(np, _name)))


def _reflected(function):
    return lambda self, other: function(other, self)


for _name in ("add", "sub", "mul", "pow", "mod", "truediv", "floordiv", "matmul"):
    setattr(ArrayBox, f"__r{_name}__", _reflected(getattr(ArrayBox, f"__{_name}__")))
for _name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "nonzero", "searchsorted", "round", "clip", "compress",
    "cumprod", "cumsum", "diagonal", "max", "mean", "min", "prod", "ptp", "ravel", "repeat", "squeeze", "std", "sum",
    "swapaxes", "take", "trace", "var", "astype", "conj", "dot", "copy",
):  # fmt: skip
    setattr(ArrayBox, _name, with_boxes(getattr(np, _name)))


def _reshape(self, *shape, order="C"):
    return with_boxes(np.reshape)(self, shape[0] if len(shape) == 1 else shape, order=order)


def _transpose(self, *axes):
    return with_boxes(np.transpose)(self, axes[0] if len(axes) == 1 else axes or None)


ArrayBox.reshape, ArrayBox.transpose, ArrayBox.flatten = _reshape, _transpose, ArrayBox.ravel
ArrayBox.real = property(lambda self: with_boxes(np.real)(self))
ArrayBox.imag = property(lambda self: with_boxes(np.imag)(self))

# ---------------------------------------------------------------------------------------------------- functions of users

primitive_vjps, primitive_jvps = {}, {}  # of a primitive: what makes its derivatives, see `core.defvjp_argnums`


def primitive(f_raw):
    """A function of arrays whose derivatives the user states with `defvjp` and `defjvp`.

    f_raw gets ndarrays and numbers, never boxes, among its positional arguments.
    """

    def wrapped(*args, **kwargs):
        return _call(wrapped, args, kwargs) if holds_box(args) else f_raw(*args, **kwargs)

    if isinstance(f_raw, np.ufunc):
        _WITH_BOXES.setdefault(f_raw, wrapped)
    return _marked(wraps(f_raw)(wrapped), f_raw)


def notrace_primitive(f_raw):
    """A function that is to see values in place of boxes and whose result has no gradient."""

    def wrapped(*args, **kwargs):
        return f_raw(*[getval(a) for a in args], **kwargs)

    wrapped._is_primitive = True
    return wraps(f_raw)(wrapped)


def register_notrace(trace_type, primitive_fun):
    """For programs that say that a function has no gradient: it is given a derivative of 0."""
    primitive_vjps[primitive_fun] = lambda argnums, ans, args, kwargs: lambda g: [None for _ in argnums]


class Call:
    """One call of a primitive: its arguments, of which some hold boxes, and afterwards the structure of its result."""

    def __init__(self, function, args, kwargs):
        self.function, self.kwargs = function, kwargs
        self.args = [tree.flatten(a) if holds_box([a]) else a for a in args]
        self.argnums = tuple([i for i, a in enumerate(args) if holds_box([a])])
        self.boxes = [leaf for i in self.argnums for leaf in self.args[i][0] if type(leaf) is ArrayBox]
        self.result = self.constants = None

    def arguments(self, values):
        """The arguments with these in place of the boxes."""
        given = iter(values)
        result = list(self.args)
        for i in self.argnums:
            leaves, spec = self.args[i]
            result[i] = tree.unflatten(spec, [next(given) if type(x) is ArrayBox else x for x in leaves])
        return tuple(result)

    def forward(self, values):
        """The tensors of the function's result."""
        answer = self.function.fun(*self.arguments(values), **self.kwargs)
        leaves, self.result = tree.flatten(answer)
        self.constants = [None if isinstance(x, FLOATS) or is_float_array(x) else x for x in leaves]
        return tuple([tensor_of(x) for x, c in zip(leaves, self.constants, strict=True) if c is None])

    def answer(self, values):
        """A result of these values."""
        given = iter(values)
        return tree.unflatten(self.result, [next(given) if c is None else c for c in self.constants])

    def pulled(self, argnums, gradients):
        """Gradients of the arguments as tensors, one for each box; None for arguments that are not among argnums."""
        found = dict(zip(argnums, gradients, strict=True))
        for i in self.argnums:
            leaves, spec = self.args[i]
            g = found.get(i)
            parts = [None] * len(leaves) if g is None else flat_like(g, leaves, spec)
            yield from (p for p, x in zip(parts, leaves, strict=True) if type(x) is ArrayBox)


def flat_like(value, leaves, spec):
    """The leaves of a gradient, which has the structure of an argument."""
    if hasattr(value, "mut_add"):
        value = value.mut_add(value.vs.zeros())
    parts = [value] if spec is tree.LEAF else tree.flatten(value)[0]
    if len(parts) != len(leaves):
        raise ValueError(f"a derivative has {len(parts)} parts, but its argument has {len(leaves)}")
    return parts


def is_float_array(value):
    """Whether value is an array that can have a gradient."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def conjugated(tensor):
    """The complex conjugate: autograd's gradients are those of tapegrad and PyTorch, conjugated."""
    return tensor.conj() if tensor.is_complex() else tensor


def shaped(value, like):
    """A gradient in the shape of what it belongs to."""
    t = conjugated(tensor_of(value))
    if t.is_complex() and not like.is_complex():
        t = tg.real(t)
    if t.shape == like.shape:
        return t
    extra = t.dim() - like.dim()
    if extra > 0:
        t = t.sum(tuple(range(extra)))
    for d in range(t.dim() - like.dim() if extra <= 0 else 0, t.dim()):
        if like.shape[d] == 1 and t.shape[d] != 1:
            t = t.sum(d, keepdim=True)
    return t.expand(like.shape)


class Primitive(Function):
    """The entry of a primitive on the tape."""

    @staticmethod
    def forward(ctx, call, *tensors):
        outputs = call.forward([t.detach().numpy()[()] for t in tensors])
        ctx.call, ctx.count = call, len(tensors)
        ctx.save_for_backward(*tensors, *outputs)
        ctx.save_for_forward(*tensors, *outputs)
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def parts(ctx):
        """Arguments, answer, the tensors of both, and the call."""
        saved, n = ctx.saved_tensors, ctx.count
        seen = [present(t) for t in saved]
        return ctx.call.arguments(seen[:n]), ctx.call.answer(seen[n:]), saved[:n], saved[n:]

    @staticmethod
    def backward(ctx, *gradients):
        call = ctx.call
        args, answer, inputs, outputs = Primitive.parts(ctx)
        argnums = tuple([i for i, needed in zip(call.argnums, wanted(ctx, call), strict=True) if needed])
        if call.function not in primitive_vjps:
            name = getattr(call.function, "__name__", call.function)
            raise NotImplementedError(f"VJP of {name} wrt argnums {argnums} not defined")
        vjp = primitive_vjps[call.function](argnums, answer, args, call.kwargs)
        gs = [tg.zeros_like(y) if g is None else conjugated(g) for g, y in zip(gradients, outputs, strict=True)]
        found = call.pulled(argnums, vjp(call.answer([present(g) for g in gs])))
        return None, *[None if v is None else shaped(v, x) for v, x in zip(found, inputs, strict=True)]

    @staticmethod
    def jvp(ctx, _, *tangents):
        call = ctx.call
        args, answer, _, outputs = Primitive.parts(ctx)
        given = call.arguments([0.0 if t is None else present(t) for t in tangents])
        moving = iter(tangents)
        moves = {i: any([next(moving) is not None for x in call.args[i][0] if type(x) is ArrayBox]) for i in call.argnums}
        argnums = tuple([i for i in call.argnums if moves[i]])
        if call.function not in primitive_jvps:
            name = getattr(call.function, "__name__", call.function)
            raise NotImplementedError(f"JVP of {name} wrt argnums {argnums} not defined")
        make = primitive_jvps[call.function]
        result = make(argnums, [given[i] for i in argnums], answer, args, call.kwargs)
        if hasattr(result, "mut_add"):
            result = result.mut_add(result.vs.zeros())
        leaves = [x for x, c in zip(tree.flatten(result)[0], call.constants, strict=True) if c is None]
        return tuple([tensor_of(v).expand(y.shape).to(y.dtype) for v, y in zip(leaves, outputs, strict=True)])


def wanted(ctx, call):
    """Of each boxed argument, whether a gradient of it is needed."""
    needs = iter(ctx.needs_input_grad[1:])
    return [any([next(needs) for x in call.args[i][0] if type(x) is ArrayBox]) for i in call.argnums]


COUNT = [0]  # how often a primitive was called with boxes


def _call(function, args, kwargs):
    COUNT[0] += 1
    call = Call(function, args, kwargs)
    outputs = Primitive.apply(call, *[b._tensor for b in call.boxes])
    return call.answer([boxed(y) for y in outputs])


OWN_TAPE = "there are no traces of one's own on tapegrad: it records on its own tape, which print(tapegrad.tape()) shows"


class Node:
    """Not there: programs cannot have nodes of their own."""

    def __init_subclass__(cls):
        raise NotImplementedError(f"{cls.__name__}: {OWN_TAPE}")


def trace(start_node, fun, x):
    """Not there: programs cannot trace on their own."""
    raise NotImplementedError(f"autograd.tracer.trace: {OWN_TAPE}")


def warn_independent():
    """autograd's warning that a result does not depend on what it is to be differentiated by."""
    warnings.warn("Output seems independent of input.", stacklevel=4)
