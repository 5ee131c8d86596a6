"""Wrong arguments of functions are refused, with PyTorch's error type and text."""

import contextlib
import inspect
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core.op import TABLE
from tapegrad.functions.derived import _reduction
from tapegrad.nn import functional as F

nan = math.nan


def leaf(values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def test_numbers_that_a_dtype_cannot_hold_are_refused():
    with pytest.raises(TypeError):
        tg.tensor(1j, dtype=tg.float32)
    for value, dtype in ((300, tg.uint8), (-256, tg.uint8), (nan, tg.int64), (1e30, tg.int32)):
        with pytest.raises(RuntimeError, match="without overflow"):
            tg.tensor(value, dtype=dtype)


def test_triangles_are_of_matrices():
    for triangle in (tg.tril, tg.triu):
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            triangle(tg.ones(3))


def test_a_list_is_no_tensor():
    for call in (
        lambda: tg.sin([1.0]),
        lambda: tg.mul(tg.ones(2), [1, 2]),
        lambda: tg.nn.Linear(1, 1)([[1.0]]),
        lambda: tg.exp(None),
    ):
        with pytest.raises(TypeError, match="must be Tensor, not"):
            call()
    assert (tg.ones(2) == None) is False  # noqa: E711


def test_only_inputs():
    x = tg.ones(1, requires_grad=True)
    assert tg.autograd.grad(x * 2, x, only_inputs=True)[0].item() == 2
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        assert tg.autograd.grad(x * 2, x, only_inputs=False)[0].item() == 2


def test_there_is_no_gpu():
    assert not tg.cuda.is_available() and tg.cuda.device_count() == 0


def test_shapes_that_do_not_broadcast():
    a, b = tg.zeros(4, 3), tg.zeros(2)
    for f in (tg.broadcast_tensors, F.cosine_similarity):
        with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* b \(2\)"):
            f(a, b)


def test_numbers_of_several_elements():
    for number in (int, float, complex):
        with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
            number(tg.zeros(3))
        assert number(tg.ones(1, 1)) == 1


@pytest.mark.parametrize("f", [tg.fft.fft, tg.fft.ifft, tg.fft.rfft, tg.fft.irfft, tg.fft.hfft, tg.fft.ihfft])
def test_fourier_transforms_refuse_length_minus_one(f):
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(-1\)"):
        f(tg.ones(3), -1)
    assert tg.fft.fftn(tg.ones(3, 2), s=(-1, 2)).shape == (3, 2)


def test_binary_cross_entropy_refuses_nan():
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(tg.tensor([nan, 0.5]), tg.zeros(2))


def test_class_weights_are_one_for_each_class():
    x, y = leaf([[0.0, 1.0], [2.0, 0.0]]), tg.tensor([1, 0])
    for loss, target in ((F.cross_entropy, y), (F.nll_loss, y), (F.cross_entropy, x.detach())):
        for weight in (tg.ones(3), tg.ones(2, 1)):
            with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 2 classes or no classes"):
                loss(x, target, weight)


def test_a_single_label_may_have_a_dimension():
    x = leaf([0.0, 1.0, 2.0])
    assert F.nll_loss(x, tg.tensor([1])).item() == -1
    assert F.cross_entropy(x, tg.tensor([1])).item() == F.cross_entropy(x, tg.tensor(1)).item()
    with pytest.raises(ValueError, match="1D target must have size 1, but got target size: 2"):
        F.nll_loss(x, tg.tensor([1, 2]))


@pytest.mark.parametrize(
    "shape, source",
    [((3, 4), (7,)), ((3, 4), (4, 3)), ((3, 4), (2, 3)), ((2,), (0,)), ((4,), (1, 4)), ((1,), (3,)), ((), (2,))],
)
def test_copy_refuses_a_shape_that_does_not_broadcast(shape, source):
    for values in (tg.arange(float(np.prod(source))).reshape(source), tg.ones(source)):
        t = tg.full(shape, 5.0)
        with pytest.raises(RuntimeError, match=r"must match the size|doesn't match the broadcast shape"):
            t.copy_(values)
        assert (t == 5).all()


def test_masks_and_indices_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* b \(2\)"):
        tg.masked_scatter(tg.ones(3), tg.ones(2, dtype=tg.bool), tg.ones(3))
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* b \(2\)"):
        tg.take_along_dim(tg.ones(3, 1), tg.zeros(2, 1, dtype=tg.int64), 1)


def test_requires_grad_is_a_bool():
    x = tg.ones(2)
    with pytest.raises(TypeError, match="must be bool, not str"):
        x.requires_grad_("x")
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = "x"
    assert not x.requires_grad


def test_sequences_nest_no_deeper_than_arrays():
    for wrap in (list, tuple):
        data = 1.0
        for _ in range(64):
            data = wrap([data])
        assert tg.tensor(data).dim() == 64
        for deeper in (1, 63, 900):
            for _ in range(deeper):
                data = wrap([data])
            for make in (tg.tensor, tg.as_tensor, tg.asarray):
                with pytest.raises(ValueError, match=f"too many dimensions '{wrap.__name__}'"):
                    make(data)


def test_steps_of_slices():
    x, y = tg.ones(12), tg.ones(3, 12)
    for read in (lambda: x[1:9:0], lambda: x[::0], lambda: y[0, 9:1:0], lambda: y[..., ::0], lambda: y[tg.tensor([0]), ::0]):
        with pytest.raises(ValueError, match=r"^slice step cannot be zero\. In indexing by slice"):
            read()
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        x[1:9:0] = 1.0
    for bound in (1.5, "a", tg.ones(2)):
        with pytest.raises(TypeError, match="slice indices must be integers or None or have an __index__ method"):
            x[bound:]


def test_alpha_is_of_no_higher_kind_than_the_result():
    assert tg.add(1, 2, alpha=3).item() == 7 and tg.sub(1, 2.0, alpha=0.5).item() == 0
    for f in (tg.add, tg.sub, tg.rsub):
        for x in (tg.tensor([1, 2]), tg.tensor([1.0, 2.0])):
            with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
                f(x, x, alpha=True)
        with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not be a floating"):
            f(tg.tensor([1]), tg.tensor([1]), alpha=1j)
        with pytest.raises(RuntimeError, match="For non-complex input tensors, argument alpha must not be a complex number"):
            f(tg.tensor([1.0]), tg.tensor([1.0]), alpha=1j)
    assert tg.add(tg.tensor(True), tg.tensor(False), alpha=True).item() is True


def functions_with_two_names():
    """Public functions that take `dim` and `keepdim` under NumPy's names, too, with the pair of names."""
    for module in (tg, tg.special, tg.linalg, F):
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type):
                parameters = inspect.signature(function).parameters
                for own, other in (("dim", "axis"), ("keepdim", "keepdims")):
                    if own in parameters and other in parameters:
                        yield pytest.param(function, own, other, id=f"{module.__name__}.{name}-{other}")


