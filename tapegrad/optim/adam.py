"""Adam and its variants."""

from __future__ import annotations

from typing import Any

from ..functions import elementwise
from ..tensor.tensor import Tensor
from .optimizer import Optimizer, ParamsT, _get_scalar_dtype, check, check_betas, check_lr, check_size, given
from .sgd import number


class AdamFamily(Optimizer):
    """Base of the optimizers with two betas: checks, and running means of the gradient and its square."""

    def __init__(self, params: ParamsT, settings: dict[str, Any]) -> None:
        check_lr(settings["lr"])
        check("epsilon value", settings["eps"])
        check_betas(settings["betas"])
        check("weight_decay value", settings["weight_decay"])
        super().__init__(params, settings)

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": 0, "exp_avg_sq": 0}

    def means(self, m: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> tuple[Any, Any]:
        """Update and return the running means of the state."""
        beta1, beta2 = h["betas"]
        s["exp_avg"] = m.lerp(s["exp_avg"], g, 1 - beta1, s["exp_avg"])
        s["exp_avg_sq"] = m.mean_square(s["exp_avg_sq"], g, beta2, s["exp_avg_sq"])
        return s["exp_avg"], s["exp_avg_sq"]


def check_tensors(lr: Any, betas: Any, foreach: bool) -> None:
    """Raise for tensors as settings in the cases in which PyTorch raises."""
    if isinstance(lr, Tensor) and foreach:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
    for i in (0, 1):
        if isinstance(betas[i], Tensor) and foreach:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        check_size(betas[i], f"betas[{i}]")


class Adam(AdamFamily):
    """Adam (Kingma and Ba 2015).

    With m and v the bias-corrected running means of the gradient and its square, the parameter changes by
    -lr * m / (sqrt(v) + eps).

    Args:
        params: parameters, or dicts of parameter groups.
        lr: learning rate.
        betas: decay rates of the running means.
        eps: added to sqrt(v).
        weight_decay: L2 penalty: weight_decay times the parameter is added to the gradient.
        amsgrad: use the maximum of all v so far (Reddi et al. 2018).
        maximize: maximise instead of minimise.
        decoupled_weight_decay: multiply the parameter by 1 - lr * weight_decay instead of changing the gradient (AdamW).
        differentiable: record the steps on the tape; see `docs/optim.md`.
        foreach, capturable, fused: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = tg.optim.Adam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000, 1.9000])
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        check_tensors(lr, betas, bool(foreach) and not capturable)
        super().__init__(params, given(locals(), maximize="foreach"))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return super().start(group) | ({"max_exp_avg_sq": 0} if group["amsgrad"] else {})

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update; the bias corrections are scalars, applied where they need no further pass over the arrays."""
        (beta1, beta2), step = h["betas"], s["step"]
        mean, square = self.means(m, g, s, h)
        if h["amsgrad"]:
            square = s["max_exp_avg_sq"] = m.maximum(s["max_exp_avg_sq"], square, s["max_exp_avg_sq"])
        root = (1 - beta2**step) ** 0.5
        t = m.sqrt(square)
        t = m.add(t, h["eps"] * root, t)
        t = m.div(mean, t, t)
        t = m.mul(t, h["lr"] * root / (1 - beta1**step), t)
        return m.sub(p, t, p)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Args:
        params: parameters, or dicts of parameter groups.
        lr, betas, eps, amsgrad, maximize, foreach, capturable, differentiable, fused: as for Adam.
        weight_decay: each step first multiplies the parameter by 1 - lr * weight_decay.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = tg.optim.AdamW([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8990, 1.8980])
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip


def rounded(value: Any) -> Any:
    """A float64 tensor rounded to the dtype of the state's counters; numbers are rounded by NumPy."""
    return value.to(_get_scalar_dtype()).to(value.dtype) if isinstance(value, Tensor) else value


class NAdam(AdamFamily):
    """Adam with Nesterov momentum (Dozat 2016).

    With mu(t) = beta1 * (1 - 0.96**(t * momentum_decay) / 2) and P = mu(1) * ... * mu(t), the parameter changes by
    -lr * ((1 - mu(t)) / (1 - P) * g + mu(t + 1) / (1 - P * mu(t + 1)) * m) / (sqrt(v) + eps).

    Args:
        params: parameters, or dicts of parameter groups.
        lr, betas, eps, weight_decay, decoupled_weight_decay, maximize, foreach, capturable, differentiable: as for Adam.
        momentum_decay: see the formula.

    Raises:
        ValueError: for settings out of range.
    """

    scalars = ("step", "mu_product")

    def __init__(
        self, params: ParamsT, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check("momentum_decay value", momentum_decay)
        super().__init__(params, given(locals(), maximize="foreach"))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "mu_product": 1, "exp_avg": 0, "exp_avg_sq": 0}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        (beta1, beta2), step, decay = h["betas"], s["step"], h["momentum_decay"]
        mean, square = self.means(m, g, s, h)
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * decay)) for t in (step, step + 1))
        product = rounded(s["mu_product"] * rounded(mu))
        s["mu_product"], product = product, number(product)
        t = m.div(square, 1 - beta2**step)
        t = m.sqrt(t, t)
        t = m.add(t, h["eps"], t)
        u = m.mul(g, h["lr"] * (1 - mu) / (1 - product))
        u = m.addmul(u, mean, h["lr"] * following / (1 - product * following), u)
        return m.sub(p, m.div(u, t, u), p)


PLAIN = ("maximize", "foreach", "capturable")  # PyTorch's groups of RAdam have these before decoupled_weight_decay


class RAdam(AdamFamily):
    """Adam with a rectified second moment (Liu et al. 2020); the first steps use momentum alone.

    Args:
        params: parameters, or dicts of parameter groups.
        lr, betas, eps, weight_decay, decoupled_weight_decay, maximize, foreach, capturable, differentiable: as for Adam.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, given(locals(), **dict.fromkeys(PLAIN, "decoupled_weight_decay")))

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        (beta1, beta2), step = h["betas"], s["step"]
        mean, square = self.means(m, g, s, h)
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction
        t = m.mul(mean, h["lr"] / (1 - beta1**step))
        enough = length > 5
        if not isinstance(enough, Tensor) and not enough:
            return m.sub(p, t, p)
        rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length) * correction
        u = m.sqrt(square)
        u = m.add(u, h["eps"], u)
        if isinstance(enough, Tensor):  # the count differs between samples of a batch
            factor = elementwise.where(enough, elementwise.where(enough, rectified, 1.0).sqrt() / u, 1.0)
            return m.sub(p, m.mul(t, factor), p)
        t = m.div(m.mul(t, rectified**0.5, t), u, t)
        return m.sub(p, t, p)


class Adamax(AdamFamily):
    """Adam with the exponentially weighted infinity norm of the gradients instead of sqrt(v) (Kingma and Ba 2015).

    Args:
        params: parameters, or dicts of parameter groups.
        lr, betas, eps, weight_decay, maximize, foreach, capturable, differentiable: as for Adam.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self, params: ParamsT, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, given(locals()))

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": 0, "exp_inf": 0}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        beta1, beta2 = h["betas"]
        mean = s["exp_avg"] = m.lerp(s["exp_avg"], g, 1 - beta1, s["exp_avg"])
        t = m.abs(g)
        t = m.add(t, h["eps"], t)
        largest = m.mul(s["exp_inf"], beta2, s["exp_inf"])
        largest = s["exp_inf"] = m.maximum(largest, t, largest)
        t = m.div(mean, largest, t)
        t = m.mul(t, h["lr"] / (1 - beta1 ** s["step"]), t)
        return m.sub(p, t, p)
