"""What three tutorials show or imply, in 135 rows (S0: OneFlow page, S1: PyTorch tutorial, S2: notes on autodiff).

A row: id, what the tutorial shows, a snippet, and what it must print. The printout is stdout, then "RAISES Type: text", then one
"WARNS Category: text" a warning; addresses read 0x..; "re:" marks a regular expression. `today` is what PyTorch 2.13.0 prints
where it differs from the tutorial, `sense` a comment, `OURS` what tapegrad must print where it differs from both on purpose.
Of an error's text the first sentence is compared, of a warning's the first two.
"""
import contextlib
import io
import re
import warnings

ITEMS = []
SUF = ", dtype=oneflow.float32"


def I(id, claim, code, shown, today=None, of=None, sense=""):
    ITEMS.append(dict(id=id, claim=claim, code=code.strip("\n"), shown=shown.strip("\n"), today=today and today.strip("\n"), of=of and of.strip("\n"), sense=sense))


PRE0 = """
x = flow.ones(1, 5); w = flow.ones(5, 3, requires_grad=True); b = flow.ones(1, 3, requires_grad=True)
z = flow.matmul(x, w) + b; y = flow.zeros(1, 3)
l = flow.sum(1/2*(z - y)**2)
"""
POW = "a = flow.tensor(10., requires_grad=True); c = flow.pow(a, 2)\n"
XY = "x = flow.ones(1, 2, requires_grad=True); y = 3*x + 1\n"

# ---------------------------------------------------------------------------------------------------------------- OneFlow page
I("S0-01", "factories take sizes as separate arguments and a requires_grad keyword; the flag defaults to False",
  "for t in (flow.ones(1, 5), flow.zeros(1, 3), flow.randn(5, 3, requires_grad=True)): print(tuple(t.shape), t.requires_grad)",
  "(1, 5) False\n(1, 3) False\n(5, 3) True")
I("S0-02", "a Python number times a tensor, minus, ** 2 and flow.sum give a 0-dim float32 loss (no upcast by the float 1/2)",
  PRE0 + "print(tuple(l.shape), str(l.dtype).split('.')[1])", "() float32")
I("S0-03", "flow.matmul of (1,5) with (5,3) plus a (1,3) bias", PRE0 + "print(tuple(z.shape), float(z.sum()))", "(1, 3) 18.0",
  today="(1, 3) 18.0\nWARNS UserWarning: Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using tensor.detach() first.",
  sense="float(t) without a warning; .item() is the documented way")
I("S0-04", "tensors with no producer (x, w, b, y) are leaves; the loss is the root, not a leaf", PRE0 + "print(*(t.is_leaf for t in (x, w, b, y, z, l)))", "True True True True False False")
I("S0-05", "requires_grad propagates from w, b to z and l, not to x, y", PRE0 + "print(*(t.requires_grad for t in (x, w, b, y, z, l)))", "False True True False True True")
I("S0-06", "backward() fills w.grad and b.grad only; inputs and labels keep None", PRE0 + "l.backward(); print(w.grad is not None, b.grad is not None, x.grad, y.grad)", "True True None None")
I("S0-07", "dl/dw has w's shape (5,3), every row equal to b's gradient z - y (x is all ones), although x is (1,5)",
  PRE0 + "l.backward(); print(tuple(w.grad.shape), tuple(b.grad.shape), bool((w.grad == (z - y)).all()), bool((b.grad == z - y).all()))", "(5, 3) (1, 3) True True",
  sense="the printed numbers 0.9397 2.5428 2.5377 come from an unseeded randn: only their structure is testable")
I("S0-08", "a gradient prints without grad_fn / requires_grad, rows aligned under the bracket, OneFlow adds the dtype even when it is the default",
  PRE0 + "l.backward(); print(w.grad); print(b.grad)",
  "tensor([[6., 6., 6.],\n        [6., 6., 6.],\n        [6., 6., 6.],\n        [6., 6., 6.],\n        [6., 6., 6.]], dtype=oneflow.float32)\ntensor([[6., 6., 6.]], dtype=oneflow.float32)",
  sense="torch style by default; a print option for the OneFlow suffix costs one line")
I("S0-09", "4 digits after the point for non-integral values", "print(flow.tensor([[0.93971, 2.54279, 2.53771]]))", "tensor([[0.9397, 2.5428, 2.5377]], dtype=oneflow.float32)")
I("S0-10", "typo in the page: l.backwad()", PRE0 + "l.backwad()", "RAISES AttributeError: 'Tensor' object has no attribute 'backwad'",
  sense="keep AttributeError with exactly this first sentence (an ordinary AttributeError makes the interpreter add: Did you mean: 'backward'?); upstream has fixed the page to l.backward()")
I("S0-11", "a non-leaf's gradient is dropped during backward: reading it gives None", "a = flow.tensor(2., requires_grad=True); c = a*3; d = c*c; d.backward(); print(c.grad)",
  "None", today="None\nWARNS UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
  sense="None plus the warning of S2-18")
I("S0-12", "retain_grad() keeps a non-leaf's gradient: sin at pi/2 squared",
  "from math import pi\nn1 = flow.tensor(pi/2, requires_grad=True); n2 = flow.sin(n1); n2.retain_grad(); n3 = flow.pow(n2, 2)\nn3.backward(); print(n1.grad); print(n2.grad)",
  "tensor(-8.7423e-08, dtype=oneflow.float32)\ntensor(2., dtype=oneflow.float32)")
I("S0-13", "a Python float makes a float32 tensor: -8.7423e-08 above is 2 sin cos of the float32 rounding of pi/2 (float64 would print 1.2246e-16)",
  "from math import pi\na = flow.tensor(pi/2, dtype=flow.float64, requires_grad=True); flow.pow(flow.sin(a), 2).backward(); print('%.4e' % a.grad.item(), str(flow.tensor(pi/2).dtype).split('.')[1])", "1.2246e-16 float32")
