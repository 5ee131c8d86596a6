"""Mutation testing: which wrong rules would the tests let pass?

    python -m tests.mutants [--per-area 60] [--seed 1] [--only AREA ...] [--again] [--all] [FILE ...]

Draws changes of one expression each from every area below, and runs each against the tests that reach it. All of them are
compiled in at once, behind a switch, `(changed if mutant_(n) else written)`, and a child process is forked for each, so that
neither imports nor collection repeat. First every test file runs with all switches off, which tells what each test reaches
and how long it takes. Records go to build/mutants, one JSON line each; a later run goes on where they end. `--again` runs
what survived once more, `--all` has pytest collect with that option. Needs JAX and a system with `fork`.
"""

import argparse
import ast
import builtins
import collections
import copy
import gc
import hashlib
import importlib.machinery
import json
import os
import random
import resource
import select
import signal
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "build" / "mutants"
AREAS = {
    "elementwise rules": "table/elementwise table/special table/activation table/complex_and_bits table/define table/curve",
    "reduction and index rules": "table/reduce table/sort table/lookup table/index table/embed table/scatter table/shape",
    "matrix rules": "table/matrix table/linalg table/decompose table/spectrum table/fft table/signal",
    "layer rules": "table/conv table/pool table/resample table/recurrent table/attention table/loss table/sampling "
    "table/residuals table/control",
    "batch rules": "table/batching levels/vmap levels/batched_gradient levels/level",
    "forward and Taylor rules": "levels/forward levels/taylor levels/laplacian levels/links levels/diff_inputs levels/undo "
    "levels/draws",
    "replay": "core/reverse core/plain_pass core/plain_vjp core/vjp core/general_gradient core/gradient core/sweep "
    "core/reach core/leaves core/plain_record core/plain_commit core/record",
    "alias and in-place": "core/alias core/inplace functions/inplace tensor/memory tensor/storage functions/shared_views",
    "optimisers": "optim/adam optim/adaptive optim/sgd optim/lbfgs optim/matrix optim/arithmetic optim/buckets "
    "optim/functional optim/lr_scheduler optim/swa_utils",
    "norms": "table/normalize functions/normalize functions/linalg kernels/normalize",
    "guards of compile": "jit/guards jit/keys jit/verify jit/writes",
}
WITHOUT = (
    "architecture docs dropin_fx dropin_names dropin_programs dropins gallery page_links printing process gpu "
    "compile_scripts reference summary threads tutorials types viz files files_of_0_1_0 data leaving"
)
"""Test files that concern none of the areas, or run in processes of their own."""
LIMIT = 60.0
"""Seconds after which a test hangs."""
BUDGET = 90.0
"""Seconds of processor time that the tests of one mutant take without it."""


# ------------------------------------------------------------------------------------------------------------ changes

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPPOSITE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
ORDERED = (ast.Sub, ast.Div, ast.MatMult, ast.Pow, ast.FloorDiv, ast.Mod)
SPREADING = {
    "spread", "sum", "mean", "expand", "sum_to", "reduce_to", "unbroadcast", "broadcast_to", "sum_to_size", "reshape",
    "squeeze", "unsqueeze", "like",
}  # fmt: skip
AXES = {"mT", "T", "movedim", "moveaxis", "swapaxes", "transpose", "permute", "flip"}
SILENT = (ast.Raise, ast.JoinedStr, ast.Assert, ast.pattern)
"""Texts of errors, which are no part of a rule, and what is no expression."""
SETTINGS = {"dim", "dims", "index", "axis", "n", "shape", "keepdim", "xp", "params", "sizes"}


def changed(node, **fields):
    """A copy of a node with other fields."""
    new = copy.deepcopy(node)
    for field, value in fields.items():
        setattr(new, field, value)
    return new


