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
    "fx": "tapegrad has no graphs of programs",
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
    "quasirandom": "tapegrad has no Sobol sequences; scipy.stats.qmc has",
    "signal.windows": "tapegrad's windows are hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window",
    "sparse.semi_structured": SEMI_STRUCTURED,
    "utils.bundled_inputs": "tapegrad has no compiled modules",
    "utils.cpp_extension": "tapegrad is Python on NumPy: it loads no C++ or CUDA extensions",
    "utils.flop_counter": "tapegrad does not count operations",
    "utils.mobile_optimizer": "tapegrad has no compiled modules",
}
PRIVATE = {  # modules that programs import all the same
    "distributed._tensor", "distributed._tensor.device_mesh", "distributed.algorithms._checkpoint",
    "distributed.algorithms._checkpoint.checkpoint_wrapper",
}  # fmt: skip
SINGLE = {  # single names of modules that tapegrad has
    ".": {CUDA: "Event Stream", "tapegrad has no operators in C++": "ops classes load_library"},
    "jit": {"nothing is compiled here; torch.save the module or its state_dict()": "save load CompilationUnit"},
    "sparse": {SEMI_STRUCTURED: "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT "
                                "SparseSemiStructuredTensorCUTLASS as_sparse_gradcheck to_sparse_semi_structured"},
    "nn.parallel": {PROCESSES: "DistributedDataParallel DistributedDataParallelCPU"},
}  # fmt: skip


def modules(package: str) -> list[str]:
    """A package's modules, by their names within torch."""
    top = importlib.import_module(f"torch.{package}")
    found = pkgutil.walk_packages(getattr(top, "__path__", ()), f"torch.{package}.", onerror=lambda name: None)
    names = [package, *(m.name.removeprefix("torch.") for m in found)]
    public = [n for n in names if not any(part.startswith("_") for part in n.split("."))]
    return public + sorted(n for n in PRIVATE if n.startswith(package + "."))


def names(module: str) -> list[str]:
    """The classes and functions that a module of PyTorch shows as its own."""
    try:
        shown = importlib.import_module(f"torch.{module}")
    except Exception:  # it needs a package that is not there
        return []
    public = getattr(shown, "__all__", None) or [n for n in vars(shown) if not n.startswith("_")]
    values = {n: getattr(shown, n, None) for n in public}
    root = "torch." + module.split(".")[0]
    return sorted(
        n for n, v in values.items()
        if not isinstance(v, types.ModuleType) and callable(v) and (getattr(v, "__module__", "") or "").startswith(root)
    )  # fmt: skip


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
