"""Hooks, gradient edges, saved tensors and checkpoints do in PyTorch what they do here: one program, two libraries."""

import inspect
import operator

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")


def told(value):
    """Tensors as lists, so that what the two libraries log can be compared."""
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    if isinstance(value, dict):
        return {k: told(v) for k, v in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def attempt(f):
    try:
        return told(f())
    except Exception as e:
        return type(e).__name__, str(e).split(". ")[0].split("\n")[0].split(": it returned")[0].rstrip(".")


def leaf(lib, n=2, value=1.0):
    return lib.full((n,), value, dtype=lib.float64, requires_grad=True)


def order_of_hooks(lib, log):
    t = leaf(lib)
    y = 3 * t
    accumulate = y.grad_fn.next_functions[0][0]
    t.register_post_accumulate_grad_hook(lambda p: log("post accumulate", p.grad))
    accumulate.register_hook(lambda gi, go: log("accumulate", gi, go, t.grad is None))
    accumulate.register_prehook(lambda go: log("accumulate pre", go, t.grad is None))
    t.register_hook(lambda g: log("leaf", g))
    y.grad_fn.register_hook(lambda gi, go: log("node", gi, go))
    y.grad_fn.register_prehook(lambda go: log("pre", go))
    y.register_hook(lambda g: log("tensor", g))
    y.sum().backward()


def hooks_replace(lib, log):
    t = leaf(lib)
    u = t.exp()
    y = u * u
    y.grad_fn.register_prehook(lambda go: (go[0] * 5,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 2, gi[1] * 3))
    u.grad_fn.register_hook(lambda gi, go: log(gi, go))
    y.grad_fn.next_functions[0][0].register_prehook(lambda go: log(go))
    t.register_hook(lambda g: log(g))
    y.sum().backward()
    log(t.grad)


def hooks_under_create_graph(lib, log):
    t = leaf(lib, value=2.0)
    y = t * t * t
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * t, gi[1]))
    (g,) = lib.autograd.grad(y.sum(), t, create_graph=True)
    log(g, lib.autograd.grad(g.sum(), t))


def handles(lib, log):
    t = leaf(lib)
    y = t.exp()
    first = y.grad_fn.register_hook(lambda gi, go: log("first"))
    with y.grad_fn.register_prehook(lambda go: log("second")):
        y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    first.remove()
    y.sum().backward(retain_graph=True)


def several_outputs(lib, log):
    x = lib.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=lib.float64, requires_grad=True)
    u, v = lib.linalg.qr(x)
    log(u.grad_fn == v.grad_fn, u.grad_fn.name())
    u.grad_fn.register_prehook(lambda go: log("pre", go))
    u.grad_fn.register_hook(lambda gi, go: log("post", gi, go))
    u.sum().backward(retain_graph=True)
    (u * v).sum().backward()
    log(x.grad)


def metadata(lib, log):
    y = leaf(lib).exp()
    log(dict(y.grad_fn.metadata))
    y.grad_fn.metadata["a"] = 1
    log(dict(y.grad_fn.metadata), isinstance(y.grad_fn, lib.autograd.graph.Node))


WRONG_RESULTS = {
    "a tensor": lambda lib, gi: gi[0] * 2,
    "a list": lambda lib, gi: [gi[0], None],
    "a number": lambda lib, gi: 3,
    "too few": lambda lib, gi: (gi[0],),
    "right": lambda lib, gi: (gi[0] * 2, None),
    "instead of None": lambda lib, gi: (gi[0], gi[0]),
    "nothing": lambda lib, gi: (None, None),
    "another size": lambda lib, gi: (lib.ones(3, dtype=lib.float64), None),
    "another dtype": lambda lib, gi: (lib.ones(2, dtype=lib.float32), None),
    "a number inside": lambda lib, gi: (3, None),
}


