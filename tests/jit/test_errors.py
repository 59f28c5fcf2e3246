"""Errors of compiled functions: the line, and the fix, before anything has run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import config
from dparray.exceptions import KernelArgumentError, KernelCompileError, ShapeError
from tests.support import runs_loops_on_host

SETTINGS = {"scale": 2.0}
CHOICE = SimpleNamespace(scale=2.0)


def misspelled(x: Any) -> None:
    scale = 2.0
    for i in range(x.shape[0]):
        x[i] = sclae * scale  # type: ignore[name-defined]  # noqa: F821


def misspelled_in_prange(x: Any) -> None:
    scale = 2.0
    for i in dp.prange(x.shape[0]):
        x[i] = sclae * scale  # type: ignore[name-defined]  # noqa: F821


def misspelled_in_array_code(x: Any) -> Any:
    x += 1
    return x * undefined  # type: ignore[name-defined]  # noqa: F821


def unknown_function(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = np.sine(x[i])  # type: ignore[attr-defined]


def unknown_array_function(x: Any) -> Any:
    return dp.sine(x)  # type: ignore[attr-defined]


def unknown_math(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = math.squareroot(x[i])  # type: ignore[attr-defined]


def reads_dictionary(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = SETTINGS["scale"]


def reads_object(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = CHOICE.scale


def formats(x: Any) -> str:
    text = ""
    for i in range(x.shape[0]):
        text = f"{x[i]:.3f}"
    return text


def float_index(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i / 2] = 1


def float_index_in_prange(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i / 2] = 1


def float_range(x: Any) -> None:
    for i in range(x.shape[0] / 2):
        x[i] = 1


def float_prange(x: Any) -> None:
    for i in dp.prange(x.shape[0] / 2):  # type: ignore[arg-type]
        x[i] = 1


def two_indices(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i, 0] = 1


def raises(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        if x[i] < 0:
            raise ValueError("negative")


def handles(x: Any) -> None:
    for i in range(x.shape[0]):
        try:
            x[i] = 1 / x[i]
        except ZeroDivisionError:
            x[i] = 0


def imports(x: Any) -> None:
    import random

    for i in range(x.shape[0]):
        x[i] = random.random()


def generates(x: Any) -> Any:
    for i in range(x.shape[0]):
        yield x[i]


def two_types(x: Any) -> Any:
    found: Any = 0
    for i in range(x.shape[0]):
        found = "large" if x[i] > 1 else found
    return found


def large_power(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * 10**33


def larger_power(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * 10**5000


def power_of_a_power(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = x[i] * 2**10**9


def large_power_in_prange(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = x[i] * 10**33


def deletes(x: Any) -> None:
    for i in range(x.shape[0]):
        y = x[i]
        x[i] = y * 2
        del y


CASES: list[tuple[Callable[..., Any], str, str, str]] = [
    (power_of_a_power, "x[i] * 2**10**9", "64 bits", "floating-point number, as in 1e20"),
    (large_power_in_prange, "10**33", "not fit into 64 bits", "floating-point number, as in 1e20"),
    (misspelled, "sclae", "'sclae' is not defined; did you mean 'scale'", "assign sclae before"),
    (misspelled_in_prange, "sclae", "did you mean 'scale'", "assign sclae before"),
    (misspelled_in_array_code, "x * undefined", "'undefined' is not defined", "assign undefined"),
    (unknown_function, "np.sine", "did you mean 'sin'", "dir(np)"),
    (unknown_array_function, "dp.sine", "did you mean 'sin'", "dir(dp)"),
    (unknown_math, "math.squareroot", "no attribute 'squareroot'", "dir(math)"),
    (reads_object, "CHOICE.scale", "'CHOICE' cannot be used in a kernel", "a name of its own"),
    (float_index_in_prange, "x[i / 2]", "this one is float64", "int(...)"),
    (float_range, "range(x.shape[0] / 2)", "range takes integers", "// instead of /"),
    (float_prange, "prange(x.shape[0] / 2)", "prange takes integers", "// instead of /"),
    (two_indices, "x[i, 0]", "too many indices", "one for each dimension"),
    (raises, "raise ValueError", "cannot raise", "count in the loop"),
    (generates, "yield", "a generator is not compiled", "write the values into an array"),
]
#: What runs in Python, the line of the loop, and a part of the reason in the warning.
IN_PYTHON: list[tuple[Callable[..., Any], str, str]] = [
    (large_power, "10**33", "floating-point number, as in 1e20"),
    (larger_power, "10**5000", "64 bits"),
    (reads_dictionary, "SETTINGS", "a few constants can be a tuple"),
    (formats, 'f"{x[i]:.3f}"', "cannot make a text"),
    (float_index, "x[i / 2]", "int(...)"),
    (handles, "try:", "an exception handler is not available in"),
    (imports, "random.random()", "random"),
    (two_types, "two_types", "the type of a result is not known"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_an_error_has_the_line_and_the_fix(case: tuple[Callable[..., Any], str, str, str]) -> None:
    function, shown, problem, fix = case
    x = dp.ones(4)
    with pytest.raises(KernelCompileError) as caught:
        dp.jit(function)(x)
    text = str(caught.value)
    line = function.__code__.co_firstlineno
    assert text.startswith(f"{function.__name__}: ")
    assert f"{__file__}:" in text
    assert any(f"{__file__}:{at}\n" in text for at in range(line, line + 7))
    assert problem in text
    assert fix in text
    quoted = text.partition(f"{__file__}:")[2].splitlines()
    assert shown in quoted[1]
    assert set(quoted[2]) <= {" ", "^"}
    assert x.tolist() == [1.0] * 4  # nothing has run


@pytest.mark.parametrize("case", IN_PYTHON, ids=lambda case: case[0].__name__)
def test_a_loop_that_is_not_compiled_runs_in_python(
    case: tuple[Callable[..., Any], str, str],
) -> None:
    function, shown, problem = case

    def outcome(called: Callable[..., Any]) -> tuple[Any, Any]:
        x = dp.ones(4)
        try:
            result = called(x)
        except Exception as error:
            return type(error), x.tolist()
        return result, len(x) if function is imports else x.tolist()

    compiled = dp.jit(function)
    with pytest.raises(dp.FallbackError), dp.config.override(fallback="error"):
        compiled(dp.ones(4))
    with pytest.warns(dp.FallbackWarning) as caught:
        found = outcome(compiled)
    assert found == outcome(function)
    text = str(caught[0].message)
    assert text.startswith(f"{function.__name__}: ")
    assert shown in text
    assert problem in text
    assert "run in Python" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # It is said once.
        assert outcome(compiled) == found


def test_a_name_that_is_deleted() -> None:
    x = dp.ones(4)
    dp.jit(deletes)(x)
    assert x.tolist() == [2.0] * 4


def count_up(x: Any, n: Any) -> None:
    for i in range(x.shape[0]):
        x[i] += n


@pytest.mark.parametrize("first", [None, 1])
def test_an_integer_of_more_than_64_bits_is_named(first: int | None) -> None:
    compiled = dp.jit(count_up)
    if first is not None:
        compiled(dp.ones(4), first)
    # On a GPU the loop is a kernel, with the line in its name.
    message = r"count_up(_line_\d+)?: .*64 bits; pass a floating-point number"
    with pytest.raises(KernelArgumentError, match=message):
        compiled(dp.ones(4), 10**25)


@pytest.mark.filterwarnings("ignore::dparray.FallbackWarning")
def test_float16_arrays() -> None:
    x = dp.ones(4, dtype="float16")
    dp.jit(count_up)(x, 1)
    assert x.dtype == np.float16
    assert x.tolist() == [2.0] * 4


@pytest.mark.slow
def test_a_dict_is_returned_as_one() -> None:
    @dp.jit
    def statistics(x: Any) -> Any:
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i]
        return {"sum": total, "first": x[0]}

    found = statistics(dp.arange(1.0, 5))
    assert type(found) is dict
    assert found == {"sum": 10.0, "first": 1.0}


def test_a_name_defined_after_a_failed_call_is_found() -> None:
    function = dp.jit(misspelled_in_array_code)
    with pytest.raises(KernelCompileError):
        function(dp.ones(4))
    globals()["undefined"] = 3.0
    try:
        assert function(dp.ones(2)).tolist() == [6.0, 6.0]
    finally:
        del globals()["undefined"]


def test_a_float_from_a_variable_is_not_a_valid_number_of_iterations() -> None:
    @dp.jit
    def half(x: Any, n: Any) -> None:
        m = n[0]
        for i in dp.prange(m):
            x[i] = 1

    with pytest.raises(TypeError):
        half(dp.zeros(4), dp.asarray([2.5, 1.0]))
    x = dp.zeros(4)
    half(x, dp.asarray([2, 1]))
    assert x.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_comprehensions_and_lambdas_have_separate_names() -> None:
    @dp.jit
    def powers(x: Any, k: int) -> None:
        for i in dp.prange(x.shape[0]):
            x[i] = sum([j * k for j in range(i + 1)])

    x = dp.zeros(4)
    powers(x, 2)
    assert x.tolist() == [0.0, 2.0, 6.0, 12.0]


def test_a_list_names_its_conversions() -> None:
    with pytest.raises(KernelArgumentError, match=r"dp\.asarray\(x\) or tuple\(x\)"):
        dp.jit(misspelled)([1.0, 2.0])


def add_shapes(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return x + y + total  # the line


def set_slice(x: Any, y: Any) -> None:
    for i in range(2):
        x[i] = i
    x[1:] = y  # the line


def add_in_place(x: Any, y: Any) -> None:
    x[0] = 1
    x += y  # the line


def join_rows(x: Any, y: Any) -> Any:
    above = x * 2
    return above, np.concatenate((x.reshape(2, 2), y.reshape(1, 5)))  # the line


def solve(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    singular = np.zeros((5, 5)) * total
    return np.linalg.solve(singular, y)  # the line


def solve_in_local_function(x: Any, y: Any) -> Any:
    def solution(matrix: Any) -> Any:
        return np.linalg.solve(matrix, y)  # the line

    return solution(np.zeros((5, 5))) + x[0]


def select(x: Any, y: Any) -> Any:
    mask = y > 0
    for i in range(2):
        x[i] = i
    return x[mask]  # the line


@pytest.mark.parametrize("function", [add_shapes, set_slice, add_in_place])
@pytest.mark.sample(1)
def test_different_shapes_raise_a_shape_error(function: Callable[..., Any]) -> None:
    compiled = dp.jit(function)
    named = rf"{function.__name__}: .*(broadcast|assign)" if runs_loops_on_host() else "broadcast"
    with pytest.raises(ShapeError, match=named) as caught:
        compiled(dp.ones(4), dp.ones(5))
    assert "site-packages" not in str(caught.value)
    with config.override(debug=True), pytest.raises(ValueError, match="broadcast") as caught:
        compiled(dp.ones(4), dp.ones(5))
    assert any("# the line" in str(entry.statement) for entry in caught.traceback)


@pytest.mark.parametrize(
    "function",
    [add_shapes, set_slice, add_in_place, join_rows, solve, solve_in_local_function, select],
)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.sample(2)
def test_errors_of_library_functions_have_the_line(
    function: Callable[..., Any], debug: bool
) -> None:
    compiled = dp.jit(function)
    with config.override(debug=debug):
        for _ in range(2):  # the second call compiles nothing
            with pytest.raises((ValueError, IndexError)) as caught:
                compiled(dp.ones(4), dp.ones(5))
            lines = [str(entry.statement) for entry in caught.traceback]
            # Array code on arrays is a driver, whose errors come from dparray.
            drivers = (join_rows, solve_in_local_function)
            is_driver = function in drivers or not runs_loops_on_host()
            assert is_driver or "# the line" in lines[-1]
    assert any("# the line" in line for line in lines)


@pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")
def test_local_functions_in_loops() -> None:
    @dp.jit
    def scaled(x: Any, y: Any, factor: Any) -> None:
        def times(value: Any) -> Any:
            return value * factor

        more = lambda value: times(value) + 1  # noqa: E731
        for i in dp.prange(x.size):
            x[i] = more(x[i])
        for i in range(1, y.size):
            y[i] = times(y[i - 1])

    x, y = dp.arange(4.0), dp.ones(4)
    scaled(x, y, 3)
    assert x.tolist() == [1.0, 4.0, 7.0, 10.0]
    assert y.tolist() == [1.0, 3.0, 9.0, 27.0]


@pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")
def test_an_assignment_in_an_expression_has_its_line() -> None:
    @dp.jit
    def parallel(x: Any) -> None:
        for i in dp.prange(x.size):
            if (value := x[i]) > 3:
                x[i] = value

    @dp.jit
    def in_order(x: Any) -> None:
        for i in range(x.size):
            while (value := x[i]) > 3:
                x[i] = value - 1

    with pytest.raises(dp.exceptions.KernelCompileError, match=":= is not compiled") as caught:
        parallel(dp.arange(6.0))
    assert "value := x[i]" in str(caught.value)
    x = dp.arange(6.0)
    in_order(x)
    assert x.tolist() == [0, 1, 2, 3, 3, 3]


@pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")
def test_signatures_methods_and_strings_are_refused_with_the_reason() -> None:
    with pytest.raises(dp.exceptions.KernelArgumentError, match="without a signature"):
        dp.jit("float64(float64)")  # type: ignore[arg-type, call-overload]

    class Model:
        @dp.jit
        def scaled(self, x: Any) -> Any:
            return x * 2

    with pytest.raises(dp.exceptions.KernelArgumentError, match="'self' is a Model"):
        Model().scaled(dp.ones(3))

    @dp.jit
    def names(x: Any) -> Any:
        found = np.array(["a", "b"])
        for i in range(x.size):
            x[i] = 1
        return found

    with pytest.raises(dp.DTypeError, match="not numeric"):
        names(dp.ones(3))
