"""torch.segment_reduce."""

import math

import tapegrad

_OF_NOTHING = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "amax": -math.inf, "amin": math.inf}


def segment_reduce(
    data: tapegrad.Tensor, reduce: str, *, lengths: tapegrad.Tensor | None = None, indices: tapegrad.Tensor | None = None,
    offsets: tapegrad.Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> tapegrad.Tensor:  # fmt: skip
    """Reduce segments of data along a dimension: "sum", "mean", "prod", "max" or "min".

    Args:
        lengths: of the segments, which together are all of data; with a dimension for each that data has up to `axis`.
        offsets: where each segment begins and, after all of them, where the last one ends; in place of `lengths`.
        unsafe: lengths are not checked.
        initial: a value that each segment has besides its own; it does not count for the mean.
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in _OF_NOTHING:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    if offsets is None and lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not data.is_floating_point():
        raise NotImplementedError(f'"_segment_reduce_cpu" not implemented for {data.dtype}')
    dim = (lengths if offsets is None else offsets).ndim - 1
    if axis not in (dim, dim - data.ndim):
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths, {dim}, but got {axis}")
    if offsets is None:
        if not unsafe and bool((lengths < 0).any()):
            raise RuntimeError("lengths contains negative value!")
        if not unsafe and bool((lengths.sum(-1) != data.shape[dim]).any()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) when !unsafe."
            )
        offsets = tapegrad.nn.functional.pad(lengths.cumsum(-1), (1, 0))
    lead, length, rest = data.shape[:dim], data.shape[dim], data.shape[dim + 1 :]
    segments, counts = offsets.shape[-1] - 1, offsets.diff()
    elements = tapegrad.arange(length, dtype=offsets.dtype).expand(*lead, length).contiguous()
    positions = tapegrad.searchsorted(offsets.contiguous(), elements, right=True)  # 0 and segments + 1 are outside of all

    def spread(t: tapegrad.Tensor, size: int) -> tapegrad.Tensor:
        return t.reshape(*lead, size, *[1] * len(rest)).expand(*lead, size, *rest)

    found = data.new_full((*lead, segments + 2, *rest), 0.0 if reduce == "mean" else _OF_NOTHING[reduce])
    over = "sum" if reduce == "mean" else reduce
    found = found.scatter_reduce(dim, spread(positions, length), data, over, include_self=False).narrow(dim, 1, segments)
    if initial is not None:
        if reduce == "prod":
            found = found * initial
        elif reduce in ("amax", "amin"):
            found = tapegrad.where(found < initial if reduce == "amax" else found > initial, initial, found)
        else:
            found = found + initial
    if reduce == "mean":
        empty = found if initial is not None else _OF_NOTHING["mean"]
        found = tapegrad.where(spread(counts, segments) > 0, found / spread(counts.clamp(min=1), segments), empty)
    return found
