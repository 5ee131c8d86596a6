"""Elementwise kernels, reductions, shapes and orders for JAX."""

from __future__ import annotations
