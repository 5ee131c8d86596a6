"""Runs tests of PyTorch on the drop-in and on PyTorch itself, with the same stand-in for their private helpers.

    python compat/upstream.py CHECKOUT/test/test_indexing.py CHECKOUT/test/nn [-k PATTERN] [--failures]
    python compat/upstream.py --oneflow CHECKOUT/python/oneflow/test/modules [-k PATTERN] [--failures]

prints, for each file: tests that pass on PyTorch and are in scope, those of them that pass on the drop-in, and what is
out of scope, by reason. With --failures also the name of each test that fails, with its error's last line. Nothing of the
checkout is kept here; `standins/helpers` has what test files import from PyTorch's private modules of helpers.
"""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60  # for one test
OUT_OF_SCOPE = {
    "another device": r"\bcuda\b|\.cuda\(|'xla'|\"xla\"|\bmps\b|privateuse|pin_memory|\bnpu\b",
    "meta and fake tensors": r"\"meta\"|'meta'|FakeTensor|fake_mode|is_meta",
    "sparse or nested": r"sparse|nested|to_dense|jagged|csr|mkldnn",
    "quantised": r"quantiz|qint|fake_quant",
    "named tensors": r"names=|refine_names|\brename\(|align_to",
    "C++ internals": r"torch\._C\b|_C\._|cpp_extension|load_inline|DelayedError|Dispatch|_dispatch_|torch\.ops\.|torch\._ops"
    r"|HigherOrderOperator|torch\.library|_ExcludeDispatch",
    "jit, compile, fx": r"torch\.jit|ScriptModule|torch\.compile|_dynamo|make_fx|fx\b|checkScript|aot_|inductor"
    r"|torch\.export",
    "private functions": r"_slice_argnums|functional_init|_preallocate_and_copy|fwd_grad_enabled|pyop|functionalize"
    r"|_from_public_api|CtxWithSavedTensors|reductify",
    "profiler": r"profil|kineto|record_function|emit_nvtx|flop_counter|FlopCounter",
    "a process of its own": r"subprocess|multiprocessing|\bmp\.|os\.fork|DataParallel|distributed",
}
CHOSEN = {name: re.compile(pattern) for name, pattern in OUT_OF_SCOPE.items()}
# Of OneFlow's tests: by the text of a test and its decorators, and by the name and text of its whole file.
ONEFLOW_TEST = {
    "global tensors": r"globaltest|placement|sbp|to_global|cpu_broadcast",
    "another device": r"\.to\(\"cuda\"\)|gpu_device\(|stream",
    "a process of its own": r"subprocess|multiprocessing|fork",
}
ONEFLOW_FILE = {
    "global tensors": r"\Atest_global_|sbp\.split|flow\.boxing|_test_\w+\(test_case, placement, sbp",
    "data sets": r"image_test_util|dataset_dir|[Oo]frecord|OFRecord|CoinFlip",
    "quantised": r"MinMaxObserver|FakeQuantization|Qat\w+\d",
    "tensor buffers": r"tensor_to_tensor_buffer",
}


# ------------------------------------------------------------------------------------------------------------- one library


class Imports(ast.NodeTransformer):
    """`from m import a` as `a = imported("m", "a")`: what a library lacks fails in the tests that use it alone."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if node.level or node.module == "__future__" or any(a.name == "*" for a in node.names):
            return node
        return [self.taken(a.asname or a.name, node.module, a.name, node) for a in node.names]

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.AST]:
        made: list[ast.AST] = []
        for a in node.names:
            name = a.asname or a.name.partition(".")[0]
            made.append(self.taken(name, a.name if a.asname else name, None, node))
            if "." in a.name and not a.asname:
                made.append(ast.copy_location(ast.Expr(self.call(a.name, None)), node))
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # an import inside a test fails in that test

    def call(self, module: str, name: str | None) -> ast.Call:
        return ast.Call(ast.Name("__imported__", ast.Load()), [ast.Constant(module), ast.Constant(name)], [])

    def taken(self, target: str, module: str, name: str | None, node: ast.stmt) -> ast.AST:
        return ast.copy_location(ast.Assign([ast.Name(target, ast.Store())], self.call(module, name)), node)


def imported(module: str, name: str | None) -> object:
    from helpers import Missing  # type: ignore[import-not-found]

    try:
        found = importlib.import_module(module)
        if name is None:
            return found
        return getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")
    except Exception:  # whatever an optional module raises
        return Missing(f"{module}.{name}" if name else module)


def load(file: pathlib.Path) -> types.ModuleType:
    """A test file as a module."""
    sys.path.insert(0, str(file.parent))
    source = file.read_text()
    tree = ast.fix_missing_locations(Imports().visit(ast.parse(source, str(file))))
    module = types.ModuleType(f"upstream_{file.stem}")
    module.__file__ = str(file)
    module.__dict__["__imported__"] = imported
    sys.modules[module.__name__] = module
    for statement in tree.body:
        try:
            exec(compile(ast.Module([statement], []), str(file), "exec"), module.__dict__)
        except Exception as e:
            print(f"line {statement.lineno}: {type(e).__name__}: {str(e)[:200]}")  # what it defines is missing
    return module


def tests_of(module: types.ModuleType, pattern: str) -> list[unittest.TestCase]:
    found = []
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == module.__name__:
            names = [n for n in dir(value) if n.startswith("test") and callable(getattr(value, n))]
            found += [value(n) for n in names if re.search(pattern, f"{value.__name__}.{n}")]
    return found


def stop(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def outcome(test: unittest.TestCase) -> str:
    """ "passed", "skipped: why" or the last line of the error."""
    result = unittest.TestResult()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test.run(result)
    except TimeoutError as e:
        return str(e)
    finally:
        signal.alarm(0)
    if result.skipped:
        return f"skipped: {result.skipped[0][1]}"
    bad = [*result.errors, *result.failures]
    if bad:
        lines = [line for line in bad[0][1].strip().splitlines() if line and not line.startswith(" ")]
        error = next(
            (line for line in lines if re.match(r"[\w.]+(Error|Exception|Warning|Exit|Interrupt|Test)\b", line)), lines[-1]
        )
        return f"failed: {error[:300]}"
    return "unexpected success" if result.unexpectedSuccesses else "passed"


def scope_of(test: unittest.TestCase) -> str:
    """Why a test is out of scope, by the words of its own text; or nothing."""
    method = inspect.unwrap(getattr(type(test), test._testMethodName))
    try:
        text = textwrap.dedent(inspect.getsource(method))
    except (OSError, TypeError):
        text = ""
    text = re.sub(r"^\s*@.*$", "", text, flags=re.MULTILINE)  # decorators name devices that a test is not for
    return next((name for name, pattern in CHOSEN.items() if pattern.search(text)), "")


def scope_in_oneflow(test: unittest.TestCase, file: pathlib.Path) -> str:
    """Why a test of OneFlow's is out of scope; or nothing."""
    try:
        text = inspect.getsource(inspect.unwrap(getattr(type(test), test._testMethodName)))
    except (OSError, TypeError):
        text = ""
    found = [(ONEFLOW_TEST, text), (ONEFLOW_FILE, f"{file.name}\n{file.read_text()}")]
    return next((name for table, words in found for name, pattern in table.items() if re.search(pattern, words)), "")


