"""Helpers: flat vectors of nested containers, optimisers, fixed points."""

from autograd.misc.flatten import flatten
from autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
