"""Pruning: weight = weight_orig * weight_mask, recomputed before every call of the module."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from ...functions import create, reduce, sort
from ...table import elementwise
from ..module import Module
from .convert_parameters import parameters_to_vector
from .weight_norm import hook_of

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

M = TypeVar("M", bound=Module)


class BasePruningMethod(ABC):
    """Base of pruning methods, and the hook that applies the mask; a subclass defines compute_mask and PRUNING_TYPE.

    Attributes:
        PRUNING_TYPE: the elements that a later method considers after an earlier one: "unstructured": those not pruned,
            "structured": channels (along its attribute `dim`) that are not pruned completely, "global": all.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of 0 and 1 for scores t, combined with a default mask."""

    def apply_mask(self, module: Any) -> Any:
        """The module's original tensor times its mask."""
        orig = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(orig.dtype) * orig

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter, in addition to earlier pruning; args and kwargs are the method's. Returns the hook.

        Args:
            importance_scores: a tensor of the parameter's shape from which the mask is computed; None: the parameter.
        """
        orig = getattr(module, name)
        scores = checked_scores(importance_scores, orig, f"parameter {name} of {module}")
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        key = hook_of(module, BasePruningMethod, name, "_tensor_name")
        if key is None:
            mask = method.compute_mask(scores, default_mask=create.ones_like(orig))
            module.register_parameter(f"{name}_orig", orig)
            del module._parameters[name]
        else:
            before = module._forward_pre_hooks[key]
            earlier = before if isinstance(before, PruningContainer) else (before,)
            method = PruningContainer(*earlier, method)
            mask = method.compute_mask(scores, getattr(module, f"{name}_mask").detach().clone())
            del module._forward_pre_hooks[key]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """The tensor times the mask computed from it, or from other scores of its shape."""
        scores = checked_scores(importance_scores, t, "tensor t")
        return t * self.compute_mask(scores, default_mask=create.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Replace the pruned tensor by a plain parameter."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(f"{name}_orig")
        orig.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, orig)


def checked_scores(scores: Any, t: Any, what: str) -> Any:
    """The importance scores, of the tensor's shape; the tensor itself for None."""
    if scores is None:
        return t
    if scores.shape != t.shape:
        raise AssertionError(f"importance_scores should have the same shape as {what}, got {scores.shape} vs {t.shape}")
    return scores


class PruningContainer(BasePruningMethod):
    """Several pruning methods applied to one tensor in order."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add another method for the same tensor."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask, combined with the last method's mask on the elements that it considers."""
        method = self._pruning_methods[-1]
        part = seen_by(method, t, default_mask)
        mask = default_mask.to(t.dtype, copy=True)
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(mask.dtype)
        return mask


def seen_by(method: Any, t: Any, mask: Any) -> Any:
    """Index of the elements that a method considers, given the mask of the earlier ones."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    kept = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return (slice(None),) * dim + (kept,)


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


class Amount(BasePruningMethod):
    """Base of methods that prune a number or fraction of elements or channels."""

    amount: Any

    def _count(self, size: int) -> int:
        """Number of elements out of `size` to prune."""
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class Identity(BasePruningMethod):
    """Prunes nothing: the mask is all ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name)


class Unstructured(Amount):
    """Base of methods that prune single elements, those with the lowest rank by a score."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        self.amount = amount
        _validate_pruning_amount_init(self.amount)

    def _first(self, t: Any, count: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask with the pruned elements 0."""
        count = self._count(t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._first(t, count)] = 0
        return mask