def run_file(library: str, file: pathlib.Path, pattern: str, out: pathlib.Path) -> None:
    sys.path.insert(0, str(HERE / "standins"))
    if library == "drop-in":
        from tapegrad import compat

        compat.install("torch", replace=True)
    if library == "oneflow":
        from tapegrad import compat

        compat.install("oneflow", replace=True)
        importlib.import_module("helpers.oneflow_tests").install(file)
    else:
        importlib.import_module("helpers").install()
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(file)
    for test in tests_of(module, pattern):
        key = f"{type(test).__name__}.{test._testMethodName}"
        out.with_suffix(".now").write_text(key)
        rows[key] = [outcome(test), scope_in_oneflow(test, file) if library == "oneflow" else scope_of(test)]
        out.write_text(json.dumps(rows))


# --------------------------------------------------------------------------------------------------------------- comparison


def measured(library: str, file: pathlib.Path, pattern: str) -> tuple[dict[str, list[str]], list[str]]:
    """What each test of a file did in a process of its own, and which statements of the file failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.json")
        command = [sys.executable, __file__, "--child", library, "-k", pattern, "--out", str(out), str(file)]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        rows = json.loads(out.read_text()) if out.exists() else {}
        said = [line for line in done.stdout.splitlines() if line.startswith("line ")]
        if done.returncode:
            said.append(done.stderr.strip().splitlines()[-1][:300] if done.stderr else "killed")
        return rows, said


def compare(file: pathlib.Path, pattern: str, failures: bool) -> None:
    theirs, said = measured("PyTorch", file, pattern)
    ours, ours_said = measured("drop-in", file, pattern)
    good = [key for key, (state, _) in theirs.items() if state == "passed"]
    outside = collections.Counter(theirs[key][1] for key in good if theirs[key][1])
    inside = [key for key in good if not theirs[key][1]]
    passed = [key for key in inside if ours.get(key, ["not run"])[0] == "passed"]
    share = f"{100 * len(passed) / len(inside):.1f} %" if inside else "-"
    reasons = ", ".join(f"{n} {why}" for why, n in outside.most_common()) or "none"
    print(f"{file.name}: {len(passed)} of {len(inside)} ({share}); of {len(theirs)} tests {len(good)} pass on PyTorch")
    print(f"  out of scope: {reasons}", flush=True)
    for library, texts in (("PyTorch", said), ("the drop-in", ours_said)):
        for text in texts:
            print(f"  failed on {library} while the file was read: {text}")
    if failures:
        for key in inside:
            state = ours.get(key, ["not run"])[0]
            if state not in ("passed", "not run"):
                print(f"  {key}: {state}")


def check_oneflow(file: pathlib.Path, pattern: str, failures: bool) -> None:
    """OneFlow's tests on its drop-in alone, for want of OneFlow: they compare with PyTorch or NumPy themselves."""
    rows, said = measured("oneflow", file, pattern)
    run = {key: row for key, row in rows.items() if not row[0].startswith("skipped")}
    outside = collections.Counter(why for _, why in run.values() if why)
    passed = sum(state == "passed" for state, why in run.values() if not why)
    reasons = "".join(f", {n} {why}" for why, n in outside.most_common())
    print(f"{file.name}: {passed} of {len(run) - outside.total()}; {len(rows) - len(run)} skipped{reasons}", flush=True)
    for text in said:
        print(f"  failed while the file was read: {text}")
    for key, (state, why) in run.items() if failures else ():
        if state != "passed" and not why:
            print(f"  {key}: {state}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--oneflow", action="store_true", help="the tests are OneFlow's")
    parser.add_argument("-k", dest="pattern", default="", help="a regular expression that Class.test must match")
    parser.add_argument("--failures", action="store_true", help="name the tests that fail")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_file(options.child, options.paths[0], options.pattern, options.out)
        return
    for path in options.paths:
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path.resolve()]:
            (check_oneflow if options.oneflow else compare)(file, options.pattern, options.failures)


if __name__ == "__main__":
    main()
