"""Exceptions, and message texts that are used twice or fixed by PyTorch or a test; others are written where they are raised.

Where PyTorch raises for the same mistake, the exception has its type and starts with its first sentence. The op, the shapes,
the line that recorded the node and the remedy follow.

One file over 1,000 lines, since it is a flat list, in which whoever meets a text finds it and its neighbours, and every room
reads it by one name.
"""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dialect
from .dialect import sentence

Location = tuple[str, int]


def at(location: Location | None) -> str:
    return "" if location is None or not location[1] else f" Recorded at {location[0]}:{location[1]}."


def size(shape: Sequence[int]) -> str:
    return f"{dialect.current.prefix}.Size({list(shape)})"


def dtype_name(dtype: Any) -> str:
    """PyTorch's name of a NumPy dtype in error texts."""
    names = {
        "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
        "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
        "bfloat16": "BFloat16", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    }  # fmt: skip
    return names.get(str(dtype), str(dtype))


def out_dtype(wanted: Any, got: Any, field: str) -> RuntimeError:
    """For an `out` that must have the very dtype of the result."""
    names = {
        "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
        "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
        "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    }  # fmt: skip
    own, other = (names.get(str(d), str(d)) for d in (wanted, got))
    return RuntimeError(
        f"Expected out tensor to have dtype {own}, but got {other} instead (expected scalar type '{dtype_name(wanted)}' but "
        f"got '{dtype_name(got)}' for {field})"
    )


def no_unsigned_promotion(a: str, b: str) -> RuntimeError:
    return RuntimeError(
        f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {dtype_name(a)} and "
        f"{dtype_name(b)}. Convert one first, with .to(dtype)."
    )


def c_name(dtype: Any) -> str:
    """The C++ name of a NumPy dtype's elements, which some of PyTorch's texts give."""
    names = {
        "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "uint8": "uint8_t",
        "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "complex64": "c10::complex<float>",
        "complex128": "c10::complex<double>",
    }  # fmt: skip
    return names.get(str(dtype), str(dtype))


def overflow(kind: str) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {kind} without overflow")


# ------------------------------------------------------------------------------------------------------------- forward


def broadcast_mismatch(op: str, a: Sequence[int], b: Sequence[int]) -> RuntimeError:
    rank = max(len(a), len(b))
    pa, pb = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    for dim in range(rank - 1, -1, -1):
        if pa[dim] != pb[dim] and 1 not in (pa[dim], pb[dim]):
            return RuntimeError(
                f"The size of tensor a ({pa[dim]}) must match the size of tensor b ({pb[dim]}) at non-singleton "
                f"dimension {dim}. {op}() got shapes {tuple(a)} and {tuple(b)}."
            )
    return RuntimeError(f"{op}() got shapes {tuple(a)} and {tuple(b)}, which do not broadcast.")


def forward_failed(op: str, shapes: Sequence[Sequence[int]], cause: Exception) -> RuntimeError:
    if "broadcast" in str(cause):
        for a, b in itertools.combinations(shapes, 2):
            if any(n != m and 1 not in (n, m) for n, m in zip(reversed(a), reversed(b), strict=False)):
                return broadcast_mismatch(op, a, b)
    return RuntimeError(f"{op}(): {cause}. Got shapes {', '.join(str(tuple(s)) for s in shapes)}.")


def no_result_shape(op: str) -> RuntimeError:
    return RuntimeError(f"{op}() runs on the host: a compiled program must be told the shape and dtype of its result.")


def matmul_mismatch(op: str, a: Sequence[int], b: Sequence[int]) -> RuntimeError:
    if len(a) == 2 and len(b) == 2:
        return RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]}). In {op}(): the last size of "
            "the first must equal the first size of the second."
        )
    return RuntimeError(f"{op}(): shapes {tuple(a)} and {tuple(b)} cannot be multiplied.")


def not_a_matrix(name: str, rank: int) -> RuntimeError:
    return RuntimeError(f"tensor.{name} is only supported on matrices (2-D tensors). Got {rank}-D tensor.")


def no_matrix_property(name: str, rank: int) -> RuntimeError:
    return RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got {rank}-D tensor.")


def dtype_mismatch(op: str, a: Any, b: Any) -> RuntimeError:
    names = {"int64": "long int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char"}
    ca, cb = (names.get(str(d), c_name(d)) for d in (a, b))
    return RuntimeError(
        f"expected m1 and m2 to have the same dtype, but got: {ca} != {cb}. In {op}(): convert one with .to(dtype)."
    )


def affine_dtypes(x: Any, weight: Any, bias: Any) -> RuntimeError:
    """For input, weight and bias of a linear map, not all of one dtype."""
    pair, a, b = ("mat1 and mat2", x, weight) if x != weight else ("self and mat2", bias, weight)
    return RuntimeError(
        f"{pair} must have the same dtype, but got {dtype_name(a)} and {dtype_name(b)}. Convert one with .to(dtype), "
        "an array of NumPy with .astype(dtype)."
    )


def too_large_integers() -> ValueError:
    return ValueError("Overflow when unpacking long long. The integers do not fit into int64.")


