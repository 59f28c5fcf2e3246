"""Code for which Python raises: refused, or reported by debug mode and by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

NOTHING = None
ZERO = 0


@dp.device_func
def sums_in_steps(start: Any, step: Any) -> Any:
    total = 0
    for number in range(start, 3, step):
        total += number
    return total


@dp.device_func
def positive(value: Any) -> Any:
    if value > 0:
        return value
    return None


@dp.device_func
def or_eight(value: Any) -> Any:
    return 8 if value is None else value


def range_of_no_step(item: Any, x: Any, n: Any) -> None:
    for _ in range(0, 10, n - 3):  # here
        x[0] += 1
    x[1] = 7


def slice_of_no_step(item: Any, x: Any, n: Any) -> None:
    x[0] += len(x[:: n - 3])  # here
    x[1] = 7


def in_a_device_function(item: Any, x: Any, n: Any) -> None:
    x[0] += sums_in_steps(1, n - 3)
    x[1] = 7


def item_of_no_tuple(item: Any, x: Any, n: Any) -> None:
    x[0] = (1, 2)[n]  # here
    x[1] = 7


def names_of_an_array(item: Any, x: Any, n: Any) -> None:
    a, b = x[:n]  # here
    x[1] = 7 + 0 * (a + b)


def unknown_dimension(item: Any, x: Any, n: Any) -> None:
    x[0] += 0 * item.get_range(n)  # here
    x[1] = 7


def unknown_named_dimension(item: Any, x: Any, n: Any) -> None:
    x[0] += 0 * item.get_id(dim=-n)  # here
    x[1] = 7


RUN_TIME = [
    (range_of_no_step, "the step of range(0, 10, n - 3) is 0", "range(0, 10, n - 3) is 0"),
    (slice_of_no_step, "the step of the slice ::n - 3 is 0", "::n - 3"),
    (
        in_a_device_function,
        "the step of range(start, 3, step) is 0 in sums_in_steps",
        "the step of range(start, 3, step) is 0",
    ),
    (item_of_no_tuple, "index 3 is out of bounds of (1, 2)", "(1, 2)[3], outside its"),
    (names_of_an_array, "2 names are assigned from x[:n], whose shape is (3,)", "2 names"),
    (unknown_dimension, "item.get_range(n) asks for dimension 3 of 1", "dimension 3 of 1"),
    (unknown_named_dimension, "asks for dimension -3 of 1", "dimension -3 of 1"),
]


@pytest.mark.parametrize(
    ("function", "problem", "simulated"), RUN_TIME, ids=[one[0].__name__ for one in RUN_TIME]
)
def test_errors_found_at_run_time_are_reported_and_end_no_work_item(
    function: Callable[..., Any], problem: str, simulated: str
) -> None:
    kernel = dp.kernel(function)
    x = dp.ones(8)
    kernel[1](x, 3)
    assert x.tolist() == [1, 7, 1, 1, 1, 1, 1, 1]

    with (
        dp.config.override(debug=True),
        pytest.raises(dp.KernelExecutionError) as caught,
    ):
        kernel[1](dp.ones(8), 3)
    assert problem in str(caught.value)
    assert "test_kernel_exceptions.py:" in str(caught.value)

    with pytest.raises(dp.SimulationError) as reported:
        dp.simulate(kernel, 1, np.ones(8), 3)
    assert simulated in str(reported.value)


@pytest.mark.parametrize("debug", [False, True])
def test_items_of_arrays_and_tuples_can_be_unpacked(debug: bool) -> None:
    @dp.kernel
    def kernel(item: Any, x: Any, y: Any) -> None:
        i = item.get_id(0)
        a, b = x[i]
        (y[i, 0], c), d = (b, a), 10
        for one, other in zip((1, 2), (3, 4)):  # noqa: B905
            d += one * other
        y[i, 1] = c + d

    x, y = dp.asarray([[1, 2], [3, 4]]), dp.zeros((2, 2), dtype="int64")
    with dp.config.override(debug=debug):
        kernel[2](x, y)
    assert y.tolist() == [[2, 22], [4, 24]]


def range_of_step_zero(item: Any, x: Any) -> None:
    for _ in range(0, 10, 0):  # here
        x[0] = 1


def range_of_captured_zero(item: Any, x: Any) -> None:
    for _ in range(10, 0, ZERO):  # here
        x[0] = 1


def slice_of_step_zero(item: Any, x: Any) -> None:
    x[0] = len(x[::0])  # here


def third_dimension(item: Any, x: Any) -> None:
    x[item.get_id(2)] = 1  # here


def negative_dimension(item: Any, x: Any) -> None:
    x[item.get_range(dim=-1)] = 1  # here


def third_of_a_tuple(item: Any, x: Any) -> None:
    x[0] = (1, 2)[2]  # here


def stores_nothing(item: Any, x: Any) -> None:
    x[0] = NOTHING  # here


def adds_nothing(item: Any, x: Any) -> None:
    x[0] += NOTHING  # here


def stores_perhaps_nothing(item: Any, x: Any) -> None:
    x[0] = NOTHING if x[1] else 2  # here


def range_of_a_float(item: Any, x: Any) -> None:
    for i in range(x.shape[0] / 2):  # here
        x[i] = 5


def slice_of_a_float(item: Any, x: Any) -> None:
    x[0] = len(x[: x[1]])  # here


def stores_what_may_be_none(item: Any, x: Any) -> None:
    x[0] = positive(-x[1])  # here


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (range_of_step_zero, "the step of a range is not 0"),
        (range_of_captured_zero, "the step of "),
        (slice_of_step_zero, "the step of a slice is not 0"),
        (range_of_a_float, "the bounds of a range are integers, and one is float64: convert it"),
        (slice_of_a_float, "the bounds of a slice are integers, and one is float64: convert it"),
        (third_dimension, "the range of this kernel has only dimension 0; got dimension 2"),
        (negative_dimension, "the range of this kernel has only dimension 0; got dimension -1"),
        (third_of_a_tuple, "a tuple of 2 has no item 2"),
        (stores_nothing, "a value used here is None, which cannot be stored or computed with"),
        (adds_nothing, "a value used here is None, which cannot be stored or computed with"),
        (stores_perhaps_nothing, "is None on some path, where int64 is needed"),
        (stores_what_may_be_none, "is None on some path, where float64 is needed"),
    ],
)
def test_errors_seen_by_the_compiler_show_line_and_caret(
    function: Callable[..., Any], advice: str, debug: bool
) -> None:
    x = dp.ones(2)
    with dp.config.override(debug=debug), pytest.raises(dp.KernelError) as caught:
        dp.kernel(function)[1](x)
    message = str(caught.value)
    assert advice in message
    assert "# here" in message
    assert "^" in message
    assert "dparray_fault" not in message
    assert x.tolist() == [1, 1]
    with pytest.raises(dp.SimulationError, match="# here"):
        dp.simulate(function, 1, np.ones(2))


def test_in_two_dimensions_the_error_names_both() -> None:
    with pytest.raises(dp.KernelCompileError, match="has dimensions 0 to 1; got dimension 2"):
        dp.kernel(third_dimension)[2, 2](dp.ones(3))


@pytest.mark.parametrize("debug", [False, True])
def test_a_kernel_may_ask_whether_a_value_is_none(debug: bool) -> None:
    @dp.kernel
    def kernel(item: Any, x: Any) -> None:
        if NOTHING is None:
            x[0] = 5
        x[1] = or_eight(NOTHING) + or_eight(1)
        x[2] = or_eight(positive(-x[2])) + or_eight(positive(x[2]))

    x = dp.ones(3)
    with dp.config.override(debug=debug):
        kernel[1](x)
    assert x.tolist() == [5, 9, 9]
    host = np.ones(3)
    dp.simulate(kernel, 1, host)
    assert host.tolist() == [5, 9, 9]


def test_conditions_tell_what_is_none() -> None:
    @dp.kernel
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        found = positive(x[i])
        if found is not None and found > 2:
            out[i] = found
        if not (found is None or found > 2):
            out[i] = -found
        if found is None:
            return
        out[i] *= found

    out = dp.zeros(3)
    kernel[3](dp.asarray([-1.0, 2.0, 3.0]), out)
    assert out.tolist() == [0, -4, 9]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_floats_by_integers_have_no_exception(dtype: str) -> None:
    @dp.kernel
    def kernel(item: Any, x: Any, exponents: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i] = x[i] ** exponents[i]

    exponents = np.array([0, 1, 3, -2, -1, 70000, -(2**63)])
    x = np.array([0.0, 2.5, -1.5, 4.0, 0.0, 1.0001, 1.5], dtype)
    y = dp.zeros(x.size, dtype=dtype)
    kernel[x.size](dp.asarray(x), dp.asarray(exponents), y)
    with np.errstate(divide="ignore"):
        expected = x.astype("float64") ** exponents
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6)


def test_a_kernel_for_any_number_of_dimensions_may_name_them_all() -> None:
    @dp.kernel
    def kernel(item: Any, x: Any) -> None:
        if item.dimensions == 1:
            x[item.get_id(0)] = item.get_linear_id()
        else:
            x[item.get_id(1)] = item.get_linear_id()

    for size in (3, (1, 3)):
        x = dp.zeros(3)
        kernel[size](x)
        assert x.tolist() == [0, 1, 2]


def test_messages_have_no_colors_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = pytest.importorskip("numba.core.errors")

    @dp.kernel
    def joins(item: Any, x: Any) -> None:
        x[0] = x[0] + "text"

    # With the package colorama, Numba writes such sequences.
    for kind in ("highlight", "errmsg", "code", "indicate"):
        monkeypatch.setattr(
            errors.termcolor(), kind, lambda text: f"\x1b[1m{text}\x1b[0m", raising=False
        )
    with pytest.raises(dp.KernelCompileError) as caught:
        dp.call_kernel(joins, dp.Range(1), dp.ones(2))
    assert "\x1b" not in str(caught.value) + caught.value.details