I("S0-14", "flow.sin, flow.pow(t, int) exist as functions, and take 0-dim tensors", "print(flow.pow(flow.sin(flow.tensor(0.)), 2))", "tensor(0., dtype=oneflow.float32)")
I("S0-15", "a second backward() over the same graph raises", POW + "c.backward(); c.backward()",
  "re:RAISES \\w+: .*Maybe you try to backward through the node a second time\\. Specify retain_graph=True when calling \\.backward\\(\\) or autograd\\.grad\\(\\) the first time\\..*",
  today="RAISES RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.",
  sense="RuntimeError, torch's text as the message with the node's name; contain 'Specify retain_graph=True' (common to both). oneflow raises its own Exception class, prefixed 'This FunctionNode with name `scalar_pow_backward` has been released.'")
I("S0-16", "retain_graph=True allows a second pass; gradients add up: 20 then 40", POW + "c.backward(retain_graph=True); print(a.grad); c.backward(); print(a.grad)",
  "tensor(20., dtype=oneflow.float32)\ntensor(40., dtype=oneflow.float32)")
I("S0-17", "a pass without retain_graph frees the graph even after a retained one (implied)", POW + "c.backward(retain_graph=True); c.backward(); c.backward()",
  "re:RAISES \\w+: .*Specify retain_graph=True.*")
I("S0-18", "`.grad` accumulates over different graphs too (implied by 'accumulates')", "a = flow.tensor(3., requires_grad=True); (a*2).backward(); (a*5).backward(); print(a.grad)", "tensor(7., dtype=oneflow.float32)")
I("S0-19", "clear with an in-place zero between passes: 20, 20. The page writes zeros_(), which neither oneflow nor torch has",
  POW + "c.backward(retain_graph=True); print(a.grad); a.grad.zero_(); c.backward(); print(a.grad)", "tensor(20., dtype=oneflow.float32)\ntensor(20., dtype=oneflow.float32)",
  sense="zero_() is the method; tapegrad should also answer zeros_() (alias), which the tutorial calls")
I("S0-20", "the typo itself: n1.grad.zeros_()", POW + "c.backward(); a.grad.zeros_()", "RAISES AttributeError: 'Tensor' object has no attribute 'zeros_'",
  sense="the page expects it to work: alias of zero_() in tapegrad; upstream page now says zero_()")
I("S0-21", "zero_() works on the stored gradient object itself", POW + "c.backward(); g = a.grad; a.grad.zero_(); print(a.grad, g is a.grad)", "tensor(0., dtype=oneflow.float32) True")
I("S0-22", "print(t.requires_grad) is True outside and False inside no_grad", PRE0 + "print((flow.matmul(x, w)+b).requires_grad)\nwith flow.no_grad():\n    z = flow.matmul(x, w)+b\nprint(z.requires_grad)", "True\nFalse")
I("S0-23", "what is made under no_grad stays untracked after the block, is a leaf, and the block restores the mode, also after an exception",
  PRE0 + "try:\n    with flow.no_grad():\n        q = w*2; 1/0\nexcept ZeroDivisionError: pass\nprint(q.requires_grad, q.is_leaf, q.grad_fn, (w*2).requires_grad)", "False True None True")
I("S0-24", "detach() gives an untracked tensor", PRE0 + "d = z.detach(); print(d.requires_grad, d.is_leaf, z.requires_grad)", "False True True")
I("S0-25", "the linked names exist: no_grad in the package, detach / retain_grad / backward on Tensor", "print(hasattr(flow, 'no_grad'), *(hasattr(flow.Tensor, n) for n in ('detach', 'retain_grad', 'backward', 'grad', 'requires_grad')))", "True True True True True True")
I("S0-26", "backward() of a non-scalar raises", XY + "y.backward()", "re:RAISES \\w+: .*[Gg]rad can be implicitly created only for scalar outputs.*",
  today="RAISES RuntimeError: grad can be implicitly created only for scalar outputs",
  sense="RuntimeError; the page's text starts 'Check failed: IsScalarTensor(*outputs.at(i)) Grad can ...', oneflow 0.9 prints 'Grad can ...' plus a C++ stack: match case-insensitively, use torch's text")
I("S0-27", "summing first works", XY + "y = y.sum(); y.backward(); print(x.grad)", "tensor([[3., 3.]], dtype=oneflow.float32)")
I("S0-28", "3*x + 1 with Python ints keeps float32", XY + "print(str(y.dtype).split('.')[1], y.detach())", "float32 tensor([[4., 4.]], dtype=oneflow.float32)")
I("S0-29", "backward takes the cotangent as its first positional argument", XY + "y.backward(flow.ones_like(y)); print(x.grad)", "tensor([[3., 3.]], dtype=oneflow.float32)")
I("S0-30", "VJP: v times the diagonal Jacobian", XY + "y.backward(flow.tensor([[2., -1.]])); print(x.grad)", "tensor([[ 6., -3.]], dtype=oneflow.float32)")
I("S0-31", "v must have y's shape", XY + "y.backward(flow.ones(2))", "re:RAISES \\w+: .*shape.*",
  today="RAISES RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([1, 2]).",
  sense="torch's text with plain tuples; oneflow: \"out_grad's shape must be same as output's ((1,2) vs (2,))\"")