def no_tensor_data(value: Any) -> Exception:
    if isinstance(value, int):
        return too_large_integers()
    text = f"expected Tensor, array or numbers, but got {type(value).__name__}"
    if hasattr(type(value), "__torch_function__"):
        text += ". Its class has __torch_function__: call tapegrad.overrides.enable() first."
    return TypeError(text)


def no_tensor_in_list(index: int, value: Any) -> TypeError:
    return TypeError(f"expected Tensor as element {index} in argument 0, but got {type(value).__name__}")


class ForeignOperand(TypeError):
    """An operand that is no tensor, array or number."""

    op: str
    position: int


ForeignOperand.__name__ = ForeignOperand.__qualname__ = "TypeError"
ForeignOperand.__module__ = "builtins"


def not_a_tensor(op: str, position: int, kind: str) -> ForeignOperand:
    name = "input" if position == 0 else "other"
    error = ForeignOperand(
        f"{op}(): argument '{name}' (position {position + 1}) must be Tensor, not {kind}. Make one with tensor(...)."
    )
    error.op, error.position = op, position
    return error


def bad_operand(op: str, operands: Sequence[Any]) -> TypeError:
    kinds = ", ".join(type(o).__name__ for o in operands)
    return TypeError(f"{op}(): expected tensors, NumPy arrays or numbers, but got {kinds}.")


def given_twice(op: str, name: str, other: str) -> TypeError:
    """For an argument under its own name and NumPy's."""
    return TypeError(f"{op}() got an unexpected keyword argument '{other}': '{name}', which it stands for, is given too")


def _kind(value: Any) -> str:
    cls = type(value)
    return f"numpy.{cls.__name__}" if cls.__module__ == "numpy" else cls.__name__


def not_dims(op: str, dim: Any) -> TypeError:
    """For dimensions that are not integers."""
    if isinstance(dim, tuple | list):
        place, wrong = next((i, d) for i, d in enumerate(dim) if not hasattr(d, "__index__"))
        found = f"but found element of type {_kind(wrong)} at pos {place}"
    else:
        found = f"not {_kind(dim)}"
    return TypeError(f"{op}(): argument 'dim' must be tuple of ints, {found}")


def not_an_out(op: str, out: Any, index: int | None = None) -> TypeError:
    """For an `out` that is no tensor, or the one at that index of several."""
    if index is None:
        return TypeError(f"{op}(): argument 'out' must be Tensor, not {_kind(out)}")
    return TypeError(f"expected Tensor as element {index} in argument 'out', but got {_kind(out)}. In {op}().")


def not_outs(op: str, outs: Any) -> TypeError:
    return TypeError(f"{op}(): argument 'out' must be tuple of Tensors, not {_kind(outs)}")


def not_sizes(op: str, argument: str, args: Sequence[Any]) -> TypeError:
    """For sizes that are not integers, given one by one or as one sequence."""
    one = args[0] if len(args) == 1 else args
    found: list[tuple[int, Any]] = []
    if isinstance(one, list | tuple):
        found = [(i, v) for i, v in enumerate(one) if not hasattr(v, "__index__")]
    if not found:
        kind = type(one).__name__
        return TypeError(f"{op}(): argument '{argument}' (position 1) must be tuple of ints, not {kind}")
    position, value = found[0]
    kind = type(value).__name__
    if position:
        return TypeError(
            f"{op}(): argument '{argument}' failed to unpack the object at pos {position + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    return TypeError(
        f"{op}(): argument '{argument}' (position 1) must be tuple of ints, but found element of type {kind} at pos 0"
    )


def too_many_indices(rank: int, integer: bool) -> IndexError:
    if rank == 0 and integer:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
            "tensor to a number"
        )
    return IndexError(f"too many indices for tensor of dimension {rank}")


def not_implemented_for(op: str, dtype: Any) -> NotImplementedError:
    return NotImplementedError(f"\"{op}\" not implemented for '{dtype_name(dtype)}'")


def mask_dtype(op: str, dtype: Any) -> RuntimeError:
    names = {
        "float32": "float", "float64": "double", "int64": "long", "int32": "int", "int16": "short", "int8": "signed char",
        "uint8": "unsigned char",
    }  # fmt: skip
    got = names.get(str(dtype), dtype_name(dtype))
    return RuntimeError(f"{op} only supports boolean masks, but got mask with dtype {got}")


def index_failed(op: str, shape: Sequence[int], cause: Exception) -> Exception:
    kind = IndexError if isinstance(cause, IndexError) else RuntimeError
    text = str(cause).replace("out of bounds for axis", "out of bounds for dimension").rstrip(".")
    shapes = [[int(n) for n in found.split(",") if n] for found in re.findall(r"\(([\d,]*)\)", text)]
    if "indexing result" in text and len(shapes) == 2:
        text = (
            f"shape mismatch: value tensor of shape {shapes[0]} cannot be broadcast to indexing result of shape {shapes[1]}"
        )
    elif "indexing arrays could not be broadcast" in text:
        text = f"shape mismatch: indexing tensors could not be broadcast together with shapes {', '.join(map(str, shapes))}"
    elif "could not broadcast" in text or "cannot assign" in text:
        text = f"shape mismatch: value tensor cannot be broadcast to indexing result. {text}"
    return kind(f"{text}. In {op} on a tensor of shape {tuple(shape)}.")


