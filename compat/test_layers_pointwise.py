"""Activations, losses, distances and the adaptive softmax against PyTorch's; and nn.functional's names and signatures."""

import inspect
import re
import warnings

import pytest
from layers import BOTH, Case, check, public_layers, signature

import tapegrad as tg

torch = pytest.importorskip("torch")
F = torch.nn.functional

MATRIX = (4, 3)


def act(name, *args, shape=MATRIX, **kwargs):
    return Case(lambda m: getattr(m.nn, name)(*args, **kwargs), (shape,))


def in_place(name, *args):
    return Case(lambda m: getattr(m.nn, name)(*args, inplace=True), (MATRIX,), lambda layer, x: layer(x * 2))


ACTIVATIONS = {
    **{
        name: act(name)
        for name in (
            "CELU", "ELU", "GELU", "Hardshrink", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish",
            "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "Sigmoid", "SiLU", "Softplus", "Softshrink", "Softsign", "Tanh",
            "Tanhshrink",
        )
    },
    **{
        f"{name} in place": in_place(name, *args)
        for name, *args in (
            ("CELU", 1.5), ("ELU", 0.7), ("Hardswish",), ("Hardtanh", -0.5, 1.5), ("LeakyReLU", 0.2),
            ("Mish",), ("ReLU",), ("ReLU6",), ("RReLU", 0.1, 0.4), ("SELU",), ("SiLU",), ("Threshold", 0.1, 2.0),
        )
    },
    # PyTorch rounds 1 / 6 to float32 in its gradient, which has no derivative
    "Hardsigmoid": Case(lambda m: m.nn.Hardsigmoid(), (MATRIX,), orders=1, tol=1e-7),
    "Hardsigmoid in place": Case(lambda m: m.nn.Hardsigmoid(True), (MATRIX,), lambda layer, x: layer(x * 2), 1, 1e-7),
    "CELU 2": act("CELU", 2.0), "ELU -1": act("ELU", alpha=3), "GELU tanh": act("GELU", approximate="tanh"),
    "GLU": act("GLU", shape=(3, 4)), "GLU 0": act("GLU", dim=0, shape=(4, 3)), "Hardshrink 1": act("Hardshrink", 1),
    "Hardtanh 2": act("Hardtanh", min_val=-0.1, max_val=0.4), "LeakyReLU 1": act("LeakyReLU", negative_slope=1),
    "PReLU 3": act("PReLU", 3, init=0.1), "PReLU channels": act("PReLU", num_parameters=3, shape=(2, 3, 4)),
    "RReLU eval": Case(lambda m: m.nn.RReLU(0.1, 0.3).eval(), (MATRIX,)),
    "Softplus 100": act("Softplus", beta=100), "Softplus low": act("Softplus", 2.0, threshold=0.5),
    "Softshrink 0": act("Softshrink", 0.0), "Threshold": act("Threshold", 0.1, 20.0),
    "Softmax": act("Softmax", dim=1), "Softmin": act("Softmin", dim=-1), "LogSoftmax": act("LogSoftmax", dim=0),
    "Softmax2d": act("Softmax2d", shape=(2, 3, 2, 2)), "Softmax2d single": act("Softmax2d", shape=(3, 2, 2)),
}  # fmt: skip


def loss(name, *inputs, make=None, **options):
    orders = 1 if "Margin" in name and "Multi" in name and "Soft" not in name else 2  # no second derivative in PyTorch
    doubles = any(i in (signs, counts, weights) or getattr(i, "doubles", False) for i in inputs)
    return Case(
        make or (lambda m: getattr(m.nn, name)(**options)), inputs or (MATRIX, MATRIX), orders=orders, single=not doubles
    )


def signs(m):
    return m.tensor([1.0, -1.0, -1.0, 1.0], dtype=m.float64)


def share(*shape):
    """Numbers in (0, 1) without gradients, of any float dtype."""

    def numbers(m):
        return (m.arange(1, 1 + torch.Size(shape).numel(), dtype=m.float64) / 20).reshape(shape)

    numbers.doubles = True
    return numbers


def counts(m):
    return m.tensor([[0.0, 1.0, 2.0], [3.0, 5.0, 1.0], [0.0, 0.0, 7.0], [2.0, 2.0, 2.0]], dtype=m.float64)