I("S0-32", "feeding the later layer's gradient as v gives the whole chain's gradient", XY + "u = y.detach().requires_grad_(True); (u*u).sum().backward(); y.backward(u.grad); print(x.grad)", "tensor([[24., 24.]], dtype=oneflow.float32)")
I("S0-33", "autograd.grad is named by the error text and exists", "a = flow.tensor(10., requires_grad=True); print(flow.autograd.grad(flow.pow(a, 2), a))", "(tensor(20., dtype=oneflow.float32),)")
I("S0-34", "the drawn graph: reading grad_fn back from the loss meets one node per operator down to the leaves", PRE0 + "n = 0; todo = [l.grad_fn]\nwhile todo:\n    f = todo.pop(); n += 1\n    todo += [g[0] if isinstance(g, tuple) else g for g in f.next_functions]\n    todo = [f for f in todo if f is not None]\nprint(n)", "8",
  sense="sum, mul, pow, sub, add, matmul + 2 accumulators; None edges for x, y in torch, absent in oneflow")
I("S0-35", "a leaf that requires grad shows no grad_fn, before and after use", PRE0 + "print(w.grad_fn)", "None", of="re:<accumulate_grad at 0x..>", sense="None (oneflow leaks its accumulator there, and prints grad_fn=<accumulate_grad> in the leaf's repr)")

# ----------------------------------------------------------------------------------------------------------- PyTorch tutorial
F1 = "x = torch.ones(3, requires_grad=True)\ndef f(x):\n    y = x*2\n    return y*y*2\n"
I("S1-01", "only tensors with is_leaf and requires_grad receive .grad", "a = torch.ones(2, requires_grad=True); b = torch.ones(2); c = a*b; c.sum().backward(); print(a.grad, b.grad)", "tensor([1., 1.]) None")
I("S1-02", "TL;DR says a gradient argument must always be given: only true for more than one element", "a = torch.tensor(2., requires_grad=True); (a*a).backward(); print(a.grad)", "tensor(4.)", sense="implicit 1 for one-element outputs, as the page's own later section says")
I("S1-03", "define-by-run: the graph may differ at every iteration", "a = torch.tensor(2., requires_grad=True)\nfor n in (1, 3):\n    y = a\n    for _ in range(n): y = y*a\n    a.grad = None; y.backward(); print(a.grad)", "tensor(4.)\ntensor(32.)")
I("S1-04", "torch.tensor(1.0) * torch.tensor(2.0) records nothing", "z = torch.tensor(1.0)*torch.tensor(2.0); print(z, z.grad_fn, z.requires_grad, z.is_leaf)", "tensor(2.) None False True", sense="the page draws a graph for it: nothing is recorded until an input requires grad")
I("S1-05", "`data`: the values, untracked, same memory", "a = torch.ones(2, requires_grad=True); d = a.data; d.mul_(3); print(d.requires_grad, d.grad_fn, a.detach())", "False None tensor([3., 3.])")
I("S1-06", "requires_grad is False by default and settable", "x = torch.tensor(1.0); print(x.requires_grad); x.requires_grad = True; print(x)", "False\ntensor(1., requires_grad=True)")
I("S1-07", "requires_grad_(True) sets in place and returns the same tensor", "x = torch.ones(1); print(x.requires_grad_(True) is x, x.requires_grad)", "True True")
I("S1-08", "the page's example: computed from untracked tensors -> False, then switched on (it is a leaf)", "a = torch.randn(2, 2); a = ((a * 3) / (a - 1)); print(a.requires_grad); a.requires_grad_(True); print(a.requires_grad)", "False\nTrue")
I("S1-09", "grad is None without requires_grad", "print(torch.ones(1).grad)", "None")
I("S1-10", "grad is None until some backward()", "print(torch.ones(1, requires_grad=True).grad)", "None")
I("S1-11", "grad_fn is None for user-made tensors", "print(torch.ones(1, requires_grad=True).grad_fn)", "None")
I("S1-12", "print of a grad_fn", "a = torch.ones(2, 2, requires_grad=True); print((a*a).grad_fn)", "<MulBackward0 object at 0x..>", sense="repr <NameBackward0 object at 0x...>; OneFlow: <broadcast_mul_backward at 0x...>")
I("S1-13", "leaf: made by a factory", "print(torch.tensor(1.0).is_leaf)", "True")
I("S1-14", "leaf: made by operations on tensors none of which requires grad", "print((torch.ones(2) + 1).is_leaf)", "True")
I("S1-15", "leaf: made by detach()", "print((torch.ones(2, requires_grad=True) + 1).detach().is_leaf)", "True")
I("S1-16", "detach() cuts the history: a factor behind it is a constant", "a = torch.tensor(3., requires_grad=True); (a * a.detach()).backward(); print(a.grad)", "tensor(3.)")
I("S1-17", ".numpy() is listed as an alternative to detach()", "(torch.ones(2, requires_grad=True)*2).numpy()", "re:.*", today="RAISES RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
  sense="raise like torch (oneflow returns the array); numpy(force=True) as the way out")
I("S1-18", ".item() gives a Python number, also from a tracked tensor", "v = (torch.ones(1, requires_grad=True)*2).item(); print(v, type(v).__name__)", "2.0 float")
I("S1-19", ".item() of several elements raises", "torch.ones(2).item()", "RAISES RuntimeError: a Tensor with 2 elements cannot be converted to Scalar")
I("S1-20", ".tolist(), 'if not a scalar': a scalar gives a bare number", "print((torch.ones(2, requires_grad=True)*2).tolist(), torch.tensor(3.).tolist())", "[2.0, 2.0] 3.0")
I("S1-21", "requires_grad_(False) switches a leaf off in place", "a = torch.ones(1, requires_grad=True); a.requires_grad_(False); print(a.requires_grad)", "False")
I("S1-22", "'the input flag defaults to False if not given': wrong, requires_grad_() means True", "print(torch.ones(1).requires_grad_().requires_grad)", "False", today="True", sense="True")
I("S1-23", "with torch.no_grad(): operations untracked", "a = torch.ones(1, requires_grad=True)\nwith torch.no_grad(): print((a*2).requires_grad)", "False")
I("S1-24", "typo: torch.Tensor(1.0, requires_grad=True)", "torch.Tensor(1.0, requires_grad=True)", "re:.*", today="re:RAISES TypeError: new\\(\\) received an invalid combination of arguments - got \\(float, requires_grad=bool\\), but expected one of:.*",
  sense="the page means torch.tensor(1.0, requires_grad=True). Tensor(float) should raise TypeError naming tensor(...); never treat a float as a size")
