"""Writes the files beside it. Runs on tapegrad 0.1.0 only: later versions read these files (tests/test_files_of_0_1_0.py).

`PYTHONPATH=<tree of 0.1.0> python write.py`, with safetensors and ml_dtypes installed.

pickles.zip holds a pickle for each object, "<group>/<name>.pkl"; expected.npz what 0.1.0 computes with it, under
"<group>/<name>/..."; expected.json its printed form. globals.tsv names the public classes and functions, and the module in
which a pickle of 0.1.0 looks for each.
"""

import collections
import copy
import importlib
import json
import pathlib
import pickle
import types
import warnings
import zipfile

import numpy as np

import tapegrad as tg
from tapegrad import distributions as dist
from tapegrad import nn, optim
from tapegrad.nn.utils import parametrizations, prune, rnn
from tapegrad.optim import lr_scheduler, swa_utils
from tapegrad.utils import data

assert tg.__version__ == "0.1.0", "the files beside this script are those of 0.1.0"
warnings.simplefilter("ignore")
tg.manual_seed(0)
HERE = pathlib.Path(__file__).parent
F64 = tg.float64


def numbers(*shape, first=0):
    """Multiples of 1/8 between -5/8 and 5/8."""
    return (np.arange(first, first + int(np.prod(shape))).reshape(shape) * 7 % 11 - 5) / 8


def tensor(*shape, first=0, dtype=tg.float32):
    return tg.tensor(numbers(*shape, first=first), dtype=dtype)


def filled(module):
    """The module in evaluation, with parameters that do not hang on the random stream."""
    with tg.no_grad():
        for i, p in enumerate(module.parameters()):
            if not nn.parameter.is_lazy(p):
                p.copy_(tensor(*p.shape, first=i))
    return module.eval()


# -------------------------------------------------------------------------------------------------------------- layers

