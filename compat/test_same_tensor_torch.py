"""Functions that may return their argument, a view or a copy: the same as in PyTorch, and a leaf where it is one there."""

import warnings

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


def method(name, *args, **kwargs):
    return lambda lib, x: getattr(x, name)(
        *[resolved(lib, a) for a in args], **{k: resolved(lib, a) for k, a in kwargs.items()}
    )


def function(name, *args, **kwargs):
    def call(lib, x):
        f = lib
        for part in name.split("."):
            f = getattr(f, part)
        return f(x, *[resolved(lib, a) for a in args], **{k: resolved(lib, a) for k, a in kwargs.items()})

    return call


def resolved(lib, a):
    """A string that starts with a dot is a name of the library."""
    return getattr(lib, a[1:]) if isinstance(a, str) and a.startswith(".") else a


def layer(name, *args, **kwargs):
    return lambda lib, x: getattr(lib.nn, name)(*args, **kwargs)(x)


def evaluated(name, *args, **kwargs):
    return lambda lib, x: getattr(lib.nn, name)(*args, **kwargs).eval()(x)


def both(name, *args, **kwargs):
    return {
        f"x.{name}{args}{kwargs or ''}": method(name, *args, **kwargs),
        f"{name}{args}{kwargs or ''}": function(name, *args, **kwargs),
    }


