"""torch.nn.utils._per_sample_grad: backward passes that leave gradients by sample in `grad_sample`."""

import functools
import inspect

import torch
import torch.nn.functional as F
from torch.func import functional_call, vjp, vmap


class ExpandedWeight(torch.Tensor):
    """Stands for a parameter in a call whose backward pass gives the parameter its gradients for each sample."""

    def __new__(cls, orig_weight: torch.Tensor, batch_size: int, loss_reduction: str) -> "ExpandedWeight":
        if not isinstance(orig_weight, torch.Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        made = torch.Tensor._make_subclass(cls, orig_weight, True)
        made.orig_weight, made.batch_size, made.loss_reduction = orig_weight, batch_size, loss_reduction
        return made

    @classmethod
    def __torch_function__(cls, func: object, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        if func not in _BY_SAMPLE:
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")
        bound = inspect.signature(func).bind(*args, **kwargs or {})
        bound.apply_defaults()
        given = dict(bound.arguments)
        weights = {name: value for name, value in given.items() if isinstance(value, cls)}
        _check(func.__name__, given["input"], weights)
        return _BySample.apply(func, given, given["input"], *weights.values())


_BY_SAMPLE = {F.linear, F.conv1d, F.conv2d, F.conv3d, F.embedding, F.layer_norm, F.group_norm, F.instance_norm}


def _check(name: str, input: object, weights: dict[str, ExpandedWeight]) -> None:
    if not isinstance(input, torch.Tensor) or isinstance(input, ExpandedWeight):
        raise RuntimeError(
            f"Expanded Weights requires a Tensor as the first input, got {type(input).__name__} in function {name}"
        )
    if len(input.shape) < 2 or not len(input):
        raise RuntimeError(
            f"Expanded Weights requires a batch dimension, got an input of shape {tuple(input.shape)} in {name}"
        )
    for w in weights.values():
        if w.batch_size != len(input):
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {len(input)} with ExpandedWeight of batch size {w.batch_size}"
            )


class _BySample(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, func: object, given: dict, input: torch.Tensor, *weights: ExpandedWeight) -> torch.Tensor:
        ctx.func, ctx.given, ctx.weights = func, given, weights
        ctx.save_for_backward(input)
        return func(**_in_place_of(given, weights, [w.orig_weight for w in weights]))

    @staticmethod
    def backward(ctx: object, grad_output: torch.Tensor) -> tuple:
        func, given, weights = ctx.func, dict(ctx.given), ctx.weights
        (input,) = ctx.saved_tensors
        if given.get("use_input_stats"):
            given["running_mean"] = given["running_var"] = None  # which the forward pass has updated
        originals = [w.orig_weight.detach() for w in weights]

        def call(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
            return func(**_in_place_of(given, weights, values) | {"input": x})

        def of_sample(x: torch.Tensor, g: torch.Tensor) -> tuple:
            return vjp(functools.partial(call, x.unsqueeze(0)), *originals)[1](g.unsqueeze(0))

        with torch.no_grad():
            for w, of_samples in zip(weights, vmap(of_sample)(input.detach(), grad_output.detach()), strict=True):
                _add(w, of_samples)
        needed = ctx.needs_input_grad[2]
        grad_input = vjp(lambda x: call(x, *originals), input)[1](grad_output)[0] if needed else None
        return None, None, grad_input, *[None] * len(weights)


def _in_place_of(given: dict, weights: tuple, values: object) -> dict:
    """The arguments with these values for the weights among them."""
    return {
        name: next((v for w, v in zip(weights, values, strict=True) if w is value), value) for name, value in given.items()
    }


def _add(weight: ExpandedWeight, of_samples: torch.Tensor) -> None:
    if weight.loss_reduction == "mean":
        of_samples = of_samples * weight.batch_size
    before = getattr(weight.orig_weight, "grad_sample", None)
    weight.orig_weight.grad_sample = of_samples if before is None else before + of_samples


def call_for_per_sample_grads(
    module: torch.nn.Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> object:
    """The module's forward; backward passes through it add each sample's gradients to `grad_sample` of its parameters.

    Args:
        batch_size: the number of samples, by default that of the tensors among the arguments.
        loss_reduction: "mean" where the loss is a mean over samples: the gradients are multiplied by their number.
        batch_first: whether samples are counted along the first dimension of the arguments; else the second.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, torch.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if any(getattr(p, "grad_sample", None) is not None for p in module.parameters()):
        raise RuntimeError(
            "Expanded Weights add to grad_sample: clear it before another call, or the gradients are those of both"
        )

    @functools.wraps(module.forward)
    def wrapper(*args: object, **kwargs: object) -> object:
        size = batch_size
        if size is None:
            leaves = torch.utils._pytree.tree_leaves((args, kwargs))
            sizes = {leaf.shape[not batch_first] for leaf in leaves if isinstance(leaf, torch.Tensor)}
            if len(sizes) != 1:
                raise RuntimeError(
                    f"batch_size has to be given: the arguments have tensors of the batch sizes {sorted(sizes)}"
                )
            (size,) = sizes
        weights = {
            name: ExpandedWeight(p, size, loss_reduction) if p.requires_grad else p for name, p in module.named_parameters()
        }
        return functional_call(module, weights, args, kwargs)

    return wrapper