I("S1-25", "typo: torch.Tensor(2.0)", "torch.Tensor(2.0)", "re:.*", today="RAISES TypeError: new(): data must be a sequence (got float)", sense="as S1-24; note torch.Tensor(2) is an uninitialised tensor of 2 elements, a trap not to copy; oneflow.Tensor(1.0) gives a 0-dim tensor")
I("S1-26", "x tracked, y not: x.grad is y's value, y.grad None, z tracked", "x = torch.tensor(1.0, requires_grad=True); y = torch.tensor(2.0); z = x*y; z.backward(); print(x.grad, y.grad, z.requires_grad, z.is_leaf)", "tensor(2.) None True False")
I("S1-27", "z's grad_fn 'refers to MulBackward'", "x = torch.tensor(1.0, requires_grad=True); print((x*2).grad_fn.name())", "MulBackward", today="MulBackward0", sense="MulBackward0")
I("S1-28", "backward() passes tensor(1.0): equal to backward(torch.tensor(1.0)); called '1x1', it is 0-dim", "x = torch.tensor(1.0, requires_grad=True); y = torch.tensor(2.0)\n(x*y).backward(); g = x.grad; x.grad = None; (x*y).backward(torch.tensor(1.0)); print(g, x.grad)", "tensor(2.) tensor(2.)")
I("S1-29", "the graph exists before backward: next_functions lists (node, index), AccumulateGrad for tracked leaves, None for others", "x = torch.tensor(1.0, requires_grad=True); z = x*torch.tensor(2.0); print(z.grad_fn.next_functions)", "((<AccumulateGrad object at 0x..>, 0), (None, 0))")
I("S1-30", "the argument's shape must equal the tensor's", F1 + "f(x).backward(torch.ones(2))", "RAISES RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([3]).")
I("S1-31", "scalar chain c = a*(a+2) at 1", "a = torch.tensor(1.0, requires_grad=True); b = a + 2; c = a * b; c.backward(); print(a.grad)", "tensor(4.)")
I("S1-32", "'a scalar (i.e. one element)': any rank will do", "a = torch.ones(1, 1, requires_grad=True); (a*2).backward(); print(a.grad)", "tensor([[2.]])")
I("S1-33", "a tracked vector inside an f-string", F1 + 'print(f"f(x): {f(x)}")', "f(x): tensor([8., 8., 8.], grad_fn=<MulBackward0>)")
I("S1-34", "dtype=torch.float turns ints into floats; torch.float is torch.float32", "print(torch.tensor([1, 2, 3], dtype=torch.float), torch.float is torch.float32)", "tensor([1., 2., 3.]) True")
I("S1-35", "VJP with v = (1,2,3), keyword retain_graph", F1 + 'f(x).backward(torch.tensor([1, 2, 3], dtype=torch.float), retain_graph=True); print(f"gradint of x: {x.grad}")', "gradint of x: tensor([16., 32., 48.])")
I("S1-36", "the function form torch.autograd.backward(z, grad_tensors=v, retain_graph=True)", F1 + "torch.autograd.backward(f(x), grad_tensors=torch.tensor([1., 2., 3.]), retain_graph=True); print(x.grad)", "tensor([16., 32., 48.])")
I("S1-37", "backward does not compute the Jacobian: without v it raises", F1 + "f(x).backward()", "RAISES RuntimeError: grad can be implicitly created only for scalar outputs")
I("S1-38", "the Jacobian itself is 16 times the identity", F1 + "print(torch.autograd.functional.jacobian(f, x.detach()))", "tensor([[16.,  0.,  0.],\n        [ 0., 16.,  0.],\n        [ 0.,  0., 16.]])")
I("S1-39", "x.grad.zero_() before the next pass, else it accumulates; then v = ones", F1 + 'f(x).backward(torch.tensor([1., 2., 3.]), retain_graph=True); x.grad.zero_()\nf(x).backward(torch.ones(3, dtype=torch.float), retain_graph=True); print(f"gradint of x: {x.grad}")', "gradint of x: tensor([16., 16., 16.])")
I("S1-40", "v acts as weights of the outputs", F1 + "v = torch.tensor([1., 2., 3.]); (v*f(x)).sum().backward(); print(x.grad)", "tensor([16., 32., 48.])")
I("S1-41", "appendix: with v = dl/dy the VJP is dl/dx", F1 + "y = f(x); u = y.detach().requires_grad_(); (u**2).sum().backward(); y.backward(u.grad); print(x.grad)", "tensor([256., 256., 256.])")
I("S1-42", "names: 'grad_tensor' in prose is gradient= of Tensor.backward and grad_tensors= of autograd.backward", F1 + "f(x).backward(gradient=torch.ones(3)); print(x.grad)", "tensor([16., 16., 16.])")
I("S1-43", "non-leaf ('branch') tensors: requires_grad without is_leaf", "z = torch.tensor(1., requires_grad=True)*2; print(z.requires_grad, z.is_leaf)", "True False")
I("S1-44", "a second call of f builds a second graph, so no retain_graph is needed across calls", F1 + "f(x).sum().backward(); f(x).sum().backward(); print(x.grad)", "tensor([32., 32., 32.])")
I("S1-45", "f-string and print of a 0-dim leaf", "x = torch.tensor(1., requires_grad=True); print(x); print(f'{x} {x:.2f}')", "tensor(1., requires_grad=True)\n1.0 1.00", sense="format() of a 0-dim tensor formats the number (torch); of others only the empty spec")

