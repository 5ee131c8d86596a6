"""An optimiser that asks for curvature: Hutchinson's estimate of the Hessian's diagonal, kept on the parameters."""

import torch


class CurvatureSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, n_samples=1):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        self.n_samples = n_samples
        self.generator = torch.Generator().manual_seed(2147483647)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        for p in self.get_params():
            p.hess = 0.0
            self.state[p]["hessian step"] = 0

    def get_params(self):
        return (p for group in self.param_groups for p in group["params"] if p.requires_grad)

    @torch.no_grad()
    def set_hessian(self):
        params = [p for p in self.get_params() if p.grad is not None]
        for p in params:
            p.hess = 0.0
            self.state[p]["hessian step"] += 1
        if self.generator.device != params[0].device:
            self.generator = torch.Generator(params[0].device).manual_seed(2147483647)
        grads = [p.grad for p in params]
        for i in range(self.n_samples):
            zs = [torch.randint(0, 2, p.size(), generator=self.generator, device=p.device) * 2.0 - 1.0 for p in params]
            h_zs = torch.autograd.grad(grads, params, grad_outputs=zs, only_inputs=True, retain_graph=i < self.n_samples - 1)
            for h_z, z, p in zip(h_zs, zs, params):
                p.hess += h_z * z / self.n_samples

    @torch.no_grad()
    def step(self, closure=None):
        self.set_hessian()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.dim() == 4:
                    p.hess = torch.abs(p.hess).mean(dim=[2, 3], keepdim=True).expand_as(p.hess).clone()
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 1:
                    state["step"] = 0
                    state["exp_avg"], state["exp_hess"] = torch.zeros_like(p.data), torch.zeros_like(p.data)
                beta1, beta2 = group["betas"]
                state["step"] += 1
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["exp_hess"].mul_(beta2).addcmul_(p.hess, p.hess, value=1 - beta2)
                denom = (state["exp_hess"] / (1 - beta2 ** state["step"])).pow_(1 / 2).add_(group["eps"])
                p.addcdiv_(state["exp_avg"], denom, value=-group["lr"] / (1 - beta1 ** state["step"]))


def smooth_crossentropy(pred, gold, smoothing=0.1):
    one_hot = torch.full_like(pred, fill_value=smoothing / (pred.size(1) - 1))
    one_hot.scatter_(dim=1, index=gold.unsqueeze(1), value=1.0 - smoothing)
    log_prob = torch.nn.functional.log_softmax(pred, dim=1)
    return torch.nn.functional.kl_div(input=log_prob, target=one_hot, reduction="none").sum(-1)


torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3, padding=1, bias=False), torch.nn.BatchNorm2d(4), torch.nn.Softplus(),
    torch.nn.AvgPool2d(kernel_size=4), torch.nn.Flatten(), torch.nn.Linear(16, 3),
)  # fmt: skip
images, labels = torch.randn(24, 1, 8, 8), torch.arange(24) % 3
images += labels.view(-1, 1, 1, 1) * torch.linspace(-1, 1, 8)
optimizer = CurvatureSGD(model.parameters(), lr=0.01, eps=1e-2, weight_decay=5e-4, n_samples=2)
for step in range(8):
    optimizer.zero_grad()
    loss = smooth_crossentropy(model(images), labels)
    loss.mean().backward(create_graph=True)
    optimizer.step()
    with torch.no_grad():
        correct = (torch.argmax(model(images).data, 1).cpu() == labels).float()
    print(f"{step:3d} | {loss.mean():.4f} | {100 * correct.mean():10.2f} %")
print([f"{p.hess.abs().mean().item():.5f}" for p in model.parameters()], optimizer.state[model[5].bias]["step"])
