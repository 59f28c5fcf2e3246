"""Exchange of arrays with other packages, in both directions."""

from __future__ import annotations

import subprocess
import sys
import types
import warnings
from typing import Any

import dpctl.memory
import numpy as np
import pytest

import dparray as dp
from dparray import _log
from dparray._array import transfer


class Interface:
    """Imitate an array of another USM library."""

    def __init__(self, offset: int = 0, read_only: bool = False) -> None:
        self.memory = dpctl.memory.MemoryUSMShared(64)
        self.memory.copy_from_host(np.arange(16, dtype="int32").view(np.uint8))
        self.__sycl_usm_array_interface__ = {
            "data": (self.memory._pointer + offset, read_only),
            "shape": (3,),
            "strides": None,
            "typestr": "<i4",
            "version": 1,
            "syclobj": self.memory.sycl_queue,
        }


def test_shared_views_that_repeat_an_element_are_read_only() -> None:
    x = dp.broadcast_to(dp.ones(1), (3,))
    seen = np.from_dlpack(x)
    assert seen.tolist() == [1, 1, 1]
    assert not seen.flags.writeable
    assert np.from_dlpack(dp.ones(3)).flags.writeable
    assert x.__sycl_usm_array_interface__["data"][1]
    assert not dp.ones(3).__sycl_usm_array_interface__["data"][1]


def test_consumers_without_a_flag_for_it_get_a_copy() -> None:
    class Old:
        """Produce a capsule without a version."""

        def __init__(self, x: dp.ndarray) -> None:
            self.x = x

        def __dlpack__(self, **options: Any) -> Any:
            return self.x.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.x.__dlpack_device__()

    x = dp.ones(1)
    seen = np.from_dlpack(Old(dp.broadcast_to(x, (3,))))
    assert seen.tolist() == [1, 1, 1]
    assert not np.shares_memory(seen, np.from_dlpack(x))


def test_memory_that_must_not_be_written_is_copied() -> None:
    source = Interface(read_only=True)
    copy = dp.asarray(source)
    copy[0] = 7
    assert dp.asarray(Interface()).tolist() == [0, 1, 2]
    assert dp.asarray(source).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        dp.asarray(source, copy=False)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_misaligned_memory_is_refused(offset: int) -> None:
    with pytest.raises(dp.exceptions.ArgumentError, match="not a multiple of 4"):
        dp.asarray(Interface(offset))


@pytest.mark.parametrize("ufunc", ["add", "subtract", "multiply", "maximum"])
def test_ufunc_at_takes_numpy_values_where_copies_are_allowed(ufunc: str) -> None:
    expected = np.zeros(3)
    getattr(np, ufunc).at(expected, [0, 1, 0], np.ones(3, "f4"))
    with dp.config.override(host_operands="copy"):
        found = dp.zeros(3)
        getattr(dp, ufunc).at(found, dp.asarray([0, 1, 0]), np.ones(3, "f4"))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("call", ["argsort", "argpartition"])
@pytest.mark.parametrize("axis", [-1, 0, None])
def test_positions_of_a_number(call: str, axis: int | None) -> None:
    more = (0,) if call == "argpartition" else ()
    found = getattr(dp, call)(dp.asarray(5.0), *more, axis=axis)
    assert found.tolist() == getattr(np, call)(np.asarray(5.0), *more, axis=axis).tolist()


def test_numpy_arrays_without_a_dimension_are_numbers() -> None:
    x, number = dp.ones(2, dtype="float32"), np.array(2.0)
    for found in (x * number, number * x, dp.multiply(x, number), np.multiply(x, number)):
        assert found.tolist() == [2, 2]
        assert found.dtype == np.float64
    assert (x * np.array(2, "int8")).dtype == np.float32


@pytest.mark.parametrize("function", ["nanmean", "nanvar", "nanstd"])
def test_nan_moments_of_float16_do_not_overflow(function: str) -> None:
    values = np.tile(np.array([1, 3, np.nan], "float16"), 70_000)
    found = getattr(dp, function)(dp.asarray(values))
    assert found.dtype == np.float16
    assert float(found) == {"nanmean": 2, "nanvar": 1, "nanstd": 1}[function]
    out = dp.zeros((), dtype="float16")
    assert getattr(dp, function)(dp.asarray(values), out=out) is out
    assert float(out) == float(found)


def test_a_shape_of_too_many_elements_raises_immediately() -> None:
    with pytest.raises(dp.exceptions.ShapeError, match="2\\*\\*63"):
        dp.broadcast_to(dp.ones(1), (2**32, 2**32))


def test_the_error_of_an_implicit_conversion_is_short() -> None:
    with pytest.raises(dp.HostConversionError) as caught:
        np.asarray(dp.ones(3))
    assert str(caught.value) == (
        "Implicit conversion of a dparray array to NumPy is disabled because it copies and "
        "synchronizes. Use x.asnumpy(), or set dp.config.host_operands = 'copy'."
    )
    with pytest.raises(dp.HostConversionError, match=r"x2 is a NumPy array \(numpy\.ndarray\)"):
        dp.ones(3) + np.ones(3)


def test_to_numpy_is_what_other_packages_call() -> None:
    x = dp.arange(3, dtype="int32")
    assert x.to_numpy().tolist() == [0, 1, 2]
    assert x.to_numpy("float32").dtype == np.float32


def test_matplotlib_plots_arrays() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    x = dp.linspace(0, 1, 5)
    (line,) = axes.plot(x, x * 2)
    np.testing.assert_array_equal(line.get_ydata(), (x * 2).asnumpy())
    axes.hist(x)


def test_iteration_by_another_package_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_has_warned", False)
    other = types.ModuleType("other")
    source = "def total(x):\n    n = 0\n    for each in x: n += 1\n    return n\n"
    exec(compile(source, "/lib/site-packages/other.py", "exec"), other.__dict__)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other.total(dp.ones(10))
        sum(1 for _ in dp.ones(1000))
        assert not caught
        other.total(dp.ones(1000))
        other.total(dp.ones(1000))
    assert [str(each.message) for each in caught] == [
        "other reads an array of 1000 elements one by one, with a copy from the device for each; "
        "give it x.asnumpy()"
    ]


def test_the_log_has_no_control_characters() -> None:
    assert _log._printable("a\x1b[31m\nb.py:3") == "a\\x1b[31m\\nb.py:3"


def test_an_open_map_at_exit_is_silent() -> None:
    program = "import dparray as dp; x = dp.ones(3); held = x.map('w'); held.__enter__()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_finalizer_at_exit_may_compute() -> None:
    """Builtins such as `open` are deleted before the remaining objects are finalized."""
    program = """
import builtins
import dparray as dp

dp.config.fused_tier = False  # Nothing can be compiled, because nothing can be imported any more.

class Kept:
    def __init__(self):
        self.x, self.dp, self.print = dp.ones(10), dp, print

    def __del__(self):
        y = self.dp.ones(3_000_000) + self.x[0]
        self.dp.synchronize(y)
        self.print(float(y[5]))

builtins.kept = Kept()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")
