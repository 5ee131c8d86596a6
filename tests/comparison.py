"""The programs behind docs/comparison.md: one question, put to each library, and what the library prints.

A question: for each library, by the name of its package, a program that runs on its own, and its output (of an error, the
beginning). The page shows the outputs; tapegrad's programs run in the tests, those of the others in compat/.
"""

import contextlib
import io
import warnings

import numpy as np

TORCH_LIKE = {"tapegrad": "import tapegrad as L", "torch": "import torch as L"}
PENALTY = """
def f(w):
    y = (w * 3).tanh()
    (slope,) = L.autograd.grad(y, w, create_graph=True)
    return y + slope**2
w = L.tensor(0.2, requires_grad=True)
"""
COMPILED = {"tapegrad": "compiled = L.compile(f)", "torch": "compiled = L.compile(f, backend='aot_eager')"}
NESTED = """
penalised = lambda w: (w * 3).tanh() + grad(lambda w: (w * 3).tanh())(w) ** 2
"""
FOREIGN_THREAD = """
import threading
entered, leave = threading.Event(), threading.Event()
def waits(x):
    entered.set()
    leave.wait()
    return x * x
other = threading.Thread(target=lambda: grad(waits)(three))
def f(x):
    leave.set()
    other.join()
    return grad(lambda y: x * y**2)(x)
other.start()
entered.wait()
print(float(grad(f)(three)))
"""
OFF_ELSEWHERE = """
import threading
entered, leave = threading.Event(), threading.Event()
def waits():
    with CALL:
        entered.set()
        leave.wait()
other = threading.Thread(target=waits)
other.start()
entered.wait()
x = L.tensor(3.)
x.requires_grad = True
(x * x).backward()
print(x.grad if x.grad is None else float(x.grad))
leave.set()
other.join()
"""
TWO_TASKS = """
import asyncio
async def evaluates():
    with L.no_grad():
        await asyncio.sleep(0.02)
async def trains():
    await asyncio.sleep(0.01)
    print((L.ones(1, requires_grad=True) * 2).requires_grad)
async def both():
    await asyncio.gather(evaluates(), trains())
asyncio.run(both())
"""
IMMUTABLE = "TypeError: JAX arrays are immutable and do not support in-place item assignment"
NO_BOXES = "TypeError: 'ArrayBox' object does not support item assignment"

HOLDERS = {
    "torch": ("torch", "torch.func", "torch.autograd.functional", "torch.Tensor"),
    "jax": ("jax", "jax.numpy", "jax.experimental", "jax.Array"),
    "autograd": ("autograd", "autograd.extend", "autograd.numpy.numpy_boxes.ArrayBox"),
    "mygrad": ("mygrad", "mygrad.Tensor"),
    "tinygrad": ("tinygrad", "tinygrad.Tensor"),
}
"""Where the packages have the names that their documentation lists."""


def alike(code, ours, theirs):
    """A program for the two libraries with PyTorch's names."""
    return {name: (f"{TORCH_LIKE[name]}\n{code}", out) for name, out in (("tapegrad", ours), ("torch", theirs))}


def absent(package, *names):
    """A program that prints which of the names the package has, or that it has none."""
    places = ", ".join(HOLDERS[package])
    return f"import {package}\nprint([n for p in ({places},) for n in {names} if hasattr(p, n)] or 'none')", "none"


def without(names, *packages):
    return {package: absent(package, *names) for package in packages}


def status(package):
    code = (
        f"print(*[c for c in metadata('{package}').get_all('Classifier') or () if c.startswith('Development')] or ['none'])"
    )
    return f"from importlib.metadata import metadata\n{code}"


