"""The Transformer and its layers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..core.record import running_trace
from ..functions import create, shape
from ..functions.attention import added_masks
from ..programs.tracing import leaving
from ..tensor.access import raw
from ..tensor.tensor import Tensor
from . import functional as F
from . import init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .norm import LayerNorm

Activation = str | Callable[[Any], Any]
Mask = Tensor | None


def square_subsequent_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    """(size, size) with -inf above the diagonal and 0 elsewhere."""
    return shape.triu(create.full((size, size), -math.inf, dtype=dtype, device=device), 1)


def _is_causal(mask: Any, given: bool | None, x: Any, length: int) -> bool:
    """Whether a mask is exactly the causal mask; the given hint, unless it is None.

    While a program is traced, a floating-point mask is never read and counts as not causal.
    """
    if given is not None or mask is None or (running_trace() is not None and mask.dtype == x.dtype):
        return bool(given)
    values = leaving(mask, "a mask that may be causal")
    causal = leaving(square_subsequent_mask(length, None, mask.dtype), "a constant")
    return values.shape == (length, length) and bool((values == causal).all())


def _length(x: Any, batch_first: bool) -> int:
    """Number of positions of (L, E), (L, N, E), or with batch_first (N, L, E)."""
    return int(x.size(1 if batch_first and x.dim() == 3 else 0))


class TransformerLayer(Module):
    """Base of the layers of encoder and decoder: attention, then two linear layers, each with dropout and a norm.

    Args:
        d_model: features of inputs and outputs.
        nhead: number of attention heads.
        dim_feedforward: features between the two linear layers.
        dropout: probability with which elements and attention weights are dropped in training mode.
        activation: activation between the linear layers: "relu", "gelu" or a function.
        layer_norm_eps: `eps` of the norms.
        batch_first: inputs and output are (N, L, E), not (L, N, E).
        norm_first: norms precede attention and linear layers (pre-norm) instead of following them.
        bias: whether linear layers and norms have biases.

    Raises:
        RuntimeError: for an unknown name of an activation.
    """

    _attentions: tuple[str, ...]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = F.relu if activation == "relu" else F.gelu
        self.activation = activation

    def _through(self, x: Tensor, *blocks: Callable[[Any], Any]) -> Tensor:
        """Apply the blocks, each with a residual connection."""
        for i, block in enumerate(blocks, 1):
            norm = getattr(self, f"norm{i}")
            x = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return x

    def _attended(self, i: int, x: Any, memory: Any, mask: Any, padding: Any, is_causal: bool) -> Any:
        attention, drop = getattr(self, self._attentions[i]), getattr(self, f"dropout{i + 1}")
        memory = x if memory is None else memory
        output, _ = attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )
        return drop(output)

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self._attended(0, x, None, attn_mask, key_padding_mask, is_causal)

    def _ff_block(self, x: Any) -> Any:
        drop = getattr(self, f"dropout{len(self._attentions) + 1}")
        return drop(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and a feed-forward network; arguments as TransformerLayer.

    Example:
        >>> tg.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)(tg.zeros(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    _attentions = ("self_attn",)

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        """Apply the layer to src (L, N, E), (N, L, E) with batch_first, or (L, E); masks as for MultiheadAttention."""
        names = "src_key_padding_mask", "src_mask"
        padding, mask = added_masks(src_key_padding_mask, src_mask, names, raw(src).dtype)
        return self._through(src, lambda x: self._sa_block(x, mask, padding, is_causal), self._ff_block)


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to the encoder's output and a feed-forward network; arguments as TransformerLayer."""

    _attentions = ("self_attn", "multihead_attn")

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self._attended(1, x, mem, attn_mask, key_padding_mask, is_causal)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Apply the layer to tgt (L, N, E) and the encoder's output (S, N, E); masks as for MultiheadAttention."""
        return self._through(
            tgt,
            lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
            lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal),
            self._ff_block,
        )


class TransformerStack(Module):
    """Base of encoder and decoder: a stack of copies of a layer, and an optional norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _length(self, x: Any) -> int:
        attention = self.layers[0].self_attn
        return _length(x, attention.batch_first)

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(TransformerStack):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer to copy.
        num_layers: number of copies.
        norm: applied to the output, if given.
        enable_nested_tensor, mask_check: stored as attributes, no other effect.

    Example:
        >>> layer = tg.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)
        >>> tg.nn.TransformerEncoder(layer, num_layers=2)(tg.zeros(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None
    ) -> Tensor:
        """Apply all layers to src; masks as for MultiheadAttention. is_causal=None checks whether the mask is causal."""
        padding, mask = added_masks(src_key_padding_mask, mask, ("src_key_padding_mask", "mask"), raw(src).dtype)
        causal = _is_causal(mask, is_causal, src, self._length(src))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return self._normed(src)


class TransformerDecoder(TransformerStack):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer to copy.
        num_layers: number of copies.
        norm: applied to the output, if given.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Apply all layers to tgt and the encoder's output; masks as for MultiheadAttention."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self._length(tgt))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return self._normed(tgt)


class Transformer(Module):
    """An encoder and a decoder that attends to its output.

    Attributes:
        encoder, decoder: TransformerEncoder and TransformerDecoder; Glorot uniform initialisation of all matrices.

    Args:
        d_model: features E of inputs and outputs.
        nhead: number of attention heads.
        num_encoder_layers, num_decoder_layers: numbers of layers.
        custom_encoder, custom_decoder: modules to use instead.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for TransformerLayer.

    Example:
        >>> net = tg.nn.Transformer(8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, batch_first=True)
        >>> net(tg.zeros(3, 5, 8), tg.zeros(3, 4, 8)).shape
        torch.Size([3, 4, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: Any = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Mask = None, tgt_mask: Mask = None, memory_mask: Mask = None,
        src_key_padding_mask: Mask = None, tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The decoder's output, of tgt's shape.

        Args:
            src: (S, N, E), with batch_first (N, S, E), or (S, E).
            tgt: (T, N, E), likewise.
            src_mask, tgt_mask, memory_mask: (S, S), (T, T) and (T, S), or one for each head; as for MultiheadAttention.
            src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask: (N, S), (N, T) and (N, S).
            src_is_causal, tgt_is_causal, memory_is_causal: hints that masks are causal; None: the mask is checked.

        Raises:
            RuntimeError: for inputs whose shapes do not match each other or d_model.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        output: Tensor = self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip
        return output

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """(sz, sz) with -inf above the diagonal and 0 elsewhere: position i attends to the positions up to i."""
        return square_subsequent_mask(sz, device, dtype)
