"""Names for annotations of layers' sizes, in the forms of `typing`, whose parts OneFlow's programs take apart."""

from typing import Tuple, TypeVar, Union  # noqa: UP035

T = TypeVar("T")
_scalar_or_tuple_any_t = Union[T, Tuple[T, ...]]  # noqa: UP006, UP007
for _n in range(1, 7):
    globals()[f"_scalar_or_tuple_{_n}_t"] = Union[T, Tuple[(T,) * _n]]  # noqa: UP006, UP007
    globals()[f"_size_{_n}_t"] = Union[int, Tuple[(int,) * _n]]  # noqa: UP006, UP007
_size_any_t = _scalar_or_tuple_any_t[int]
_ratio_2_t, _ratio_3_t = (Union[float, Tuple[(float,) * n]] for n in (2, 3))  # noqa: UP006, UP007
_ratio_any_t = _scalar_or_tuple_any_t[float]
