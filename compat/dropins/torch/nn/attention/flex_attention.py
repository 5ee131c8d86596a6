"""torch.nn.attention.flex_attention: tapegrad compiles no attention from a score function; one constant."""

_DEFAULT_SPARSE_BLOCK_SIZE = 128
