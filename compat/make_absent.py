"""Writes the drop-in's list of what tapegrad has not, by PyTorch's own modules: `python compat/make_absent.py`.

A name of dropins/torch/absent.tsv can be imported and asked about; a call gives the reason.
"""

import importlib
import pathlib
import pkgutil
import types
import warnings

TABLE = pathlib.Path(__file__).parent / "dropins" / "torch" / "absent.tsv"
QUANTISED = "quantised tensors are out of tapegrad's scope"
PROCESSES = "tapegrad has no distributed processes"
SEMI_STRUCTURED = "tapegrad has sparse tensors in coordinate form only"
VALUES = "tapegrad's tensors have values"
CUDA = "Torch not compiled with CUDA enabled"
REASONS = {  # a package: it and all its modules
    "ao": QUANTISED,
    "cuda.comm": CUDA,
    "cuda.gds": CUDA,
    "cuda.graphs": CUDA,
    "cuda.green_contexts": CUDA,
    "cuda.jiterator": CUDA,
    "cuda.tunable": CUDA,
    "distributed": PROCESSES,
    "export": "tapegrad exports no programs",
    "futures": "tapegrad runs nothing in the background",
    "fx": "torch.fx has here what makes, runs and transforms graphs; not this",
    "library": "tapegrad has no dispatcher to register operators with; its own are made by tapegrad.custom",
    "nested": "nested tensors are out of tapegrad's scope",
    "nn.attention.bias": "tapegrad's attention takes masks as tensors",
    "nn.attention.flex_attention": "tapegrad compiles no attention from a score function",
    "nn.attention.varlen": "tapegrad's attention takes tensors that are padded",
    "nn.intrinsic": QUANTISED,
    "nn.parallel.distributed": PROCESSES,
    "nn.qat": QUANTISED,
    "nn.quantizable": QUANTISED,
    "nn.quantized": QUANTISED,
    "onnx": "tapegrad has no ONNX exporter",
    "package": "tapegrad writes no torch packages",
    "quantization": QUANTISED,
    "signal": "tapegrad's windows are hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window",
    "sparse.semi_structured": SEMI_STRUCTURED,
    "utils.bundled_inputs": "tapegrad has no compiled modules",
    "utils.cpp_extension": "tapegrad is Python on NumPy: it loads no C++ or CUDA extensions",
    "utils.flop_counter": "tapegrad does not count operations",
    "utils.mobile_optimizer": "tapegrad has no compiled modules",
}
PRIVATE = (  # modules that programs import all the same
    "distributed._tensor", "distributed._tensor.device_mesh", "distributed.algorithms._checkpoint",
    "distributed.algorithms._checkpoint.checkpoint_wrapper", "distributed._composable", "distributed._composable.fsdp",
    "distributed._tensor.experimental",
)  # fmt: skip
SINGLE = {  # single names of modules that tapegrad has
    ".": {CUDA: "Event Stream", "tapegrad has no operators in C++": "classes load_library",
          "tapegrad's floats have 16 bits or more": "float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu "
                                                    "float4_e2m1fn_x2",
          "tapegrad traces no sizes: they are Python's numbers": "SymInt SymFloat SymBool",
          "tapegrad runs nothing in the background": "Future",
          "tapegrad reads and writes checkpoints in Python, by load and save": "PyTorchFileReader PyTorchFileWriter"},
    "jit": {"nothing is compiled here; torch.save the module or its state_dict()": "save load CompilationUnit"},
    "sparse": {SEMI_STRUCTURED: "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT "
                                "SparseSemiStructuredTensorCUTLASS as_sparse_gradcheck to_sparse_semi_structured"},
    "autograd.profiler": {
        "torch.profiler gives averages by operation: tapegrad.profile has rows by line, too": "FunctionEvent"
    },
    "nn.parallel": {PROCESSES: "DistributedDataParallel DistributedDataParallelCPU"},
    "utils.data": {
        "tapegrad has no data pipes: write a Dataset": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe "
        "argument_validation functional_datapipe guaranteed_datapipes_determinism non_deterministic runtime_validation "
        "runtime_validation_disabled"
    },
    "_ops": {"tapegrad has no operators in C++": "HigherOrderOperator OpOverload OpOverloadPacket"},
    "_subclasses": {VALUES: "FakeTensorMode"},
    "_subclasses.fake_tensor": {VALUES: "FakeTensorMode"},
    "utils._python_dispatch": {"tapegrad has no dispatcher: write a torch.overrides.TorchFunctionMode": "TorchDispatchMode"},
}  # fmt: skip


def imported(module: str) -> types.ModuleType | None:
    """A module of torch, by its name there; None if it needs a package that is not there."""
    try:
        return importlib.import_module(f"torch.{module}")
    except Exception:
        return None


def modules(package: str) -> list[str]:
    """A package's modules that are not private, by their names within torch."""
    found = pkgutil.iter_modules(getattr(imported(package), "__path__", ()))
    below = [module for m in found if not m.name.startswith("_") for module in modules(f"{package}.{m.name}")]
    return [package, *below, *sorted(n for n in PRIVATE if n.rpartition("._")[0] == package)]


def names(module: str) -> list[str]:
    """The classes and functions that a module of PyTorch shows as its own."""
    shown = imported(module)
    if shown is None:
        return []
    listed = set(getattr(shown, "__all__", ()))
    homes = ("torch." + module.split(".")[0], "torch._C")

    def own(name: str, value: object) -> bool:
        return name in listed or (getattr(value, "__module__", None) or "").startswith(homes)

    values = {n: getattr(shown, n, None) for n in {*listed, *vars(shown)} if not n.startswith("_")}
    return sorted(n for n, v in values.items() if callable(v) and own(n, v))


def table() -> str:
    """The text of the file."""
    rows = [(module, reason, names) for module, by in SINGLE.items() for reason, names in by.items()]
    for package, reason in REASONS.items():
        rows += [(module, reason, " ".join(names(module))) for module in modules(package)]
    return "".join("\t".join(row) + "\n" for row in rows)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TABLE.write_text(table())
