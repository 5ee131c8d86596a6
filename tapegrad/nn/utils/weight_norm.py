"""Weight normalisation by a hook (Salimans and Kingma 2016): weight = g * v / |v|."""

from __future__ import annotations

from typing import Any, TypeVar

from ...core.warning import warn
from ...ops import native, reduce
from ...tensor import Parameter
from ..module import Module

M = TypeVar("M", bound=Module)
