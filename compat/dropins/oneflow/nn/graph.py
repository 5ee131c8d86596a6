"""``nn.Graph``: a step of a model, which OneFlow compiles and tapegrad runs as it stands."""

from __future__ import annotations

from typing import Any

from tapegrad import Tensor
from tapegrad.func.tree import mapped
from tapegrad.nn import Module

# What these change is speed or memory, not numbers.
HARMLESS = ("allow_", "enable_cudnn_", "enable_straighten_", "enable_compress_", "enable_multi_tensor_", "enable_fused_")


class GraphConfig:
    """The settings of a graph: those that leave the numbers alone are taken and change nothing, others raise."""

    def __init__(self) -> None:
        self.training = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith(HARMLESS):
            return lambda *args, **kwargs: None
        raise NotImplementedError(f"nn.Graph.config.{name}: a graph runs eagerly here, in one process, in its own dtypes")


class Graph:
    """A step of a model: ``build(...)``, run at every call.

    With optimizers from ``add_optimizer`` a call is a training step: gradients are cleared, `build` calls ``backward()``,
    then the optimizers and their schedules step. Results carry no graph, as OneFlow's.
    """

    def __init__(self, *, debug_v_level: int = -1, **_: Any) -> None:
        self.config = GraphConfig()
        self._optimizers: list[Any] = []
        self._schedules: list[Any] = []

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @property
    def training(self) -> bool:
        """Whether a call is a training step."""
        return self.config.training

    @property
    def is_compiled(self) -> bool:
        """False: nothing is compiled."""
        return False

    @staticmethod
    def trace(function: Any) -> Any:
        """A function as it stands, for a decorator that has OneFlow compile it."""
        return function

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """The computation: to be written."""
        raise NotImplementedError(f"{self.name}: a Graph needs a method build()")

    def add_optimizer(self, optim: Any, *, lr_sch: Any = None) -> None:
        """Have an optimizer, and a schedule, step after each call."""
        self.config.training = True
        self._optimizers.append(optim)
        if lr_sch is not None:
            self._schedules.append(lr_sch)

    def debug(self, *args: Any, **kwargs: Any) -> None:
        """Changes nothing: there is no compilation to tell of."""

    def state_dict(self) -> dict[str, Any]:
        """The states of its modules by name, and of what steps under ``stepping``, in the order it was added."""
        modules = {name: value.state_dict() for name, value in vars(self).items() if isinstance(value, Module)}
        return {**modules, "stepping": [s.state_dict() for s in (*self._optimizers, *self._schedules)]}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take over states that ``state_dict`` gave."""
        for stepping, state in zip((*self._optimizers, *self._schedules), state_dict.get("stepping", ()), strict=strict):
            stepping.load_state_dict(state)
        for name, state in state_dict.items():
            if name != "stepping":
                getattr(self, name).load_state_dict(state, strict)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        result = self.build(*args, **kwargs)
        for stepping in (*self._optimizers, *self._schedules):
            stepping.step()
        return mapped(lambda t: t.detach() if isinstance(t, Tensor) else t, result)
