"""torch._functorch: the private home of torch.func."""
