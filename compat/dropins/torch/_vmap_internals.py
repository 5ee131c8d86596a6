"""PyTorch's private names of vmap, which some programs import."""

from tapegrad.func import vmap as vmap

_vmap = vmap
