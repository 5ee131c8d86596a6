"""PyTorch's own sample inputs (opinfo.py), row by row; every exception is named with its reason, strictly.

`sample_differences.tsv` lists the samples that differ on purpose; `python compat/test_opinfo.py` writes docs/coverage.md.
"""

import csv
import pathlib

import opinfo
import pytest

FLOOR = 515  # rows whose every sample agrees in value, vjp and second-order vjp
PAGE = pathlib.Path(__file__).parent.parent / "docs" / "coverage.md"
SPARSE = "compressed sparse tensors and those with dense dimensions are out of scope"
KERNEL = "one of PyTorch's kernels, not a public operation"
MISSING = {
    "sparse.sampled_addmm": SPARSE,
    "sparse.mm:reduce": SPARSE,
    "torch.ops.aten._safe_softmax.default": KERNEL,
    "torch.ops.aten._flash_attention_forward": KERNEL,
    "torch.ops.aten._efficient_attention_forward": KERNEL,
    "slice": KERNEL + ": `x[a:b]`",
    "_unsafe_masked_index": KERNEL,
    "_unsafe_masked_index_put_accumulate": KERNEL,
    "_segment_reduce:lengths": KERNEL,
    "_segment_reduce:offsets": KERNEL,
}
MASKED = "a row that is masked out as a whole has gradient 0 at every order; PyTorch's second order is nan"
REPEATED = "of a repeated index only the value that stays gets the gradient; PyTorch gives it to every copy"
ORIGIN = "0 at the zero vector at every order; PyTorch's second order is nan"
DRAWN = "the gradient of a draw goes to mean and standard deviation; PyTorch's is 0"
REASONS = {
    "as_strided_scatter": "PyTorch's gradient fails its own gradcheck",
    "max_pool2d_with_indices_backward": KERNEL,
    "nn.functional.max_unpool1d": REPEATED,
    "nn.functional.max_unpool2d": REPEATED,
    "nn.functional.max_unpool3d": REPEATED,
    "chalf": "NumPy has no complex numbers of half precision",
    "normal": DRAWN,
    "normal:number_mean": DRAWN,
    "to_sparse": SPARSE,
    "linalg.norm": ORIGIN,
    "linalg.norm:subgradients_at_zero": ORIGIN,
    **dict.fromkeys(
        ("masked.mean", "masked.softmax", "masked.log_softmax", "masked.softmin", "masked.logaddexp", "masked.logsumexp"),
        MASKED,
    ),
}
# Rows with samples of which PyTorch's own second order is wrong by its rounding, differently from run to run.
ROUNDING = {
    "cov": "weights in float32: the true value is 0",
    "svd_lowrank": "singular values 1e-8 apart",
    "pca_lowrank": "singular values 1e-8 apart",
}
# Rows whose error in float32 is more than twice PyTorch's: {row: {quantity: reason}}
ZERO = "the true value is 0, and both are within rounding of it"
SINGLE = {
    "native_batch_norm": {"vjp": ZERO},
    "_native_batch_norm_legit": {"vjp": ZERO},
    "_batch_norm_with_update": {"vjp": ZERO},
    "nn.functional.cosine_similarity": {"vjp": ZERO},
    "nn.functional.multi_head_attention_forward": {
        "vjp": "PyTorch's float64, the reference, loses the gradient by a weight within 1e-16 of 1; float32 keeps it here"
    },
    "masked.softmin": {"vjp": "g - sum(p * g), as in PyTorch, cancels where one p is nearly 1"},
}
# The exact gradient by the weights is 0; what is left of float32's terms is luck of the processor's matrix product.
MACHINE = {"cov": "vjp"}
ROWS = opinfo.rows()


def numbers(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def known_differences():
    known = {}
    with open(pathlib.Path(__file__).with_name("sample_differences.tsv"), newline="") as f:
        for r in csv.DictReader(f, delimiter="\t"):
            keys = {(r["dtype"], k, r["quantity"]) for k in numbers(r["samples"])}
            known.setdefault(r["row"], set()).update(keys)
    return known


KNOWN = known_differences()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_row(row):
    found = opinfo.examine(row)
    if row.title in MISSING:
        assert found is None, "this row is there now: take it off MISSING"
        return
    assert found is not None, "missing"
    if row.title in ROUNDING:
        assert all(quantity == "second" for _, _, quantity in found), found
        return
    known = KNOWN.get(row.title, set())
    assert {k: text for k, text in found.items() if k not in known} == {}
    assert known <= set(found), f"these no longer differ: {sorted(known - set(found))}"


def covered():
    return [row.title for row in ROWS if row.title not in MISSING | REASONS | ROUNDING]


@pytest.mark.parametrize("row", opinfo.some(r for r in ROWS if r.title not in MISSING | REASONS), ids=lambda row: row.title)
def test_single_precision(row):
    """In float32 no error is larger than twice PyTorch's."""
    found = {quantity: errors for quantity, errors in opinfo.single_precision(row).items() if opinfo.worse(errors)}
    if row.title in MACHINE:
        found.pop(MACHINE[row.title], None)
    assert found.keys() == SINGLE.get(row.title, {}).keys(), found


def test_covered_rows():
    assert len(covered()) >= FLOOR
    assert set(KNOWN) == set(REASONS)
    assert {*MISSING, *REASONS, *ROUNDING} <= {row.title for row in ROWS}


def coverage_page():
    lines = [
        "# Coverage",
        "",
        f"PyTorch 2.13 ships sample inputs for its own tests. `compat/` runs those of its {len(ROWS)} differentiable",
        "operations (with their variants) through both libraries, in float64 and complex128: value, vjp, second-order vjp;",
        "the second order against finite differences where PyTorch has no double backward.",
        f"**{len(covered())} of {len(ROWS)}** agree in every sample. The rest:",
        "",
        "| row | why |",
        "|---|---|",
    ]
    for title, reason in [*MISSING.items(), *REASONS.items(), *ROUNDING.items()]:
        kind = "missing: " if title in MISSING else "differs in some samples: "
        lines.append(f"| `{title}` | {kind}{reason} |")
    return "\n".join(lines) + "\n"


def test_page_is_current():
    assert PAGE.read_text() == coverage_page(), "run: python compat/test_opinfo.py"


if __name__ == "__main__":
    PAGE.write_text(coverage_page())
