"""A kernel that does not compile: the error shows its line, a caret, and what to use instead."""

from __future__ import annotations

import errno
import linecache
import math
import os
import random  # noqa: F401 - a kernel below names it
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler.targets import back_end
from dparray._driver import traits_of
from tests.support import execute


def plain(value: Any) -> Any:
    return value + 1


@dp.device_func
def uses_numpy(value: Any) -> Any:
    return np.linalg.norm(value)


@dp.kernel
def other_kernel(item: dp.Item, x: Any) -> None:
    x[0] = 1


class Settings:
    width = 3


A_LIST = [1.0, 2.0]
AN_ARRAY = dp.ones(2)
TOO_LARGE = 10**25

#: Bodies of kernels of ``x``, the beginning of the text that the message marks, and the message.
#: The line is the first one, or the one that ends with "# here".
CASES: list[tuple[str, str, str]] = [
    (
        "x[0] = x[0] * 10**33",
        "10**33",
        r"10\*\*33 does not fit into 64 bits: write a floating-point",
    ),
    ("x[0] = x[0] * (1 << 130)", "1 << 130", "1<<130 does not fit into 64 bits"),
    ("x[0] = x[0] * TOO_LARGE", "x[0]", "does not fit into 64 bits"),
    (
        "row = x[0:2]\nrow += 1  # here",
        "row",
        r"an operand of \+= is float64\[1-D, C\], .*",
    ),
    ("x[0] = math.sin(x[0:2])", "math.sin(x[0:2])", r"an operand of sin is float64\[1-D, C\]"),
    ("x[0] = x[1:3]", "x[0]", r"what is assigned is float64\[1-D, C\]"),
    (
        "x[0] = item.get_id(0) in x",
        "item.get_id(0) in x",
        r"an operand of `in` is float64\[1-D, C\]",
    ),
    ("dp.AtomicRef(x).fetch_add(1)", "dp.A", r"dp.AtomicRef\(x, index=i\)"),
    (
        "y = (1, 2) if x[0] > 3 else (3, 4, 5)\nx[0] = y[0]",
        "(1, 2) if",
        r"a value would be Tuple\(.+\) on one path and Tuple\(",
    ),
    ("y = dp.LocalArray(4, dp.float64)\ny[0] = x[0]", "dp.LocalArray", "use an NdRange"),
    (
        "i = item.get_id(0)\nreturn x[i]  # here",
        "return x[i]",
        "a kernel returns nothing: write the result into an array",
    ),
    ("x[0] = np.sum(x)", "np.sum(x)", "np.sum works on whole arrays"),
    ("y = [1, 2, 3]\nx[0] = y[0]", "[1, 2, 3]", "a list is not available in .*dp.PrivateArray"),
    ("y = {1: 2}\nx[0] = y[1]", "{1: 2}", "a dict is not available"),
    ("print(f'{x[0]:.3f}')", "f'{x[", "takes no format; write dp.printf"),
    ("x[0] = f'{x[0]}' == '1.0'", "f'{x[0]}'", "a string is not available"),
    ("x[x[0] > 0] = 1", "x[x[", "this one is a Boolean: convert it with int(...)"),
    ("x[0] = plain(x[0])", "plain(x[0])", "plain is a Python function: decorate it with @dp.dev"),
    ("other_kernel(item, x)", "othe", "only the host launches kernels"),
    ("x[0] = dp.sum(x)", "dp.sum(x)", "dp.sum is a host function"),
    (
        "try:\n    x[0] = 1\nexcept ValueError:\n    x[0] = 2",
        "t",
        "an exception handler is not available",
    ),
    ("x[0] = missing_name", "missing_name", "the name 'missing_name' is not defined"),
    (
        "for k in range(3):\n    if k > 0 and last == k:  # here\n        x[0] += 1\n    last = k",
        "last",
        "'last' may be read before it is assigned: give it",
    ),
    ("x[0] = item.get_color()", "item.get_color", "no attribute 'get_color'"),
    ("dp.group_barrier(item.get_group())", "item.get_group", "launch over an NdRange"),
    ("x[0, 0] = 1", "x[0,", r"too many indices for float64\[1-D, C\]: it takes 1, and 2 are given"),
    ("x[0] = math.comb(3, 2)", "math.comb(3, 2)", "math.comb is not available in a kernel"),
    ("x[0] = x.sum()", "x.sum", "x.sum works on whole arrays"),
    ("y = x + 1\nx[0] = y[0]", "x + 1", r"x \+ 1 works on whole arrays"),
    (
        "x[0] = (\n    x[1]\n    + np.linalg.norm(x)  # here\n    + 1\n)",
        "np.linalg.norm(x)",
        "np.linalg.norm works on whole arrays",
    ),
    (
        "def inner(value):\n    return [value]  # here\nx[0] = inner(x[1])[0]",
        "[value]",
        "a list is not available",
    ),
    (
        "if item.get_id(0) > 0:\n\tx[0] = np.sum(x)  # here",
        "np.sum(x)",
        "np.sum works on whole ar",
    ),
    (
        "@dp.device_func\ndef inner(value):  # here\n    return value\nx[0] = inner(x[0])",
        "d",
        "inner is decorated inside a function: define it outside",
    ),
    ("x[0] = np.random.random()", "np.random.random()", "pass an array of random numbers"),
    ("x[0] = random.random()", "random.random", "pass an array of random numbers"),
    ("y = x[0]\nx[1] = y\ndel y  # here", "del y", "del is not available"),
    ("print(x[0], x[1], sep=', ')", "prin", "print takes no sep= in device code"),
    (
        "p = dp.PrivateArray(len(x), np.float32)\nx[0] = p[0]",
        "dp.PrivateArray(len(x), np.float32)",
        "a PrivateArray takes a constant shape",
    ),
    (
        "x[0] = (1, 2.0, 3)[item.get_id(0)]",
        "(1, 2.0, 3)[",
        "a tuple of several types takes constant indi",
    ),
    ("x[item] = 1", "x[it", r"an index is an integer: item\.get_id\(0\)"),
    ("x[x[0]] = 1", "x[x[", "an index is an integer, and this one is float64"),
    ("x[0] = x[True]", "x[True]", "this one is a Boolean"),
    ("dp.group_barrier(item)", "dp.g", r"takes item\.get_group\(\) of an NdItem"),
    ("x[0] = A_LIST[0]", "A_LIST", "A_LIST is a list of the host: a few constants can be a tuple"),
    ("x[0] = AN_ARRAY[0]", "AN_ARRAY", "AN_ARRAY is an array from outside.*pass it as an argument"),
    ("x[0] = Settings.width", "Settings", "the value of 'Settings' cannot be used in a kernel"),
    ("if x:\n    x[0] = 1", "x", r"ask for one of them, as in if x\[i\]"),
    ("x[0] = math.missing(x[1])", "math.missing", "module 'math' has no attribute 'missing'"),
    ("print(x)", "print", "print takes numbers and strings"),
    ("x.shape = (2, 2)", "x.shape", r"'.shape' of float64\[1-D, C\] cannot be assigned to"),
    ("a, b = (1, 2, x[0])\nx[0] = a + b", "a, b", "2 names are assigned from 3 values"),
    ("x[0] = max(x)", "max(x)", r"max\(x\) works on whole arrays"),
    (
        "x[0] = x[1].astype(np.int32)",
        "x[1].astype",
        r"by the name of the type, as in np.float32\(value\)",
    ),
    (
        "f = math.sin if x[0] > 0 else math.cos\nx[0] = f(x[0])",
        "math.sin if",
        "choose one of the results",
    ),
    (
        "def down(n):\n    return 0 if n < 1 else down(n - 1)  # here\nx[0] = down(3)",
        "down(n - 1)",
        "recursion is not available in device code",
    ),
]


