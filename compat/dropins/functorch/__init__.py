"""functorch's names on tapegrad: what is now torch.func, and modules as functions of tuples of tensors."""

from copy import deepcopy

from tapegrad.func import functional_call as _functional_call
from tapegrad.func import grad as grad
from tapegrad.func import grad_and_value as grad_and_value
from tapegrad.func import hessian as hessian
from tapegrad.func import jacfwd as jacfwd
from tapegrad.func import jacrev as jacrev
from tapegrad.func import jvp as jvp
from tapegrad.func import stack_module_state as _stack_module_state
from tapegrad.func import vjp as vjp
from tapegrad.func import vmap as vmap
from tapegrad.nn import Module as _Module

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


class FunctionalModule(_Module):
    """A module without parameters of its own: called with a tuple of them, then with the module's arguments."""

    def __init__(self, model, names):
        super().__init__()
        self.stateless_model = model
        self.param_names = names

    def forward(self, params, *args, **kwargs):
        return _functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


class FunctionalModuleWithBuffers(_Module):
    """The same, called with a tuple of parameters and one of buffers."""

    def __init__(self, model, param_names, buffer_names):
        super().__init__()
        self.stateless_model = model
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        tensors = zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True)
        return _functional_call(self.stateless_model, dict(tensors), args, kwargs)


def _tensors(named, tracked):
    return tuple([t if tracked else t.detach() for _, t in named])


def _names(named):
    return tuple([name for name, _ in named])


def make_functional(model, disable_autograd_tracking=False):
    """(a function of the parameters, the parameters as a tuple) of a module that has no buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    named = list(model.named_parameters())
    return FunctionalModule(deepcopy(model), _names(named)), _tensors(named, not disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(a function of parameters and buffers, the parameters, the buffers): these as tuples."""
    params, buffers = list(model.named_parameters()), list(model.named_buffers())
    function = FunctionalModuleWithBuffers(deepcopy(model), _names(params), _names(buffers))
    return function, _tensors(params, not disable_autograd_tracking), _tensors(buffers, True)


def combine_state_for_ensemble(models):
    """(a function of parameters and buffers, the parameters, the buffers) of modules of one class, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = _stack_module_state(models)
    function = FunctionalModuleWithBuffers(deepcopy(models[0]), tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())