def called(node):
    """The name of the function that a call is of."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_operand(node):
    """Whether an argument may be an array: two such are swapped, others would only raise."""
    return not isinstance(node, ast.Constant | ast.Tuple | ast.Lambda) and getattr(node, "id", "") not in SETTINGS


def is_zero(node):
    return isinstance(node, ast.Constant) and node.value == 0


def variants(node):
    """Pairs (kind, another expression) for one expression."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) in OPPOSITE and not isinstance(left, ast.Constant | ast.JoinedStr):
                kind = "sign" if isinstance(op, ast.Add | ast.Sub) else "operator"
                yield kind, changed(node, op=OPPOSITE[type(op)]())
            if isinstance(op, ast.Add | ast.Sub | ast.Mult):
                yield "dropped term", left
                yield "dropped term", right
            if isinstance(op, ORDERED):
                yield "swapped operands", changed(node, left=right, right=left)
            if isinstance(op, ast.Mult | ast.Div) and not is_zero(right):
                yield "sign", ast.UnaryOp(ast.USub(), copy.deepcopy(node))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(n))):
            yield "axis", ast.Constant(n - 1 if n > 1 else 0)
            yield "off by one", ast.UnaryOp(ast.USub(), ast.Constant(n + 1))
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            yield ("sign" if isinstance(node.op, ast.USub) else "condition"), operand
        case ast.Compare(ops=[op], left=left, comparators=[right]) if type(op) in COMPARISONS:
            yield "comparison", changed(node, ops=[COMPARISONS[type(op)]()])
            if isinstance(op, ast.Lt | ast.Gt | ast.LtE | ast.GtE):
                yield "comparison", changed(node, left=right, comparators=[left])
        case ast.BoolOp(op=op, values=values):
            yield "and/or", changed(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            yield "dropped term", changed(node, values=values[:-1]) if len(values) > 2 else values[0]
            yield "dropped term", changed(node, values=values[1:]) if len(values) > 2 else values[1]
        case ast.IfExp(body=body, orelse=orelse):
            yield "condition", changed(node, body=orelse, orelse=body)
        case ast.Constant(value=bool(b)):
            yield "constant", ast.Constant(not b)
        case ast.Constant(value=int(n)):
            yield "off by one", ast.Constant(n + 1)
            if n:  # of one, number -1 is number 0
                yield "off by one", ast.Constant(n - 1)
        case ast.Constant(value=float(x)):
            yield "constant", ast.Constant(x + 1.0)
        case ast.Attribute(value=value, attr="mT" | "T"):
            yield "axis", value
        case ast.Call(args=args) if args and not any(isinstance(a, ast.Starred) for a in args):
            name = called(node)
            of_xp = isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Constant)
            first = args[0]
            if "conj" in name:
                yield "missing conjugate", args[-1]
            elif name.lstrip("_") in SPREADING:
                yield "broadcast sum", first
            elif name.lstrip("_") in AXES:
                yield "axis", first
            if of_xp and len(args) > 1 and all(map(is_operand, args[-2:])) and ast.dump(args[-1]) != ast.dump(args[-2]):
                yield "swapped operands", changed(node, args=[*args[:-2], args[-1], args[-2]])


class Instrument(ast.NodeTransformer):
    """Walks over the expressions inside functions; `choose(node, kind, new)` gives a mutant's number or None."""

    def __init__(self, choose):
        self.choose, self.depth = choose, 0

    def function(self, node):
        """Only bodies: what a module computes as it is imported is past when a switch is turned."""
        self.depth += 1
        node.body = self.visit(node.body) if isinstance(node, ast.Lambda) else [self.visit(s) for s in node.body]
        self.depth -= 1
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def visit_keyword(self, node):
        return node if node.arg == "strict" else self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def generic_visit(self, node):
        if isinstance(node, SILENT) or (isinstance(node, ast.Call) and called(node) in ("cast", "warn", "getattr")):
            return node
        if not (self.depth and isinstance(node, ast.expr)) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return super().generic_visit(node)
        numbers = [(self.choose(node, kind, new), new) for kind, new in variants(node)]
        new = super().generic_visit(node)
        for number, other in numbers:
            if number is not None:
                switch = ast.Call(ast.Name("mutant_", ast.Load()), [ast.Constant(number)], [])
                new = ast.IfExp(switch, copy.deepcopy(other), new)
        return ast.fix_missing_locations(ast.copy_location(new, node))


def key_of(path, node, kind, new):
    """What a mutant is known by: its place, its kind and some digits of its text."""
    digits = hashlib.sha1(text_of(new).encode()).hexdigest()[:6]
    return f"{path.relative_to(ROOT)}:{node.lineno}:{node.col_offset}:{kind}:{digits}"


def text_of(node):
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))


def candidates(path):
    """Every change of a file, as rows by key."""
    found = {}

    def note(node, kind, new):
        key = key_of(path, node, kind, new)
        found[key] = {"key": key, "kind": kind, "from": text_of(node), "to": text_of(new)}

    Instrument(note).visit(ast.parse(path.read_text()))
    return found


def drawn(per_area, seed):
    """The mutants: so many of each area, at most one a line; rare kinds are drawn more often than their number says."""
    rows = {}
    for area, files in AREAS.items():
        every = {}
        for file in files.split():
            every |= candidates(ROOT / "tapegrad" / f"{file}.py")
        by_kind = collections.defaultdict(list)
        for key in sorted(every):
            by_kind[every[key]["kind"]].append(key)
        random_ = random.Random(f"{seed} {area}")
        for keys in by_kind.values():
            random_.shuffle(keys)
        weights = {kind: len(keys) ** 0.5 for kind, keys in by_kind.items()}
        chosen, lines = [], set()
        while len(chosen) < per_area and any(by_kind.values()):
            kinds = [k for k in by_kind if by_kind[k]]
            key = by_kind[random_.choices(kinds, [weights[k] for k in kinds])[0]].pop()
            line = key.rsplit(":", 3)[0]
            if line not in lines:
                lines.add(line)
                chosen.append(key)
        rows |= {key: every[key] | {"area": area} for key in chosen}
    return rows


