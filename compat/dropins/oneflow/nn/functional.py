"""Functions of layers: tapegrad's, and what OneFlow alone has."""

from oneflow._functions import ctc_greedy_decoder, dropout, one_hot  # noqa: F401
from tapegrad import Tensor, compat
from tapegrad.nn.functional import cross_entropy

compat.mirror(__name__, "tapegrad.nn.functional")


def quick_gelu(x: Tensor) -> Tensor:
    """``x * sigmoid(1.702 x)``."""
    return x * (1.702 * x).sigmoid()


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """The cross entropy of each row of logits with the class that labels names."""
    return cross_entropy(logits, labels.long(), reduction="none")