def required_arguments(function, *but):
    """Something for each argument that has no default."""
    parameters = inspect.signature(function).parameters.values()
    sequences = ("tensors", "split_sizes")
    return {
        p.name: [tg.ones(2, 2)] if p.name in sequences else tg.ones(2, 2)
        for p in parameters
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in but
    }


@pytest.mark.parametrize(("function", "own", "other"), list(functions_with_two_names()))
def test_an_argument_under_both_of_its_names_is_refused(function, own, other):
    values = (0, 1) if own == "dim" else (True, False)
    for first, second in (values, values[::-1]):
        given = {**required_arguments(function, own), own: first, other: second}
        if function in (tg.split, tg.split_copy, tg.unsafe_split):
            given["split_size_or_sections"] = 1
        with pytest.raises(TypeError, match=rf"^\w+\(\) got an unexpected keyword argument '{other}': '{own}', which"):
            function(**given)


def test_an_argument_by_place_and_under_another_name_is_refused():
    x = tg.ones(2, 3)
    for call in (
        lambda: x.sum(0, axis=1),
        lambda: x.mean(0, axis=0),
        lambda: x.amax(0, axis=1),
        lambda: x.cumsum(0, axis=1),
        lambda: tg.softmax(x, 0, axis=1),
        lambda: tg.cat([x, x], 0, axis=1),
        lambda: x.var(0, axis=1),
        lambda: x.max(0, axis=1),
    ):
        with pytest.raises(
            TypeError, match=r"^\w+\(\) got an unexpected keyword argument 'axis': 'dim', which it stands for"
        ):
            call()
    assert x.sum(axis=1).tolist() == x.sum(dim=1).tolist() == [3.0, 3.0]
    assert x.amax(axis=1, keepdims=True).shape == x.sum(1, keepdims=True).shape == (2, 1)
    assert tg.cat([x, x], axis=1).shape == (2, 6)


