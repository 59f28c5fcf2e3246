"""Assertions about arrays, in the manner of ``numpy.testing``; the values go to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array import ndarray

__all__ = ["assert_allclose", "assert_array_equal", "assert_equal"]


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
) -> None:
    """Assert that values differ by at most `atol + rtol * abs(desired)`.

    Args:
        actual: an array of dparray or NumPy, or a scalar. The arrays need not be on one queue.
        desired: likewise.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: NaN equals NaN.
        err_msg: what the error begins with.

    Raises:
        AssertionError: they differ by more, or in shape.

    Example:
        >>> import dparray as dp
        >>> dp.testing.assert_allclose(dp.asarray([1.0]), [1.0 + 1e-9])
    """
    np.testing.assert_allclose(_host(actual), _host(desired), rtol, atol, equal_nan, err_msg)


def assert_array_equal(actual: Any, desired: Any, err_msg: str = "") -> None:
    """Assert that all elements are equal, NaN to NaN; arguments as of :func:`assert_allclose`.

    Example:
        >>> import dparray as dp
        >>> dp.testing.assert_array_equal(dp.asarray([1, 2]), [1, 2])
    """
    np.testing.assert_array_equal(_host(actual), _host(desired), err_msg)


def assert_equal(actual: Any, desired: Any, err_msg: str = "") -> None:
    """Assert that arrays, scalars or nested lists of them are equal.

    Example:
        >>> import dparray as dp
        >>> dp.testing.assert_equal([dp.asarray([1, 2]), 3], [[1, 2], 3])
    """
    np.testing.assert_equal(_host(actual), _host(desired), err_msg)
