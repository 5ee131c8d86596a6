"""The pages' code runs, and prints what the pages say.

A ```python block runs in its page's namespace; a ```text block after it is its output, or the error it raises (of an error
the given text must be the beginning). Addresses and seconds are not compared.
"""

import contextlib
import importlib.util
import io
import linecache
import pathlib
import re
import warnings

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if "```python" in p.read_text()]
# Blocks that need an optional package.
OPTIONAL = {"optim.scipy": "scipy", "from scipy": "scipy", "import einops": "einops", "tg.compile": "jax"}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def run(code, namespace):
    out = io.StringIO()
    linecache.cache["<page>"] = len(code), None, code.splitlines(keepends=True), "<page>"  # as notebooks do
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<page>", "exec"), namespace)
        except Exception as e:
            return out.getvalue() + f"{type(e).__name__}: {e}\n"
    return out.getvalue()


def plain(text):
    return re.sub(r"0x[0-9a-f]+", "0x..", text).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page, tmp_path, monkeypatch):
    if "import scipy" in page.read_text():
        pytest.importorskip("scipy")
    if page.name in ("compile.md", "devices.md"):
        pytest.importorskip("jax")
    absent = [mark for mark, module in OPTIONAL.items() if importlib.util.find_spec(module) is None]
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__page__"}
    blocks = FENCE.findall(page.read_text())
    for (language, code), after in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language != "python" or any(mark in code for mark in absent):
            continue
        got = plain(run(code, namespace))
        want = plain(after[1]) if after[0] == "text" else ""
        if re.match(r"\w*Error: ", want.splitlines()[-1] if want else ""):
            assert got.startswith(want), f"{page.name}:\n{code}\nprinted\n{got}\nfor\n{want}"
        elif after[0] == "text" or "Error: " in got:
            assert got == want, f"{page.name}:\n{code}\nprinted\n{got}\nfor\n{want}"
