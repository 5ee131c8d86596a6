"""PyTorch's sample inputs without elements: shapes and dtypes of results and gradients, or that an operation raises.

What differs is listed, strictly: an entry that no longer differs fails.
"""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytest.importorskip("ml_dtypes")
from opinfo import some
from variations import differences, operations, without_elements

# PyTorch reads outside of the memory of tensors that are smaller than it assumes, and may crash or not
CRASHES = {
    "nn.functional.batch_norm", "nn.functional.batch_norm:without_cudnn", "native_batch_norm", "_native_batch_norm_legit",
    "_batch_norm_with_update", "pdist", "nn.functional.pdist", "nn.functional.embedding_bag", "lu_unpack",
}  # fmt: skip

KNOWN = {
    "result": {
        "the result has the bias's shape there": "addmv",
        "the result has the query's shape there": "nn.functional.scaled_dot_product_attention",
    },
    "refused": {
        "shapes are checked although there are no elements": """
            cholesky linalg.matrix_rank:hermitian linalg.pinv:hermitian linalg.tensorsolve roll index_add svd_lowrank
            nn.functional.linear_cross_entropy:chunked nn.functional.linear_cross_entropy:chunked_none
            nn.functional.scaled_dot_product_attention
        """,
    },
    "accepted": {
        "windows over images without channels": """
            nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.interpolate:area
            nn.functional.channel_shuffle
        """,
        "an image without elements may have a border": """
            nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
            nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d
        """,
        "means of nothing": "nn.functional.instance_norm",
        "operands are broadcast": """
            nn.functional.soft_margin_loss nn.functional.bilinear nn.functional.multi_head_attention_forward
            _softmax_backward_data
        """,
        "a number counts as a vector of one element": """
            index_fill index_add index_put index_reduce:mean index_reduce:prod index_reduce:amin index_reduce:amax
            fft.fftshift fft.ifftshift
        """,
        "the source of a scatter without places has a gradient": """
            scatter scatter_add scatter_reduce:sum scatter_reduce:prod scatter_reduce:mean scatter_reduce:amin
            scatter_reduce:amax
        """,
    },
}


def known(title):
    return {kind for kind, reasons in KNOWN.items() for names in reasons.values() if title in names.split()}


OPERATIONS = {title: op for title, op in operations().items() if title not in CRASHES}


@pytest.mark.parametrize("title", some(OPERATIONS))
def test_samples(title):
    found = differences(OPERATIONS[title], without_elements, tracked=True, most=3)
    assert found.keys() == known(title), found


def test_known_differences_are_of_what_is_run():
    assert {name for reasons in KNOWN.values() for names in reasons.values() for name in names.split()} <= OPERATIONS.keys()