def wrong_results(lib, log):
    def run(result):
        a = leaf(lib)
        y = a * lib.ones(2, dtype=lib.float64)
        y.grad_fn.register_hook(lambda gi, go: result(lib, gi))
        y.sum().backward()
        return a.grad

    for result in WRONG_RESULTS.values():
        log(attempt(lambda result=result: run(result)))


def wrong_prehook_results(lib, log):
    def run(result):
        a = leaf(lib)
        y = a.exp()
        y.grad_fn.register_prehook(result)
        y.sum().backward()
        return a.grad

    ones = lib.ones(3, dtype=lib.float64)
    results = [lambda go: go[0], lambda go: (go[0] * 2,), lambda go: (go[0], None), lambda go: (None,), lambda go: 3]
    for result in [*results, lambda go: (ones,)]:
        log(attempt(lambda result=result: run(result)))


def edges(lib, log):
    graph = lib.autograd.graph
    a = leaf(lib)
    b = a * 2
    c = b.exp()
    at_a, at_b, at_c = (graph.get_gradient_edge(t) for t in (a, b, c))
    log(at_b.output_nr, at_b.node == b.grad_fn, at_b._fields, at_c.node.name(), at_a.node.name())
    grad, keep = lib.autograd.grad, {"retain_graph": True}
    log(grad(c.sum(), at_b, **keep), grad(c.sum(), [at_a, b], **keep), grad(c.sum(), {"k": at_b}, **keep))
    log(grad(at_c, [at_a, at_b], grad_outputs=lib.ones(2, dtype=lib.float64), **keep))
    log(grad(graph.get_gradient_edge(c.sum()), at_a, **keep))
    lib.autograd.backward(c.sum(), inputs=[at_a], **keep)
    log(a.grad)
    lib.autograd.backward(at_c, lib.ones(2, dtype=lib.float64), **keep)
    log(a.grad)
    other = graph.get_gradient_edge(leaf(lib))
    log(attempt(lambda: grad(c.sum(), other, **keep)), grad(c.sum(), other, allow_unused=True, **keep))
    log(attempt(lambda: grad(at_c, at_a, **keep)), attempt(lambda: graph.get_gradient_edge(lib.ones(2))))
    (g,) = grad(c.sum(), at_b, create_graph=True)
    log(grad(g.sum(), at_b))


def edges_of_several_outputs(lib, log):
    x = lib.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=lib.float64, requires_grad=True)
    _, v = lib.linalg.qr(x * 1.0)
    edge = lib.autograd.graph.get_gradient_edge(v)
    log(edge.output_nr)
    y = (v * v).sum()
    log(lib.autograd.grad(y, edge, retain_graph=True))
    log(lib.autograd.grad(edge, x, lib.ones(2, 2, dtype=lib.float64), retain_graph=True))


def several_tensors(lib, log):
    a, b = leaf(lib), leaf(lib)
    c, d = a * b, a * b
    hook = lib.autograd.graph.register_multi_grad_hook
    handle = hook((a, b, c, d), lambda gs: log([g is not None for g in gs]))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    handle.remove()
    handle = hook((a, b, lib.ones(1), c), lambda g: log("any", g), mode="any")
    (c * 2 + d).sum().backward(retain_graph=True)
    (d * 5).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward(retain_graph=True)
    log(attempt(lambda: hook((a,), print, mode="some")), attempt(lambda: hook((lib.ones(2),), print)))


def saved_tensors(lib, log):
    hooks = lib.autograd.graph.saved_tensors_hooks
    a, b = leaf(lib), leaf(lib, value=3.0)
    packed, unpacked = [], []

    def pack(t):
        packed.append((t.tolist(), t.requires_grad, t.is_leaf))
        return t.detach() * 1.0, lib.is_grad_enabled()

    def unpack(value):
        unpacked.append((told(value), lib.is_grad_enabled()))
        return value[0]

    with hooks(pack, unpack):
        y = (a * b.clone()).exp()
    log(sorted(packed))
    y.sum().backward()
    log(a.grad, b.grad, sorted(unpacked))
    with hooks(lambda t: log("outer"), print), hooks(lambda t: log("inner"), print):
        a.sin()
    with lib.no_grad(), hooks(lambda t: log("no_grad"), print):
        a.sin()
        with lib.enable_grad():
            a.sin()


