"""torch.testing._internal: a few helpers of PyTorch's own tests that others' tests use."""
