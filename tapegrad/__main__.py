"""``python -m tapegrad --as torch program.py ...``: run a program with a drop-in in place of the library it imports."""

from __future__ import annotations

import argparse
import pathlib
import runpy
import sys

from . import compat


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tapegrad", description="Run a program on tapegrad, unmodified.")
    parser.add_argument(
        "--as", dest="names", action="append", required=True, choices=compat.NAMES, metavar="NAME",
        help=f"what the program imports: {', '.join(compat.NAMES)}; may be given more than once",
    )  # fmt: skip
    parser.add_argument("-m", dest="module", action="store_true", help="program is a module's name, as in python -m")
    parser.add_argument("program", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's own arguments")
    options = parser.parse_args()
    for name in options.names:
        compat.install(name, replace=True)
    sys.argv = [options.program, *options.args]
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        return
    if not pathlib.Path(options.program).exists():
        parser.error(f"there is no file {options.program}")
    sys.path[0] = str(pathlib.Path(options.program).resolve().parent)
    runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
