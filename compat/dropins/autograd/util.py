"""Small helpers of autograd's own modules."""

import operator
import warnings


def subvals(x, ivs):
    """A sequence as a tuple, with items v at places i for each (i, v)."""
    items = list(x)
    for i, v in ivs:
        items[i] = v
    return tuple(items)


def subval(x, i, v):
    """A sequence as a tuple, with item v at place i."""
    return subvals(x, [(i, v)])


def func(f):
    """f itself: an unbound method is a function."""
    return f


def toposort(end_node, parents=operator.attrgetter("parents")):
    """Nodes that end_node depends on, each after all nodes that depend on it."""
    counts, stack = {}, [end_node]
    while stack:
        node = stack.pop()
        counts[node] = counts.get(node, 0) + 1
        if counts[node] == 1:
            stack.extend(parents(node))
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            counts[parent] -= 1
            if not counts[parent]:
                ready.append(parent)


def quick_grad_check(fun, arg0, extra_args=(), kwargs=None, verbose=True, eps=1e-4, rtol=1e-4, atol=1e-6, rs=None):
    """Deprecated: use `autograd.test_util.check_grads`."""
    from autograd.test_util import check_grads

    warnings.warn("The quick_grad_check function is deprecated: use test_util.check_grads.", stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