class RandomUnstructured(Unstructured):
    """Prunes elements at random.

    Args:
        amount: number (int) or fraction (float) to prune.
    """

    def _first(self, t: Any, count: int) -> Any:
        return sort.topk(create.rand_like(t).view(-1), count).indices

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(Unstructured):
    """Prunes the elements of smallest magnitude.

    Args:
        amount: number (int) or fraction (float) to prune.
    """

    def _first(self, t: Any, count: int) -> Any:
        return sort.topk(elementwise.abs(t).view(-1), count, largest=False).indices

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class Structured(Amount):
    """Base of methods that prune whole channels along a dimension."""

    PRUNING_TYPE = "structured"
    dim: int

    def _kept(self, t: Any, count: int) -> Any:
        """Index of the channels that remain when `count` are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask with the pruned channels 0."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self._count(t.shape[self.dim])
        if not count:
            return default_mask
        mask = create.zeros_like(t)
        mask[(slice(None),) * (self.dim % t.dim()) + (self._kept(t, count),)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(Structured):
    """Prunes channels at random.

    Args:
        amount: number (int) or fraction (float) to prune.
        dim: the dimension of channels.
    """

    def __init__(self, amount: Any, dim: int = -1) -> None:
        self.amount, self.dim = amount, dim
        _validate_pruning_amount_init(self.amount)

    def _kept(self, t: Any, count: int) -> Any:
        drawn = create.rand(t.shape[self.dim], device=t.device)
        return drawn > sort.kthvalue(drawn, count).values

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(Structured):
    """Prunes the channels of smallest norm.

    Args:
        amount: number (int) or fraction (float) to prune.
        n: order of the norm, as in `norm`.
        dim: the dimension of channels.
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        self.amount, self.n, self.dim = amount, n, dim
        _validate_pruning_amount_init(self.amount)

    def _kept(self, t: Any, count: int) -> Any:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return sort.topk(reduce.norm(t, self.n, others), t.shape[self.dim] - count).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        """Prune a parameter."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask times the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, mask=mask)


# ----------------------------------------------------------------------------------------------------------- functions


def identity(module: M, name: str) -> M:
    """Give a parameter a mask of ones; returns the module, with name_orig and name_mask added.

    Args:
        module: the module, which is changed.
        name: its parameter.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> layer = prune.identity(tg.nn.Linear(2, 1), "weight")
        >>> layer.weight_mask
        tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: Any) -> M:
    """Prune a number (int) or fraction (float) of a parameter's elements at random; returns the module.

    Args:
        module: the module, which is changed.
        name: its parameter.
        amount: number (int) or fraction (float) of the elements.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> _ = tg.manual_seed(0)
        >>> layer = prune.random_unstructured(tg.nn.Linear(2, 3), "weight", 0.5)
        >>> layer.weight_mask.sum()
        tensor(3.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: M, name: str, amount: Any, importance_scores: Any = None) -> M:
    """Prune the elements of smallest magnitude, of the parameter or of other scores; returns the module.

    Args:
        module: the module, which is changed.
        name: its parameter.
        amount: number (int) or fraction (float) of the elements.
        importance_scores: of the parameter's shape, in place of its values.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> layer = tg.nn.Linear(3, 1)
        >>> tg.nn.utils.vector_to_parameters(tg.tensor([0.5, -0.1, 2.0, 0.0]), layer.parameters())
        >>> prune.l1_unstructured(layer, "weight", 1).weight_mask
        tensor([[1., 0., 1.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores)
    return module


def random_structured(module: M, name: str, amount: Any, dim: int) -> M:
    """Prune a number (int) or fraction (float) of a parameter's channels along dim at random; returns the module.

    Args:
        module: the module, which is changed.
        name: its parameter.
        amount: number (int) or fraction (float) of the channels.
        dim: dimension of the channels.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> _ = tg.manual_seed(0)
        >>> layer = prune.random_structured(tg.nn.Linear(2, 3), "weight", 1, dim=0)
        >>> layer.weight_mask.sum()
        tensor(4.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: M, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> M:
    """Prune the channels along dim of smallest n-norm, of the parameter or of other scores; returns the module.

    Args:
        module: the module, which is changed.
        name: its parameter.
        amount: number (int) or fraction (float) of the channels.
        n: order of the norm.
        dim: dimension of the channels.
        importance_scores: of the parameter's shape, in place of its values.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> layer = tg.nn.Linear(2, 2)
        >>> _ = layer.weight.data.copy_(tg.tensor([[1.0, 0.0], [3.0, 4.0]]))
        >>> prune.ln_structured(layer, "weight", 1, n=2, dim=0).weight_mask
        tensor([[0., 0.],
                [1., 1.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters as if they were one.

    Args:
        parameters: (module, name) pairs.
        pruning_method: a class of PRUNING_TYPE "unstructured"; kwargs are its arguments.
        importance_scores: scores by (module, name); default: the parameter itself.

    Raises:
        TypeError: for arguments of other types.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> a, b = tg.nn.Linear(4, 2), tg.nn.Linear(2, 2)
        >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=5)
        >>> (a.weight == 0).sum() + (b.weight == 0).sum()
        tensor(5)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    masks = [getattr(m, f"{n}_mask", None) for m, n in pairs]
    all_scores = parameters_to_vector([scores.get(pair, t) for pair, t in zip(pairs, tensors, strict=True)])
    all_masks = [create.ones_like(t) if mask is None else mask for t, mask in zip(tensors, masks, strict=True)]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "all of them"
    mask = PruningContainer(method).compute_mask(all_scores, parameters_to_vector(all_masks))
    parts = mask.split([t.numel() for t in tensors])
    for (module, name), t, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, part.view_as(t))


def custom_from_mask(module: M, name: str, mask: Any) -> M:
    """Prune a parameter where a mask of its shape is 0; returns the module.

    Args:
        module: the module, which is changed.
        name: its parameter.
        mask: of the parameter's shape.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> layer = prune.custom_from_mask(tg.nn.Linear(2, 2), "weight", tg.eye(2))
        >>> layer.weight != 0
        tensor([[ True, False],
                [False,  True]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: M, name: str) -> M:
    """Make pruning permanent: the parameter becomes a plain one with zeros; returns the module.

    Args:
        module: the module, which is changed.
        name: its parameter.

    Raises:
        ValueError: if the parameter is not pruned.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> layer = prune.l1_unstructured(tg.nn.Linear(2, 3), "weight", 4)
        >>> layer = prune.remove(layer, "weight")
        >>> (layer.weight == 0).sum(), [name for name, _ in layer.named_parameters()]
        (tensor(4), ['bias', 'weight'])
    """
    key = hook_of(module, BasePruningMethod, name, "_tensor_name")
    if key is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    module._forward_pre_hooks.pop(key).remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of a descendant is pruned.

    Example:
        >>> from tapegrad.nn.utils import prune
        >>> layer = prune.identity(tg.nn.Linear(2, 1), "weight")
        >>> prune.is_pruned(layer), prune.is_pruned(tg.nn.Linear(2, 1))
        (True, False)
    """
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._forward_pre_hooks.values())
