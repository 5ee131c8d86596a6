"""What backward, grad, hooks, modes and in-place operations do, where other libraries went wrong (see gradient_cases.py)."""

import copy
import gc
import math
import weakref

import pytest
from gradient_cases import CH, MG, MX, OF, PT, RAISES, Either, attempt, check, con, d1, grad, leaf, registry

import tapegrad as T
from tapegrad import nn

CASES, case = registry()


@case(
    "S1",
    "in-place op must save the value before it",
    [(OF, "issues", 6200)],
    "backward evaluated at the overwritten value",
    "-sin(1.5)",
)
def in_place_op_must_save_the_value_before_it():
    x = leaf([0.5])
    y = x + 1
    y.cos_()
    y.sum().backward()
    return [(x.grad, [-math.sin(1.5)])]


@case(
    "S1",
    "two leaves must not share one gradient buffer",
    [(OF, "issues", 8248), (PT, "issues", 46168), (PT, "pull", 119334)],
    "z = x + y hands the same array to both; the next in-place add corrupts the other",
    "independent buffers",
)
def two_leaves_must_not_share_one_gradient_buffer():
    x, y = leaf([1.0]), leaf([1.0])
    z = x + y
    (x / z).sum().backward()
    u, v = leaf([1.0]), leaf([1.0])
    (u + v).sum().backward()
    (u * 10).sum().backward()
    return [(x.grad, [0.25]), (y.grad, [-0.25]), (u.grad, [11]), (v.grad, [1])]


@case(
    "S1",
    "accumulating twice with create_graph keeps the graph",
    [(OF, "issues", 8248)],
    "second accumulation ran without recording",
    "d(2b)/db = 2",
)
def accumulating_twice_with_create_graph_keeps_the_graph():
    a, b = leaf([1.0, 1.0]), leaf([1.0, 1.0])
    d = (a * b).sum()
    d.backward(create_graph=True)
    d.backward(create_graph=True)
    return [(a.grad, [2, 2]), (attempt(lambda: grad(a.grad.sum(), b)[0]), [2, 2])]


@case(
    "S1",
    "derivative with respect to grad_outputs",
    [(MX, "pull", 15120), (MX, "pull", 14992)],
    "seed multiplied in twice, or its gradient stays 0",
    "d(v/x)/dv = 1/4",
)
def derivative_with_respect_to_grad_outputs():
    x, v = leaf(4.0), leaf(3.0)
    (g,) = grad(x.log(), x, v, create_graph=True)
    return [(g, 0.75), (grad(g, v, retain_graph=True)[0], 0.25), (grad(g, x)[0], -3 / 16)]


@case(
    "S1",
    "a tensor used twice in one operation",
    [("karpathy/nn-zero-to-hero", "issues", 52), ("denizyuret/AutoGrad.jl", "pull", 75)],
    "assignment instead of accumulation",
    "a+a -> 2, a*a -> 2a, a-a -> 0",
)
def a_tensor_used_twice_in_one_operation():
    a = leaf(3.0)
    return [
        (d1(lambda t: t + t, a), 2),
        (d1(lambda t: t * t, a), 6),
        (d1(lambda t: t - t, a), 0),
        (d1(lambda t: t / t, a), 0),
    ]


@case(
    "S1",
    "nested gradients that close over the outer variable",
    [
        ("denizyuret/AutoGrad.jl", "pull", 75),
        ("JuliaDiff/ForwardDiff.jl", "issues", 83),
        ("JuliaDiff/ReverseDiff.jl", "issues", 45),
    ],
    "tape (perturbation) confusion: 2 instead of 1",
    "1 and 8",
)
def nested_gradients_that_close_over_the_outer_variable():
    def D(f):
        def df(v):
            v = v if T.is_tensor(v) and v.requires_grad else leaf(float(v))
            w = v.clone() if v.grad_fn is None else v * 1
            return grad(f(w), w, create_graph=True, materialize_grads=True)[0]

        return df

    return [(D(lambda x: x * D(lambda y: x + y)(x))(5.0), 1), (D(lambda x: x * D(lambda y: x * y)(1.0))(4.0), 8)]