V, S, L, I3 = (3, 4), (2, 4, 6), (2, 4, 6, 6), (1, 2, 6, 6, 6)  # rows, sequences, images, volumes
POINTWISE = """
    CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish PReLU RReLU ReLU ReLU6
    SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink
""".split()
LOSSES = """
    BCEWithLogitsLoss HuberLoss KLDivLoss L1Loss MSELoss MultiLabelSoftMarginLoss PoissonNLLLoss SmoothL1Loss
    SoftMarginLoss HingeEmbeddingLoss CosineSimilarity PairwiseDistance
""".split()
LAYERS = {
    **{name: (getattr(nn, name)(), V) for name in POINTWISE},
    **{name: (getattr(nn, name)(), V, V) for name in LOSSES},
    "Softmax": (nn.Softmax(1), V), "LogSoftmax": (nn.LogSoftmax(1), V), "Softmin": (nn.Softmin(1), V),
    "Softmax2d": (nn.Softmax2d(), L), "Threshold": (nn.Threshold(0.1, 2.0), V),
    "Linear": (nn.Linear(4, 3), V), "Bilinear": (nn.Bilinear(4, 4, 2), V, V), "Flatten": (nn.Flatten(), S),
    "Unflatten": (nn.Unflatten(1, (2, 2)), V), "Conv1d": (nn.Conv1d(4, 2, 3), S), "Conv2d": (nn.Conv2d(4, 2, 3, 2, 1), L),
    "Conv3d": (nn.Conv3d(2, 2, 3, bias=False), I3), "ConvTranspose1d": (nn.ConvTranspose1d(4, 2, 3), S),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 2, 3, 2), L), "ConvTranspose3d": (nn.ConvTranspose3d(2, 2, 2), I3),
    "BatchNorm1d": (nn.BatchNorm1d(4), V), "BatchNorm2d": (nn.BatchNorm2d(4), L), "BatchNorm3d": (nn.BatchNorm3d(2), I3),
    "SyncBatchNorm": (nn.SyncBatchNorm(4), V), "InstanceNorm1d": (nn.InstanceNorm1d(4, track_running_stats=True), S),
    "InstanceNorm2d": (nn.InstanceNorm2d(4), L), "InstanceNorm3d": (nn.InstanceNorm3d(2), I3),
    "LayerNorm": (nn.LayerNorm(4), V), "GroupNorm": (nn.GroupNorm(2, 4), V), "RMSNorm": (nn.RMSNorm(4), V),
    "LocalResponseNorm": (nn.LocalResponseNorm(2), L), "CrossMapLRN2d": (nn.CrossMapLRN2d(2), L),
    "AvgPool1d": (nn.AvgPool1d(2), S), "AvgPool2d": (nn.AvgPool2d(2), L), "AvgPool3d": (nn.AvgPool3d(2), I3),
    "MaxPool1d": (nn.MaxPool1d(2), S), "MaxPool2d": (nn.MaxPool2d(2), L), "MaxPool3d": (nn.MaxPool3d(2), I3),
    "LPPool1d": (nn.LPPool1d(2, 2), S), "LPPool2d": (nn.LPPool2d(2, 2), L), "LPPool3d": (nn.LPPool3d(2, 2), I3),
    "AdaptiveAvgPool1d": (nn.AdaptiveAvgPool1d(2), S), "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d(2), L),
    "AdaptiveAvgPool3d": (nn.AdaptiveAvgPool3d(2), I3), "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(2), S),
    "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d(2), L), "AdaptiveMaxPool3d": (nn.AdaptiveMaxPool3d(2), I3),
    "Dropout": (nn.Dropout(), V), "Dropout1d": (nn.Dropout1d(), S), "Dropout2d": (nn.Dropout2d(), L),
    "Dropout3d": (nn.Dropout3d(), I3), "AlphaDropout": (nn.AlphaDropout(), V),
    "FeatureAlphaDropout": (nn.FeatureAlphaDropout(), V), "ChannelShuffle": (nn.ChannelShuffle(2), L),
    "PixelShuffle": (nn.PixelShuffle(2), L), "PixelUnshuffle": (nn.PixelUnshuffle(2), L),
    "Fold": (nn.Fold((3, 3), (2, 2)), (1, 8, 4)), "Unfold": (nn.Unfold((2, 2)), L),
    "Upsample": (nn.Upsample(scale_factor=2), L), "UpsamplingBilinear2d": (nn.UpsamplingBilinear2d(scale_factor=2), L),
    "UpsamplingNearest2d": (nn.UpsamplingNearest2d(scale_factor=2), L),
    **{f"{kind}Pad{d}d": (getattr(nn, f"{kind}Pad{d}d")(1, *([0.5] if kind == "Constant" else [])), (S, L, I3)[d - 1])
       for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for d in (1, 2, 3)},
    "RNN": (nn.RNN(6, 2), S), "GRU": (nn.GRU(6, 2, 2), S), "LSTM": (nn.LSTM(6, 2, bidirectional=True), S),
    "RNNCell": (nn.RNNCell(4, 2), V), "GRUCell": (nn.GRUCell(4, 2), V), "LSTMCell": (nn.LSTMCell(4, 2), V),
    "MultiheadAttention": (nn.MultiheadAttention(6, 2), S, S, S),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(6, 2, 8), S),
    "TransformerEncoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, activation="gelu"), 2), S),
    "TransformerDecoderLayer": (nn.TransformerDecoderLayer(6, 2, 8), S, S),
    "TransformerDecoder": (nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 1), S, S),
    "Transformer": (nn.Transformer(6, 2, 1, 1, 8), S, S),
    "TripletMarginLoss": (nn.TripletMarginLoss(), V, V, V),
    "Sequential": (nn.Sequential(collections.OrderedDict(a=nn.Linear(4, 3), b=nn.Tanh(), c=nn.Linear(3, 2))), V),
    "Sequential copy": (copy.deepcopy(nn.Sequential(nn.Linear(4, 4), nn.Softplus(), nn.Linear(4, 1))), V),
    "Sequential shallow copy": (copy.copy(nn.Sequential(nn.Linear(4, 4), nn.SiLU())), V),
    "DataParallel": (nn.DataParallel(nn.Linear(4, 2)), V),
    "weight norm": (parametrizations.weight_norm(nn.Linear(4, 3)), V),
    "spectral norm": (parametrizations.spectral_norm(nn.Linear(4, 3)), V),
    "orthogonal": (parametrizations.orthogonal(nn.Linear(4, 4)), V),
    "weight norm, old": (nn.utils.weight_norm(nn.Linear(4, 3)), V),
    "spectral norm, old": (nn.utils.spectral_norm(nn.Linear(4, 3)), V),
    "pruned": (prune.l1_unstructured(nn.Linear(4, 3), "weight", 2), V),
    "AveragedModel": (swa_utils.AveragedModel(nn.Linear(4, 3)), V),
    "half": (nn.Linear(4, 2).double(), V),
}  # fmt: skip
LABELLED = {  # of (3, 4) and a label for each row
    "CrossEntropyLoss": nn.CrossEntropyLoss(), "NLLLoss": nn.NLLLoss(), "NLLLoss2d": nn.NLLLoss2d(),
    "MultiMarginLoss": nn.MultiMarginLoss(), "AdaptiveLogSoftmaxWithLoss": nn.AdaptiveLogSoftmaxWithLoss(4, 4, [2]),
}  # fmt: skip
INDEXED = {"Embedding": nn.Embedding(5, 3, padding_idx=1), "EmbeddingBag": nn.EmbeddingBag(5, 3, mode="sum")}
EMPTY = {  # without a call
    "Module": nn.Module(), "Container": nn.Container(), "ModuleList": nn.ModuleList([nn.ReLU(), nn.Linear(2, 1)]),
    "ModuleDict": nn.ModuleDict({"a": nn.Tanh()}), "ParameterList": nn.ParameterList([tensor(2)]),
    "ParameterDict": nn.ParameterDict({"p": tensor(3)}), "BCELoss": nn.BCELoss(), "CTCLoss": nn.CTCLoss(),
    "GaussianNLLLoss": nn.GaussianNLLLoss(), "CosineEmbeddingLoss": nn.CosineEmbeddingLoss(), "MarginRankingLoss": nn.MarginRankingLoss(),
    "MultiLabelMarginLoss": nn.MultiLabelMarginLoss(), "LinearCrossEntropyLoss": nn.LinearCrossEntropyLoss(4, 3),
    "TripletMarginWithDistanceLoss": nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance()),
    "FractionalMaxPool2d": nn.FractionalMaxPool2d(2, output_size=3),
    "FractionalMaxPool3d": nn.FractionalMaxPool3d(2, output_size=3),
    **{f"MaxUnpool{d}d": getattr(nn, f"MaxUnpool{d}d")(2) for d in (1, 2, 3)},
    **{f"Lazy{n}": getattr(nn, f"Lazy{n}")(2, 3) for n in (
        "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")},
    **{f"Lazy{n}": getattr(nn, f"Lazy{n}")() for n in (
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")},
    "LazyLinear": nn.LazyLinear(2),
}  # fmt: skip

# ----------------------------------------------------------------------------------------------------------- optimizers

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True}, "Adam": {"amsgrad": True}, "AdamW": {}, "NAdam": {}, "RAdam": {},
    "Adamax": {}, "Adagrad": {}, "Adadelta": {}, "Adafactor": {}, "ASGD": {}, "RMSprop": {"momentum": 0.5, "centered": True},
    "Rprop": {}, "LBFGS": {"max_iter": 3}, "Muon": {},
}  # fmt: skip
SCHEDULES = {
    "StepLR": {"step_size": 2}, "MultiStepLR": {"milestones": [2, 4]}, "ConstantLR": {"total_iters": 3}, "LinearLR": {},
    "ExponentialLR": {"gamma": 0.9}, "PolynomialLR": {}, "CosineAnnealingLR": {"T_max": 5},
    "CosineAnnealingWarmRestarts": {"T_0": 3}, "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1},
    "OneCycleLR": {"max_lr": 0.2, "total_steps": 10}, "LambdaLR": {"lr_lambda": None}, "MultiplicativeLR": {"lr_lambda": None},
    "ReduceLROnPlateau": {"patience": 0},
}  # fmt: skip


