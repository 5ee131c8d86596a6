"""The printed form of arrays, against literal expectations."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tensor import printing

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def default_options():
    printing.set_printoptions(profile="default")
    yield
    printing.set_printoptions(profile="default")


def shown(values, dtype=np.float32, *suffixes):
    return printing.tensor_repr(np.asarray(values, dtype), suffixes=list(suffixes))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (3.0, "tensor(3.)"),
        (3.1415927, "tensor(3.1416)"),
        (-0.0, "tensor(-0.)"),
        ([1, 3], "tensor([1., 3.])"),
        ([1.25, 3.5], "tensor([1.2500, 3.5000])"),
        ([-1.5, 22], "tensor([-1.5000, 22.0000])"),
        ([0.5, 500], "tensor([  0.5000, 500.0000])"),
        ([1e-5], "tensor([1.0000e-05])"),
        ([1e8], "tensor([100000000.])"),
        ([1e9], "tensor([1.0000e+09])"),
        ([1, 1000], "tensor([   1., 1000.])"),
        ([1, 1001], "tensor([1.0000e+00, 1.0010e+03])"),
        ([0.5, 501], "tensor([5.0000e-01, 5.0100e+02])"),
        ([0.5, 0], "tensor([0.5000, 0.0000])"),
        ([NAN, 1], "tensor([nan, 1.])"),
        ([NAN, INF, -INF], "tensor([nan, inf, -inf])"),
        ([NAN, 123456], "tensor([    nan, 123456.])"),
        ([INF, 1.5, -2], "tensor([    inf,  1.5000, -2.0000])"),
        ([-0.0, 0], "tensor([-0., 0.])"),
    ],
)
def test_floats(values, expected):
    assert shown(values) == expected


def test_the_largest_ratio_of_doubles():
    assert shown([1e308, 5e-324], np.float64) == "tensor([1.0000e+308, 4.9407e-324])"


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, -20, 300], np.int64, "tensor([  1, -20, 300])"),
        (7, np.int64, "tensor(7)"),
        ([True, False], bool, "tensor([ True, False])"),
        ([True, True], bool, "tensor([True, True])"),
        ([0.1, 2], np.float16, "tensor([0.1000, 2.0000])"),
    ],
)
def test_other_real_types(values, dtype, expected):
    assert shown(values, dtype) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (1 + 2j, "tensor(1.+2.j)"),
        (1.5 + 2j, "tensor(1.5000+2.j)"),
        (complex(1, -INF), "tensor(1.-infj)"),
        (complex(NAN, NAN), "tensor(nan+nanj)"),
        (complex(0, -0.0), "tensor(0.-0.j)"),
        ([-1, 1000j], "tensor([-1.+0.j,  0.+1000.j])"),
        ([1e-5 + 3j, 1000j], "tensor([1.0000e-05+3.j, 0.0000e+00+1000.j])"),
    ],
)
def test_complex(values, expected):
    assert shown(values, np.complex64) == expected


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert shown([1, 2.5], ml_dtypes.bfloat16) == "tensor([1.0000, 2.5000])"


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((0,), "tensor([])"), ((0, 3), "tensor([], size=(0, 3))"), ((2, 0), "tensor([], size=(2, 0))")],
)
def test_empty(shape, expected):
    assert shown(np.zeros(shape)) == expected


def test_size_goes_before_the_other_suffixes():
    assert shown(np.zeros((0, 3)), np.int32, "dtype=torch.int32") == "tensor([], size=(0, 3), dtype=torch.int32)"


def test_matrix():
    assert shown([[1, -2], [3, 4]], np.int64) == "tensor([[ 1, -2],\n        [ 3,  4]])"


def test_blank_lines_between_blocks():
    assert shown(np.zeros((2, 1, 2, 1))) == ("tensor([[[[0.],\n          [0.]]],\n\n\n        [[[0.],\n          [0.]]]])")


def test_name_sets_the_indent():
    text = printing.tensor_repr(np.eye(2), name="Parameter", suffixes=["requires_grad=True"])
    assert text == "Parameter([[1., 0.],\n           [0., 1.]], requires_grad=True)"
    assert printing.format_array(np.eye(2), 3) == "[[1., 0.],\n    [0., 1.]]"


def test_long_rows_wrap():
    assert shown(np.arange(25), np.int64) == (
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24])"
    )


def test_a_thousand_elements_are_all_printed():
    assert "..." not in shown(np.ones(1000))


def test_more_are_shortened():
    assert shown(np.ones(1001)) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"
    assert shown(np.arange(1800).reshape(9, 200), np.int64) == (
        "tensor([[   0,    1,    2,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  397,  398,  399],\n"
        "        [ 400,  401,  402,  ...,  597,  598,  599],\n"
        "        ...,\n"
        "        [1200, 1201, 1202,  ..., 1397, 1398, 1399],\n"
        "        [1400, 1401, 1402,  ..., 1597, 1598, 1599],\n"
        "        [1600, 1601, 1602,  ..., 1797, 1798, 1799]])"
    )


def test_hidden_elements_do_not_set_the_form():
    values = np.ones(2000)
    values[1000] = 1e20
    assert shown(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_suffixes():
    assert shown([1], np.float64, "dtype=torch.float64", "requires_grad=True") == (
        "tensor([1.], dtype=torch.float64, requires_grad=True)"
    )


def test_suffixes_that_do_not_fit_start_a_line():
    long = f"grad_fn=<{'M' * 50}Backward0>"
    assert shown([1.5, 2.5], np.float64, "dtype=torch.float64", long) == (
        f"tensor([1.5000, 2.5000], dtype=torch.float64,\n       {long})"
    )


@pytest.mark.parametrize(("length", "fits"), [(61, True), (62, False)])
def test_the_last_suffix_that_fits(length, fits):
    text = shown([1, 2], np.float32, "x" * length)
    assert text == f"tensor([1., 2.],{' ' if fits else chr(10) + ' ' * 7}{'x' * length})"


def test_the_given_suffixes_are_not_changed():
    suffixes = ["requires_grad=True"]
    printing.tensor_repr(np.zeros((0, 2)), suffixes=suffixes)
    assert suffixes == ["requires_grad=True"]


@pytest.mark.parametrize(
    ("dtype", "default", "needed", "needed_if_empty"),
    [
        ("float32", "float32", False, False),
        ("float64", "float32", True, True),
        ("float64", "float64", False, False),
        ("float32", "float64", True, True),
        ("float16", "float32", True, True),
        ("complex64", "float32", False, True),
        ("complex128", "float32", True, True),
        ("complex128", "float64", False, True),
        ("complex64", "float16", False, True),
        ("int64", "float32", False, True),
        ("int32", "float32", True, True),
        ("bool", "float32", False, True),
    ],
)
def test_needs_dtype_suffix(dtype, default, needed, needed_if_empty):
    pair = np.dtype(dtype), np.dtype(default)
    assert printing.needs_dtype_suffix(*pair) is needed
    assert printing.needs_dtype_suffix(*pair, empty=True) is needed_if_empty


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"precision": 2}, [1.25, 3.5], "tensor([1.25, 3.50])"),
        ({"precision": 0}, [1.25, 3.5], "tensor([1, 4])"),
        ({"sci_mode": True}, [1, 3], "tensor([1.0000e+00, 3.0000e+00])"),
        ({"sci_mode": True}, [0, NAN], "tensor([0., nan])"),
        ({"sci_mode": False}, [1, 1e-6, 3.5], "tensor([1.0000, 0.0000, 3.5000])"),
        ({"sci_mode": False}, [1e10, 1], "tensor([10000000000.,           1.])"),
        ({"edgeitems": 1, "threshold": 2}, [1, 2, 3], "tensor([1.,  ..., 3.])"),
        ({"edgeitems": 0, "threshold": 2}, [1, 2, 3], "tensor([...], size=(3,))"),
        ({"linewidth": 20}, [1.25, 3.5], "tensor([1.2500,\n        3.5000])"),
        ({"linewidth": 1}, [1, 3], "tensor([1.,\n        3.])"),
        ({"profile": "short"}, [1.25, 3.5], "tensor([1.25, 3.50])"),
        ({"profile": "short", "precision": 7}, [1.25], "tensor([1.2500000])"),
    ],
)
def test_options(options, values, expected):
    printing.set_printoptions(**options)
    assert shown(values) == expected


def test_full_profile_prints_everything():
    printing.set_printoptions(profile="full")
    assert shown(np.ones(3000)).count("1.") == 3000


def test_options_are_kept_but_sci_mode_is_not():
    printing.set_printoptions(precision=2, sci_mode=True)
    printing.set_printoptions(linewidth=60)
    assert printing.get_printoptions() == printing.PrintOptions(precision=2, linewidth=60, sci_mode=None)


def test_unknown_profile():
    with pytest.raises(ValueError, match="profile must be one of default, short, full, got 'long'"):
        printing.set_printoptions(profile="long")


def test_a_class_derived_from_parameter_shows_its_name():
    class Weight(tg.nn.Parameter):
        pass

    assert repr(Weight(tg.ones(2))) == "Parameter containing:\nParameter(Weight([1., 1.], requires_grad=True))"
    assert repr(tg.nn.Parameter(tg.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