# ------------------------------------------------------------------------------------------------------------ switches

SEEN: set[int] = set()
ACTIVE = -1


def mutant_(number):
    """Whether a mutant is switched on; notes that its place was reached."""
    SEEN.add(number)
    return number == ACTIVE


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles a file with its mutants."""

    def __init__(self, name, path, numbers):
        super().__init__(name, path)
        self.numbers = numbers

    def get_code(self, fullname):
        path = Path(self.path)
        tree = Instrument(lambda *change: self.numbers.get(key_of(path, *change))).visit(ast.parse(path.read_text()))
        return compile(tree, str(path), "exec", dont_inherit=True)


class Finder:
    """Finds the modules that have mutants."""

    def __init__(self, rows):
        self.numbers = {key: n for n, key in enumerate(rows)}
        self.files = {str(ROOT / key.partition(":")[0]) for key in rows}

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("tapegrad."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin in self.files:
            spec.loader = Loader(name, spec.origin, self.numbers)
        return spec


# ------------------------------------------------------------------------------------------------------------ runs


def forked(work, limit):
    """What `work(send)` sends from a child process, as a list of JSON values, and how it ended: done, died or hung."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        code = 1
        try:
            with os.fdopen(write, "w") as out:
                work(lambda value: print(json.dumps(value), file=out, flush=True))
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    text, last = b"", time.monotonic()
    while True:
        ready = select.select([read], [], [], max(0.0, last + limit - time.monotonic()))[0]
        if not ready:
            os.kill(pid, signal.SIGKILL)
            break
        part = os.read(read, 65536)
        if not part:
            break
        text, last = text + part, time.monotonic()
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    lines = [json.loads(line) for line in text.decode().splitlines() if line.endswith(("]", '"', "}"))]
    return lines, "hung" if not ready else "done" if status == 0 else "died"


class Run:
    """The plugin whose test loop does the work, on items that pytest has collected."""

    def __init__(self, rows, options):
        self.rows, self.options, self.failed = rows, options, False
        self.keys = list(rows)

    def pytest_runtest_logreport(self, report):
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session):
        """Import what asks JAX for its backend without one: a child would lack the backend's threads."""
        import jax.numpy
        from jax._src.array import ArrayImpl

        with (
            mock.patch.object(jax, "default_backend", lambda: "cpu"),
            mock.patch.object(jax.numpy, "zeros", lambda shape: ArrayImpl.__new__(ArrayImpl)),
        ):
            import tapegrad.jit.lower
        tapegrad.core.op.TABLE.all()

    def pytest_runtestloop(self, session):
        if session.testsfailed:
            raise session.Failed(f"{session.testsfailed} errors during collection")
        from jax._src import xla_bridge

        assert not xla_bridge._backends
        session.config.pluginmanager.unregister(name="terminalreporter")
        gc.collect()
        gc.freeze()
        self.imported = set(SEEN)
        self.written = written(session.items)
        self.measure(session.items)
        self.judge(session.items)
        return True

    def execute(self, item, following):
        """Whether an item passes."""
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return not self.failed

    def measure(self, items):
        """What each test reaches and takes, for files that have changed since."""
        by_file = collections.defaultdict(list)
        for item in items:
            by_file[item.path].append(item)
        self.reach, self.cost = collections.defaultdict(set), {}
        drawing = hashlib.sha1(" ".join(self.keys).encode()).hexdigest()
        for path, own in by_file.items():
            digest = hashlib.sha1(path.read_bytes() + drawing.encode()).hexdigest()[:12]
            record = RECORDS / f"reach-{path.stem}{'-all' * self.options.all}-{digest}.jsonl"
            if not record.exists():

                def work(send, own=own):
                    for item, following in zip(own, [*own[1:], None], strict=True):
                        SEEN.clear()
                        start = time.process_time()
                        passed = self.execute(item, following)
                        send([item.nodeid, time.process_time() - start, passed, sorted(SEEN)])

                lines, end = forked(work, LIMIT)
                print(f"{path.name}: {len(lines)} of {len(own)} tests, {end}", flush=True)
                record.write_text("".join(json.dumps(line) + "\n" for line in lines))
            for line in record.read_text().splitlines():
                name, cost, passed, reached = json.loads(line)
                if not passed:
                    print(f"  fails without a mutant: {name}", flush=True)
                    continue
                self.cost[name] = cost
                for number in reached:
                    self.reach[number].add(name)

    def chosen(self, number, items):
        """The tests that reach a mutant, the quickest of each file in turn, and those that take long last."""
        by_file = collections.defaultdict(list)
        for item in items:
            if item.nodeid in self.reach[number]:
                by_file[item.path].append(item)
        turns = []
        for own in by_file.values():
            turns += enumerate(sorted(own, key=lambda item: self.cost[item.nodeid]))
        order = [item for turn, item in sorted(turns, key=lambda pair: (self.cost[pair[1].nodeid] > 1.0, pair[0]))]
        spent, taken = 0.0, []
        for item in order:
            spent += self.cost[item.nodeid]
            if spent > self.options.budget and taken:
                break
            taken.append(item)
        return taken, len(order)

    def judge(self, items):
        """Run the mutants that have no record yet, or survived."""
        known = outcomes()
        for number, (key, row) in enumerate(self.rows.items()):
            if self.options.only and not any(part in row["area"] or part in key for part in self.options.only):
                continue
            if key in known and not (self.options.again and known[key]["outcome"] in ("survived", "unreached")):
                continue
            taken, total = self.chosen(number, items)
            if not taken:
                outcome = "at import" if number in self.imported else "unreached"
                record(row | {"outcome": outcome, "tests": 0})
                continue

            def work(send, number=number, taken=taken):
                global ACTIVE
                ACTIVE = number
                for item, following in zip(taken, [*taken[1:], None], strict=True):
                    send(item.nodeid)
                    if not self.execute(item, following):
                        send({"killed": item.nodeid})
                        return

            start = time.perf_counter()
            lines, end = forked(work, LIMIT)
            last = lines[-1] if lines else None
            killed = isinstance(last, dict)
            outcome = "killed" if killed or end == "died" else "hung" if end == "hung" else "survived"
            by = last["killed"] if killed else last if outcome != "survived" else None
            if written(items) != self.written:  # a test that reads its own source would fail by that
                print("stopped: a test file has changed since it was collected", flush=True)
                return
            seconds = round(time.perf_counter() - start, 1)
            record(row | {"outcome": outcome, "by": by, "tests": len(lines), "of": total, "seconds": seconds})