def set_gradients(parameters):
    for p in parameters:
        p.grad = p.detach() * 0.5 + 0.25


def stepping(name, settings):
    ps = [nn.Parameter(tensor(3, 2)), *([] if name == "Muon" else [nn.Parameter(tensor(4, first=3))])]
    opt = getattr(optim, name)(ps, **settings)

    def closure():
        opt.zero_grad()
        loss = sum((p**4).sum() + (p * 0.3).sum() for p in ps)
        loss.backward()
        return loss

    for _ in range(2):
        if name == "LBFGS":
            opt.step(closure)
        else:
            set_gradients(ps)
            opt.step()
    return {"parameters": ps, "optimizer": opt}


def scheduled(name, settings):
    ps = [nn.Parameter(tensor(3))]
    opt = optim.SGD(ps, lr=0.05, momentum=0.9)
    settings = {k: epoch if k == "lr_lambda" else v for k, v in settings.items()}
    schedule = getattr(lr_scheduler, name)(opt, **settings)
    for _ in range(2):
        advance(opt, schedule)
    return {"optimizer": opt, "scheduler": schedule}


epoch = nn.Identity()  # the factor of LambdaLR is the epoch itself: lambdas do not pickle


def advance(opt, schedule):
    set_gradients(opt.param_groups[0]["params"])
    opt.step()
    schedule.step(*([1.0] if isinstance(schedule, lr_scheduler.ReduceLROnPlateau) else []))