def functions_with_out():
    """Public functions that take `out` and run on matrices, each with such arguments."""
    for module in (tg, tg.special, tg.linalg, tg.fft, F):
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type) and "out" in inspect.signature(function).parameters:
                arguments = required_arguments(function)
                with contextlib.suppress(TypeError, RuntimeError, ValueError, IndexError, ImportError):  # no SciPy
                    function(**arguments)
                    yield function, arguments


def test_an_out_that_is_no_tensor_is_refused_by_every_function():
    count = 0
    for function, arguments in functions_with_out():
        count += 1
        for wrong, kind in ((np.zeros(3), "numpy.ndarray"), (3, "int"), ("a", "str")):
            text = rf"^\w+\(\): argument 'out' must be (Tensor|tuple of Tensors), not {kind}$"
            with pytest.raises(TypeError, match=text):
                function(**arguments, out=wrong)
    assert count > 200


def test_an_out_that_is_no_tensor_is_named_as_in_pytorch():
    x = tg.ones(2, 3)
    for call, text in (
        (lambda: tg.sin(x, out=np.zeros(3)), r"sin\(\): argument 'out' must be Tensor, not numpy\.ndarray"),
        (lambda: tg.sum(x, 0, out=3), r"sum\(\): argument 'out' must be Tensor, not int"),
        (lambda: tg.cumsum(x, 0, out=3), r"cumsum\(\): argument 'out' must be Tensor, not int"),
        (lambda: tg.add(x, x, out="a"), r"add\(\): argument 'out' must be Tensor, not str"),
        (lambda: tg.zeros(2, out=3), r"zeros\(\): argument 'out' must be Tensor, not int"),
        (lambda: tg.bucketize(x, x[0], out=3), r"bucketize\(\): argument 'out' must be Tensor, not int"),
        (lambda: tg.linalg.qr(x, out=3), r"linalg_qr\(\): argument 'out' must be tuple of Tensors, not int"),
        (lambda: tg.max(x, 0, out=(3, 4)), "expected Tensor as element 0 in argument 'out', but got int"),
        (lambda: tg.max(x, 0, out=(tg.zeros(2),)), "expected tuple of 2 elements but got 1"),
        (lambda: tg.unbind_copy(x, out=(tg.zeros(3), 1)), "expected Tensor as element 1 in argument 'out', but got int"),
    ):
        with pytest.raises(TypeError, match="^" + text):
            call()
    with pytest.raises(
        RuntimeError, match=r"^result type Float can't be cast to the desired output type Int\. With out=\.$"
    ):
        tg.sin(x, out=tg.zeros(2, 3, dtype=tg.int32))


def test_wrong_dimensions_name_operation_and_argument():
    x = tg.ones(2, 3)
    for call, error, text in (
        (lambda: x.logsumexp(5), IndexError, r"Dimension out of range .* but got 5\). In logsumexp\(\): argument 'dim'\."),
        (lambda: x.sum((0, 0)), RuntimeError, r"dim 0 appears multiple .* of dims\. In sum\(\): argument 'dim'\."),
        (lambda: x.amax("a"), TypeError, r"amax\(\): argument 'dim' must be tuple of ints, not str"),
        (lambda: x.mean(1.0), TypeError, r"mean\(\): argument 'dim' must be tuple of ints, not float"),
        (
            lambda: x.var((0, 1.0)),
            TypeError,
            r"var\(\): argument 'dim' must be tuple of ints, but found element .* float at pos 1",
        ),
        (lambda: x.sum(0, keepdim="yes"), TypeError, r"sum\(\): argument 'keepdim' must be bool, not str"),
        (lambda: x.amax(0, keepdim="yes"), TypeError, r"amax\(\): argument 'keepdim' must be bool, not str"),
        (lambda: x.var(0, keepdims=1), TypeError, r"var\(\): argument 'keepdim' must be bool, not int"),
        (lambda: x.max(0, "yes"), TypeError, r"max\(\): argument 'keepdim' must be bool, not str"),
    ):
        with pytest.raises(error, match=f"^{text}"):
            call()


