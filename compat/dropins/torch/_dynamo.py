"""torch._dynamo: nothing is compiled; see torch.compiler."""

import types

from torch.compiler import *  # noqa: F403
from torch.compiler import _as_it_is

disable = optimize = skip = run = _as_it_is
config = types.SimpleNamespace()  # settings that nobody reads


class OptimizedModule:
    """What PyTorch's compile makes of a module. Here it gives the module itself: nothing is one of these."""
