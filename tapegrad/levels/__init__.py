"""Interpreters of the table besides reverse mode: batches, tangents, series, Laplacians.

Imported for what they hand to the machine: see `core.record.Services`.
"""

from . import batched_gradient as batched_gradient
