"""In-place initialisation of parameters, with PyTorch's formulas and, for a given seed, PyTorch's numbers."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import linalg
from ..core.warning import warn
from ..functions import create
from ..modes import no_grad
from ..tensor.tensor import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse", "sparse_",
    "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_",
    "zeros_",
]  # fmt: skip
LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Recommended gain: factor for the standard deviation of weights that precede a nonlinearity.

    Args:
        nonlinearity: a name in nn.functional, such as "relu".
        param: the negative slope of "leaky_relu" (default 0.01).

    Returns:
        1 for linear layers and "sigmoid", 5 / 3 for "tanh", sqrt(2) for "relu", sqrt(2 / (1 + param**2)) for "leaky_relu",
        3 / 4 for "selu".

    Raises:
        ValueError: for an unknown nonlinearity, or a slope that is not a number.

    Example:
        >>> tg.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity in LINEAR:
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def fans(tensor: Any) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight of shape (out, in, ...)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode.lower() == "fan_out"]


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers on [a, b), in place and without gradient; returns the tensor.

    Args:
        tensor: a floating-point tensor of any shape.
        a, b: ends of the interval.
        generator: random generator; None: the default one, here and in the other initialisers.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.init.uniform_(tg.empty(3), -1.0, 1.0)
        tensor([-0.0075,  0.5364, -0.8230])
    """
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of a mean and standard deviation, in place and without gradient; returns the tensor.

    Args:
        tensor: a floating-point tensor of any shape.
        mean, std: of the distribution.
        generator: random generator; None: the default one.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.init.normal_(tg.empty(3), std=0.1)
        tensor([ 0.1541, -0.0293, -0.2179])
    """
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with val, in place and without gradient; returns the tensor.

    Args:
        tensor: a tensor of any shape and dtype.
        val: a number.

    Example:
        >>> tg.nn.init.constant_(tg.empty(3), 0.5)
        tensor([0.5000, 0.5000, 0.5000])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1, in place and without gradient; returns the tensor, of any shape and dtype.

    Example:
        >>> tg.nn.init.ones_(tg.empty(3))
        tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0, in place and without gradient; returns the tensor, of any shape and dtype.

    Example:
        >>> layer = tg.nn.Linear(2, 3)
        >>> tg.nn.init.zeros_(layer.bias)
        Parameter containing:
        tensor([0., 0., 0.], requires_grad=True)
    """
    return constant_(tensor, 0.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers on [-b, b), b = gain * sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010).

    Returns the tensor.

    Args:
        tensor: a weight of shape (out, in, ...).
        gain: see calculate_gain.
        generator: random generator; None: the default one.

    Raises:
        ValueError: for a tensor of fewer than two dimensions.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> round(tg.nn.init.xavier_uniform_(tg.empty(500, 300)).std().item(), 3)  # sqrt(2 / 800)
        0.05
    """
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(fans(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers, std = gain * sqrt(2 / (fan_in + fan_out)) (Glorot, Bengio 2010); returns the tensor.

    Args:
        tensor: a weight of shape (out, in, ...).
        gain: see calculate_gain.
        generator: random generator; None: the default one.

    Raises:
        ValueError: for a tensor of fewer than two dimensions.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> round(tg.nn.init.xavier_normal_(tg.empty(500, 300)).std().item(), 3)  # sqrt(2 / 800)
        0.05
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(fans(tensor)))), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float | None:
    """Standard deviation of the kaiming distributions; None for a tensor without elements."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with uniform numbers on [-b, b), b = gain * sqrt(3 / fan) (He et al. 2015); returns the tensor.

    Args:
        tensor: a weight of shape (out, in, ...).
        a: the negative slope of the leaky ReLU that follows.
        mode: "fan_in" keeps the variance of the forward pass, "fan_out" the variance of the backward pass.
        nonlinearity: the function that follows; see calculate_gain.
        generator: random generator; None: the default one.

    Raises:
        ValueError: for a tensor of fewer than two dimensions or an unknown mode or nonlinearity.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> w = tg.nn.init.kaiming_uniform_(tg.empty(500, 200), nonlinearity="relu")
        >>> round(w.std().item(), 3)  # sqrt(2 / 200)
        0.1
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with normal numbers of mean 0 and standard deviation gain / sqrt(fan) (He et al. 2015); returns the tensor.

    Args:
        tensor: a weight of shape (out, in, ...).
        a: the negative slope of the leaky ReLU that follows.
        mode: "fan_in" keeps the variance of the forward pass, "fan_out" the variance of the backward pass.
        nonlinearity: the function that follows; see calculate_gain.
        generator: random generator; None: the default one.

    Raises:
        ValueError: for a tensor of fewer than two dimensions or an unknown mode or nonlinearity.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> w = tg.nn.init.kaiming_normal_(tg.empty(500, 200), nonlinearity="relu")
        >>> round(w.std().item(), 3)  # sqrt(2 / 200)
        0.1
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with numbers of a normal distribution truncated to [a, b]; returns the tensor.

    If the interval has probability above 0.3, numbers outside are drawn again; otherwise uniform numbers are accepted with
    probability density / (maximum of the density on the interval) (rejection sampling). The ends of the interval where that
    is below exp(-100) are left out. More than 1000 std from the mean the density is taken as an exponential function.

    Args:
        tensor: a floating-point tensor of any shape.
        mean, std: of the normal distribution.
        a, b: ends of the interval.
        generator: random generator; None: the default one.

    Raises:
        ValueError: if the mean is not finite, std not positive and finite, or a above b.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> w = tg.nn.init.trunc_normal_(tg.empty(1000), a=-1.0, b=0.5)
        >>> bool(w.min() >= -1.0), bool(w.max() <= 0.5)
        (True, True)
    """
    if not (math.isfinite(mean) and 0 < std < math.inf and a <= b):
        raise ValueError(
            f"trunc_normal_ expects a finite mean, 0 < std < inf and a <= b, but got {mean=}, {std=}, {a=}, {b=}"
        )
    if mean < a - 2 * std or mean > b + 2 * std:
        warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.")
    inside = math.erf((b - mean) / std / math.sqrt(2.0)) / 2 - math.erf((a - mean) / std / math.sqrt(2.0)) / 2
    if inside > 0.3:
        low, high = tensor.new_tensor(a), tensor.new_tensor(b)
        result = tensor.normal_(mean, std, generator=generator).detach()
        while (again := (result < low) | (result > high)).any():
            result = result.where(~again, create.empty_like(result).normal_(mean, std, generator=generator))
        return tensor.copy_(result)
    nearest = (max(a, min(mean, b)) - mean) / std
    if abs(nearest) > 1e3:  # a square of it has no digits left for differences
        return tensor.copy_(_far_out(tensor, nearest, std, a, b, generator))
    reach = math.hypot(nearest, math.sqrt(200.0))
    a, b, peak = max(a, mean - reach * std), min(b, mean + reach * std), -0.5 * nearest * nearest

    def draw() -> tuple[Any, Any]:
        """Candidates, and whether each is rejected."""
        x = create.empty_like(tensor).uniform_(a, b, generator=generator)
        density = ((x - mean) / std) ** 2 * -0.5 - peak
        return x, create.empty_like(tensor).uniform_(generator=generator).log() > density

    result, pending = draw()
    while pending.any():
        x, refused = draw()
        result, pending = result.where(~pending, x), pending & refused
    return tensor.copy_(result)


def _far_out(tensor: Tensor, nearest: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Numbers in [a, b], whose end next to the mean is `nearest` standard deviations from it."""
    scale = std / abs(nearest)
    share = math.expm1((a - b) / scale) if scale and a < b else -1.0
    draws = -create.empty_like(tensor).uniform_(generator=generator).mul_(share).log1p_() * scale
    numbers: Tensor = a + draws if nearest > 0 else b - draws
    return numbers.clamp(a, b)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity, in place: 1 on the diagonal, 0 elsewhere; returns the tensor.

    Args:
        tensor: a tensor of 2 dimensions.

    Raises:
        ValueError: for another number of dimensions.

    Example:
        >>> tg.nn.init.eye_(tg.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    check_matrix(tensor)
    return tensor.copy_(create.eye(*tensor.shape))


def check_matrix(tensor: Any) -> None:
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that each group passes as many input channels through as possible; returns the tensor.

    Args:
        tensor: a weight of shape (out, in, ...).
        groups: number of groups of output channels.

    Raises:
        ValueError: unless the tensor has 3 to 5 dimensions and its first size is divisible by groups.

    Example:
        >>> w = tg.nn.init.dirac_(tg.empty(2, 2, 3))
        >>> x = tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> tg.nn.functional.conv1d(x, w, padding=1)
        tensor([[1., 2., 3.],
                [4., 5., 6.]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    channels = tensor.shape[0] // groups
    middle = tuple([n // 2 for n in tensor.shape[2:]])
    tensor.zero_()
    for group in range(groups):
        for d in range(min(channels, tensor.shape[1])):
            tensor[(group * channels + d, d, *middle)] = 1
    return tensor


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with gain times a matrix with orthonormal rows or columns, of shape (size(0), rest); returns the tensor.

    Haar distributed: Q of the QR decomposition of a normal matrix, with signs such that R has a positive diagonal
    (Mezzadri 2007).

    Args:
        tensor: a tensor of two or more dimensions.
        gain: factor of the orthonormal matrix.
        generator: random generator; None: the default one.

    Raises:
        ValueError: for a tensor of fewer than two dimensions.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> w = tg.nn.init.orthogonal_(tg.empty(2, 3))
        >>> tg.allclose(w @ w.T, tg.eye(2), atol=1e-6)
        True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    normal = tensor.new_empty((tensor.shape[0], math.prod(tensor.shape[1:]))).normal_(generator=generator)
    wide = normal.shape[0] < normal.shape[1]
    q, r = linalg.qr(normal.t() if wide else normal)
    q = q * r.diagonal().sign()
    tensor.copy_((q.t() if wide else q).reshape(tensor.shape))
    return tensor.mul_(gain)


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal numbers, a fraction `sparsity` of each column with 0 (Martens 2010); returns the tensor.

    Args:
        tensor: a tensor of 2 dimensions.
        sparsity: fraction of each column, in [0, 1]; the number of zeros is rounded up.
        std: standard deviation of the other numbers.
        generator: random generator of the normal numbers; None: the default one.

    Raises:
        ValueError: for another number of dimensions.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> (tg.nn.init.sparse_(tg.empty(4, 3), 0.5) == 0).sum(0)
        tensor([2, 2, 2])
    """
    check_matrix(tensor)
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[create.randperm(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor


def _deprecated(function: Callable[..., Any], example: str = "tg.empty(2, 2)") -> Callable[..., Any]:
    """A deprecated alias of an initialiser, without the underscore."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def initialise(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    initialise.__name__ = old
    initialise.__doc__ = f"""The older name of {new}, with its arguments; gives a FutureWarning.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     w = tg.nn.init.{old}({example})
    """
    return initialise


uniform, normal, constant = _deprecated(uniform_), _deprecated(normal_), _deprecated(constant_, "tg.empty(2), 0.5")
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
eye, dirac, orthogonal = _deprecated(eye_), _deprecated(dirac_, "tg.empty(2, 2, 1)"), _deprecated(orthogonal_)
sparse = _deprecated(sparse_, "tg.empty(2, 2), 0.5")

_calculate_fan_in_and_fan_out = fans


def __dir__() -> list[str]:
    return sorted(__all__)
