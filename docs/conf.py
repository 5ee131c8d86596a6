"""Sphinx's settings: `python -m sphinx -W -b html docs build/site` writes the site, without network access.

It runs the examples of docs/gallery and shows their pictures; with TAPEGRAD_QUICK=1 in the environment in seconds each.

The pages are those of docs/, read by MyST; their order is that of docs/index.md. Pages on each namespace are written
to docs/generated/ from the public names (as docs/make_reference.py lists them), with the running code's signatures and
docstrings.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import sys
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import make_reference  # noqa: E402

import tapegrad as tg  # noqa: E402

project = "tapegrad"
release = version = tg.__version__
copyright = "the tapegrad authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["build", "examples", "gallery", "inventories"]
html_theme = "furo"
html_title = f"tapegrad {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
pygments_dark_style = "monokai"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
autodoc_member_order = "alphabetical"
autodoc_typehints = "none"
python_maximum_signature_line_length = 88
copybutton_prompt_text = "$ "
napoleon_use_rtype = False
napoleon_custom_sections = [("Derivative", "params_style")]
smartquotes = False
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "capture_repr": (),
    "write_computation_times": False,
    "run_stale_examples": "TAPEGRAD_QUICK" not in os.environ,  # pictures of a quick run may be there
}
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", "inventories/numpy.inv"),
    "jax": ("https://docs.jax.dev/en/latest/", "inventories/jax.inv"),
}

# Pages that stand elsewhere in the checkout, under the names that they have on the site.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "compat/programs.md": "programs",
}
WITH_MEMBERS = {tg.Tensor, tg.nn.Module, tg.optim.Optimizer, tg.utils.data.DataLoader, tg.Generator, tg.autograd.Function}


def link_outside(text: str) -> str:
    """The text of a page of docs/, its links to pages of `OUTSIDE` leading to their pages on the site."""
    for path, name in OUTSIDE.items():
        text = text.replace(f"](../{path}", f"](generated/{name}.md")
    return re.sub(r"\]\(gallery/(\w+)\.py\)", r"](generated/gallery/\1.rst)", text)


def moved(path: str) -> str:
    """The text of a page of `OUTSIDE`, its links leading from docs/generated/ to where they led."""

    def target(link: re.Match[str]) -> str:
        at = (HERE.parent / path).parent / link[1]
        name = os.path.relpath(at, HERE.parent)
        return f"]({OUTSIDE[name]}.md" if name in OUTSIDE else f"]({os.path.relpath(at, HERE / 'generated')}"

    return re.sub(r"\]\((?!\w+:|#)([^)#]+)", target, (HERE.parent / path).read_text())


def toctrees(index: str) -> str:
    """A hidden table of contents for each part of the index, from the links that stand there."""
    parts = re.split(r"^## ", index, flags=re.MULTILINE)[1:]
    trees = []
    for part in parts:
        title = part.partition("\n")[0].partition(":")[0]
        if title == "Gallery":
            trees.append("```{toctree}\n:hidden:\n:caption: Gallery\n\ngenerated/gallery/index\n```\n")
            continue
        pages = "\n".join(re.findall(r"^- \[.*?\]\(([\w/]+)\.md\)", link_outside(part), flags=re.MULTILINE))
        if title == "Reference":
            pages += "\ngenerated/api/index\ngenerated/programs\ngenerated/changelog\ngenerated/security"
        trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n")
    return "\n" + "\n".join(trees)


def read_page(app: Any, name: str, source: list[str]) -> None:
    source[0] = link_outside(source[0])
    if name == "index":
        source[0] += toctrees(source[0])


def api_page(namespace: str, documented: dict[int, str]) -> str:
    """The page of a namespace; what another page has documented under another name is named and linked."""
    lines = [namespace, "=" * len(namespace), "", f".. currentmodule:: {namespace}", ""]
    for name, value in make_reference.public(importlib.import_module(namespace)):
        first = documented.setdefault(id(value), f"{namespace}.{name}")
        if first != f"{namespace}.{name}":
            lines += [f".. py:function:: {name}", "", f"   The same as :py:obj:`{first}`.", ""]
        elif isinstance(value, type):
            lines += [f".. autoclass:: {name}", *(["   :members:"] if value in WITH_MEMBERS else []), ""]
        else:
            lines += [f".. autofunction:: {name}", ""]
    return "\n".join(lines)


def write_pages(app: Any) -> None:
    folder = HERE / "generated" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    documented: dict[int, str] = {}
    pages = {namespace: api_page(namespace, documented) for namespace in make_reference.NAMESPACES}
    listed = "\n".join(f"   {namespace}" for namespace in pages)
    derivative = '"Derivative" gives the gradient of each argument for ``g``, the gradient of the result.'
    head = f"Names by namespace\n==================\n\n{derivative}"
    pages["index"] = f"{head}\n\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    for name, text in pages.items():
        write_if_changed(folder / f"{name}.rst", text)
    for path, name in OUTSIDE.items():
        write_if_changed(HERE / "generated" / f"{name}.md", moved(path))


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def as_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are text with `code` in single backticks, sections such as "Args:", and code: indented or at >>>."""
    result: list[str] = []
    code = False
    for line, before in zip(lines, ["text", *lines], strict=False):
        if line.startswith("    ") and not before.strip() and not code and name_of_section(result) is None:
            result += ["::", ""]
            code = True
        code = line.lstrip().startswith(">>>") or (code and (not line.strip() or line.startswith("    ")))
        result.append(line if code else escaped(line))
    lines[:] = result


def name_of_section(lines: list[str]) -> str | None:
    """The section that the lines are in: the last line at the margin, if it is a heading such as "Args:"."""
    margin = [line for line in lines if line and not line.startswith(" ")]
    return margin[-1] if margin and re.fullmatch(r"\w+:", margin[-1]) else None


def escaped(line: str) -> str:
    pieces = re.split(r"(``.*?``|`[^`]+`)", line)
    codes = [f"``{code.strip('`')}``" for code in pieces[1::2]]
    texts = [re.sub(r"([*|_`\\])", r"\\\1", text) for text in pieces[::2]]
    glued = [f"\\ {text}" if text[:1].isalnum() else text for text in texts[1:]]
    return texts[0] + "".join(code + text for code, text in zip(codes, glued, strict=True))


def setup(app: Any) -> None:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", as_text, priority=100)  # before napoleon reads the sections