def labels(m):
    return m.tensor([0, 2, 1, 2])


def ignored(m):
    return m.tensor([0, 2, 1, -100])


def weights(m):
    return m.tensor([0.5, 1.0, 2.0], dtype=m.float64)


def reductions(name, *inputs, **options):
    return {f"{name} {r} {options or ''}": loss(name, *inputs, reduction=r, **options) for r in ("mean", "sum", "none")}


def weighted(name, target, **options):
    return loss(name, MATRIX, target, make=lambda m: getattr(m.nn, name)(weight=weights(m), **options))


def probabilities(layer, x, *rest):
    return layer(x.sigmoid(), *rest)


def cosines(m, a, b):
    return 1 - m.nn.functional.cosine_similarity(a, b)


PAIR = ((4, 3), (4, 3))
SEQUENCES = (
    (5, 2, 4), lambda m: m.tensor([[1, 2, 3], [2, 2, 0]]), lambda m: m.tensor([5, 4]), lambda m: m.tensor([3, 2])
)  # fmt: skip
LOSSES = {
    **reductions("L1Loss"), **reductions("MSELoss"), **reductions("SmoothL1Loss"), "smooth": loss("SmoothL1Loss", beta=0.3),
    **reductions("HuberLoss"), "huber": loss("HuberLoss", delta=0.3), **reductions("SoftMarginLoss", (4,), signs),
    **reductions("PoissonNLLLoss", MATRIX, counts), "poisson full": loss("PoissonNLLLoss", MATRIX, counts, full=True),
    "poisson rate": Case(
        lambda m: m.nn.PoissonNLLLoss(log_input=False, eps=1e-3), (MATRIX, counts), lambda net, x, t: net(x.exp(), t)
    ),
    **reductions("GaussianNLLLoss", *PAIR, share(4, 3)), "gauss": loss("GaussianNLLLoss", *PAIR, share(4, 1), full=True),
    "gauss floor": loss("GaussianNLLLoss", *PAIR, share(4, 3), eps=0.3),
    "gauss number": loss("GaussianNLLLoss", *PAIR, lambda m: 0.7),
    **reductions("KLDivLoss", MATRIX, share(4, 3)),
    "kl batch": loss("KLDivLoss", MATRIX, share(4, 3), reduction="batchmean"),
    "kl logs": loss("KLDivLoss", *PAIR, reduction="batchmean", log_target=True),
    "bce": Case(lambda m: m.nn.BCELoss(), (MATRIX, share(4, 3)), probabilities, single=False),
    "bce weight": Case(
        lambda m: m.nn.BCELoss(weights(m), reduction="sum"), (MATRIX, share(4, 3)), probabilities, single=False
    ),
    **reductions("BCEWithLogitsLoss", MATRIX, share(4, 3)), "logits": weighted("BCEWithLogitsLoss", share(4, 3)),
    "logits pos": loss(
        "", MATRIX, share(4, 3), make=lambda m: m.nn.BCEWithLogitsLoss(pos_weight=weights(m), weight=weights(m) / 2)
    ),
    **reductions("HingeEmbeddingLoss", (4,), signs), "hinge": loss("HingeEmbeddingLoss", (4,), signs, margin=0.2),
    **reductions("NLLLoss", MATRIX, ignored), "nll": weighted("NLLLoss", labels, ignore_index=1),
    "nll images": loss("NLLLoss", (2, 3, 2, 2), ("long", 3, (2, 2, 2))),
    "nll 2d": loss("NLLLoss2d", (2, 3, 2, 2), ("long", 3, (2, 2, 2))),
    **reductions("CrossEntropyLoss", MATRIX, ignored), "ce": weighted("CrossEntropyLoss", labels, label_smoothing=0.2),
    "ce ignoring": loss("CrossEntropyLoss", MATRIX, labels, ignore_index=2, label_smoothing=0.1),
    "ce shares": loss("CrossEntropyLoss", MATRIX, share(4, 3), label_smoothing=0.1),
    "ce one": loss("CrossEntropyLoss", (3,), lambda m: m.tensor(1)),
    "linear ce": Case(lambda m: m.nn.LinearCrossEntropyLoss(3, 5), (MATRIX, ("long", 5, (4,)))),
    "linear ce bias": Case(
        lambda m: m.nn.LinearCrossEntropyLoss(
            3, 3, bias=True, weight=weights(m), ignore_index=1, label_smoothing=0.1, reduction="sum"
        ),
        (MATRIX, labels),
    ),
    "linear ce sizes": Case(
        lambda m: m.nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), bias=True), (MATRIX, ("long", 5, (4, 2)))
    ),
    **reductions("MultiMarginLoss", MATRIX, labels), "margin": weighted("MultiMarginLoss", labels, p=2, margin=0.5),
    **reductions("MultiLabelMarginLoss", MATRIX, lambda m: m.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 0], [2, 1, 0]])),
    **reductions("MultiLabelSoftMarginLoss", MATRIX, share(4, 3)), "soft": weighted("MultiLabelSoftMarginLoss", share(4, 3)),
    **reductions("CosineEmbeddingLoss", *PAIR, signs), "cosine": loss("CosineEmbeddingLoss", *PAIR, signs, margin=0.1),
    **reductions("MarginRankingLoss", (4,), (4,), signs),
    "ranking": loss("MarginRankingLoss", (4,), (4,), signs, margin=0.5),
    **reductions("TripletMarginLoss", *PAIR, (4, 3)), "triplet": loss("TripletMarginLoss", *PAIR, (4, 3), margin=2.0, p=3.0),
    "triplet swap": loss("TripletMarginLoss", *PAIR, (4, 3), swap=True, eps=1e-3),
    **reductions("TripletMarginWithDistanceLoss", *PAIR, (4, 3)),
    "distance": Case(
        lambda m: m.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: cosines(m, a, b), margin=0.3, swap=True),
        (*PAIR, (4, 3)),
    ),
    "ctc": Case(lambda m: m.nn.CTCLoss(), SEQUENCES, lambda net, x, *rest: net(x.log_softmax(2), *rest), 1),
    "ctc none": Case(
        lambda m: m.nn.CTCLoss(blank=1, reduction="none", zero_infinity=True),
        ((5, 2, 4), lambda m: m.tensor([[0, 2, 3], [2, 2, 0]]), *SEQUENCES[2:]),
        lambda net, x, *rest: net(x.log_softmax(2), *rest), 1,
    ),
}  # fmt: skip
OTHERS = {
    "CosineSimilarity": Case(lambda m: m.nn.CosineSimilarity(), PAIR),
    "CosineSimilarity 0": Case(lambda m: m.nn.CosineSimilarity(dim=0, eps=1e-3), PAIR),
    "PairwiseDistance": Case(lambda m: m.nn.PairwiseDistance(), PAIR),
    "PairwiseDistance 3": Case(lambda m: m.nn.PairwiseDistance(p=3.0, keepdim=True), PAIR),
    "adaptive": Case(
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 7], div_value=2.0, head_bias=True),
        ((6, 16), ("long", 12, (6,))),
    ),
    "adaptive shortlist": Case(lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 7]), ((6, 16), ("long", 3, (6,)))),
    "adaptive single": Case(lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 7]), ((16,), lambda m: m.tensor(9))),
    "adaptive logs": Case(
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 7]), ((6, 16),), lambda net, x: net.log_prob(x)
    ),
    "adaptive prediction": Case(
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(16, 12, [2, 7]), ((40, 16),), lambda net, x: net.predict(4 * x), 0
    ),
}  # fmt: skip
CASES = ACTIVATIONS | LOSSES | OTHERS


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides", "ignore:`NLLLoss2d` has been deprecated")
@pytest.mark.parametrize("name", CASES)
def test_layer(name):
    check(CASES[name])


