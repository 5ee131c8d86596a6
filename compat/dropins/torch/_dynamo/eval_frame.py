"""torch._dynamo.eval_frame: one name."""

from torch._dynamo import OptimizedModule as OptimizedModule