# -------------------------------------------------------------------------------------------------------- distributions

POSITIVE, UNIT, REAL = (
    tg.tensor([0.5, 1.5], dtype=F64),
    tg.tensor([0.25, 0.75], dtype=F64),
    tg.tensor([-0.5, 2.0], dtype=F64),
)
SPREAD = tg.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=F64)
NORMAL = dist.Normal(REAL, POSITIVE)
DISTRIBUTIONS = {  # and a value
    "Bernoulli": (dist.Bernoulli(UNIT), [0.0, 1.0]), "Beta": (dist.Beta(POSITIVE, POSITIVE), UNIT),
    "Binomial": (dist.Binomial(4, UNIT), [1.0, 2.0]), "Categorical": (dist.Categorical(UNIT), [0, 1]),
    "Cauchy": (dist.Cauchy(REAL, POSITIVE), REAL), "Chi2": (dist.Chi2(POSITIVE), POSITIVE),
    "ContinuousBernoulli": (dist.ContinuousBernoulli(UNIT), UNIT), "Dirichlet": (dist.Dirichlet(POSITIVE), UNIT),
    "Exponential": (dist.Exponential(POSITIVE), POSITIVE), "FisherSnedecor": (dist.FisherSnedecor(POSITIVE, POSITIVE), UNIT),
    "Gamma": (dist.Gamma(POSITIVE, POSITIVE), POSITIVE), "Geometric": (dist.Geometric(UNIT), [1.0, 3.0]),
    "GeneralizedPareto": (dist.GeneralizedPareto(REAL, POSITIVE, UNIT), [2.0, 3.0]),
    "Gumbel": (dist.Gumbel(REAL, POSITIVE), REAL), "HalfCauchy": (dist.HalfCauchy(POSITIVE), POSITIVE),
    "HalfNormal": (dist.HalfNormal(POSITIVE), POSITIVE), "Independent": (dist.Independent(NORMAL, 1), REAL),
    "InverseGamma": (dist.InverseGamma(POSITIVE, POSITIVE), POSITIVE), "Kumaraswamy": (dist.Kumaraswamy(POSITIVE, POSITIVE), UNIT),
    "LKJCholesky": (dist.LKJCholesky(2, 0.5), [[1.0, 0.0], [0.6, 0.8]]), "Laplace": (dist.Laplace(REAL, POSITIVE), REAL),
    "LogNormal": (dist.LogNormal(REAL, POSITIVE), POSITIVE), "LogisticNormal": (dist.LogisticNormal(REAL, POSITIVE), [0.2, 0.3, 0.5]),
    "LowRankMultivariateNormal": (dist.LowRankMultivariateNormal(REAL, SPREAD[:, :1], POSITIVE), REAL),
    "MixtureSameFamily": (dist.MixtureSameFamily(dist.Categorical(UNIT), NORMAL), REAL),
    "Multinomial": (dist.Multinomial(3, UNIT), [1.0, 2.0]), "MultivariateNormal": (dist.MultivariateNormal(REAL, SPREAD), REAL),
    "NegativeBinomial": (dist.NegativeBinomial(POSITIVE, UNIT), [1.0, 3.0]), "Normal": (NORMAL, REAL),
    "OneHotCategorical": (dist.OneHotCategorical(UNIT), [0.0, 1.0]),
    "OneHotCategoricalStraightThrough": (dist.OneHotCategoricalStraightThrough(UNIT), [0.0, 1.0]),
    "Pareto": (dist.Pareto(POSITIVE, UNIT), [2.0, 3.0]), "Poisson": (dist.Poisson(POSITIVE), [1.0, 3.0]),
    "RelaxedBernoulli": (dist.RelaxedBernoulli(POSITIVE[0], UNIT), UNIT),
    "RelaxedOneHotCategorical": (dist.RelaxedOneHotCategorical(POSITIVE[0], UNIT), UNIT),
    "StudentT": (dist.StudentT(POSITIVE, REAL, POSITIVE), REAL),
    "TransformedDistribution": (dist.TransformedDistribution(NORMAL, [dist.ExpTransform(), dist.AffineTransform(0.0, 2.0)]), POSITIVE),
    "Uniform": (dist.Uniform(REAL, REAL + 3), [1.0, 3.0]), "VonMises": (dist.VonMises(REAL, POSITIVE), REAL),
    "Weibull": (dist.Weibull(POSITIVE, POSITIVE), POSITIVE), "Wishart": (dist.Wishart(POSITIVE[1] + 1, SPREAD), SPREAD),
}  # fmt: skip
TRANSFORMS = {  # and a point
    "AbsTransform": (dist.AbsTransform(), REAL), "AffineTransform": (dist.AffineTransform(REAL, POSITIVE), REAL),
    "CatTransform": (dist.CatTransform([dist.ExpTransform(), dist.TanhTransform()], lengths=[1, 1]), REAL),
    "ComposeTransform": (dist.ComposeTransform([dist.ExpTransform(), dist.PowerTransform(POSITIVE)]), REAL),
    "CorrCholeskyTransform": (dist.CorrCholeskyTransform(), REAL[:1]),
    "CumulativeDistributionTransform": (dist.CumulativeDistributionTransform(NORMAL), REAL),
    "ExpTransform": (dist.ExpTransform(), REAL), "IndependentTransform": (dist.IndependentTransform(dist.ExpTransform(), 1), REAL),
    "LowerCholeskyTransform": (dist.LowerCholeskyTransform(), SPREAD), "PowerTransform": (dist.PowerTransform(POSITIVE), POSITIVE),
    "PositiveDefiniteTransform": (dist.PositiveDefiniteTransform(), SPREAD),
    "ReshapeTransform": (dist.ReshapeTransform((2,), (1, 2)), REAL), "SigmoidTransform": (dist.SigmoidTransform(), REAL),
    "SoftmaxTransform": (dist.SoftmaxTransform(), REAL), "SoftplusTransform": (dist.SoftplusTransform(), REAL),
    "StackTransform": (dist.StackTransform([dist.ExpTransform(), dist.TanhTransform()]), REAL),
    "StickBreakingTransform": (dist.StickBreakingTransform(), REAL), "TanhTransform": (dist.TanhTransform(), REAL),
}  # fmt: skip

