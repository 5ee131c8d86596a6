"""Whole functions, gradients included, as programs of XLA."""
