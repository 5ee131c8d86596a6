"""Functions of one argument as functions of several, and the names and docstrings of what is made of a function."""

from autograd.util import subvals


def unary_to_nary(unary_operator):
    """Of operator(fun, x): operator(fun, argnum=0), which gives a function of all of fun's arguments.

    argnum is the position of x among them, or a tuple or list of positions; x is then a tuple.
    """

    @wraps(unary_operator)
    def nary_operator(fun, argnum=0, *nary_op_args, **nary_op_kwargs):
        assert type(argnum) in (int, tuple, list), argnum

        @wrap_nary_f(fun, unary_operator, argnum)
        def nary_f(*args, **kwargs):
            @wraps(fun)
            def unary_f(x):
                given = [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x, strict=True)
                return fun(*subvals(args, given), **kwargs)

            x = args[argnum] if isinstance(argnum, int) else tuple([args[i] for i in argnum])
            return unary_operator(unary_f, x, *nary_op_args, **nary_op_kwargs)

        return nary_f

    return nary_operator


def wraps(fun, namestr="{fun}", docstr="{doc}", **kwargs):
    """A decorator that gives a function the name and docstring of fun, in these forms."""

    def decorate(f):
        try:
            f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
            f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        except (AttributeError, KeyError, ValueError):
            pass
        return f

    return decorate


def wrap_nary_f(fun, op, argnum):
    """`wraps` for operator op of fun."""
    doc = (
        "    {op} of function {fun} with respect to argument number {argnum}. Takes the\n"
        "    same arguments as {fun} but returns the {op}.\n    "
    )
    return wraps(fun, "{op}_of_{fun}_wrt_argnum_{argnum}", doc, op=get_name(op), argnum=argnum)


def get_name(f):
    """Name of a function, if it has one."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f):
    """Docstring of a function, if it has one."""
    return getattr(f, "__doc__", "")
