"""The Transformer and its layers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..core.record import running_trace
from ..functions import create, shape
from ..functions.attention import added_masks
from ..programs.tracing import reads
from ..tensor.tensor import Tensor, raw
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
    """Whether a mask closes just what is later; as given, unless that is None.

    A program that is traced takes any mask that can be added for one that is not known to be causal.
    """
    if given is not None or mask is None or (running_trace() is not None and mask.dtype == x.dtype):
        return bool(given)
    reads(mask, "a mask that may be causal")
    values = raw(mask)
    return values.shape == (length, length) and bool((values == raw(square_subsequent_mask(length, None, mask.dtype))).all())


def _length(x: Any, batch_first: bool) -> int:
    """Number of positions of (L, E), (L, N, E), or with batch_first (N, L, E)."""
    return x.size(1 if batch_first and x.dim() == 3 else 0)  # type: ignore[no-any-return]


class TransformerLayer(Module):
    """Base of the layers of encoder and decoder: attention, then two linear maps, each with dropout and a norm.

    Args:
        d_model: features of inputs and outputs.
        nhead: heads of the attention.
        dim_feedforward: features between the two linear maps.
        dropout: probability with which elements and weights of the attention are dropped in training mode.
        activation: between the linear maps: "relu", "gelu" or a function.
        layer_norm_eps: `eps` of the norms.
        batch_first: inputs and output are (N, L, E), not (L, N, E).
        norm_first: the norms come before attention and linear maps, not after.
        bias: whether linear maps and norms have biases.

    Raises:
        RuntimeError: for the name of another activation.
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

    def _through(self, x: Any, *blocks: Callable[[Any], Any]) -> Any:
        """x through the blocks, each beside a path that skips it."""
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
    """Self-attention and two linear maps; arguments as TransformerLayer."""

    _attentions = ("self_attn",)

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        """The layer on src (L, N, E), (N, L, E) with batch_first, or (L, E); masks as of MultiheadAttention."""
        names = "src_key_padding_mask", "src_mask"
        padding, mask = added_masks(src_key_padding_mask, src_mask, names, raw(src).dtype)
        return self._through(src, lambda x: self._sa_block(x, mask, padding, is_causal), self._ff_block)  # type: ignore[no-any-return]


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to the encoder's output and two linear maps; arguments as TransformerLayer."""

    _attentions = ("self_attn", "multihead_attn")

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self._attended(1, x, mem, attn_mask, key_padding_mask, is_causal)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The layer on tgt (L, N, E) and the encoder's output (S, N, E); masks as of MultiheadAttention."""
        return self._through(  # type: ignore[no-any-return]
            tgt,
            lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
            lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal),
            self._ff_block,
        )


class TransformerStack(Module):
    """Base of encoder and decoder: copies of a layer, one after the other, and a norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _length(self, x: Any) -> int:
        attention = self.layers[0].self_attn
        return _length(x, attention.batch_first)

    def _normed(self, x: Any) -> Any:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(TransformerStack):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer, of which all layers are copies.
        num_layers: their number.
        norm: applied last, if any.
        enable_nested_tensor, mask_check: of no effect on the result here; kept as attributes.
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
        """src through all layers; masks as of MultiheadAttention. Whether `mask` is causal is found out for None."""
        padding, mask = added_masks(src_key_padding_mask, mask, ("src_key_padding_mask", "mask"), raw(src).dtype)
        causal = _is_causal(mask, is_causal, src, self._length(src))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return self._normed(src)  # type: ignore[no-any-return]


class TransformerDecoder(TransformerStack):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer, of which all layers are copies.
        num_layers: their number.
        norm: applied last, if any.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """tgt and the encoder's output through all layers; masks as of MultiheadAttention."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self._length(tgt))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return self._normed(tgt)  # type: ignore[no-any-return]


class Transformer(Module):
    """An encoder and a decoder that attends to its output.

    Args:
        d_model: features E of inputs and outputs.
        nhead: heads of the attention.
        num_encoder_layers, num_decoder_layers: layers of each.
        custom_encoder, custom_decoder: modules in their place.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as of TransformerLayer.

    Attributes:
        encoder, decoder: TransformerEncoder and TransformerDecoder; all matrices by Glorot's uniform initialisation.
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
            src_mask, tgt_mask, memory_mask: (S, S), (T, T) and (T, S), or one for each head; as of MultiheadAttention.
            src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask: (N, S), (N, T) and (N, S).
            src_is_causal, tgt_is_causal, memory_is_causal: hints that masks are causal; None: it is found out.

        Raises:
            RuntimeError: for inputs that do not fit one another, or d_model.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """(sz, sz) with -inf above the diagonal and 0 elsewhere: position i attends to the positions up to i."""
        return square_subsequent_mask(sz, device, dtype)
