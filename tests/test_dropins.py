"""The drop-ins' import machinery, and the torch drop-in: modules, names, errors of unsupported names, settings."""

import builtins
import contextlib
import copy
import importlib
import importlib.machinery
import inspect
import io
import os
import pathlib
import pickle
import struct
import subprocess
import sys
from multiprocessing import spawn

import pytest

import tapegrad
from tapegrad import compat
from tapegrad.compat import module_names

HERE = pathlib.Path(__file__).parent
MODULES = (HERE / "torch_modules.txt").read_text().split()


@pytest.fixture
def torch():
    with compat.installed("torch", replace=True):
        yield importlib.import_module("torch")


# ---------------------------------------------------------------------------------------------------------- machinery


def state():
    loaded = {m: sys.modules[m] for m in sys.modules if m.split(".")[0] in (*compat.NAMES, "functorch")}
    return loaded, list(sys.path), list(sys.meta_path), spawn.get_preparation_data, builtins.__build_class__


def homes():
    shown = (
        tapegrad.Tensor,
        tapegrad.nn.Linear,
        tapegrad.nn.Parameter,
        tapegrad.optim.Adam,
        tapegrad.no_grad,
        tapegrad.Size,
    )
    return [value.__module__ for value in shown]


@pytest.mark.parametrize("name", compat.NAMES)
def test_removing_leaves_all_as_it_was(name):
    before = state(), homes()
    compat.install(name, replace=True)
    importlib.import_module(name)
    assert sys.path == before[0][1]
    compat.remove(name)
    compat.remove(name)
    assert (state(), homes()) == before


def test_two_at_once():
    before = state(), homes()
    with compat.installed("torch", replace=True):
        import torch

        with compat.installed("oneflow", replace=True):
            import oneflow

            assert oneflow.Tensor is torch.Tensor is tapegrad.Tensor
        assert torch.Tensor.__module__ == "torch" and "oneflow" not in sys.modules
    assert (state(), homes()) == before


def test_what_was_imported_before_comes_back(monkeypatch):
    real = type(sys)("torch")
    real.nn = type(sys)("torch.nn")
    monkeypatch.setitem(sys.modules, "torch", real)
    monkeypatch.setitem(sys.modules, "torch.nn", real.nn)
    with pytest.raises(ImportError, match=r"torch is already imported, from its place: .*replace=True"):
        compat.install("torch")
    with compat.installed("torch", replace=True):
        assert importlib.import_module("torch.nn") is not real.nn
    assert sys.modules["torch"] is real and sys.modules["torch.nn"] is real.nn


