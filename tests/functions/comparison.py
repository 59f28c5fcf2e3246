"""One call in NumPy and in dparray: the same values, dtype and shape, or the same kind of error."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import dparray as dp

Call = Callable[[Any], Any]


def outcome(call: Call, module: Any) -> Any:
    """Return the result of a call with ``numpy`` or ``dparray``, or the error that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(module)
        except Exception as error:
            return error


def values(result: Any) -> Any:
    """Return the values on the host; containers become lists of their elements."""
    if isinstance(result, dp.ndarray):
        return result.asnumpy()
    if isinstance(result, tuple | list):
        return [values(part) for part in result]
    return result


def assert_same(found: Any, wanted: Any, label: str = "", tolerance: float = 8.0) -> None:
    """Assert that both agree: errors by class, containers by element, floats up to rounding."""
    if isinstance(wanted, Exception):
        kinds = (TypeError, IndexError, ValueError, OverflowError, ZeroDivisionError, Exception)
        kind = next(kind for kind in kinds if isinstance(wanted, kind))
        assert isinstance(found, kind), f"{label}: {found!r} where NumPy raises {wanted!r}"
        return
    assert not isinstance(found, Exception), f"{label}: {found!r} where NumPy gives {wanted!r}"
    if isinstance(wanted, tuple | list):
        assert isinstance(found, tuple | list), (label, found, wanted)
        assert len(found) == len(wanted), (label, found, wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            assert_same(ours, theirs, label, tolerance)
        return
    if isinstance(wanted, str | type | bytes | bool | None):
        assert found == wanted, (label, found, wanted)
        return
    found, wanted = values(found), np.asarray(wanted)
    found = np.asarray(found)
    assert found.shape == wanted.shape, (label, found.shape, wanted.shape)
    assert found.dtype == wanted.dtype, (label, found.dtype, wanted.dtype)
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted, err_msg=label)
        return
    bound = tolerance * float(np.finfo(wanted.dtype).eps)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(finite.max(initial=0)) if finite.size else 0.0
    scale = scale if math.isfinite(scale) else 0.0
    np.testing.assert_allclose(found, wanted, bound, bound * scale, err_msg=label)


def compare(call: Call, label: str = "", tolerance: float = 8.0) -> None:
    """Compare one call in both modules."""
    assert_same(outcome(call, dp), outcome(call, np), label, tolerance)


class Scope(dict[str, Any]):
    """The names of an expression: given values, and the functions of a module, which is ``xp``."""

    def __init__(self, module: Any, given: dict[str, Any]) -> None:
        super().__init__({name: _in_module(module, value) for name, value in given.items()})
        self["xp"] = self.module = module

    def __missing__(self, name: str) -> Any:
        if not hasattr(self.module, name):
            raise KeyError(name)  # it may be one of Python's
        return getattr(self.module, name)


def _in_module(module: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy("K") if module is np else module.asarray(value)
    if isinstance(value, tuple | list):
        return type(value)(_in_module(module, each) for each in value)
    return value


def same_as_numpy(*expressions: str, tolerance: float = 8.0, **given: Any) -> None:
    """Compare expressions, which name functions of both modules, and the ``given`` values.

    NumPy's arrays among the values are copied, or become dparray's.
    """
    for expression in expressions:
        code = compile(expression, expression, "eval")

        def call(module: Any, code: Any = code) -> Any:
            return eval(code, {}, Scope(module, given))

        wanted = outcome(call, np)
        assert not isinstance(wanted, NameError | AttributeError), wanted
        assert_same(outcome(call, dp), wanted, f"{expression} {given}", tolerance)


def cross(xp: Any, x: Any, y: Any, axis: int = -1) -> Any:
    """Compute the cross product, also of two-element vectors, which recent NumPy rejects."""
    if xp is not np:
        return xp.cross(x, y, axis=axis)
    flat = x.shape[axis] == y.shape[axis] == 2

    def in_space(v: Any) -> Any:
        beyond = np.zeros_like(np.take(v, [0], axis))
        return np.concatenate([v, beyond], axis) if v.shape[axis] == 2 else v

    found = np.cross(in_space(x), in_space(y), axis=axis)
    return np.take(found, 2, axis) if flat else found


def cond(xp: Any, x: Any, p: Any = None) -> Any:
    """Compute condition numbers; NaN for matrices with NaN, for which NumPy up to 2.4 raises."""
    if xp is not np:
        return xp.linalg.cond(x, p)
    is_nan = np.isnan(x).any((-2, -1))
    found = np.linalg.cond(np.where(is_nan[..., None, None], np.eye(x.shape[-1]), x), p)
    return np.where(is_nan, np.nan, found)[()]
