"""Python's and NumPy's protocols: copying, pickling, and NumPy functions on dparray arrays.

``np.exp(x)`` and ``np.concatenate([x, y])`` call the dparray functions of the same name. Functions
that dparray does not have raise ``TypeError``; nothing is copied to the host implicitly.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray import config
from dparray._array.allocation import from_host
from dparray._array.apply import OPERATIONS, copy_of
from dparray._array.assignment import assign
from dparray._array.host_fastpath import SCALARS
from dparray._array.ndarray import array_method, ndarray
from dparray._array.operands import (
    check_array,
    class_name,
    is_taken_from_host,
    warn_of_host_copy,
)
from dparray._driver import traits_of
from dparray._functions.operands import placement_keywords
from dparray.device import Device, default_device, sub_device_path
from dparray.exceptions import DeviceError, HostConversionError

#: NumPy's defaults, which NumPy passes on as if the caller had given them.
_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "where": True}
#: Functions that are dispatched only for ``like=``.
_CREATION: frozenset[Any] = frozenset(
    (np.arange, np.array, np.asarray, np.empty, np.eye, np.full, np.identity, np.ones, np.zeros)
)
#: The modules below ``numpy`` that dparray has under the same name.
_MODULES = ("linalg", "fft", "lib.stride_tricks")
#: SciPy ufuncs whose internal name differs from the public name.
_OF_SCIPY = {"_zeta": "zeta", "_riemann_zeta": "zeta"}
_NO_VALUE = np._NoValue
#: The suffix of names of ufuncs that NumPy creates from Python functions.
_OF_PYTHON = " (vectorized)"
#: NumPy ufuncs that are an operation of dparray.
OPERATIONS_OF_UFUNCS = {
    op.ufunc: operate
    for op, operate in OPERATIONS.items()
    if op.ufunc.__name__ in (op.name, *op.aliases)
}


def _missing(name: str) -> TypeError:
    return TypeError(
        f"{name} is not available for dparray arrays, and data is not copied implicitly; "
        f"copy it yourself: {name.rpartition(' ')[2]}(dp.asnumpy(x))"
    )


def function_of_ufunc(ufunc: np.ufunc, method: str) -> tuple[str, Callable[..., Any] | None]:
    """Return the name of a ufunc's method, and the dparray function that corresponds, if any."""
    own = ufunc.__name__
    name, function, space = f"the ufunc {own}", None, sys.modules["dparray"]
    if getattr(np, own, None) is ufunc:
        name, function = f"numpy.{own}", getattr(space, own, None)
    elif getattr(sys.modules.get("scipy.special._ufuncs"), own, None) is ufunc:
        name = f"scipy.special.{own}"
        function = getattr(space.special, _OF_SCIPY.get(own, own), None)
    if method == "__call__":
        return name, function
    return f"{name}.{method}", getattr(function, method, None)


