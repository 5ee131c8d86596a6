"""Derivatives of functions of one argument, rules for primitives, and vector spaces."""

import warnings
from functools import reduce
from itertools import count

import numpy as np

from autograd import tracer
from autograd.tracer import (
    FLOATS,
    ArrayBox,
    Box,
    boxed,
    conjugated,
    getval,
    held,
    isbox,
    primitive_jvps,
    primitive_vjps,
    tensor_of,
    with_boxes,
)
from autograd.util import func, subval, subvals
from tapegrad import func as transforms
from tapegrad.func import tree

# ruff: noqa: F401 (names for programs)

# -------------------------------------------------------------------------------------------------------- derivatives


def make_vjp(fun, x):
    """(vjp, value) of fun at x: vjp takes a cotangent of the value to that of x."""
    vjp = Pullback(fun, x)
    return vjp, vjp.value


class Pullback:
    """The function that takes a cotangent of fun(x) to that of x.

    Attributes:
        value: fun(x).
    """

    def __init__(self, fun, x):
        leaves, self.spec = leaves_of(x)
        self.x, self.run = x, Run(fun, self.spec)
        before = tracer.COUNT[0]
        values, self.pull, _ = transforms.vjp(self.run, *leaves, has_aux=True) if leaves else (self.run()[0], None, None)
        self.rules_of_users = tracer.COUNT[0] != before
        if self.run.independent:
            tracer.warn_independent()
        self.value = self.run.value(values)

    def __call__(self, g):
        if self.run.independent:
            return vspace(self.x).zeros()
        gs = self.pull(tuple([conjugated(t) for t in self.run.parts(g)]))
        return tree.unflatten(self.spec, [conjugated_value(boxed(v)) for v in gs])

    def jacobian(self):
        """The Jacobian as (elements of the value, *shape of x), of arrays or numbers."""
        space, source = vspace(self.value), vspace(self.x)
        block = BLOCK // (space.size + source.size + 1)
        alone = self.run.independent or self.rules_of_users or space.iscomplex or source.iscomplex
        if alone or block < 2 or space.size < 2:
            return with_boxes(np.stack)([self(g) for g in space.standard_basis()])
        parts = [self._rows(space, i, min(i + block, space.size)) for i in range(0, space.size, block)]
        return with_boxes(np.concatenate)(parts)

    def _rows(self, space, start, stop):
        """Some rows of the Jacobian, pulled back together."""
        basis = np.eye(stop - start, space.size, start, dtype=space.dtype).reshape(stop - start, *space.shape)
        return boxed(transforms.vmap(lambda g: self.pull((g,))[0])(tensor_of(basis)))


BLOCK = 1 << 20  # elements of the cotangents that are pulled back together


def make_jvp(fun, x):
    """The function that takes a tangent of x to (fun(x), tangent of it)."""

    def jvp(g):
        leaves, spec = leaves_of(x)
        run = Run(fun, spec)
        if not leaves:
            value = fun(x)
            return value, vspace(value).zeros()
        tangents = tuple([tensor_of(v) for v in tree.flatten(g)[0]])
        values, moved, _ = transforms.jvp(run, tuple(leaves), tangents, has_aux=True)
        if run.independent:
            tracer.warn_independent()
            value = run.value([])
            return value, vspace(value).zeros()
        return run.value(values), run.value(moved, zeros=True)

    return jvp


class Run:
    """A function of a container of boxes as one of tensors, which gives those of its result that are boxes."""

    def __init__(self, fun, spec):
        self.fun, self.given, self.independent = fun, spec, False
        self.leaves, self.spec = [], None

    def __call__(self, *tensors):
        result = self.fun(tree.unflatten(self.given, [ArrayBox(t) for t in tensors]))
        self.leaves, self.spec = tree.flatten(result)
        found = tuple([leaf._tensor for leaf in self.leaves if isbox(leaf)])
        self.leaves = [None if isbox(leaf) else leaf for leaf in self.leaves]
        self.independent = not found
        return found or tensors[:1], None  # something to differentiate has to be there

    def value(self, tensors, zeros=False):
        """The result with these values, and with zeros in place of its other parts if so told."""
        given = iter(tensors)
        leaves = [boxed(next(given)) if leaf is None else vspace(leaf).zeros() if zeros else leaf for leaf in self.leaves]
        return tree.unflatten(self.spec, leaves)

    def parts(self, g):
        """Of a cotangent of the result, those of the boxes, as tensors."""
        gs = [g] if self.spec is tree.LEAF else tree.flatten(g)[0]
        return [tensor_of(v) for v, leaf in zip(gs, self.leaves, strict=True) if leaf is None]


