"""Adagrad, Adadelta, RMSprop and Rprop: adaptive step sizes per element."""

from __future__ import annotations

from typing import Any

from ..tensor.tensor import Tensor
from .optimizer import Optimizer, ParamsT, check, check_lr, given


class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011): the gradient is divided by the root of the sum of its squares so far.

    The learning rate of step t is lr / (1 + (t - 1) * lr_decay).

    Args:
        params: parameters, or dicts of parameter groups.
        lr: learning rate.
        lr_decay: see the formula.
        weight_decay: L2 penalty: weight_decay times the parameter is added to the gradient.
        initial_accumulator_value: initial value of the sum.
        eps: added to the root.
        maximize: maximise instead of minimise.
        differentiable: record the steps on the tape; see `docs/optim.md`.
        foreach, fused: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = tg.optim.Adagrad([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000, 1.9000])
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check("lr_decay value", lr_decay)
        check("weight_decay value", weight_decay)
        check("initial_accumulator_value value", initial_accumulator_value)
        check("epsilon value", eps)
        super().__init__(params, given(locals(), eps="weight_decay"))
        for group in self.param_groups:
            for p in group["params"]:
                self._state_of(p, group)

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "sum": group["initial_accumulator_value"]}

    def share_memory(self) -> None:
        """No effect, accepted for compatibility with PyTorch."""

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        total = s["sum"] = m.addmul(s["sum"], g, g, s["sum"])
        t = m.sqrt(total)
        t = m.add(t, h["eps"], t)
        t = m.div(g, t, t)
        t = m.mul(t, h["lr"] / (1 + (s["step"] - 1) * h["lr_decay"]), t)
        return m.sub(p, t, p)


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012): the gradient is scaled by RMS(previous steps) / RMS(gradients).

    Args:
        params: parameters, or dicts of parameter groups.
        lr: factor of the step.
        rho: decay rate of the running mean squares.
        eps: added to them under the root.
        weight_decay: L2 penalty: weight_decay times the parameter is added to the gradient.
        maximize: maximise instead of minimise.
        differentiable: record the steps on the tape; see `docs/optim.md`.
        foreach, capturable: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check("epsilon value", eps)
        check("weight_decay value", weight_decay)
        super().__init__(params, given(locals(), capturable="foreach", maximize="capturable"))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "square_avg": 0, "acc_delta": 0}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        eps, rho = h["eps"], h["rho"]
        square = s["square_avg"] = m.mean_square(s["square_avg"], g, rho, s["square_avg"])
        t = m.add(square, eps)
        t = m.sqrt(t, t)
        u = m.add(s["acc_delta"], eps)
        u = m.div(m.sqrt(u, u), t, u)
        u = m.mul(u, g, u)
        s["acc_delta"] = m.mean_square(s["acc_delta"], u, rho, s["acc_delta"])
        return m.sub(p, m.mul(u, h["lr"], u), p)


class RMSprop(Optimizer):
    """RMSprop (Hinton 2012): the gradient is divided by the root of the running mean of its squares.

    Args:
        params: parameters, or dicts of parameter groups.
        lr: learning rate.
        alpha: decay rate of the running mean.
        eps: added to the root.
        weight_decay: L2 penalty: weight_decay times the parameter is added to the gradient.
        momentum: if not 0, the step is b = momentum * b + that quotient.
        centered: divide by the estimated standard deviation: subtract the squared running mean under the root.
        maximize: maximise instead of minimise.
        differentiable: record the steps on the tape; see `docs/optim.md`.
        capturable, foreach: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = tg.optim.RMSprop([w], lr=0.01)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000, 1.9000])
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check("epsilon value", eps)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        check("alpha value", alpha)
        super().__init__(params, given(locals(), momentum="alpha", centered="weight_decay"))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        buffer = {"momentum_buffer": 0} if group["momentum"] > 0 else {}
        return {"step": 0, "square_avg": 0} | buffer | ({"grad_avg": 0} if group["centered"] else {})

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        square = s["square_avg"] = m.mean_square(s["square_avg"], g, h["alpha"], s["square_avg"])
        if h["centered"]:
            mean = s["grad_avg"] = m.lerp(s["grad_avg"], g, 1 - h["alpha"], s["grad_avg"])
            t = m.mul(mean, mean)
            t = m.sub(square, t, t)
            t = m.sqrt(t, t)
        else:
            t = m.sqrt(square)
        t = m.add(t, h["eps"], t)
        t = m.div(g, t, t)
        if isinstance(h["momentum"], Tensor) or h["momentum"] > 0:
            kept = m.mul(s["momentum_buffer"], h["momentum"], s["momentum_buffer"])
            kept = s["momentum_buffer"] = m.add(kept, t, kept)
            t = m.mul(kept, h["lr"], t)
        else:
            t = m.mul(t, h["lr"], t)
        return m.sub(p, t, p)


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993), which uses only the signs of the gradient.

    An element's step size is multiplied by etas[1] while its sign is unchanged, and by etas[0] when it changes; the element
    is then not updated in that step.

    Args:
        params: parameters, or dicts of parameter groups.
        lr: initial step size.
        etas: factors (< 1, > 1) of the step size.
        step_sizes: minimum and maximum step size.
        maximize: maximise instead of minimise.
        differentiable: record the steps on the tape; see `docs/optim.md`.
        capturable, foreach: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, given(locals(), **dict.fromkeys(("foreach", "maximize", "differentiable"), "capturable")))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "prev": 0, "step_size": group["lr"]}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        (shrink, grow), (low, high) = h["etas"], h["step_sizes"]
        t = m.mul(g, s["prev"])
        t = m.sign(t, t)
        turned = m.less(t, 0.0)
        s["prev"] = m.where(turned, 0.0, g, s["prev"])
        t = m.where(m.equal(t, 0.0), 1.0, m.where(turned, shrink, m.where(m.greater(t, 0.0), grow, t, t), t), t)
        size = m.mul(s["step_size"], t, s["step_size"])
        size = s["step_size"] = m.minimum(m.maximum(size, low, size), high, size)
        t = m.mul(m.sign(s["prev"], t), size, t)
        return m.sub(p, t, p)