@array_method("__array_ufunc__")
def array_ufunc(self: ndarray, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """Call the dparray function that corresponds to a NumPy ufunc.

    Raises:
        TypeError: dparray does not have the ufunc, its method or an option.
        HostConversionError: NumPy arrays are among the inputs.
    """
    quick = OPERATIONS_OF_UFUNCS.get(ufunc)
    if quick is not None and not options and method == "__call__":
        for value in inputs:
            if type(value) is not ndarray and type(value) not in SCALARS:
                break
        else:
            return quick(*inputs)
    name, function = function_of_ufunc(ufunc, method)
    if method == "__call__":
        # NumPy passes its scalars as 0-d arrays: `np.float64(2) < x`.
        inputs = tuple(
            value[()] if isinstance(value, np.ndarray) and not value.ndim else value
            for value in inputs
        )
    for position, value in enumerate(inputs):
        if isinstance(value, np.ndarray) and not is_taken_from_host(value):
            check_array(name, f"x{position + 1}", value)
    out = options.pop("out", None)
    if isinstance(out, tuple):
        if len(out) > 1:
            raise _missing(name)
        out = out[0]
    host_out = out if type(out) is np.ndarray and config.host_operands != "error" else None
    if out is not None and host_out is None:
        if not isinstance(out, ndarray):
            raise HostConversionError(
                f"{name}: out is a {class_name(out)}; give a dparray array, or where "
                f"`a += x` writes to a NumPy array write a += dp.asnumpy(x)"
            )
        options["out"] = out
    options = {
        key: value
        for key, value in options.items()
        if value is not None and value is not _NO_VALUE and _DEFAULTS.get(key) is not value
    }
    if function is None:
        if ufunc.__name__.endswith(_OF_PYTHON):
            raise TypeError(
                f"{name} computes on NumPy arrays; instead of np.frompyfunc(f, ...) write "
                "dp.vectorize(f)"
            )
        raise _missing(name)
    unknown = options.keys() & {"signature", "axes"}
    if unknown:
        raise TypeError(
            f"{name}: {', '.join(sorted(unknown))}= is not available for dparray arrays"
        )
    result = function(*inputs, **options)
    if host_out is None:
        return result
    warn_of_host_copy(f"a result of {result.nbytes} bytes is copied to a NumPy array: out=")
    np.copyto(host_out, result.asnumpy(), casting="same_kind")
    return host_out


@array_method("__array_function__")
def _array_function(
    self: ndarray, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Call the dparray function with the name of a NumPy function.

    With a dparray array as ``like=``, creation functions are dispatched here too; they use its
    placement.

    Raises:
        TypeError: dparray does not have the function.
    """
    if function in _WITH_HOST_DATA and any(isinstance(value, np.ndarray) for value in args):
        result = _WITH_HOST_DATA[function](self, *args)
        if result is not NotImplemented:
            return result
    namespace: Any = sys.modules["dparray"]
    module = function.__module__.removeprefix("numpy").lstrip(".")
    if module in _MODULES:
        namespace = operator.attrgetter(module)(namespace)
    # A module may have another function of the same name: numpy.emath.sqrt of -1 is 1j.
    ours = getattr(namespace, function.__name__, None) if module in ("", *_MODULES) else None
    if ours is None:
        raise _missing(f"{function.__module__}.{function.__name__}")
    options = {key: value for key, value in kwargs.items() if value is not _NO_VALUE}
    if function in _CREATION:
        options |= placement_keywords(self)
    leading = _named_by_numpy(function, ours)[len(args) :] if options else ()
    for name in leading:
        if name not in options:
            break
        args = (*args, options.pop(name))
    return ours(*args, **options)


def _broadcast_by_numpy(self: ndarray, *arrays: Any) -> Any:
    """Broadcast arrays as NumPy's, on the device where ``np.asarray(x)`` is allowed."""
    if traits_of(self.queue).driver != "host":
        return NotImplemented
    return np.broadcast_arrays(*map(np.asarray, arrays))


def _shares_memory_with_host(self: ndarray, x1: Any, x2: Any, max_work: Any = None) -> bool:
    """Return whether a dparray array and a NumPy array may share memory, as after DLPack."""
    array, other = (x1, x2) if isinstance(x1, ndarray) else (x2, x1)
    first, last = np.lib.array_utils.byte_bounds(other)
    start = array.block.pointer
    return bool(start < last and first < start + array.block.nbytes)


#: NumPy functions that libraries call with dparray and NumPy arrays together.
_WITH_HOST_DATA: dict[Any, Callable[..., Any]] = {
    np.broadcast_arrays: _broadcast_by_numpy,
    np.shares_memory: _shares_memory_with_host,
    np.may_share_memory: _shares_memory_with_host,
}


@functools.lru_cache(maxsize=256)
def _named_by_numpy(function: Callable[..., Any], ours: Callable[..., Any]) -> tuple[str, ...]:
    """Return NumPy's leading parameter names for which dparray has no or another name."""
    own = inspect.signature(ours).parameters
    try:
        theirs = inspect.signature(function).parameters.values()
    except ValueError:  # NumPy functions written in C have no signature
        return ()
    return tuple(
        parameter.name
        for parameter in theirs
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and (parameter.name not in own or own[parameter.name].kind is parameter.POSITIONAL_ONLY)
    )


#: The missing devices of unpickled arrays, so that each is reported once.
_said: set[str] = set()


def _unpickled(
    values: np.ndarray, filter_string: str, usm_type: str, path: tuple[Any, ...] | None = ()
) -> ndarray:
    """Restore a pickled array, on its original device or the closest available one."""
    return from_host(values, unpickled_device("array", filter_string, path).queue, usm_type)


def unpickled_device(what: str, filter_string: str, path: tuple[Any, ...] | None = ()) -> Device:
    """Return the device of a pickle, or the default device with a warning, once per device."""
    missing, device = "", None
    try:
        device = Device(filter_string)
        if path is None:
            missing = f"a sub-device of {filter_string}"
        for partition, number in path or ():
            missing = f"sub-device {number + 1} of partition {partition!r} of {device}"
            device = device.create_sub_devices(partition)[number]
            missing = ""
    except (DeviceError, IndexError, ValueError):
        missing = missing or filter_string
    device = default_device() if device is None else device
    if missing and missing not in _said:
        _said.add(missing)
        warnings.warn(
            f"the {what} was pickled on {missing}, which is not available; it is now on {device}",
            stacklevel=3,
        )
    return device


@array_method("__reduce__")
def __reduce__(self: ndarray) -> tuple[Any, ...]:
    """Return a host copy with the names of the device, the sub-device and the USM type."""
    path = sub_device_path(self.queue)
    values = self.T.asnumpy().T if self.flags.fnc else self.asnumpy()
    return _unpickled, (values, self.device.filter_string, self.usm_type, path)


@array_method("__copy__")
def _copy(self: ndarray) -> ndarray:
    """Return a copy with the same queue, USM type and memory order."""
    return copy_of(self, "K")


@array_method("__deepcopy__")
def _deepcopy(self: ndarray, memo: dict[int, Any]) -> ndarray:
    """Return a copy with the same queue, USM type and memory order."""
    return copy_of(self, "K")


@array_method("__divmod__")
def _divmod(self: ndarray, other: Any) -> tuple[ndarray, ndarray]:
    """Return quotient and remainder, ``x // y`` and ``x % y``."""
    return self // other, self % other


@array_method("__rdivmod__")
def _rdivmod(self: ndarray, other: Any) -> tuple[ndarray, ndarray]:
    """Return quotient and remainder, ``y // x`` and ``y % x``."""
    return other // self, other % self


@array_method("__contains__")
def _contains(self: ndarray, value: Any) -> bool:
    """Return whether an element equals ``value``; waits for the result."""
    return bool((self == value).any())


@array_method("fill")
def _fill(self: ndarray, value: Any) -> None:
    """Assign one value to all elements."""
    assign(self, value, "fill")


@array_method("tobytes")
def _tobytes(self: ndarray, order: str = "C") -> bytes:
    """Return the values as bytes in C order; waits for pending work on the array.

    The bytes are in Fortran order with ``order="F"``, and with ``"A"`` if the array is.
    """
    if order == "A":
        order = "F" if self.flags.fnc else "C"
    return self.asnumpy().tobytes(order)  # type: ignore[arg-type]