def saved_tensors_of_a_recorded_pass(lib, log):
    a = leaf(lib)
    count = []
    with lib.autograd.graph.saved_tensors_hooks(lambda t: count.append(1) or t.clone(), lambda t: t):
        y = a.exp()
        log(len(count))
        (g,) = lib.autograd.grad(y.sum(), a, create_graph=True)
        log(len(count) > 1)
    log(lib.autograd.grad(g.sum(), a))


def wrong_unpacked(lib, log):
    hooks = lib.autograd.graph.saved_tensors_hooks

    def run(pack, unpack):
        a = leaf(lib)
        with hooks(pack, unpack):
            y = a.exp()
        y.sum().backward()
        return a.grad

    for unpack in (lambda t: 3, lambda t: None, lambda t: t.float(), lambda t: 1 // 0):
        log(attempt(lambda unpack=unpack: run(lambda t: t.clone(), unpack)))
    log(attempt(lambda: run(lambda t: t.mul_(2), lambda t: t)), attempt(lambda: run(lambda t: 1 // 0, lambda t: t)))
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        log(attempt(lambda: run(lambda t: t, lambda t: t)))
    with hooks(lambda t: t.clone(), lambda t: t):
        log(attempt(lambda: lib.autograd.graph.disable_saved_tensors_hooks("not now").__enter__()))
    with lib.autograd.graph.save_on_cpu(pin_memory=True):
        log(run(lambda t: t.clone(), lambda t: t))


def anomaly_settings(lib, log):
    log(lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled())
    lib.set_anomaly_enabled(True, check_nan=False)
    log(lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled())
    lib.set_anomaly_enabled(False)
    log(lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled())
    lib.autograd.set_detect_anomaly(True)
    log(lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled())
    lib.autograd.set_detect_anomaly(False)


def anomaly(lib, log):
    with lib.autograd.set_detect_anomaly(True):
        x = leaf(lib, value=-1.0)
        y = x.sqrt()
        with pytest.warns(UserWarning, match=r"^Error detected in SqrtBackward0\. Traceback of forward call") as caught:
            log(attempt(lambda: y.sum().backward()))
        log(any("y = x.sqrt()" in str(w.message) and ", in anomaly" in str(w.message) for w in caught))
    with pytest.warns(UserWarning) as caught, lib.autograd.detect_anomaly():
        log(lib.is_anomaly_enabled())
    log([str(w.message) for w in caught], lib.is_anomaly_enabled())


def checkpoints(lib, log):
    checkpoint = lib.utils.checkpoint.checkpoint
    x, w = leaf(lib), leaf(lib, value=0.5)

    def f(x, w, k=1.0):
        log("runs")
        y = (x * w).tanh() * k
        return y.exp(), y.detach()

    y, z = checkpoint(f, x, w, k=2.0, use_reentrant=False)
    log(y, z.requires_grad)
    (g,) = lib.autograd.grad((y * z).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), w, create_graph=True)
    log(g, h, lib.autograd.grad(h.sum(), (x, w)))
    with lib.no_grad():
        log(checkpoint(f, x, w, use_reentrant=False))


def nested_checkpoints(lib, log):
    checkpoint = lib.utils.checkpoint.checkpoint
    x = leaf(lib)

    def inner(x):
        log("inner")
        return x.sin().exp()

    def outer(x):
        log("outer")
        return checkpoint(inner, x.cos(), use_reentrant=False).sin().exp()

    checkpoint(outer, x.exp(), use_reentrant=False).sum().backward()
    log(x.grad)


def changing_functions(lib, log):
    checkpoint = lib.utils.checkpoint.checkpoint

    def run(first, again, **kwargs):
        runs = []

        def f(x):
            runs.append(1)
            return (first if len(runs) == 1 else again)(x)

        x = leaf(lib, 4)
        checkpoint(f, x, use_reentrant=False, **kwargs).sum().backward()
        return x.grad

    def sin(x):
        return x.sin()

    def twice(x):
        return x.sin().cos()

    log(attempt(lambda: run(twice, sin)), attempt(lambda: run(sin, twice)))
    log(attempt(lambda: run(sin, twice, early_stop=False)))
    with lib.utils.checkpoint.set_checkpoint_early_stop(False):
        log(attempt(lambda: run(sin, twice)))
    log(attempt(lambda: run(lambda x: x[:1].sin(), lambda x: x[:2].sin())))
    log(attempt(lambda: run(sin, sin, determinism_check="some")))
    error = lib.utils.checkpoint.CheckpointError
    log(issubclass(error, RuntimeError), error.__name__)


def sequential_checkpoints(lib, log):
    x = leaf(lib)
    steps = [lambda x, k=k: log("step", k) or (x * k).sin() for k in range(1, 6)]
    y = lib.utils.checkpoint.checkpoint_sequential(steps, 2, x, use_reentrant=False)
    log(y)
    y.sum().backward()
    log(x.grad)


def random_numbers(lib, log):
    def f(x):
        noise = lib.rand(2, dtype=lib.float64)
        return (x * noise).exp() * noise

    lib.manual_seed(3)
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    log(lib.rand(1).item())
    y.sum().backward()
    log(x.grad, lib.rand(1).item())


PROGRAMS = [
    order_of_hooks, hooks_replace, hooks_under_create_graph, handles, several_outputs, metadata, wrong_results,
    wrong_prehook_results, edges, edges_of_several_outputs, several_tensors, saved_tensors,
    saved_tensors_of_a_recorded_pass, wrong_unpacked, anomaly_settings, anomaly, checkpoints, nested_checkpoints,
    changing_functions, sequential_checkpoints, random_numbers,
]  # fmt: skip


DEVICES = "of devices and their streams"
COMPILER = "of PyTorch's compiler"
REENTRANT = "of the reentrant variant"
MISSING = {
    "autograd.graph": {
        "region_activation_memory_budget": COMPILER,
        "set_override_stale_capture_stream": DEVICES,
        "set_warn_on_accumulate_grad_stream_mismatch": DEVICES,
    },
    "utils.checkpoint": {
        **dict.fromkeys(("CheckpointFunction", "check_backward_validity", "detach_variable"), REENTRANT),
        **dict.fromkeys(("DefaultDeviceType", "get_device_states", "set_device_states"), DEVICES),
        **dict.fromkeys(
            ("CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts", "SAC_IGNORED_OPS"),
            "selective checkpoints work on PyTorch's dispatcher",
        ),
        "GraphExecGroup": "one recomputation for several passes",
    },
}


@pytest.mark.parametrize("path", MISSING)
def test_names_and_arguments(path):
    ours, theirs = operator.attrgetter(path)(tg), operator.attrgetter(path)(torch)
    assert {n for n in theirs.__all__ if n not in ours.__all__} == set(MISSING[path])
    for name in ours.__all__:
        function = getattr(theirs, name)
        if inspect.isfunction(function):
            assert [*inspect.signature(function).parameters] == [*inspect.signature(getattr(ours, name)).parameters], name


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    logs = []
    for lib in (tg, torch):
        entries = []
        program(lib, lambda *parts, entries=entries: entries.append(told(list(parts))))
        logs.append(entries)
    assert rounded(logs[0]) == rounded(logs[1])


def rounded(value):
    if isinstance(value, float):
        return round(value, 10)
    return [rounded(v) for v in value] if isinstance(value, (list, tuple)) else value
