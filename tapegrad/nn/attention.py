"""Multi-head attention as a layer."""

from __future__ import annotations

from typing import Any

from ..functions import create, shape
from ..tensor.tensor import Parameter, Tensor
from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al. 2017).

    Attributes:
        in_proj_weight: (3 E, E), the projections of query, key and value; with kdim or vdim q_proj_weight (E, E),
            k_proj_weight (E, kdim) and v_proj_weight (E, vdim) instead. Glorot uniform initialisation.
        in_proj_bias: (3 E,), initialised to 0.
        out_proj: the output projection, its bias initialised to 0.
        bias_k, bias_v: (1, 1, E) with add_bias_kv, else None.

    Args:
        embed_dim: features E of query and output.
        num_heads: number of heads, each with E / num_heads features.
        dropout: probability with which attention weights are dropped in training mode.
        bias: whether the linear maps have biases.
        add_bias_kv: append a learned position to key and value.
        add_zero_attn: append a position of zeros to key and value.
        kdim, vdim: features of key and value; E by default.
        batch_first: inputs and output are (N, L, E), not (L, N, E).

    Raises:
        ValueError, AssertionError: for sizes that are not positive or not divisible.

    Example:
        >>> attention = tg.nn.MultiheadAttention(4, num_heads=2, batch_first=True)
        >>> x = tg.randn(3, 5, 4)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([3, 5, 4]), torch.Size([3, 5, 5]))
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        sizes: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": (embed_dim, embed_dim), "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim), "in_proj_weight": None,
        }  # fmt: skip
        if self._qkv_same_embed_dim:
            sizes = {"in_proj_weight": (3 * embed_dim, embed_dim)} | dict.fromkeys(list(sizes)[:3])
        sizes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        for name, size in sizes.items():
            value = None if size is None else Parameter(create.empty(*size, dtype=dtype, device=device))
            self.register_parameter(name, value)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            own = Parameter(create.empty(1, 1, embed_dim, dtype=dtype, device=device)) if add_bias_kv else None
            setattr(self, name, own)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # type: ignore[arg-type]  # there is one where in_proj has one
        for own in (self.bias_k, self.bias_v):
            if own is not None:
                init.xavier_normal_(own)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """(output of query's shape, weights (N, L, S) or None).

        Args:
            query: (L, N, E), with batch_first (N, L, E), or (L, E).
            key: (S, N, kdim), likewise; value: (S, N, vdim).
            key_padding_mask: (N, S), True at positions to ignore (bool), or floats added to their scores.
            attn_mask: (L, S) or (N * num_heads, L, S), likewise.
            need_weights: also return the attention weights.
            average_attn_weights: average the weights over the heads; otherwise they are (N, num_heads, L, S).
            is_causal: a hint that attn_mask is causal.

        Raises:
            AssertionError, RuntimeError: for shapes that do not match.
        """
        turned = self.batch_first and query.dim() == 3
        if turned:
            rows = {id(x): x.transpose(0, 1) for x in (query, key, value)}  # the same tensor is projected once
            query, key, value = (rows[id(x)] for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return output.transpose(0, 1) if turned else output, weights

    def merge_masks(self, attn_mask: Any, key_padding_mask: Any, query: Any) -> tuple[Any, int | None]:
        """The combined mask for a query (N, L, E), and its kind.

        Returns:
            (mask (N, num_heads, L, S), 2); without attn_mask (key_padding_mask, 1); without masks (None, None).
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        n, length = query.shape[:2]
        last = attn_mask.shape[-2:]
        merged = shape.reshape(attn_mask, (n if attn_mask.dim() == 3 else 1, -1, *last))
        merged = shape.expand(merged, (n, self.num_heads, *last))
        if key_padding_mask is not None:
            merged = merged + shape.expand(
                shape.reshape(key_padding_mask, (n, 1, 1, length)), (n, self.num_heads, 1, length)
            )
        return merged, 2
