"""docs/comparison.md: every row has a reason, and its cells are what the programs print; tapegrad's programs run here."""

import pathlib
import re

import pytest
from comparison import QUESTIONS, agrees, run

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text()
LIBRARIES = ["tapegrad", "torch", "jax", "autograd", "mygrad", "tinygrad"]
COVERAGE = re.compile(r"(\d+) of (?:the )?(547)")


def rows():
    """The rows of the page's tables: what, a cell for each library, the reason."""
    lines = [re.split(r" *\| *", line.strip("| ")) for line in PAGE.splitlines() if re.match(r"\| [^|]", line)]
    return [line for line in lines if line[-1] != "shown by"]


def short(row):
    return row[0][:40]


def spans(cell):
    return re.findall(r"`([^`]+)`", re.sub(r"\]\([^)]*\)", "]", cell))


def questions(row):
    return [name for name in spans(row[-1]) if name in QUESTIONS]


@pytest.mark.parametrize("row", rows(), ids=short)
def test_row_has_a_reason(row):
    assert len(row) == len(LIBRARIES) + 2
    assert spans(row[-1]) or "](" in row[-1]
    for name in spans(row[-1]):
        path, _, test = name.partition("::")
        assert name in QUESTIONS or (f"def {test}(" if test else "") in (ROOT / path).read_text()


@pytest.mark.parametrize("row", [row for row in rows() if questions(row)], ids=short)
def test_cells_are_what_the_programs_print(row):
    (question,) = questions(row)
    for library, cell in zip(LIBRARIES, row[1:-1], strict=True):
        if library not in QUESTIONS[question]:
            assert not spans(cell)
            continue
        expected = QUESTIONS[question][library][1]
        shown = spans(cell)[0]
        assert expected.startswith(shown) if "Error: " in expected else expected == shown


def test_every_program_is_in_the_page():
    assert sorted(name for row in rows() for name in questions(row)) == sorted(QUESTIONS)


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md"])
def test_coverage_is_that_of_its_page(page):
    counts = set(COVERAGE.findall((ROOT / page).read_text()))
    assert counts == set(COVERAGE.findall((ROOT / "docs" / "coverage.md").read_text().replace("**", "")))


def check(question):
    code, expected = QUESTIONS[question]["tapegrad"]
    assert agrees(run(code), expected)


OURS = [name for name, programs in QUESTIONS.items() if "tapegrad" in programs]


@pytest.mark.parametrize("question", [name for name in OURS if not name.startswith("compiled")])
def test_tapegrad(question):
    check(question)


@pytest.mark.exhaustive
@pytest.mark.parametrize("question", [name for name in OURS if name.startswith("compiled")])
def test_tapegrad_compiled(question):
    pytest.importorskip("jax")
    check(question)