OWN = ("activation", "loss", "distance", "adaptive")
LAYERS = sorted(
    n for n in public_layers(torch)
    if getattr(torch.nn, n).__module__.rpartition(".")[2] in OWN and n != "MultiheadAttention"
)  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_signature_of_layer(name):
    theirs, ours = (getattr(m.nn, name) for m in BOTH)
    assert signature(ours) == signature(theirs)
    if theirs.forward.__code__.co_varnames[1:2] != ("input",) or name.endswith("Loss"):
        assert [n for n, _ in signature(ours.forward)] == [n for n, _ in signature(theirs.forward)]


@pytest.mark.filterwarnings("ignore:`NLLLoss2d` has been deprecated")
def test_every_layer_is_a_case():
    tested = {type(case.make(tg)).__name__ for case in CASES.values()}
    assert set(LAYERS) == tested


@pytest.mark.filterwarnings("ignore:`NLLLoss2d` has been deprecated")
@pytest.mark.parametrize("name", LAYERS)
def test_attributes(name):
    """Public attributes of a layer made by the required arguments alone."""
    required = [p for p in inspect.signature(getattr(torch.nn, name)).parameters.values() if p.default is p.empty]
    kinds = [p for p in required if p.kind is p.POSITIONAL_OR_KEYWORD]
    args = [[3, 7] if p.name == "cutoffs" else 16 for p in kinds]

    def attributes(m):
        net = getattr(m.nn, name)(*args)
        return {k: v for k, v in vars(net).items() if not k.startswith("_") and not callable(v)}

    theirs, ours = map(attributes, BOTH)
    theirs.pop("call_super_init", None)
    assert ours == theirs