def test_what_a_failed_import_left_is_no_import(monkeypatch):
    left = type(sys)("torch.left")
    for module in [m for m in sys.modules if m.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torch.left", left)
    with compat.installed("torch"):
        assert importlib.import_module("torch").ones(1).sum() == 1 and "torch.left" not in sys.modules
    assert sys.modules["torch.left"] is left


def test_nothing_is_found_unasked():
    code = "import tapegrad, importlib.util as u; print([n for n in ('oneflow',) if u.find_spec(n)])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    finders = [f for f in sys.meta_path if type(f).__module__.startswith("tapegrad.compat")]
    assert not finders


def test_classes_that_are_loaded_when_asked_for_say_that_they_are_of_pytorchs_modules():
    """In a new process: here other tests have loaded them."""
    code = (
        "import tapegrad as tg; tg.compat.install('torch'); from torch import nn\n"
        "print(nn.Linear.__module__, nn.LSTM.__module__, nn.ReLU.__module__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "torch.nn.modules.linear torch.nn.modules.rnn torch.nn.modules.activation\n"


def test_an_unknown_name():
    with pytest.raises(ValueError, match="tapegrad has drop-ins for torch, oneflow, autograd, not for 'jax'"):
        compat.install("jax")


# -------------------------------------------------------------------------------------------------------------- names


def test_each_module_can_be_imported(torch):
    for module in MODULES:
        found = importlib.import_module(module)
        assert found.__name__ == module and found.__doc__, module
        assert not [n for n in getattr(found, "__all__", ()) if not hasattr(found, n)], module


MISSING = [
    ("torch.relu6", "module 'torch' has no attribute 'relu6' .*nearest: relu"),
    ("torch.nn.Liner", "module 'torch.nn' has no attribute 'Liner' .*nearest: Linear"),
    ("torch.nn.functional.relux", "module 'torch.nn.functional' has no attribute 'relux' .*nearest: relu"),
    ("torch.optim.Adan", "module 'torch.optim' has no attribute 'Adan' .*nearest: Adam"),
    ("torch.cuda.is_avail", "module 'torch.cuda' has no attribute 'is_avail' .*nearest: is_available"),
    ("torch.fx.nothing_like_it", "module 'torch.fx' has no attribute 'nothing_like_it'"),
]


@pytest.mark.parametrize("path,text", MISSING)
def test_a_name_that_is_not_there(torch, path, text):
    module, _, name = path.rpartition(".")
    with pytest.raises(AttributeError, match=text + r".*docs/parity\.md"):
        getattr(importlib.import_module(module), name)
    with pytest.raises(ImportError, match=text + r".*docs/parity\.md"):
        exec(f"from {module} import {name}")
    assert not hasattr(importlib.import_module(module), name)


def test_a_function_keeps_its_name_beside_the_module_of_that_name(torch):
    for name in ("nn.parallel.data_parallel", "nn.utils.weight_norm", "nn.utils.spectral_norm"):
        package, _, function = name.rpartition(".")
        assert importlib.import_module(f"torch.{name}").__name__ == f"torch.{name}"
        assert callable(getattr(importlib.import_module(f"torch.{package}"), function)), name


def test_modules_that_are_not_there(torch):
    with pytest.raises(ModuleNotFoundError, match=r"torch\.nowhere"):
        importlib.import_module("torch.nowhere")
    assert "compat" not in dir(torch) and "Tensor" in dir(torch) and "nn" in dir(torch)


ABSENT = {
    "torch.onnx.export": "tapegrad has no ONNX exporter",
    "torch.distributed.init_process_group": "tapegrad has no distributed processes",
    "torch.distributed.fsdp.FullyShardedDataParallel": "tapegrad has no distributed processes",
    "torch.nn.parallel.DistributedDataParallel": "tapegrad has no distributed processes",
    "torch.fx.passes.split_module.split_module": "torch.fx has here what makes, runs and transforms graphs",
    "torch.export.export": "tapegrad exports no programs",
    "torch.utils.cpp_extension.load": "tapegrad is Python on NumPy: it loads no C",
    "torch.ao.quantization.quantize_dynamic": "quantised tensors are out of tapegrad's scope",
    "torch.library.define": "tapegrad has no dispatcher",
    "torch.jit.load": "nothing is compiled here",
}


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_there_by_name_alone_says_why(torch, path):
    module, _, name = path.rpartition(".")
    scope = {}
    exec(f"from {module} import {name} as it", scope)
    assert not isinstance(torch.ones(1), scope["it"])
    assert scope["it"] | int  # for annotations
    with pytest.raises(NotImplementedError) as e:
        scope["it"](torch.ones(1))
    assert str(e.value).startswith(f"{path}: {ABSENT[path]}") and "\n" not in str(e.value)


def test_attributes_of_what_is_there_by_name_alone(torch):
    strategy = importlib.import_module("torch.distributed.fsdp").ShardingStrategy  # its members are defaults of arguments
    assert strategy.FULL_SHARD is strategy.FULL_SHARD
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.fsdp\.ShardingStrategy\.FULL_SHARD: tapegrad has"):
        strategy.FULL_SHARD()
    assert not hasattr(torch.ops, "torchvision")


def test_errors_that_are_there_by_name_can_be_caught(torch):
    from torch.onnx import OnnxExporterError

    with pytest.raises(ZeroDivisionError), contextlib.suppress(OnnxExporterError):
        1 / 0


# ------------------------------------------------------------------------------------------------------ where they live

HOMES = [
    "torch.Tensor", "torch.Size", "torch.dtype", "torch.device", "torch.nn.modules.linear.Linear",
    "torch.nn.modules.conv.LazyConv2d", "torch.nn.modules.batchnorm.LazyBatchNorm1d",
    "torch.nn.modules.pooling.MaxPool2d", "torch.nn.modules.container.Sequential", "torch.nn.modules.sparse.Embedding",
    "torch.nn.modules.loss.MSELoss", "torch.nn.modules.activation.MultiheadAttention", "torch.nn.parameter.Parameter",
    "torch.nn.modules.module.Module", "torch.optim.adam.Adam", "torch.optim.rmsprop.RMSprop",
    "torch.optim.lr_scheduler.StepLR", "torch.distributions.normal.Normal", "torch.utils.data.dataloader.DataLoader",
    "torch.autograd.grad_mode.no_grad", "torch.autograd.function.Function", "torch.return_types.max",
]  # fmt: skip


@pytest.mark.parametrize("path", HOMES)
def test_classes_say_that_they_are_pytorchs(torch, path):
    module, _, name = path.rpartition(".")
    assert str(getattr(importlib.import_module(module), name)) == f"<class '{path}'>"


def test_each_class_and_function_is_where_it_says(torch):
    for module in ("distributions", "testing", "utils.data"):
        importlib.import_module(f"torch.{module}")
    scalar = sys.modules["tapegrad.tensor.scalar"].Scalar  # it goes by the name of Tensor
    moved = [v for v in module_names._first if v is not scalar and v.__module__.startswith("torch")]
    elsewhere = [v for v in moved if getattr(importlib.import_module(v.__module__), v.__name__, None) is not v]
    assert len(moved) > 1500 and not [v for v in elsewhere if v.__name__ != "<lambda>"]


def test_inspect_finds_the_source(torch):
    assert inspect.getsource(torch.nn.Linear).startswith("class Linear(Module)")
    assert "def relu" in inspect.getsource(torch.nn.functional.relu)


def test_types_of_values(torch):
    x = torch.ones(2, requires_grad=True)
    loss = (x.double() * 2).sum() * 2.0
    assert {str(type(v)) for v in (x, loss, loss.detach(), x.grad_fn or x)} == {"<class 'torch.Tensor'>"}
    assert type(torch.max(x, 0)) is torch.return_types.max
    assert str(type(torch.nn.Linear(1, 1).weight)) == "<class 'torch.nn.parameter.Parameter'>"


def test_distributions_know_their_own_classes_under_any_name(torch):
    class Mine(torch.distributions.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    assert torch.distributions.Normal(0.0, 1.0).expand([2]).batch_shape == (2,)
    with pytest.raises(NotImplementedError, match="Subclass Mine of Normal that defines a custom __init__"):
        Mine().expand([2])


def model(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.TransformerEncoderLayer(4, 2), nn.LSTM(4, 2))


def test_whole_modules_are_saved_and_copied(torch):
    net = model(torch)
    file = io.BytesIO()
    torch.save(net, file)
    assert b"torch.nn.modules.linear" in file.getvalue() and b"tapegrad" not in file.getvalue()
    file.seek(0)
    copies = [torch.load(file, weights_only=False), pickle.loads(pickle.dumps(net)), copy.deepcopy(net)]
    for other in copies:
        assert type(other[0]) is torch.nn.Linear and str(other) == str(net)
        assert all(p.equal(q) for p, q in zip(other.state_dict().values(), net.state_dict().values(), strict=True))


def test_a_module_that_was_saved_under_the_drop_in_loads_without_it(tmp_path):
    with compat.installed("torch", replace=True):
        import torch

        torch.manual_seed(0)
        torch.save(model(torch), tmp_path / "net.pt")
    net = tapegrad.load(tmp_path / "net.pt", weights_only=False)
    assert type(net[0]) is tapegrad.nn.Linear
    tapegrad.save(net, tmp_path / "net.pt")
    with compat.installed("torch", replace=True):
        import torch

        assert type(torch.load(tmp_path / "net.pt", weights_only=False)[0]) is torch.nn.Linear


def test_values_are_pickled_and_copied(torch):
    for value in (
        torch.bool,
        torch.float32,
        torch.strided,
        torch.channels_last,
        torch.FloatTensor,
        torch.sin,
        torch.nn.Linear,
    ):
        assert pickle.loads(pickle.dumps(value)) is value and copy.deepcopy(value) is value
    for value in (torch.device("cpu"), torch.Size([2])):
        assert pickle.loads(pickle.dumps(value)) == value
    optimizer = torch.optim.Adam(model(torch).parameters())
    assert type(pickle.loads(pickle.dumps(optimizer))) is torch.optim.Adam


# ----------------------------------------------------------------------------------------------------- without a GPU

CUDA = [
    ("is_available()", "False"), ("device_count()", "0"), ("is_initialized()", "False"), ("memory_allocated()", "0"),
    ("max_memory_reserved()", "0"), ("synchronize()", "None"), ("empty_cache()", "None"), ("manual_seed_all(1)", "None"),
    ("get_rng_state_all()", "[]"), ("get_arch_list()", "[]"), ("is_bf16_supported()", "False"), ("set_device(-1)", "None"),
    ("current_device()", "Torch not compiled with CUDA enabled"), ("Stream()", "Torch not compiled with CUDA enabled"),
    ("Event(enable_timing=True)", "Torch not compiled with CUDA enabled"),
    ("get_device_name(0)", "Torch not compiled with CUDA enabled"), ("nccl.is_available([])", "False"),
    ("FloatTensor(2)", "type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled."),
]  # fmt: skip


@pytest.mark.parametrize("call,gives", CUDA)
def test_cuda_without_a_gpu(torch, call, gives):
    try:
        got = str(eval(f"torch.cuda.{call}", {"torch": torch}))
    except Exception as e:
        got = str(e)
    assert got.endswith(gives)


def test_switches_of_libraries_are_kept(torch):
    import torch.backends.cudnn as cudnn

    assert not cudnn.is_available() and not cudnn.benchmark and cudnn.enabled
    cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cudnn.benchmark and torch.backends.cuda.matmul.allow_tf32 and not torch.backends.mkl.benchmark
    with cudnn.flags(enabled=False), torch.backends.cuda.sdp_kernel(enable_flash=False):
        assert not torch.backends.mps.is_available()
    assert torch.version.cuda is None and "NumPy" in torch.__config__.show()


def test_version_compares_as_versions_do(torch):
    v = torch.__version__
    assert v >= "1.8" and v > "2.4" and v >= (2, 0) and not v < "2.9.1" and v < "10.0" and v == str(v)


# ------------------------------------------------------------------------------------------------------- pass-throughs


def test_compile_compiles(torch):
    pytest.importorskip("jax")
    net = torch.nn.Linear(1, 1)
    fast = torch.compile(net)
    x = torch.ones(1, 1)
    for _ in range(3):
        assert torch.equal(fast(x), net(x))
    assert isinstance(fast, torch.nn.Module) and fast._orig_mod is net
    assert list(fast.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert torch.compile(net, backend="eager") is net and torch.compile(net, disable=True) is net

    @torch.compile(mode="max-autotune")
    def penalty(x: torch.Tensor) -> torch.Tensor:
        return (x**3).sum()

    for _ in range(3):  # twice differentiable, which PyTorch's is not
        x = torch.tensor([2.0], requires_grad=True)
        (g,) = torch.autograd.grad(penalty(x), x, create_graph=True)
        g.sum().backward()
        assert (g.item(), x.grad.item()) == (12.0, 12.0)


def test_scripts_and_marks_leave_functions_as_they_are(torch):
    net = torch.nn.Linear(1, 1)
    assert torch.jit.script(net) is net and torch.jit.trace(net, torch.ones(1, 1)) is net

    @torch.jit.script
    @torch.compiler.disable
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @torch.jit.ignore(drop=True)
    def triple(x):
        return 3 * x

    assert (double(torch.ones(1)) + triple(torch.ones(1))).item() == 5.0
    assert not torch.compiler.is_compiling() and not torch.jit.is_scripting() and not torch.onnx.is_in_onnx_export()
    assert torch.jit.fork(double, torch.ones(1)).wait().item() == 2.0


def test_one_process(torch):
    import torch.distributed as dist

    assert not dist.is_available() and not dist.is_initialized() and dist.ReduceOp.SUM.name == "SUM"
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    net = torch.nn.Linear(2, 2)
    x = torch.ones(3, 2)
    assert torch.nn.parallel.data_parallel(net, x).equal(torch.nn.DataParallel(net)(x))


def test_a_profiled_program_has_figures_by_operation(torch, tmp_path):
    from torch.profiler import ProfilerActivity, profile, record_function

    x = torch.ones(2, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
        with record_function("part"):
            loss = (x * 2.0).sum() + (x * 3.0).sum()
        loss.backward()
    found = {e.key: (e.count, e.cpu_memory_usage) for e in prof.key_averages(group_by_input_shape=True)}
    assert found == {
        "aten::mul": (2, 16), "aten::sum": (2, 8), "aten::add": (1, 4),
        "MulBackward0": (2, 0), "SumBackward0": (2, 0), "AddBackward0": (1, 0),
    }  # fmt: skip
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    assert text.splitlines()[1].split()[0] == "Name" and len(text.splitlines()) == 7
    assert prof.key_averages().table(sort_by="count").splitlines()[3].split()[-1] == "2"
    assert prof.key_averages().total_average().count == 10
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"traceEvents"' in (tmp_path / "trace.json").read_text()
    with pytest.raises(NotImplementedError, match="by operation and line alone"):
        prof.export_stacks("stacks.txt")


def test_a_schedule_tells_which_steps_are_profiled(torch, tmp_path):
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    assert [plan(i).name for i in range(5)] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    counts = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda p: counts.append(p.events()[0].count)
    ) as p:
        for _ in range(9):
            torch.ones(2).sin()
            p.step()
    assert counts == [2, 2]  # of each cycle of four; the third has not come to what it records
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "worker")) as p:
        torch.ones(2).sin()
    assert [f.name.split(".")[0] for f in tmp_path.glob("*.pt.trace.json")] == ["worker"]


def test_variables(torch):
    from torch.autograd import Variable

    x = torch.ones(2, requires_grad=True)
    v = Variable(x * 2, requires_grad=True)
    assert v.is_leaf and isinstance(x, Variable) and issubclass(torch.Tensor, Variable) and type(v) is torch.Tensor
    y = torch.zeros(2)
    Variable(y).add_(1)
    assert y.tolist() == [1.0, 1.0]
    with pytest.warns(UserWarning, match="volatile was removed"):
        Variable(y, volatile=True)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])


