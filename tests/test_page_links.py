"""Relative links in the pages lead to files that exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
INDEX = ROOT / "docs" / "index.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def targets(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [(page.parent / t).resolve() for t in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    missing = [t for t in targets(page) if not t.exists()]
    assert not missing


def test_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) <= 120


def test_the_front_pages_begin_alike():
    readme, index = ([p for p in page.read_text().split("\n\n") if p[0] not in "#!"] for page in (PAGES[0], INDEX))
    assert readme[0] == index[0]


def test_every_page_is_found_from_the_index():
    assert INDEX.resolve() in targets(PAGES[0])
    assert {page.resolve() for page in PAGES[1:]} - {INDEX.resolve(), *targets(INDEX)} == set()


def test_every_program_of_the_gallery_is_found_from_the_index():
    assert set((ROOT / "docs" / "gallery").glob("plot_*.py")) - set(targets(INDEX)) == set()