@case(
    "S4",
    "custom Function: unused output, zeros or None",
    [(PT, "issues", 58511)],
    "parameters untouched by the loss end with .grad = 0 instead of None",
    "document; allow set_materialize_grads(False)",
)
def custom_function_unused_output_zeros_or_none():
    class Id2(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * 1, b * 1

        @staticmethod
        def backward(ctx, ga, gb):
            return ga, gb

    a, b = leaf(1.0), leaf(1.0)
    Id2.apply(a, b)[0].backward()
    return [(a.grad, 1), (b.grad, None)]


@case(
    "S4",
    "allow_unused with an input that never required grad",
    [(PT, "issues", 115918)],
    "error although the caller said 'unused is fine'",
    "None",
)
def allow_unused_with_an_input_that_never_required_grad():
    a, b = con([1.0, 2.0]), leaf([3.0, 4.0])
    r = attempt(lambda: grad((a * b).sum(), (a, b), allow_unused=True)[0])
    return [(r, None)]


@case(
    "S1",
    "backward(inputs=...) touches only those inputs",
    [(PT, "pull", 51940)],
    "gradient also accumulated elsewhere",
    "a.grad stays None",
)
def backward_inputs_touches_only_those_inputs():
    a, b = leaf(2.0), leaf(3.0)
    (a * b).backward(inputs=[b])
    return [(a.grad, None), (b.grad, 2)]


@case(
    "S3",
    "mixed batch: gradient of a gradient inside a loss",
    [(CH, "issues", 3428), (CH, "issues", 4185)],
    "exception while accumulating parameters reached by two orders",
    "w: 2wx^2 + 2",
)
def mixed_batch_gradient_of_a_gradient_inside_a_loss():
    w, x = leaf(3.0), leaf(2.0)
    (g,) = grad(w * x, x, create_graph=True)
    ((w * x) ** 2 + 2 * g).backward()
    return [(w.grad, 26)]


@case(
    "S3",
    "no_grad as decorator inside no_grad",
    [(PT, "issues", 10858)],
    "gradients switched back on after the call",
    "mode restored, not set",
)
def no_grad_as_decorator_inside_no_grad():
    f = T.no_grad()(lambda: T.is_grad_enabled())
    with T.no_grad():
        a = f()
        b = T.is_grad_enabled()
    return [(a, False), (b, False), (T.is_grad_enabled(), True)]


@case(
    "S3",
    "no_grad around a generator",
    [(PT, "pull", 31792)],
    "body runs with gradients on, or the caller's mode leaks",
    "off inside every step, caller unaffected",
)
def no_grad_around_a_generator():
    @T.no_grad()
    def gen():
        for _ in range(2):
            yield T.is_grad_enabled()

    seen = []
    for v in gen():
        seen += [v, T.is_grad_enabled()]
    return [(seen, [False, True, False, True])]


@case(
    "S1",
    "hook order: hooks first, retain_grad last",
    [(PT, "pull", 85849)],
    "retained gradient was the value before the hooks",
    "2 and 2",
)
def hook_order_hooks_first_retain_grad_last():
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: 2 * g)
    y.backward()
    return [(y.grad, 2), (x.grad, 2)]


@case(
    "S3",
    "hook on an output that the loss does not reach",
    [(PT, "issues", 11751)],
    "segmentation fault / None passed to the hook",
    "no crash; a.grad = [0, 1]",
)
def hook_on_an_output_that_the_loss_does_not_reach():
    a = leaf([1.0, 1.0])
    p, q = a.unbind()
    p.register_hook(lambda g: None)
    q.backward()
    return [(a.grad, [0, 1])]


@case(
    "S1",
    "saved output overwritten before backward",
    [(PT, "issues", 9391)],
    "sigmoid keeps its output, exp-based spelling does not: one errors, the other works",
    "error or the right [s', 0]",
)
def saved_output_overwritten_before_backward():
    a = leaf([1.0, 2.0])
    b = a.sigmoid()
    b[1] = 9.0
    r = attempt(lambda: (b.sum().backward(), a.grad)[1])
    s = 1 / (1 + math.exp(-1))
    return [(r if isinstance(r, Exception) else [float(v) for v in r], Either(RAISES, [s * (1 - s), 0]))]


@case(
    "S1",
    "in-place on a view of a view, base differentiated",
    [(PT, "issues", 31258), (PT, "pull", 85374), (MG, "issues", 296)],
    "wrong gradient of the base",
    "[0, 0, 4, 6] for sum(x^2) after x[:2] = 0",
)
def in_place_on_a_view_of_a_view_base_differentiated():
    r = leaf([1.0, 1.0, 2.0, 3.0])
    x = r.clone()
    x[:3][:2].zero_()
    (x**2).sum().backward()
    return [(r.grad, [0, 0, 4, 6])]


@case(
    "S3",
    "backward(create_graph=True) leaves a cycle",
    [(PT, "issues", 7343), (PT, "issues", 4661), (PT, "issues", 3818)],
    "x -> x.grad -> graph -> x never freed",
    "collectable once the user lets go",
)
def backward_create_graph_true_leaves_a_cycle():
    x = leaf([1.0])
    y = x.tanh().sum()
    y.backward(create_graph=True)
    r = weakref.ref(x)
    del x, y
    gc.collect()
    return [(r() is None, True)]


@case(
    "S3",
    "backward hook capturing gradients under create_graph",
    [(PT, "issues", 82528), (PT, "issues", 71068)],
    "hook -> gradient -> graph -> hook cycle leaks",
    "collectable",
)
def backward_hook_capturing_gradients_under_create_graph():
    m = nn.Linear(2, 1).double()
    m.register_full_backward_hook(lambda *a: None)
    x = leaf([[1.0, 2.0]])
    y = m(x).pow(2).sum()
    (g,) = grad(y, x, create_graph=True)
    r = weakref.ref(g)
    del g, y, x
    gc.collect()
    return [(r() is None, True)]


@case(
    "S3",
    "deepcopy",
    [(PT, "issues", 3307), (PT, "issues", 54580), ("sktime/sktime", "issues", 10928)],
    "copy loses .grad; a module that keeps a non-leaf cannot be copied",
    "leaf copy carries .grad; non-leaf: clear error or documented detach",
)
def deepcopy():
    x = leaf([1.0])
    (x * 3).sum().backward()
    c = copy.deepcopy(x)
    return [(c.grad, [3]), (c.grad is x.grad, False)]


@pytest.mark.parametrize("title", CASES)
def test_case(title):
    check(CASES[title])
