"""Convolutions, pooling, normalisation, dropout, tables, padding and reshaping layers against PyTorch's."""

import re
import warnings

import numpy as np
import pytest
from layers import BOTH, Case, array, check, close, public_layers, signature, torch

import tapegrad as tg

X1, X2, X3 = (2, 4, 9), (2, 4, 7, 6), (1, 2, 5, 4, 6)


def conv(kind, *args, x=X2, call=None, **kwargs):
    extra = {} if call is None else {"call": call}
    return Case(lambda m: getattr(m.nn, kind)(*args, **kwargs), (x,), **extra)


def layer(kind, *args, x=X2, orders=2, **kwargs):
    return Case(lambda m: getattr(m.nn, kind)(*args, **kwargs), (x,), orders=orders)


def chained(layer, *args):
    """Maxima and indices to the image again."""
    pooled, indices = layer[0](*args)
    return layer[1](pooled, indices, output_size=args[0].shape)


def unpooled(dims, x):
    def make(m):
        pool = getattr(m.nn, f"MaxPool{dims}d")(2, 2, return_indices=True)
        return m.nn.ModuleList([pool, getattr(m.nn, f"MaxUnpool{dims}d")(2)])

    return Case(make, (x,), chained)


CASES = {
    # convolutions
    "Conv1d": conv("Conv1d", 4, 6, 3, x=X1),
    "Conv1d strided": conv("Conv1d", 4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False, x=X1),
    "Conv1d circular": conv("Conv1d", 4, 2, 3, padding=2, padding_mode="circular", x=X1),
    "Conv1d same": conv("Conv1d", 4, 2, 4, padding="same", dilation=2, x=X1),
    "Conv1d unbatched": conv("Conv1d", 4, 2, (3,), x=(4, 9)),
    "Conv2d": conv("Conv2d", 4, 6, 3),
    "Conv2d keywords": conv("Conv2d", in_channels=4, out_channels=3, kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)),
    "Conv2d depthwise": conv("Conv2d", 4, 8, 3, padding=1, groups=4, bias=False),
    "Conv2d pointwise": conv("Conv2d", 4, 5, 1),
    "Conv2d valid": conv("Conv2d", 4, 2, 3, padding="valid"),
    "Conv2d same": conv("Conv2d", 4, 2, (4, 3), padding="same"),
    "Conv2d same reflect": conv("Conv2d", 4, 2, (4, 3), padding="same", padding_mode="reflect"),
    "Conv2d replicate": conv("Conv2d", 4, 2, 3, padding=(1, 2), padding_mode="replicate", stride=2),
    "Conv2d circular": conv("Conv2d", 4, 2, 3, 1, 1, padding_mode="circular"),
    "Conv2d unbatched": conv("Conv2d", 4, 2, 3, dilation=2, x=X2[1:]),
    "Conv3d": conv("Conv3d", 2, 4, 3, x=X3),
    "Conv3d strided": conv("Conv3d", 2, 4, (2, 1, 3), stride=2, padding=(1, 0, 1), groups=2, bias=False, x=X3),
    "Conv3d replicate": conv("Conv3d", 2, 2, 3, padding=1, padding_mode="replicate", x=X3),
    "ConvTranspose1d": conv("ConvTranspose1d", 4, 3, 3, x=X1),
    "ConvTranspose1d strided": conv("ConvTranspose1d", 4, 6, 3, 2, 1, 1, groups=2, bias=False, dilation=2, x=X1),
    "ConvTranspose2d": conv("ConvTranspose2d", 4, 3, 4, stride=2, padding=1, bias=False),
    "ConvTranspose2d keywords": conv(
        "ConvTranspose2d", in_channels=4, out_channels=2, kernel_size=3, stride=(2, 3), output_padding=(1, 2), dilation=2,
    ),
    "ConvTranspose2d size": conv("ConvTranspose2d", 4, 3, 3, stride=2, call=lambda net, x: net(x, output_size=(16, 13))),
    "ConvTranspose2d shape": conv("ConvTranspose2d", 4, 3, 3, stride=2, call=lambda net, x: net(x, [2, 3, 15, 14])),
    "ConvTranspose2d unbatched": conv("ConvTranspose2d", 4, 3, 3, groups=1, x=X2[1:]),
    "ConvTranspose3d": conv("ConvTranspose3d", 2, 4, 3, stride=2, padding=1, groups=2, x=X3),
    "ConvTranspose3d size": conv("ConvTranspose3d", 2, 2, 2, stride=2, x=X3, call=lambda net, x: net(x, (11, 9, 12))),
    # pooling
    "MaxPool1d": layer("MaxPool1d", 3, 2, x=X1),
    "MaxPool1d options": layer("MaxPool1d", kernel_size=3, padding=1, dilation=2, ceil_mode=True, return_indices=True, x=X1),
    "MaxPool2d": layer("MaxPool2d", 2),
    "MaxPool2d keywords": layer("MaxPool2d", kernel_size=3, stride=2, padding=1, ceil_mode=True),
    "MaxPool2d options": layer("MaxPool2d", (2, 3), stride=(1, 2), dilation=(2, 1), return_indices=True),
    "MaxPool3d": layer("MaxPool3d", (2, 1, 2), x=X3),
    "MaxPool3d options": layer("MaxPool3d", 2, 1, padding=1, dilation=2, return_indices=True, x=X3),
    "MaxUnpool1d": unpooled(1, X1),
    "MaxUnpool2d": unpooled(2, X2),
    "MaxUnpool3d": unpooled(3, X3),
    "AvgPool1d": layer("AvgPool1d", 3, x=X1),
    "AvgPool1d options": layer("AvgPool1d", kernel_size=4, stride=3, padding=2, ceil_mode=True, x=X1),
    "AvgPool1d without pads": layer("AvgPool1d", 4, 3, 2, count_include_pad=False, x=X1),
    "AvgPool2d": layer("AvgPool2d", kernel_size=2, stride=2),
    "AvgPool2d options": layer("AvgPool2d", (3, 2), stride=1, padding=(1, 0), count_include_pad=False),
    "AvgPool2d divisor": layer("AvgPool2d", 3, divisor_override=2, ceil_mode=True),
    "AvgPool3d": layer("AvgPool3d", 2, x=X3),
    "AvgPool3d options": layer("AvgPool3d", kernel_size=(2, 1, 2), stride=1, padding=(1, 0, 0), divisor_override=3, x=X3),
    "LPPool1d": layer("LPPool1d", 2, 3, x=X1),
    "LPPool2d": layer("LPPool2d", 2, (2, 3), stride=1),
    "LPPool2d of power 4": layer("LPPool2d", 4.0, 2, ceil_mode=True),
    "LPPool3d": layer("LPPool3d", 2, 2, x=X3),
    "AdaptiveAvgPool1d": layer("AdaptiveAvgPool1d", 4, x=X1),
    "AdaptiveAvgPool2d": layer("AdaptiveAvgPool2d", output_size=(3, None)),
    "AdaptiveAvgPool2d of 1": layer("AdaptiveAvgPool2d", 1),
    "AdaptiveAvgPool3d": layer("AdaptiveAvgPool3d", (2, 3, 4), x=X3),
    "AdaptiveMaxPool1d": layer("AdaptiveMaxPool1d", 4, x=X1),
    "AdaptiveMaxPool2d": layer("AdaptiveMaxPool2d", (None, 4), return_indices=True),
    "AdaptiveMaxPool3d": layer("AdaptiveMaxPool3d", 2, x=X3),
    "FractionalMaxPool2d": layer("FractionalMaxPool2d", 2, output_size=(4, 3)),
    "FractionalMaxPool2d ratio": layer("FractionalMaxPool2d", (2, 3), output_ratio=(0.5, 0.4), return_indices=True),
    "FractionalMaxPool2d given": Case(
        lambda m: m.nn.FractionalMaxPool2d(2, output_size=3, _random_samples=m.full((2, 4, 2), 0.3)), (X2,)
    ),
    "FractionalMaxPool3d": layer("FractionalMaxPool3d", 2, output_ratio=0.5, x=X3, return_indices=True),
    # normalisation
    "BatchNorm1d": layer("BatchNorm1d", 4, x=(6, 4)),
    "BatchNorm1d of sequences": layer("BatchNorm1d", num_features=4, eps=0.01, momentum=0.3, x=X1),
    "BatchNorm1d average": Case(lambda m: m.nn.BatchNorm1d(4, momentum=None), (X1,), lambda net, x: [net(x), net(2 * x)]),
    "BatchNorm2d": layer("BatchNorm2d", 4),
    "BatchNorm2d affine": layer("BatchNorm2d", 4, momentum=0.2, affine=False),
    "BatchNorm2d bias": layer("BatchNorm2d", 4, bias=False),
    "BatchNorm2d untracked": layer("BatchNorm2d", 4, track_running_stats=False),
    "BatchNorm2d eval": Case(lambda m: m.nn.BatchNorm2d(4), (X2,), lambda net, x: [net(x), net.eval()(x), net.train()]),
    "BatchNorm2d untracked eval": Case(lambda m: m.nn.BatchNorm2d(4, track_running_stats=False).eval(), (X2,)),
    "BatchNorm2d stopped": Case(
        lambda m: m.nn.BatchNorm2d(4), (X2,), lambda net, x: (setattr(net, "track_running_stats", False), net(x))
    ),
    "BatchNorm3d": layer("BatchNorm3d", num_features=2, x=X3),
    "SyncBatchNorm": layer("SyncBatchNorm", 4),
    "SyncBatchNorm converted": Case(
        lambda m: m.nn.SyncBatchNorm.convert_sync_batchnorm(
            m.nn.Sequential(
                m.nn.Conv2d(4, 3, 1), m.nn.BatchNorm2d(3, affine=False), m.nn.Sequential(m.nn.BatchNorm2d(3).eval())
            )
        ),
        (X2,), single=False,
    ),
    "InstanceNorm1d": layer("InstanceNorm1d", 4, x=X1),
    "InstanceNorm1d unbatched": layer("InstanceNorm1d", 4, affine=True, x=(4, 9)),
    "InstanceNorm2d": layer("InstanceNorm2d", 4, affine=True),
    "InstanceNorm2d tracked": Case(
        lambda m: m.nn.InstanceNorm2d(4, momentum=0.4, affine=True, track_running_stats=True, bias=False), (X2,),
        lambda net, x: [net(x), net.eval()(x), net.train()],
    ),
    "InstanceNorm3d": layer("InstanceNorm3d", 2, eps=0.1, x=X3),
    "GroupNorm": layer("GroupNorm", 2, 4),
    "GroupNorm plain": layer("GroupNorm", num_groups=4, num_channels=4, affine=False),
    "GroupNorm of rows": layer("GroupNorm", 1, 4, eps=0.1, bias=False, x=(3, 4)),
    "LayerNorm": layer("LayerNorm", 6),
    "LayerNorm of two": layer("LayerNorm", (7, 6), eps=0.1, bias=False),
    "LayerNorm plain": layer("LayerNorm", [4, 7, 6], elementwise_affine=False),
    "RMSNorm": layer("RMSNorm", 6),
    "RMSNorm of two": layer("RMSNorm", (7, 6), eps=0.1, elementwise_affine=False),
    "LocalResponseNorm": layer("LocalResponseNorm", 3, alpha=0.5, beta=0.5, k=2.0),
    "LocalResponseNorm of 2": layer("LocalResponseNorm", 2, x=X3),
    "CrossMapLRN2d": layer("CrossMapLRN2d", 1, alpha=0.5, x=(2, 1, 3, 3), orders=0),
    # dropout
    "Dropout": layer("Dropout"),
    "Dropout p": layer("Dropout", p=0.2, x=X1),
    "Dropout eval": Case(lambda m: m.nn.Dropout(0.3).eval(), (X1,)),
    "Dropout inplace": Case(lambda m: m.nn.Dropout(0.3, inplace=True), (X1,), lambda net, x: net(x * 1.0)),
    "Dropout transposed": Case(lambda m: m.nn.Dropout(0.4), (X1,), lambda net, x: net(x.transpose(0, 2))),
    "AlphaDropout transposed": Case(lambda m: m.nn.AlphaDropout(0.4), (X1,), lambda net, x: net(x.transpose(0, 2))),
    "Dropout of 1": layer("Dropout", 1.0),
    "Dropout1d": layer("Dropout1d", 0.4, x=X1),
    "Dropout1d unbatched": layer("Dropout1d", x=X1[1:]),
    "Dropout2d": layer("Dropout2d", p=0.4),
    "Dropout3d": layer("Dropout3d", x=X3),
    "AlphaDropout": layer("AlphaDropout", 0.3),
    "FeatureAlphaDropout": layer("FeatureAlphaDropout", 0.3),
    # tables
    "Embedding": Case(lambda m: m.nn.Embedding(6, 3), (("long", 6, (2, 5)),)),
    "Embedding padding": Case(lambda m: m.nn.Embedding(6, 3, padding_idx=-4), (("long", 6, (2, 5)),)),
    "Embedding max_norm": Case(
        lambda m: m.nn.Embedding(6, 3, max_norm=1.0, norm_type=1.0), (("long", 6, (2, 5)),), orders=1
    ),
    "Embedding by frequency": Case(
        lambda m: m.nn.Embedding(num_embeddings=4, embedding_dim=3, scale_grad_by_freq=True), (("long", 4, (9,)),), orders=1
    ),
    "Embedding given": Case(
        lambda m: m.nn.Embedding.from_pretrained(m.arange(12.0).reshape(4, 3), freeze=False, padding_idx=1),
        (("long", 4, (5,)),),
    ),
    "Embedding frozen": Case(lambda m: m.nn.Embedding.from_pretrained(m.ones(4, 3)), (("long", 4, (5,)),)),
    "EmbeddingBag": Case(lambda m: m.nn.EmbeddingBag(6, 3), (("long", 6, (2, 5)),), orders=1),
    "EmbeddingBag sum": Case(
        lambda m: m.nn.EmbeddingBag(6, 3, mode="sum", padding_idx=2),
        (("long", 6, (7,)), lambda m: m.tensor([0, 3, 3]), ("constant", (7,))), lambda net, i, o, w: net(i, o, w * 1.0), 1,
    ),
    "EmbeddingBag max": Case(lambda m: m.nn.EmbeddingBag(6, 3, mode="max"), (("long", 6, (2, 5)),), orders=1),
    "EmbeddingBag ends": Case(
        lambda m: m.nn.EmbeddingBag(6, 3, max_norm=1.5, mode="mean", include_last_offset=True),
        (("long", 6, (7,)), lambda m: m.tensor([0, 3, 7])), orders=1,
    ),
    "EmbeddingBag given": Case(
        lambda m: m.nn.EmbeddingBag.from_pretrained(m.arange(12.0).reshape(4, 3), mode="sum"), (("long", 4, (2, 5)),)
    ),
    "Bilinear": Case(lambda m: m.nn.Bilinear(3, 4, 5), ((2, 6, 3), (2, 6, 4))),
    "Bilinear bias": Case(lambda m: m.nn.Bilinear(3, 4, 5, bias=False), ((6, 3), (6, 4))),
    # reshaping
    "Flatten": layer("Flatten"),
    "Flatten dims": layer("Flatten", start_dim=0, end_dim=2),
    "Unflatten": layer("Unflatten", 1, (2, -1)),
    "Unflatten list": layer("Unflatten", -1, [3, 2]),
    "Unfold": layer("Unfold", (2, 3), dilation=2, padding=1, stride=2),
    "Fold": layer("Fold", output_size=(4, 5), kernel_size=(2, 2), x=(2, 8, 12)),
    "Fold options": layer("Fold", 5, 3, dilation=1, padding=1, stride=2, x=(18, 9)),
    "PixelShuffle": layer("PixelShuffle", 2),
    "PixelUnshuffle": layer("PixelUnshuffle", 2, x=(2, 3, 4, 6)),
    "ChannelShuffle": layer("ChannelShuffle", 2),
    "Upsample": layer("Upsample", scale_factor=2),
    "Upsample size": layer("Upsample", size=(9, 4), mode="bilinear", align_corners=True),
    "Upsample factors": layer("Upsample", scale_factor=(2.0, 1.5), mode="bicubic"),
    "Upsample recomputed": layer("Upsample", scale_factor=1.7, mode="linear", recompute_scale_factor=True, x=X1),
    "Upsample volumes": layer("Upsample", 3, mode="trilinear", x=X3),
    "Upsample exact": layer("Upsample", scale_factor=2, mode="nearest-exact"),
    "UpsamplingNearest2d": layer("UpsamplingNearest2d", scale_factor=2),
    "UpsamplingBilinear2d": layer("UpsamplingBilinear2d", size=(9, 11)),
    "DataParallel": Case(lambda m: m.nn.DataParallel(m.nn.Linear(3, 2)), ((5, 3),)),
    "DataParallel keyword": Case(
        lambda m: m.nn.DataParallel(m.nn.Bilinear(3, 3, 2), device_ids=None), ((5, 3),),
        lambda net, x: net(input1=x, input2=x * 2),
    ),
}  # fmt: skip
for dims, x in ((1, X1), (2, X2), (3, X3)):
    one, sides = 2, tuple(range(2 * dims))
    for mode in ("Zero", "Reflection", "Replication", "Circular"):
        CASES[f"{mode}Pad{dims}d"] = layer(f"{mode}Pad{dims}d", one, x=x)
        CASES[f"{mode}Pad{dims}d sides"] = layer(f"{mode}Pad{dims}d", tuple(n % 3 for n in sides), x=x[1:])
    CASES[f"ConstantPad{dims}d"] = layer(f"ConstantPad{dims}d", one, 1.5, x=x)
    CASES[f"ConstantPad{dims}d sides"] = layer(f"ConstantPad{dims}d", padding=tuple(n - 1 for n in sides), value=2, x=x)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("name", CASES)
