"""oneflow.backends.cuda: not there; its switches can be set and change nothing."""

import types

matmul = types.SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)