# ------------------------------------------------------------------------------------------------- warnings and errors

BAD = {
    "hardtanh bounds": lambda m: m.nn.Hardtanh(1.0, 1.0),
    "threshold": lambda m: m.nn.Threshold(0.1),
    "unknown": lambda m: m.nn.ELU(beta=1),
    "too many": lambda m: m.nn.ELU(1.0, False, 3),
    "sigmoid": lambda m: m.nn.Sigmoid(3),
    "softmax2d": lambda m: m.nn.Softmax2d()(m.ones(2, 2)),
    "huber": lambda m: m.nn.HuberLoss(delta="a"),
    "huber 0": lambda m: m.nn.HuberLoss(delta=0.0)(m.ones(2), m.ones(2)),
    "margin p": lambda m: m.nn.MultiMarginLoss(p=3),
    "margin weight": lambda m: m.nn.MultiMarginLoss(weight=m.ones(2, 2)),
    "triplet": lambda m: m.nn.TripletMarginLoss(margin=0.0),
    "triplet distance": lambda m: m.nn.TripletMarginWithDistanceLoss(margin=-1.0),
    "weight": lambda m: m.nn.NLLLoss(weight=3.0),
    "reduction": lambda m: m.nn.MSELoss(reduction="all")(m.ones(2), m.ones(2)),
    "one argument": lambda m: m.nn.MSELoss()(m.ones(2)),
    "gauss positional": lambda m: m.nn.GaussianNLLLoss(True),
    "linear ce weight": lambda m: m.nn.LinearCrossEntropyLoss(3, 4, weight=m.ones(3)),
    "linear ce smoothing": lambda m: m.nn.LinearCrossEntropyLoss(3, 4, label_smoothing=1.5),
    "no cutoffs": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, []),
    "cutoffs": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 3]),
    "last cutoff": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [5]),
    "adaptive batch": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(m.ones(2, 4), m.tensor([1])),
    "adaptive rank": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(m.ones(2, 1, 4), m.tensor([1, 1])),
    "adaptive scalar": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(m.ones(2, 4), m.tensor(1)),
    "adaptive targets": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(m.ones(1, 4), m.tensor([[1]])),
    "adaptive class": lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(m.ones(2, 4), m.tensor([1, 5])),
    "similarity": lambda m: m.nn.CosineSimilarity()(m.ones(2, 3), m.ones(2, 4)),
    "prelu": lambda m: m.nn.PReLU(3)(m.ones(2, 4)),
    "glu": lambda m: m.nn.GLU()(m.ones(3)),
}


@pytest.mark.parametrize("name", BAD)
def test_error(name):
    raised = []
    for m in BOTH:
        with pytest.raises(Exception) as info:
            BAD[name](m)
        raised.append((type(info.value), re.split(r"\. |\n", str(info.value))[0].rstrip(".")))
    (kind, theirs), (our_kind, ours) = raised
    assert our_kind is kind
    assert re.sub(r"^\w+\.forward", "", ours).startswith(re.sub(r"^\w+\.forward", "", theirs))