# --------------------------------------------------------------------------------------------------------- other values


def attributed():
    p = nn.Parameter(tensor(2, 3))
    p.note = "kept"
    return p


def generator():
    g = tg.Generator().manual_seed(7)
    tg.randn(5, generator=g)
    return g


def scaler():
    s = tg.amp.GradScaler("cpu", init_scale=8.0, enabled=True)
    s.scale(tg.ones(1))
    return s


def layer_error():
    """What a layer raises carries the layer's name."""
    try:
        nn.Sequential(nn.Linear(2, 3))(tensor(4))
    except RuntimeError as e:
        return e


def with_grad():
    x = tensor(3).requires_grad_()
    (x * x).sum().backward()
    return x


VALUES = {
    **{str(d).split(".")[-1]: tg.tensor([0, 1, 2]).to(d) for d in (
        tg.float64, tg.float32, tg.float16, tg.int64, tg.int32, tg.int16, tg.int8, tg.uint8, tg.bool, tg.complex64,
        tg.complex128, tg.uint16, tg.uint32, tg.uint64)},
    "bfloat16": tg.tensor([0.5, 1.0, 2.0], dtype=tg.bfloat16), "scalar": tg.tensor(1.5), "empty": tg.zeros(0, 3),
    "transposed": tensor(2, 3).t(), "leaf": tensor(2).requires_grad_(), "non-leaf": tensor(2).requires_grad_() * 2,
    "leaf with gradient": with_grad(), "number": tg.func.grad(lambda x: x**3)(tg.tensor(2.0, dtype=F64)),
    "parameter": nn.Parameter(tensor(3)), "frozen parameter": nn.Parameter(tensor(3), requires_grad=False),
    "parameter with attributes": attributed(), "buffer": nn.Buffer(tensor(2)),
    "uninitialized parameter": nn.UninitializedParameter(dtype=F64), "uninitialized buffer": nn.UninitializedBuffer(),
    "sparse": tg.sparse_coo_tensor([[0, 2], [1, 0]], [1.5, 2.5], (3, 2)),
    "dtypes": [tg.float32, tg.int64, tg.bool, tg.complex128, tg.strided, tg.sparse_coo, tg.contiguous_format, tg.channels_last],
    "size": tg.Size([2, 3]), "device": tg.device("cpu"), "jax device": tg.device("jax:0"),
    "maximum": tg.max(tensor(3, 2), 0), "svd": tg.linalg.svd(SPREAD), "sorted": tg.sort(tensor(4)),
    "packed": rnn.pack_padded_sequence(tensor(4, 2, 3), [4, 2]), "generator": generator(),
    "dataset": data.TensorDataset(tensor(4, 2), tensor(4)), "subset": data.Subset(data.TensorDataset(tensor(4)), [2, 0]),
    "concatenated": data.ConcatDataset([data.TensorDataset(tensor(2)), data.TensorDataset(tensor(3))]),
    "stacked": data.StackDataset(a=data.TensorDataset(tensor(2))), "chained": data.ChainDataset([]),
    "sampler": data.SequentialSampler([1, 2, 3]), "random sampler": data.RandomSampler([1, 2, 3]),
    "weighted sampler": data.WeightedRandomSampler([0.5, 0.5], 2), "batches": data.BatchSampler([1, 2, 3], 2, True),
    "subset sampler": data.SubsetRandomSampler([1, 2]), "loader": data.DataLoader(data.TensorDataset(tensor(4)), 2),
    "scaler": scaler(), "constraint": dist.constraints.interval(0.0, 1.0),
    "constraints": [dist.constraints.real, dist.constraints.simplex, dist.constraints.independent(dist.constraints.real, 1)],
    "functions": [tg.sin, tg.matmul, nn.functional.relu, nn.functional.gelu, nn.init.zeros_, tg.linalg.norm, tg.no_grad],
    "compiled": tg.compile(filled(nn.Linear(4, 3))), "compiled function": tg.compile(tg.sin), "module error": layer_error(),
}  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------- files


