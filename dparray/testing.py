"""Assertions about arrays, by the names of ``numpy.testing``; and simulated devices.

The values that are compared go to the host.
The arrays need not be on one queue. Those about warnings and errors are NumPy's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.testing import (
    assert_,
    assert_no_warnings,
    assert_raises,
    assert_raises_regex,
    assert_string_equal,
    assert_warns,
)

from dparray import _satellites
from dparray._array.ndarray import ndarray

if TYPE_CHECKING:
    from dparray._scheduling.simulated import SimulatedDevice as SimulatedDevice

__all__ = [
    "SimulatedDevice",
    "assert_",
    "assert_allclose",
    "assert_almost_equal",
    "assert_approx_equal",
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_equal",
    "assert_array_less",
    "assert_array_max_ulp",
    "assert_equal",
    "assert_no_warnings",
    "assert_raises",
    "assert_raises_regex",
    "assert_string_equal",
    "assert_warns",
]


def __getattr__(name: str) -> Any:
    if name == "SimulatedDevice":
        return _satellites.provider("simulated").SimulatedDevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _host(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value.asnumpy()
    if isinstance(value, list | tuple):
        return type(value)(_host(part) for part in value)
    return value


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-7,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
    *,
    strict: bool = False,
) -> None:
    """Assert that values differ by at most `atol + rtol * abs(desired)`.

    Args:
        actual: an array of dparray or NumPy, or a scalar. The arrays need not be on one queue.
        desired: likewise.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: NaN equals NaN.
        err_msg: what the error begins with.
        verbose: the error shows the values.
        strict: shapes and dtypes must be equal too.

    Raises:
        AssertionError: they differ by more, or in shape.

    Example:
        >>> dp.testing.assert_allclose(dp.asarray([1.0]), [1.0 + 1e-9])
    """
    np.testing.assert_allclose(
        _host(actual), _host(desired), rtol, atol, equal_nan, err_msg, verbose, strict=strict
    )


def assert_array_equal(
    actual: Any, desired: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False
) -> None:
    """Assert that all elements are equal, NaN to NaN; arguments as of :func:`assert_allclose`.

    Example:
        >>> dp.testing.assert_array_equal(dp.asarray([1, 2]), [1, 2])
    """
    np.testing.assert_array_equal(_host(actual), _host(desired), err_msg, verbose, strict=strict)


def assert_equal(
    actual: Any, desired: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False
) -> None:
    """Assert that arrays, scalars or nested lists of them are equal.

    Example:
        >>> dp.testing.assert_equal([dp.asarray([1, 2]), 3], [[1, 2], 3])
    """
    np.testing.assert_equal(_host(actual), _host(desired), err_msg, verbose, strict=strict)


def assert_array_less(
    x: Any, y: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False
) -> None:
    """Assert that each element of ``x`` is below that of ``y``; otherwise as the others here.

    Example:
        >>> dp.testing.assert_array_less(dp.asarray([1, 2]), 3)
    """
    np.testing.assert_array_less(_host(x), _host(y), err_msg, verbose, strict=strict)


def assert_almost_equal(
    actual: Any, desired: Any, decimal: int = 7, err_msg: str = "", verbose: bool = True
) -> None:
    """Assert that values are equal up to a number of decimals.

    Example:
        >>> dp.testing.assert_almost_equal(dp.asarray(1.0), 1.001, decimal=2)
    """
    np.testing.assert_almost_equal(_host(actual), _host(desired), decimal, err_msg, verbose)


def assert_array_almost_equal(
    actual: Any, desired: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True
) -> None:
    """Assert that arrays are equal up to a number of decimals.

    Example:
        >>> dp.testing.assert_array_almost_equal(dp.asarray([1.0]), [1.001], decimal=2)
    """
    np.testing.assert_array_almost_equal(_host(actual), _host(desired), decimal, err_msg, verbose)


def assert_approx_equal(
    actual: Any, desired: Any, significant: int = 7, err_msg: str = "", verbose: bool = True
) -> None:
    """Assert that two numbers are equal up to a number of significant digits.

    Example:
        >>> dp.testing.assert_approx_equal(dp.asarray(1234.0), 1234.4, significant=4)
    """
    np.testing.assert_approx_equal(_host(actual), _host(desired), significant, err_msg, verbose)


def assert_array_almost_equal_nulp(x: Any, y: Any, nulp: float = 1) -> None:
    """Assert that arrays differ by at most ``nulp`` times the spacing of the numbers.

    Example:
        >>> dp.testing.assert_array_almost_equal_nulp(dp.asarray(1.0), 1.0 + 2.0**-52)
    """
    np.testing.assert_array_almost_equal_nulp(_host(x), _host(y), nulp)


def assert_array_max_ulp(a: Any, b: Any, maxulp: int = 1, dtype: Any = None) -> Any:
    """Assert that at most ``maxulp`` numbers lie between elements; returns how many, on the host.

    Example:
        >>> float(dp.testing.assert_array_max_ulp(dp.asarray(1.0), 1.0 + 2.0**-52)[0])
        1.0
    """
    return np.testing.assert_array_max_ulp(_host(a), _host(b), maxulp, dtype)
