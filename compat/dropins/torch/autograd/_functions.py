"""torch.autograd._functions: what is left of PyTorch's functions from before operations could be differentiated."""

from torch.autograd import Function


class Resize(Function):
    """A tensor's elements in another shape."""

    @staticmethod
    def forward(ctx, tensor, sizes):
        ctx.sizes, ctx.input_sizes = sizes, tensor.size()
        if tensor.numel() != tensor.new_empty(()).expand(sizes).numel():
            raise RuntimeError(
                f"requested resize to {tuple(sizes)}, but the given tensor has {tensor.numel()} elements. autograd's resize "
                "can only change the shape of a given tensor, while preserving the number of elements."
            )
        return tensor.reshape(sizes)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.reshape(ctx.input_sizes), None
