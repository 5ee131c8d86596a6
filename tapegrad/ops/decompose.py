"""Decompositions, solvers and functions of matrices."""

from __future__ import annotations
