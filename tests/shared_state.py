"""What threads share: names of the package's modules and classes whose objects functions change, found in the source.

`found()` gives them as "file:name"; tests/test_shared_state.py says of each why it is safe. `python -m tests.shared_state`
prints them. What a function changes through a name that it was handed is not seen: a container that is handed on counts as
changed.
"""

import ast
import functools
from pathlib import Path

import tapegrad

ROOT = Path(tapegrad.__file__).parent
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
LITERALS = ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp
CACHES = {"cache", "cached_property", "lru_cache", "made_once"}
CONTAINERS = {
    "Counter", "OrderedDict", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary", "bytearray", "count", "cycle",
    "defaultdict", "deque", "dict", "list", "set",
}  # fmt: skip
CHANGING = {  # methods
    "__next__", "__setitem__", "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert",
    "intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse", "setdefault", "sort",
    "symmetric_difference_update", "update",
}  # fmt: skip
READING = {  # functions that neither change what they are handed nor keep it
    "all", "any", "dict", "enumerate", "filter", "format", "frozenset", "isinstance", "issubclass", "iter", "join", "len",
    "list", "map", "max", "min", "print", "repr", "reversed", "set", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip
KEEPING = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Return | ast.Yield | ast.List | ast.Tuple | ast.Set | ast.keyword


class File:
    """A parsed file.

    imported: the names that it imports; reads: by their last part, the names and attributes that its functions look up.
    """

    def __init__(self, path):
        self.name = path.relative_to(ROOT).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.imported, self.reads, self.nodes = set(), {}, []
        self._visit(self.tree, False)

    def _visit(self, node, inside):
        for child in ast.iter_child_nodes(node):
            child.parent, child.inside = node, inside
            self.nodes.append(child)
            if isinstance(child, ast.Import | ast.ImportFrom):
                self.imported.update((a.asname or a.name).partition(".")[0] for a in child.names)
            elif inside and isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Load):
                self.reads.setdefault(child.id if isinstance(child, ast.Name) else child.attr, []).append(child)
            self._visit(child, inside or isinstance(child, (*FUNCTIONS, ast.Lambda)))

    def looks_up(self, name, owner, is_own):
        """Nodes by which functions of the file look up a name of a module, or of a class where `owner` is one."""
        for node in self.reads.get(name, ()):
            holder = node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
            if owner:
                if holder in (owner, "cls", "self") and (is_own or owner in self.imported):
                    yield node
            elif (is_own or name in self.imported) if isinstance(node, ast.Name) else holder in self.imported:
                yield node


@functools.cache
def files():
    return [File(p) for p in sorted(ROOT.rglob("*.py")) if "_dropins" not in p.parts and p.name != "_stubs.py"]


def called(node):
    """The last part of what a call, a decorator or a subscript names."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def made_at_import(body, owner=""):
    """(class or "", name, value) of the assignments outside functions."""
    for s in body:
        if isinstance(s, ast.ClassDef):
            yield from made_at_import(s.body, s.name)
        elif isinstance(s, ast.Assign | ast.AnnAssign) and s.value is not None:
            for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                if isinstance(target, ast.Name):
                    yield owner, target.id, s.value
        elif not isinstance(s, FUNCTIONS):
            yield from made_at_import([c for c in ast.iter_child_nodes(s) if isinstance(c, ast.stmt)], owner)


def is_changed(node):
    """Whether code changes what a name stands for, or what its attributes and items are."""
    parent = node.parent
    if isinstance(parent, ast.AugAssign):
        return parent.target is node
    if not (isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is node):
        return False
    if isinstance(parent.ctx, ast.Store | ast.Del):
        return True
    if isinstance(parent, ast.Attribute) and isinstance(parent.parent, ast.Call) and parent.parent.func is parent:
        return parent.attr in CHANGING
    return is_changed(parent)


def is_handed_on(node):
    """Whether another name may stand for the object afterwards."""
    parent = node.parent
    if isinstance(parent, ast.Call):
        return node is not parent.func and called(parent) not in READING
    return isinstance(parent, KEEPING) or (isinstance(parent, ast.IfExp) and node is not parent.test)


@functools.cache
def classes():
    """By name: the file of a class, the names of its bases, and whether its methods change its instances."""
    result = {}
    for file in files():
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                result[node.name] = file.name, {called(b) for b in node.bases}, any(map(changes_self, node.body))
    return result


def changes_self(method):
    if not isinstance(method, FUNCTIONS) or method.name in ("__init__", "__new__", "__post_init__", "__set_name__"):
        return False
    return any(isinstance(n, ast.Name) and n.id == "self" and is_changed(n) for n in ast.walk(method))


def is_mutable(name):
    """Whether instances of a class change."""
    _, bases, mutable = classes().get(name, ("", (), False))
    return name in CONTAINERS or mutable or any(is_mutable(b) for b in bases if b in classes() or b in CONTAINERS)


def found():
    """What is shared and changes, as "file:name" or "file:Class.name"."""
    result = set()
    for file in files():
        for owner, name, value in made_at_import(file.tree.body):
            maker = called(value) if isinstance(value, ast.Call) and not ast.unparse(value).startswith("np.") else ""
            reads = [n for f in files() for n in f.looks_up(name, owner, f is file)]
            if (
                maker in CACHES
                or (maker in classes() and is_mutable(maker))
                or (
                    (isinstance(value, LITERALS) or maker in CONTAINERS)
                    and any(is_changed(n) or is_handed_on(n) for n in reads)
                )
            ):
                result.add(f"{file.name}:{owner}.{name}" if owner else f"{file.name}:{name}")
        for node in file.nodes:
            result.update(f"{place}:{name}" for place, name in changed_here(node, file))
    return result


def changed_here(node, file):
    """(file, name) of what a statement says of itself: globals, caches, default arguments, attributes of classes."""
    if isinstance(node, ast.Global):
        yield from ((file.name, name) for name in node.names)
    elif isinstance(node, FUNCTIONS):
        defaults = [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
        cached = {called(d) for d in node.decorator_list} & CACHES - {"cached_property"}
        if cached or any(isinstance(d, LITERALS) or called(d) in CONTAINERS for d in defaults):
            yield file.name, node.name
    elif isinstance(node, ast.Call) and called(node) == "globals" and node.inside and is_changed(node):
        yield file.name, "globals()"
    elif isinstance(node, ast.Name) and node.inside and node.id in classes() and is_changed(node):
        attribute = node.parent.attr if isinstance(node.parent, ast.Attribute) else "[]"
        yield classes()[node.id][0], f"{node.id}.{attribute}"


if __name__ == "__main__":
    print(*sorted(found()), sep="\n")