# ------------------------------------------------------------------------------------------------------------ autograd


def escaped(transform: str) -> RuntimeError:
    return RuntimeError(
        f"a value from inside {transform} was used after that {transform} had ended. Return it from the function instead of "
        "storing it."
    )


def no_sample() -> ValueError:
    return ValueError(
        "vmap: a batch of 0 samples has none that tells the value or the shape that the function asks for (in_dims names a "
        "dimension of size 0)"
    )


def dispatch_unasked(name: str) -> str:
    return (
        f"{name}.__torch_dispatch__ is never called: tapegrad has no dispatcher. Define __torch_function__, which every "
        "public function asks."
    )


def vmap_loop() -> str:
    return (
        "vmap: this line asks for the value of a single sample, so the function ran for one sample after the other, which "
        "is slow. Where the value decides what is computed, tg.where(condition, a, b) keeps it batched."
    )


def vmap_shapes(name: str, first: Any, sample: int, other: Any, location: tuple[str, int] | None = None) -> RuntimeError:
    where = "" if location is None else f" It asks for values of a sample at {location[0]}:{location[1]}."
    return RuntimeError(
        f"vmap({name}, ...): the results of the samples differ in shape, {list(first)} of sample 0 and {list(other)} of "
        f"sample {sample}: `{name}` has to return the same shape for all of them.{where} tg.where(condition, a, b) does so "
        "in place of a mask; or loop over the samples."
    )


def mixed_rows(transform: str) -> RuntimeError:
    return RuntimeError(
        f"{transform}(f)(x): a change of one point of x changed f's value at others: f mixes its points (batch "
        f"normalisation, attention, a mean over points), and the result would not be the {transform} point by point. Use "
        f"vmap({transform}(f)) for functions of single points, or {transform}(f, check=False) if this is meant."
    )


def random_in_vmap() -> RuntimeError:
    return RuntimeError(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
        "randomness flags on vmap or perform the randomness operation out of vmap"
    )


def empty_output(transform: str, result: Any) -> RuntimeError:
    return RuntimeError(f"{transform}: Expected f to be a function that has non-empty output (got output = {result})")


def not_tensor_output(transform: str, y: Any) -> RuntimeError:
    return RuntimeError(
        f"{transform}: expected f(*primals) to return only tensors, got unsupported type {type(y)}{no_gradient(y)}"
    )


def not_tensors(transform: str, y: Any) -> RuntimeError:
    return RuntimeError(f"{transform}: Expected f to return Tensors, got unsupported type {type(y)}{no_gradient(y)}")


def not_one_tensor(transform: str, y: Any) -> RuntimeError:
    return RuntimeError(f"{transform}: Expected f to return a Tensor, got {type(y)}{no_gradient(y)}")


def tangent_size(size: Sequence[int], given: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {list(size)} while the given forward gradient is of size {list(given)}."
    )


def linearized_tangent(index: int, got: Sequence[int], expected: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"tangent:{index} with shape {size(got)} in flattened pytree doesn't match the shape {size(expected)} of the "
        "corresponding primal."
    )


def same_with_batched() -> RuntimeError:
    return RuntimeError(
        "Vmap does not currently support same randomness with a batched tensor input. The numbers drawn depend on a tensor "
        "that differs between samples: use randomness='different', or draw numbers that do not and compute with them."
    )


INPLACE_OF_UNBATCHED = (
    "inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
    "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a "
    "vmap: "
)
DRAW_INTO_UNBATCHED = "Cannot ask for different inplace randomness on an unbatched tensor: "


def captured_write(transform: str, why: str = "") -> RuntimeError:
    return RuntimeError(
        f"{transform}: {why}a tensor from outside the function was written in place with a value that depends on the "
        "transformed arguments. Return the new value, or write into a copy made inside the function (x = x.clone())."
    )


def function_keyword(name: str, tensor_in_vmap: bool) -> Exception:
    if tensor_in_vmap:
        return NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. Got: {name}"
        )
    return TypeError(
        f"forward() got an unexpected keyword argument '{name}': apply passes arguments by position, and forward takes this "
        "one by keyword only"
    )


def kept_by_forward(name: str, why: str) -> RuntimeError:
    return RuntimeError(
        f"{name}: backward is differentiated and reads a value that forward made and kept on ctx. Its derivative is not "
        f"known: {why}. Return it from forward as an output, or save the inputs with ctx.save_for_backward and compute it "
        "in backward."
    )


def captured_input(transform: str) -> RuntimeError:
    return RuntimeError(
        f"{transform}: autograd.grad by a tensor from outside the function: its result would not depend on the transformed "
        "arguments. Pass the tensor to the function as an argument, or call requires_grad_() on a copy made inside it."
    )


def trace_aborted(what: str, location: tuple[str, int], line: str) -> RuntimeError:
    file, number = location
    return RuntimeError(f"tapegrad.compile: {what} at {file}:{number} ({line}) cannot be compiled.{remedy_of(what)}")