def test_layers(name):
    check(CASES[name])


FAMILIES = (
    "Conv|Max|Avg|LPPool|Adaptive...Pool|Fractional|BatchNorm|SyncBatch|Instance|Group|Layer|RMS|Local|CrossMap|Dropout|"
    "AlphaDropout|FeatureAlpha|Embedding|Zero|Constant|Reflection|Replication|Circular|Bilinear|Flatten|Unflatten|Fold|"
    "Unfold|Pixel|Channel|Upsampl|DataParallel"
)
STRUCTURE = {name for name in public_layers(torch) if re.match(FAMILIES, name)}


def test_every_layer_has_a_case():
    assert {name.split()[0] for name in CASES} == STRUCTURE


# Layers of torch.nn that are not here, and why.
MISSING: dict[str, str] = {}


def test_every_layer_of_torch_is_here():
    assert public_layers(torch) - public_layers(tg) == set(MISSING)
    assert not public_layers(tg) - public_layers(torch)


def test_kinds_of_layers():
    """What isinstance says of a layer is what it says in PyTorch. A lazy layer here is one of its kind from the start."""
    names = sorted(n for n in public_layers(torch) & public_layers(tg) if not n.startswith("Lazy"))
    theirs, ours = ({(a, b) for a in names for b in names if issubclass(getattr(m.nn, a), getattr(m.nn, b))} for m in BOTH)
    assert ours == theirs


