"""Storages, settings of PyTorch that are accepted, and memory shared between processes."""

import os

import pytest

import tapegrad as tg


def test_storage_is_the_whole_block():
    x = tg.arange(6.0).view(2, 3)
    s = x[1].storage()
    assert len(s) == s.size() == 6 and s.tolist() == list(s) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert s.data_ptr() == x.data_ptr() == x.untyped_storage().data_ptr()
    assert (s.nbytes(), s.element_size(), s.dtype, str(s.device)) == (24, 4, tg.float32, "cpu")
    s[4] = 9
    s[:2] = tg.tensor([7.0, 8.0])
    assert x.tolist() == [[7.0, 8.0, 2.0], [3.0, 9.0, 5.0]] and s[4] == 9.0
    s.fill_(1)
    assert x.sum() == 6 and s.clone().fill_(0).tolist() == [0.0] * 6 and x.sum() == 6
    assert (
        repr(tg.ones(2).storage()) == " 1.0\n 1.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]"
    )


def test_untyped_storage():
    s = tg.tensor([1, 256]).untyped_storage()
    assert len(s) == s.nbytes() == 16 and s.tolist()[:2] == [1, 0] and s[9] == 1
    assert tg.is_storage(s) and not tg.is_storage(3)
    with pytest.raises(RuntimeError, match="a storage keeps its size"):
        s.resize_(0)


def test_set():
    x, y = tg.ones(2), tg.arange(6.0)
    assert x.set_(y) is x and x.data_ptr() == y.data_ptr()
    x[0] = 5
    assert y[0] == 5
    x.set_(y.storage(), 1, (2, 2), (2, 1))
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    x.set_(y.storage(), 2, tg.Size([2]))
    assert x.tolist() == [2.0, 3.0] and x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="needs memory of torch.float32"):
        x.set_(tg.tensor([1]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_shared_memory_shows_writes_of_a_forked_process():
    p = tg.nn.Parameter(tg.zeros(3))
    assert not p.is_shared() and p.share_memory_() is p and p.is_shared() and p.data.is_shared()
    p.grad = tg.ones(3)
    if (child := os.fork()) == 0:
        tg.optim.SGD([p], lr=1.0).step()
        os._exit(0)
    os.waitpid(child, 0)
    assert p.tolist() == [-1.0] * 3


def test_subclasses():
    class Named(tg.Tensor):
        def hello(self):
            return "hello"

    x = tg.ones(2, requires_grad=True)
    y = (x * 3).as_subclass(Named)
    assert type(y) is Named and y.hello() == "hello" and y.grad_fn is not None
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 18.0]
    with pytest.raises(TypeError, match="is no subclass of Tensor"):
        x.as_subclass(int)


def test_settings_are_remembered():
    threads = tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        assert tg.get_num_threads() == 1
    finally:
        tg.set_num_threads(threads)
    for wrong in (0, -1, 2.5):
        with pytest.raises(RuntimeError, match="set_num_threads expects"):
            tg.set_num_threads(wrong)
    tg.use_deterministic_algorithms(True, warn_only=True)
    assert tg.are_deterministic_algorithms_enabled() and tg.is_deterministic_algorithms_warn_only_enabled()
    tg.set_deterministic_debug_mode("default")
    assert tg.get_deterministic_debug_mode() == 0 and not tg.are_deterministic_algorithms_enabled()
    tg.set_float32_matmul_precision("high")
    assert tg.get_float32_matmul_precision() == "high"
    tg.set_float32_matmul_precision("highest")
    with pytest.warns(UserWarning, match="foo is not one of"):
        tg.set_float32_matmul_precision("foo")
    assert tg.set_flush_denormal(False) and not tg.set_flush_denormal(True)


def test_names_of_types():
    names = [tg.typename(v) for v in (tg.ones(1), tg.tensor([1]), [1], tg.nn.Linear(1, 1))]
    assert names == ["torch.FloatTensor", "torch.LongTensor", "list", f"{tg.nn.Linear.__module__}.Linear"]


def test_memory_formats_of_contiguous_tensors():
    x = tg.ones(1, 2, 3, 4)
    images = x.permute(0, 3, 1, 2)
    assert x.is_contiguous(memory_format=tg.contiguous_format) and not x.is_contiguous(memory_format=tg.channels_last)
    assert images.is_contiguous(memory_format=tg.channels_last) and not images.is_contiguous()
    assert not images.is_contiguous(memory_format=tg.channels_last_3d)
    assert not tg.ones(2).is_contiguous(memory_format=tg.channels_last)


def test_versions_stay_shared():
    x = tg.ones(1, 2)
    view = x[:]
    x.data = tg.zeros(2, 3)
    assert x._version == view._version == 0
    x.add_(1)
    view.add_(1)
    assert x._version == view._version == 2
    y = tg.ones(1)
    for size, version in ((1, 0), ((1, 2), 1), (3, 2), (3, 2)):
        y.resize_(size)
        assert y._version == version


@pytest.mark.parametrize("name", ["data", "requires_grad", "_grad_fn", "_backward_hooks"])
def test_attributes_that_cannot_be_deleted(name):
    x = tg.ones(1, 1, dtype=tg.complex64)
    with pytest.raises(RuntimeError, match=f"^the attribute {name} of a tensor cannot be deleted"):
        delattr(x, name)
    assert all(hasattr(x, n) for n in dir(x) if n != "volatile")  # which warns


def test_hooks_of_a_leaf_can_be_replaced():
    x = tg.ones(1, requires_grad=True)
    x._backward_hooks = {"test": lambda g: g * 3}
    x.sum().backward()
    assert x.grad.item() == 3.0 and list(x._backward_hooks) == ["test"]


def test_cdata_tells_whether_two_are_one_tensor_or_one_storage():
    x, y = tg.ones(2), tg.ones(2)
    assert x._cdata == x._cdata != x.detach()._cdata
    assert x.untyped_storage()._cdata == x.detach()[1:].untyped_storage()._cdata != y.untyped_storage()._cdata


def test_the_storage_of_a_view_of_another_dtype_has_the_dtype_of_the_view():
    x = tg.tensor([1.0, 2.0])
    assert x.storage().dtype is tg.float32 and x.storage().tolist() == [1.0, 2.0]
    bits = x.view(tg.int32)
    assert bits.storage().dtype is tg.int32 and bits.storage().tolist() == [0x3F800000, 0x40000000]
