"""Functions of NumPy for arrays, written in the language itself, for functions of the host.

Factorizations pivot by rows; the sort merges, is stable and puts NaN last, as NumPy's does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.exceptions import ShapeError

#: Up to this many elements are sorted by insertion.
_RUN = 16
_SQUARE = "the matrix must be square"


def list_index(count: Any, index: Any) -> Any:
    """Return the index of an item of a list from its start."""
    if index < -count or index >= count:
        raise IndexError("list index out of range")
    return index if index >= 0 else index + count


def is_after(a: Any, b: Any) -> Any:
    """Return whether an element comes after another one in order."""
    return a > b or (a != a and b == b)


def merged(y: Any, other: Any, width: Any, is_later: Any) -> Any:
    """Return a vector in order, of which each run of some elements is in order.

    Args:
        y: the vector, which is changed.
        other: a vector of its length, which is changed, too.
        width: the length of the runs.
        is_later: whether an element comes after another one in order.
    """
    n = y.shape[0]
    while width < n:
        for low in range(0, n, 2 * width):
            middle, end = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, end):
                if j >= end or (i < middle and not is_later(y[i], y[j])):
                    other[k] = y[i]
                    i += 1
                else:
                    other[k] = y[j]
                    j += 1
        y, other = other, y
        width *= 2
    return y


def sort(x: Any) -> Any:
    """Return the elements of a vector in order."""
    y, n = np.copy(x), x.shape[0]
    for start in range(0, n, _RUN):
        for i in range(start + 1, min(start + _RUN, n)):
            value, at = y[i], i
            while at > start and is_after(y[at - 1], value):
                y[at] = y[at - 1]
                at -= 1
            y[at] = value
    return merged(y, np.empty_like(x), _RUN, is_after)


def sort_rows(x: Any) -> Any:
    """Return a matrix with the elements of each row in order."""
    y = np.copy(x)
    for i in range(x.shape[0]):
        y[i] = sort(x[i])
    return y


def argsort(x: Any) -> Any:
    """Return the positions of the elements of a vector in order."""
    n = x.shape[0]
    return merged(np.arange(n), np.empty(n, np.int64), 1, lambda i, j: is_after(x[i], x[j]))


def eliminated(a: Any, b: Any) -> Any:
    """Solve a system with the rows of two matrices, which are changed; return the determinant.

    A matrix without an inverse gives 0.
    """
    n, determinant = a.shape[0], a[0, 0] * 0 + 1
    for k in range(n):
        pivot, largest = k, abs(a[k, k])
        for i in range(k + 1, n):
            if abs(a[i, k]) > largest:
                pivot, largest = i, abs(a[i, k])
        if largest == 0:
            return determinant * 0
        if pivot != k:
            determinant = -determinant
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            for j in range(b.shape[1]):
                b[k, j], b[pivot, j] = b[pivot, j], b[k, j]
        determinant *= a[k, k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            for j in range(b.shape[1]):
                b[i, j] -= factor * b[k, j]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            for j in range(b.shape[1]):
                b[k, j] -= a[k, i] * b[i, j]
        for j in range(b.shape[1]):
            b[k, j] /= a[k, k]
    return determinant


def solve(a: Any, b: Any) -> Any:
    """Return the solution of a system of linear equations with several right sides."""
    if a.shape[0] != a.shape[1]:
        raise ShapeError(_SQUARE)
    if a.shape[0] != b.shape[0]:
        raise ShapeError("the sizes of the matrix and the right side differ")
    result = np.copy(b)
    if a.shape[0] > 0 and eliminated(np.copy(a), result) == 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return result


def solve_vector(a: Any, b: Any) -> Any:
    """Return the solution of a system of linear equations with one right side."""
    return np.reshape(solve(a, np.reshape(b, (b.shape[0], 1))), (b.shape[0],))


def inv(a: Any) -> Any:
    """Return the inverse of a matrix."""
    identity = np.zeros_like(a)
    for i in range(min(a.shape[0], a.shape[1])):
        identity[i, i] = 1
    return solve(a, identity)


def det(a: Any) -> Any:
    """Return the determinant of a matrix."""
    if a.shape[0] != a.shape[1]:
        raise ShapeError(_SQUARE)
    if a.shape[0] == 0:
        return a.dtype.type(1)
    return eliminated(np.copy(a), np.zeros_like(a[:, :0]))