@pytest.mark.parametrize(("body", "marked", "remedy"), CASES, ids=[each[0] for each in CASES])
def test_the_message_shows_line_caret_and_fix(
    body: str, marked: str, remedy: str, tmp_path: Path
) -> None:
    file = tmp_path / "kernels.py"
    lines = [f"    {line}" for line in body.splitlines()]
    file.write_text("\n".join(["def wrong(item, x):", *lines]))
    scope = dict(globals())
    exec(compile(file.read_text(), str(file), "exec"), scope)
    x = dp.zeros(4)
    with pytest.raises(dp.KernelCompileError, match=remedy) as caught:
        dp.call_kernel(dp.kernel(scope["wrong"]), dp.Range(4), x)
    (wrong,) = [line for line in lines if "# here" in line] or lines[:1]
    shown = str(caught.value).splitlines()
    assert shown[0] == "kernel wrong does not compile for (x: float64[1-D, C])"
    assert len(shown) <= 6
    assert int(shown[1].rpartition(":")[2]) == lines.index(wrong) + 2
    assert shown[2].strip() == wrong.strip()
    start = shown[3].index("^")
    assert shown[2][start:].startswith(marked)
    assert shown[3][start:].startswith("^" * len(marked))
    assert len(caught.value.details) > 0
    assert x.tolist() == [0.0] * 4