def test_gradients_of_convolutions(torch):
    x = torch.randn(2, 3, 5, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    y = torch.nn.functional.conv2d(x, w, stride=2, padding=1)
    g = torch.randn_like(y)
    by_x, by_w = torch.autograd.grad(y, (x, w), g)
    assert torch.nn.grad.conv2d_input(x.shape, w, g, stride=2, padding=1).allclose(by_x)
    assert torch.nn.grad.conv2d_weight(x, w.shape, g, stride=2, padding=1).allclose(by_w)


def test_errors_name_the_programs_line_not_the_drop_ins(torch):
    w = torch.ones(1, 1, 3, requires_grad=True)
    g = torch.nn.grad.conv1d_input((1, 1, 5), w, torch.ones(1, 1, 3)).sum()
    g.backward()
    with pytest.raises(RuntimeError, match=r"test_dropins\.py"):
        g.backward()


def test_trees(torch):
    from torch.utils import _pytree as tree

    nested = {"a": [1, (2, None)], "b": torch.return_types.max(3, 4)}
    leaves, spec = tree.tree_flatten({"a": [1, (2, None)], "b": 3})
    assert leaves == [1, 2, None, 3] and tree.tree_unflatten(leaves, spec) == {"a": [1, (2, None)], "b": 3}
    assert tree.tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)]) == [11, (22,)]
    assert tree.tree_map_only(int, str, [1, 2.0, {"a": 3}]) == ["1", 2.0, {"a": "3"}]
    assert tree.tree_leaves(nested)[:2] == [1, 2] and spec.num_leaves == 4
    with pytest.raises(ValueError, match="`leaves` has length 1"):
        tree.tree_unflatten([1], spec)


def test_timer(torch):
    from torch.utils.benchmark import Timer

    m = Timer("x + x", globals={"x": torch.ones(2)}, label="add").timeit(10)
    assert 0 < m.median == m.mean < 1 and m.number_per_run == 10 and repr(m).splitlines()[1] == "add"
    assert len(Timer("pass").blocked_autorange(min_run_time=0.001).times) > 1


def test_hub_loads_what_is_on_this_machine(torch, tmp_path):
    (tmp_path / "hubconf.py").write_text("def answer(n, plus=0):\n    'The number.'\n    return n + plus\n")
    assert torch.hub.load(str(tmp_path), "answer", 40, plus=2, source="local") == 42
    assert torch.hub.list(str(tmp_path), source="local") == ["answer"]
    assert torch.hub.help(str(tmp_path), "answer", source="local") == "The number."
    with pytest.raises(RuntimeError, match="Cannot find callable question in hubconf"):
        torch.hub.load(str(tmp_path), "question", source="local")
    torch.hub.set_dir(tmp_path)
    with pytest.raises(RuntimeError, match="tapegrad downloads nothing: clone someone/net"):
        torch.hub.load("someone/net", "resnet18")
    with pytest.raises(RuntimeError, match=r"tapegrad downloads nothing: fetch https://a.b/w-1.pth to .*w-1.pth yourself"):
        torch.hub.load_state_dict_from_url("https://a.b/w-1.pth")
    (tmp_path / "checkpoints").mkdir()
    torch.save({"w": torch.ones(2)}, tmp_path / "checkpoints" / "w-1.pth")
    assert torch.utils.model_zoo.load_url("https://a.b/w-1.pth?x=1")["w"].sum() == 2