WARNINGS = [
    lambda m: m.nn.Hardtanh(min_value=-3.0),
    lambda m: m.nn.Hardtanh(max_value=3.0),
    lambda m: m.nn.L1Loss(size_average=False),
    lambda m: m.nn.NLLLoss(reduce=False),
    lambda m: m.nn.NLLLoss2d(),
    lambda m: m.nn.Softmax()(m.ones(2, 3)),
    lambda m: m.nn.Softmin()(m.ones(3)),
    lambda m: m.nn.LogSoftmax()(m.ones(2, 3)),
    lambda m: m.nn.MSELoss()(m.ones(2), m.ones(1)),
    lambda m: m.nn.KLDivLoss()(m.ones(2), m.ones(2)),
]


@pytest.mark.parametrize("program", WARNINGS)
def test_warning(program):
    seen = []
    for m in BOTH:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program(m)
        seen.append([(w.category, str(w.message), w.filename) for w in caught])
    (kind, text, _), = seen[0]  # fmt: skip
    ((our_kind, ours, file),) = seen[1]
    assert our_kind is kind and file == __file__ and text.startswith(ours.rstrip("."))


@pytest.mark.parametrize("name", ["MSELoss", "BCELoss", "NLLLoss", "BCEWithLogitsLoss"])
def test_old_reduction_names(name):
    for averaged in (None, True, False):
        for reduce in (None, True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = [getattr(m.nn, name)(size_average=averaged, reduce=reduce) for m in BOTH]
            assert made[0].reduction == made[1].reduction
            assert list(made[0]._buffers) == list(made[1]._buffers)


# ----------------------------------------------------------------------------------------------- nn.functional's surface

NOT_FUNCTIONS = "what PyTorch's module imports or uses itself"
LOW_PRECISION = "matrix products of GPU kernels with scaled or grouped operands"
MISSING = {
    **dict.fromkeys(
        ("Callable", "DType", "Optional", "Tensor", "assert_int_or_pair", "boolean_dispatch", "handle_torch_function",
         "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"), NOT_FUNCTIONS,
    ),
    **dict.fromkeys(("ScalingType", "SwizzleType", "grouped_mm", "scaled_grouped_mm", "scaled_mm"), LOW_PRECISION),
}  # fmt: skip


def public(module):
    return {n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))}


def test_names_of_functional():
    theirs, ours = (public(m.nn.functional) for m in BOTH)
    assert theirs - ours == set(MISSING)
    assert ours <= theirs


# Functions that PyTorch builds in describe their arguments in the first line of their help alone
UNDESCRIBED = {"conv_tbc": "(input, weight, bias, pad=0)"}
# Those that choose between two functions by return_indices take any arguments: the chosen one's are known
CHOSEN = re.compile(r"(adaptive|fractional)?_?max_pool\dd(_with_indices)?")
OPTIONAL = {"_stacklevel"}


def described(text):
    """Names and defaults of arguments as written in a help text."""
    found = []
    for part in re.sub(r"\s+", " ", text).split(","):
        name, _, default = part.strip().partition("=")
        if name.strip() and name.strip() != "*":
            found.append((name.strip(), eval(default, {"__builtins__": {}}) if default.strip() else inspect.Parameter.empty))
    return found


def their_signature(name):
    function = getattr(F, name)
    if CHOSEN.fullmatch(name):
        function = getattr(F, name.removesuffix("_with_indices") + "_with_indices")
    try:
        return signature(function)
    except ValueError:
        text = UNDESCRIBED.get(name) or re.search(rf"{name}(\(.*?\)) -> ", function.__doc__, re.S)[1]
        return described(text.strip()[1:-1])


@pytest.mark.parametrize("name", sorted(public(F) - set(MISSING)))
def test_signature_of_function(name):
    ours = signature(getattr(tg.nn.functional, name))
    assert [p for p in ours if p[0] != "out"] == [p for p in their_signature(name) if p[0] != "out"]


def test_functions_with_indices_take_all_arguments_by_position():
    for m in BOTH:
        x = m.arange(16.0).reshape(1, 4, 4)
        y, positions = m.nn.functional.max_pool2d_with_indices(x, 2, None, 0, 1, False, False)
        assert y.tolist() == [[[5.0, 7.0], [13.0, 15.0]]] and positions.tolist() == [[[5, 7], [13, 15]]]