def undefined(item: Any, x: Any) -> None:
    x[0] = missing_name  # noqa: F821


@dp.device_func
def tenfold(x: Any) -> Any:
    return 10 * x


@dp.device_func
def halved(x: Any) -> Any:
    return x / 2


def chosen_function(item: Any, x: Any) -> None:
    function = tenfold if x[0] > 1 else halved
    x[0] = function(x[0])


def test_a_function_that_is_chosen_while_a_kernel_runs_is_refused() -> None:
    with pytest.raises(dp.KernelCompileError, match=r"choose one of the results, as in f\(x\)"):
        dp.call_kernel(dp.kernel(chosen_function), dp.Range(4), dp.zeros(4))


def test_a_fault_in_a_device_function_shows_the_device_function() -> None:
    @dp.kernel
    def caller(item: dp.Item, x: Any) -> None:
        x[0] = uses_numpy(x[0])

    with pytest.raises(dp.KernelCompileError, match="in the device function uses_numpy") as caught:
        dp.call_kernel(caller, dp.Range(1), dp.zeros(1))
    assert "return np.linalg.norm(value)" in str(caught.value)


@dp.device_func
def asks_for_a_color(value: Any) -> Any:
    doubled = value * 2
    return doubled.color


@dp.device_func
def goes_through(value: Any) -> Any:
    return asks_for_a_color(value)


def test_compile_errors_in_a_device_function_show_its_line() -> None:
    @dp.kernel
    def caller(item: dp.Item, x: Any) -> None:
        x[0] = goes_through(x[0])

    with pytest.raises(dp.KernelCompileError, match="in the device function asks_for") as caught:
        dp.call_kernel(caller, dp.Range(1), dp.zeros(1))
    assert "return doubled.color" in str(caught.value)


def test_a_function_without_source_is_refused_with_the_way_out() -> None:
    text = "def typed(item, x):\n    x[item.get_id(0)] = 3\n"
    scope: dict[str, Any] = {}
    exec(text, scope)
    with pytest.raises(dp.KernelCompileError, match=r"typed is not known.*linecache\."):
        dp.call_kernel(dp.kernel(scope["typed"]), dp.Range(1), dp.zeros(1))
    name = "<kernels of a template>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), scope)
    x = dp.zeros(1)
    dp.call_kernel(dp.kernel(scope["typed"]), dp.Range(1), x)
    assert x.item() == 3


def test_a_captured_name_that_is_not_assigned_yet() -> None:
    @dp.kernel
    def early(item: dp.Item, x: Any) -> None:
        x[0] = later

    x = dp.zeros(1)
    with pytest.raises(dp.KernelCompileError, match="nothing is assigned to 'later' yet"):
        dp.call_kernel(early, dp.Range(1), x)
    later = 3
    dp.call_kernel(early, dp.Range(1), x)
    assert x.item() == later


def test_frames_of_the_compiler_are_not_shown() -> None:
    with pytest.raises(dp.KernelCompileError) as caught:
        dp.call_kernel(dp.kernel(undefined), dp.Range(1), dp.zeros(1))
    assert "numba" not in "".join(traceback.format_exception(caught.value)).partition("Kernel")[0]


@dp.device_func
def factorial(n: Any) -> Any:
    return 1 if n < 2 else n * factorial(n - 1)


@dp.device_func
def is_even(n: Any) -> Any:
    return True if n == 0 else is_odd(n - 1)


@dp.device_func
def is_odd(n: Any) -> Any:
    return False if n == 0 else is_even(n - 1)


@pytest.mark.parametrize(
    ("function", "line"), [(factorial, "factorial(n - 1)"), (is_even, "is_even(n - 1)")]
)
def test_recursion_is_refused(function: Any, line: str) -> None:
    @dp.kernel
    def call(item: dp.Item, x: Any) -> None:
        x[0] = function(item.get_id(0))

    with pytest.raises(dp.KernelCompileError, match="recursion is not available") as caught:
        dp.call_kernel(call, dp.Range(1), dp.zeros(1))
    assert line in str(caught.value)


def test_handlers_written_for_numba_dpex_catch_it() -> None:
    from numba.core.errors import TypingError

    with pytest.raises(TypingError):
        dp.call_kernel(dp.kernel(undefined), dp.Range(1), dp.zeros(1))


