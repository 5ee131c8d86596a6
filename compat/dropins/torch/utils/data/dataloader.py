"""torch.utils.data.dataloader: tapegrad's loader, and names of types."""

from collections.abc import Callable
from typing import Any

from tapegrad.utils.data.dataloader import __all__ as __all__

_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]
_sharding_worker_init_fn_t = Callable[..., None]