def test_sizes_of_layers(torch):
    from torch.nn.modules.utils import _pair, _triple, consume_prefix_in_state_dict_if_present

    assert _pair(3) == (3, 3) and _triple((1, 2, 3)) == (1, 2, 3)
    net = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    state = net.state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    torch.nn.Linear(2, 1).load_state_dict(state)


def test_flat_parameters(torch):
    from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    tensors = [torch.ones(2, 3), torch.zeros(4)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.shape == (10,)
    assert [t.tolist() for t in _unflatten_dense_tensors(flat, tensors)] == [t.tolist() for t in tensors]


def test_summary_writer(torch, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss/train", torch.tensor(0.5), 7, walltime=1.0)
        writer.add_text("note", "done", 300)
        writer.add_scalars("both", {"a": 1, "b": 2.0}, 3)
    (file,) = tmp_path.glob("events.out.tfevents.*")
    data = file.read_bytes()
    # An event as TensorFlow writes it: length, its checksum, wall time, step, summary, checksum.
    event = struct.pack("<d", 1.0).join((b"\t", b"\x10\x07*\x13\n\x11\n\nloss/train\x15\x00\x00\x00?"))
    assert struct.pack("<Q", len(event)) in data and event in data and b"note/text_summary" in data
    assert sorted(p.name for p in tmp_path.glob("both_*")) == ["both_a", "both_b"]
    with pytest.raises(ImportError, match=r"add_image needs the package tensorboardX"):
        writer.add_image("picture", torch.zeros(3, 2, 2))
    with pytest.raises(ImportError, match=r"add_graph needs the package tensorboardX.*tapegrad.viz.graph draws"):
        writer.add_graph(torch.nn.Tanh(), torch.zeros(3))
    there = type(sys)("tensorboardX")
    there.SummaryWriter = dict
    monkeypatch.setitem(sys.modules, "tensorboardX", there)
    del sys.modules["torch.utils.tensorboard"]
    from torch.utils.tensorboard import SummaryWriter

    assert issubclass(SummaryWriter, dict)


def test_summary_writer_of_tensorboardx_has_pytorchs_arguments_and_graphs(torch, tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.graph_pb2 import GraphDef
    from torch.utils.tensorboard import SummaryWriter

    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Tanh())
    net[2] = net[1]
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_graph(net, torch.ones(4, 3))
        writer.add_scalar("loss", torch.tensor(0.5), 7, new_style=True, double_precision=True)
        writer.add_histogram("weights", net[0].weight, 7)
        writer.add_image("picture", torch.zeros(3, 2, 2), 7)
    data, events = next(tmp_path.glob("events.out.tfevents.*")).read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        events.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    values = {v.tag: v for e in events for v in e.summary.value}
    assert values.keys() == {"loss", "weights", "picture"} and values["loss"].simple_value == 0.5
    (graph,) = [GraphDef.FromString(e.graph_def) for e in events if e.graph_def]
    nodes = {node.name.rpartition("_")[0] or node.name: node for node in graph.node}
    reads = {name: [i.rpartition("/")[0] for i in node.input] for name, node in nodes.items()}
    first, second = "Sequential/Tanh[1]", "Sequential/Tanh[1]_2"
    assert reads[f"{second}/TanhBackward0"] == [first] and reads[f"{first}/TanhBackward0"] == ["Sequential/Linear[0]"]
    assert reads["Sequential/Linear[0]/AddmmBackward0"] == ["leaves", *["Sequential/Linear[0]"] * 2]
    assert reads["outputs/output"] == [second] and {"leaves/input.1", "Sequential/Linear[0]/0.weight"} <= nodes.keys()
    (shape,) = nodes["leaves/input.1"].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shape.dim] == [4, 3] and net.training and not net[0].weight.grad


def test_star_brings_no_modules(torch):
    scope = {"random": 1}
    exec("from torch import *", scope)
    assert scope["random"] == 1 and scope["ones"] is torch.ones and scope["Tensor"] is torch.Tensor
    assert not [n for n, v in scope.items() if isinstance(v, type(sys)) and n != "torch"] and "annotations" not in scope


def test_switches_of_cudnn_for_a_block(torch):
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert (cudnn.enabled, cudnn.benchmark, torch.backends.mkldnn.enabled) == (False, True, True)
    assert (cudnn.enabled, cudnn.benchmark) == (True, False)


def test_capsules_and_compilers(torch):
    from torch.utils import cpp_extension, dlpack

    x = torch.ones(2)
    shared = dlpack.from_dlpack(dlpack.to_dlpack(x))
    x[0] = 5
    assert shared.tolist() == dlpack.from_dlpack(x.numpy()).tolist() == [5, 1]
    assert cpp_extension.CUDA_HOME is None


def run(tmp_path, program, *args, stdin=None):
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "tapegrad", "--as", "torch", *(args or ["program.py"])]
    path = str(HERE.parent)
    return subprocess.run(
        command, capture_output=True, text=True, input=stdin, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}
    )


def test_an_error_shows_the_programs_lines_first(tmp_path):
    done = run(tmp_path, "import torch\ndef f():\n    torch.ones(2) + torch.ones(3)\nf()\n")
    lines = done.stderr.splitlines()
    assert (
        done.returncode == 1 and lines[0].startswith("Traceback") and lines[1] == '  File "program.py", line 4, in <module>'
    )
    assert lines[-1].startswith("RuntimeError: The size of tensor a (2)")
    missing = run(tmp_path, "", "-m", "no_such_module")
    assert missing.returncode == 1 and "No module named no_such_module" in missing.stderr


def test_main_stays_until_the_end(tmp_path):
    program = (
        "import atexit, pickle, sys\nclass A: pass\natexit.register(lambda: print(type(pickle.loads(pickle.dumps(A()))), "
        "sys.argv, __file__))\nsys.exit(3)\n"
    )
    done = run(tmp_path, program, "program.py", "--as", "-m")
    assert done.stdout == "<class '__main__.A'> ['program.py', '--as', '-m'] program.py\n" and done.returncode == 3


def test_the_version(tmp_path):
    done = run(tmp_path, "", "--version")
    assert done.stdout == f"tapegrad {tapegrad.__version__}\n" and done.returncode == 0


def test_a_programs_annotations_are_as_it_has_them(tmp_path):
    assert run(tmp_path, "def f(x: int): pass\nprint(f.__annotations__)\n").stdout == "{'x': <class 'int'>}\n"


def test_a_program_from_standard_input(tmp_path):
    done = run(tmp_path, "", "-", "a", stdin="import torch, sys\nprint(torch.ones(1), sys.argv, __name__)\n")
    assert done.stdout == "tensor([1.]) ['-', 'a'] __main__\n"


def test_tests_of_pytorchs_kind(torch):
    from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize

    @instantiate_parametrized_tests
    class Tests(TestCase):
        @parametrize("n", [1, 2])
        @parametrize("how", ["a", "b"])
        def test_it(self, n, how):
            self.assertTrue(n < 3)

    assert [n for n in dir(Tests) if n.startswith("test_")] == [f"test_it_how_{h}_n_{n}" for h in "ab" for n in (1, 2)]


