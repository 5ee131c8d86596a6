"""functorch's names on tapegrad: what is now torch.func, and modules as functions of tuples of tensors."""

import functools as _functools
import warnings as _warnings
from copy import deepcopy as _deepcopy

import torch.func as _func
from torch.nn import Module as _Module

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


def _deprecated(new, function):
    """The function, which tells what took its place."""

    @_functools.wraps(function)
    def warning(*args, **kwargs):
        _warnings.warn(
            "We've integrated functorch into PyTorch. As the final step of the integration, "
            f"`functorch.{function.__name__}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of "
            f"PyTorch >= 2.3. Please use `{new}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` "
            "migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return warning


vmap = _deprecated("torch.vmap", _func.vmap)
grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = [
    _deprecated(f"torch.func.{f.__name__}", f)
    for f in (_func.grad, _func.grad_and_value, _func.hessian, _func.jacfwd, _func.jacrev, _func.jvp, _func.vjp)
]


class FunctionalModule(_Module):
    """A module without parameters of its own: called with a tuple of them, then with the module's arguments."""

    def __init__(self, model, names):
        super().__init__()
        self.stateless_model = model
        self.param_names = names

    def forward(self, params, *args, **kwargs):
        return _func.functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


class FunctionalModuleWithBuffers(_Module):
    """The same, called with a tuple of parameters and one of buffers."""

    def __init__(self, model, param_names, buffer_names):
        super().__init__()
        self.stateless_model = model
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        tensors = zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True)
        return _func.functional_call(self.stateless_model, dict(tensors), args, kwargs)


def _tensors(named, tracked):
    return tuple([t if tracked else t.detach() for _, t in named])


def _names(named):
    return tuple([name for name, _ in named])


@_functools.partial(_deprecated, "torch.func.functional_call")
def make_functional(model, disable_autograd_tracking=False):
    """(a function of the parameters, the parameters as a tuple) of a module that has no buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    named = list(model.named_parameters())
    return FunctionalModule(_deepcopy(model), _names(named)), _tensors(named, not disable_autograd_tracking)


@_functools.partial(_deprecated, "torch.func.functional_call")
def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(a function of parameters and buffers, the parameters, the buffers): these as tuples."""
    params, buffers = list(model.named_parameters()), list(model.named_buffers())
    function = FunctionalModuleWithBuffers(_deepcopy(model), _names(params), _names(buffers))
    return function, _tensors(params, not disable_autograd_tracking), _tensors(buffers, True)


@_functools.partial(_deprecated, "torch.func.stack_module_state")
def combine_state_for_ensemble(models):
    """(a function of parameters and buffers, the parameters, the buffers) of modules of one class, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = _func.stack_module_state(models)
    function = FunctionalModuleWithBuffers(_deepcopy(models[0]), tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())