def written(items):
    """When the files of tests were written, by path."""
    return {path: path.stat().st_mtime_ns for path in {item.path for item in items}}


def record(row):
    with (RECORDS / "outcomes.jsonl").open("a") as out:
        print(json.dumps(row), file=out)
    if row["outcome"] in ("survived", "unreached"):
        print(f"{row['outcome']}: {row['key']}  {row['from']}  ->  {row['to']}", flush=True)


def outcomes():
    """The last record of each mutant."""
    path = RECORDS / "outcomes.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


HEAD = "| area | mutants | killed | by a time limit | survived | reached by no test |\n|---|---|---|---|---|---|"


def report(rows):
    """A table of the areas."""
    found = outcomes()
    print(HEAD)
    total = collections.Counter()
    for area in AREAS:
        count = collections.Counter(found[key]["outcome"] for key in rows if rows[key]["area"] == area and key in found)
        total += count
        print(line(area, count))
    print(line("all", total))


def line(name, count):
    n = sum(count.values()) - count["at import"]
    killed = count["killed"] + count["hung"]
    cells = name, n, f"{killed} ({killed / max(n, 1):.1%})", count["hung"], count["survived"], count["unreached"]
    return "".join(f"| {cell} " for cell in cells) + "|"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="test files; without any, all that concern the areas")
    parser.add_argument("--per-area", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=BUDGET)
    parser.add_argument("--only", nargs="*", help="parts of areas' names or of mutants' keys")
    parser.add_argument("--again", action="store_true", help="survivors once more")
    parser.add_argument("--all", action="store_true", help="pytest's --all")
    parser.add_argument("--list", action="store_true", help="show the mutants, run none")
    options = parser.parse_args()
    RECORDS.mkdir(parents=True, exist_ok=True)
    rows = drawn(options.per_area, options.seed)
    if options.list:
        for key, row in rows.items():
            print(f"{key}  {row['from']}  ->  {row['to']}")
        return
    builtins.mutant_ = mutant_
    sys.meta_path.insert(0, Finder(rows))
    left_out = {f"test_{name}.py" for name in WITHOUT.split()}
    files = options.files or [str(p) for p in sorted((ROOT / "tests").glob("test_*.py")) if p.name not in left_out]
    flags = ["--tb=no", "-p", "no:xdist", "-p", "no:cacheprovider", "-q", *["--all"] * options.all]
    pytest.main([*flags, *files], plugins=[Run(rows, options)])
    report(rows)


if __name__ == "__main__":
    main()