def arrays_of(value):
    """The tensors in a result, as arrays."""
    if isinstance(value, tg.Tensor):
        t = value.detach()
        return [(t.to_dense() if t.is_sparse else t.float() if t.dtype is tg.bfloat16 else t).numpy()]
    return [a for v in value for a in arrays_of(v)] if isinstance(value, list | tuple) else []


def public_names():
    """(module, qualified name, public path) of the public classes and functions."""
    pages = """
        tapegrad amp autograd autograd.forward_ad autograd.function autograd.functional autograd.graph custom distributions
        distributions.constraints distributions.transforms distributions.kl fft func linalg masked nn nn.functional nn.init
        nn.parameter nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn optim
        optim.lr_scheduler optim.swa_utils random sparse special testing utils.checkpoint utils.data
    """.split()
    rows = {}
    for page in pages:
        path = page if page == "tapegrad" else f"tapegrad.{page}"
        module = importlib.import_module(path)
        for name in sorted(getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]):
            value = getattr(module, name, None)
            if isinstance(value, types.ModuleType) or not callable(value):
                continue
            try:
                pickle.dumps(value, 0)
            except Exception:
                continue
            if getattr(value, "__qualname__", None) and str(value.__module__).startswith("tapegrad"):
                rows.setdefault((value.__module__, value.__qualname__), f"{path}.{name}")
    return [(*key, path) for key, path in sorted(rows.items())]