CALLS = {
    # shapes
    **both("flatten"),
    **both("flatten", 0, 0),
    **both("flatten", -1),
    **both("flatten", 0, 1),
    **both("ravel"),
    **both("reshape", (3,)),
    **both("reshape", (-1,)),
    **both("reshape", (2, 3)),
    **both("reshape", ()),
    **both("reshape", (1, 3)),
    "x.view(3)": method("view", 3),
    "x.view(-1)": method("view", -1),
    "x.view(2, 3)": method("view", 2, 3),
    "x.view(dtype)": method("view", ".float32"),
    "x.view(bits)": method("view", ".int32"),
    "x.view_as(x)": lambda lib, x: x.view_as(x),
    "x.reshape_as(x)": lambda lib, x: x.reshape_as(x),
    **both("squeeze"),
    **both("squeeze", 0),
    **both("squeeze", -1),
    **both("squeeze", (0,)),
    **both("squeeze", ()),
    **both("unsqueeze", 0),
    **both("unflatten", 0, (3, 1)),
    **both("unflatten", 0, (3,)),
    **both("unflatten", -1, (3,)),
    "x.expand(same)": lambda lib, x: x.expand(x.shape),
    "x.expand(-1)": lambda lib, x: x.expand([-1] * x.dim()),
    "x.expand(2)": lambda lib, x: x.expand(2, *x.shape),
    "x.expand_as(x)": lambda lib, x: x.expand_as(x),
    "broadcast_to": lambda lib, x: lib.broadcast_to(x, x.shape),
    "x.broadcast_to": lambda lib, x: x.broadcast_to(x.shape),
    "broadcast_tensors": lambda lib, x: lib.broadcast_tensors(x)[0],
    "broadcast_tensors twice": lambda lib, x: lib.broadcast_tensors(x, x)[1],
    "x.repeat(1)": lambda lib, x: x.repeat([1] * x.dim()),
    "x.repeat(1, 1)": lambda lib, x: x.repeat([1] * (x.dim() + 1)),
    "x.tile(1)": lambda lib, x: x.tile([1] * x.dim()),
    "tile()": lambda lib, x: lib.tile(x, ()),
    "repeat_interleave(1)": lambda lib, x: lib.repeat_interleave(x, 1, dim=0),
    **both("permute", (0,)),
    **both("permute", (0, 1)),
    **both("permute", (1, 0)),
    **both("permute", ()),
    **both("transpose", 0, 0),
    **both("transpose", 0, 1),
    **both("swapaxes", 0, 0),
    **both("swapdims", 0, 0),
    **both("movedim", 0, 0),
    **both("moveaxis", 0, 0),
    **both("movedim", 0, 1),
    **both("movedim", (), ()),
    **both("t"),
    **both("adjoint"),
    "x.T": lambda lib, x: x.T,
    "x.mT": lambda lib, x: x.mT,
    "x.H": lambda lib, x: x.H,
    "x.mH": lambda lib, x: x.mH,
    **both("atleast_1d"),
    **both("atleast_2d"),
    **both("atleast_3d"),
    "atleast_1d of two": lambda lib, x: lib.atleast_1d(x, x)[1],
    "atleast_2d of a list": lambda lib, x: lib.atleast_2d([x])[0],
    **both("narrow", 0, 0, 3),
    **both("narrow", 0, 0, 2),
    **both("select", 0, 0),
    **both("chunk", 1),
    **both("chunk", 2),
    **both("split", 3),
    **both("split", [3]),
    **both("split", 1),
    **both("tensor_split", 1),
    **both("tensor_split", 2),
    **both("unbind"),
    **both("hsplit", 1),
    **both("vsplit", 1),
    **both("dsplit", 1),
    **both("unsafe_chunk", 1),
    **both("unsafe_split", 3),
    "split_with_sizes": method("split_with_sizes", [3]),
    **both("diagonal"),
    **both("diag"),
    **both("diagflat"),
    **both("triu"),
    **both("tril"),
    **both("flip", 0),
    **both("flip", ()),
    **both("roll", 0),
    **both("rot90", 0),
    **both("rot90", 4),
    **both("fliplr"),
    **both("flipud"),
    "x.unfold": method("unfold", 0, 3, 1),
    **both("as_strided", (3,), (1,)),
    "cat": lambda lib, x: lib.cat([x]),
    "stack": lambda lib, x: lib.stack([x]),
    "hstack": lambda lib, x: lib.hstack([x]),
    "vstack": lambda lib, x: lib.vstack([x]),
    "concat": lambda lib, x: lib.concat([x]),
    "column_stack": lambda lib, x: lib.column_stack([x]),
    "dstack": lambda lib, x: lib.dstack([x]),
    "meshgrid": lambda lib, x: lib.meshgrid(x, indexing="ij")[0],
    "meshgrid of two": lambda lib, x: lib.meshgrid(x, x, indexing="ij")[0],
    "cartesian_prod": function("cartesian_prod"),
    "combinations": function("combinations", 1),
    "block_diag": function("block_diag"),
    "x[...]": lambda lib, x: x[...],
    "x[()]": lambda lib, x: x[()],
    "x[:]": lambda lib, x: x[:],
    "x[0]": lambda lib, x: x[0],
    "x[None]": lambda lib, x: x[None],
    "x[[0]]": lambda lib, x: x[[0]],
    "x[True]": lambda lib, x: x[True],
    "x[mask]": lambda lib, x: x[x > -9],
    "x[0, ...]": lambda lib, x: x[0, ...],
    "x[::1]": lambda lib, x: x[::1],
    **both("take", [0]),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([0])),
    **both("squeeze_copy"),
    "masked_select": lambda lib, x: x.masked_select(x > -9),
    # copies, dtypes, devices
    **both("clone"),
    "x.contiguous()": method("contiguous"),
    "x.T.contiguous()": lambda lib, x: x.T.contiguous(),
    "x.to(dtype)": method("to", ".float32"),
    "x.to(float64)": method("to", ".float64"),
    "x.to(cpu)": method("to", "cpu"),
    "x.to(copy)": method("to", ".float32", copy=True),
    "x.to(x)": lambda lib, x: x.to(x),
    "x.to()": lambda lib, x: x.to(dtype=None),
    "x.to(device, dtype)": method("to", "cpu", ".float32"),
    "x.type(dtype)": method("type", ".float32"),
    "x.type(double)": method("type", ".float64"),
    "x.type_as(x)": lambda lib, x: x.type_as(x),
    **{
        f"x.{name}()": method(name)
        for name in ("float", "double", "half", "bfloat16", "int", "long", "bool", "cfloat", "cpu")
    },
    "x.requires_grad_()": method("requires_grad_"),
    "x.requires_grad_(False)": lambda lib, x: x.requires_grad_(False),
    "x.detach()": method("detach"),
    **both("detach"),
    "x.detach_()": method("detach_"),
    "detach_": function("detach_"),
    "x.data": lambda lib, x: x.data,
    "x.grad": lambda lib, x: x,
    **both("positive"),
    "+x": lambda lib, x: +x,
    "-x": lambda lib, x: -x,
    "abs": abs,
    **both("real"),
    "x.real": lambda lib, x: x.real,
    **both("conj"),
    **both("conj_physical"),
    **both("resolve_conj"),
    **both("resolve_neg"),
    "view_as_real": function("view_as_real"),
    "view_as_complex": function("view_as_complex"),
    "imag": function("imag"),
    "x.imag": lambda lib, x: x.imag,
    **both("sgn"),
    "x.to_dense()": method("to_dense"),
    "x.alias": lambda lib, x: x.view(x.shape),
    "as_tensor": function("as_tensor"),
    "as_tensor of dtype": function("as_tensor", ".float32"),
    "asarray": function("asarray"),
    "asarray of copy": function("asarray", copy=True),
    "tensor": function("tensor"),
    "from_dlpack": lambda lib, x: lib.from_dlpack(x.detach()),
    "asarray without grad": function("asarray", requires_grad=True),
    "Tensor": lambda lib, x: lib.Tensor(x),
    "x.new_tensor": lambda lib, x: x.new_tensor(x),
    "Parameter": lambda lib, x: lib.nn.Parameter(x),
    "copy": lambda lib, x: __import__("copy").copy(x),
    "x.as_subclass": lambda lib, x: x.as_subclass(lib.nn.Parameter),
    "x.pin_memory": lambda lib, x: x,
    "x.share_memory_": method("share_memory_"),
    "x.sum_to_size": lambda lib, x: x.sum_to_size(x.shape),
    "x.coalesce": lambda lib, x: x,
    "x.resize_": lambda lib, x: x.detach().resize_(x.shape),
    # values that happen to be the same
    **both("round"),
    **both("trunc"),
    **both("floor"),
    **both("ceil"),
    **both("clamp", -9, 9),
    **both("clip", -9),
    **both("nan_to_num"),
    **both("relu"),
    "x ** 1": lambda lib, x: x**1,
    "pow": function("pow", 1),
    "x + 0": lambda lib, x: x + 0,
    "x * 1": lambda lib, x: x * 1,
    "x / 1": lambda lib, x: x / 1,
    "x - 0": lambda lib, x: x - 0,
    **both("sum", ()),
    **both("sum", 0),
    **both("mean", 0),
    **both("amax", ()),
    **both("amax", 0),
    **both("prod", 0),
    **both("max"),
    **both("min"),
    **both("cumsum", 0),
    **both("sort"),
    **both("logsumexp", 0),
    **both("norm"),
    **both("square"),
    **both("std", 0),
    "where": lambda lib, x: lib.where(x > -9, x, 0.0),
    "maximum": lambda lib, x: lib.maximum(x, x),
    "lerp": lambda lib, x: lib.lerp(x, x, 0.0),
    "einsum": lambda lib, x: lib.einsum("i->i", x),
    "einsum transposes": lambda lib, x: lib.einsum("ij->ji", x),
    "einsum same": lambda lib, x: lib.einsum("...->...", x),
    "einsum diagonal": lambda lib, x: lib.einsum("ii->i", x[:2, :2]),
    "tensordot": lambda lib, x: lib.tensordot(x, x, 0),
    "linalg.multi_dot": lambda lib, x: lib.linalg.multi_dot([x, x.T]),
    "matrix_power": function("matrix_power", 1),
    "linalg.matrix_power": function("linalg.matrix_power", 1),
    "chain_matmul": lambda lib, x: lib.chain_matmul(x),
    "linalg.diagonal": function("linalg.diagonal"),
    "linalg.vecdot": lambda lib, x: lib.linalg.vecdot(x, x),
    "fft.fftshift": function("fft.fftshift"),
    "fft.ifftshift": function("fft.ifftshift"),
    "nan_to_num numbers": function("nan_to_num", 1.0),
    "special.expit": function("special.expit"),
    "x.masked_fill none": lambda lib, x: x.masked_fill(x < -9, 1.0),
    "renorm": lambda lib, x: x.renorm(2, 0, 1e9),
    "pad_sequence": lambda lib, x: lib.nn.utils.rnn.pad_sequence([x]),
    "parameters_to_vector": lambda lib, x: lib.nn.utils.parameters_to_vector([x]),
    # functional and layers
    **{
        f"F.{name}{kw}": function(f"nn.functional.{name}", *args, **kw)
        for name, args, kw in (
            ("dropout", (), {"training": False}),
            ("dropout", (0.0,), {}),
            ("dropout", (0.0,), {"training": False}),
            ("dropout", (0.5,), {"training": False, "inplace": True}),
            ("alpha_dropout", (), {"training": False}),
            ("alpha_dropout", (0.0,), {"training": True}),
            ("feature_alpha_dropout", (), {"training": False}),
            ("dropout1d", (), {"training": False}),
            ("dropout2d", (), {"training": False}),
            ("dropout3d", (), {"training": False}),
            ("pad", ((0, 0),), {}),
            ("pad", ((),), {}),
            ("pad", ((0, 0),), {"mode": "reflect"}),
            ("pad", ((1, 0),), {}),
            ("pad", ((-1, 0),), {}),
            ("pixel_shuffle", (1,), {}),
            ("pixel_unshuffle", (1,), {}),
            ("channel_shuffle", (1,), {}),
            ("relu", (), {}),
            ("normalize", (), {"p": 2.0}),
            ("rrelu", (), {"training": False}),
            ("hardtanh", (), {}),
            ("threshold", (-9.0, 0.0), {}),
            ("interpolate", (), {"scale_factor": 1}),
            ("upsample", (), {"scale_factor": 1}),
            ("adaptive_avg_pool1d", (3,), {}),
            ("adaptive_max_pool1d", (3,), {}),
            ("avg_pool1d", (1,), {}),
            ("max_pool1d", (1,), {}),
            ("unfold", (1,), {}),
            ("glu", (0,), {}),
            ("gelu", (), {}),
            ("leaky_relu", (1.0,), {}),
            ("elu", (), {}),
            ("celu", (), {}),
            ("softmax", (), {"dim": 0}),
            ("relu", (), {"inplace": True}),
            ("hardtanh", (), {"inplace": True}),
            ("layer_norm", ((3,),), {}),
            ("fold", ((1, 1), (1, 1)), {}),
            ("lp_pool1d", (2, 1), {}),
        )
    },
    "Identity": layer("Identity"),
    "Sequential": layer("Sequential"),
    "Flatten": layer("Flatten"),
    "Flatten(0)": layer("Flatten", 0),
    "Unflatten": layer("Unflatten", 0, (3, 1)),
    "Unflatten same": layer("Unflatten", -1, (3,)),
    "Dropout(0)": layer("Dropout", 0.0),
    "PixelShuffle(1)": layer("PixelShuffle", 1),
    "ChannelShuffle(1)": layer("ChannelShuffle", 1),
    **{
        f"{name} in eval": evaluated(name)
        for name in (
            "Dropout",
            "AlphaDropout",
            "Dropout1d",
            "Dropout2d",
            "Dropout3d",
            "FeatureAlphaDropout",
            "RReLU",
            "ReLU",
            "Softshrink",
        )
    },
    "Dropout in place in eval": evaluated("Dropout", inplace=True),
    "ZeroPad2d(0)": layer("ZeroPad2d", 0),
    "ReflectionPad1d(0)": layer("ReflectionPad1d", 0),
    "Upsample": layer("Upsample", scale_factor=1),
    "CosineSimilarity": lambda lib, x: lib.nn.CosineSimilarity(0)(x, x),
    "ConstantPad1d(0)": layer("ConstantPad1d", 0, 0.0),
    "MaxPool1d(1)": layer("MaxPool1d", 1),
    "AvgPool1d(1)": layer("AvgPool1d", 1),
    "Softmax2d": layer("Softmax2d"),
    "utils.data.default_convert": lambda lib, x: lib.utils.data.default_convert(x),
    "utils.data.default_collate": lambda lib, x: lib.utils.data.default_collate([x]),
    "autograd.Variable": lambda lib, x: lib.autograd.Variable(x),
    "checkpoint": lambda lib, x: lib.utils.checkpoint.checkpoint(lambda t: t, x, use_reentrant=False),
}
SHAPES = [(3,), (2, 3), (1, 3), (), (1, 4, 3), (1, 4, 2, 3), (2, 2)]
KINDS = ["leaf", "computed", "untracked", "view", "complex"]


