"""torch.nn.grad: gradients of convolutions, by tapegrad's own rules."""

import torch
from torch.nn import functional as F


def _gradient(convolution: object, which: int, size: object, other: object, cotangent: object, *settings: object) -> object:
    with torch.enable_grad():
        unknown = torch.zeros(tuple(size), dtype=other.dtype, requires_grad=True)
        args = (unknown, other) if which == 0 else (other, unknown)
        result = convolution(*args, None, *settings)
        return torch.autograd.grad(result, unknown, cotangent, create_graph=other.requires_grad or cotangent.requires_grad)[
            0
        ]


def _of_input(convolution: object, name: str) -> object:
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """The gradient of the convolution by its input, from that of its result."""
        return _gradient(convolution, 0, input_size, weight, grad_output, stride, padding, dilation, groups)

    gradient.__name__ = gradient.__qualname__ = name
    return gradient


def _of_weight(convolution: object, name: str) -> object:
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """The gradient of the convolution by its weight, from that of its result."""
        return _gradient(convolution, 1, weight_size, input, grad_output, stride, padding, dilation, groups)

    gradient.__name__ = gradient.__qualname__ = name
    return gradient


conv1d_input, conv1d_weight = _of_input(F.conv1d, "conv1d_input"), _of_weight(F.conv1d, "conv1d_weight")
conv2d_input, conv2d_weight = _of_input(F.conv2d, "conv2d_input"), _of_weight(F.conv2d, "conv2d_weight")
conv3d_input, conv3d_weight = _of_input(F.conv3d, "conv3d_input"), _of_weight(F.conv3d, "conv3d_weight")
