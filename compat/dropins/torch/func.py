"""torch.func: tapegrad.func, whose transforms take and give tensors alone here, as PyTorch's do."""

import functools as _functools

import tapegrad.func as _func
from tapegrad import Tensor as _Tensor
from tapegrad.func import tree as _tree


def _with_aux(func, has_aux):
    """The function, checked to give tensors alone as aux."""
    if not has_aux:
        return func

    @_functools.wraps(func, updated=())
    def checked(*args, **kwargs):
        result = func(*args, **kwargs)
        if isinstance(result, tuple) and len(result) == 2:
            for leaf in _tree.flatten(result[1])[0]:
                if not isinstance(leaf, _Tensor):
                    raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
        return result

    return checked


@_functools.wraps(_func.grad)
def grad(func, argnums=0, has_aux=False):
    return _func.grad(_with_aux(func, has_aux), argnums, has_aux)


@_functools.wraps(_func.grad_and_value)
def grad_and_value(func, argnums=0, has_aux=False):
    return _func.grad_and_value(_with_aux(func, has_aux), argnums, has_aux)


@_functools.wraps(_func.vjp)
def vjp(func, *primals, has_aux=False):
    return _func.vjp(_with_aux(func, has_aux), *primals, has_aux=has_aux)


@_functools.wraps(_func.jvp)
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    given = [_tree.flatten(trees) for trees in (primals, tangents)]
    if isinstance(primals, tuple) and given[0][1] == given[1][1]:
        for name, (leaves, _) in zip(("primals", "tangents"), given, strict=True):
            for leaf in leaves:
                if not isinstance(leaf, _Tensor):
                    raise RuntimeError(
                        f"jvp(f, primals, tangents): Expected {name} to only contain Tensors, got {type(leaf)}"
                    )
    return _func.jvp(_with_aux(func, has_aux), primals, tangents, strict=strict, has_aux=has_aux)


@_functools.wraps(_func.jacrev)
def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    return _func.jacrev(_with_aux(func, has_aux), argnums, has_aux=has_aux, chunk_size=chunk_size)


@_functools.wraps(_func.jacfwd)
def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    return _func.jacfwd(_with_aux(func, has_aux), argnums, has_aux, randomness=randomness)