def test_float64_on_a_device_without_it_is_refused(pretend: Any) -> None:
    @dp.kernel
    def half(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = i * 0.5

    pretend(lacks=["fp64"])
    x = dp.ones(4, dtype="float32")
    with pytest.raises(dp.UnsupportedDeviceError, match=r"float64.*np\.float32\(0\.5\)"):
        dp.call_kernel(half, dp.Range(4), x)

    @dp.kernel
    def half32(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * 0.5 + i - x[i]

    dp.call_kernel(half32, dp.Range(4), x)
    assert x.tolist() == [-0.5, 0.5, 1.5, 2.5]


@dp.kernel
def adds_int(item: dp.Item, x: Any) -> None:
    i = item.get_id(0)
    y = x[i] + x[i]
    y += np.int64(i)
    x[i] = y * 0.5


@dp.kernel
def takes_root(item: dp.Item, x: Any) -> None:
    i = item.get_id(0)
    x[i] = math.sqrt(i)


@dp.kernel
def scales(item: dp.Item, x: Any, factor: Any) -> None:
    i = item.get_id(0)
    x[i] *= factor


@pytest.mark.parametrize(
    ("kernel", "more", "where"),
    [
        (adds_int, (), "(float32 + int64 is float64 in `y += np.int64(i)`)"),
        (takes_root, (), "(sqrt(int64) is float64 in `x[i] = math.sqrt(i)`)"),
        (scales, (2.0,), "(its argument factor is float64)"),
    ],
)
def test_the_first_float64_of_a_kernel_is_named(
    kernel: Any, more: tuple[Any, ...], where: str, pretend: Any
) -> None:
    pretend(lacks=["fp64"])
    with pytest.raises(dp.UnsupportedDeviceError) as caught:
        dp.call_kernel(kernel, dp.Range(4), dp.ones(4, dtype="float32"), *more)
    assert where in str(caught.value)


@dp.device_func
def checks(value: Any) -> Any:
    if value < 0:
        raise ValueError("negative")
    return value


def test_raise_is_refused_because_it_would_end_the_work_item_silently() -> None:
    @dp.kernel
    def raises(item: dp.Item, x: Any) -> None:
        if x[0] > 0:
            raise ValueError("positive")
        x[0] = 1

    @dp.kernel
    def calls(item: dp.Item, x: Any) -> None:
        x[0] = checks(x[0])

    @dp.kernel
    def raises_inside(item: dp.Item, x: Any) -> None:
        def inner(value: Any) -> Any:
            if value > 0:
                raise ValueError("positive")
            return value

        x[0] = inner(x[0])

    x = dp.ones(1)
    for kernel in (raises, raises_inside):
        with pytest.raises(dp.KernelCompileError, match="raising an exception is not available"):
            dp.call_kernel(kernel, dp.Range(1), x)
    with pytest.raises(dp.KernelCompileError, match="in the device function checks:"):
        dp.call_kernel(calls, dp.Range(1), x)


def test_a_kernel_of_a_kernel_is_refused() -> None:
    @dp.kernel
    def fill(item: dp.Item, x: Any) -> None:
        x[0] = 1

    for make in (dp.kernel, dp.device_func):
        with pytest.raises(dp.KernelArgumentError, match="fill is already a kernel"):
            make(fill)
        with pytest.raises(dp.KernelArgumentError, match="is already a device function"):
            make(goes_through)
        with pytest.raises(dp.KernelArgumentError, match="of type ndarray is neither"):
            make(AN_ARRAY)


def test_an_index_of_an_empty_array_raises_with_a_suggested_fix() -> None:
    @dp.kernel
    def double(item: dp.Item, x: Any, out: Any) -> None:
        out[0] = x[0] * 2

    with pytest.raises(dp.KernelCompileError, match="what is indexed is one int64"):
        double[1](3, dp.zeros(1))
    with pytest.raises(dp.KernelCompileError, match=r"has one element, x\[\(\)\]"):
        double[1](dp.asarray(3.0), dp.zeros(1))


def test_invalid_kernels_raise_at_creation() -> None:
    def starred(item: Any, *arrays: Any) -> None: ...
    def keyword(item: Any, *, x: Any) -> None: ...
    def generator(item: Any, x: Any) -> Any:
        yield x

    for function, words in ((starred, "variadic"), (keyword, "keyword-only"), (generator, "yield")):
        with pytest.raises(dp.KernelArgumentError, match=words):
            dp.kernel(function)


@pytest.mark.parametrize(
    "options",
    [
        *({"inline_threshold": value} for value in (4, "a", 1.0, True)),
        {"debug": "yes"},
        {"fast": 1},
    ],
)
def test_invalid_options(options: dict[str, Any]) -> None:
    for maker in (dp.kernel, dp.device_func):
        with pytest.raises(dp.KernelArgumentError, match=next(iter(options))):
            maker(**options)


@pytest.mark.parametrize("shape", [0, -1, "4", (2, 0), (1, 2, 3, 4), 2.5])
def test_local_memory_of_an_invalid_shape(shape: Any) -> None:
    with pytest.raises(dp.KernelRangeError, match="LocalAccessor"):
        dp.LocalAccessor(shape, np.float32)


@pytest.mark.parametrize("dtype", ["nonsense", object, "complex64", "bool", None.__class__])
def test_local_memory_of_a_dtype_it_cannot_have(dtype: Any) -> None:
    with pytest.raises(dp.KernelArgumentError, match="local memory holds"):
        dp.LocalAccessor(4, dtype)


def test_local_memory_takes_dtypes_as_arrays_do() -> None:
    for dtype in ("float32", np.dtype("int8"), np.uint64, dp.float64):
        assert np.dtype(dp.LocalAccessor((2, 3), dtype)._dtype) == np.dtype(dtype)


def test_a_full_disk_is_not_blamed_on_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    @dp.kernel
    def new(item: dp.Item, x: Any) -> None:
        x[item.get_id(0)] = 20261121

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(back_end(traits_of(dp.Device().queue).target), "optimised", refuse)
    with pytest.raises(dp.KernelError, match=r"the system refused .*No space left"):
        dp.call_kernel(new, dp.Range(1), dp.zeros(1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x[0] = item.get_global_id(0.5)", "requires a dimension"),
        ("x[0] = item.get_global_id()", r"item\.get_global_id requires a dimension"),
        ("y = dp.PrivateArray(0, np.int64)", "a constant shape .positive numbers"),
        ("y = dp.PrivateArray((2, -1), np.int64)", "a constant shape .positive numbers"),
        ("dp.AtomicRef(x, 0.5).fetch_add(1)", "an index of this array is an integer; got 0.5"),
        ("dp.AtomicRef(x, (0, 1)).fetch_add(1)", "an index of this array is an integer; got"),
        ("dp.AtomicRef(x, item).fetch_add(1)", "an index of this array is an integer; got"),
        ("dp.AtomicRef(x, 0).fetch_add()", "an operation of an AtomicRef takes one value"),
        ("dp.AtomicRef(x, 0).load(1)", "an operation of an AtomicRef takes one value"),
        ("dp.atomic_fence()", "atomic_fence takes an order and a scope"),
        ("dp.group_barrier()", "group_barrier a group and perhaps a scope"),
        ("x[0] = dp.group_broadcast(item.get_group(), x[0], 0.5)", "takes an integer as the local"),
    ],
)
def test_calls_of_the_language_that_mean_nothing(text: str, message: str) -> None:
    scope: dict[str, Any] = {"dp": dp, "np": np}
    execute(f"def call(item, x):\n    {text}\n", scope)
    with pytest.raises(dp.KernelCompileError, match=message):
        dp.kernel(scope["call"])[dp.NdRange(2, 1)](dp.zeros(4, dtype="int64"))


@pytest.mark.parametrize(
    ("method", "index_space", "words"),
    [
        ("get_id(0)", dp.NdRange(4, 2), r"did you mean get_global_id\(0\)\?"),
        ("get_linear_id()", dp.NdRange(4, 2), r"did you mean get_global_linear_id\?"),
        ("get_range(0)", dp.NdRange(4, 2), r"did you mean get_global_range\(0\)\?"),
        ("get_global_id(0)", dp.Range(4), r"did you mean get_id\(0\)\?"),
        ("get_global_linear_id()", dp.Range(4), r"did you mean get_linear_id\?"),
        ("get_global_range(0)", dp.Range(4), r"did you mean get_range\(0\)\?"),
        ("get_local_id(0)", dp.Range(4), "which gives an NdItem$"),
    ],
)
def test_a_method_of_the_other_kind_of_item_has_a_counterpart(
    method: str, index_space: Any, words: str
) -> None:
    scope: dict[str, Any] = {"dp": dp}
    execute(f"@dp.kernel\ndef number(item, x):\n    x[0] = item.{method}\n", scope)
    with pytest.raises(dp.KernelCompileError, match=f"(?m){words}"):
        dp.call_kernel(scope["number"], index_space, dp.zeros(4))