PROGRAM = """
import torch
import torch.multiprocessing as mp

def work(i, queue):
    queue.put(torch.ones(2).mul(i).tolist())

def fails(i):
    raise ValueError("no")

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(queue,), nprocs=1)
    print(queue.get(), torch.cuda.is_available(), type(torch.ones(1)))
    try:
        mp.spawn(fails)
    except mp.ProcessRaisedException as e:
        print(e.error_index, str(e).splitlines()[-1])
"""


def test_a_program_and_the_processes_it_starts(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "tapegrad", "--as", "torch", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[0.0, 0.0] False <class 'torch.Tensor'>", "0 ValueError: no"]


def test_operators_of_ones_own(torch):
    @torch.library.custom_op("mine::cube", mutates_args=())
    def cube(x, by: float = 1.0):
        return torch.from_numpy(x.detach().numpy() ** 3 * by)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="backward through mine::cube.default but no autograd formula was registered"):
        cube(x).sum().backward()

    def setup_context(ctx, inputs, output):
        x, ctx.by = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2 * ctx.by, None

    torch.library.register_autograd("mine::cube", backward, setup_context=setup_context)
    cube.register_fake(lambda x, by=1.0: torch.empty_like(x))
    torch.ops.mine.cube(x, 2.0).sum().backward()
    assert x.grad.tolist() == [6, 24] and torch.ops.mine.cube.default is cube
    with pytest.raises(AttributeError, match=r"no operator mine\.square"):
        torch.ops.mine.square
    with pytest.raises(RuntimeError, match="there is no operator 'mine::square'"):
        torch.library.register_kernel("mine::square", "cpu", lambda x: x)
    with pytest.raises(NotImplementedError, match="operators that write into their arguments"):
        torch.library.custom_op("mine::fill", lambda x: None, mutates_args=("x",))


def test_the_name_and_version_of_the_package(torch):
    from importlib import metadata

    assert metadata.version("torch") == torch.__version__ and metadata.metadata("torch")["Name"] == "torch"
    assert "torch" in {d.name for d in metadata.distributions()}


def test_eight_bit_floats_are_there_by_name(torch):
    assert isinstance(torch.float8_e4m3fn, torch.dtype) and str(torch.float8_e5m2) == "torch.float8_e5m2"
    limits = [
        (torch.finfo(d).max, torch.finfo(d).eps, torch.finfo(d).tiny) for d in (torch.float8_e4m3fn, torch.float8_e5m2)
    ]
    assert limits == [(448.0, 0.125, 0.015625), (57344.0, 0.25, 6.103515625e-05)]
    with pytest.raises(TypeError, match="float8_e4m3fn is here by name alone"):
        torch.ones(2).to(torch.float8_e4m3fn)


def test_what_libraries_ask_of_modules_and_names(torch):
    """Annotations of classes derived from Module, isinstance of compiled modules, subscripts of names that are not there."""
    import typing

    class Net(torch.nn.Module):
        size: int

    assert typing.get_type_hints(Net)["size"] is int
    assert not isinstance(torch.nn.Linear(1, 1), torch.jit.ScriptModule) and issubclass(torch.ScriptModule, torch.nn.Module)
    future = importlib.import_module("torch.futures").Future
    assert typing.get_type_hints(lambda x: x) == {} and future[torch.Tensor] is future and future | None
    assert torch._C._nn._parse_to("cpu", torch.float64) == (torch.device("cpu"), torch.float64, False, None)
    assert torch.torch is torch and torch.chalf is torch.complex32
    with torch.device("cpu"), torch.cuda.stream(None):
        assert torch.ones(1).device.type == "cpu"
    with pytest.raises(RuntimeError, match="no meta device is available") as caught, torch.device("meta"):
        pass
    assert "CUDA" not in str(caught.value)


def test_what_hooks_and_functions_give_says_it_is_of_torch(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(1, requires_grad=True)
    assert repr(x.register_hook(print)).startswith("<torch.utils.hooks.RemovableHandle object at 0x")
    assert repr(Same.apply(x).grad_fn).startswith("<torch.autograd.function.SameBackward object at 0x")
    file = io.BytesIO()
    torch.save(HERE, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"allow them by torch.serialization.add_safe_globals\("):
        torch.load(file)


def test_a_mode_of_the_dispatcher_says_what_to_write_instead(torch):
    mode = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    with pytest.raises(NotImplementedError, match="no dispatcher: write a torch.overrides.TorchFunctionMode"):
        type("Counting", (mode,), {})()


def test_transforms_take_objects_of_registered_classes_apart(torch):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree = importlib.import_module("torch.utils._pytree")
    pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda parts, _: Pair(*parts))
    p = Pair(torch.ones(2), torch.tensor([3.0, 4.0]))
    g = torch.func.grad(lambda p: (p.a * p.b).sum())(p)
    assert g.a.tolist() == [3, 4] and g.b.tolist() == [1, 1]
    j = torch.func.jacrev(lambda p: Pair(p.a**2, p.a * p.b))(p)
    assert j.a.a.tolist() == [[2, 0], [0, 2]] and j.b.a.tolist() == [[3, 0], [0, 4]]
    mapped = torch.vmap(lambda p, s: Pair(p.a.sum() + s, p.b), (Pair(0, None), 0), Pair(0, 1))(p, p.b)
    assert mapped.a.tolist() == [4, 5] and mapped.b.tolist() == [[3, 3], [4, 4]]


def test_there_are_no_tensors_without_values(torch):
    x, fakes = torch.ones(1), importlib.import_module("torch._subclasses")
    assert not isinstance(x, fakes.FakeTensor) and importlib.import_module("torch._guards").active_fake_mode() is None
    with pytest.raises(NotImplementedError, match="tapegrad's tensors have values"):
        fakes.FakeTensorMode()
    assert not isinstance(x, importlib.import_module("torch._ops").HigherOrderOperator)
    assert isinstance(x.untyped_storage(), torch.StorageBase)


def test_private_names_that_programs_import(torch):
    from_outputs = importlib.import_module("torch.autograd.functional")
    vmap = importlib.import_module("torch._vmap_internals")._vmap
    x = torch.ones(2, requires_grad=True)
    several, ys = from_outputs._as_tuple((x * 2, x.sum().double()), "outputs", "jacobian")
    first, second = from_outputs._construct_standard_basis_for(ys, (2, 1))
    assert several and first.tolist() == [[1, 0], [0, 1], [0, 0]] and second.tolist() == [[0], [0], [1]]
    assert second.dtype is torch.float64
    jacobian = vmap(lambda g: torch.autograd.grad(ys[0], x, g, retain_graph=True)[0])(torch.eye(2))
    assert jacobian.tolist() == [[2, 0], [0, 2]]
    (row,) = from_outputs._grad_postprocess((ys,), False)
    assert not row[0].requires_grad and from_outputs._grad_postprocess(ys, True)[0].requires_grad
    assert from_outputs._tuple_postprocess(((1,), (2,)), (True, False)) == (1, 2)
    assert from_outputs._tuple_postprocess((1,), False) == 1