# ------------------------------------------------------------------------------------------------------- notes on autodiff
CHK = "def check(x):\n    print(f'is_leaf: {x.is_leaf}, requires_grad: {x.requires_grad}, grad_fn: {x.grad_fn}, grad: {x.grad}')\n"
WARN = ("WARNS UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). "
        "If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. "
        "See github.com/pytorch/pytorch/pull/30531 for more information.")
LEAF = "is_leaf: True, requires_grad: True, grad_fn: None, grad: None"
CONST = "is_leaf: True, requires_grad: False, grad_fn: None, grad: None"
RG = "RAISES RuntimeError: you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
NG = "RAISES RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
LIN = "import torch.nn as nn\n"
I("S2-01", "is_leaf means grad_fn is None", "a = torch.rand(3, requires_grad=True); print(*((t.is_leaf == (t.grad_fn is None)) for t in (a, a+1, torch.rand(3), a.detach())))", "True True True True")
I("S2-02", "every tensor without requires_grad is a leaf", "print((torch.rand(3)*2).is_leaf)", "True")
I("S2-03", "a non-leaf always requires grad; switching it off raises (setter)", LIN + "y = nn.Linear(3, 5)(torch.rand(1, 3)); y.requires_grad = False", RG)
I("S2-04", "... and so does requires_grad_(False) (implied)", "(torch.rand(3, requires_grad=True)*2).requires_grad_(False)", RG, sense="raise; oneflow 0.9's requires_grad_(False) silently succeeds on a non-leaf")
I("S2-05", "an operation is recorded only if some input requires grad", "print((torch.rand(3)+1).grad_fn, (torch.rand(3)+torch.rand(3, requires_grad=True)).grad_fn)", "None <AddBackward0 object at 0x..>")
I("S2-06", "default False; torch.rand(3, requires_grad=True) sets it at creation", "print(torch.rand(3).requires_grad, torch.rand(3, requires_grad=True).requires_grad)", "False True")
I("S2-07", "setting the flag is no operation: no grad_fn appears, the tensor itself is returned", "x = torch.rand(3); y = x.requires_grad_(True); print(y is x, x.grad_fn)", "True None")
I("S2-08", "nn.Parameter requires grad by default", CHK + LIN + "check(nn.Parameter(torch.rand(3)))", LEAF)
I("S2-09", "nn.Linear(3, 5).weight is such a parameter, (out, in)", CHK + LIN + "check(nn.Linear(3, 5).weight); print(tuple(nn.Linear(3, 5).weight.shape), tuple(nn.Linear(3, 5).bias.shape))", LEAF + "\n(5, 3) (5,)")
I("S2-10", "print of a Parameter (implied)", LIN + "print(nn.Parameter(torch.ones(2)))", "Parameter containing:\ntensor([1., 1.], requires_grad=True)")
I("S2-11", "grad_fn holds what its backward needs: the inputs", "a = torch.tensor([2.], requires_grad=True); print((a**3).grad_fn._saved_self)", "tensor([2.], requires_grad=True)")
I("S2-12", "backward() of an untracked tensor raises", "torch.rand(1).backward()", NG)
I("S2-13", "'only non-leaf tensors can call backward()': a tracked one-element leaf may, its grad is 1", "a = torch.rand(1, requires_grad=True); a.backward(); print(a.grad)", NG, today="tensor([1.])", sense="allow, as torch and oneflow do")
I("S2-14", "grad accumulates ('accumulated / populated'), default None", "a = torch.ones(1, requires_grad=True); print(a.grad); (a*2).backward(); (a*2).backward(); print(a.grad)", "None\ntensor([4.])")
I("S2-15", "reading .grad of a tracked non-leaf warns", "print((torch.rand(1, requires_grad=True)*2).grad)",
  "None\nWARNS UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). If you indeed want the gradient for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations.",
  today="None\n" + WARN, sense="UserWarning, first two sentences verbatim (same in both), own advice after them; torch appends '(Triggered internally at ...)', not to be copied")
