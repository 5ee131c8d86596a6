"""Stochastic gradient descent, plain and averaged."""

from __future__ import annotations

from typing import Any

from ..table import elementwise
from ..tensor.tensor import Tensor
from .optimizer import Optimizer, ParamsT, check, check_lr, given


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    With d the gradient plus weight_decay times the parameter, b = momentum * b + (1 - dampening) * d (initially b = d);
    the parameter changes by -lr * b, with nesterov by -lr * (d + momentum * b).

    Args:
        params: parameters, or dicts of parameter groups.
        lr: learning rate.
        momentum, dampening, weight_decay, nesterov: see the formulas.
        maximize: maximise instead of minimise.
        differentiable: record the steps on the tape; see `docs/optim.md`.
        foreach, fused: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for negative settings, or nesterov without momentum or with dampening.

    Example:
        >>> w = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = tg.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.detach()
        tensor([0.4600, 0.9200])
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: Any = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, given(locals()))

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        momentum = h["momentum"]
        direction = g
        if isinstance(momentum, Tensor) or momentum:
            kept = s.get("momentum_buffer")
            if kept is None:
                direction = s["momentum_buffer"] = m.copy(g)
            else:
                kept = m.mul(kept, momentum, kept)
                if isinstance(h["dampening"], Tensor) or h["dampening"]:
                    kept = m.addmul(kept, g, 1 - h["dampening"], kept)
                else:
                    kept = m.add(kept, g, kept)
                direction = s["momentum_buffer"] = kept
            if h["nesterov"]:
                direction = m.addmul(g, direction, momentum)
        return m.sub(p, m.mul(direction, h["lr"]), p)


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992); the average is state[p]["ax"].

    With eta = lr / (1 + lambd * lr * step)**alpha, the parameter becomes (1 - lambd * eta) * parameter - eta * gradient; the
    average starts at step t0.

    Args:
        params: parameters, or dicts of parameter groups.
        lr: learning rate.
        lambd, alpha, t0: see the formulas.
        weight_decay: L2 penalty: weight_decay times the parameter is added to the gradient.
        maximize: maximise instead of minimise.
        differentiable: record the steps on the tape; see `docs/optim.md`.
        foreach, capturable: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.
    """

    scalars = ("step", "eta", "mu")

    def __init__(
        self, params: ParamsT, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check("weight_decay value", weight_decay)
        super().__init__(params, given(locals()))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "eta": group["lr"], "mu": 1, "ax": 0}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        step, eta, mu = s["step"], number(s["eta"]), number(s["mu"])
        p = m.mul(p, 1 - h["lambd"] * eta, p)
        p = m.sub(p, m.mul(g, eta), p)
        s["ax"] = m.lerp(s["ax"], p, mu, s["ax"])
        s["eta"] = h["lr"] / (1 + h["lambd"] * h["lr"] * step) ** h["alpha"]
        late = step - h["t0"]
        s["mu"] = 1 / (elementwise.maximum(late, 1.0) if isinstance(late, Tensor) else max(1, late))
        return p


def number(value: Any) -> Any:
    """A counter for a formula: a tensor, or else a Python number, which does not affect promotion."""
    return value if isinstance(value, Tensor) else float(value)
