"""Derivatives of functions of several arguments: HIPS autograd's operators, over `make_vjp` and `make_jvp`."""

import inspect
import warnings
from collections import OrderedDict

import numpy as _np

from autograd.core import defvjp_argnum, vspace
from autograd.core import make_jvp as _make_jvp
from autograd.core import make_vjp as _make_vjp
from autograd.tracer import primitive, with_boxes
from autograd.wrap_util import unary_to_nary

make_vjp = unary_to_nary(_make_vjp)
make_jvp = unary_to_nary(_make_jvp)
_reshape, _tensordot = with_boxes(_np.reshape), with_boxes(_np.tensordot)


def _scalar_vjp(name, fun, x):
    vjp, ans = _make_vjp(fun, x)
    if vspace(ans).size != 1:
        raise TypeError(
            f"{name} only applies to real scalar-output functions. Try jacobian, elementwise_grad or holomorphic_grad."
        )
    return vjp, ans


@unary_to_nary
def grad(fun, x):
    """
    Returns a function which computes the gradient of `fun` with respect to its argument number `argnum`. It takes the
    same arguments; `fun` must be scalar-valued. The gradient has the type of the argument.
    """
    vjp, ans = _scalar_vjp("Grad", fun, x)
    return vjp(vspace(ans).ones())


@unary_to_nary
def value_and_grad(fun, x):
    """Like `grad`, for (value, gradient)."""
    vjp, ans = _scalar_vjp("value_and_grad", fun, x)
    return ans, vjp(vspace(ans).ones())


@unary_to_nary
def grad_and_aux(fun, x):
    """Of a function that returns (output, more): (gradient of the output, more)."""
    vjp, (ans, aux) = _make_vjp(fun, x)
    return vjp((vspace(ans).ones(), vspace(aux).zeros())), aux


@unary_to_nary
def elementwise_grad(fun, x):
    """The sum of each column of the Jacobian: its diagonal where each output depends on one input."""
    vjp, ans = _make_vjp(fun, x)
    if vspace(ans).iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(vspace(ans).ones())


@unary_to_nary
def deriv(fun, x):
    """The derivative along ones, in forward mode."""
    return _make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun, x):
    """The Jacobian, of the output's shape followed by the argument's, both arrays or numbers."""
    vjp, ans = _make_vjp(fun, x)
    return _reshape(vjp.jacobian(), vspace(ans).shape + vspace(x).shape)


@unary_to_nary
def holomorphic_grad(fun, x):
    """The derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=4)
    return grad(lambda x: with_boxes(_np.real)(fun(x)))(x)


def grad_named(fun, argname):
    """`grad` by the argument of a name."""
    return grad(fun, inspect.getfullargspec(fun).args.index(argname))


@unary_to_nary
def hessian(fun, x):
    """The Hessian."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun, x):
    """(product of the Hessian with a vector as a function of the vector, gradient)."""
    return _make_vjp(grad(fun), x)


def hessian_tensor_product(fun, argnum=0):
    """The function of fun's arguments and a tensor that gives the product of the Hessian with the tensor."""
    gradient = grad(fun, argnum)

    def product(*args, **kwargs):
        *args, vector = args
        return _tensordot(gradient(*args, **kwargs), vector, _np.ndim(vector))

    return grad(product, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun, argnum=0):
    """The function of fun's arguments and a tensor that gives the product of the tensor with the Jacobian."""

    def product(*args, **kwargs):
        *args, vector = args
        return _tensordot(vector, fun(*args, **kwargs), axes=_np.ndim(vector))

    return jacobian(product, argnum)


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun, x):
    """The jvp as the vjp of the vjp."""
    vjp, y = _make_vjp(fun, x)
    return _make_vjp(vjp, vspace(y).zeros())[0]


def _half_square(x):
    return with_boxes(_np.sum)(x**2, axis=-1) / 2.0


def make_ggnvp(f, g=_half_square, f_argnum=0):
    """The product of the generalised Gauss-Newton matrix of g(f(x)) with a vector as a function of the vector."""

    @unary_to_nary
    def make(f, x):
        f_vjp, y = _make_vjp(f, x)
        g_hvp, grad_g = _make_vjp(grad(g), y)
        f_jvp, _ = _make_vjp(f_vjp, vspace(grad_g).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    return make(f, f_argnum)


def multigrad_dict(fun):
    """Gradients by all arguments at once, as an ordered dict of their names."""
    signature = inspect.signature(fun)

    def call(arguments):
        bound = signature.bind_partial()
        bound.arguments.update(arguments)
        return fun(*bound.args, **bound.kwargs)

    def gradients(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return OrderedDict(grad(call)(dict(bound.arguments)))

    return gradients


def checkpoint(fun):
    """fun, whose intermediate values are computed again for the backward pass instead of kept."""
    wrapped = primitive(fun)
    defvjp_argnum(wrapped, lambda argnum, ans, args, kwargs: make_vjp(fun, argnum)(*args, **kwargs)[0])
    return wrapped
