"""Wrong arguments of backward, grad and the tensor's flags: PyTorch's error type and first sentence, no partial effect."""

import copy
import warnings

import numpy as np
import pytest

import tapegrad as tg

grad = tg.autograd.grad


def leaf(*values, dtype=tg.float32):
    return tg.tensor(values, dtype=dtype, requires_grad=True)


def refused(kind, text, call):
    with pytest.raises(kind) as caught:
        call()
    assert caught.type is kind and str(caught.value).startswith(text), str(caught.value)


X = leaf(1.0, 2.0)


def doubled():
    return X * 2.0


MISMATCH = "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([2])."
UNUSED = (
    "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this is the "
    "desired behavior."
)
UNTRACKED = "One of the differentiated Tensors does not require grad"
BATCHED = (
    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of "
    "the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
    "grad_output[0] has a shape of torch.Size([]) and output[0] has a shape of torch.Size([2])."
)
COMPLEX = "For complex Tensors, both grad_output and output are required to have the same dtype."
TYPE = "gradients can be either Tensors or None, but got "


@pytest.mark.parametrize(
    ("kind", "text", "call"),
    [
        # the output
        (RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn", tg.ones(1).backward),
        (RuntimeError, "element 1 of tensors does not require grad and does not have a grad_fn",
         lambda: tg.autograd.backward([X.sum(), tg.ones(1)])),
        (RuntimeError, "grad can be implicitly created only for scalar outputs", lambda: doubled().backward()),
        (RuntimeError, "grad can be implicitly created only for scalar outputs", lambda: grad(doubled(), X)),
        (RuntimeError, "grad can be implicitly created only for scalar outputs", lambda: X[:0].backward()),
        (TypeError, "backward(): expected Tensors, but got float", lambda: grad(3.0, X)),
        # the cotangent
        (RuntimeError, MISMATCH, lambda: doubled().backward(tg.ones(3))),
        (RuntimeError, MISMATCH, lambda: grad(doubled(), X, tg.ones(3))),
        (TypeError, TYPE + "ndarray", lambda: doubled().backward(np.ones(2))),
        (TypeError, TYPE + "float", lambda: doubled().backward(1.0)),
        (TypeError, TYPE + "str", lambda: doubled().backward("ab")),
        (TypeError, TYPE + "int", lambda: grad(doubled(), X, [3])),
        (RuntimeError, COMPLEX, lambda: doubled().backward(tg.tensor([1j, 2.0]))),
        (RuntimeError, "got 1 tensors and 2 gradients", lambda: grad([doubled()], [X], [tg.ones(2), tg.ones(2)])),
        (RuntimeError, BATCHED, lambda: grad(doubled(), X, tg.tensor(1.0), is_grads_batched=True)),
        (RuntimeError, BATCHED[: BATCHED.index("grad_output[0]")] + "grad_output[1] has a shape of torch.Size([3, 2])",
         lambda: grad([doubled(), doubled()], X, [tg.ones(2, 2), tg.ones(3, 2)], is_grads_batched=True)),
        # the inputs
        (RuntimeError, UNUSED, lambda: grad(X.sum(), leaf(1.0))),
        (RuntimeError, UNUSED.replace("index 0", "index 1"), lambda: grad(X.sum(), [X, leaf(1.0)])),
        (RuntimeError, UNTRACKED, lambda: grad(X.sum(), tg.ones(2))),
        (RuntimeError, UNTRACKED, lambda: X.sum().backward(inputs=[tg.ones(2)])),
        (RuntimeError, "`inputs` argument to `grad()` cannot be empty.", lambda: grad(X.sum(), [])),
        (RuntimeError, "`inputs` argument to `backward()` cannot be empty.", lambda: X.sum().backward(inputs=[])),
        (TypeError, "grad(): expected Tensors, but got float", lambda: grad(X.sum(), 3.0)),
        (TypeError, "grad(): expected Tensors, but got NoneType", lambda: grad(X.sum(), None)),
        (ValueError,
         "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.",
         lambda: grad(X.sum(), X, allow_unused=False, materialize_grads=True)),
        # the tensor's flags
        (RuntimeError, "Only Tensors of floating point and complex dtype can require gradients",
         lambda: tg.tensor(1, requires_grad=True)),
        (RuntimeError, "Only Tensors of floating point and complex dtype can require gradients",
         lambda: tg.ones(2, dtype=tg.bool, requires_grad=True)),
        (RuntimeError, "only Tensors of floating point and complex dtype can require gradients",
         lambda: setattr(tg.tensor(1), "requires_grad", True)),
        (RuntimeError, "you can only change requires_grad flags of leaf variables.",
         lambda: doubled().requires_grad_(False)),
        (RuntimeError, "you can only change requires_grad flags of leaf variables.",
         lambda: setattr(doubled(), "requires_grad", False)),
        (RuntimeError,
         "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please ensure that the gradient and the "
         "tensor are the same size", lambda: setattr(X, "grad", tg.ones(3))),
        (TypeError, "assigned grad expected to be a Tensor or None but got grad of type numpy.ndarray",
         lambda: setattr(X, "grad", np.ones(2))),
        (RuntimeError,
         "attempting to assign a gradient with dtype 'torch.float64' to a tensor with grad_dtype 'torch.float32'",
         lambda: setattr(X, "grad", tg.ones(2, dtype=tg.float64))),
        (AttributeError, "", lambda: setattr(X, "grad_fn", None)),
        (AttributeError, "", lambda: setattr(X, "is_leaf", False)),
        (RuntimeError,
         "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.",
         lambda: copy.deepcopy(doubled())),
        (RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", lambda: bool(X)),
        (RuntimeError, "Boolean value of Tensor with no values is ambiguous", lambda: bool(tg.ones(0))),
        # data that is none: the item is named
        *[(RuntimeError, f"Could not infer dtype of {kind}", lambda data=data: tg.tensor(data))
          for kind, data in [("NoneType", None), ("NoneType", [1, None]), ("NoneType", [None, 1]), ("dict", [[1], [{}]]),
                             ("NoneType", [[1, 2], None]), ("NoneType", [np.ones(2), None]), ("object", [1.0, object()])]],
        (TypeError, "new(): invalid data type 'bytes'", lambda: tg.tensor([1, b"a"])),
        (ValueError, "Overflow when unpacking long long", lambda: tg.tensor([1, 2**70])),
        *[(TypeError, "expected Tensor as element 1 in argument 0, but got NoneType", lambda f=f: f(iter([X, None])))
          for f in (tg.stack, tg.cat, tg.vstack, tg.hstack, tg.dstack, tg.column_stack)],
        (TypeError, "expected Tensor as element 0 in argument 0, but got str", lambda: tg.cat(["a", tg.ones(2)])),
        *[(TypeError, "expected Tensor, array or numbers, but got NoneType", call) for call in [
            lambda: tg.nn.functional.mse_loss(tg.ones(2), None), lambda: tg.nn.functional.cross_entropy(tg.ones(2, 2), None),
            lambda: tg.meshgrid(tg.ones(2), None), lambda: tg.block_diag(tg.ones(2), None)]],
        # NumPy arrays
        (ValueError, "given numpy array has byte order different from the native byte order.",
         lambda: tg.from_numpy(np.ones(2, ">f4"))),
        (ValueError, "given numpy array has byte order different from the native byte order.",
         lambda: tg.tensor(np.ones(2, ">f4"))),
        (ValueError, "given numpy array has byte order different from the native byte order.",
         lambda: X * np.ones(2, ">f4")),
        (TypeError, "can't convert np.ndarray of type numpy.object_.", lambda: tg.tensor(np.array([1, "a"], object))),
        (TypeError, "can't convert np.ndarray of type numpy.object_.", lambda: tg.from_numpy(np.array([1, "a"], object))),
        (TypeError, "can't convert np.ndarray of type numpy.void.", lambda: tg.from_numpy(np.zeros(2, [("a", "f4")]))),
        (TypeError, "can't convert np.ndarray of type numpy.longdouble.", lambda: tg.tensor(np.ones(2, np.longdouble))),
        (TypeError, "can't convert np.ndarray of type numpy.str_.", lambda: tg.tensor(np.array(["a"]))),
        (TypeError, "expected np.ndarray (got list)", lambda: tg.from_numpy([1.0])),
    ],
)  # fmt: skip
def test_wrong_calls_raise_pytorchs_errors(kind, text, call):
    X.grad = None
    refused(kind, text, call)
    assert X.grad is None and X.requires_grad and X.tolist() == [1.0, 2.0]


def test_nothing_is_accumulated_when_one_of_several_outputs_is_refused():
    x = leaf(1.0, 2.0)
    y = x * x
    ones = tg.ones(2)
    for outputs, cotangents in (([y.sum(), y], None), ([y, y.sum()], [ones, ones]), ([y.sum(), tg.ones(1)], None)):
        with pytest.raises(RuntimeError):
            tg.autograd.backward(outputs, cotangents)
    with pytest.raises(RuntimeError):
        grad(y.sum(), leaf(1.0))
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_an_unused_input_is_refused_before_the_graph_is_released():
    for n in (2, 10_000):
        x = tg.ones(n, requires_grad=True)
        y = x.exp().sum()
        with pytest.raises(RuntimeError, match="appears to not have been used"):
            grad(y, [x, leaf(1.0)])
        y.backward()
        assert x.grad is not None


@pytest.mark.parametrize("dtype", [tg.int64, tg.int32, tg.bool, tg.float64, tg.float16])
def test_cotangents_of_another_dtype_are_cast(dtype):
    x = leaf(1.0, 2.0)
    y = x * 2.0
    y.backward(tg.tensor([1, 0]).to(dtype), retain_graph=True)
    assert x.grad.tolist() == [2.0, 0.0] and x.grad.dtype == tg.float32
    (g,) = grad(y, x, tg.tensor([1, 0]).to(dtype), create_graph=True)
    assert g.tolist() == [2.0, 0.0] and g.dtype == tg.float32


def test_cotangents_come_as_a_tensor_a_sequence_or_none():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    for cotangent in (tg.ones(2), [tg.ones(2)], (tg.ones(2),), (c for c in [tg.ones(2)])):
        assert grad(y, x, cotangent, retain_graph=True)[0].tolist() == [2.0, 2.0]
    assert grad([y.sum(), y], x, [None, tg.ones(2)])[0].tolist() == [4.0, 4.0]


def test_inputs_come_as_a_tensor_a_sequence_a_generator_or_a_dict():
    a, b = leaf(1.0), leaf(2.0)
    y = (a * b).sum()
    for inputs in ([a, b], (a, b), (t for t in (a, b)), {"x": a, "y": b}.values()):
        assert [g.item() for g in grad(y, inputs, retain_graph=True)] == [2.0, 1.0]
    by_name = grad(y, {"a": a, "b": b}, retain_graph=True)
    assert {k: v.item() for k, v in by_name.items()} == {"a": 2.0, "b": 1.0}
    y.backward(inputs=(t for t in [a]))
    assert a.grad.item() == 2.0 and b.grad is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_duplicates_in_outputs_and_inputs(create_graph):
    x = leaf(1.0, 2.0)
    y = x * 2.0
    result = grad([y, y, x], [x, y, x], [tg.ones(2), tg.ones(2), tg.ones(2)], create_graph=create_graph)
    assert [g.tolist() for g in result] == [[5.0, 5.0], [2.0, 2.0], [5.0, 5.0]]
    assert result[0] is not result[2]
    (x * 3.0).sum().backward(inputs=[x, x])
    assert x.grad.tolist() == [3.0, 3.0]


def test_an_output_that_is_an_input():
    x = leaf(1.0)
    assert grad(x, x)[0].item() == 1.0
    y = x * 2.0
    assert [g.item() for g in grad(y, [y, x])] == [1.0, 2.0]
    x.backward()
    assert x.grad.item() == 1.0


def test_allow_unused_and_materialize_grads():
    x, other = leaf(1.0, 2.0), leaf(3.0)
    y = (x * 2.0).sum()
    assert grad(y, [x, other], allow_unused=True, retain_graph=True)[1] is None
    zero = grad(y, [x, other], materialize_grads=True, retain_graph=True)[1]
    assert zero.tolist() == [0.0] and zero.dtype == tg.float32
    assert grad(y, other, allow_unused=True, materialize_grads=True)[0].tolist() == [0.0]


def test_batched_cotangents():
    x = leaf(1.0, 2.0)
    y = x * x
    (rows,) = grad(y, x, tg.eye(2), is_grads_batched=True, retain_graph=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    (rows,) = grad(y, x, tg.eye(2), is_grads_batched=True, create_graph=True)
    assert grad(rows.sum(), x)[0].tolist() == [2.0, 2.0]
    other = leaf(3.0)
    assert grad(y, [x, other], tg.eye(2), is_grads_batched=True, retain_graph=True, allow_unused=True)[1] is None
    (none,) = grad(y, x, tg.ones(0, 2), is_grads_batched=True)
    assert tuple(none.shape) == (0, 2)


def test_a_constant_gradient_does_not_require_grad():
    x = leaf(1.0)
    (g,) = grad(2 * x, x, create_graph=True)
    assert not g.requires_grad


def test_create_graph_warns_of_nothing_and_accumulates_out_of_place():
    x = leaf(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert first.item() == 2.0 and x.grad.item() == 4.0 and x.grad.requires_grad


def test_backward_inside_no_grad():
    x = leaf(3.0)
    y = (x * x).sum()
    with tg.no_grad():
        (g,) = grad(y, x, create_graph=True)
        y.backward(retain_graph=True)
        assert not tg.is_grad_enabled()
    assert g.requires_grad and x.grad.item() == 6.0
    assert grad(g, x)[0].item() == 2.0
    with tg.no_grad():
        z = (x * x).sum()
    refused(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn", z.backward)


def test_results_of_integers_and_comparisons_are_not_tracked():
    x = leaf(1.5, -2.0)
    for t in (x > 0, x.argmax(), x.long(), x == x):
        assert not t.requires_grad and t.is_leaf


def test_non_writable_arrays_can_be_operands_and_tensors():
    a = np.array([3.0, 4.0], np.float32)
    a.flags.writeable = False
    x = leaf(1.0, 2.0)
    assert grad((x * a).sum(), x)[0].tolist() == [3.0, 4.0]
    t = tg.from_numpy(a)  # no warning as in PyTorch: a write to it is refused
    assert grad((x * t).sum(), x)[0].tolist() == [3.0, 4.0]
    assert tg.tensor(a).add_(1.0).tolist() == [4.0, 5.0] and a.tolist() == [3.0, 4.0]


def test_a_read_only_gradient_is_replaced():
    x = leaf(1.0, 2.0)
    a = np.zeros(2, np.float32)
    a.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.grad = tg.from_numpy(a)
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and a.tolist() == [0.0, 0.0]


def test_grad_can_be_deleted_and_set_to_none():
    x = leaf(1.0)
    (x * 2.0).backward()
    del x.grad
    assert x.grad is None
    x.grad = tg.ones(1)
    (x * 2.0).backward()
    assert x.grad.item() == 3.0


def test_a_parameter_without_a_shape_has_no_gradient():
    p = tg.nn.LazyLinear(3).weight
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        p.backward()


def test_a_tensor_is_not_its_own_gradient():
    x = tg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    assert x.grad is None
