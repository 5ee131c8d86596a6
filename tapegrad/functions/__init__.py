"""The public functions: PyTorch's signatures, checks and defaults, and what is composed of several operations."""