OUTSIDE = ("item()", "tolist()", "numpy()", "conversion", "printing", "pickling", "saving", "export")


def remedy_of(what: str) -> str:
    """What to do instead of what no program can do; nothing where `what` says so itself."""
    if what.startswith(OUTSIDE):
        return " Compute with the tensor itself, or return it and do this outside the function."
    if what.startswith("use as an index"):
        return " Index with the tensor itself, or make the number a static argument."
    if "the shape of the result depends" in what:
        return " Use tapegrad.where(mask, x, 0), or another form of a shape that is known, or do this outside the function."
    if what.endswith(")") and not what.endswith("()"):
        return ""
    return " Use tapegrad.where, cond, while_loop or scan for what depends on values, or a static argument."


def not_traceable(reason: str) -> RuntimeError:
    return RuntimeError(f"tapegrad.compile: {reason}.")


def unsettled(name: str, change: Any) -> str:
    return (
        f"the function reads and changes its argument {name}, and then needs another program: {change}; keep what grows or "
        "counts outside the function, or only write it there (container.append(x), container[key] = x)"
    )


def many_values(name: str, count: int, why: str) -> str:
    return (
        f"tapegrad.compile: {name} has {count} programs that differ only in values of arguments that are no arrays; now "
        f"{why}. Other values run eagerly. Give numbers as tensors, leave out what the function does not use, or name the "
        "argument in static_argnames, to have a program for each value."
    )


def many_traces(name: str, count: int, why: str) -> str:
    return (
        f"tapegrad.compile: {name} has been traced {count} times, now because of {why!r}. Every new shape, dtype, mode, "
        "value of an argument that is no array, or value of what the function reads besides makes a program: give numbers "
        "that change from call to call as tensors."
    )


def nan_made(op: str, shapes: list[Any], location: tuple[str, int]) -> FloatingPointError:
    file, number = location
    operands = ", ".join([str(tuple(s)) for s in shapes])
    return FloatingPointError(f"{op} of operands of shape {operands} at {file}:{number} gives nan")


def not_a_mesh(kind: str) -> TypeError:
    return TypeError(f"mesh has to be a jax.sharding.Mesh, not {kind}")


def shard_without_mesh() -> ValueError:
    return ValueError("shard says how arrays lie on a mesh: give the mesh, too")


def shard_key(kind: str) -> TypeError:
    return TypeError(f"the keys of shard are names of arguments and tensors, not {kind}")


def shard_name(name: str, signature: object) -> ValueError:
    return ValueError(
        f"shard names {name!r}, which is no argument of the function {signature}; a parameter of a module is given as the "
        "tensor itself, as in shard={net.weight: PartitionSpec('data')}"
    )


def shard_spec(what: str, spec: object) -> TypeError:
    return TypeError(f"shard gives {spec!r} for {what}: it takes a jax.sharding.PartitionSpec, or a container of them")


def shard_item(what: str, key: object) -> ValueError:
    return ValueError(f"shard gives a specification for {what}[{key!r}], which is not there")


def shard_rank(what: str, axes: Sequence[Any], shape: Sequence[int]) -> ValueError:
    return ValueError(
        f"shard gives {len(axes)} dimensions {tuple(axes)} for {what}, which has {len(shape)}, of sizes {list(shape)}"
    )


def shard_axis(what: str, axis: str, axes: Sequence[str]) -> ValueError:
    return ValueError(f"shard divides {what} along {axis!r}, but the axes of the mesh are {tuple(axes)}")


def on_other_hosts(shape: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"part of this tensor of {tuple(shape)} lies on devices of other processes: return a clone of it from a compiled "
        "function with the same mesh, which every process calls"
    )


def shard_uneven(what: str, dim: int, size: int, along: Sequence[str], parts: int) -> ValueError:
    return ValueError(
        f"shard divides dimension {dim} of {what} among {parts} devices along {', '.join(map(repr, along))}, but its size "
        f"{size} is no multiple of {parts}: pad it, or leave the rest out (a DataLoader's drop_last=True)"
    )


def unknown_static(name: str, signature: object) -> ValueError:
    return ValueError(f"static_argnames names {name!r}, which is no argument of the function {signature}")


def unhashable_static(name: str, kind: str) -> TypeError:
    return TypeError(
        f"the static argument {name!r} has to be hashable, and a {kind} is not; give a tuple, or do not name it"
    )


def second_backward(node: str | None, location: Location | None = None, failed: bool = False) -> RuntimeError:
    text = sentence(
        "second_backward",
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.",
    )
    if failed:
        text += " The first pass did not finish: an exception stopped it after this node."
    if node is not None:
        text += f" Node {node} has been released.{at(location)}"
    return RuntimeError(text)


def no_grad_fn(index: int, recording: bool) -> RuntimeError:
    why = "" if recording else " It may have been computed under no_grad()."
    return RuntimeError(
        f"element {index} of tensors does not require grad and does not have a grad_fn. Nothing was recorded for it: set "
        f"requires_grad=True on an input before computing it.{why}"
    )


def not_scalar(shape: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"{sentence('not_scalar', 'grad can be implicitly created only for scalar outputs')}. This output has shape "
        f"{tuple(shape)}: pass a gradient of that shape, or reduce it first, for example with .sum()."
    )


