"""Drop-ins: programs that say ``import torch`` (or ``oneflow``, ``autograd``) run on tapegrad, unmodified.

    tapegrad.compat.install("torch")
    import torch                      # tapegrad, under PyTorch's names

``python -m tapegrad --as torch program.py`` does the same for a program. Nothing is found under these names before
``install`` and after ``remove``.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from opcode import opmap

__all__ = ["NAMES", "install", "installed", "remove"]

NAMES = ("torch", "oneflow", "autograd")
PARITY = "docs/parity.md"

_IN_WHEEL = pathlib.Path(__file__).parent / "_dropins"
_IN_CHECKOUT = pathlib.Path(__file__).parent.parent / "compat" / "dropins"  # for pip install -e
_SOURCES = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT


class Module(types.ModuleType):
    """A module of a drop-in: its own names, those of the module of tapegrad that it mirrors, its submodules on demand."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        submodule = f"{self.__name__}.{name}"
        if _FINDER.find_spec(submodule):
            return importlib.import_module(submodule)
        found = getattr(self.__dict__.get("_origin"), name, self)
        if found is self or isinstance(found, types.ModuleType):
            raise self._missing(name, sys._getframe(1))
        return found

    def __dir__(self) -> list[str]:
        origin = self.__dict__.get("_origin")
        shown = {n for n in dir(origin) if not isinstance(getattr(origin, n, None), types.ModuleType)} if origin else set()
        return sorted((shown | {*self.__dict__, *_FINDER.children(self.__name__)}) - {"_origin"})

    def _missing(self, name: str, caller: types.FrameType) -> Exception:
        """The error for a name that is not there: it names the nearest ones and the page that lists all."""
        near = difflib.get_close_matches(name, [n for n in dir(self) if not n.startswith("_")], 2)
        nearest = f"; nearest: {', '.join(near)}" if near else ""
        text = f"module {self.__name__!r} has no attribute {name!r} (it is tapegrad's{nearest}; what it has: {PARITY})"
        # `from torch import x` would drop an AttributeError with its text and raise an ImportError of its own.
        if caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
            return ImportError(text, name=self.__name__)
        return AttributeError(text, name=name, obj=self)


def mirror(module: str, origin: str) -> None:
    """Show the public names of origin in module, a drop-in's (for its own file to call). Its own names come first."""
    ours, theirs = sys.modules[module], importlib.import_module(origin)
    for name in dir(theirs):
        value = theirs.__dict__.get(name)
        if name in theirs.__dict__ and not name.startswith("__") and not isinstance(value, types.ModuleType):
            ours.__dict__.setdefault(name, value)
    ours.__dict__["_origin"] = theirs
    for name in ("__all__", "__file__"):
        if hasattr(theirs, name):
            ours.__dict__.setdefault(name, getattr(theirs, name))
    ours.__doc__ = ours.__doc__ or theirs.__doc__


class _FileLoader(importlib.machinery.SourceFileLoader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Module(spec.name)


class _MirrorLoader(importlib.abc.Loader):
    def __init__(self, origin: str):
        self.origin = origin

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        mirror(module.__name__, self.origin)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the drop-ins that are installed: files, and the mirrors that their modules.tsv lists."""

    def __init__(self) -> None:
        self.mirrors: dict[str, str] = {}  # module of a drop-in: the module of tapegrad that it shows
        self.roots: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, *rest = fullname.split(".")
        if root not in self.roots:
            return None
        folder = _SOURCES.joinpath(root, *rest)
        for file in (folder / "__init__.py", folder.with_suffix(".py")):
            if file.exists():  # a package in either case: modules.tsv may list modules below it
                loader, below = _FileLoader(fullname, str(file)), [str(folder)]
                return importlib.util.spec_from_file_location(
                    fullname, file, loader=loader, submodule_search_locations=below
                )
        if fullname in self.mirrors:
            return importlib.machinery.ModuleSpec(fullname, _MirrorLoader(self.mirrors[fullname]), is_package=True)
        return None

    def children(self, module: str) -> Iterator[str]:
        root, *rest = module.split(".")
        files = _SOURCES.joinpath(root, *rest).glob("[!_]*")
        yield from (f.stem for f in files if f.suffix == ".py" or (f / "__init__.py").exists())
        yield from (m.removeprefix(module + ".") for m in self.mirrors if m.rpartition(".")[0] == module)


_FINDER = _Finder()
_replaced: dict[str, dict[str, types.ModuleType]] = {}  # drop-in: modules under its names that were loaded before it
_undo: dict[str, list[Callable[[], object]]] = {}


def at_removal(name: str, action: Callable[[], object]) -> None:
    """Have action called when the drop-in is removed (for settings that it changes as it is imported)."""
    _undo[name].append(action)


def _modules(name: str) -> dict[str, types.ModuleType]:
    return {m: sys.modules[m] for m in list(sys.modules) if m == name or m.startswith(name + ".")}


def install(name: str, *, replace: bool = False) -> None:
    """Make ``import <name>`` give tapegrad's drop-in, in this process, until ``remove(name)``.

    A package that is installed under that name is hidden meanwhile, not touched.

    Args:
        name: ``"torch"``, ``"oneflow"`` or ``"autograd"``.
        replace: also when the real package is already imported; who holds its modules keeps them, and ``remove`` puts
            them back.

    Raises:
        ValueError: there is no drop-in of that name.
        ImportError: the real package is already imported and replace is False.
    """
    if name not in NAMES:
        raise ValueError(f"tapegrad has drop-ins for {', '.join(NAMES)}, not for {name!r}")
    if name in _FINDER.roots:
        return
    loaded = _modules(name)
    if loaded and not replace:
        where = getattr(loaded.get(name), "__file__", None) or "its place"
        raise ImportError(
            f"{name} is already imported, from {where}: install the drop-in before the first `import {name}`, or say "
            f"install({name!r}, replace=True)"
        )
    table = _SOURCES / name / "modules.tsv"
    rows = (line.split("\t") for line in table.read_text().splitlines() if line) if table.exists() else ()
    _FINDER.mirrors.update({f"{name}.{module}": origin for module, origin in rows})
    for module in loaded:
        del sys.modules[module]
    _replaced[name], _undo[name] = loaded, []
    _FINDER.roots.add(name)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def remove(name: str) -> None:
    """Undo ``install(name)``: the drop-in's modules leave sys.modules, and what was there before it comes back."""
    if name not in _FINDER.roots:
        return
    _FINDER.roots.discard(name)
    for module in [m for m in _FINDER.mirrors if m.startswith(name + ".")]:
        del _FINDER.mirrors[module]
    if not _FINDER.roots:
        sys.meta_path.remove(_FINDER)
    for module in _modules(name):
        del sys.modules[module]
    sys.modules.update(_replaced.pop(name))
    for action in reversed(_undo.pop(name)):
        action()


@contextmanager
def installed(name: str, *, replace: bool = False) -> Iterator[None]:
    """``install(name)`` for the length of a with block."""
    before = name in _FINDER.roots
    install(name, replace=replace)
    try:
        yield
    finally:
        if not before:
            remove(name)
