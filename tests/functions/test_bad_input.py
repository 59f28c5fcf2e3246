"""Bad input raises one exception of a documented class.

Its message states the value that was given and the values that are allowed. Nothing crashes, and
nothing is partially written.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.standin import Queue, StandIn
from tests.support import Launch, launched

CPU = dp.Device("cpu")
NAME = CPU.filter_string
Case = tuple[Callable[[SimpleNamespace], Any], type[BaseException], str]


@dp.kernel
def increment(item, x):
    i = item.get_id(0)
    x[i] = x[i] + 1


@dp.kernel
def increment_in_groups(item, x):
    i = item.get_global_id(0)
    x[i] = x[i] + 1


@dp.kernel
def scale(item, x, factor):
    i = item.get_id(0)
    x[i] = factor


@dp.kernel
def add(item, x, y, out):
    i = item.get_id(0)
    out[i] = x[i] + y[i]


@dp.kernel
def through_local(item, x, local):
    local[item.get_local_id(0)] = x[item.get_global_id(0)]
    x[item.get_global_id(0)] = local[item.get_local_id(0)]


@pytest.fixture
def given() -> Iterator[SimpleNamespace]:
    """Return arrays that bad input must not change, and a queue that they are not on."""
    arrays = {
        "x": dp.arange(10, dtype="float32"),
        "y": dp.ones(10, dtype="float32"),
        "out": dp.full(10, 5, dtype="float32"),
        "i": dp.arange(10),
    }
    before = {name: dp.asnumpy(array) for name, array in arrays.items()}
    yield SimpleNamespace(**arrays, queue=CPU.new_queue().queue)
    for name, array in arrays.items():
        np.testing.assert_array_equal(dp.asnumpy(array), before[name], f"{name} has been changed")


@pytest.fixture
def launches() -> Iterator[list[Launch]]:
    """Record the launches of kernels."""
    with launched() as seen:
        yield seen


def expect(case: Callable[[], Any], kind: type[BaseException], message: str) -> BaseException:
    """Expect the exception of ``case``: of this dparray class, and with this message."""
    with pytest.raises(kind, match=message) as caught:
        case()
    assert isinstance(caught.value, dp.DparrayError)
    assert type(caught.value).__name__ in dp.exceptions.__all__
    return caught.value


def table(**rows: Case) -> Any:
    return pytest.mark.parametrize(
        ("case", "kind", "message"), rows.values(), ids=[name.replace("_", " ") for name in rows]
    )


# --- devices ----------------------------------------------------------------------------------


@table(
    no_such_device=(
        lambda g: dp.ones(3, device="nonsense"),
        dp.DeviceError,
        rf"no device matches 'nonsense'; available: {NAME}",
    ),
    no_such_number=(
        lambda g: dp.Device("opencl:cpu:99"),
        dp.DeviceError,
        rf"no device matches 'opencl:cpu:99'; available: {NAME}",
    ),
    no_such_kind=(
        lambda g: g.x.to_device("accelerator"),
        dp.DeviceError,
        rf"no device matches 'accelerator'; available: {NAME}",
    ),
    empty_name=(lambda g: dp.Device(""), dp.DeviceError, r"no device matches ''; available: "),
    a_number=(
        lambda g: dp.ones(3, device=3),
        dp.DeviceError,
        rf"3 of type int is not a device; pass a filter string \(available: {NAME}",
    ),
    a_name_for_a_queue=(
        lambda g: dp.ones(3, sycl_queue="cpu"),
        dp.DeviceError,
        r"'cpu' of type str is not a queue; pass a dpctl.SyclQueue",
    ),
    default_device=(
        lambda g: dp.set_default_device("fpga"),
        dp.DeviceError,
        r"no device matches 'fpga'",
    ),
    device_and_queue_that_disagree=(
        lambda g: dp.ones(3, device=g.x.device, sycl_queue=g.queue),
        dp.DeviceError,
        rf"device= and sycl_queue= disagree: device is {NAME}, default queue, sycl_queue "
        rf"is on {NAME}, queue #\d+; pass one of the two",
    ),
    sub_devices_too_large=(
        lambda g: CPU.create_sub_devices(10_000),
        dp.DeviceError,
        r"cannot be split with partition=10000\b.*; pass a number",
    ),
    sub_devices_of_nothing=(
        lambda g: CPU.create_sub_devices(0),
        dp.DeviceError,
        r"cannot be split with partition=0",
    ),
    sub_devices_negative=(
        lambda g: CPU.create_sub_devices(-1),
        dp.DeviceError,
        r"cannot be split with partition=-1",
    ),
    sub_devices_of_no_domain=(
        lambda g: CPU.create_sub_devices("nonsense"),
        dp.DeviceError,
        r"cannot be split with partition='nonsense'",
    ),
    sub_devices_of_a_fraction=(
        lambda g: CPU.create_sub_devices(1.5),
        dp.DeviceError,
        r"cannot be split with partition=1.5",
    ),
    memory_of_no_device=(
        lambda g: dp.memory.stats("fpga"),
        dp.DeviceError,
        r"no device matches 'fpga'",
    ),
)
def test_devices(given: Any, case: Any, kind: Any, message: str) -> None:
    default = dp.default_device()
    expect(lambda: case(given), kind, message)
    assert dp.default_device() == default


# --- dtypes, USM types and shapes -------------------------------------------------------------

DTYPES = r"expected one of bool, int8, .*float64, complex64, complex128"
USM_TYPES = r"expected one of 'device', 'shared', 'host'"


@table(
    no_such_dtype=(
        lambda g: dp.ones(3, dtype="float99"), dp.DTypeError, rf"'float99'; {DTYPES}"),
    long_double=(
        lambda g: dp.ones(3, dtype=np.longdouble), dp.DTypeError, DTYPES),
    objects=(lambda g: dp.empty(3, dtype=object), dp.DTypeError, DTYPES),
    records=(lambda g: dp.zeros(3, dtype=[("a", "f4")]), dp.DTypeError, DTYPES),
    astype=(lambda g: g.x.astype("nonsense"), dp.DTypeError, rf"'nonsense'; {DTYPES}"),
    strings=(lambda g: dp.asarray(["a", "b"]), dp.DTypeError, r"\['a', 'b'\] is not numeric"),
    nothing=(lambda g: dp.asarray(None), dp.DTypeError, r"None is not numeric"),
    integer_too_large=(lambda g: dp.asarray(10**30), dp.DTypeError, r"asarray: int 10{30} "),
    bits_of_floats=(
        lambda g: g.x & 1, dp.DTypeError, r"bitwise_and: not defined for float32, int"),
    shift_of_floats=(
        lambda g: g.x << 1, dp.DTypeError, r"not defined for float32, int; convert with"),
    out_of_another_dtype=(
        lambda g: dp.add(g.x, g.y, out=g.i),
        dp.DTypeError,
        r"the result of dtype float32 does not fit out of dtype int64",
    ),
    complex_into_real=(
        lambda g: g.x.__setitem__(0, 1j), dp.DTypeError, r"1j does not fit into float32"),
    array_as_index=(
        lambda g: [1, 2, 3][g.x[0]], dp.DTypeError, r"dtype float32 cannot be an index"),
    no_such_usm_type=(
        lambda g: dp.ones(3, usm_type="managed"), dp.UsmTypeError, rf"'managed'; {USM_TYPES}"),
    empty_usm_type=(lambda g: dp.zeros(3, usm_type=""), dp.UsmTypeError, rf"''; {USM_TYPES}"),
    usm_type_in_capitals=(
        lambda g: dp.asarray([1], usm_type="Device"), dp.UsmTypeError, rf"'Device'; {USM_TYPES}"),
    negative_shape=(
        lambda g: dp.ones((2, -3)), dp.ShapeError, r"\(2, -3\) has a negative size"),
    shape_of_a_fraction=(lambda g: dp.ones(1.5), dp.ShapeError, r"shape must be .*, not 1.5"),
    shape_of_text=(lambda g: dp.empty("abc"), dp.ShapeError, r"shape must be an int.*, not 'abc'"),
    no_shape=(lambda g: dp.empty(None), dp.ShapeError, r"shape must be an integer .*, not None"),
    too_many_dimensions=(lambda g: dp.ones((1,) * 65), dp.ShapeError, r"65"),
    ragged_lists=(lambda g: dp.asarray([[1, 2], [3]]), dp.ShapeError, r"do not form an array"),
    broadcast=(
        lambda g: g.x + dp.ones(3), dp.ShapeError, r"add: shapes \(10,\) and \(3,\) do not"),
    matrix_product=(
        lambda g: g.x @ dp.ones(3), dp.ShapeError, r"10 columns against 3 rows"),
    reshape=(
        lambda g: g.x.reshape(3, 4),
        dp.ShapeError,
        r"shape \(10,\) with 10 elements cannot become \(3, 4\)",
    ),
    assignment=(
        lambda g: g.x.__setitem__(slice(2, 5), dp.ones(4)),
        dp.ShapeError,
        r"shape \(4,\) does not broadcast to \(3,\)",
    ),
    out_too_small=(lambda g: dp.add(g.x, g.y, out=dp.ones(3)), dp.ShapeError, r"\(10,\)"),
    concatenation=(
        lambda g: dp.concat([g.x, dp.ones((2, 2))]), dp.ShapeError, r"\(2, 2\).*\(10,\)"),
    concatenation_of_nothing=(lambda g: dp.concat([]), dp.ShapeError, r"at least one array"),
    maximum_of_nothing=(lambda g: dp.max(dp.ones(0)), dp.ShapeError, r"\(0,\) must not be empty"),
    truth_of_many=(lambda g: bool(g.x), dp.ShapeError, r"use dp.any\(x\) or dp.all\(x\)"),
    scalar_of_many=(lambda g: float(g.x), dp.ShapeError, r"\(10,\); use x.item\(i\)"),
    axis=(lambda g: dp.sum(g.x, axis=1), dp.AxisError, r"axis 1 .*; it runs from -1 to 0"),
    axis_of_a_permutation=(
        lambda g: dp.permute_dims(g.x, (0, 1)), dp.AxisError, r"axis 1 is outside an array"),
)  # fmt: skip
def test_dtypes_usm_types_and_shapes(given: Any, case: Any, kind: Any, message: str) -> None:
    expect(lambda: case(given), kind, message)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (10, "index 10 is out of bounds for axis 0"),
        (-11, "index -11 is out of bounds for axis 0"),
        ([3, 100], "index 100 is out of bounds for axis 0"),
        ((1, 2), "the array has 1 dimension, but 2 were indexed"),
        (1.5, "integers, slices"),
        ("a", "integers, slices"),
    ],
)
def test_an_index_that_is_not_there_is_pythons_error_and_writes_nothing(
    given: Any, index: Any, message: str
) -> None:
    with pytest.raises(IndexError, match=message):
        given.x[index]
    with pytest.raises(IndexError, match=message):
        given.x[index] = 7


@table(
    numpy_on_the_right=(
        lambda g: g.x + np.ones(10, "f4"),
        dp.HostConversionError,
        r"x2 is a NumPy array .* x2 = dp.asarray\(x2\)",
    ),
    numpy_on_the_left=(
        lambda g: np.ones(10, "f4") + g.x,
        dp.HostConversionError,
        r"x1 is a NumPy array",
    ),
    numpy_of_ours=(lambda g: np.asarray(g.x), dp.HostConversionError, r"x.asnumpy\(\)"),
    a_list_of_text=(lambda g: dp.sin(["a", "b"]), dp.DTypeError, r"sin: list .* is not numeric"),
    text=(lambda g: g.x + "a", dp.HostConversionError, r"x2 of type str is neither"),
    nothing=(lambda g: dp.sqrt(None), dp.HostConversionError, r"x of type NoneType is neither"),
    out_that_is_no_array=(lambda g: dp.sin(g.x, out=3), dp.HostConversionError, r"out"),
    fill_value=(lambda g: dp.full(3, "abc"), dp.HostConversionError, r"fill_value of type str"),
    assigned_text=(
        lambda g: g.x.__setitem__(slice(3), "abc"),
        dp.HostConversionError,
        r"value of type str",
    ),
    numpy_in_a_kernel=(
        lambda g: dp.call_kernel(increment, dp.Range(10), np.ones(10)),
        dp.HostConversionError,
        r"argument 'x' is a NumPy array, .*: x = dp.asarray\(x\)",
    ),
)
def test_host_data(given: Any, case: Any, kind: Any, message: str) -> None:
    expect(lambda: case(given), kind, message)


# --- ranges -----------------------------------------------------------------------------------


LARGEST = CPU.traits.group


@table(
    negative=(lambda g: dp.Range(4, -1), dp.KernelRangeError, r"dimension 1 .*; got -1"),
    fraction=(lambda g: dp.Range(1.5), dp.KernelRangeError, r"an integer; got 1.5 of type float"),
    text=(lambda g: dp.Range("a"), dp.KernelRangeError, r"an integer; got 'a' of type str"),
    no_dimension=(lambda g: dp.Range(), dp.KernelRangeError, r"1, 2 or 3 dimensions; got 0"),
    four_dimensions=(
        lambda g: dp.Range(1, 2, 3, 4), dp.KernelRangeError, r"1, 2 or 3 dimensions; got 4"),
    local_size_that_does_not_divide=(
        lambda g: dp.NdRange(10, 3),
        dp.KernelRangeError,
        r"local size 3 does not divide the global size 10 in dimension 0; use 12",
    ),
    local_size_of_nothing=(lambda g: dp.NdRange(10, 0), dp.KernelRangeError, r"positive; got 0"),
    dimensions_that_differ=(
        lambda g: dp.NdRange((4, 4), 4), dp.KernelRangeError, r"2 dimensions .* has 1"),
    no_range=(
        lambda g: dp.call_kernel(increment, None, g.x), dp.KernelRangeError, r"got None of type"),
    text_for_a_range=(
        lambda g: dp.call_kernel(increment, "a", g.x), dp.KernelRangeError, r"'a'"),
    a_negative_tuple=(
        lambda g: dp.call_kernel(increment, (-5,), g.x), dp.KernelRangeError, r"got -5"),
    an_empty_tuple=(
        lambda g: dp.call_kernel(increment, (), g.x), dp.KernelRangeError, r"got 0"),
    a_tuple_of_four=(
        lambda g: dp.call_kernel(increment, (1, 1, 1, 1), g.x), dp.KernelRangeError, r"got 4"),
    a_tuple_of_text=(
        lambda g: dp.call_kernel(increment, ("a",), g.x), dp.KernelRangeError, r"got 'a'"),
    more_items_than_an_index_counts=(
        lambda g: dp.call_kernel(increment_in_groups, dp.NdRange(2**31, 1), g.x),
        dp.KernelRangeError,
        r"increment_in_groups: .* has 2147483648 work-items in dimension 0.* from 1 to 2147483647",
    ),
    a_group_larger_than_the_device_allows=(
        lambda g: dp.call_kernel(increment_in_groups, dp.NdRange(2 * LARGEST, 2 * LARGEST), g.x),
        dp.KernelRangeError,
        rf"is {2 * LARGEST} work-items; .* allows {LARGEST} in a group .*smaller local size",
    ),
    a_group_too_large_in_two_dimensions=(
        lambda g: dp.call_kernel(
            increment_in_groups, dp.NdRange((LARGEST, 2), (LARGEST, 2)), g.x),
        dp.KernelRangeError,
        rf"is {2 * LARGEST} work-items; .* allows {LARGEST} in a group",
    ),
)  # fmt: skip
def test_ranges(given: Any, launches: list[Launch], case: Any, kind: Any, message: str) -> None:
    expect(lambda: case(given), kind, message)
    assert not launches


# --- arguments of kernels ---------------------------------------------------------------------

ACCEPTED = r"; a kernel takes arrays of dparray, .* and Python or NumPy scalars"
CONSTANTS = r", which only dp.constexpr parameters accept, .* sizes: dp.constexpr"


def generator(item, x):
    yield x[item.get_id(0)]


def any_number(item, *arrays):
    arrays[0][item.get_id(0)] = 1


def call(kernel: Any, *arguments: Any, **options: Any) -> Any:
    return dp.call_kernel(kernel, dp.Range(10), *arguments, **options)


def with_local(given: Any, *arguments: Any, **options: Any) -> Any:
    local = dp.LocalAccessor(*arguments, **options)
    return dp.call_kernel(through_local, dp.NdRange(8, 8), given.x, local)


@table(
    a_list=(
        lambda g: call(increment, [1]), dp.KernelArgumentError, rf"'x' is a builtins.list{ACCEPTED}"
    ),
    text=(lambda g: call(scale, g.x, "a"), dp.KernelArgumentError, rf" a str{CONSTANTS}"),
    nothing=(
        lambda g: call(scale, g.x, None), dp.KernelArgumentError, rf" a NoneType{CONSTANTS}"
    ),
    a_date=(
        lambda g: call(scale, g.x, np.datetime64("2020-01-01")), dp.KernelArgumentError, ACCEPTED),
    integer_too_large=(
        lambda g: call(scale, g.x, 2**64),
        dp.KernelArgumentError,
        r"argument 'factor' is the integer 18446744073709551616, which does not fit into 64 bits",
    ),
    integer_too_small=(
        lambda g: call(scale, g.x, -(2**63) - 1),
        dp.KernelArgumentError,
        r"argument 'factor' is the integer -9223372036854775809, which does not fit into 64 bits",
    ),
    too_few=(
        lambda g: call(add, g.x),
        dp.KernelArgumentError,
        r"kernel add: takes 3 arguments after the item \(x, y, out\); got 1",
    ),
    too_many=(lambda g: call(increment, g.x, g.y), dp.KernelArgumentError, r"takes 1 .*; got 2"),
    no_array=(
        lambda g: call(increment, 3), dp.KernelArgumentError, r"at least one argument must be an"),
    another_queue=(
        lambda g: call(add, g.x, dp.ones(10, dtype="f4", sycl_queue=g.queue), g.out),
        dp.ExecutionPlacementError,
        r"(?s)kernel add: .*same device, different queues.*y = y.to_device\(x.device\)",
    ),
    local_memory_over_a_range=(
        lambda g: call(through_local, g.x, dp.LocalAccessor(8, dtype=dp.float32)),
        dp.KernelArgumentError,
        r"'local' is a LocalAccessor, .*; launch over an NdRange",
    ),
    more_local_memory_than_the_device_has=(
        lambda g: with_local(g, CPU.traits.local_memory, dtype=dp.float32),
        dp.KernelError,
        rf"{CPU.traits.local_memory}|KiB",
    ),
    absurd_local_memory=(
        lambda g: with_local(g, 10**9, dtype=dp.float32), dp.KernelError, r"local memory"),
    no_local_memory=(
        lambda g: with_local(g, 0, dtype=dp.float32), dp.KernelRangeError, r"positive; got 0"),
    local_memory_of_text=(
        lambda g: with_local(g, 8, dtype="nonsense"),
        dp.KernelArgumentError,
        r"local memory holds integers, float16, float32 and float64; got 'nonsense'",
    ),
    events_that_are_none=(
        lambda g: call(increment, g.x, depends_on=[3]), dp.KernelArgumentError, r"depends_on"),
    an_event_that_is_none=(
        lambda g: call(increment, g.x, depends_on=3), dp.KernelArgumentError, r"depends_on"),
    no_kernel=(
        lambda g: call(len, g.x), dp.KernelArgumentError, r"is not a kernel; decorate .* @dp.kernel"
    ),
    a_kernel_of_a_number=(lambda g: dp.kernel(3), dp.KernelArgumentError, r"3"),
    a_kernel_without_an_item=(
        lambda g: dp.kernel(lambda: None), dp.KernelArgumentError, r"first parameter .* work-item"),
    a_generator=(
        lambda g: dp.kernel(generator), dp.KernelArgumentError, r"kernel must be a plain function"),
    any_number_of_arguments=(
        lambda g: dp.kernel(any_number), dp.KernelArgumentError, r"parameter 'arrays' is variadic"),
    an_option_that_is_none=(
        lambda g: dp.kernel(nonsense=1)(increment.py_func),
        dp.KernelArgumentError,
        r"unknown option 'nonsense'; options: debug",
    ),
)  # fmt: skip
def test_arguments_of_kernels(
    given: Any, launches: list[Launch], case: Any, kind: Any, message: str
) -> None:
    expect(lambda: case(given), kind, message)
    assert not launches


# --- kernels that do not compile --------------------------------------------------------------


def python_function(value: float) -> float:
    return value * 2


def undefined_name(item, x):
    x[item.get_id(0)] = no_such_name  # noqa: F821


def returned_value(item, x):
    return x[item.get_id(0)]


def misspelt_method(item, x):
    x[item.get_identity(0)] = 1


def growing_list(item, x):
    values = [1, 2]
    values.append(3)
    x[item.get_id(0)] = values[0]


def exception_handler(item, x):
    try:
        x[item.get_id(0)] = 1
    except ValueError:
        x[item.get_id(0)] = 2


def exception(item, x):
    if x[item.get_id(0)] < 0:
        raise ValueError("negative")
    x[item.get_id(0)] = 1


def whole_array_function(item, x):
    x[item.get_id(0)] = np.linalg.norm(x)


def plain_function(item, x):
    x[item.get_id(0)] = python_function(x[0])


def too_many_indices(item, x):
    x[item.get_id(0), 3] = 1


def group_of_a_range(item, x):
    x[item.get_global_id(0)] = 1


def text_into_numbers(item, x):
    x[item.get_id(0)] = "a"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (undefined_name, r"the name 'no_such_name' is not defined"),
        (returned_value, r"a kernel returns nothing: write the result into an array argument"),
        (misspelt_method, r"no attribute 'get_identity' on Item"),
        (growing_list, r"a list is not available in device code"),
        (exception_handler, r"an exception handler is not available"),
        (exception, r"raising an exception is not available in device code"),
        (whole_array_function, r"np.linalg.norm works on whole arrays"),
        (plain_function, r"python_function is a Python function: decorate it with @dp.device_func"),
        (too_many_indices, r"float32\[1-D, C\]"),
        (group_of_a_range, r"launch over an NdRange"),
        (text_into_numbers, r"a string is not available in device code"),
    ],
    ids=lambda value: getattr(value, "__name__", "").replace("_", " "),
)
def test_kernels_that_do_not_compile(
    given: Any, launches: list[Launch], function: Any, message: str
) -> None:
    error = expect(lambda: call(dp.kernel(function), given.x), dp.KernelCompileError, message)
    text = str(error)
    assert text.startswith(f"kernel {function.__name__} does not compile for (x: float32[1-D, C])")
    assert re.search(rf"{re.escape(__file__)}:\d+\n", text)
    assert not launches


def test_a_kernel_that_did_not_compile_can_be_launched_with_arguments_that_fit() -> None:
    kernel = dp.kernel(scale.py_func)
    x = dp.zeros(10, dtype="float32")
    expect(lambda: call(kernel, x, 1j), dp.KernelCompileError, r"factor: complex\)")
    call(kernel, x, 2.0)
    assert (dp.asnumpy(x) == 2).all()


# --- limits of a device -----------------------------------------------------------------------


def test_a_device_without_double_precision(pretend: Any, given: Any) -> None:
    pretend(lacks=["fp16", "fp64"], name="A small GPU")
    message = r"dtype {} needs the aspect {}, which A small GPU lacks; use dtype='{}' or another"
    makers: tuple[Callable[[str], Any], ...] = (
        lambda dtype: dp.ones(3, dtype=dtype),
        lambda dtype: dp.asarray([1, 2], dtype=dtype),
        lambda dtype: given.x.astype(dtype),
        lambda dtype: dp.zeros_like(given.x, dtype=dtype),
    )
    for dtype, aspect, other in (
        ("float64", "fp64", "float32"),
        ("complex128", "fp64", "complex64"),
        ("float16", "fp16", "float32"),
    ):
        for make in makers:
            expect(
                partial(make, dtype),
                dp.UnsupportedDeviceError,
                message.format(dtype, aspect, other),
            )
    assert dp.zeros(3).dtype == "float32"


@pytest.mark.usefixtures("tests_options")
def test_a_device_without_usm_is_refused(standin: StandIn) -> None:
    standin.unusable_since = "it has no USM device allocations"
    queue = Queue(standin.found[0])
    for make in (
        lambda: dp.Device("standin:0"),
        lambda: dp.ones(3, device=queue),
        lambda: dp.set_default_device(queue),
    ):
        reason = r"standin:0 \(.*\) cannot hold arrays: it has no USM device allocations"
        expect(make, dp.UnsupportedDeviceError, reason)
    assert "standin" not in {each.driver for each in dp.devices()}


# --- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda x: dp.empty(10**15),
        lambda x: dp.ones(10**13, dtype="int8"),
        lambda x: dp.zeros((2**40, 2**40)),
        lambda x: dp.empty(2**64),
        lambda x: dp.full((10**6, 10**6), 1.5, dtype="float32"),
        lambda x: dp.zeros(10**13, usm_type="host"),
        lambda x: dp.zeros(10**13, usm_type="shared"),
        lambda x: dp.arange(10**15),
        lambda x: dp.linspace(0, 1, 10**15),
        lambda x: dp.eye(10**9),
        lambda x: dp.asarray(np.broadcast_to(np.float32(1), (10**7, 10**7))),
        lambda x: dp.ones((10**7, 1)) + dp.ones((1, 10**7)),
        lambda x: dp.broadcast_to(x, (10**15, 10)) + 1,
        lambda x: dp.concat([dp.broadcast_to(x, (10**15, 10))] * 2),
        lambda x: dp.ones((10**6, 1)) @ dp.ones((1, 10**6)),
        lambda x: dp.repeat(x, 10**14),
        lambda x: dp.tile(x, 10**14),
    ],
    ids=[
        "empty", "ones", "zeros", "size that no pointer holds", "full", "host", "shared", "arange",
        "linspace", "eye", "asarray", "outer sum", "broadcast", "concat", "matmul", "repeat",
        "tile",
    ],
)  # fmt: skip
def test_absurd_sizes(given: Any, make: Any) -> None:
    def compute() -> None:
        make(given.x).block  # noqa: B018 - computes what is pending

    error = expect(compute, dp.MemoryError, NAME)
    assert isinstance(error, MemoryError)


def test_an_operation_that_gets_no_memory_leaves_everything_as_it_was() -> None:
    gc.collect()
    dp.memory.release()  # so that no free memory of other tests can be split or given back below
    x = dp.full(4_000_000, 3, dtype="float32")
    y = x + 1
    dp.eval(x, y)
    previous = dp.memory.set_limit(dp.memory.stats(x.device).in_use + 2**20)
    try:
        error = expect(
            lambda: (x * 2 + dp.sin(x)).block,
            dp.MemoryError,
            f"{NAME}.*",
        )
        assert error.requested >= x.nbytes
        assert error.limit is not None
    finally:
        dp.memory.set_limit(previous)
    assert (dp.asnumpy(x) == 3).all()
    assert (dp.asnumpy(y) == 4).all()
    assert (dp.asnumpy(x * 2) == 6).all()


@pytest.mark.parametrize("limit", [-1, "a", 1.5])
def test_a_limit_that_is_not_a_number_of_bytes(limit: Any) -> None:
    previous = dp.memory.set_limit(None)
    with pytest.raises(dp.DparrayError, match=re.escape(repr(limit))):
        dp.memory.set_limit(limit)
    assert dp.memory.set_limit(previous) is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, h: dp.asarray([x, h]), r"obj\[1\] = dp.asarray\(obj\[1\]\)"),
        (lambda x, h: dp.asarray([[x], [x, h]]), r"obj\[1\]\[1\] = dp.asarray\(obj\[1\]\[1\]\)"),
        (lambda x, h: dp.block([[x], [h]]), r"arrays\[1\]\[0\] = dp.asarray\(arrays\[1\]\[0\]\)"),
        (lambda x, h: dp.add([x, h], x), r"x1\[1\] = dp.asarray\(x1\[1\]\)"),
    ],
    ids=["asarray", "nested", "block", "operand"],
)
def test_errors_name_the_element_of_a_list(call: Any, said: str) -> None:
    with pytest.raises(dp.DparrayError, match=said):
        call(dp.ones(3), np.ones(3))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf")])
def test_ranges_end_somewhere(value: float) -> None:
    for call in (lambda: dp.arange(value), lambda: dp.arange(0, 1, value)):
        with pytest.raises(dp.ArgumentError, match=r"arange: (stop|step) must be finite"):
            call()


def test_ranges_report_the_mismatch() -> None:
    for call in (
        lambda: dp.arange(10**30, 10**30 + 2),
        lambda: dp.arange(300, 9**6, dtype="uint8"),
    ):
        with pytest.raises(OverflowError, match=r"arange: \d+ does not fit into u?int"):
            call()


def test_an_axis_of_an_array_without_dimensions() -> None:
    for call in (dp.sum, dp.sort, dp.flip):
        with pytest.raises(dp.AxisError, match=r"of 0 dimensions; x\.reshape\(1\) has one"):
            call(dp.asarray(3), axis=-1)
