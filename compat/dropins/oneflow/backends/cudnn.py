"""oneflow.backends.cudnn: not there; its switches can be set and change nothing."""

benchmark = deterministic = enabled = False