def test_nodes_of_trees(torch):
    pytree = importlib.import_module("torch.utils._pytree")
    leaves, keys = pytree.SUPPORTED_NODES[dict].flatten_fn({"a": 1, "b": 2})
    assert leaves == [1, 2] and pytree._dict_unflatten(leaves, keys) == {"a": 1, "b": 2}
    assert pytree._dict_flatten_with_keys({"a": 1})[0] == [(pytree.MappingKey("a"), 1)]
    assert pytree._get_node_type((1,)) is tuple
    assert pytree.tree_map(lambda n: n + 1, torch.Size([2, 3])) == (3, 4)


@pytest.mark.filterwarnings("ignore:We've integrated functorch into PyTorch")
def test_torch_brings_functorch(torch):
    from functorch import combine_state_for_ensemble, grad, make_functional, make_functional_with_buffers, vmap

    nn = torch.nn
    with pytest.warns(FutureWarning, match=r"Please use `torch.vmap` instead"):
        assert vmap(torch.sin)(torch.zeros(2)).tolist() == [0.0, 0.0]
    with pytest.warns(FutureWarning, match=r"`functorch.grad` is deprecated .* Please use `torch.func.grad` instead"):
        assert grad(torch.sin)(torch.zeros(())).item() == 1.0
    x = torch.ones(2, 3)
    model = nn.Linear(3, 2)
    f, params = make_functional(model)
    assert torch.equal(f(params, x), model(x)) and params[0] is model.weight and f.stateless_model is not model
    assert not any(p.requires_grad for p in make_functional(model, disable_autograd_tracking=True)[1])
    models = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval() for _ in range(2)]
    f, params, buffers = make_functional_with_buffers(models[0])
    assert torch.equal(f(params, buffers, x), models[0](x)) and len(buffers) == 3
    with pytest.raises(RuntimeError, match="has buffers"):
        make_functional(models[0])
    f, params, buffers = combine_state_for_ensemble(models)
    both = vmap(f, in_dims=(0, 0, None))(params, buffers, x)
    assert torch.allclose(both, torch.stack([m(x) for m in models]))
    import functorch
    from functorch.experimental import chunk_vmap, replace_all_batch_norm_modules_

    sizes = []
    tripled = chunk_vmap(lambda x: (sizes.append(1), 3 * x)[1], in_dims=1, out_dims=1, chunks=2)(x)
    assert torch.equal(tripled, 3 * x) and len(sizes) == 2
    assert replace_all_batch_norm_modules_(models[0])[1].running_mean is None
    with pytest.raises(NotImplementedError, match="functorch.make_fx: tapegrad has no graphs of programs"):
        functorch.make_fx(f)
    with pytest.raises(ValueError, match="not for 'functorch'"):
        compat.install("functorch")


def test_transforms_take_and_give_tensors_alone(torch):
    func = torch.func
    x = torch.ones(2)
    for aux in (1, "abc", [x, 1.0]):
        for transform in (func.grad, func.grad_and_value):
            with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
                transform(lambda x, aux=aux: (x.sum(), aux), has_aux=True)(x)
        for transform in (func.jacrev, func.jacfwd):
            with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
                transform(lambda x, aux=aux: (x, aux), has_aux=True)(x)
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            func.vjp(lambda x, aux=aux: (x, aux), x, has_aux=True)
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            func.jvp(lambda x, aux=aux: (x, aux), (x,), (x,), has_aux=True)
    assert func.grad(lambda x: (x.sum(), {"y": [2 * x]}), has_aux=True)(x)[1]["y"][0].tolist() == [2.0, 2.0]
    for primals, tangents in (((1.0,), (x,)), ((x,), (1.0,)), (((x, x), 1), ((x, x), x))):
        with pytest.raises(RuntimeError, match="to only contain Tensors, got <class '"):
            func.jvp(torch.sin, primals, tangents)


def test_errors_of_scripted_modules_are_of_both_classes(torch):
    class Checked(torch.nn.Module):
        def forward(self, x, file=None):
            if file:
                pathlib.Path(file).read_text()
            torch._assert(x.ndim == 1, "one dimension")
            return x[3]

    net = torch.nn.Sequential(torch.jit.script(Checked()))
    assert net(torch.arange(4.0)).item() == 3.0
    for module in (net[0], copy.deepcopy(net[0]), net, torch.jit.trace(Checked(), torch.ones(4))):
        with pytest.raises(torch.jit.Error, match="one dimension") as caught:
            module(torch.ones(4, 4))
        assert isinstance(caught.value, AssertionError) and caught.value.__notes__[0].endswith("with float32 (4, 4).")
        assert caught.traceback[-1].name == "_assert"
        for args, kind in (((torch.ones(2),), IndexError), ((), TypeError)):
            with pytest.raises(kind) as caught:
                module(*args)
            assert isinstance(caught.value, torch.jit.Error) or (module is net and not args)  # which is not scripted
    with pytest.raises(FileNotFoundError) as caught:  # has fields that a class of both would not
        net[0](torch.ones(4), "/absent/file")
    assert caught.value.filename == "/absent/file"
    with pytest.raises(AssertionError) as caught:
        Checked()(torch.ones(4, 4))
    assert not isinstance(caught.value, torch.jit.Error)


def test_compilers_take_functions_by_name(torch):
    def double(x):
        return 2 * x

    assert torch.jit.trace(func=double, example_inputs=(torch.ones(2),)) is double
    assert torch.jit.script(obj=double) is double and torch.jit.freeze(mod=double) is double
    assert torch.compile(model=double, backend=print) is double and torch.compiler.disable(fn=double) is double
    assert torch.jit.script(double) is double and torch.compile(backend="eager")(double) is double


def test_objects_are_asked_by_all_functions(torch):
    answers = {}

    class Diagonal:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return answers[func](*args, **kwargs or {}) if func in answers else NotImplemented

    answers[torch.mean] = answers[torch.cat] = answers[torch.Tensor.add] = lambda *args: args
    x, d = torch.ones(2), Diagonal()
    assert torch.mean(d) == (d,) and torch.cat([x, d]) == ([x, d],) and x + d == (x, d)
    with pytest.raises(TypeError, match="no implementation found for 'torch.add' on types that implement"):
        torch.add(x, d)


def test_functions_that_can_be_overridden(torch):
    overrides = importlib.import_module("torch.overrides")
    found = overrides.get_overridable_functions()
    assert (
        torch.add in found[torch]
        and torch.Tensor.add in found[torch.Tensor]
        and torch.tensor not in found[torch.nn.functional]
    )
    assert {torch.add, torch.Tensor.shape.__get__} <= set(overrides.get_testing_overrides())
    named = [torch.add, torch.Tensor.add, torch.Tensor.shape.__get__, torch.nn.functional.mish]
    assert [overrides.resolve_name(f) for f in named] == [
        "torch.add", "torch.Tensor.add", "torch.Tensor.shape.__get__", "torch.nn.functional.mish",
    ]  # fmt: skip
    assert [overrides.is_tensor_method_or_property(f) for f in named] == [False, True, True, False]
    assert torch.nn.Parameter.__torch_function__ is torch._C._disabled_torch_function_impl

    @overrides.wrap_torch_function(lambda x: (x,))
    def twice(x):
        return 2 * x

    class Seven:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, 7

    assert twice(3) == 6 and twice(Seven()) == (twice, 7)


