"""torch.serialization: tapegrad's, and PyTorch's names of types."""

from collections.abc import Callable

from torch import device

MAP_LOCATION = Callable | device | str | dict[str, str] | None