def leaves_of(x):
    """The values to differentiate by in x and its structure.

    Raises:
        TypeError: one of them is no array and no floating-point number.
    """
    leaves, spec = tree.flatten(x)
    return [leaf_of(v) for v in leaves], spec


def leaf_of(v):
    if isbox(v):
        return v._tensor
    if isinstance(v, np.ndarray):
        v = held(v)
        return v if v.dtype.kind in "fc" else v.astype(np.float64)
    if not isinstance(v, FLOATS):
        raise TypeError(f"Can't differentiate w.r.t. type {type(v)}")
    return held(np.asarray(v))[()]


def conjugated_value(v):
    """The complex conjugate of an array, a number or a box that is complex."""
    return with_boxes(np.conj)(v) if np.dtype(v.dtype).kind == "c" else v


# --------------------------------------------------------------------------------------- the derivatives of primitives


def defvjp_argnums(fun, vjpmaker):
    """vjpmaker(argnums, ans, args, kwargs) gives a function of g: cotangents of the arguments at argnums."""
    primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun, vjpmaker):
    """vjpmaker(argnum, ans, args, kwargs) gives a function of g: the cotangent of the argument at argnum."""

    def make(argnums, *args):
        vjps = [vjpmaker(argnum, *args) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, make)


def defvjp(fun, *vjpmakers, argnums=None):
    """State the vjp of each argument: vjpmaker(ans, *args, **kwargs) gives a function of g; None where it is 0."""
    makers = dict(zip(count() if argnums is None else argnums, vjpmakers, strict=False))
    for maker in vjpmakers:
        if maker is not None and not callable(maker):
            raise TypeError(f"Bad VJP '{maker}' for '{fun.__name__}'")

    def make(wanted, ans, args, kwargs):
        missing = tuple([n for n in wanted if n not in makers])
        if missing:
            raise NotImplementedError(f"VJP of {fun.__name__} wrt argnum{'s' * (len(missing) > 1)} "
                                      f"{', '.join(map(str, missing))} not defined")  # fmt: skip
        vjps = [None if makers[n] is None else makers[n](ans, *args, **kwargs) for n in wanted]
        return lambda g: [None if vjp is None else vjp(g) for vjp in vjps]

    defvjp_argnums(fun, make)


def defjvp_argnums(fun, jvpmaker):
    """jvpmaker(argnums, gs, ans, args, kwargs) gives the tangent of ans from those of the arguments at argnums."""
    primitive_jvps[fun] = jvpmaker


def defjvp_argnum(fun, jvpmaker):
    """jvpmaker(argnum, g, ans, args, kwargs) gives what the tangent of one argument adds to that of ans."""

    def make(argnums, gs, ans, args, kwargs):
        return total([jvpmaker(argnum, g, ans, args, kwargs) for argnum, g in zip(argnums, gs, strict=True)])

    defjvp_argnums(fun, make)


def defjvp(fun, *jvpfuns, argnums=None):
    """State the jvp of each argument: jvpfun(g, ans, *args, **kwargs); "same" where fun is linear; None where it is 0."""
    functions = dict(zip(count() if argnums is None else argnums, jvpfuns, strict=False))
    for f in jvpfuns:
        if f is not None and not (f == "same" or callable(f)):
            raise TypeError(f"Bad JVP '{f}' for '{fun.__name__}'")

    def one(argnum, g, ans, args, kwargs):
        if argnum not in functions:
            raise NotImplementedError(f"JVP of {fun.__name__} wrt argnum {argnum} not defined")
        f = functions[argnum]
        if f is None:
            return vspace(ans).zeros()
        return fun(*subval(args, argnum, g), **kwargs) if f == "same" else f(g, ans, *args, **kwargs)

    defjvp_argnum(fun, one)


