"""Interpreters of the table besides reverse mode: batches, tangents, series, Laplacians.

Imported for what they hand to the machine: see `core.protocols`.
"""

from . import connection as connection