def gradient_count(function: str, expected: int, got: int) -> RuntimeError:
    text = f"function {function} returned an incorrect number of gradients (expected {expected}, got {got})"
    name = function.removesuffix("Backward")
    return RuntimeError(sentence("gradient_count", text, function=name, expected=expected, got=got))


def not_real(dtype: Any) -> RuntimeError:
    return RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")


def cotangent_shape(index: int, got: Sequence[int], expected: Sequence[int]) -> RuntimeError:
    text = sentence(
        "cotangent_shape",
        f"Mismatch in shape: grad_output[{index}] has a shape of {size(got)} and output[{index}] has a shape of "
        f"{size(expected)}",
        output=tuple(expected),
        gradient=tuple(got),
    )
    return RuntimeError(f"{text}.")


def batched_cotangent_shape(index: int, got: Sequence[int], expected: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
        f"sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
        f"detected: grad_output[{index}] has a shape of {size(got)} and output[{index}] has a shape of {size(expected)}."
    )


def cotangent_type(kind: str) -> TypeError:
    return TypeError(f"gradients can be either Tensors or None, but got {kind}. Wrap an array with tapegrad.as_tensor(...).")


def cotangent_complex(index: int, got: Any, expected: Any) -> RuntimeError:
    a, b = ("complex" if d.kind == "c" else "real" for d in (got, expected))
    return RuntimeError(
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
        f"grad_output[{index}] is {a} ({got}) and output[{index}] is {b} ({expected})."
    )


def cotangent_count(got: int, expected: int) -> RuntimeError:
    return RuntimeError(f"got {expected} tensors and {got} gradients")


def unused_input(index: int) -> RuntimeError:
    return RuntimeError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True "
        "if this is the desired behavior."
    )


def input_untracked(index: int) -> RuntimeError:
    return RuntimeError(
        f"One of the differentiated Tensors does not require grad. It is input {index}: call .requires_grad_() on it "
        "before computing the output."
    )


def empty_inputs(function: str) -> RuntimeError:
    return RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")


def bad_input(function: str, kind: str) -> TypeError:
    return TypeError(f"{function}(): expected Tensors, but got {kind}.")


NOT_ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of "
    "the graph, please use torch.autograd.backward."
)


def materialize_conflict() -> ValueError:
    return ValueError(
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
    )


def anomaly_location(node: str, location: Location, code: Any) -> str:
    name = "?" if code is None else code.co_name
    return (
        f"Error detected in {node}. Traceback of forward call that caused the error:\n"
        f'  File "{location[0]}", line {location[1]}, in {name}\n    {linecache.getline(*location).strip()}'
    )


def not_deletable(name: str) -> RuntimeError:
    return RuntimeError(f"the attribute {name} of a tensor cannot be deleted")


ANOMALY_ON = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)


def anomaly(node: str, output: int, location: Location) -> RuntimeError:
    return RuntimeError(
        f"Function '{node}' returned nan values in its {output}th output. The operation was recorded at "
        f"{location[0]}:{location[1]}."
    )


# --------------------------------------------------------------------------------------------------------------- hooks


def hook_result(kind: str) -> TypeError:
    return TypeError(f"expected Variable, but hook returned '{kind}'. A hook returns a Tensor or None.")


def hook_shape(name: str, got: Sequence[int], expected: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"hook '{name}' has changed the size of value: it returned {tuple(got)} for a gradient of {tuple(expected)}."
    )


def hook_dtype(name: str, was: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"hook '{name}' has changed the type of value (was torch.{dtype_name(was)}Tensor got torch.{dtype_name(got)}Tensor)"
    )


def hook_untracked() -> RuntimeError:
    return RuntimeError("cannot register a hook on a tensor that doesn't require gradient")


def post_hook_non_leaf() -> RuntimeError:
    return RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")


def hook_tuple(kind: str) -> TypeError:
    return TypeError(f"expected tuple, but hook returned '{kind}'. A node's hook returns a tuple of gradients, or None.")


def hook_count(name: str, got: int, expected: int) -> RuntimeError:
    return RuntimeError(f"hook '{name}' has returned an incorrect number of values (got {got}, but expected {expected})")


def hook_replaces_none() -> RuntimeError:
    return RuntimeError("can't replace a None gradient with a non-None value")


def unpacked_type(kind: str) -> TypeError:
    return TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")


def unpacked_shape(got: Sequence[int], expected: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"Output of saved tensor unpack_hook has shape {tuple(got)}; the tensor that was packed has {tuple(expected)}."
    )


def packed_in_place() -> RuntimeError:
    return RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
        "modified by in-place operations as this can lead to unexpected side-effects. Change a clone() of it."
    )


def checkpoint_count(first: int, again: int) -> str:
    if again > first:
        return (
            "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
            f"pass. It saved {first} then, {again} now."
        )
    return (
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
        f"Number of tensors saved during forward: {first}\nNumber of tensors saved during recomputation: {again}."
    )


