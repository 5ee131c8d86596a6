"""Finds the modules of drop-ins and makes them: their own files, and mirrors of tapegrad's modules."""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from collections.abc import Iterator, Sequence
from opcode import opmap
from typing import Any

from ..later import MARK, fill
from . import module_names

NAMES = ("torch", "oneflow", "autograd")
BESIDE = {"torch": ("functorch",)}  # packages that a library brings with it
PARITY = "docs/parity.md"

PACKAGE = pathlib.Path(__file__).parent.parent
_IN_WHEEL = PACKAGE / "_dropins"
_IN_CHECKOUT = PACKAGE.parent / "compat" / "dropins"  # for pip install -e
_SOURCES = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT


class Module(types.ModuleType):
    """A module of a drop-in: its own names, those of the module of tapegrad that it mirrors, its submodules on demand."""

    is_drop_in = True

    def __getattr__(self, name: str) -> object:
        submodule = f"{self.__name__}.{name}"
        if FINDER.find_spec(submodule):
            return importlib.import_module(submodule)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        reason = FINDER.absent.get(self.__name__, {}).get(name)
        if reason is not None:
            return self.__dict__.setdefault(name, _absent(self.__name__, name, reason))
        found = getattr(self.__dict__.get("_origin"), name, self)
        if found is self or isinstance(found, types.ModuleType):
            raise self._missing(name, sys._getframe(1))
        return found

    def __setattr__(self, name: str, value: object) -> None:
        # An import binds the submodule in its package; a function of that name stays, as in nn.utils.weight_norm.
        if not (isinstance(value, Module) and not isinstance(self.__dict__.get(name, value), types.ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        origin = self.__dict__.get("_origin")
        shown = {n for n in dir(origin) if not isinstance(getattr(origin, n, None), types.ModuleType)} if origin else set()
        return sorted((shown | {*self.__dict__, *FINDER.children(self.__name__)}) - {"_origin"})

    def _missing(self, name: str, caller: types.FrameType) -> Exception:
        """The error for a name that is not there: it names the nearest ones and the page that lists all."""
        near = difflib.get_close_matches(name, [n for n in dir(self) if not n.startswith("_") and n != name], 2)
        nearest = f"; nearest: {', '.join(near)}" if near else ""
        text = f"module {self.__name__!r} has no attribute {name!r} (it is tapegrad's{nearest}; what it has: {PARITY})"
        # `from torch import x` would drop an AttributeError with its text and raise an ImportError of its own. Which of the
        # two the caller does, `torch.x` or that, nothing but its instruction tells.
        if caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
            return ImportError(text, name=self.__name__)
        return AttributeError(text, name=name, obj=self)


class Absent(type):
    """A class or function that a drop-in has only by name: it may be imported and asked about; a call says why not."""

    why: str

    def __call__(cls, *args: object, **kwargs: object) -> object:
        raise NotImplementedError(cls.why)

    def __getitem__(cls, parameters: object) -> type:
        return cls  # in annotations

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__") or not cls.__name__[0].isupper():
            raise AttributeError(cls.why, name=name, obj=cls)
        path, _, reason = cls.why.partition(": ")
        found = _absent(path, name, reason)  # a class's, of the same kind: it may be a default, as Strategy.FULL is
        setattr(cls, name, found)
        return found


def _absent(module: str, name: str, reason: str) -> type:
    if name.endswith(("Error", "Exception", "Warning")):  # something for `except` to name; nothing raises it
        return type(name, (RuntimeError,), {"__module__": module, "__doc__": reason})
    return Absent(name, (), {"__module__": module, "__doc__": reason, "why": f"{module}.{name}: {reason}"})


def mirror(module: str, origin: str, patterns: Sequence[str] = ()) -> None:
    """Show the public names of origin in module, a drop-in's (for its own file to call). Its own names come first.

    With patterns only the names that one of them fits are shown.
    """
    ours, theirs = sys.modules[module], importlib.import_module(origin)
    fill(theirs)
    for name in dir(theirs):
        value = theirs.__dict__.get(name)
        shown = name in theirs.__dict__ and not name.startswith("__") and not isinstance(value, types.ModuleType)
        if shown and (not patterns or module_names.fits(name, patterns)):
            ours.__dict__.setdefault(name, value)
    if not patterns:
        ours.__dict__.setdefault("_origin", theirs)
        ours.__dict__.setdefault("__file__", theirs.__file__)  # where inspect looks for a class's source
        ours.__doc__ = ours.__doc__ or theirs.__doc__
    root = module.partition(".")[0]
    module_names.assign_modules(root, FINDER.rows.get(root, ()))


def _rows(root: str) -> Iterator[module_names.Row]:
    """The rows of a drop-in; one for `a.*` stands for all modules of that package."""
    for module, origin, *patterns in _table(root, "modules.tsv"):
        full = root if module == "." else f"{root}.{module}"
        if not module.endswith(".*"):
            yield module_names.Row(full, origin, tuple(patterns[0].split()) if patterns else ())
            continue
        package = PACKAGE.joinpath(*origin.split(".")[1:-1])
        for name in sorted(f.stem for f in package.glob("*") if f.suffix == ".py" or (f / "__init__.py").exists()):
            if name != "__init__":
                yield module_names.Row(full[:-1] + name, origin[:-1] + name)


def _table(root: str, name: str) -> list[list[str]]:
    table = _SOURCES / root / name
    return [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines() if line] if table.exists() else []


class _FileLoader(importlib.machinery.SourceFileLoader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__[MARK] = True
        for row in FINDER.mirrors.get(module.__name__, ()):
            mirror(*row)
        shown = dict(vars(module))
        super().exec_module(module)
        module_names.release(module.__name__, shown)
        for row in FINDER.rows.get(module.__name__, ()):  # inspect and typing look up a class's module, which is loaded
            if row.origin.startswith("tapegrad") and row.origin in sys.modules:
                importlib.import_module(row.module)


class _MirrorLoader(importlib.abc.Loader):
    def __init__(self, rows: Sequence[module_names.Row]):
        self.rows = rows

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        reasons = set(FINDER.absent.get(module.__name__, {}).values()) or {f"{module.__name__}, on tapegrad."}
        for row in self.rows:
            mirror(*row)
        module.__doc__ = module.__doc__ or "; ".join(reasons)
        whole = [sys.modules[row.origin] for row in self.rows if not row.patterns]
        if len(self.rows) == 1 and whole and hasattr(whole[0], "__all__"):
            module.__dict__["__all__"] = [n for n in whole[0].__all__ if hasattr(module, n)]


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the drop-ins that are installed: files, mirrors of modules.tsv, and those of absent.tsv."""

    def __init__(self) -> None:
        self.roots: set[str] = set()
        self.rows: dict[str, list[module_names.Row]] = {}  # by drop-in
        self.mirrors: dict[str, list[module_names.Row]] = {}  # by module of a drop-in
        self.absent: dict[str, dict[str, str]] = {}  # module of a drop-in: the reason why a name of it is not there

    def add(self, root: str) -> None:
        self.roots.add(root)
        self.rows[root] = list(_rows(root))
        for row in self.rows[root]:
            self.mirrors.setdefault(row.module, []).append(row)
        for module, reason, names in _table(root, "absent.tsv"):
            reasons = self.absent.setdefault(f"{root}.{module}" if module != "." else root, {})
            reasons.update(dict.fromkeys(names.split(), reason))

    def drop(self, root: str) -> None:
        self.roots.discard(root)
        del self.rows[root]
        for table in (self.mirrors, self.absent):
            for module in [m for m in table if m.partition(".")[0] == root]:
                del table[module]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, *rest = fullname.split(".")
        if root not in self.roots:
            return None
        folder = _SOURCES.joinpath(root, *rest)
        for file in (folder / "__init__.py", folder.with_suffix(".py")):
            if file.exists():  # a package in either case: modules.tsv may list modules below it
                source, below = _FileLoader(fullname, str(file)), [str(folder)]
                return importlib.util.spec_from_file_location(
                    fullname, file, loader=source, submodule_search_locations=below
                )
        if fullname in self.mirrors or fullname in self.absent:
            loader = _MirrorLoader(self.mirrors.get(fullname, ()))
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
        return None

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """What importlib.metadata asks: the name and version of the drop-ins that are installed."""
        from importlib.metadata import Distribution

        class DropIn(Distribution):
            def __init__(self, name: str):
                self.text = f"Name: {name}\nVersion: {importlib.import_module(name).__version__}\n"

            def read_text(self, filename: str) -> str | None:
                return self.text if filename == "METADATA" else None

            def locate_file(self, path: Any) -> Any:
                return _SOURCES / path

        return (DropIn(n) for n in sorted(self.roots.intersection(NAMES)) if context.name in (n, None))

    def children(self, module: str) -> Iterator[str]:
        root, *rest = module.split(".")
        files = _SOURCES.joinpath(root, *rest).glob("[!_]*")
        yield from (f.stem for f in files if f.suffix == ".py" or (f / "__init__.py").exists())
        listed = (*self.mirrors, *self.absent)
        yield from (m.removeprefix(module + ".") for m in listed if m.rpartition(".")[0] == module)
        yield from self.absent.get(module, ())


FINDER = Finder()