I("S2-16", "no such warning after retain_grad(), nor for what was made under no_grad (implied)", "y = torch.rand(1, requires_grad=True)*2; y.retain_grad(); print(y.grad)\nwith torch.no_grad(): q = torch.rand(1, requires_grad=True)*2\nprint(q.grad)", "None\nNone")
I("S2-17", "detach(): no copy, requires_grad False, leaf", "a = torch.ones(2, requires_grad=True); d = a.detach(); d[0] = 5; print(d.requires_grad, d.is_leaf, a.tolist())", "False True [5.0, 1.0]")
I("S2-18", "clone(): copies, keeps the gradient path, is not a leaf", "a = torch.ones(2, requires_grad=True); c = a.clone(); print(c.is_leaf, c.grad_fn); c.sum().backward(); print(a.grad)", "False <CloneBackward0 object at 0x..>\ntensor([1., 1.])")
I("S2-19", "under no_grad nothing is recorded, so backward() raises", "a = torch.ones(2, requires_grad=True)\nwith torch.no_grad(): y = (a*2).sum()\ny.backward()", NG)
I("S2-20", "no_grad() as a decorator", "@torch.no_grad()\ndef func(x): return x*2\nprint(func(torch.ones(1, requires_grad=True)).requires_grad, func.__name__)", "False func", sense="functools.wraps; also bare @no_grad, generators, coroutines (torch does not cover coroutines, oneflow neither wraps nor generators)")
I("S2-21", "enable_grad() inside no_grad()", "a = torch.ones(1, requires_grad=True)\nwith torch.no_grad():\n    with torch.enable_grad(): print((a*2).requires_grad)\n    print((a*2).requires_grad)", "True\nFalse")
I("S2-22", "eval() does not stop recording; it sets training False on the module and its children and returns it", LIN + "m = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())\nprint(m.training, m.eval() is m, m.training, m[1].training, m[2].training, m(torch.rand(2, 3)).requires_grad)", "True True False False False True")
I("S2-23", "what eval() changes: Dropout becomes the identity, BatchNorm uses its running statistics", LIN + "d = nn.Dropout().eval(); x = torch.ones(4); print(d(x)); b = nn.BatchNorm1d(2, eps=0.).eval(); print(b(torch.tensor([[1., 2.], [3., 4.]])).detach())", "tensor([1., 1., 1., 1.])\ntensor([[1., 2.],\n        [3., 4.]])")
I("S2-24", "inference: eval() and no_grad() together", LIN + "m = nn.Linear(3, 5); m.eval()\nwith torch.no_grad(): y = m(torch.rand(1, 3))\nprint(tuple(y.shape), y.requires_grad)", "(1, 5) False")
I("S2-25", "set_grad_enabled(flag) as a context", "a = torch.ones(1, requires_grad=True)\nfor k in (True, False):\n    with torch.set_grad_enabled(k): print((a*2).requires_grad)\nprint((a*2).requires_grad)", "True\nFalse\nTrue")
I("S2-26", "retain_grad() before backward keeps a non-leaf's grad", "a = torch.ones(2, requires_grad=True); y = a*2; y.retain_grad(); (y*3).sum().backward(); print(y.grad, a.grad)", "tensor([3., 3.]) tensor([6., 6.])")
I("S2-27", "retains_grad tells", "y = torch.ones(2, requires_grad=True)*2; print(y.retains_grad); y.retain_grad(); print(y.retains_grad)", "False\nTrue")
I("S2-28", "'must be a non-leaf': on a tracked leaf it is a no-op, on an untracked tensor it raises", "a = torch.ones(2, requires_grad=True); a.retain_grad(); print(a.retains_grad); torch.ones(2).retain_grad()", "re:.*", today="False\nRAISES RuntimeError: can't retain_grad on Tensor that has requires_grad=False")
I("S2-29", "autograd.grad's positional order: outputs, inputs, grad_outputs, retain_graph, create_graph", "import inspect; print(list(inspect.signature(torch.autograd.grad).parameters)[:5])", "['outputs', 'inputs', 'grad_outputs', 'retain_graph', 'create_graph']")
I("S2-30", "it returns a tuple and leaves .grad alone", "a = torch.tensor([1., 2.], requires_grad=True); print(torch.autograd.grad((a**2).sum(), a), a.grad)", "(tensor([2., 4.]),) None")
I("S2-31", "'grad_outputs: if None, all ones': for one element only, else it raises", "a = torch.tensor([1., 2.], requires_grad=True); print(torch.autograd.grad(a**2, a))", "(tensor([2., 4.]),)", today="RAISES RuntimeError: grad can be implicitly created only for scalar outputs", sense="raise (both real libraries do)")
I("S2-32", "grad_outputs has the outputs' shape", "a = torch.tensor([1., 2.], requires_grad=True); print(torch.autograd.grad(a**2, a, torch.tensor([1., 10.])))", "(tensor([ 2., 40.]),)")
I("S2-33", "create_graph=True: differentiable gradients", "a = torch.tensor(2., requires_grad=True); g, = torch.autograd.grad(a**3, a, create_graph=True); print(g); print(torch.autograd.grad(g, a)[0])", "tensor(12., grad_fn=<MulBackward0>)\ntensor(12.)")
I("S2-34", "retain_graph defaults to create_graph", "a = torch.tensor(2., requires_grad=True); y = a**3; torch.autograd.grad(y, a, create_graph=True); print(torch.autograd.grad(y, a)[0])\ny = a**3; torch.autograd.grad(y, a); torch.autograd.grad(y, a)", "re:tensor\\(12\\.\\)\nRAISES RuntimeError: Trying to backward through the graph a second time.*")
I("S2-35", "typo 'retrain_graph'", "a = torch.tensor(2., requires_grad=True); torch.autograd.grad(a*a, a, retrain_graph=True)", "RAISES TypeError: grad() got an unexpected keyword argument 'retrain_graph'")
SDF = '''import torch.nn as nn
class SDF(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, 8), nn.Softplus(beta=100), nn.Linear(8, 1))
    def forward(self, p):
        with torch.set_grad_enabled(True):
            p.requires_grad_(True)
            sigma = self.backbone(p)
            normal = -torch.autograd.grad(torch.sum(sigma), p, create_graph=True)[0]
            return sigma, normal
net = SDF(); p = torch.rand(2, 4, 3)
'''
I("S2-36", "SDF normals: shape [B, N, 3], differentiable", SDF + "s, n = net(p); print(tuple(s.shape), tuple(n.shape), n.requires_grad, p.requires_grad)", "(2, 4, 1) (2, 4, 3) True True")
I("S2-37", "... also when the caller is inside no_grad", SDF + "with torch.no_grad(): s, n = net(p)\nprint(s.requires_grad, n.requires_grad)", "True True")
I("S2-38", "a loss of the normals trains the backbone: double backward through Linear and Softplus; the last bias gets None", SDF + "s, n = net(p); ((n.norm(dim=-1) - 1)**2).mean().backward(); print([k for k, q in net.named_parameters() if q.grad is not None], net.backbone[2].bias.grad)", "['backbone.0.weight', 'backbone.0.bias', 'backbone.2.weight'] None")
I("S2-39", "normals agree with finite differences of the field", SDF + "net.double(); p = torch.rand(1, 1, 3, dtype=torch.float64); s, n = net(p); e = 1e-6; q = p.detach().clone(); q[..., 0] += e; s2, _ = net(q); print(abs(-(s2 - s).item()/e - n[0, 0, 0].item()) < 1e-4)", "True")
I("S2-40", "check() line: torch.rand(3)", CHK + "check(torch.rand(3))", CONST)
I("S2-41", "check() line: torch.rand(3, requires_grad=True)", CHK + "check(torch.rand(3, requires_grad=True))", LEAF)
I("S2-42", "check() line: + 1. (The note under it speaks of CopyBackwards: a leftover, the printed name is AddBackward0)", CHK + "check(torch.rand(3, requires_grad=True) + 1)", "is_leaf: False, requires_grad: True, grad_fn: <AddBackward0 object at 0x..>, grad: None",
  today="is_leaf: False, requires_grad: True, grad_fn: <AddBackward0 object at 0x..>, grad: None\n" + WARN)