QUESTIONS = {
    "third_derivative": {
        **alike(
            "x = L.tensor(2., requires_grad=True)\ny = x**4\n"
            "for _ in range(3):\n    (y,) = L.autograd.grad(y, x, create_graph=True)\nprint(y.item())",
            "48.0",
            "48.0",
        ),
        "jax": ("from jax import grad\nprint(float(grad(grad(grad(lambda x: x**4)))(2.)))", "48.0"),
        "autograd": ("from autograd import grad\nprint(grad(grad(grad(lambda x: x**4)))(2.))", "48.0"),
        "mygrad": (
            "import mygrad\nx = mygrad.tensor(2.)\n(x**4).backward()\nx.grad.backward()",
            "AttributeError: 'numpy.ndarray' object has no attribute 'backward'",
        ),
        "tinygrad": (
            "from tinygrad import Tensor\nx = Tensor([2.])\ny = (x**4).sum()\n"
            "for _ in range(3):\n    y = y.gradient(x)[0].sum()\nprint(y.item())",
            "48.0",
        ),
    },
    "attention_twice": {
        **alike(
            "q, k, v = (L.arange(24.).reshape(1, 1, 4, 6).sin().requires_grad_() for _ in range(3))\n"
            "y = L.nn.functional.scaled_dot_product_attention(q, k, v)\n"
            "(g,) = L.autograd.grad(y.square().sum(), q, create_graph=True)\n"
            "print(round(L.autograd.grad(g.square().sum(), q)[0].norm().item(), 4))",
            "0.0014",
            "RuntimeError: derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented",
        ),
        "jax": (
            "import jax, jax.numpy as jnp\nx = jnp.sin(jnp.arange(24.)).reshape(1, 4, 1, 6)\n"
            "f = lambda q: (jax.nn.dot_product_attention(q, x, x) ** 2).sum()\n"
            "print(round(float(jnp.linalg.norm(jax.grad(lambda q: (jax.grad(f)(q) ** 2).sum())(x).ravel())), 4))",
            "0.0014",
        ),
        "tinygrad": (
            "from tinygrad import Tensor\n"
            "q, k, v = (Tensor([float(i) for i in range(24)]).reshape(1, 1, 4, 6).sin() for _ in range(3))\n"
            "(g,) = q.scaled_dot_product_attention(k, v).square().sum().gradient(q)\n"
            "print(round(g.square().sum().gradient(q)[0].square().sum().sqrt().item(), 4))",
            "0.0014",
        ),
    },
    "where_at_zero": {
        **alike(
            "x = L.tensor([0., 4.], requires_grad=True)\nL.where(x > 0, x.sqrt(), 0.).sum().backward()\n"
            "print(x.grad.tolist())",
            "[0.0, 0.25]",
            "[nan, 0.25]",
        ),
        "jax": (
            "import jax, jax.numpy as jnp\nf = lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.).sum()\n"
            "print(jax.grad(f)(jnp.array([0., 4.])).tolist())",
            "[nan, 0.25]",
        ),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import grad\n"
            "print(grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.)))(np.array([0., 4.])).tolist())",
            "[nan, 0.25]",
        ),
        "mygrad": (
            "import mygrad\nx = mygrad.tensor([0., 4.])\nmygrad.where(x.data > 0, mygrad.sqrt(x), 0.).sum().backward()\n"
            "print(x.grad.tolist())",
            "[nan, 0.25]",
        ),
        "tinygrad": (
            "from tinygrad import Tensor\nx = Tensor([0., 4.])\n"
            "print((x > 0).where(x.sqrt(), 0.).sum().gradient(x)[0].tolist())",
            "[nan, 0.25]",
        ),
    },
    "equal_eigenvalues_twice": {
        **alike(
            "a = L.eye(2).requires_grad_()\n"
            "(g,) = L.autograd.grad((L.linalg.eigvalsh(a) ** 2).sum(), a, create_graph=True)\n"
            "print(L.autograd.grad(g.sum(), a)[0].tolist())",
            "[[2.0, 2.0], [2.0, 2.0]]",
            "[[nan, nan], [nan, nan]]",
        ),
        "jax": (
            "import jax, jax.numpy as jnp\nf = lambda a: (jnp.linalg.eigvalsh(a) ** 2).sum()\n"
            "print(jax.grad(lambda a: jax.grad(f)(a).sum())(jnp.eye(2)).tolist())",
            "[[nan, nan], [nan, nan]]",
        ),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import grad\nf = lambda a: np.sum(np.linalg.eigh(a)[0] ** 2)\n"
            "print(grad(lambda a: np.sum(grad(f)(a)))(np.eye(2)).tolist())",
            "[[nan, nan], [nan, nan]]",
        ),
    },
    "write_after_use": {
        **alike(
            "x = L.tensor([1., 2.], requires_grad=True)\nh = x * 1\ny = (h * h).sum()\nh += 1\ny.backward()\n"
            "print(x.grad.tolist())",
            "[2.0, 4.0]",
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation",
        ),
        "jax": (
            "import jax, jax.numpy as jnp\ndef f(x):\n    h = x * 1\n    y = (h * h).sum()\n    h[0] = 5.\n    return y\n"
            "jax.grad(f)(jnp.array([1., 2.]))",
            IMMUTABLE,
        ),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import grad\n"
            "def f(x):\n    h = x * 1\n    y = np.sum(h * h)\n    h[0] = 5.\n    return y\ngrad(f)(np.array([1., 2.]))",
            NO_BOXES,
        ),
        "mygrad": (
            "import mygrad\nx = mygrad.tensor([1., 2.])\nh = x * 1\ny = (h * h).sum()\nh += 1\ny.backward()\n"
            "print(x.grad.tolist())",
            "[2.0, 4.0]",
        ),
        "tinygrad": (
            "from tinygrad import Tensor\nx = Tensor([1., 2.])\nh = x * 1\ny = (h * h).sum()\nh += 1\n"
            "print(y.gradient(x)[0].tolist())",
            "[2.0, 4.0]",
        ),
    },
    "numpy_alias": {
        **alike(
            "x = L.tensor([1., 2.], requires_grad=True)\ny = (x * x).sum()\nx.detach().numpy()[:] += 1\ny.backward()\n"
            "print(x.grad.tolist())",
            "[2.0, 4.0]",
            "[4.0, 6.0]",
        ),
        "jax": (
            "import jax, numpy as np\nx = jax.numpy.array([1., 2.])\ny, back = jax.vjp(lambda x: (x * x).sum(), x)\n"
            "np.asarray(x)[:] += 1",
            "ValueError: output array is read-only",
        ),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import make_vjp\nx = np.array([1., 2.])\n"
            "back, y = make_vjp(lambda x: np.sum(x * x))(x)\nx += 1\nprint(back(1.).tolist())",
            "[4.0, 6.0]",
        ),
        "mygrad": (
            "import mygrad\nx = mygrad.tensor([1., 2.])\ny = (x * x).sum()\nx.data[:] += 1",
            "ValueError: output array is read-only",
        ),
        "tinygrad": (
            "import numpy as np\nfrom tinygrad import Tensor\na = np.array([1., 2.], np.float32)\nx = Tensor(a)\n"
            "y = (x * x).sum()\na += 1\nprint(y.gradient(x)[0].tolist())",
            "[4.0, 6.0]",
        ),
    },
    "unused_input": {
        **alike(
            "x, w = (L.ones(1, requires_grad=True) for _ in range(2))\nL.autograd.grad((x * x).sum(), w)",
            "RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph",
            "RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph",
        ),
        "jax": ("import jax\nprint(float(jax.grad(lambda w, x: x * x)(1., 1.)))", "0.0"),
        "autograd": ("from autograd import grad\nprint(grad(lambda w, x: x * x)(1., 1.))", "0.0"),
        "mygrad": ("import mygrad\nx, w = mygrad.tensor(1.), mygrad.tensor(1.)\n(x * x).backward()\nprint(w.grad)", "None"),
        "tinygrad": (
            "from tinygrad import Tensor\nx, w = Tensor([1.]), Tensor([1.])\n"
            "print(((x * x).sum().gradient(w)[0] + 0 * x).tolist())",
            "[0.0]",
        ),
    },
    "compiled_penalty": {
        **{
            name: (
                f"{TORCH_LIKE[name]}{PENALTY}{COMPILED[name]}\nfor run in (f, compiled, compiled, compiled):\n"
                "    print(round(L.autograd.grad(run(w), w)[0].item(), 3), end=' ')",
                out,
            )
            for name, out in (("tapegrad", "-27.234 -27.234 -27.234 -27.234"), ("torch", "-27.234 2.135 2.135 2.135"))
        },
        "tinygrad": (
            "from tinygrad import Tensor, TinyJit\ndef f(w):\n    y = (w * 3).tanh().sum()\n"
            "    slope = y.gradient(w)[0].sum()\n    return (y + slope**2).gradient(w)[0].realize()\n"
            "compiled = TinyJit(f)\nfor run in (f, compiled, compiled, compiled):\n"
            "    print(round(run(Tensor([0.2]).realize()).item(), 3), end=' ')",
            "-27.234 -27.234 -27.234 -27.234",
        ),
        **without(("jit", "compile"), "autograd", "mygrad"),
    },
    "compiled_backward": {
        name: (
            f"{TORCH_LIKE[name]}{PENALTY}{COMPILED[name]}\n"
            "for _ in range(3):\n    w.grad = None\n    compiled(w).backward()\nprint(round(w.grad.item(), 3))",
            out,
        )
        for name, out in (
            ("tapegrad", "-27.234"),
            ("torch", "RuntimeError: torch.compile with aot_autograd does not currently support double backward"),
        )
    },
    "compiled_transforms": {
        "tapegrad": (
            f"import tapegrad as tg\nfrom tapegrad.func import grad\n{NESTED}"
            "f = tg.compile(grad(penalised))\nprint([round(f(tg.tensor(0.2)).item(), 3) for _ in range(3)])",
            "[-27.234, -27.234, -27.234]",
        ),
        "torch": (
            f"import torch\nfrom torch.func import grad\n{NESTED}"
            "f = torch.compile(lambda w: grad(penalised)(w), backend='aot_eager')\n"
            "print([round(f(torch.tensor(0.2)).item(), 3) for _ in range(3)])",
            "[-27.234, -27.234, -27.234]",
        ),
        "jax": (
            "import jax\nfrom jax import grad\nfrom jax.numpy import tanh\n"
            "penalised = lambda w: tanh(w * 3) + grad(lambda w: tanh(w * 3))(w) ** 2\n"
            "print(round(float(jax.jit(grad(penalised))(0.2)), 3))",
            "-27.234",
        ),
    },
    "numpy_code": {
        "tapegrad": (
            "import numpy as np, tapegrad as tg\nx = tg.tensor(np.array([0., 1.]), requires_grad=True)\n"
            "np.sum(np.arange(2.) * np.exp(x)).backward()\nprint(x.grad.numpy().round(3).tolist())",
            "[0.0, 2.718]",
        ),
        "torch": (
            "import numpy as np, torch\nx = torch.tensor([0., 1.], requires_grad=True)\n"
            "np.sum(np.arange(2.) * np.exp(x)).backward()",
            "RuntimeError: Can't call numpy() on Tensor that requires grad",
        ),
        "jax": (
            "import numpy as np, jax\n"
            "print(jax.grad(lambda x: np.sum(np.arange(2.) * np.exp(x)))(jax.numpy.array([0., 1.])))",
            "TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on traced array",
        ),
        "autograd": (
            "import numpy as np\nfrom autograd import grad\n"
            "print(grad(lambda x: np.sum(np.arange(2.) * np.exp(x)))(np.array([0., 1.])).round(3).tolist())",
            "[0.0, 2.718]",
        ),
        "mygrad": (
            "import numpy as np, mygrad\nx = mygrad.tensor([0., 1.])\nnp.sum(np.arange(2.) * np.exp(x)).backward()\n"
            "print(x.grad.round(3).tolist())",
            "[0.0, 2.718]",
        ),
        "tinygrad": (
            "import numpy as np\nfrom tinygrad import Tensor\nprint(type(np.exp(Tensor([0., 1.]))).__name__, "
            "np.exp(Tensor([0., 1.])).dtype)",
            "ndarray object",
        ),
    },
    "item_assignment": {
        **alike(
            "x = L.tensor([1., 2.], requires_grad=True)\nh = L.zeros(2)\nh[0] = x[0] * x[1]\nh.sum().backward()\n"
            "print(x.grad.tolist())",
            "[2.0, 1.0]",
            "[2.0, 1.0]",
        ),
        "jax": (
            "import jax, jax.numpy as jnp\ndef f(x):\n    h = jnp.zeros(2)\n    h[0] = x[0] * x[1]\n    return h.sum()\n"
            "jax.grad(f)(jnp.array([1., 2.]))",
            IMMUTABLE,
        ),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import grad\n"
            "def f(x):\n    h = np.zeros(2)\n    h[0] = x[0] * x[1]\n    return np.sum(h)\ngrad(f)(np.array([1., 2.]))",
            "ValueError: setting an array element with a sequence",
        ),
        "mygrad": (
            "import mygrad\nx = mygrad.tensor([1., 2.])\nh = mygrad.zeros(2)\nh[0] = x[0] * x[1]\nh.sum().backward()\n"
            "print(x.grad.tolist())",
            "[2.0, 1.0]",
        ),
        "tinygrad": (
            "from tinygrad import Tensor\nx = Tensor([1., 2.])\nh = Tensor.zeros(2).contiguous()\nh[0] = x[0] * x[1]\n"
            "print(h.sum().gradient(x)[0].tolist())",
            "[2.0, 1.0]",
        ),
    },
    "branch_on_value": {
        "tapegrad": ("import tapegrad as tg\nprint(tg.func.grad(lambda x: x * x if x > 0 else x)(3.))", "6.0"),
        "torch": (
            "import torch\nprint(torch.func.grad(lambda x: x * x if x > 0 else x)(torch.tensor(3.)).item())",
            "6.0",
        ),
        "jax": ("import jax\nprint(float(jax.grad(lambda x: x * x if x > 0 else x)(3.)))", "6.0"),
        "autograd": ("from autograd import grad\nprint(grad(lambda x: x * x if x > 0 else x)(3.))", "6.0"),
        "mygrad": ("import mygrad\nx = mygrad.tensor(3.)\n(x * x if x > 0 else x).backward()\nprint(x.grad)", "6.0"),
        "tinygrad": (
            "from tinygrad import Tensor\nx = Tensor([3.])\nprint((x * x if x > 0 else x).gradient(x))",
            "TypeError: __bool__ on Tensor is not defined",
        ),
    },
    "forward_mode_of_det": {
        **alike("print(L.func.jvp(L.linalg.det, (L.eye(2),), (L.ones(2, 2),))[1].item())", "2.0", "2.0"),
        "jax": (
            "import jax, jax.numpy as jnp\nprint(float(jax.jvp(jnp.linalg.det, (jnp.eye(2),), (jnp.ones((2, 2)),))[1]))",
            "2.0",
        ),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import make_jvp\n"
            "print(make_jvp(np.linalg.det)(np.eye(2))(np.ones((2, 2)))[1])",
            "NotImplementedError: JVP of det wrt argnums (0,) not defined",
        ),
        **without(("jvp", "jacfwd", "linearize"), "mygrad", "tinygrad"),
    },
    "taylor_mode_of_gamma": {
        "tapegrad": (
            "import tapegrad as tg\ny, terms = tg.func.jet(lambda x: tg.lgamma(x).exp(), (3.0,), ([1., 0., 0.],))\n"
            "print([round(float(t), 4) for t in terms])",
            "[1.8456, 2.4929, 3.45]",
        ),
        "jax": (
            "import jax\nfrom jax.experimental.jet import jet\n"
            "jet(lambda x: jax.numpy.exp(jax.lax.lgamma(x)), (3.0,), ([1., 0., 0.],))",
            "KeyError: lgamma",
        ),
        **without(("jet", "taylor"), "torch", "autograd", "mygrad", "tinygrad"),
    },
    "laplacian": {
        "tapegrad": (
            "import tapegrad as tg\nprint(tg.func.laplacian(lambda x: (x**3).sum())(tg.tensor([1., 2.])).item())",
            "18.0",
        ),
        **without(("laplacian",), "torch", "jax", "autograd", "mygrad", "tinygrad"),
    },
    "vmap_of_branch": {
        **alike(
            "print(L.func.vmap(lambda x: x * 2 if x > 0 else -x)(L.tensor([1., -1.])).tolist())",
            "[2.0, 1.0]",
            "RuntimeError: vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow",
        ),
        "jax": (
            "import jax\nprint(jax.vmap(lambda x: x * 2 if x > 0 else -x)(jax.numpy.array([1., -1.])).tolist())",
            "TracerBoolConversionError: Attempted boolean conversion of traced array",
        ),
        **without(("vmap", "vectorize"), "autograd", "mygrad", "tinygrad"),
    },
    "hook": {
        **alike(
            "x = L.ones(1, requires_grad=True)\ny = x * 2\ny.register_hook(lambda g: g * 10)\ny.sum().backward()\n"
            "print(x.grad.item())",
            "20.0",
            "20.0",
        ),
        **without(("register_hook", "register_backward_hook"), "jax", "autograd", "mygrad", "tinygrad"),
    },
    "through_adam": alike(
        "w = L.tensor([3., 1.], requires_grad=True)\np = w.clone()\n"
        "optimizer = L.optim.Adam([p], lr=0.1, differentiable=True)\n"
        "(p.grad,) = L.autograd.grad((p**2).sum(), p, create_graph=True)\noptimizer.step()\n(p**2).sum().backward()\n"
        "print([round(g, 4) for g in w.grad.tolist()])",
        "[5.8, 1.8]",
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation",
    ),
    "foreign_thread": {
        "tapegrad": (f"from tapegrad.func import grad\nthree = 3.\n{FOREIGN_THREAD}", "12.0"),
        "torch": (f"import torch\nfrom torch.func import grad\nthree = torch.tensor(3.)\n{FOREIGN_THREAD}", "12.0"),
        "jax": (f"from jax import grad\nthree = 3.\n{FOREIGN_THREAD}", "12.0"),
        "autograd": (f"from autograd import grad\nthree = 3.\n{FOREIGN_THREAD}", "6.0"),
    },
    "no_grad_in_another_thread": {
        **alike(OFF_ELSEWHERE.replace("CALL", "L.no_grad()"), "6.0", "6.0"),
        "mygrad": ("import mygrad as L\n" + OFF_ELSEWHERE.replace("CALL", "L.no_autodiff"), "None"),
    },
    "no_grad_in_another_task": alike(TWO_TASKS, "True", "False"),
    "complex_numbers": {
        **alike(
            "z = L.tensor(1 + 2j, requires_grad=True)\n(z.abs() ** 2).backward()\nprint(z.grad.item())", "(2+4j)", "(2+4j)"
        ),
        "jax": ("import jax\nprint(complex(jax.grad(lambda z: abs(z) ** 2)(1 + 2j)))", "(2-4j)"),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import grad\nprint(complex(grad(lambda z: np.abs(z) ** 2)(1 + 2j)))",
            "(2-4j)",
        ),
        "mygrad": ("import mygrad\nmygrad.tensor(1 + 2j)", "TypeError: Tensor data must be of an floating type"),
        "tinygrad": ("from tinygrad import Tensor\nTensor(1 + 2j)", "RuntimeError: can't create Tensor from (1+2j)"),
    },
    "python_float": {
        "tapegrad": ("import numpy as np, tapegrad as tg\nprint(tg.func.grad(np.sin)(1.))", "0.5403023058681398"),
        "torch": (
            "import torch\nprint(torch.func.grad(torch.sin)(1.))",
            "ValueError: Thing passed to transform API must be Tensor, got <class 'float'>",
        ),
        "jax": ("import jax\nprint(jax.grad(jax.numpy.sin)(1.).dtype)", "float32"),
        "autograd": (
            "import autograd.numpy as np\nfrom autograd import grad\nprint(grad(np.sin)(1.))",
            "0.5403023058681398",
        ),
    },
    "compressed_sparse": alike(
        "print(L.eye(2).to_sparse_csr().layout)",
        "NotImplementedError: to_sparse_csr: compressed sparse tensors are out of tapegrad's scope",
        "torch.sparse_csr",
    ),
    "development_status": {
        "torch": (status("torch"), "Development Status :: 5 - Production/Stable"),
        "jax": (status("jax"), "Development Status :: 5 - Production/Stable"),
        "autograd": (status("autograd"), "Development Status :: 4 - Beta"),
        "mygrad": (status("mygrad"), "Development Status :: 5 - Production/Stable"),
        "tinygrad": (status("tinygrad"), "none"),
    },
}


def agrees(got, expected):
    return got.startswith(expected) if "Error: " in expected else got == expected


def run(code):
    """The program's output, and its error."""
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<comparison>", "exec"), {"__name__": "comparison"})
        except Exception as e:
            print(f"{type(e).__name__}: {e}")
    return out.getvalue().strip()
