"""The tensor: the facade in front of the machine."""

from . import connection as connection
from .tensor import Tensor as Tensor
from .tensor import _rebuild_shared as _rebuild_shared
from .tensor import rebuild as rebuild
from .tensor import set_default_tensor_type as set_default_tensor_type
