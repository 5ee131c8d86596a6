"""``python -m tapegrad --as torch program.py ...``: run a program with a drop-in in place of the library it imports."""

from __future__ import annotations

import argparse
import pathlib
import runpy
import sys
import types

from . import compat


def _show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    """Print an error as Python does, from the program's first line on."""
    place = trace
    while place and place.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        place = place.tb_next
    sys.__excepthook__(kind, error.with_traceback(place or trace), place or trace)


def _run(source: str | bytes, path: str) -> None:
    """Run a program as __main__, which stays for its threads and what it has registered with atexit."""
    code = compile(source, path, "exec", dont_inherit=True)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if path != "<stdin>":
        main.__file__ = path
    exec(code, main.__dict__)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tapegrad", description="Run a program on tapegrad, unmodified.")
    parser.add_argument("--version", action="version", version=f"tapegrad {sys.modules[__package__].__version__}")
    parser.add_argument(
        "--as", dest="names", action="append", required=True, choices=compat.NAMES, metavar="NAME",
        help=f"what the program imports: {', '.join(compat.NAMES)}; may be given more than once",
    )  # fmt: skip
    parser.add_argument("-m", dest="module", action="store_true", help="program is a module's name, as in python -m")
    parser.add_argument("program", help="a Python file, a folder with a __main__.py, or - (standard input)")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's own arguments")
    options = parser.parse_args()
    for name in options.names:
        compat.install(name, replace=True)
    sys.argv, sys.excepthook = [options.program, *options.args], _show
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        return
    if options.program == "-":
        _run(sys.stdin.read(), "<stdin>")
        return
    file = pathlib.Path(options.program)
    if not file.exists():
        parser.error(f"there is no file {options.program}")
    sys.path[0] = str(file.resolve().parent)
    if file.suffix == ".py":
        _run(file.read_bytes(), options.program)
    else:
        runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
