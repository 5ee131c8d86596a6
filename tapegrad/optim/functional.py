"""Optimizers as pure functions: state in, state out, differentiable and transformable.

Parameters, gradients and state are nested containers and are never written to. The formulas are those of the classes.
"""

from __future__ import annotations

from typing import Any

from ..func.tree import LEAF, Spec, children_of, flatten, unflatten
from ..functions.create import as_tensor, zeros
from .optimizer import Optimizer


def up_to(spec: Spec, node: Any) -> list[Any]:
    """The subtrees of a nested container at the positions of another one's leaves.

    Raises:
        ValueError: if the containers differ above these positions.
    """
    if spec is LEAF:
        return [node]
    found = children_of(node)
    if type(node) is not spec.cls or found is None or found[0] != spec.keys:
        raise ValueError(f"the structure differs from the parameters' {spec}")
    return [leaf for child, part in zip(spec.children, found[1], strict=True) for leaf in up_to(child, part)]


class pure:
    """An optimizer as two functions, `init` and `update`.

    Args:
        kind: the optimizer class, for example `tg.optim.Adam`.
        settings: its settings: numbers, or tensors with respect to which steps can be differentiated.

    Raises:
        TypeError: if the class has no update formula (LBFGS calls a closure).
        ValueError: for settings out of range.

    Example:
        >>> optimizer = tg.optim.functional.pure(tg.optim.SGD, lr=0.1)
        >>> params = {"w": tg.tensor([1.0, 2.0])}
        >>> state = optimizer.init(params)
        >>> grads = tg.func.grad(lambda p: (p["w"] ** 2).sum())(params)
        >>> optimizer.update(grads, state, params)[0]
        {'w': tensor([0.8000, 1.6000])}
    """

    def __init__(self, kind: type[Optimizer], **settings: Any) -> None:
        if kind.formula is Optimizer.formula:
            raise TypeError(f"{kind.__name__} has no update formula that could be a pure function")
        self.optimizer = kind([zeros(1, 1)], **settings)

    def init(self, params: Any) -> Any:
        """The initial state: a dict of tensors for each parameter, in the parameters' containers."""
        leaves, spec = flatten(params)
        return unflatten(spec, [self._begun(as_tensor(p)) for p in leaves])

    def _begun(self, p: Any) -> dict[str, Any]:
        state = self.optimizer._state_of(p, self.optimizer.param_groups[0])
        self.optimizer.state.pop(p, None)
        return state

    def update(self, grads: Any, state: Any, params: Any, **settings: Any) -> tuple[Any, Any]:
        """One step.

        Args:
            grads: gradients in the parameters' containers; None leaves a parameter and its state unchanged.
            state: state returned by `init` or the previous `update`.
            params: the parameters.
            settings: settings for this step, for example the learning rate of a schedule.

        Returns:
            The new parameters and the new state, as new tensors.

        Raises:
            ValueError: if the containers differ.
            TypeError: for an unknown setting.
        """
        group = self.optimizer.param_groups[0]
        for name in settings:
            if name not in group or name == "params":
                raise TypeError(f"{type(self.optimizer).__name__} has no setting {name!r}")
        group = {**group, **settings}
        leaves, spec = flatten(params)
        new = [
            (p, s) if g is None else self.optimizer.evolved(as_tensor(p), as_tensor(g), s, group)
            for p, g, s in zip(leaves, up_to(spec, grads), up_to(spec, state), strict=True)
        ]
        return unflatten(spec, [p for p, _ in new]), unflatten(spec, [s for _, s in new])


__all__ = ["pure"]
