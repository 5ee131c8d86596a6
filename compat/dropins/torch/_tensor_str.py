"""torch._tensor_str: how tensors are printed, by its private names that programs use."""

from tapegrad.tensor import printing as _printing


class _Options:
    """The options of set_printoptions that are in force."""

    def __getattr__(self, name: str) -> object:
        return getattr(_printing.get_printoptions(), name)


PRINT_OPTS = _Options()


def _tensor_str(t: object, indent: int) -> str:
    """The numbers of a tensor as print shows them, without "tensor(" and what follows the numbers."""
    return _printing.format_array(t.detach().resolve_conj().numpy(), indent)
