"""torch.sparse: tapegrad.sparse, with the older types and the switch of checks."""

import contextlib

import tapegrad
from tapegrad import compat
from tapegrad.tensor.legacy import TYPES, TensorType

compat.mirror(__name__, "tapegrad.sparse")


class _Type(TensorType):
    """An older name of the sparse tensors of one dtype: `FloatTensor(indices, values, size)` makes one."""

    def __call__(cls, *args, device=None):
        if len(args) < 2:
            return tapegrad.sparse_coo_tensor(*(args or [(0,)]), dtype=cls.dtype, device=device)
        return tapegrad.sparse_coo_tensor(*args, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance):
        return super().__instancecheck__(instance) and instance.is_sparse


for _name, _type in TYPES.items():
    globals()[_name] = _Type(_name, (), {"dtype": _type.dtype, "__module__": __name__})


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """Whether indices are checked: always, so that it is only remembered what was asked for."""

    _on = False

    def __init__(self, enable=True):
        self.state = enable

    @staticmethod
    def is_enabled():
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable():
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable():
        check_sparse_tensor_invariants._on = False

    def __enter__(self):
        self.before, check_sparse_tensor_invariants._on = self._on, self.state

    def __exit__(self, *exc):
        check_sparse_tensor_invariants._on = self.before