def test_names_that_imports_and_annotations_want(torch):
    rpc, remote = importlib.import_module("torch.distributed.rpc"), importlib.import_module("torch.distributed.autograd")
    assert rpc.is_available() is remote.is_available() is False
    assert issubclass(torch.fx.GraphModule, torch.nn.Module) and not isinstance(torch.nn.Linear(1, 1), torch.fx.Graph)
    assert torch._C._LinAlgError is torch.linalg.LinAlgError and isinstance(torch.jit.ScriptFunction, type)
    assert importlib.import_module("torch.testing._comparison").assert_close is torch.testing.assert_close
    assert torch.nn.functional.grad.conv1d_input is torch.nn.grad.conv1d_input
    reduction = importlib.import_module("torch.nn._reduction")
    assert [reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    assert reduction.legacy_get_string(False, None, False) == "sum" and reduction.legacy_get_enum(None, False, False) == 0


def test_operators_of_aten_are_the_functions(torch):
    x, aten = torch.tensor([3.0, 4.0]), torch.ops.aten
    assert aten.add.Tensor(x, x).tolist() == [6, 8] and aten.linalg_vector_norm.default(x) == 5
    assert aten.add.Tensor is aten.add and aten.add.out is torch.ops.aten.add
    with pytest.raises(AttributeError, match=r"torch\.ops\.aten\.no_such: tapegrad has no function"):
        aten.no_such


def test_operators_of_aten_that_are_no_functions(torch):
    x, aten = torch.arange(6).view(2, 3), torch.ops.aten
    assert aten.slice.Tensor(x, 1, 1, 3).tolist() == [[1, 2], [4, 5]] and aten.slice(x, -1, None, None, 2)[0].tolist() == [
        0,
        2,
    ]
    assert aten.index.Tensor(x, [None, torch.tensor([2, 0])]).tolist() == [[2, 0], [5, 3]]
    copy, view = aten._to_copy.default(x, dtype=torch.float64), aten.alias.default(x)
    assert copy.dtype is torch.float64 and aten._to_copy(x).data_ptr() != x.data_ptr() == view.data_ptr() and view is not x


def test_the_state_of_a_graph_module(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            self.register_buffer("shift", torch.ones(1))

        def forward(self, x):
            return self.layer(x) + self.shift

    traced = torch.fx.symbolic_trace(Model())
    assert sorted(traced.state_dict()) == ["layer.bias", "layer.weight", "shift"]
    assert traced.load_state_dict({k: torch.zeros_like(v) for k, v in traced.state_dict().items()}).missing_keys == []
    assert traced(torch.ones(2)).tolist() == [0.0]


def test_private_names_that_libraries_import(torch):
    pytree = importlib.import_module("torch.utils._pytree")
    spec = pytree.tree_structure([1, (2, 3)])
    assert pytree._broadcast_to_and_flatten([0, None], spec) == [0, None, None]
    assert pytree._broadcast_to_and_flatten([0, [1, 2]], spec) is None
    weak, key = importlib.import_module("torch.utils.weak").WeakIdKeyDictionary(), torch.ones(1)
    weak[key] = "one"
    assert key in weak and torch.ones(1) not in weak and list(weak.items()) == [(key, "one")]
    del key
    assert len(weak) == 0
    printing = importlib.import_module("torch._tensor_str")
    assert printing._tensor_str(torch.tensor([[1.0], [2.5]]), 0) == "[[1.0000],\n [2.5000]]"
    assert printing.PRINT_OPTS.precision == 4
    worker = importlib.import_module("torch.utils.data._utils.worker")
    assert worker._generate_state(123456789012345, 3) == [3999280408, 2418223825, 1775828080, 3641838301]
    is_batched = importlib.import_module("torch._C._functorch").is_batchedtensor
    asked = []
    active, x = torch._C._are_functorch_transforms_active, torch.ones(2)
    torch.vmap(lambda x: (asked.extend([is_batched(x), active()]), x)[1])(x)
    assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, x.clone())
    assert asked == [True, True] and not active() and not is_batched(torch.ones(2))
    enabled = torch._C._is_torch_function_mode_enabled
    with torch.overrides.TorchFunctionMode():
        assert enabled()
    assert not enabled()
    rows = torch.tensor([0, 0, 2])
    assert torch._convert_indices_from_coo_to_csr(rows, 4).tolist() == [0, 2, 2, 3, 3]
    rpc = importlib.import_module("torch.distributed.rpc.api")
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        rpc._require_initialized(lambda: None)()
    assert issubclass(torch.jit.TracerWarning, Warning) and isinstance(torch.qint8, torch.dtype)
    layer, weight = torch.nn.Linear(1, 1), torch.zeros(1, 1)
    before = importlib.import_module("torch.nn.utils._named_member_accessor").swap_tensor(layer, "weight", weight)
    assert layer.weight is weight and before.requires_grad


def test_a_decorator_that_is_a_context(torch):
    contexts = importlib.import_module("torch.utils._contextlib")

    class Noted(contexts._DecoratorContextManager):
        entered = 0

        def __enter__(self):
            Noted.entered += 1

        def __exit__(self, *error):
            pass

    @Noted()
    def one():
        return 1

    assert (one(), one(), Noted.entered) == (1, 1, 2)


def test_equality_in_tests_of_pytorchs_kind(torch):
    from torch.testing._internal.common_utils import TestCase

    case = TestCase()
    case.assertEqual(["H", "C"], ["H", "C"])
    case.assertEqual(torch.tensor([1.0, 2.0]), [1, 2])
    case.assertEqual([1, 2], torch.tensor([1, 2]))
    case.assertEqual([0.1 + 0.2, {"a": torch.ones(1)}], [0.3, {"a": torch.ones(1)}])
    for other in (["H", "O"], ["H"]):
        with pytest.raises(AssertionError):
            case.assertEqual(["H", "C"], other)


def test_a_function_that_a_class_keeps_is_no_method(torch):
    class Layer(torch.nn.Module):
        act, conv, own = torch.tanh, torch.nn.functional.conv1d, lambda self, x: x + self.one
        one = 1

        def forward(self, x):
            return self.own(self.conv(self.act(x), weight=torch.ones(1, 1, 1)))

    class Sub(torch.Tensor):
        plus = torch.Tensor.add

    assert Layer()(torch.zeros(1, 1, 2)).tolist() == [[[1.0, 1.0]]]
    assert torch.ones(1).as_subclass(Sub).plus(2).tolist() == [3.0]


def test_lists_of_tensors_by_kind(torch):
    group = importlib.import_module("torch.utils._foreach_utils")._group_tensors_by_device_and_dtype
    a, b, c = torch.ones(1), torch.ones(1).double(), torch.zeros(1)
    found = group([[a, b, c], []], True)
    assert list(found.values()) == [([[a, c], []], [0, 2]), ([[b], []], [1])]


def test_a_module_with_other_tensors_for_a_while(torch):
    layer = torch.nn.Linear(1, 1)
    own, given = layer.weight, {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}
    with torch.nn.utils.stateless._reparametrize_module(layer, given):
        assert layer(torch.ones(1)).tolist() == [3.0]
    assert layer.weight is own


def test_sobol_points(torch):
    """The values are PyTorch's; compat/ compares more of them."""
    pytest.importorskip("scipy")
    engine = torch.quasirandom.SobolEngine(2)
    assert engine.draw(3).tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25]] and engine.fast_forward(1).num_generated == 4
    assert engine.draw_base2(2).tolist() == [[0.375, 0.375], [0.875, 0.875], [0.625, 0.125], [0.125, 0.625]]
    with pytest.raises(ValueError, match="The balance properties of Sobol' points require n to be a power of 2"):
        engine.draw_base2(2)
    scrambled = torch.quasirandom.SobolEngine(3, scramble=True, seed=5)
    assert repr(scrambled) == "SobolEngine(dimension=3, scramble=True, seed=5)"
    assert scrambled.draw(2)[1].tolist() == pytest.approx([0.9114734, 0.868665, 0.5390787], abs=1e-7)