def test_a_function_that_follows_from_a_record_names_it():
    amax, x = _reduction(TABLE["amax"]), tg.ones(2, 3)
    for call, error, text in (
        (lambda: amax(x, 5), IndexError, r"Dimension out of range .* In amax\(\): argument 'dim'\."),
        (lambda: amax(x, "a"), TypeError, r"amax\(\): argument 'dim' must be tuple of ints, not str"),
        (lambda: amax(x, 0, "yes"), TypeError, r"amax\(\): argument 'keepdim' must be bool, not str"),
        (lambda: amax(x, 0, axis=1), TypeError, r"amax\(\) got an unexpected keyword argument 'axis': 'dim', which"),
        (lambda: amax(x, 0, out=3), TypeError, r"amax\(\): argument 'out' must be Tensor, not int"),
    ):
        with pytest.raises(error, match=f"^{text}"):
            call()


def test_derivatives_of_a_curve_are_a_sequence_for_each_argument():
    for primals, series in ((0.0, (1.0,)), ((0.0,), (1.0,)), (0.0, ((1.0,),)), ((0.0,), 1.0)):
        with pytest.raises(ValueError, match=r"jet.*one item for each argument.*jet\(f, \(x0,\), \(\(x1, x2\),\)\)"):
            tg.func.jet(np.exp, primals, series)
    assert tg.func.jet(np.exp, (0.0,), ((1.0, 0.0),)) == (1.0, [1.0, 1.0])


def test_an_argument_in_place_of_argnums_is_refused():
    for transform in (tg.func.grad, tg.func.grad_and_value, tg.func.jacrev, tg.func.jacfwd):
        for x in (np.ones(2), tg.ones(2), 1.0):
            text = rf"argnums must be int or Tuple\[int, \.\.\.\], got: {type(x)}\. .* second call: grad\(f\)\(x\)"
            with pytest.raises(RuntimeError, match=text):
                transform(np.sum, x)(x)


def test_a_module_in_place_of_its_parameters_is_refused():
    net = tg.nn.Linear(2, 3)
    for params in (net, [{"params": net}]):
        with pytest.raises(TypeError, match=r"^'Linear' object is not iterable\. Pass its parameters\(\)\.$"):
            tg.optim.SGD(params, lr=0.1)


def test_another_dtype_of_a_layer_names_what_converts_an_array():
    with pytest.raises(
        RuntimeError, match=r"but got Double and Float\. Convert one with \.to\(dtype\), an array .* \.astype\(dtype\)\."
    ):
        tg.nn.Linear(2, 3)(np.ones(2))


def test_what_functions_return_besides_is_converted_as_their_results_are():
    def f(x):
        return (x * x).sum(), {"square": x * x, "name": "f"}

    x = np.array([1.0, 2.0])
    for transform in (
        lambda f: tg.func.grad(f, has_aux=True)(x)[1],
        lambda f: tg.func.grad_and_value(f, has_aux=True)(x)[1][1],
        lambda f: tg.func.jacrev(f, has_aux=True)(x)[1],
        lambda f: tg.func.jacfwd(f, has_aux=True)(x)[1],
        lambda f: tg.func.hessian(f, has_aux=True)(x)[1],
        lambda f: tg.func.vjp(f, x, has_aux=True)[2],
        lambda f: tg.func.jvp(f, (x,), (x,), has_aux=True)[2],
    ):
        aux = transform(f)
        assert type(aux["square"]) is np.ndarray and aux["square"].tolist() == [1.0, 4.0] and aux["name"] == "f"
    assert isinstance(tg.func.grad(f, has_aux=True)(tg.ones(2))[1]["square"], tg.Tensor)
