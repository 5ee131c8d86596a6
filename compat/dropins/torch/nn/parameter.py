"""torch.nn.parameter: tapegrad's parameters and buffers, and one name of PyTorch."""

from tapegrad.nn.parameter import Uninitialized as UninitializedTensorMixin  # noqa: F401
