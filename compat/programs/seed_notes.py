"""Notes on autodiff, step by step. Argument: the library, torch unless given."""

import importlib
import re
import sys
import warnings

library = sys.argv[1] if len(sys.argv) > 1 else "torch"
torch = importlib.import_module(library)
nn = importlib.import_module(library + ".nn")
torch.manual_seed(0)
warnings.simplefilter("ignore")


def check(x):
    text = f"is_leaf: {x.is_leaf}, requires_grad: {x.requires_grad}, grad_fn: {x.grad_fn}, grad: {x.grad}"
    print(re.sub(r"0x[0-9a-f]+", "0x..", text))


def refused(function, *kinds):
    try:
        function()
    except (RuntimeError, TypeError, AssertionError) as error:
        print("refused:", *kinds, *(k in str(error) for k in kinds))


print("# is_leaf and requires_grad")
x = torch.rand(1, 3)
y = nn.Linear(3, 5)(x)


def change():
    y.requires_grad = False


refused(change, "you can only change requires_grad flags of leaf variables", "var_no_grad = var.detach()")
check(torch.rand(3, requires_grad=True))
x = torch.rand(3)
x.requires_grad = True
print(x.requires_grad_(True) is x, x.requires_grad)
check(nn.Parameter(torch.rand(3)))
check(nn.Linear(3, 5).weight)

print("# backward and grad")
refused(torch.rand(3).sum().backward, "element 0 of tensors does not require grad and does not have a grad_fn")
a = torch.ones(2, requires_grad=True)
b = a * 2
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(b.grad, [str(w.message).split(". ")[0] for w in caught])

print("# detach, clone, no_grad")
check(b.detach())
print(b.detach().data_ptr() == b.data_ptr(), b.clone().data_ptr() == b.data_ptr(), b.clone().requires_grad)
with torch.no_grad():
    print((a * 2).requires_grad)
    with torch.enable_grad():
        print((a * 2).requires_grad)


@torch.no_grad()
def func(x):
    return x * 2


print(func(a).requires_grad)
for flag in (True, False):
    with torch.set_grad_enabled(flag):
        print((a * 2).requires_grad)

print("# eval")
model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Dropout(0.5))
model.eval()
with torch.no_grad():
    print(tuple(model(torch.rand(2, 3)).shape), model[2].training)

print("# retain_grad")
y = a * 2
print(y.retains_grad)
y.retain_grad()
(y * 3).sum().backward()
print(y.retains_grad, y.grad, a.grad)

print("# autograd.grad")
w = torch.tensor([1.0, 2.0], requires_grad=True)
print(torch.autograd.grad((w**2).sum(), w), w.grad)
print(torch.autograd.grad(w**2, w, grad_outputs=torch.tensor([1.0, 10.0])))
(first,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
print(first.requires_grad, torch.autograd.grad(first.sum(), w)[0])


class SDF(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, 16), nn.Softplus(beta=100), nn.Linear(16, 1))

    def forward(self, input):
        with torch.set_grad_enabled(True):
            input.requires_grad_(True)
            sigma = self.backbone(input)
            normal = -torch.autograd.grad(torch.sum(sigma), input, create_graph=True)[0]
            return sigma, normal


net = SDF()
with torch.no_grad():
    sigma, normal = net(torch.rand(2, 4, 3))
print(tuple(sigma.shape), tuple(normal.shape), normal.requires_grad)
((normal.norm(dim=-1) - 1) ** 2).mean().backward()
print(net.backbone[0].weight.grad.abs().sum() > 0, net.backbone[2].bias.grad)

print("# the examples: simple operations")
check(torch.rand(3))
check(torch.rand(3, requires_grad=True))
check(torch.rand(3, requires_grad=True) + 1)
cuda = torch.cuda.is_available()
print("cuda:", cuda)
if cuda:
    check(torch.rand(3, requires_grad=True).cuda())
    check(torch.rand(3).cuda())
    check(torch.rand(3, requires_grad=True, device="cuda"))
else:
    refused(lambda: torch.rand(3, requires_grad=True).cuda(), "Torch not compiled with CUDA enabled")
    refused(lambda: torch.rand(3).cuda(), "Torch not compiled with CUDA enabled")
    refused(lambda: torch.rand(3, requires_grad=True, device="cuda"), "Torch not compiled with CUDA enabled")
check(torch.rand(3, requires_grad=True).to(torch.float64))
check(torch.rand(3) + 1)
check(torch.rand(3, requires_grad=True, device="cpu"))

print("# the examples: modules")
lin = nn.Linear(3, 5)
check(lin.weight)
x = torch.rand(1, 3)
y = lin(x)
check(y)
gt = torch.full((1, 5), 100.0)
refused(lambda: nn.L1Loss(y, gt))
value = nn.L1Loss()(y, gt)
print(value.is_leaf, value.requires_grad, value.grad_fn is not None, value.grad)
value.backward()
check(lin.weight)
print(x.grad, y.grad, value.grad, gt.grad)