I("S2-43", "check() line: .cuda() of a tracked tensor is an operation, CopyBackwards in the page; on this CPU build a dtype move stands for it", CHK + "check(torch.rand(3, requires_grad=True).to(torch.float64))", "is_leaf: False, requires_grad: True, grad_fn: <CopyBackwards object at 0x..>, grad: None",
  today="is_leaf: False, requires_grad: True, grad_fn: <ToCopyBackward0 object at 0x..>, grad: None\n" + WARN, sense="ToCopyBackward0; a move which changes nothing returns the same tensor")
I("S2-44", "check() line: torch.rand(3) + 1 stays a leaf", CHK + "check(torch.rand(3) + 1)", CONST)
I("S2-45", "a move of an untracked tensor stays a leaf", CHK + "check(torch.rand(3).to(torch.float64))", CONST)
I("S2-46", ".cuda() without CUDA", "torch.rand(3).cuda()", "re:.*", today="RAISES AssertionError: Torch not compiled with CUDA enabled", sense="RuntimeError naming the devices there are; .cpu() and .to('cpu') return the tensor itself")
I("S2-47", "device keyword of a factory makes a leaf directly (page: device='cuda'; its 'cuda:0,' prefix is not printed by check())", CHK + "check(torch.rand(3, requires_grad=True, device='cpu'))", LEAF)
I("S2-48", "check(lin.weight)", CHK + LIN + "check(nn.Linear(3, 5).weight)", LEAF)
I("S2-49", "check(lin(x)): AddmmBackward", CHK + LIN + "check(nn.Linear(3, 5)(torch.rand(1, 3)))", "is_leaf: False, requires_grad: True, grad_fn: <AddmmBackward object at 0x..>, grad: None",
  today="is_leaf: False, requires_grad: True, grad_fn: <AddmmBackward0 object at 0x..>, grad: None\n" + WARN, sense="AddmmBackward0 for 2-dim input; torch shows ViewBackward0 for 1- and 3-dim input, oneflow broadcast_add_backward")
LOSS = "import torch.nn as nn\nlin = nn.Linear(3, 5); x = torch.ones(1, 3); gt = torch.full((1, 5), 100.)\n"
I("S2-50", "typo: nn.L1Loss(y, gt) builds a module from two tensors instead of calling one", LOSS + "nn.L1Loss(lin(x), gt)", "re:.*", today="RAISES RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
  sense="the page means nn.L1Loss()(y, gt). A loss constructor given a Tensor should raise TypeError saying just that (oneflow: \"L1Loss.__init__() takes from 1 to 2 positional arguments but 3 were given\")")
I("S2-51", "check(loss): L1LossBackward", CHK + LOSS + "check(nn.L1Loss()(lin(x), gt))", "is_leaf: False, requires_grad: True, grad_fn: <L1LossBackward object at 0x..>, grad: None",
  today="is_leaf: False, requires_grad: True, grad_fn: <MeanBackward0 object at 0x..>, grad: None\n" + WARN, sense="either; torch 2.13 composes l1_loss from abs and mean (MseLossBackward0 still exists). Name it L1LossBackward0: closer to the seed")
I("S2-52", "l.backward() fills lin.weight.grad", LOSS + "nn.L1Loss()(lin(x), gt).backward(); print(lin.weight.grad)", "re:tensor\\(\\[\\[-0\\.2000, -0\\.2000, -0\\.2000\\],\n(        \\[-0\\.2000, -0\\.2000, -0\\.2000\\],\n){3}        \\[-0\\.2000, -0\\.2000, -0\\.2000\\]\\]\\)")
I("S2-53", "the other tensors (x, y, l, gt) keep grad None", LOSS + "import warnings; warnings.simplefilter('ignore')\ny = lin(x); l = nn.L1Loss()(y, gt); l.backward(); print(x.grad, y.grad, l.grad, gt.grad)", "None None None None")
I("S2-54", "check() after backward prints the gradient inside the line", CHK + "a = torch.ones(2, requires_grad=True); a.sum().backward(); check(a)", "is_leaf: True, requires_grad: True, grad_fn: None, grad: tensor([1., 1.])")
I("S2-55", "non-leaf outputs of a Function: predictions and losses (requires_grad, not leaf)", LOSS + "y = lin(x); l = nn.L1Loss()(y, gt); print(y.is_leaf, y.requires_grad, l.is_leaf, l.requires_grad, gt.is_leaf, gt.requires_grad)", "False True False True True False")