def def_linear(fun):
    """State that fun is linear in each of its arguments."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*subval(args, argnum, g), **kwargs))


def total(gs):
    """The sum of tangents, which may be sparse."""
    return reduce(added, [g.mut_add(g.vs.zeros()) if isinstance(g, SparseObject) else g for g in gs])


def added(x, y):
    return vspace(x).add(x, y)


# ------------------------------------------------------------------------------------------------------- vector spaces


class VSpace:
    """The vector space that a value is in."""

    mappings = {}  # noqa: RUF012 (programs read it)
    iscomplex = False

    def __init__(self, value):
        pass

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}_{self.__dict__}"

    @classmethod
    def register(cls, value_type, vspace_maker=None):
        """Say that values of a type are in this space, or in that which vspace_maker gives for them."""
        VSpace.mappings[value_type] = vspace_maker or cls

    def mut_add(self, x_prev, x_new):
        """x_prev + x_new, where x_prev may be written into; None stands for zeros."""
        return self._mut_add(self.zeros() if x_prev is None else x_prev, x_new)

    def add(self, x_prev, x_new):
        """x_prev + x_new."""
        return self._add(x_prev, x_new)

    def scalar_mul(self, x, a):
        """x * a for a number a."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x, y):
        """The inner product, a real number."""
        return self._inner_prod(x, y)

    def covector(self, x):
        """The linear functional that x stands for: its conjugate."""
        return self._covector(x)

    def _add(self, x, y):
        return x + y

    def _mut_add(self, x, y):
        x += y
        return x

    def _scalar_mul(self, x, a):
        return x * a

    def _covector(self, x):
        return x


class ArrayVSpace(VSpace):
    """Real arrays of a shape and dtype."""

    def __init__(self, value):
        value = np.asarray(value)
        self.shape, self.dtype = value.shape, value.dtype

    @property
    def size(self):
        """Dimension of the space."""
        return int(np.prod(self.shape))

    @property
    def ndim(self):
        """Number of dimensions of its arrays."""
        return len(self.shape)

    def zeros(self):
        """The zero array."""
        return np.zeros(self.shape, self.dtype)

    def ones(self):
        """The sum of the basis."""
        return np.ones(self.shape, self.dtype)

    def standard_basis(self):
        """The arrays with a single 1."""
        for index in np.ndindex(*self.shape):
            array = np.zeros(self.shape, self.dtype)
            array[index] = 1
            yield array

    def randn(self):
        """Normal random numbers."""
        return np.array(np.random.randn(*self.shape)).astype(self.dtype)

    def _inner_prod(self, x, y):
        return with_boxes(np.dot)(with_boxes(np.ravel)(x), with_boxes(np.ravel)(y))


class ComplexArrayVSpace(ArrayVSpace):
    """Complex arrays of a shape and dtype, as a real space."""

    iscomplex = True

    @property
    def size(self):
        """Dimension of the space."""
        return 2 * super().size

    def ones(self):
        """The sum of the basis."""
        return super().ones() * (1 + 1j)

    def standard_basis(self):
        """The arrays with a single 1 or 1j."""
        for array in super().standard_basis():
            yield array
            yield array * 1j

    def randn(self):
        """Normal random numbers."""
        return super().randn() + super().randn() * 1j

    def _inner_prod(self, x, y):
        return with_boxes(np.real)(with_boxes(np.dot)(with_boxes(np.conj)(with_boxes(np.ravel)(x)), with_boxes(np.ravel)(y)))

    def _covector(self, x):
        return with_boxes(np.conj)(x)


