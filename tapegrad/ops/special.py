"""Special functions: the gamma, error and Bessel families, and what is made of them."""

from __future__ import annotations