class Archive:
    def __init__(self):
        self.file = zipfile.ZipFile(HERE / "pickles.zip", "w", zipfile.ZIP_DEFLATED)
        self.arrays, self.texts = {}, {}

    def add(self, name, value, protocol=4):
        """Write the pickle, and give what reading it back makes."""
        written = pickle.dumps(value, protocol)
        self.file.writestr(zipfile.ZipInfo(f"{name}.pkl"), written, zipfile.ZIP_DEFLATED)
        again = pickle.loads(written)
        self.texts[name] = repr(again)
        return again

    def expect(self, name, inputs=(), outputs=()):
        for kind, arrays in (("in", inputs), ("out", outputs)):
            for i, a in enumerate(arrays):
                self.arrays[f"{name}/{kind}{i}"] = a

    def close(self):
        self.file.close()
        with zipfile.ZipFile(HERE / "expected.npz", "w", zipfile.ZIP_DEFLATED) as z:  # np.savez notes the time
            for name, a in self.arrays.items():
                info = zipfile.ZipInfo(f"{name}.npy")
                info.compress_type = zipfile.ZIP_DEFLATED
                with z.open(info, "w") as f:
                    np.lib.format.write_array(f, np.asarray(a), allow_pickle=False)
        texts = {
            k: v for k, v in self.texts.items() if " at 0x" not in v and not v.startswith("OrderedDict")
        }  # as Python has it
        (HERE / "expected.json").write_text(json.dumps(texts, indent=0) + "\n")


def write_modules(archive):
    calls = {name: (m, [numbers(*s, first=i) for i, s in enumerate(shapes)]) for name, (m, *shapes) in LAYERS.items()}
    calls |= {name: (m, [numbers(3, 4), np.array([0, 3, 1])]) for name, m in LABELLED.items()}
    calls |= {name: (m, [np.array([[0, 1], [4, 2]])]) for name, m in INDEXED.items()}
    for name, (module, inputs) in calls.items():
        filled(module)
        inputs = [a if a.dtype.kind == "i" else a.astype(np.float64 if name == "half" else np.float32) for a in inputs]
        again = archive.add(f"modules/{name}", module)
        archive.expect(f"modules/{name}", inputs, arrays_of(again(*map(tg.tensor, inputs))))
    for name, module in EMPTY.items():
        archive.add(f"modules/{name}" if name not in calls else f"modules/{name} itself", module)