def tensor_of(lib, shape, kind):
    n = 1
    for k in shape:
        n *= k
    x = lib.arange(1.0, n + 1.0).reshape(shape).clone()
    if kind == "complex":
        x = x.to(lib.complex64)
    if kind == "leaf":
        return x, x.requires_grad_()
    if kind in ("computed", "complex"):
        return x, x.requires_grad_() * 2.0
    if kind == "view":
        base = x.requires_grad_() * 2.0
        return base, base[...]
    return x, x


def outcome(lib, call, shape, kind):
    """What a call gives: None if it raises."""
    held, x = tensor_of(lib, shape, kind)
    try:
        y = call(lib, x)
    except Exception:
        return None
    if isinstance(y, (tuple, list)):
        y = y[0]
    node = None if y.grad_fn is None else y.grad_fn.name()
    found, view = (y is x, y.is_leaf, y.requires_grad), (y._is_view(), y._base is held)
    shares = y is x or written_through(lib, x, y)
    return (*found, shares, *((*view, node) if shares else ()))


def written_through(lib, x, y):
    """Whether a write into y shows in x."""
    before = x.detach().clone()
    y = y.detach()
    once = tuple(n if step else 1 for n, step in zip(y.shape, y.stride(), strict=True))
    y.as_strided(once, y.stride(), y.storage_offset()).fill_(-7)
    return not lib.equal(before, x.detach())


