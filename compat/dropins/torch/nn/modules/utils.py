"""torch.nn.modules.utils: a number or a tuple, to a tuple."""

from collections.abc import Iterable
from itertools import repeat

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> object:
    def parse(x: object) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """Its items, the last first, each n times."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: list, defaults: list) -> object:
    """The sizes, with those that are None from the end of defaults."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :], strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Take a prefix such as "module." off the keys of a state_dict, in place."""
    for table in (state_dict, getattr(state_dict, "_metadata", None) or {}):
        for key in [k for k in table if k.startswith(prefix) or k == prefix[:-1]]:
            value = table.pop(key)
            if key.startswith(prefix):
                table[key[len(prefix) :]] = value
            elif key:
                table[""] = value
