"""The rows of everyday.tsv (what programs do with tensors besides calling operations), and how they are run.

A row: a program (statements, of which the last is an expression or raises), what tapegrad's torch drop-in gives, and what
PyTorch 2.13 gives where that differs. Of an error the type is compared, and the first sentence if both libraries agree.
"""

import collections
import copy
import csv
import math
import pathlib
import pickle
import re
import warnings

import numpy as np

FILE = pathlib.Path(__file__).with_suffix(".tsv")


def rows():
    with open(FILE) as f:
        return [(row + [""])[:3] for row in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE)]


def shown(value):
    """The value's printed form, with the types of what is in it."""
    if type(value) in (tuple, list):
        return "(" + ", ".join(map(shown, value)) + ")"
    if isinstance(value, np.ndarray | np.generic):
        return f"{type(value).__name__}:{value.dtype}:{value.tolist()!r}"
    return f"{type(value).__name__}:{value!r}"


def run(torch, program):
    """What a program gives: the printed form of its value, or its error."""
    names = {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "autograd": torch.autograd, "np": np, "math": math,
        "copy": copy, "pickle": pickle, "defaultdict": collections.defaultdict,
        "__name__": "program",
    }  # fmt: skip
    torch.manual_seed(0)
    *before, last = (s.replace("\\n", "\n") for s in program.split("; "))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(before), names)
            try:
                return shown(eval(last, names)).replace("\n", "\\n")
            except SyntaxError:
                exec(last, names)
                return "None"
        except Exception as error:
            return f"!{type(error).__name__}: {first_sentence(str(error))}"


def first_sentence(text):
    return re.split(r"(?<=[\w)\]'])[.:,;] |\n", text)[0].rstrip(".")


def same(got, expected):
    """Whether a result is the expected one; of an error whose text is not given, only the type counts."""
    if expected.startswith("!") and expected.endswith("!"):
        return got.startswith(expected[:-1])
    return got == expected