BASES = {
    "batchnorm": ["_BatchNorm", "_NormBase"], "conv": ["_ConvNd", "_ConvTransposeNd"], "dropout": ["_DropoutNd"],
    "instancenorm": ["_InstanceNorm"],
    "padding": ["_CircularPadNd", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd"],
    "pooling": [
        "_AdaptiveAvgPoolNd", "_AdaptiveMaxPoolNd", "_AvgPoolNd", "_LPPoolNd", "_MaxPoolNd", "_MaxUnpoolNd",
    ],
}  # fmt: skip


@pytest.mark.parametrize("module", BASES)
def test_bases_that_programs_ask_for(module):
    for base in BASES[module]:
        theirs, ours = (getattr(getattr(m.nn.modules, module), base) for m in BOTH)
        for name in STRUCTURE:
            assert issubclass(getattr(tg.nn, name), ours) == issubclass(getattr(torch.nn, name), theirs), (base, name)


@pytest.mark.parametrize("name", sorted(STRUCTURE))
def test_signatures(name):
    """Names and defaults of the arguments of the layer, its forward and its other public methods."""
    theirs, ours = (getattr(m.nn, name) for m in BOTH)
    assert signature(ours) == signature(theirs)
    assert signature(ours.forward) == signature(theirs.forward)
    for method in ("from_pretrained", "convert_sync_batchnorm", "reset_parameters"):
        if hasattr(theirs, method):
            assert signature(getattr(ours, method)) == signature(getattr(theirs, method))


def plain(value):
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", CASES)
def test_attributes(name):
    """What programs read of a layer: the settings under PyTorch's names."""
    theirs, ours = (CASES[name].make(m) for m in BOTH)
    for key, value in vars(theirs).items():
        if isinstance(value, str | int | float | tuple | list | None) and (key[0] != "_" or key[:9] == "_reversed"):
            assert plain(getattr(ours, key)) == plain(value), key
    assert list(ours._parameters) == list(theirs._parameters) and list(ours._buffers) == list(theirs._buffers)


ERRORS = """
Conv2d(3, 4, 3)(r(2, 4, 5, 5))
Conv2d(3, 4, 3)(r(4, 5))
Conv2d(3, 4, 3)(r(3, 2, 2))
Conv2d(3, 4, 3, groups=2)
Conv2d(4, 3, 3, groups=2)
Conv2d(4, 4, 3, groups=-1)
Conv2d(3, 4, 3, padding='same', stride=2)
Conv2d(3, 4, (3, 3, 3))(r(1, 3, 5, 5))
Conv2d(3, 4, 3, padding=(1, 2, 3))(r(1, 3, 5, 5))
Conv2d(3, 4, 3, stride=(1, 2, 3))(r(1, 3, 5, 5))
Conv2d(3, 4, -1)
Conv2d(3, 4, 3, padding_mode='reflect', padding=3)(r(1, 3, 3, 3))
Conv2d(3, 4, 3, padding_mode='circular', padding=1)(r(5, 5))
Conv2d(2, 3, 1)(r(1, 2, 3, 3).double())
Conv1d(3, 4, 3)(r(3, 4, 5, 6))
Conv3d(3, 4, 3)(r(3, 4))
ConvTranspose2d(3, 4, 3, padding_mode='reflect')
ConvTranspose2d(3, 4, 3, stride=2)(r(2, 3, 5, 5), output_size=(13, 11))
ConvTranspose2d(3, 4, 3, stride=2)(r(2, 3, 5, 5), output_size=(12,))
ConvTranspose2d(3, 4, 3, stride=2)(r(3, 5, 5), output_size=12)
ConvTranspose2d(3, 4, 3, stride=2, output_padding=2)(r(2, 3, 5, 5))
ConvTranspose2d(3, 4, 3, groups=2)
ConvTranspose2d(4, 3, 3, groups=2)
ConvTranspose2d(3, 4, 3)(r(2, 4, 5, 5))
ConvTranspose2d(3, 4, 3)(r(4, 5))
MaxPool2d(2)(r(4))
MaxPool2d(2)(r(1, 1, 1, 1))
MaxPool2d(3, padding=2)(r(1, 1, 5, 5))
AvgPool2d(2)(r(4))
MaxUnpool2d(2)(r(1, 1, 2, 2), r(1, 1, 2, 2))
FractionalMaxPool2d(2)
FractionalMaxPool2d(2, output_size=2, output_ratio=0.5)
FractionalMaxPool2d(2, output_ratio=1.5)
FractionalMaxPool3d(2, output_ratio=(0.5, 1, 0.5))
AdaptiveAvgPool2d(3)(r(2, 2))
AdaptiveAvgPool2d((3, 3, 3))(r(2, 2, 4, 4))
LPPool2d(2, 2)(r(3))
BatchNorm1d(3)(r(3))
BatchNorm1d(3)(r(1, 3))
BatchNorm1d(3)(r(2, 4))
BatchNorm1d(3).eval()(r(2, 4))
BatchNorm1d(3)(r(2, 3).double())
BatchNorm1d(2)(L.tensor([[1, 2], [3, 4]]))
BatchNorm1d(3, eps=0)(r(2, 3))
BatchNorm2d(3)(r(2, 3, 4))
BatchNorm3d(3)(r(2, 3, 4))
SyncBatchNorm(3)(r(3))
SyncBatchNorm(3)(r(1, 3))
InstanceNorm1d(3)(r(3))
InstanceNorm1d(3)(r(2, 3, 1))
InstanceNorm1d(3, affine=True)(r(2, 4, 5))
InstanceNorm2d(3, affine=True)(r(4, 5, 5))
InstanceNorm2d(3)(r(2, 3))
InstanceNorm3d(3)(r(2, 3))
InstanceNorm2d(3, affine=True)(r(2, 3, 4, 4).double())
GroupNorm(3, 4)
GroupNorm(2, 4)(r(2, 5, 3))
GroupNorm(2, 4)(r(4))
GroupNorm(2, 4)(r(2, 6, 3))
GroupNorm(2, 4)(r(2, 4, 3).double())
LayerNorm(3)(r(2, 4))
LayerNorm(3)(r(2, 3).double())
LayerNorm(())(r(2, 4))
RMSNorm(3)(r(2, 4))
LocalResponseNorm(2)(r(2, 3))
CrossMapLRN2d(3)(r(2, 3, 4))
Dropout(2)
Dropout2d(-0.1)
Dropout1d()(r(4))
Embedding(3, 4)(L.tensor([3]))
Embedding(3, 4)(L.tensor([1.0]))
Embedding(3, 4, 3)
Embedding(3, 4, -4)
Embedding(3, 4, _weight=r(3, 5))
Embedding.from_pretrained(r(3))
EmbeddingBag(3, 4)(L.tensor([1, 2]))
EmbeddingBag(3, 4)(L.tensor(1))
EmbeddingBag(3, 4, mode='foo')(L.tensor([[1]]))
EmbeddingBag(3, 4, padding_idx=4)
EmbeddingBag.from_pretrained(r(3))
EmbeddingBag(3, 4, _weight=r(2, 4))
ReflectionPad1d(1)(r(4))
ReflectionPad1d(5)(r(1, 4))
ReflectionPad2d((1, 2))(r(1, 3, 4, 4))
CircularPad1d(1)(r(4))
CircularPad2d(1)(r(4, 4))
CircularPad3d(1)(r(4, 4))
CircularPad1d(5)(r(1, 4))
Bilinear(0, 1, 2)
Bilinear(2, 3, 4)(r(2, 2), r(3, 3))
Bilinear(2, 3, 4)(r(2, 3), r(2, 3))
Unflatten(1, 2)
Unflatten(1, (2.0, 3))
Unflatten(1, {2, 3})
Unflatten(1, (2, 3))(r(2, 7))
Fold(3, 2)(r(1, 5, 4))
Unfold(2)(r(2, 2))
PixelShuffle(2)(r(3, 4, 4))
PixelUnshuffle(2)(r(4, 3, 4))
ChannelShuffle(2)(r(1, 3, 2, 2))
Upsample()(r(1, 1, 2, 2))
Upsample(3, 2)(r(1, 1, 2, 2))
Upsample(3, mode='bilinear')(r(1, 1, 2))
Upsample(3, mode='foo')(r(1, 1, 2))
Upsample(scale_factor=[2, 3])
"""


def first_sentence(text):
    return " ".join(text.split("\n")[0].split(". ")[0].split())


def attempt(m, program):
    try:
        eval(program, {**vars(m.nn), "L": m, "r": m.randn})
    except Exception as e:
        return type(e), first_sentence(str(e))
    return None


@pytest.mark.parametrize("program", ERRORS.strip().splitlines())
def test_errors(program):
    theirs = attempt(torch, program)
    assert theirs is not None
    assert attempt(tg, program) == theirs


@pytest.mark.parametrize("program", [
    "Conv2d(3, 4, 3, padding='foo')", "Conv2d(3, 4, 3, padding_mode='foo')",
])  # fmt: skip
def test_errors_that_list_names_in_any_order(program):
    (kind, theirs), (own, ours) = (attempt(m, program) for m in BOTH)
    assert own is kind and sorted(re.findall(r"\w+", ours)) == sorted(re.findall(r"\w+", theirs))


WARNINGS = """
InstanceNorm1d(3)(r(2, 4, 5))
InstanceNorm1d(3)(r(4, 5))
Dropout2d()(r(4, 3))
Dropout2d()(r(4, 3, 2))
Dropout3d()(r(4, 3, 2))
Conv2d(3, 0, 3)
"""


@pytest.mark.parametrize("program", WARNINGS.strip().splitlines())
def test_warnings(program):
    texts = []
    for m in BOTH:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            eval(program, {**vars(m.nn), "r": m.randn})
        texts.append([(w.category, str(w.message)) for w in caught])
    assert texts[0] and texts[1] == texts[0]


def test_running_statistics_of_several_batches():
    """And the state dict goes from one library to the other."""
    found = []
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.BatchNorm2d(3, momentum=None)
        for _ in range(4):
            net(m.randn(2, 3, 4, 5) * 3 + 1)
        found.append(net)
    theirs, ours = (net.state_dict() for net in found)
    assert list(theirs) == list(ours)
    for key in theirs:
        close(theirs[key], ours[key], 1e-6, key)
    fresh = tg.nn.BatchNorm2d(3)
    fresh.load_state_dict({k: tg.from_numpy(array(v)) for k, v in theirs.items()})
    x = np.ones((1, 3, 2, 2), np.float32)
    close(found[0].eval()(torch.tensor(x)), fresh.eval()(tg.tensor(x)), 1e-6, "evaluation")


def test_state_of_before_version_2():
    for m in BOTH:
        net = m.nn.Sequential(m.nn.BatchNorm1d(3))
        net[0].num_batches_tracked.fill_(5)
        state = m.nn.Sequential(m.nn.BatchNorm1d(3)).state_dict()
        del state["0.num_batches_tracked"], state._metadata["0"]["version"]
        assert str(net.load_state_dict(state)) == "<All keys matched successfully>"
        assert int(net[0].num_batches_tracked) == 5
        state._metadata["0"]["version"] = 2
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0.num_batches_tracked"'):
            net.load_state_dict(state)


def test_batch_norm_under_vmap():
    for m in BOTH:
        net, x = m.nn.BatchNorm1d(3), m.randn(5, 4, 3)
        with pytest.raises(
            RuntimeError, match="Batch norm got a batched tensor as input while the running_mean or running_var"
        ):
            m.func.vmap(net)(x)
        assert net.running_mean.tolist() == [0, 0, 0] and net.running_var.tolist() == [1, 1, 1]
        free = m.nn.BatchNorm1d(3, track_running_stats=False)
        close(m.stack([free(row) for row in x]), m.func.vmap(free)(x), 1e-6, "vmap")
        net.eval()
        close(m.stack([net(row) for row in x]), m.func.vmap(net)(x), 1e-6, "vmap")


def test_conversion_keeps_parameters_and_buffers():
    for m in BOTH:
        net = m.nn.Sequential(m.nn.BatchNorm1d(2), m.nn.Linear(2, 2), m.nn.InstanceNorm1d(2))
        old = net[0]
        converted = m.nn.SyncBatchNorm.convert_sync_batchnorm(net, process_group="all")
        assert converted is net and type(net[0]).__name__ == "SyncBatchNorm" and net[0].process_group == "all"
        assert net[0].weight is old.weight and net[0].running_var is old.running_var
        assert type(net[2]).__name__ == "InstanceNorm1d"