CONJ = "conj of a complex tensor is a copy here"
SELECT = "PyTorch takes the part from view_as_real"
WRITTEN = "PyTorch derives a written view's node by as_strided"
DIFFERENT = {
    **dict.fromkeys(("x.conj()", "conj()", "x.adjoint()", "adjoint()", "x.H", "x.mH"), CONJ),
    **dict.fromkeys(("real()", "x.real", "imag", "x.imag"), SELECT),
    **dict.fromkeys(("x.view(dtype)",), "the history goes on here"),
    "copy": "the history goes on here",
    **dict.fromkeys(("x.unsafe_chunk(1,)", "unsafe_chunk(1,)", "x.unsafe_split(3,)", "unsafe_split(3,)"), "views here"),
    "x.share_memory_": "moves to other memory here, and is no view there",
    **dict.fromkeys(("F.relu{'inplace': True}", "F.hardtanh{'inplace': True}"), WRITTEN),
}


def differences(name):
    pairs = []
    for kind in KINDS:
        for shape in SHAPES:
            ours, theirs = (outcome(lib, CALLS[name], shape, kind) for lib in (tg, torch))
            if ours is not None and theirs is not None and ours != theirs:
                pairs.append((kind, shape, ours, theirs))
    return pairs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_same_tensor(name):
    found = differences(name)
    assert bool(found) == (name in DIFFERENT), found


def test_most_calls_are_valid():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valid = [
            name
            for name in CALLS
            if outcome(tg, CALLS[name], (3,), "leaf") or outcome(tg, CALLS[name], (1, 4, 2, 3), "leaf")
        ]
    assert len(valid) > 0.85 * len(CALLS)
