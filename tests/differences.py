"""Where tapegrad differs from PyTorch on purpose: the rows of docs/differences.md.

A row: title (as in the page), a program, what tapegrad prints, what PyTorch 2.13 prints (an error's text may go on). `L` is
the library, `np` NumPy.
"""

import contextlib
import io
import warnings

import numpy as np

ROWS = [
    ("binary_cross_entropy has the exact derivative near 0 and 1",
     "a = L.tensor(-50., requires_grad=True)\n"
     "L.nn.functional.binary_cross_entropy(a.sigmoid(), L.tensor(1.)).backward(); print(round(a.grad.item(), 3))",
     "-1.0", "-0.0"),
    ("derivatives of tanh, hypot, saturated softmax and cross_entropy keep their digits",
     "x = L.tensor(20., dtype=L.float64, requires_grad=True); x.tanh().backward(); print('%.6g' % x.grad.item())\n"
     "y = L.tensor([[0., -50.]], requires_grad=True); L.nn.functional.cross_entropy(y, L.tensor([0])).backward()\n"
     "print('%.4g' % y.grad[0, 0].item())",
     "1.69934e-17\n-1.929e-22", "0\n0"),
    ("the slope of x**y depends on y at y = 0, too",
     "x = L.tensor(2., requires_grad=True); y = L.tensor(0., requires_grad=True)\n"
     "g, = L.autograd.grad(x**y, x, create_graph=True); print(L.autograd.grad(g, y)[0].item())", "0.5", "0.0"),
    ("the sign of nan is nan, and so is the derivative of abs there",
     "print(L.sign(L.tensor(float('nan'))).item())", "nan", "0.0"),
    ("an infinite ctc_loss has gradient 0",
     "lp = L.full((1, 1, 2), -0.6931472).requires_grad_()\n"
     "L.nn.functional.ctc_loss(lp, L.tensor([[1, 1]]), (1,), (2,), reduction='sum').backward(); print(lp.grad.isnan().any().item())",
     "False", "True"),
    ("scatter_reduce and index_reduce with include_self=False give self no gradient at ties",
     "x = L.ones(2, requires_grad=True); v = L.ones(1, requires_grad=True)\n"
     "L.scatter_reduce(x, 0, L.tensor([0]), v, 'amax', include_self=False).sum().backward(); print(v.grad.tolist())",
     "[1.0]", "[0.5]"),
    ("out= is recorded",
     "x = L.ones(1, requires_grad=True); y = L.zeros(1); L.exp(x, out=y); print(y.requires_grad)",
     "True", "RuntimeError: exp(): functions with out=... arguments don't support automatic differentiation"),
    ("amax and amin pass an infinite or nan cotangent on to what was chosen alone",
     "x = L.tensor([-1., 0.], requires_grad=True); x.amax().sqrt().backward(); print(x.grad.tolist())",
     "[0.0, inf]", "[nan, inf]"),
    ("soft_margin_loss can be differentiated by its target",
     "y = L.tensor(1., requires_grad=True); L.nn.functional.soft_margin_loss(L.tensor(1.), y).backward()\n"
     "print(round(y.grad.item(), 4))",
     "-0.2689",
     "RuntimeError: The function 'soft_margin_loss' is not differentiable with respect to argument 'target'. This input cannot "
     "have requires_grad True."),
    ("the result of heaviside does not require grad",
     "print(L.ones(2, requires_grad=True).heaviside(L.ones(2)).requires_grad)", "False", "True"),
    ("a branch not taken has gradient 0 where its derivative is infinite",
     "x = L.tensor([0., 4.], requires_grad=True); L.where(x > 0, x.sqrt(), 0.).sum().backward(); print(x.grad.tolist())",
     "[0.0, 0.25]", "[nan, 0.25]"),
    ("mixed second derivatives are 0 there too",
     "a = L.tensor(0., requires_grad=True); x = L.tensor(0., requires_grad=True)\n"
     "g, = L.autograd.grad(a * x.sqrt(), x, create_graph=True); print(L.autograd.grad(g, a)[0].item())",
     "0.0", "inf"),
    ("a fully masked softmax row that the loss does not use has gradient 0",
     "s = L.tensor([[0., 0.], [-np.inf, -np.inf]], requires_grad=True); s.softmax(1)[0, 0].backward(); print(s.grad.tolist())",
     "[[0.25, -0.25], [0.0, 0.0]]", "[[0.25, -0.25], [nan, nan]]"),
    ("a row of logits whose target is ignored gets gradient 0, even if it contains inf",
     "x = L.tensor([[0., 0.], [-np.inf, -np.inf]], requires_grad=True)\n"
     "L.nn.functional.cross_entropy(x, L.tensor([0, -100])).backward(); print(x.grad.tolist())",
     "[[-0.5, 0.5], [0.0, 0.0]]", "[[-0.5, 0.5], [nan, nan]]"),
    ("embedding_bag(scale_grad_by_freq=True) divides by how often the index occurs, as embedding does",
     "w = L.ones(4, 1, requires_grad=True); i = L.tensor([2, 2, 2, 1, 2, 0, 0, 3, 1])\n"
     "L.nn.functional.embedding_bag(i, w, L.tensor([0]), mode='sum', scale_grad_by_freq=True).sum().backward()\n"
     "print(w.grad.flatten().tolist())",
     "[1.0, 1.0, 1.0, 1.0]", "[1.0, 1.0, 2.0, 0.5]"),
    ("if max_unpool writes several values to one position, only the last one, which remains, gets the gradient",
     "x = L.tensor([[1., 2.]], requires_grad=True)\n"
     "L.nn.functional.max_unpool1d(x, L.tensor([[1, 1]]), 2).sum().backward(); print(x.grad.tolist())",
     "[[0.0, 1.0]]", "[[1.0, 1.0]]"),
    ("acosh below -1, where it is nan, has gradient nan",
     "x = L.tensor([-2., 2.], requires_grad=True); L.acosh(x).sum().backward(); print(x.grad.isnan().tolist())",
     "[True, False]", "[False, False]"),
    ("an infinite element with interpolation weight 0 contributes nothing",
     "x = L.tensor([[[1., np.inf, 2.]]])\n"
     "print(L.nn.functional.interpolate(x, 2, mode='linear', align_corners=True).tolist())",
     "[[[1.0, 2.0]]]", "[[[nan, 2.0]]]"),
    ("CrossMapLRN2d sums over the channels at most (size - 1) // 2 away, and its gradient is that of this sum",
     "x = L.arange(1., 6.).reshape(1, 5, 1, 1)\n"
     "print(L.nn.CrossMapLRN2d(3, alpha=3., beta=-1., k=0.)(x).round().flatten().tolist())",
     "[5.0, 28.0, 87.0, 200.0, 205.0]", "[5.0, 28.0, 90.0, 204.0, 210.0]"),
    ("Embedding and EmbeddingBag with sparse=True have dense gradients",
     "e = L.nn.Embedding(2, 1, sparse=True); e(L.tensor([1])).sum().backward(); print(e.weight.grad.is_sparse)",
     "False", "True"),
    ("batch normalisation updates its running statistics inside grad and jvp too",
     "b = L.nn.BatchNorm1d(1); x = L.tensor([[1.], [3.]])\n"
     "L.func.grad(lambda x: b(x).sum())(x); L.func.jvp(b, (x,), (x,)); print(round(b.running_mean.item(), 4))",
     "0.38", "RuntimeError: During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place"),
    ("embedding_bag with include_last_offset leaves out what stands behind the last offset",
     "w = L.arange(3.)[:, None]; print(L.nn.functional.embedding_bag(L.arange(3), w, L.tensor([0, 2]), include_last_offset=True).tolist())",
     "[[0.5]]", "[[0.3333333432674408]]"),
    ("out= converts the result where PyTorch requires its dtype, but never to a lower category",
     "out = L.zeros(1, dtype=L.int64); print(L.neg(L.ones(1, dtype=L.int32), out=out).dtype)",
     "torch.int64", "RuntimeError: Found dtype Long but expected Int"),
    ("where takes a condition of numbers: those other than 0 are true",
     "print(L.where(L.tensor([0., 2.]), 1, 2).tolist())",
     "[2, 1]", "RuntimeError: where expected condition to be a boolean tensor, but got a tensor with dtype Float"),
    ("operands of several dtypes are promoted where PyTorch requires one dtype, products excepted",
     "print(L.allclose(L.ones(1), L.ones(1).double()), L.einsum('i,i', L.ones(1), L.ones(1).double()).dtype)",
     "True torch.float64", "RuntimeError: Float did not match Double"),
    ("bools, integers and 16-bit floats are accepted where PyTorch has no kernel",
     "print(L.isin(L.tensor([True, False]), L.tensor([True])).tolist())",
     "[True, False]", "RuntimeError: Unsupported input type encountered for isin(): Bool"),
    ("int32 indices are accepted where PyTorch requires int64",
     "i = L.tensor([1], dtype=L.int32); print(L.arange(3).take(i).tolist(), L.nn.functional.one_hot(i).tolist())",
     "[1] [[0, 1]]", "RuntimeError: take(): Expected a long tensor for index, but got Int"),
    ("functions of tensors without elements give tensors without elements, or zeros",
     "print(tuple(L.fft.fft(L.zeros(0, 6)).shape), tuple(L.nn.functional.instance_norm(L.zeros(0, 2, 3)).shape))",
     "(0, 6) (0, 2, 3)", "RuntimeError: MKL FFT error"),
    ("as_strided_scatter passes no gradient to the elements that it overwrites",
     "x = L.zeros(3, requires_grad=True); L.as_strided_scatter(x, L.ones(1), (1,), (1,)).sum().backward(); print(x.grad.tolist())",
     "[0.0, 1.0, 1.0]", "[1.0, 0.0, 0.0]"),
    ("normal with tensors has the gradient of mean + std * noise",
     "m = L.zeros(2, requires_grad=True); L.normal(m, 1.).sum().backward(); print(m.grad.tolist())",
     "[1.0, 1.0]", "[0.0, 0.0]"),
    ("a write into a view that contains an element twice raises an error",
     "x = L.ones(3); x.unfold(0, 2, 1).mul_(2); print(x.tolist())",
     "RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location",
     "[2.0, 4.0, 2.0]"),
    ("zero_() and fill_() of an expanded tensor raise an error, as other writes do",
     "x = L.ones(1); x.expand(2).zero_(); print(x.item())",
     "RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location", "0.0"),
    ("scatter with an index smaller than src can be differentiated",
     "v = L.ones(2, requires_grad=True); L.zeros(2).scatter(0, L.tensor([1]), v).sum().backward(); print(v.grad.tolist())",
     "[1.0, 0.0]", "RuntimeError: Function ScatterBackward0 returned an invalid gradient"),
    ("hypot has gradient 0 at the origin",
     "x = L.zeros(1, requires_grad=True); L.hypot(x, L.zeros(1)).backward(); print(x.grad.tolist())",
     "[0.0]", "[nan]"),
    ("a write in place after a value was saved gives the right gradient",
     "a = L.tensor([1., 2.], requires_grad=True); y = a * 1; z = (y * y).sum(); y.mul_(0); z.backward(); print(a.grad.tolist())",
     "[2.0, 4.0]", "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"),
    ("a hook registered on a view after its base was written sees the gradient of the view",
     "b = L.ones(2, requires_grad=True) * 1; v = b[:1]; v.register_hook(lambda g: None); b.mul_(2)\n"
     "seen = []; v.register_hook(lambda g: seen.append(g.item())); (v * 5).sum().backward(); print(seen)",
     "[5.0]", "[]"),
    ("hooks on a view stay where a write is not recorded",
     "b = L.ones(2, requires_grad=True) * 1; v = b[:1]; seen = []; v.register_hook(lambda g: seen.append(g.item()))\n"
     "with L.no_grad():\n    b.mul_(2)\n"
     "(v * 5).sum().backward(); print(seen)",
     "[5.0]", "[]"),
    ("view(dtype) of the tensor's own dtype passes the gradient on",
     "print(L.ones(2, requires_grad=True).view(L.float32).requires_grad)", "True", "False"),
    ("copy.copy of a computed tensor has its history",
     "import copy; print(copy.copy(L.ones(2, requires_grad=True) * 2).is_leaf)", "False", "True"),
    ("retain_grad() works on a view that a write into its base made require grad",
     "b = L.zeros(2); v = b[:1]; b.mul_(L.ones(2, requires_grad=True)); v.retain_grad(); (v * 5).sum().backward(); print(v.grad is None)",
     "False", "True\nUserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."),
    ("elements that as_strided_() leaves out of its tensor keep their gradient in other views",
     "a = L.ones(2, requires_grad=True); y = a * 2; v = y[:1]; y.as_strided_((1,), (1,), 1); (v * v).sum().backward(); print(a.grad.tolist())",
     "[8.0, 0.0]", "[0.0, 0.0]"),
    ("views do not depend on a base that as_strided_() makes show an element twice, but on what it was",
     "y = L.ones(2, requires_grad=True) * 2; v = y[:1]; y.as_strided_((2, 1), (0, 1))\n"
     "g, = L.autograd.grad((v * v).sum(), y, allow_unused=True); print(g is None)",
     "True", "False"),
    ("the retained gradient of a tensor that was transposed in place has its shape",
     "b = L.ones(1, 2, requires_grad=True) * 1; b.retain_grad(); b.t_(); (b * 2).sum().backward(); print(b.grad.shape)",
     "torch.Size([2, 1])", "torch.Size([1, 2])"),
    ("a view made under no_grad does not require grad",
     "b = L.ones(2, requires_grad=True) * 1\nwith L.no_grad():\n    v = b[:1]\nprint(v.requires_grad)", "False", "True"),
    ("a write through a NumPy alias cannot change a gradient",
     "a = L.tensor([1., 2.], requires_grad=True); y = (a * a).sum(); a.detach().numpy()[:] += 1; y.backward(); print(a.grad.tolist())",
     "[2.0, 4.0]", "[4.0, 6.0]"),
    ("NumPy functions and arrays on the left are recorded",
     "t = L.ones(2, requires_grad=True); (np.ones(2, np.float32) * np.sum(t)).sum().backward(); print(t.grad.tolist())",
     "[2.0, 2.0]", "TypeError: "),
    ("a module moved to the device meta has parameters that are nan, on the CPU",
     "print(L.nn.Linear(1, 1).to('meta').weight.tolist())", "[[nan]]", "NotImplementedError: "),
    ("no tensor is made on the device meta: all have values",
     "print(L.empty(2, device='meta').shape)", "RuntimeError: no meta device is available: ", "torch.Size([2])"),
    ("a node whose saved values are released has no next_functions",
     "a = L.ones(1, requires_grad=True); y = a * a; y.backward(); print(len(y.grad_fn.next_functions))", "0", "2"),
    ("`__torch_dispatch__` is not asked, and a class that defines it gives a warning",
     "class D(L.Tensor):\n    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
     "        print('asked'); return args[0]\n"
     "L.ones(1).as_subclass(D) + 1",
     "UserWarning: D.__torch_dispatch__ is never called: tapegrad has no dispatcher. Define __torch_function__, which every "
     "public function asks.", "asked"),
    ("nn.Parameter of a tensor of a subclass has the class Parameter",
     "class D(L.Tensor): pass\nprint(type(L.nn.Parameter(L.ones(1).as_subclass(D))).__name__)", "Parameter", "D"),
    ("slices may have a negative step",
     "print(L.arange(3)[::-1].tolist())", "[2, 1, 0]", "ValueError: step must be greater than zero"),
    ("allow_unused covers an input that does not require grad",
     "a = L.ones(1); b = L.ones(1, requires_grad=True); print(L.autograd.grad(a * b, (a, b), allow_unused=True)[0])",
     "None", "RuntimeError: One of the differentiated Tensors does not require grad"),
    ("float() of a tracked tensor does not warn",
     "print(float(L.ones(1, requires_grad=True)))",
     "1.0", "1.0\nUserWarning: Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior."),
    ("backward(create_graph=True) does not warn: no reference cycle can form",
     "a = L.ones(1, requires_grad=True); (a * a).backward(create_graph=True); print(a.grad.tolist())",
     "[2.0]", "[2.0]\nUserWarning: Using backward() with create_graph=True will create a reference cycle"),
    ("without the drop-in, objects with `__torch_function__` are asked by operators and their functions, by others after overrides.enable()",
     "class Zero:\n    @classmethod\n    def __torch_function__(cls, *_): return 0\n"
     "print(L.ones(1) + Zero(), L.sub(Zero(), 1)); print(L.sum(Zero()))",
     "0 0\nTypeError: expected Tensor, array or numbers, but got Zero. Its class has __torch_function__: call "
     "tapegrad.overrides.enable() first.", "0 0\n0"),
    ("lists and arrays can be assigned to elements",
     "x = L.zeros(2); x[:] = [1, 2]; print(x.tolist())", "[1.0, 2.0]", "TypeError: can't assign a list to a torch.FloatTensor"),
    ("tensor() of tensors stacks them",
     "print(L.tensor([L.ones(2), L.zeros(2)]).tolist())", "[[1.0, 1.0], [0.0, 0.0]]",
     "ValueError: only one element tensors can be converted to Python scalars"),
    ("tensors made under inference_mode are like any others",
     "with L.inference_mode(): x = L.ones(1)\nprint(x.is_inference())", "False", "True"),
    ("uint16, uint32 and uint64 have all operations, and no promotion beside other integers",
     "print((L.tensor([1], dtype=L.uint16) + 1).item())", "2", "NotImplementedError: \"add_stub\" not implemented for 'UInt16'"),
    ("the node of a gradient that has a history is its last operation",
     "a = L.ones(1, requires_grad=True); (a**2).backward(create_graph=True); print(a.grad.grad_fn.name())",
     "MulBackward0", "torch::autograd::CopyBackwards"),
    ("zeros_() is zero_()", "print(L.ones(1).zeros_().tolist())", "[0.0]", "AttributeError: 'Tensor' object has no attribute 'zeros_'"),
    ("a loss class called with tensors raises an error that explains the mistake",
     "L.nn.L1Loss(L.ones(2), L.ones(2))", "TypeError: ", "RuntimeError: Boolean value of Tensor with more than one value is ambiguous"),
    ("no_grad covers coroutine functions",
     "import asyncio\n@L.no_grad()\nasync def f(): return L.is_grad_enabled()\nprint(asyncio.run(f()))", "False", "True"),
    ("the second-backward error names the line that recorded the node",
     "a = L.ones(1, requires_grad=True); y = a * a; y.backward()\ntry: y.backward()\nexcept RuntimeError as e: print('Recorded at' in str(e))",
     "True", "False"),
    ("an overwritten value passes no gradient on",
     "w = L.ones(1, requires_grad=True); y = w * 1; y.zero_(); y.sum().backward(); print(w.grad)", "None", "tensor([0.])"),
    ("hooks of a value that fill_(), zero_() or copy_() of a constant overwrote are not called",
     "seen = []\n"
     "for write in (lambda y: y.fill_(3.), lambda y: y.zero_(), lambda y: y.copy_(L.ones(2))):\n"
     "    y = L.ones(2, requires_grad=True) * 2; y.register_hook(lambda g: seen.append(g.tolist())); write(y).sum().backward()\n"
     "print(seen)",
     "[]", "[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]"),
    ("hooks of an input for which an autograd.Function returns None are not called",
     "class F(L.autograd.Function):\n"
     "    @staticmethod\n"
     "    def forward(ctx, x): return x * 2\n"
     "    @staticmethod\n"
     "    def backward(ctx, g): return None\n"
     "y = L.ones(2, requires_grad=True) * 1; seen = []; y.register_hook(seen.append); F.apply(y).sum().backward(); print(seen)",
     "[]", "[None]"),
    ("a view taken before requires_grad_() of its base is differentiated",
     "a = L.ones(2); v = a[:1]; a.requires_grad_(); (v * 2).sum().backward(); print(v.is_leaf, a.grad is None)",
     "False False", "True True"),
    ("a second derivative that is 0 where PyTorch leaves it undefined is 0",
     "x = L.ones(1, 1, 2, requires_grad=True); b = L.ones(1, requires_grad=True)\n"
     "y = L.nn.functional.conv1d(x, L.ones(1, 1, 2, requires_grad=True), b)\n"
     "g, = L.autograd.grad(y.sum(), b, create_graph=True); print(L.autograd.grad(g.sum(), x)[0].tolist())",
     "[[[0.0, 0.0]]]", "RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph."),
    ("of a repeated index in an assignment only the last value gets the gradient",
     "v = L.ones(2, requires_grad=True); x = L.zeros(2); x[L.tensor([0, 0])] = v; x.sum().backward(); print(v.grad.tolist())",
     "[0.0, 1.0]", "[1.0, 1.0]"),
    ("norm has second derivative 0 at the origin",
     "x = L.zeros(2, requires_grad=True); g, = L.autograd.grad(x.norm(), x, create_graph=True)\n"
     "print(L.autograd.grad(g.sum(), x)[0].tolist())", "[0.0, 0.0]", "[nan, nan]"),
    ("second derivatives of det are exact at any rank",
     "a = L.diag(L.tensor([2., 0., 0.])).requires_grad_(); g, = L.autograd.grad(L.linalg.det(a), a, create_graph=True)\n"
     "print(L.autograd.grad(g[1, 1], a)[0][2, 2].item())", "2.0", "nan"),
    ("the projector on a repeated eigenvalue has a gradient",
     "a = L.diag(L.tensor([1., 1., 3.])).requires_grad_(); v = L.linalg.eigh(a)[1][:, :2]\n"
     "(v @ v.T)[0, 2].backward(); print(a.grad[0].tolist())", "[0.0, 0.0, -0.25]", "[nan, nan, nan]"),
    ("symmetric functions of eigenvalues or singular values have second derivatives where these repeat",
     "f = lambda a: L.linalg.eigvalsh((a + a.T) / 2).log().sum() + L.linalg.svdvals(a).pow(3).sum()\n"
     "h = L.autograd.functional.hessian(f, 2 * L.eye(2)); print([round(x, 4) for x in h[0, 0].flatten().tolist()])",
     "[11.75, 0.0, 0.0, 0.0]", "[nan, nan, nan, nan]"),
    ("so has a function of the eigenvalues of any matrix",
     "h = L.autograd.functional.hessian(lambda a: (L.linalg.eigvals(a) ** 2).sum().real, 2 * L.eye(2))\n"
     "print([round(x, 4) for x in h[0, 1].flatten().tolist()])", "[0.0, 0.0, 2.0, 0.0]", "[nan, nan, nan, nan]"),
    ("the nuclear norm has all derivatives at full rank",
     "h = L.autograd.functional.hessian(lambda a: L.linalg.matrix_norm(a, 'nuc'), 2 * L.eye(2))\n"
     "print([round(x, 4) for x in h[0, 1].flatten().tolist()])",
     "[0.0, 0.25, -0.25, 0.0]", "[nan, nan, nan, nan]"),
    ("a derivative that is constant requires grad, and its derivative is 0",
     "x = L.ones(2, requires_grad=True)\n"
     "for y, order in (L.nn.functional.mse_loss(x, L.zeros(2)), 2), (L.stack([x, x]).square(), 3), (x.max()**2, 3):\n"
     "    for _ in range(order):\n        y, = L.autograd.grad(y.sum(), x, create_graph=True)\n    print(y.requires_grad)",
     "True\nTrue\nTrue", "False\nFalse\nFalse"),
    ("a derivative in which the variable does not occur does not require grad",
     "x = L.ones(2, requires_grad=True); w = L.ones(2, requires_grad=True)\n"
     "y, = L.autograd.grad(x.abs().relu().sum(), x, create_graph=True); print(L.autograd.grad(y.sum(), x, create_graph=True)[0].requires_grad)\n"
     "y, = L.autograd.grad((x.relu() * w).sum(), x, create_graph=True); print(L.autograd.grad(y.sum(), w, create_graph=True)[0].requires_grad)\n"
     "y = L.outer(w.square(), x)\nfor v in w, w, x:\n    y, = L.autograd.grad(y.sum(), v, create_graph=True)\n"
     "print(y.requires_grad)",
     "False\nFalse\nFalse", "True\nTrue\nTrue"),
    ("matrix_norm and trapezoid of tensors without elements require grad if these do",
     "x = L.zeros(0, 0, requires_grad=True); print([L.linalg.matrix_norm(x, p).requires_grad for p in (1, 2)], L.trapezoid(x[0:0, 0:0].reshape(0)).requires_grad)",
     "[True, True] True", "[False, False] False"),
    ("linalg.vector_norm(x, 0) has gradient 0",
     "x = L.ones(2, requires_grad=True); L.linalg.vector_norm(x, 0).backward(); print(x.grad)",
     "tensor([0., 0.])", "None"),
    ("airy_ai, Bessel functions and orthogonal polynomials have derivatives",
     "x = L.ones(1, requires_grad=True); s = L.special\n"
     "print([f.requires_grad for f in (s.airy_ai(x), s.bessel_j1(x), s.modified_bessel_k0(x), s.spherical_bessel_j0(x), s.hermite_polynomial_h(x, 2))])",
     "[True, True, True, True, True]", "[False, False, False, False, False]"),
    ("third derivatives of layer_norm and batch_norm are right",
     "x = L.tensor([[1., 2., 4.], [1.5, 5., 3.]], requires_grad=True); w = L.tensor([[1., -2., 3.], [.5, 2., 1.]]); F = L.nn.functional\n"
     "for y in F.layer_norm(x, (3,)), F.batch_norm(x, None, None, training=True):\n"
     "    y, = L.autograd.grad(y.sum(), x, create_graph=True)\n    for _ in range(2):\n"
     "        y, = L.autograd.grad((y * w).sum(), x, create_graph=True)\n    print(y.abs().max().item() < 1e-5)",
     "True\nTrue", "False\nFalse"),
    ("logcumsumexp has third derivatives",
     "x = L.zeros(2, requires_grad=True); y = x.logcumsumexp(0)\nfor _ in range(3):\n"
     "    y, = L.autograd.grad((y * L.arange(2.)).sum(), x, create_graph=True)\nprint(y.isfinite().all().item())",
     "True", "False"),
    ("cdist, pdist and hardsigmoid have second derivatives",
     "x = L.tensor([[0., 1.], [2., 0.]], requires_grad=True); F = L.nn.functional\n"
     "for y in L.cdist(x, x.detach() + 1), F.pdist(x), F.hardsigmoid(x):\n"
     "    g, = L.autograd.grad(y.sum(), x, create_graph=True)\n"
     "    try: print(L.autograd.grad(g.sum(), x)[0].isfinite().all().item())\n"
     "    except RuntimeError as e: print('not implemented' in str(e) and 'refused')",
     "True\nTrue\nTrue", "refused\nrefused\nrefused"),
    ("vander has a gradient",
     "x = L.ones(2, requires_grad=True); L.vander(x).sum().backward(); print(x.grad.tolist())",
     "[1.0, 1.0]", "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"),
    ("floor_divide has gradient 0",
     "x = L.ones(2, requires_grad=True); x.floor_divide(2).sum().backward(); print(x.grad.tolist())",
     "[0.0, 0.0]", "RuntimeError: derivative for aten::floor_divide is not implemented"),
    ("a transform with a cache has the gradient of log_prob(sample()) by its parameters",
     "a = L.tensor(2., requires_grad=True); D = L.distributions\n"
     "d = D.TransformedDistribution(D.LogNormal(0., 1.), D.PowerTransform(a, cache_size=1)); x = d.sample()\n"
     "e = D.TransformedDistribution(D.LogNormal(0., 1.), D.PowerTransform(a))\n"
     "g, h = (L.autograd.grad(k.log_prob(x), a)[0] for k in (d, e)); print(L.allclose(g, h))", "True", "False"),
    ("load_state_dict(assign=True) keeps parameters tied that are",
     "m = L.nn.Sequential(L.nn.Linear(2, 2), L.nn.Linear(2, 2)); m[1].weight = m[0].weight\n"
     "m.load_state_dict(m.state_dict(), assign=True); print(m[1].weight is m[0].weight)", "True", "False"),
    ("MultiheadAttention with need_weights=True gives weights 0 to a position whose keys are all masked",
     "m = L.nn.MultiheadAttention(2, 1); x = L.ones(2, 1, 2)\n"
     "print(m(x, x, x, attn_mask=L.tensor([[True, True], [False, False]]))[1].isnan().any().item())", "False", "True"),
    ("svd propagates cotangents of the vectors beyond the reduced form",
     "a = L.tensor([[1.], [0.]], requires_grad=True); u = L.linalg.svd(a)[0][:, 1:]\n"
     "(u @ u.T)[0, 1].backward(); print(a.grad.flatten().tolist())", "[0.0, -1.0]", "[0.0, 0.0]"),
    ("linalg.qr can be differentiated in mode r",
     "a = L.tensor([[2.]], requires_grad=True); L.linalg.qr(a, 'r')[1].abs().backward(); print(a.grad.item())",
     "1.0", "RuntimeError: The derivative of linalg.qr depends on Q, which is not computed when mode='r'."),
    ("cdist is exactly 0 between coincident points, whatever the number of rows",
     "x = L.arange(90.).reshape(30, 3) / 7; print(L.cdist(x, x).diagonal().any().item())", "False", "True"),
    ("logsumexp and logcumsumexp have gradient 0 where the terms are all -inf",
     "x = L.full((2,), -np.inf, requires_grad=True); (x.logsumexp(0) + x.logcumsumexp(0).sum()).backward(); print(x.grad.tolist())",
     "[0.0, 0.0]", "[nan, nan]"),
    ("prod takes several dimensions",
     "print(L.full((2, 2), 3.).prod((0, 1)).item())", "81.0", "TypeError: prod() received an invalid combination of arguments"),
    ("unique has a gradient, which goes to the first of equal elements",
     "x = L.tensor([3., 1., 3.], requires_grad=True); (x.unique() * L.tensor([1., 2.])).sum().backward(); print(x.grad.tolist())",
     "[2.0, 1.0, 0.0]", "NotImplementedError: the derivative for '_unique2' is not implemented."),
    ("assigning a complex value to real elements raises an error",
     "x = L.zeros(2); x[0] = L.tensor(1 + 2j); print(x.tolist())", "RuntimeError: result type ComplexFloat can't be cast", "[1.0, 0.0]"),
    ("numbers are accepted where PyTorch requires a tensor",
     "print(L.maximum(L.zeros(2), 0.5).tolist())", "[0.5, 0.5]", "TypeError: maximum(): argument 'other' (position 2) must be Tensor, not float"),
    ("NumPy arrays are operands of every function, method and operator",
     "t, a = L.ones(1), np.array([2.0])\n"
     "for f in (lambda: L.add(t, a), lambda: L.add(a, t), lambda: t.add(a), lambda: a * t):\n"
     "    try: print(f().item())\n"
     "    except TypeError as e: print(str(e)[:43])",
     "3.0\n3.0\n3.0\n2.0",
     "add(): argument 'other' (position 2) must b\nadd(): argument 'input' (position 1) must b\n"
     "add(): argument 'other' (position 1) must b\nunsupported operand type(s) for *: 'numpy.n"),
    ("asarray of a buffer without a dtype has the buffer's elements",
     "import array; print(L.asarray(array.array('i', [1, 2])).tolist())",
     "[1, 2]", "[1.401298464324817e-45, 2.802596928649634e-45]"),
    ("a tensor that resize_ makes larger than its memory leaves it to its views",
     "x = L.zeros(2); v = x[:1]; x.resize_(1000); x[0] = 1.; print(v.item())", "0.0", "1.0"),
    ("a write to elements that lie in one place raises an error",
     "x = L.ones(4); x.unfold(0, 2, 1).mul_(2); print(x.tolist())",
     "RuntimeError: unsupported operation: more than one element of the written-to tensor", "[2.0, 4.0, 4.0, 2.0]"),
    ("hypot, lerp and addcmul accept integers and bools",
     "print(L.hypot(L.tensor(3), L.tensor(4)).item())", "5.0", "NotImplementedError: \"hypot_cpu\" not implemented for 'Long'"),
    ("conj of a complex tensor is a copy",
     "a = L.ones(1, dtype=L.complex64); a.conj().fill_(9); print(a.real.item())", "1.0", "9.0"),
    ("logaddexp divides its derivative evenly between equal infinities",
     "x = L.tensor(np.inf, requires_grad=True); L.logaddexp(x, L.tensor(np.inf)).backward(); print(x.grad.item())", "0.5", "nan"),
    ("xlogy(0, y) has derivative 0 by y at 0 too",
     "y = L.zeros(1, requires_grad=True); L.xlogy(L.zeros(1), y).backward(); print(y.grad.item())", "0.0", "nan"),
    ("igamma and igammac have a derivative by their first argument",
     "a = L.ones(1, requires_grad=True); L.igamma(a, L.ones(1)).backward(); print(round(a.grad.item(), 4))",
     "-0.4317", "NotImplementedError: the derivative for 'igamma: input' is not implemented."),
    ("chalf() raises: NumPy has no complex32", "L.ones(1).chalf()", "TypeError: chalf() needs complex32", ""),
    ("an index holds one Ellipsis at most, as in NumPy",
     "print(tuple(L.zeros(2, 3)[..., ...].shape))", "IndexError: ", "(2, 3)"),
    ("negative indices count from the end in gather, scatter and index_select",
     "print(L.arange(3.).gather(0, L.tensor([-1])).tolist())", "[2.0]", "RuntimeError: index -1 is out of bounds for dimension 0"),
    ("requesting an unavailable device raises RuntimeError",
     "L.ones(1).cuda()", "RuntimeError: no cuda device is available", "AssertionError: Torch not compiled with CUDA enabled"),
    ("what an autograd.Function returns is no view, even if forward gave an input or a view of it",
     "class F(L.autograd.Function):\n"
     "    @staticmethod\n"
     "    def forward(ctx, x): return x[:1], x\n"
     "    @staticmethod\n"
     "    def backward(ctx, g, h): return h\n"
     "print([y._is_view() for y in F.apply(L.ones(2, requires_grad=True) * 1)])",
     "[False, False]", "[True, True]"),
    ("outputs of an autograd.Function may be written in place, even if they are inputs",
     "class F(L.autograd.Function):\n"
     "    @staticmethod\n"
     "    def forward(ctx, x): return x\n"
     "    @staticmethod\n"
     "    def backward(ctx, g): return -g\n"
     "x = L.ones(1, requires_grad=True); y = F.apply(x * 1); y.mul_(5); y.sum().backward(); print(x.grad.tolist())",
     "[-5.0]", "RuntimeError: Output 0 of F is a view and is being modified inplace"),
    ("differentiating through a once_differentiable backward always raises an error",
     "class F(L.autograd.Function):\n"
     "    @staticmethod\n"
     "    def forward(ctx, x): ctx.save_for_backward(x); return x ** 2\n"
     "    @staticmethod\n"
     "    @L.autograd.function.once_differentiable\n"
     "    def backward(ctx, g): return 2 * g * ctx.saved_tensors[0]\n"
     "x = L.ones(1, requires_grad=True); g, = L.autograd.grad(F.apply(x), x, create_graph=True)\n"
     "print(L.autograd.grad(g + x, x)[0].tolist())",
     "RuntimeError: trying to differentiate twice", "[1.0]"),
    ("what an autograd.Function's forward makes and keeps on ctx has its derivative where backward is differentiated",
     "class Cube(L.autograd.Function):\n"
     "    @staticmethod\n    def forward(ctx, x):\n        ctx.square = x * x; return x * ctx.square\n"
     "    @staticmethod\n    def backward(ctx, g):\n        return 3 * ctx.square * g\n"
     "x = L.tensor(4., requires_grad=True); g, = L.autograd.grad(Cube.apply(x) ** 2, x, create_graph=True)\n"
     "print(L.autograd.grad(g, x)[0].item())", "7680.0", "4608.0"),
    ('writes into one of several views give the right gradient',
     'x = L.ones(2, requires_grad=True); b = x * 1; b.unbind()[0].mul_(5); b.sum().backward(); print(x.grad.tolist())',
     '[5.0, 1.0]', 'RuntimeError: Output 0 of Unbind is a view and is being modified inplace. This view is the output'),
    ('a derivative that saved nothing can be run twice',
     'b = L.ones(2, requires_grad=True); c = L.zeros(2); c[[0]] = b[[1]]; c.sum().backward(); c.sum().backward(); print(b.grad.tolist())',
     '[0.0, 2.0]', 'RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors'),
    ('detach_() of a tensor whose value was saved leaves the graph as it was',
     'a = L.tensor(2., requires_grad=True); b = a.clone(); c = b * b; b.detach_(); c.backward(); print(a.grad.item())',
     '4.0', 'RuntimeError: Trying to use a saved tensor that has been detached in-place, i.e. with'),
    ('functions in place have the derivatives of the others',
     'x = L.tensor(2., requires_grad=True); x.clone().acosh_().backward(); print(round(x.grad.item(), 4))',
     '0.5774', "NotImplementedError: the derivative for 'inplace version of acosh' is not"),
    ('second derivatives of scatter_reduce and index_reduce by products are right where several factors are 0',
     'x = L.ones(1, requires_grad=True); v = L.zeros(2, requires_grad=True)\n'
     "y = x.scatter_reduce(0, L.tensor([0, 0]), v, 'prod'); g, = L.autograd.grad(y.sum(), v, create_graph=True)\n"
     'print(L.autograd.grad(g[0], v)[0].tolist())',
     '[0.0, 1.0]', 'RuntimeError: scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are'),
    ('a hook on one of several outputs is called if that has a gradient',
     'x = L.ones(2, requires_grad=True); a, b = x.unbind(); seen = []; a.register_hook(seen.append); b.backward(); print(seen)',
     '[]', '[None]'),
    ('materialize_grads gives zeros at gradient edges, too',
     'x = L.ones(2, requires_grad=True).clone(); y = L.ones(2, requires_grad=True).clone()\n'
     'print(L.autograd.grad(x.sum(), L.autograd.graph.get_gradient_edge(y), materialize_grads=True)[0].tolist())',
     '[0.0, 0.0]', 'RuntimeError: materialize_grads cannot be used when the given input is a'),
    ('graph.allow_mutation_on_saved_tensors has no effect: saved values never change',
     'with L.autograd.graph.allow_mutation_on_saved_tensors():\n'
     '    a = L.ones(1, requires_grad=True); y = (a ** 2).sum()\n'
     'y.backward(); print(a.grad.tolist())',
     '[2.0]', "AssertionError: Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which"),
    ('checkpoints with use_reentrant=True are like those with False: autograd.grad and outputs that need no gradient work',
     "from importlib import import_module; checkpoint = import_module(L.__name__ + '.utils.checkpoint').checkpoint\n"
     'a = L.ones(1, requires_grad=True); print(L.autograd.grad(checkpoint(L.exp, a, use_reentrant=True).sum(), a)[0].item() > 2)',
     'True', 'RuntimeError: When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or'),
    ('saved tensors inside a checkpoint can be read more than once',
     'class F(L.autograd.Function):\n'
     '    @staticmethod\n'
     '    def forward(ctx, x):\n'
     '        ctx.save_for_backward(x); return x * x\n'
     '    @staticmethod\n'
     '    def backward(ctx, g):\n'
     '        return ctx.saved_tensors[0] * ctx.saved_tensors[0] * g\n'
     "from importlib import import_module; checkpoint = import_module(L.__name__ + '.utils.checkpoint').checkpoint\n"
     'a = L.tensor(2., requires_grad=True); checkpoint(F.apply, a, use_reentrant=False).backward(); print(a.grad.item())',
     '4.0', 'CheckpointError: torch.utils.checkpoint: Unpack is being triggered for a tensor that was already'),
    ('jvp of an autograd.Function whose forward returns a view may return a tensor of its own',
     'class F(L.autograd.Function):\n'
     '    @staticmethod\n'
     '    def forward(ctx, x):\n'
     '        return x[:1]\n'
     '    @staticmethod\n'
     '    def jvp(ctx, t):\n'
     '        return t[:1] * 1\n'
     'f = L.autograd.forward_ad\n'
     'with f.dual_level():\n'
     '    print(f.unpack_dual(F.apply(f.make_dual(L.ones(2), L.ones(2)))).tangent.tolist())',
     '[1.0]', "RuntimeError: A custom Function's forward is returning a view (or an input as-is) but the jvp is"),
    ('the gradient through an in-place transposition of view_as_real is that of the transposition',
     'a = L.ones(2, 2, dtype=L.complex64, requires_grad=True); b = L.view_as_real(a.clone()); b.transpose_(0, 1); b += 1\n'
     'b.backward(L.arange(0., 8.).view(2, 2, 2)); print(a.grad.real.tolist())',
     '[[0.0, 4.0], [2.0, 6.0]]', '[[0.0, 2.0], [4.0, 6.0]]'),
    ('a tensor that an operation saved is a copy of its value',
     'a = L.ones(1, requires_grad=True); b = a.exp(); s = b.grad_fn._saved_result\n'
     'with L.no_grad():\n'
     '    b += 1\n'
     'print(round(s.item(), 2))',
     '2.72', '3.72'),
    ('set_() does not take a leaf out of its graph',
     'x = L.ones(1, requires_grad=True); y = x.clone()\n'
     'with L.no_grad():\n'
     '    x.set_(L.zeros(1))\n'
     'print(L.autograd.grad(y, x)[0].item())',
     '1.0', 'RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph. Set'),
    ('a gradient may have another order in memory than its leaf',
     'x = L.ones(2, 3).t().requires_grad_(); x.sum().backward(); print(x.grad.stride())',
     '(2, 1)', '(1, 3)'),
    ('equal gradients share memory until one of them is written',
     'a = L.ones(2, requires_grad=True); b = L.ones(2, requires_grad=True); (a + b).sum().backward(); print(a.grad.data_ptr() == b.grad.data_ptr())',
     'True', 'False'),
    ("elementwise operations on transposed tensors give results in row-major order",
     "x = L.ones(2, 3).t(); y = x * L.ones(3, 2); print(y.stride(), x.sort(0)[0].stride(), x.flip(0).stride(), L.linalg.inv(L.eye(2)).stride())\n"
     "print(y.view(6).shape)",
     "(2, 1) (2, 1) (2, 1) (2, 1)\ntorch.Size([6])", "(1, 3) (1, 3) (1, 3) (1, 2)\nRuntimeError: view size is not compatible"),
    ("each result of unbind, split and chunk has a node of its own",
     "x = L.ones(2, requires_grad=True)\n"
     "for a, b in x.unbind(), x.split(1), x.chunk(2): print(a.grad_fn is b.grad_fn, b.output_nr)",
     "False 0\nFalse 0\nFalse 0", "True 1\nTrue 1\nTrue 1"),
    ("nodes have no attributes for an operation's parameters",
     "n = L.ones(2, requires_grad=True).sum(0).grad_fn; print(hasattr(n, '_saved_dim'), any(a.startswith('_saved') for a in dir(n)))",
     "False False", "True True"),
    ("next_functions has an entry for conditions, masks and indices, too",
     "x = L.ones(2, requires_grad=True); m = x > 0; print([len(y.grad_fn.next_functions) for y in (L.where(m, x, 0.), x.masked_fill(m, 0.))])",
     "[3, 3]", "[2, 1]"),
    ("zero_() and fill_() are recorded as copies",
     "x = L.ones(2, requires_grad=True) * 1; x.zero_(); print(x.grad_fn.name())",
     "torch::autograd::CopyBackwards", "ZeroBackward0"),
    ('as_strided of a dual sees the elements of the dual alone',
     'f = L.autograd.forward_ad; x = L.ones(5)[:4].detach()\n'
     'with f.dual_level():\n'
     '    print(f.make_dual(x, L.ones(4)).as_strided((5,), (1,), 0).shape)',
     'RuntimeError: setStorage: sizes [5], strides [1], storage', 'torch.Size([5])'),
    ("an autograd.Function without jvp has a forward derivative",
     "class F(L.autograd.Function):\n"
     "    @staticmethod\n"
     "    def forward(x): return x * 3\n"
     "    @staticmethod\n"
     "    def setup_context(ctx, inputs, output): pass\n"
     "    @staticmethod\n"
     "    def backward(ctx, g): return g * 3\n"
     "print(L.func.jvp(F.apply, (L.ones(1),), (L.ones(1),))[1].tolist())",
     "[3.0]", "NotImplementedError: You must implement the jvp function"),
    ("levels of dual tensors nest",
     "w = L.autograd.forward_ad; one = L.tensor(1.)\n"
     "with w.dual_level():\n"
     "    a = w.make_dual(L.tensor(2.), one)\n"
     "    with w.dual_level(): b = w.unpack_dual(w.make_dual(a, one) ** 3).tangent\n"
     "    print(w.unpack_dual(b).tangent.item())",
     "12.0", "RuntimeError: Nested forward mode AD is not supported at the moment"),
    ("the tangent of what is constant is None",
     "f = L.autograd.forward_ad\nwith f.dual_level():\n"
     "    d = f.make_dual(L.ones(1), L.ones(1)); print(f.unpack_dual(d.sign()).tangent)\n"
     "    d *= 1; d.zero_(); print(f.unpack_dual(d).tangent)",
     "None\nNone", "tensor([0.])\ntensor([0.])"),
    ("a later write into a tensor does not change a dual made from it",
     "w = L.autograd.forward_ad; x = L.ones(1)\n"
     "with w.dual_level(): d = w.make_dual(x, L.ones(1)); x.add_(1); print(d.tolist())",
     "[1.0]", "[2.0]"),
    ("a dual of a leaf may be written in place",
     "w = L.autograd.forward_ad; x = L.ones(1, requires_grad=True)\n"
     "with w.dual_level():\n"
     "    d = w.make_dual(x, L.ones(1)); d.mul_(3); w.unpack_dual(d * d).tangent.backward(); print(x.grad.tolist())",
     "[18.0]", "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation."),
    ("a failed load_state_dict loads nothing",
     "m = L.nn.Linear(1, 1)\ntry: m.load_state_dict({'weight': L.full((1, 1), 7.)})\n"
     "except RuntimeError: print(m.weight.item() == 7)",
     "False", "True"),
    ("inputs and outputs of a module with a full backward hook may be written in place",
     "m = L.nn.Identity(); m.register_full_backward_hook(lambda *_: None); x = L.ones(2, requires_grad=True)\n"
     "m(x).mul_(3).sum().backward(); print(x.grad.tolist())",
     "[3.0, 3.0]", "RuntimeError: Output 0 of BackwardHookFunction is a view and is being modified inplace."),
    ("an error in a module's forward names the layer and the shapes",
     "try: L.nn.Sequential(L.nn.Linear(3, 2))(L.ones(1, 4))\nexcept RuntimeError as e: print(str(e).splitlines()[-1][:36])",
     "In layer 0: Linear(in_features=3, ou", "mat1 and mat2 shapes cannot be multi"),
    ("an AttributeError inside a module's property keeps its message",
     "class M(L.nn.Module):\n    @property\n    def size(self): return self.absent\nM().size",
     "AttributeError: 'M' object has no attribute 'absent'", "AttributeError: 'M' object has no attribute 'size'"),
    ("a lazy layer whose state dict was loaded infers its size from the first input",
     "m = L.nn.LazyConv1d(2, 1); m.load_state_dict(L.nn.Conv1d(3, 2, 1).state_dict()); m(L.ones(1, 3, 4)); print(m.in_channels)",
     "3", "0"),
    ("scaled_dot_product_attention has second derivatives",
     "x = L.ones(1, 1, 2, 3, requires_grad=True); y = L.nn.functional.scaled_dot_product_attention(x, x, x)\n"
     "g, = L.autograd.grad(y.sum(), x, create_graph=True); print(L.autograd.grad(g.sum(), x)[0].shape)",
     "torch.Size([1, 1, 2, 3])",
     "RuntimeError: derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented"),
    ("the output of a TransformerEncoder at padded positions does not depend on whether gradients are recorded",
     "m = L.nn.TransformerEncoder(L.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1).eval()\n"
     "x, closed = L.rand(1, 2, 4), L.tensor([[False, True]]); y = m(x, src_key_padding_mask=closed)\n"
     "with L.no_grad(): print(L.allclose(m(x, src_key_padding_mask=closed), y, atol=1e-5))",
     "True", "False"),
    ("pack_padded_sequence raises an error for lengths beyond the input",
     "print(L.nn.utils.rnn.pack_padded_sequence(L.zeros(3, 2), [4, 1]).batch_sizes.tolist())",
     "RuntimeError: Expected lengths of at most 3, the padded length, but got 4", "[2, 1, 1, 1]"),
    ("the second derivative of weight_norm is that of its formula",
     "m = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(2, 1, bias=False)); p = m.parametrizations.weight\n"
     "with L.no_grad(): p.original0.fill_(1.); p.original1.copy_(L.tensor([[3., 4.]]))\n"
     "g, = L.autograd.grad((m.weight ** 2)[0, 0], p.original1, create_graph=True)\n"
     "print(round(L.autograd.grad(g[0, 0], p.original1)[0][0, 0].item(), 4))",
     "-0.0225", "-0.0248"),
    ("a parametrised module can be pickled",
     "import pickle; m = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(2, 1))\n"
     "print(type(pickle.loads(pickle.dumps(m))).__name__)",
     "ParametrizedLinear", "RuntimeError: Serialization of parametrized modules is only supported through state_dict()."),
    ("copies of a parametrised module are independent",
     "import copy; P = L.nn.utils.parametrize; m = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(2, 1))\n"
     "P.remove_parametrizations(copy.deepcopy(m), 'weight'); print(tuple(m.weight.shape))",
     "(1, 2)", "AttributeError: 'ParametrizedLinear' object has no attribute 'weight'"),
    ("a failed registration of a parametrisation leaves the tensor unchanged",
     "class Bad(L.nn.Module):\n    def forward(self, x): return x[:1]\n    def right_inverse(self, x): return 0 * x\n"
     "m = L.nn.Linear(2, 2)\ntry: L.nn.utils.parametrize.register_parametrization(m, 'weight', Bad())\n"
     "except ValueError: print(m.weight.any().item())",
     "True", "False"),
    ("a value that parametrize.cached computed without recording is not reused while recording is on",
     "m = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(2, 1))\n"
     "with L.nn.utils.parametrize.cached():\n    with L.no_grad(): m.weight\n    print(m.weight.requires_grad)",
     "True", "False"),
    ("a householder weight stays orthogonal when its original is scaled down",
     "m = L.nn.utils.parametrizations.orthogonal(L.nn.Linear(2, 3)); p = m.parametrizations.weight.original\n"
     "with L.no_grad(): p.mul_(0.9)\nprint(round(m.weight.norm().item() ** 2, 4))",
     "2.0", "0.0"),
    ("entropies and KL divergences of generic exponential families have gradients",
     "r = L.tensor(2., requires_grad=True); H = L.distributions.ExponentialFamily.entropy(L.distributions.Exponential(r))\n"
     "print(L.autograd.grad(H, r, allow_unused=True)[0])",
     "tensor(-0.5000)", "None"),
    ("samples of ContinuousBernoulli have a gradient at probs 1/2",
     "p = L.tensor(0.5, requires_grad=True); L.manual_seed(0)\n"
     "print(L.autograd.grad(L.distributions.ContinuousBernoulli(p).rsample(), p, allow_unused=True)[0])",
     "tensor(0.5000)", "tensor(0.)"),
    ("log_prob of ContinuousBernoulli is exact at large logits",
     "d = L.distributions.ContinuousBernoulli(logits=L.tensor([1000.]))\n"
     "print(round(d.log_prob(L.ones(1)).item(), 4))", "6.9078", "2.769"),
    ("sample() has no tangent in forward mode",
     "x = L.tensor(0.5); f = lambda v: L.distributions.Uniform(0., v).sample()\n"
     "print(L.func.jvp(f, (x,), (x,))[1].item() == 0)",
     "True", "False"),
    ("ContinuousBernoulli raises an error for probs outside [0, 1]",
     "L.distributions.ContinuousBernoulli(2.)", "ValueError: The parameter probs has invalid values", ""),
    ("the derivative of the cdf of Laplace at loc is the density",
     "a = L.tensor(0., requires_grad=True); L.distributions.Laplace(0., 1.).cdf(a).backward(); print(a.grad.item())",
     "0.5", "0.0"),
    ("the KL divergence of two Laplace distributions has the right second derivative where their locs are equal",
     "a = L.tensor(0., requires_grad=True); k = L.distributions.kl_divergence(L.distributions.Laplace(a, 1.), L.distributions.Laplace(0., 1.))\n"
     "g, = L.autograd.grad(k, a, create_graph=True); print(L.autograd.grad(g, a)[0].item())",
     "1.0", "0.0"),
    ("cdf and icdf of Normal are accurate in the lower tail",
     "n = L.distributions.Normal(0., 1.); print(n.cdf(L.tensor(-12.)).item() > 0, n.icdf(L.tensor(1e-12)).item() > -8)",
     "True True", "False False"),
    ("the cdf of Gumbel accepts every real number",
     "print(L.distributions.Gumbel(0., 1.).cdf(L.tensor(100.)))", "tensor(1.)", "ValueError: Expected value argument"),
    ("the modes of Kumaraswamy and Weibull are right",
     "print(round(L.distributions.Kumaraswamy(2., 3.).mode.item(), 4), L.distributions.Weibull(1., 0.5).mode.item())", "0.4472 0.0", "nan 1.0"),
    ("an infinite mean of GeneralizedPareto is inf",
     "print(L.distributions.GeneralizedPareto(0., 1., 2.).mean)", "tensor(inf)", "tensor(nan)"),
    ("GeneralizedPareto works in every floating dtype",
     "z = L.zeros((), dtype=L.float64); print(L.distributions.GeneralizedPareto(z, 1., 1.).log_prob(z))",
     "tensor(-0., dtype=torch.float64)", "RuntimeError: Double did not match Float"),
    ("log_abs_det_jacobian of AffineTransform counts a scalar scale once for each element of the event",
     "x = L.zeros(3); print(L.distributions.AffineTransform(0., L.tensor(2.), event_dim=1).log_abs_det_jacobian(x, x))",
     "tensor(2.0794)", "tensor(0.6931)"),
    ("an infinite KL divergence has the broadcast batch shape",
     "print(L.distributions.kl_divergence(L.distributions.Exponential(1.), L.distributions.Uniform(L.tensor([0., 1.]), 2.)))",
     "tensor([inf, inf])", "tensor(inf)"),
    ("a mixture's weights broadcast over the batch of its components",
     "d = L.distributions.MixtureSameFamily(L.distributions.Categorical(L.ones(2)), L.distributions.Normal(L.zeros(3, 2), 1.)); print(d.sample((4,)).shape)",
     "torch.Size([4, 3])", "RuntimeError: Index tensor must have the same number of dimensions as input tensor"),
    ("LogitRelaxedBernoulli.has_rsample is True",
     "from importlib import import_module\n"
     "print(L.distributions.relaxed_bernoulli.LogitRelaxedBernoulli(L.tensor(1.), 0.5).has_rsample)", "True", "False"),
    ("samples of gamma, beta and Dirichlet distributions have exact derivatives of every order",
     "a = L.tensor(2., requires_grad=True, dtype=L.float64); L.manual_seed(0); z = L.distributions.Gamma(a, 1.).rsample()\n"
     "g, = L.autograd.grad(z, a, create_graph=True); print(L.autograd.grad(g, a)[0].isfinite().item())",
     "True", "NotImplementedError: the derivative for '_standard_gamma_grad' is not implemented."),
    ("a gamma sample with concentration nan is nan", "print(L._standard_gamma(L.tensor(float('nan'))).item())", "nan", "1.1754943508222875e-38"),
    ("an integer tensor for total_count does not convert a float for probs to integer",
     "print(L.distributions.Binomial(L.tensor(5), 0.5).mean.item())", "2.5", "0"),
    ("a Poisson sample with infinite rate is inf", "print(L.poisson(L.tensor(np.inf)).item())", "inf", "-9.22337203685477"),
    ("the log_prob of Binomial has the right second derivative at probs 1/2",
     "x = L.tensor(0., requires_grad=True); p = L.distributions.Binomial(4, logits=x).log_prob(L.tensor(1.))\n"
     "g, = L.autograd.grad(p, x, create_graph=True); print(L.autograd.grad(g, x)[0].item())",
     "-1.0", "-0.0"),
    ("the normalising constant of VonMises is exact",
     "k = L.tensor(3., dtype=L.float64); z = k * 0; d = L.distributions.VonMises(z, k)\n"
     "print(abs(d.log_prob(z).item() - (3 - np.log(2 * np.pi * np.i0(3.0)))) < 1e-12)", "True", "False"),
    ("samples of Wishart can be differentiated",
     "v = L.eye(2, requires_grad=True); L.manual_seed(0); L.distributions.Wishart(L.tensor(5.), v).rsample((5,)).sum().backward()\n"
     "print(v.grad.shape)",
     "torch.Size([2, 2])", "RuntimeError: one of the variables needed for gradient computation has been modified"),
    ("Wishart warns about singular samples only if there are any",
     "d = L.distributions.Wishart(L.tensor(5.), L.eye(2)); L.manual_seed(0); print(d.sample().shape)",
     "torch.Size([2, 2])", "torch.Size([2, 2])\nUserWarning: Singular sample detected."),
    ("the KL divergence of batches of Wishart distributions is computed per batch element",
     "W, v = L.distributions.Wishart, L.eye(2, dtype=L.float64); n = L.tensor([3., 5.], dtype=L.float64)\n"
     "both = L.distributions.kl_divergence(W(n, v), W(n + 1, v)); one = L.distributions.kl_divergence(W(n[:1], v), W(n[:1] + 1, v))\n"
     "print(L.allclose(both[0], one))", "True", "False"),
    ("Wishart with a float for df accepts a batch of matrices",
     "print(L.distributions.Wishart(5., L.eye(2).expand(3, 2, 2)).mean.shape)", "torch.Size([3, 2, 2])", "RuntimeError: shape '[3, 1, 1]'"),
    ("an undefined variance of FisherSnedecor has gradient 0",
     "a = L.tensor([2.], requires_grad=True); L.distributions.FisherSnedecor(a, 3.).variance.nansum().backward(); print(a.grad.item())",
     "0.0", "nan"),
    ("a differentiable optimiser can update a parameter whose gradient is differentiated again",
     "a = L.ones(2, requires_grad=True); w = a.clone(); o = L.optim.SGD([w], lr=0.1, differentiable=True)\n"
     "for _ in range(2):\n    w.grad, = L.autograd.grad((w**3).sum(), w, create_graph=True); o.step()\n"
     "w.sum().backward(); print([round(g, 4) for g in a.grad.tolist()])",
     "[0.232, 0.232]", "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"),
    ("the first momentum buffer of a differentiable SGD propagates gradients",
     "a = L.ones(1, requires_grad=True); w = a.clone(); o = L.optim.SGD([w], lr=0.1, momentum=0.9, differentiable=True)\n"
     "w.grad = a * 2; o.step(); w.backward(); print(round(a.grad.item(), 4))", "0.8", "1.0"),
    ("the bias corrections of a differentiable Adam are exact",
     "w = L.zeros(1, dtype=L.float64); w.grad = L.ones(1, dtype=L.float64); o = L.optim.Adam([w], 1., eps=0., differentiable=True)\n"
     "o.step(); print(abs(w.item() + 1) < 1e-12)", "True", "False"),
    ("all settings of an optimiser can be differentiated with respect to",
     "m = L.tensor(0.5, requires_grad=True); w = L.zeros(1); w.grad = L.ones(1)\n"
     "o = L.optim.RMSprop([w], alpha=0.5, differentiable=True); o.param_groups[0]['alpha'] = m; o.step()\n"
     "w.backward(); print(round(m.grad.item(), 4))",
     "-0.0141", "TypeError: "),
    ("an optimiser rejects a state of other shapes and stays unchanged",
     "w = L.ones(2, requires_grad=True); o = L.optim.Adagrad([w]); s = o.state_dict(); s['state'][0] = {'step': s['state'][0]['step'], 'sum': L.ones(3)}\n"
     "o.load_state_dict(s); print('loaded')", "ValueError: loaded state dict has 'sum' of shape (3,) for parameter 0 of shape (2,)",
     "loaded"),
    ("capturable optimisers run on the CPU",
     "w = L.ones(1, requires_grad=True); w.grad = L.ones(1); L.optim.Adam([w], lr=1., capturable=True).step(); print(round(w.item(), 4))",
     "0.0", "AssertionError: If capturable=True, params and state_steps must be on supported devices"),
    ("Muon works in the parameter's dtype",
     "w = L.zeros(2, 2); w.grad = L.tensor([[3., 0.], [0., 1.]]); L.optim.Muon([w], lr=1., ns_steps=1).step(); print(w[0, 0].isclose(L.tensor(-0.7518), atol=1e-4).item())",
     "True", "False"),
    ("a write into an argument of a function under jvp leaves the caller's tangents as they are",
     "x, t = L.ones(2), L.ones(2); L.func.jvp(lambda x: x.mul_(2), (x,), (t,)); print(x.tolist(), t.tolist())",
     "[2.0, 2.0] [1.0, 1.0]", "[2.0, 2.0] [2.0, 2.0]"),
    ("jacfwd takes functions with complex outputs",
     "print(L.func.jacfwd(lambda x: x * (1 + 1j * x))(L.tensor(3.)))", "tensor(1.+6.j)",
     "RuntimeError: jacfwd: Expected all outputs to be real but received complex tensor at flattened input idx: 0"),
    ("inside vmap, a tensor created there can be assigned values that differ between samples",
     "def f(x):\n    y = L.zeros(2); y[0] = x; return y\nprint(L.func.vmap(f)(L.arange(2.)).tolist())",
     "[[0.0, 0.0], [1.0, 0.0]]", "RuntimeError: vmap: inplace arithmetic(self, *extra_args) is not possible"),
    ("vmap supports boolean masks that select the same number of elements in every sample",
     "print(L.func.vmap(lambda x, m: x[m])(L.ones(2, 2), L.eye(2) > 0).tolist())",
     "[[1.0], [1.0]]", "RuntimeError: vmap: We do not support batching operators that can support dynamic shape."),
    ("inside func.grad, a tensor from outside can be written",
     "c = L.zeros(2)\ndef f(x): c.copy_(x); return (x * c).sum()\n"
     "print(L.func.grad(f)(L.tensor([1., 2.])).tolist(), c.tolist())",
     "[2.0, 4.0] [1.0, 2.0]",
     "RuntimeError: During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
     "in-place operation"),
    ("functions under func's transforms can have hooks on saved tensors",
     "with L.autograd.graph.save_on_cpu(): print(L.func.grad(lambda x: x.exp().sum())(L.zeros(2)).tolist())",
     "[1.0, 1.0]",
     "RuntimeError: torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks."),
    ("requires_grad_(), retain_grad() and autograd.functional work inside func's transforms",
     "f = lambda x: L.autograd.functional.vjp(lambda v: v.sin().sum(), x.requires_grad_())[1]\n"
     "print(L.func.vmap(f)(L.zeros(2, 1)).tolist())",
     "[[1.0], [1.0]]",
     "RuntimeError: You are attempting to call Tensor.requires_grad_() (or perhaps using "
     "torch.autograd.functional.* APIs)"),
    ("func's transforms accept Functions whose forward has ctx",
     "class F(L.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): return 2 * x\n    @staticmethod\n"
     "    def backward(ctx, g): return 2 * g\n"
     "print(L.func.grad(F.apply)(L.tensor(3.)).item(), L.func.vmap(F.apply)(L.ones(2)).tolist())",
     "2.0 [2.0, 2.0]",
     "RuntimeError: In order to use an autograd.Function with functorch transforms"),
    ("vmap runs a Function that has no vmap rule",
     "class F(L.autograd.Function):\n    @staticmethod\n    def forward(x): return 2 * x\n    @staticmethod\n"
     "    def setup_context(ctx, inputs, output): pass\nprint(L.func.vmap(F.apply)(L.ones(2)).tolist())",
     "[2.0, 2.0]",
     "RuntimeError: You tried to vmap over F, but it does not have vmap support."),
    ("the batch stands in front in what the vmap staticmethod of a Function is given",
     "class F(L.autograd.Function):\n    @staticmethod\n    def forward(x): return x\n    @staticmethod\n"
     "    def setup_context(ctx, inputs, output): pass\n    @staticmethod\n"
     "    def vmap(info, in_dims, x): print(in_dims, tuple(x.shape)); return x, in_dims[0]\n"
     "L.func.vmap(F.apply, in_dims=1)(L.ones(2, 3))",
     "(0,) (3, 2)",
     "(1,) (2, 3)"),
    ("vmap runs one sample after the other where values are read",
     "print(L.func.vmap(lambda x: x if x > 0 else x * x.item())(L.tensor([-2., 3.])).tolist())",
     "[4.0, 3.0]\n"
     "UserWarning: vmap: this line asks for the value of a single sample, so the function ran for one sample "
     "after the other, which is slow. Where the value decides what is computed, tg.where(condition, a, b) "
     "keeps it batched.",
     "RuntimeError: vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow."),
    ("vmap writes into out=",
     "y = L.zeros(2); print(L.func.vmap(lambda x, y: L.exp(x, out=y))(L.zeros(2), y).tolist(), y.tolist())",
     "[1.0, 1.0] [1.0, 1.0]",
     "RuntimeError: Batching rule not implemented for aten::exp.out"),
    ("print(x) inside vmap has the function run sample by sample, with a warning",
     "L.func.vmap(lambda x: (print(x), x)[1])(L.ones(1))",
     "tensor(1.)\n"
     "UserWarning: vmap: this line asks for the value of a single sample, so the function ran for one sample "
     "after the other, which is slow. Where the value decides what is computed, tg.where(condition, a, b) "
     "keeps it batched.",
     "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1.])\n)"),
    ("tensors inside func's transforms print their values",
     "L.func.grad(lambda x: (print(x), x.sum())[1])(L.zeros(1))",
     "tensor([0.], requires_grad=True)",
     "GradTrackingTensor(lvl=1, value=\n    tensor([0.])\n)"),
    ("vmap can fill a tensor created inside with per-sample random numbers",
     "print(L.func.vmap(lambda x: L.zeros(2).uniform_() + x, randomness='different')(L.zeros(2)).shape)",
     "torch.Size([2, 2])", "RuntimeError: vmap: Cannot ask for different inplace randomness on an unbatched tensor."),
]  # fmt: skip


def run(code, library):
    """The program's output, its error, then its warnings, a line each."""
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            exec(compile(code, "<row>", "exec"), {"L": library, "np": np})
        except Exception as e:
            print(f"{type(e).__name__}: {e}")
    lines = [out.getvalue().strip()] + [f"{w.category.__name__}: {w.message}" for w in caught]
    return "\n".join(line for line in lines if line)