OURS = {
    "S0-03": "(1, 3) 18.0",
    "S0-19": None,  # as below, with zeros_() as the page writes it
    "S0-20": "re:",
    "S0-31": r"re:RAISES RuntimeError: Mismatch in shape: grad_output\[0\] has a shape of .*2.* and output\[0\] has a shape of .*1, 2.*",
    "S1-30": r"re:RAISES RuntimeError: Mismatch in shape: grad_output\[0\] has a shape of .*2.* and output\[0\] has a shape of .*3.*",
    "S1-24": r"re:RAISES TypeError: .*tensor\(.*",
    "S1-25": r"re:RAISES TypeError: .*tensor\(.*",
    "S2-46": r"re:RAISES (RuntimeError|AssertionError): .*(cuda|CUDA).*",
    "S2-50": r"re:RAISES TypeError: .*L1Loss\(\)\(.*",
    "S2-51": r"re:is_leaf: False, requires_grad: True, grad_fn: <(L1LossBackward0|MeanBackward0) object at 0x\.\.>, grad: None\nWARNS UserWarning: The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed\..*",
}


def execute(code, mod):
    out = io.StringIO(); err = ""
    with warnings.catch_warnings(record=True) as ws, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            exec(compile(code, "<item>", "exec"), {"torch": mod, "flow": mod})
        except Exception as e:
            err = "RAISES %s: %s" % (type(e).__name__, str(e))
    lines = [out.getvalue().rstrip("\n")] if out.getvalue() else []
    lines += [err] if err else []
    seen = []
    for w in ws:
        t = "WARNS %s: %s" % (w.category.__name__, re.sub(r" ?\(Triggered internally at .*", "", str(w.message), flags=re.S))
        if t not in seen: seen.append(t)
    return re.sub(r"0x[0-9a-f]+", "0x..", "\n".join(lines + seen)).strip("\n")


def matches(exp, got):
    """Printed lines must be equal; an error's text may go on; a warning must start with the expected first two sentences."""
    if exp.startswith("re:"): return re.fullmatch(exp[3:], got, re.S) is not None
    pat = []
    for part in re.split(r"(?m)^(?=RAISES |WARNS )", exp):
        if part.startswith("RAISES "): pat.append(re.escape(part.rstrip("\n").split(". ")[0].rstrip(".")) + ".*")
        elif part.startswith("WARNS "): pat.append(re.escape(". ".join(part.split(". ")[:2])) + ".*")
        elif part: pat.append(re.escape(part.rstrip("\n")))
    return re.fullmatch(r"\s*".join(pat), got, re.S) is not None


def expected(item):
    """The printout that tapegrad must give for a row."""
    return OURS.get(item["id"]) or (item["today"] or item["shown"]).replace(SUF, "")


def snippet(item):
    """The row's program; S0-19 as its page writes it."""
    return item["code"].replace("zero_()", "zeros_()") if item["id"] == "S0-19" else item["code"]


# What the oneflow drop-in prints where it is not PyTorch's text with dtype=oneflow.float32.
ONEFLOW = {
    "S0-11": "re:None\nWARNS UserWarning: The \\.grad attribute of a Tensor that is not a leaf Tensor is being accessed.*",
    "S0-15": "re:RAISES RuntimeError: Maybe you try to backward through the node a second time\\. Specify retain_graph=True when "
    "calling \\.backward\\(\\) or autograd\\.grad\\(\\) the first time\\..*",
    "S0-26": "re:RAISES RuntimeError: Check failed: IsScalarTensor\\(\\*outputs.at\\(i\\)\\) Grad can be implicitly created only for "
    "scalar outputs.*",
    "S0-31": "re:RAISES RuntimeError: out_grad's shape must be same as output's \\(\\(1, 2\\) vs \\(2,\\)\\).*",
    "S1-12": "<broadcast_mul_backward at 0x..>",
    "S1-17": "",  # a tensor that requires grad gives its values to NumPy
    "S1-27": "scalar_mul_backward",
    "S1-29": "((<accumulate_grad at 0x..>, 0), (None, 0))",
    "S1-30": "re:RAISES RuntimeError: out_grad's shape must be same as output's \\(\\(3,\\) vs \\(2,\\)\\).*",
    "S1-33": "f(x): tensor([8., 8., 8.], grad_fn=<scalar_mul_backward>)",
    "S1-37": "re:RAISES RuntimeError: .*Grad can be implicitly created only for scalar outputs.*",
    "S2-05": "None <add_n_backward at 0x..>",
    "S2-10": "tensor([1., 1.], requires_grad=True)",
    "S2-18": "False <identity_backward at 0x..>\ntensor([1., 1.])",
    "S2-31": "re:RAISES RuntimeError: .*Grad can be implicitly created only for scalar outputs.*",
    "S2-33": "tensor(12., grad_fn=<broadcast_mul_backward>)\ntensor(12.)",
    "S2-34": "re:tensor\\(12\\.\\)\nRAISES RuntimeError: Maybe you try to backward through the node a second time\\..*",
    "S2-42": "re:is_leaf: False, requires_grad: True, grad_fn: <scalar_add_backward at 0x\\.\\.>, grad: None\nWARNS .*",
    "S2-43": "re:is_leaf: False, requires_grad: True, grad_fn: <cast_backward at 0x\\.\\.>, grad: None\nWARNS .*",
    "S2-49": "re:is_leaf: False, requires_grad: True, grad_fn: <broadcast_add_backward at 0x\\.\\.>, grad: None\nWARNS .*",
    "S2-51": "re:is_leaf: False, requires_grad: True, grad_fn: <scalar_mul_backward at 0x\\.\\.>, grad: None\nWARNS .*",
}


def oneflow_form(printed):
    """What the oneflow drop-in printed, without the dtype that each float32 tensor must tell; None if one does not."""
    tensors = [part for part in re.split(r"(?=tensor\()", printed.partition("RAISES")[0]) if re.match(r"tensor\(.*\d\.", part, re.S)]
    return printed.replace(SUF, "") if all(SUF in t for t in tensors) else None