class ContainerVSpace(VSpace):
    """Lists, tuples and dicts of the same structure; `shape` has the spaces of the items."""

    def __init__(self, value):
        self.shape = self._like(value, [vspace(v) for v in self._items(value)])

    def _items(self, value):
        return list(value.values()) if isinstance(value, dict) else list(value)

    def _like(self, value, items):
        if isinstance(value, dict):
            return dict(zip(value, items, strict=True))
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)

    def _map(self, f, *values):
        """f(space of an item, items of the values), in the container."""
        items = [[v[k] for k in self.shape] if isinstance(self.shape, dict) else v for v in values]
        return self._like(self.shape, [f(*parts) for parts in zip(self._items(self.shape), *items, strict=True)])

    def _sum(self, f, *values):
        return sum(self._items(self._map(f, *values)))

    @property
    def size(self):
        """Dimension of the space."""
        return self._sum(lambda vs: vs.size)

    def zeros(self):
        """Zeros."""
        return self._map(lambda vs: vs.zeros())

    def ones(self):
        """Ones."""
        return self._map(lambda vs: vs.ones())

    def randn(self):
        """Normal random numbers."""
        return self._map(lambda vs: vs.randn())

    def standard_basis(self):
        """The containers with a single 1."""
        keys = list(self.shape) if isinstance(self.shape, dict) else range(len(self.shape))
        for i, key in enumerate(keys):
            for v in self.shape[key].standard_basis():
                items = self._items(self.zeros())
                items[i] = v
                yield self._like(self.shape, items)

    def _add(self, x, y):
        return self._map(lambda vs, a, b: vs._add(a, b), x, y)

    def _mut_add(self, x, y):
        return self._map(lambda vs, a, b: vs._mut_add(a, b), x, y)

    def _scalar_mul(self, x, a):
        return self._map(lambda vs, v: vs._scalar_mul(v, a), x)

    def _inner_prod(self, x, y):
        return self._sum(lambda vs, a, b: vs._inner_prod(a, b), x, y)

    def _covector(self, x):
        return self._map(lambda vs, v: vs._covector(v), x)


class SparseObject:
    """A gradient that is mostly zeros: mut_add(x) adds it to x, of space vs, and gives the sum."""

    __slots__ = ("mut_add", "vs")

    def __init__(self, vs, mut_add):
        self.vs, self.mut_add = vs, mut_add


VSpace.register(np.ndarray, lambda x: ComplexArrayVSpace(x) if np.iscomplexobj(x) else ArrayVSpace(x))
for _type in (float, np.longdouble, np.float64, np.float32, np.float16):
    ArrayVSpace.register(_type)
for _type in (complex, np.clongdouble, np.complex64, np.complex128):
    ComplexArrayVSpace.register(_type)
for _type in (list, tuple, dict):
    ContainerVSpace.register(_type)
VSpace.register(SparseObject, lambda x: x.vs)


def vspace(value):
    """The vector space that a value is in.

    Raises:
        TypeError: there is none for its type.
    """
    value = getval(value)
    maker = VSpace.mappings.get(type(value))
    if maker is None and isinstance(value, tuple) and hasattr(value, "_fields"):
        maker = ContainerVSpace
    if maker is None:
        raise TypeError(
            f"Can't find vector space for value {value} of type {type(value)}. Valid types are {VSpace.mappings.keys()}"
        )
    return maker(value)


# ------------------------------------------------------------------------------------------------- of older autograds


def _old(message):
    warnings.warn(f"The {message} method is deprecated: use autograd.extend.defvjp.", stacklevel=3)


def primitive(f_raw):
    """`autograd.extend.primitive`, with the methods of older versions of autograd."""
    wrapped = tracer.primitive(f_raw)
    makers = {}

    def state(argnum, maker):
        makers[argnum] = maker
        defvjp(wrapped, *makers.values(), argnums=list(makers))

    def old_defvjp(vjpmaker, argnum=0):
        _old("defvjp")

        def staged(ans, *args, **kwargs):
            return lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        state(argnum, staged)

    def old_defvjp_is_zero(argnums=(0,)):
        _old("defvjp_is_zero")
        for argnum in argnums:
            state(argnum, None)

    def old_defgrad(gradfun, argnum=0):
        _old("defgrad")
        state(argnum, gradfun)

    wrapped.defvjp, wrapped.defvjp_is_zero, wrapped.defgrad = old_defvjp, old_defvjp_is_zero, old_defgrad
    return wrapped