def checkpoint_changed(other: Sequence[tuple[int, tuple[Any, Any], tuple[Any, Any]]]) -> str:
    def meta(shape: Any, dtype: Any) -> str:
        return f"{{'shape': {size(shape)}, 'dtype': torch.{dtype}, 'device': device(type='cpu')}}"

    rows = [f"tensor at position {i}:\nsaved metadata: {meta(*a)}\nrecomputed metadata: {meta(*b)}" for i, a, b in other]
    return (
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        "forward pass.\n" + "\n".join(rows)
    )


def edge_untracked() -> RuntimeError:
    return RuntimeError(
        "It is not possible to get the gradient edge for a Tensor that does not require gradients. Set requires_grad=True."
    )


def edge_output(node: str, output: int) -> RuntimeError:
    return RuntimeError(f"{node} has no differentiable output {output}.")


def multi_mode(modes: tuple[str, ...], got: Any) -> ValueError:
    return ValueError(f"Expects mode to be one of {modes} but got {got}")


# ------------------------------------------------------------------------------------------------------- tensor flags


def only_float_grad() -> RuntimeError:
    return RuntimeError("Only Tensors of floating point and complex dtype can require gradients")


def only_float_grad_setter() -> RuntimeError:
    return RuntimeError("only Tensors of floating point and complex dtype can require gradients")


def non_leaf_requires_grad() -> RuntimeError:
    return RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
        "that doesn't require differentiation use var_no_grad = var.detach()."
    )


def retain_untracked() -> RuntimeError:
    return RuntimeError("can't retain_grad on Tensor that has requires_grad=False")


LOST_GRADIENT = (
    "A tensor became a number inside a function that is being differentiated: the number carries no gradient. "
    "float() is also what math.sin(t), np.float64(t) and array[i] = t call, and tensor([t, ..]) copies values. Use NumPy's "
    "or tapegrad's functions, and stack([...]) to build a tensor; t.item() says that a number is meant."
)

NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward(). If you want it, call .retain_grad() on this tensor before backward(), or read the .grad "
    "of the leaf that you meant."
)


def grad_size(got: Sequence[int], expected: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"attempting to assign a gradient of size '{list(got)}' to a tensor of size '{list(expected)}'. Please ensure that "
        "the gradient and the tensor are the same size"
    )


def grad_type(kind: str) -> TypeError:
    return TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind}")


def grad_dtype(got: str, expected: str) -> RuntimeError:
    return RuntimeError(
        f"attempting to assign a gradient with dtype '{got}' to a tensor with grad_dtype '{expected}'. Please ensure that "
        "the gradient and the tensor have the same dtype"
    )


def data_dtype() -> RuntimeError:
    return RuntimeError(
        "data set to a tensor that requires gradients must be floating point or complex dtype. Call "
        ".requires_grad_(False) first."
    )


def fill_value(rank: int) -> RuntimeError:
    return RuntimeError(
        f"fill_ only supports 0-dimension value tensor but got tensor with {rank} dimensions. Use copy_() to broadcast one."
    )


def numpy_of_tracked() -> RuntimeError:
    return RuntimeError(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead. That cuts the gradient: to "
        "differentiate, build the array with np.stack([...]), or call a NumPy function that is recorded (docs/numpy.md)."
    )


def numpy_of_bfloat16() -> TypeError:
    return TypeError("Got unsupported ScalarType BFloat16. NumPy has no such type: take .float().numpy().")


def not_scalar_item(numel: int) -> RuntimeError:
    return RuntimeError(f"a Tensor with {numel} elements cannot be converted to Scalar")


def ambiguous_bool(numel: int) -> RuntimeError:
    many = "more than one value" if numel else "no values"
    return RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")


def deepcopy_non_leaf() -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. Copy a "
        "computed tensor with .clone(), or .detach().clone() without its history."
    )


# ------------------------------------------------------------------------------------------------------------ transforms


def numbers_in(value: Any) -> int:
    """How many 0-dim tensors lists and tuples hold; 0 if they hold anything else, or value is neither."""
    if not isinstance(value, list | tuple):
        return 0
    counts = [numbers_in(v) if isinstance(v, list | tuple) else int(getattr(v, "ndim", None) == 0) for v in value]
    return sum(counts) if all(counts) else 0


def remark(error: BaseException, args: Sequence[Any]) -> str | None:
    """What code for arrays meets in a function that a transform gives tensors, for an error that came out of it."""
    if isinstance(error, RuntimeError) and str(error).startswith(("a leaf Variable", "a view of a leaf Variable")):
        return "A transform does not write into its arguments: begin with x = numpy.copy(x), or x.clone()."
    if not isinstance(error, AttributeError | TypeError | RuntimeError):
        return None
    for arg in args:
        if count := numbers_in(arg):
            kind = type(arg).__name__
            return f"An argument is a {kind}: f gets a {kind} of {count} tensors. For one array, pass numpy.array(..)."
    if isinstance(error, AttributeError) and hasattr(type(error.obj), "grad_fn") and hasattr(np.ndarray, str(error.name)):
        recorded = hasattr(np, str(error.name))
        function = f"numpy.{error.name}(x) is NumPy's" if recorded else "docs/numpy.md says what differs"
        return f"f gets a tensor, whose methods are PyTorch's: {function}."
    if isinstance(error, TypeError) and re.search(r"\bmethod\b", str(error)):
        return "f gets a tensor, whose methods are PyTorch's: x.size is one, and numpy.size(x) the number of elements."
    return None


