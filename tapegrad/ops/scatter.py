"""Scattering with a reduction, and writing into parts of a tensor."""

from __future__ import annotations