def test_private_names_of_autograd(torch):
    from torch.utils.checkpoint import checkpoint

    with pytest.raises(RuntimeError, match="^Trying to create a SavedTensor object from Python is forbidden"):
        torch.autograd.SavedTensor()
    x = torch.tensor([2.0, 1.0, 2.0], requires_grad=True)
    torch.autograd._functions.Resize.apply(x, (3, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="^requested resize to \\(2, 2\\)"):
        torch.autograd._functions.Resize.apply(x, (2, 2))
    x = x.detach()
    assert [t.tolist() for t in torch._unique2(x, return_counts=True)] == [[1.0, 2.0], [1, 0, 1], [1, 2]]
    assert [t.tolist() for t in torch._unique2(x)] == [[1.0, 2.0], [], []]
    assert [t.tolist() for t in torch._unique(x)] == [[1.0, 2.0], []]
    assert [t.tolist() for t in torch._VF.unique_dim(x, 0)] == [[1.0, 2.0], [1, 0, 1], [1, 2]]
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled()
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(torch.exp, x)
    checkpoint(torch.exp, x, use_reentrant=False)


def test_storages_of_one_type(torch):
    assert torch.Storage([1.0, 2.0]).tolist() == [1.0, 2.0] and torch.Storage is torch.FloatStorage
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Storage is torch.DoubleStorage
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.LongStorage(3).size() == 3 and torch.ByteStorage.dtype is torch.uint8
    block = torch.ones(2).storage()
    assert isinstance(block, torch.FloatStorage) and not isinstance(block, torch.LongStorage)
    assert type(torch.BoolStorage([True]).clone()) is torch.BoolStorage and torch.is_storage(torch.IntStorage())


def test_gradients_of_each_sample_in_grad_sample(torch):
    call = importlib.import_module("torch.nn.utils._per_sample_grad").call_for_per_sample_grads
    torch.manual_seed(0)
    nets = [
        (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.LayerNorm(4)), torch.randn(2, 3)),
        (torch.nn.Sequential(torch.nn.Conv1d(4, 2, 2, groups=2), torch.nn.GroupNorm(2, 2)), torch.randn(3, 4, 5)),
        (torch.nn.InstanceNorm1d(2, affine=True, track_running_stats=True), torch.randn(3, 2, 5)),
        (torch.nn.Embedding(5, 2), torch.tensor([[0, 0, 3], [4, 0, 1]])),
    ]
    for net, x in nets:
        for reduction in ("sum", "mean"):
            x = x.detach().requires_grad_() if x.is_floating_point() else x
            getattr(call(net, loss_reduction=reduction)(x).pow(2), reduction)().backward()
            assert all(p.grad is None for p in net.parameters())
            for i in range(len(x)):
                y = getattr(net(x.detach()[i : i + 1]).pow(2), reduction)()
                for p, g in zip(net.parameters(), torch.autograd.grad(y, list(net.parameters())), strict=True):
                    torch.testing.assert_close(p.grad_sample[i], g)
            if x.is_floating_point():
                (g,) = torch.autograd.grad(getattr(net(x).pow(2), reduction)(), x)
                torch.testing.assert_close(x.grad, g)
            for p in net.parameters():
                p.grad_sample = None
    net = torch.nn.Linear(2, 1)
    net.bias.requires_grad_(False)
    h = call(net)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    h.sum().backward()
    assert net.weight.grad_sample.tolist() == [[[1.0, 2.0]], [[3.0, 4.0]]] and not hasattr(net.bias, "grad_sample")
    with pytest.raises(RuntimeError, match="clear it before another call"):
        call(net)
    with pytest.raises(RuntimeError, match="input batch size of 2 with ExpandedWeight of batch size 3"):
        call(torch.nn.Linear(2, 2), batch_size=3)(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="cannot handle function bilinear\nIn layer Bilinear"):
        call(torch.nn.Bilinear(2, 2, 2))(torch.ones(2, 2), torch.ones(2, 2))


def test_reductions_over_segments(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 3.0], [4.0, 3.0], [5.0, 0.0]], dtype=torch.float64, requires_grad=True)
    lengths, offsets = torch.tensor([1, 0, 2, 1]), torch.tensor([0, 1, 1, 3, 4])
    inf = float("inf")
    values = {
        "sum": ([[1.0, 2.0], [0.0, 0.0], [7.0, 6.0], [5.0, 0.0]], [[1.0, 1.0]] * 4),
        "mean": ([[1.0, 2.0], [0.0, 0.0], [3.5, 3.0], [5.0, 0.0]], [[1.0, 1.0], [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]]),
        "prod": ([[1.0, 2.0], [1.0, 1.0], [12.0, 9.0], [5.0, 0.0]], [[1.0, 1.0], [4.0, 3.0], [3.0, 3.0], [1.0, 1.0]]),
        "max": ([[1.0, 2.0], [-inf, -inf], [4.0, 3.0], [5.0, 0.0]], [[1.0, 1.0], [0.0, 0.5], [1.0, 0.5], [1.0, 1.0]]),
        "amin": ([[1.0, 2.0], [inf, inf], [3.0, 3.0], [5.0, 0.0]], [[1.0, 1.0], [1.0, 0.5], [0.0, 0.5], [1.0, 1.0]]),
    }
    for reduce, (value, gradient) in values.items():
        for given in ({"lengths": lengths}, {"offsets": offsets}):
            y = torch._segment_reduce(x, reduce, initial=0 if reduce == "mean" else None, **given)
            assert y.tolist() == value and torch.autograd.grad(y.sum(), x)[0].tolist() == gradient
        y = torch.segment_reduce(x.T, reduce, lengths=lengths.expand(2, 4), axis=1, initial=0 if reduce == "mean" else None)
        assert y.T.tolist() == value
    assert torch.autograd.gradgradcheck(lambda t: torch.segment_reduce(t, "prod", lengths=lengths), x)
    assert torch.segment_reduce(x, "mean", lengths=lengths)[1].isnan().all()
    assert torch.segment_reduce(x, "max", lengths=lengths, initial=3.5)[:3].tolist() == [[3.5, 3.5], [3.5, 3.5], [4.0, 3.5]]
    assert torch.segment_reduce(x, "sum", offsets=torch.tensor([1, 2]), initial=1.0).tolist() == [[4.0, 4.0]]
    with pytest.raises(RuntimeError, match="to sum to data.size"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="negative"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([-1, 5]))
