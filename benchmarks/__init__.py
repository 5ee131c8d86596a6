"""Ratios of tapegrad to PyTorch; `python -m benchmarks` runs all, `python -m benchmarks tiny eikonal` some."""