def add_remark(error: BaseException, args: Sequence[Any] = ()) -> None:
    """Add the remark as a note, once however many transforms the error passes through."""
    text = remark(error, args)
    if text is not None and text not in getattr(error, "__notes__", ()):
        error.add_note(text)


NO_GRADIENT = (
    "It carries no gradient. float(x), x.item(), math.sin(x) and what is written into an array of NumPy are plain numbers: "
    "numpy.sin(x) is recorded, and so are writes into tapegrad.numpy.zeros(n)."
)


def no_gradient(value: Any) -> str:
    """The end of a text that says that a function returned something else than a tensor."""
    return f". {NO_GRADIENT}" if isinstance(value, np.generic | np.ndarray | int | float | complex) else ""


# -------------------------------------------------------------------------------------------------------------- in place


def inplace_leaf(op: str) -> RuntimeError:
    return RuntimeError(
        f"a leaf Variable that requires grad is being used in an in-place operation. It is {op}: do it under no_grad(), or "
        "out of place."
    )


def inplace_leaf_view(op: str) -> RuntimeError:
    return RuntimeError(
        f"a view of a leaf Variable that requires grad is being used in an in-place operation. It is {op}: do it under "
        "no_grad(), or on a clone()."
    )


def inplace_no_grad_view(op: str) -> RuntimeError:
    return RuntimeError(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Its writes could not be "
        f"recorded for its base ({op}): make the view with grad mode enabled."
    )


def inplace_expanded(op: str) -> RuntimeError:
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
        f"clone() the tensor before performing the operation. The operation is {op}."
    )


def inplace_read_only(op: str) -> RuntimeError:
    return RuntimeError(f"the tensor shares memory with a read-only NumPy array, so {op} cannot write to it: clone() it.")


def resize_count(target: Any, shape: Any) -> RuntimeError:
    wanted, held = "x".join(map(str, target)), "x".join(map(str, shape))
    return RuntimeError(
        f"requested resize to {wanted} ({math.prod(target)} elements in total), but the given tensor has a size of {held} "
        f"({math.prod(shape)} elements). autograd's resize can only change the shape of a given tensor, while preserving "
        "the number of elements. "
    )


def out_of_scope(name: str, what: str) -> NotImplementedError:
    return NotImplementedError(f"{name}: {what} are out of tapegrad's scope.")


def not_sparse(name: str) -> RuntimeError:
    layout = "sparse" if name == "values" else "sparse coordinate"
    return RuntimeError(f"{name} expected {layout} tensor layout but got Strided")


def uncoalesced(what: str) -> RuntimeError:
    return RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


def sparse_in_place() -> NotImplementedError:
    return NotImplementedError("a sparse tensor cannot be written in place here; make a new one, or use .to_dense().")


def sparse_leaf() -> NotImplementedError:
    return NotImplementedError("requires_grad of a sparse tensor: let its values require grad, gradients reach them.")


def too_many_elements(shape: Sequence[int], count: int) -> RuntimeError:
    if not count:
        return RuntimeError(f"Stride calculation overflowed with sizes={list(shape)}")
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def out_resized(shape: Sequence[int], needed: Sequence[int]) -> str:
    return (
        f"An output with one or more elements was resized since it had shape {list(shape)}, which does not match the "
        f"required output shape {list(needed)}. This behavior is deprecated: resize the tensor to zero elements first, "
        "t.resize_(0)."
    )


def numbers_resize(shape: Sequence[int], needed: int) -> str:
    return (
        f"The number of elements in the out tensor of shape {list(shape)} is {math.prod(shape)} which does not match the "
        f"computed number of elements {needed}. Note that this may occur as a result of rounding error. The out tensor will "
        f"be resized to a tensor of shape ({needed},)."
    )


def resize_tracked() -> RuntimeError:
    return RuntimeError("cannot resize variables that require grad")


def inplace_shape(op: str, shape: Sequence[int], result: Sequence[int]) -> RuntimeError:
    return RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(result)}. In {op}_().")


def inplace_dtype(op: str, result: Any, target: Any) -> RuntimeError:
    where = "With out=" if op == "out" else f"In {op}_()"
    return RuntimeError(
        f"result type {dtype_name(result)} can't be cast to the desired output type {dtype_name(target)}. {where}."
    )


def index_put_dtypes(target: Any, source: Any) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {dtype_name(target)} for the destination and "
        f"{dtype_name(source)} for the source. Convert the source with .to(dtype)."
    )


def no_device(kind: str) -> RuntimeError:
    return RuntimeError(
        f"no {kind} device is available: tapegrad runs on 'cpu' (NumPy) and on what JAX finds."
        + {
            "cuda": " Torch not compiled with CUDA enabled",
            "meta": " Every tensor has values here: leave the device out.",
        }.get(kind, "")
    )


def no_such_device(kind: str, index: Any, count: int) -> RuntimeError:
    return RuntimeError(f"invalid device ordinal: there is no {kind}:{index}, JAX finds {count} of them here")


