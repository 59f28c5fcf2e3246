"""The operators, methods and protocols of traced arrays."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._array.operands import OVERRIDE
from dparray._functions.protocols import function_of_ufunc
from dparray._graph.ops import COMPARISONS, OPERATORS
from dparray.exceptions import GradientError
from dparray.gradients import products as products  # which has the row of matmul
from dparray.gradients.calls import ROWS, apply, call, constant_operands, is_array, write
from dparray.gradients.indexing import getitem, setitem
from dparray.gradients.public import dp
from dparray.gradients.shapes import astype, copied
from dparray.gradients.traced import Traced, constants, on_host, stored

_LEAVING = ("asnumpy", "item", "tolist", "tobytes", "tofile", "dump", "dumps", "map")
_WRITING = ("partition", "resize", "itemset", "setfield", "byteswap")


def _override(self: Traced, function: Any, args: Any, options: dict[str, Any]) -> Any:
    for x in args:
        if type(x) not in _PLAIN and hasattr(type(x), OVERRIDE):  # It may stand for a traced array.
            return getattr(type(x), OVERRIDE)(x, function, args, options)
    if type(function).__name__ == "TileFunction":
        importlib.import_module("dparray.gradients.tile")  # Tile is imported when it is used.
    return call(function, args, options)


def _of_ufunc(self: Traced, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
    name, function = function_of_ufunc(ufunc, method)
    if function is None:
        raise GradientError(f"{name}: has no derivative")
    host = next((x for x in operands if isinstance(x, np.ndarray) and x.ndim), None)
    if host is not None:
        raise dp.exceptions.HostConversionError(
            f"{ufunc.__name__}: an operand is a NumPy array, which is not copied to a device "
            "implicitly; write dp.asarray(x)"
        )
    out = options.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        options["out"] = out[0]
    scalars = [x[()] if isinstance(x, np.ndarray) else x for x in operands]
    return function(*scalars, **options)


def _of_function(self: Traced, function: Any, types: Any, args: Any, options: Any) -> Any:
    given = {key: value for key, value in options.items() if value is not np._NoValue}
    own: Any = dp
    for part in (function.__module__ or "").split(".")[1:]:
        own = getattr(own, part, dp)
    own = getattr(own, function.__name__, None)
    if own is None:
        raise GradientError(f"numpy.{function.__name__}: has no derivative")
    return own(*args, **given)


def _attribute(self: Traced, name: str) -> Any:
    if name.startswith("_") or not hasattr(ndarray, name):
        raise AttributeError(f"a differentiated array has no attribute {name!r}")
    if name in _LEAVING:
        on_host(self)
        raise GradientError(
            f"x.{name}() would lose the gradient of x; use dparray's functions, or take a "
            f"constant: dp.stop_gradient(x).{name}()"
        )
    if name in _WRITING:
        raise GradientError(f"x.{name}() has no derivative; use dp.{name}(x), which copies")
    if name == "to_device":
        raise GradientError(
            "x.to_device() has no derivative; copy the array before: dp.grad(f)(x.to_device(...))"
        )
    function = getattr(dp, name, None)
    if not callable(function):
        raise GradientError(f"x.{name} has no derivative")
    return lambda *args, **options: function(self, *args, **options)


def _shaped(name: str) -> Callable[..., Any]:
    function = getattr(dp, name)

    def method(self: Traced, *given: Any, **options: Any) -> Any:
        is_single = len(given) == 1 and not isinstance(given[0], int | np.integer)
        axes = given[0] if is_single else given
        return function(self, *([] if axes is None or axes == () else [axes]), **options)

    return method


def _operator(name: str) -> tuple[Callable[..., Any], ...]:
    function = getattr(dp, name)
    row = ROWS.get(function)
    if row is not None:
        function = functools.partial(_applied, row)

    def operate(self: Traced, other: Any) -> Any:
        return function(self, other) if _is_operand(other) else NotImplemented

    def reflected(self: Traced, other: Any) -> Any:
        return function(other, self) if _is_operand(other) else NotImplemented

    def in_place(self: Traced, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        added = None
        if self._steps and name in ("add", "subtract") and is_array(other):
            added = other if name == "add" else dp.negative(other)
        return write(self, lambda old: function(old, other), added)

    return operate, reflected, in_place


def _applied(row: Any, *operands: Any) -> Any:
    return apply(row, operands, {})


_PLAIN = (Traced, ndarray, int, float)


def _is_operand(x: Any) -> bool:
    return type(x) in _PLAIN or constant_operands(x)


def _comparison(name: str) -> Callable[..., Any]:
    function = getattr(dp, name)

    def compare(self: Traced, other: Any) -> Any:
        return function(constants(self), constants(other))

    return compare


def _sort(self: Traced, axis: int = -1, **options: Any) -> None:
    write(self, lambda old: dp.sort(old, axis=axis, **options))


def _eval(self: Traced) -> Traced:
    dp.eval(self)
    return self


def _iterate(self: Traced) -> Any:
    if not self.ndim:
        raise TypeError("iteration over a 0-d array")
    return (getitem(self, number) for number in range(len(self)))


def _of_value(name: str) -> property:
    return property(lambda self: getattr(stored(self), name))


def _attach() -> None:
    more = {"pow": "pow", "matmul": "matmul"}
    for short, name in (OPERATORS | more).items():
        for prefix, operator in zip(("", "r", "i"), _operator(name), strict=True):
            setattr(Traced, f"__{prefix}{short}__", operator)
    for short, name in COMPARISONS.items():
        setattr(Traced, f"__{short}__", _comparison(name))
    negative, positive, absolute = (ROWS[getattr(dp, n)] for n in ("negative", "positive", "abs"))
    methods: dict[str, Any] = {
        "__dparray_function__": _override,
        "__array_ufunc__": _of_ufunc,
        "__array_function__": _of_function,
        "__getattr__": _attribute,
        "__getitem__": getitem,
        "__setitem__": setitem,
        "__iter__": _iterate,
        "__neg__": lambda self: apply(negative, (self,), {}),
        "__pos__": lambda self: apply(positive, (self,), {}),
        "__invert__": lambda self: dp.bitwise_invert(self),
        "__abs__": lambda self: apply(absolute, (self,), {}),
        "__array_namespace__": lambda self, **_: dp,
        "__format__": lambda self, form: format(on_host(self), form) if form else str(self),
        "__divmod__": lambda self, other: dp.divmod(self, other),
        "__rdivmod__": lambda self, other: dp.divmod(other, self),
        "__round__": lambda self, n=0: dp.round(self, n),
        "__contains__": lambda self, value: bool(dp.any(constants(self) == constants(value))),
        "astype": astype,
        "copy": copied,
        "fill": lambda self, value: setitem(self, Ellipsis, value),
        "sort": _sort,
        "put": lambda self, *args, **options: dp.put(self, *args, **options),
        "clip": lambda self, *args, **options: dp.clip(self, *args, **options),
        "eval": _eval,
        "reshape": _shaped("reshape"),
        "transpose": _shaped("permute_dims"),
        "flatten": lambda self: dp.ravel(self).copy(),
        "conjugate": lambda self: dp.conj(self),
        "conj": lambda self: dp.conj(self) if self.dtype.kind == "c" else self,
        "T": property(lambda self: dp.permute_dims(self, tuple(range(self.ndim))[::-1])),
        "mT": property(lambda self: dp.matrix_transpose(self)),
        "real": property(lambda self: dp.real(self)),
        "imag": property(lambda self: dp.imag(self)),
        "flat": property(lambda self: iter(dp.ravel(self))),
    }
    for name in ("strides", "flags", "offset"):
        methods[name] = _of_value(name)
    for name, method in methods.items():
        setattr(Traced, name, method)


_attach()