def write_pickles():
    archive = Archive()
    write_modules(archive)
    for name, settings in OPTIMIZERS.items():
        again = archive.add(f"optimizers/{name}", stepping(name, settings))
        if name != "LBFGS":
            set_gradients(again["parameters"])
            again["optimizer"].step()
        archive.expect(f"optimizers/{name}", (), arrays_of(again["parameters"]))
    for name, settings in SCHEDULES.items():
        again = archive.add(f"schedulers/{name}", scheduled(name, settings))
        rates = []
        for _ in range(4):
            advance(**{"opt": again["optimizer"], "schedule": again["scheduler"]})
            rates.append(again["optimizer"].param_groups[0]["lr"])
        archive.expect(f"schedulers/{name}", (), [np.array(rates)])
    for name, (d, value) in DISTRIBUTIONS.items():
        value = np.asarray(value, np.float64)
        again = archive.add(f"distributions/{name}", d)
        archive.expect(f"distributions/{name}", [value], arrays_of(again.log_prob(tg.tensor(value))))
    for name, (t, point) in TRANSFORMS.items():
        again = archive.add(f"transforms/{name}", t)
        archive.expect(f"transforms/{name}", [point.numpy()], arrays_of(again(point)))
    for name, value in VALUES.items():
        again = archive.add(f"values/{name}", value)
        if name == "generator":
            archive.expect(f"values/{name}", (), arrays_of([tg.randn(5, generator=again), tg.randperm(9, generator=again)]))
        elif not name.startswith("uninitialized"):
            archive.expect(f"values/{name}", (), arrays_of(again))
    net = filled(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    archive.expect("values/state dict", (), arrays_of(list(archive.add("values/state dict", net.state_dict()).values())))
    for protocol in range(6):
        archive.add(f"values/protocol {protocol}", [tensor(2, 2), nn.Parameter(tensor(2)), tg.float16], protocol)
        archive.expect(f"values/protocol {protocol}", (), arrays_of([tensor(2, 2), tensor(2)]))
    archive.close()


def write_files():
    block = tensor(3, 4)
    shared = {"block": block, "row": block[1], "turned": block.t()}
    p = attributed()
    everything = {
        "dtypes": {str(d): tg.tensor([0, 1, 2]).to(d) for d in (
            tg.float64, tg.float32, tg.float16, tg.int64, tg.int32, tg.int16, tg.int8, tg.uint8, tg.bool, tg.complex64,
            tg.complex128)},
        "shared": shared, "parameter": p, "leaf": tensor(2).requires_grad_(), "scalar": tg.tensor(1.5), "empty": tg.zeros(0, 3),
        "size": tg.Size([2, 3]), "dtype": tg.float16, "device": tg.device("cpu"), "plain": [1, 2.5, None, True, "text", b"b", 1j],
        "sparse": VALUES["sparse"], "same": [p, p],
    }  # fmt: skip
    tg.save(everything, HERE / "tensors.pt")
    tg.save(everything, HERE / "tensors_legacy.pt", _use_new_zipfile_serialization=False)
    net = filled(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    opt = optim.Adam(net.parameters(), lr=0.125)
    schedule = lr_scheduler.StepLR(opt, 2)
    set_gradients(net.parameters())
    opt.step(), schedule.step()
    tg.manual_seed(3)
    tg.save(
        {"model": net.state_dict(), "optimizer": opt.state_dict(), "scheduler": schedule.state_dict(), "epoch": 1,
         "random": tg.get_rng_state()}, HERE / "checkpoint.pt",
    )  # fmt: skip
    tg.save(net, HERE / "module.pt")
    named = {"a.weight": tensor(2, 3), "half": tensor(2).half(), "whole": tg.arange(3)}
    tg.save(named, HERE / "weights.safetensors")
    tg.save(named, HERE / "arrays.npz")


if __name__ == "__main__":
    write_pickles()
    write_files()
    (HERE / "globals.tsv").write_text("".join("\t".join(row) + "\n" for row in public_names()))