def two_devices(one: object, other: object) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}! "
        "Move one with .to()"
    )


def numpy_of_device(device: object) -> TypeError:
    return TypeError(
        f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )


def missing_extra(function: str, package: str, extra: str) -> ImportError:
    return ImportError(f"{function} needs {package}: pip install 'tapegrad[{extra}]'")


# --------------------------------------------------------------------------------------------------------- linear algebra


class LinAlgError(RuntimeError):
    """A matrix has no such factorisation, inverse or solution.

    Example:
        >>> try:
        ...     x = tg.linalg.solve(tg.zeros(2, 2), tg.ones(2))
        ... except tg.linalg.LinAlgError as e:
        ...     print(e)
        torch.linalg.solve: The solver failed because the input matrix is singular.
    """


def element(name: str, batch: int | None) -> str:
    return f"{name}: " if batch is None else f"{name}: (Batch element {batch}): "


def not_matrices(name: str, argument: str) -> RuntimeError:
    return RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def not_matrices_of_size(name: str, shape: Sequence[int]) -> RuntimeError:
    return RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(shape)} instead")


def not_square(name: str, argument: str, m: int, n: int) -> RuntimeError:
    return RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {m} by {n} matrices")


def not_inexact(name: str, dtype: Any) -> RuntimeError:
    return RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {dtype_name(dtype)}")


def low_precision(name: str, dtype: Any) -> RuntimeError:
    return RuntimeError(f"{name}: Low precision dtypes not supported. Got {dtype_name(dtype)}")


def different_dtypes(name: str, a: Any, b: Any) -> RuntimeError:
    return RuntimeError(
        f"{name}: Expected A and B to have the same dtype, but found A of type {dtype_name(a)} and B of type "
        f"{dtype_name(b)} instead"
    )


def incompatible_equation(name: str, equation: str, a: Sequence[int], b: Sequence[int]) -> RuntimeError:
    sizes = " and ".join("x".join(str(n) for n in s[-2:]) for s in (a, b))
    return RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {equation} ({sizes})")


def not_positive_definite(name: str, batch: int | None, order: int) -> LinAlgError:
    return LinAlgError(
        f"{element(name, batch)}The factorization could not be completed because the input is not positive-definite (the "
        f"leading minor of order {order} is not positive-definite)."
    )


def singular_inverse(name: str, batch: int | None, position: int) -> LinAlgError:
    return LinAlgError(
        f"{element(name, batch)}The diagonal element {position} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )


def singular_solve(name: str, batch: int | None) -> LinAlgError:
    return LinAlgError(f"{element(name, batch)}The solver failed because the input matrix is singular.")


def zero_pivot(name: str, batch: int | None, pivot: int) -> RuntimeError:
    return RuntimeError(
        f"{element(name, batch)}U[{pivot},{pivot}] is zero and using it on lu_solve would result in a division by zero. If "
        "you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


def svd_failed(batch: int | None) -> LinAlgError:
    return LinAlgError(
        f"{element('linalg.svd', batch)}The algorithm failed to converge because the input matrix contained non-finite "
        "values."
    )


def reverse_while() -> RuntimeError:
    return RuntimeError(
        "tg.while_loop in a traced program has no reverse-mode derivative, since the number of its steps is not known: give "
        "it max_steps=..., or use tg.scan; forward mode (tg.func.jvp) needs neither"
    )


def carry_changed(function: str, what: str, path: str, before: object, after: object) -> ValueError:
    return ValueError(
        f"tg.{function}: {what} must stay the same from step to step, but of the carried value{path} it was {before} and "
        f"became {after}"
    )


def branches_differ(what: str, path: str, true: object, false: object) -> ValueError:
    return ValueError(
        f"tg.cond: both branches must return the same {what}, but the result{path} of true_fn has {true} and that of "
        f"false_fn {false}"
    )


def body_writes() -> RuntimeError:
    return RuntimeError(
        "the body of a control-flow function writes into a tensor from outside, which it cannot do here: carry it along"
    )


def underivable_body(what: str, file: str, line: int) -> RuntimeError:
    return RuntimeError(
        f"the derivative, or the batched form, of the body of a control-flow function depends on {what} ({file}:{line})"
    )


def negative_size(shape: Sequence[int]) -> RuntimeError:
    return RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")


def batch2_sizes(wanted: Sequence[int], found: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"Expected size for first two dimensions of batch2 tensor to be: {list(wanted)} but got: {list(found)}."
    )


def norm_of_nothing(order: str) -> RuntimeError:
    return RuntimeError(
        f"linalg.vector_norm cannot compute the {order} norm on an empty tensor because the operation does not have an "
        "identity"
    )


def matrix_norm_order(order: Any) -> RuntimeError:
    return RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")


def offsets_rank(rank: int) -> RuntimeError:
    return RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {rank}")


def embedding_rank(rank: int) -> str:
    return f"weight has to be a 2D Tensor, but got Tensor of dimension {rank}"


def matrix_norm_dims(dims: Sequence[int]) -> RuntimeError:
    return RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")


def circular_padding() -> RuntimeError:
    return RuntimeError("Padding value causes wrapping around more than once.")
