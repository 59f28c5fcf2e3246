"""Operands of operations: scalars, sequences, arrays of one queue; anything else is rejected."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _hooks, _layout, _placement, _satellites, config
from dparray._array.allocation import empty_on, from_host, full_scalar, is_made_by_host, usual_queue
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import HOST_TYPES, SEQUENCES, ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue, Traits
from dparray._placement import Placement, common_placement
from dparray.device import copying_call, default_device
from dparray.exceptions import (
    ArgumentError,
    DTypeError,
    HostConversionError,
    HostCopyWarning,
    ShapeError,
)
from dparray.memory.blocks import is_read_only
from dparray.memory.libraries import cuda_arrays, usm

WEAK_TYPES: dict[type, Any] = {bool: _dtypes.bool, int: int, float: float, complex: complex}


def is_shareable(value: Any) -> bool:
    """Return whether a value is an array in memory of SYCL or CUDA, such as dpnp's and CuPy's."""
    return not isinstance(value, ndarray | np.generic) and (
        hasattr(value, "__sycl_usm_array_interface__") or hasattr(value, "__cuda_array_interface__")
    )


def layout_of(value: Any) -> _layout.Layout:
    """Return the layout of an array of another library, over its memory."""
    library = cuda_arrays if cuda_arrays.is_array(value) else usm
    return library.layout_of_interface(value)


def shared(value: Any, *, copies_read_only: bool = True) -> Any:
    """Return an array of another library as a dparray array over the same memory, on its queue;
    other values unchanged.

    Args:
        value: the array, or another value.
        copies_read_only: whether the result is a copy if the owner of the memory forbids writes.
            Arrays have no read-only flag; kernels and ``dp.jit`` read that of the memory.
    """
    if not is_shareable(value):
        return value
    layout = layout_of(value)
    array = ndarray._from_layout(*layout)
    if cuda_arrays.is_array(value):
        cuda_arrays.give_back(array, value)
    return array.copy() if copies_read_only and is_read_only(layout.block) else array


#: The method of classes that compute public functions of their arrays themselves.
OVERRIDE = "__dparray_function__"
#: The names of public functions whose bodies take arrays of such a class as they are.
BODIES = "__dparray_bodies__"
_NAMESPACES = ("dparray", *(f"dparray.{name}" for name in ("linalg", "fft", "special", "random")))


def overriding(values: Iterable[Any]) -> Any:
    """Return the first of these values, or in nested sequences of them, whose class has the
    override; ``None`` without one.
    """
    for value in values:
        if hasattr(type(value), OVERRIDE):
            return value
        if type(value) in (list, tuple) and not set(map(type, value)) <= _NUMBERS:
            found = overriding(value)
            if found is not None:
                return found
    return None


def dispatch_override(
    function: str | Callable[..., Any], arguments: Sequence[Any], /, **options: Any
) -> Any:
    """Return the result of a function from another class of arrays, such as sharded arrays.

    Such a class has ``__dparray_function__(function, arguments, options)``, where ``function`` is
    the public function: ``dp.fft.fft``. The options ``out``, ``where`` and ``dtype`` are omitted if
    they are not set. Without such an array among the arguments, the result is ``NotImplemented``.

    Args:
        function: the function, or its name in the namespace.
        arguments: its arguments by position.
        options: its keyword arguments.
    """
    value = overriding((*arguments, *options.values()) if options else arguments)
    if value is None:
        return NotImplemented
    keywords = options and {
        key: option
        for key, option in options.items()
        if not (key in ("out", "dtype", "where") and option is None)
        and not (key == "where" and option is True)
    }
    method = getattr(type(value), OVERRIDE)
    return method(value, public_function(function), tuple(arguments), keywords)


def called_apart(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function with operands on several queues if a policy combines them.

    Otherwise return ``NotImplemented``.
    """
    if not _placement.in_force:
        return NotImplemented
    return _satellites.provider("placement").called_together(function, args, kwargs)


@functools.cache
def public_function(function: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as its namespace has it, with the wrappers that users call.

    Args:
        function: the function, or its name: ``"add"``, ``"special.erf"``. A function that is in no
            namespace is returned unchanged.
    """
    if isinstance(function, str):
        namespace, _, name = f"dparray.{function}".rpartition(".")
        return getattr(sys.modules[namespace], name)
    body = inspect.unwrap(function)
    for namespace in _NAMESPACES:
        found = getattr(sys.modules.get(namespace), getattr(function, "__name__", ""), None)
        if callable(found) and inspect.unwrap(found) is body:
            return found
    return function


def is_operand(function: str, value: Any) -> bool:
    """Return whether the body of a public function takes a value as an array."""
    return isinstance(value, ndarray) or function in getattr(type(value), BODIES, ())


def foreign_operand(function: str, name: str, value: Any, queue: Queue | None = None) -> Exception:
    """Return the error for an operand that is neither an array nor a Python scalar.

    Args:
        function: the public function.
        name: the parameter.
        value: the user's argument.
        queue: the queue of the other arrays, if there are any.
    """
    if isinstance(value, np.ndarray):
        return HostConversionError(
            f"{function}: {name} is a NumPy array (numpy.ndarray), which is not copied to a "
            f"device implicitly. Write {name} = {copying_call(name, queue)}, or set "
            "dp.config.host_operands = 'copy'"
        )
    return HostConversionError(
        f"{function}: {name} of type {class_name(value)} is neither an array nor a scalar; "
        f"convert it with dp.asarray({name})"
    )


def class_name(value: Any) -> str:
    """Return the name of a value's class for messages, with its package: ``numpy.ndarray``."""
    cls = type(value)
    package = (cls.__module__ or "").partition(".")[0]
    return cls.__qualname__ if package in ("", "builtins") else f"{package}.{cls.__qualname__}"


_NUMBERS = frozenset({int, float})


def check_array(
    function: str, name: str, value: Any, placement: Placement | None = None
) -> ndarray:
    """Return ``value`` if it is an array; a scalar or a sequence as an array.

    Args:
        function: the public function.
        name: the parameter.
        value: the user's argument.
        placement: the placement of a new array; by default that of arrays in a sequence, or the
            default device.

    Raises:
        HostConversionError: it is anything else, such as a NumPy array.
    """
    if is_operand(function, value):
        return value
    if isinstance(value, bool | int | float | complex | np.generic):
        if placement is None or placement.usm_type == "device":
            return full_scalar(
                value, default_device().queue if placement is None else placement.queue
            )
        return from_host(np.asarray(value), *placement)
    if isinstance(value, list | tuple | range):
        if placement is None:
            small = joined_at_once(value)
            if small is not None:
                return small
            inside = arrays_inside(name, value)
            placement = (
                common_placement(function, inside)
                if inside
                else Placement(default_device().queue, "device")
            )
        return stack_nested(function, value, placement, name)
    if is_shareable(value):
        return shared(value)
    if is_taken_from_host(value):
        if placement is None:
            placement = Placement(default_device().queue, "device")
        return taken_from_host(function, name, value, placement)
    raise foreign_operand(function, name, value, placement and placement.queue)


def joined_at_once(sequence: Any) -> ndarray | None:
    """Return a few small arrays, or Python numbers, as one array; ``None`` for anything else."""
    if type(sequence) not in (list, tuple) or not sequence:
        return None
    if type(sequence[0]) is ndarray:
        return compute_small(np.array, sequence, joins=True)
    if not set(map(type, sequence)) <= _NUMBERS:
        return None
    values = np.array(sequence)
    if values.dtype.char not in "dl":  # of integers beyond 64 bits
        return None
    queue = usual_queue()
    if queue is None or not is_made_by_host(values.size, queue, "device"):
        return None
    return ndarray._from_host_value(values, queue, "device")


def is_taken_from_host(value: Any) -> bool:
    """Return whether a NumPy array is copied to the device without an error.

    ``dp.config.host_operands`` allows it for all of them. Dask's functions of chunks combine chunks
    with small NumPy arrays of their own, which their users cannot convert.
    """
    return isinstance(value, np.ndarray) and (
        config.host_operands != "error" or _is_given_by_dask()
    )


def _is_given_by_dask() -> bool:
    """Return whether a function of ``dask.array``, rather than a user function, called dparray."""
    if "dask.array" not in sys.modules:
        return False
    frame = _hooks.user_frame()
    return frame is not None and frame.f_globals.get("__name__", "").startswith("dask.array.")


def on_queue_of(x: Any, value: Any) -> Any:
    """Return indices, a mask or coordinates of ``x`` on its queue: a NumPy array is copied there,
    as a list is.

    Data from the host is refused instead, because implicit copies would hide where data is.
    Indices are small, and often come from labels or masks that exist on the host only.
    """
    if isinstance(value, np.ndarray) and isinstance(x, ndarray):
        return from_host(value, x.queue, x.usm_type)
    return value


def taken_from_host(function: str, name: str, value: np.ndarray, placement: Placement) -> ndarray:
    """Return a device copy of a NumPy operand, which the user has allowed."""
    warn_of_host_copy(f"{function}: {name}, a NumPy array of {value.nbytes} bytes, is copied there")
    return from_host(value, *placement)


def warn_of_host_copy(what: str) -> None:
    """Warn at the user's line about a copy between host and device, if requested."""
    if config.host_operands == "warn":
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals["__name__"].startswith("dparray."):
            frame, level = frame.f_back, level + 1
        warnings.warn(what, HostCopyWarning, stacklevel=level)


def check_arrays(function: str, *named: tuple[str, Any]) -> list[ndarray]:
    """Return operands as arrays: scalars and sequences are placed with the arrays among them, and
    arrays of other libraries share their memory.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        HostConversionError: an operand is a NumPy array, or does not contain numbers.
    """
    queue = getattr(named[0][1], "queue", None) if named else None
    for _, value in named:
        if type(value) is not ndarray or value.queue is not queue:
            break
    else:
        return [value for _, value in named]
    named = tuple([(name, shared(value)) for name, value in named])
    arrays = [each for each in named if is_operand(function, each[1])] or [
        pair
        for name, value in named
        if isinstance(value, list | tuple)
        for pair in arrays_inside(name, value)
    ]
    placement = common_placement(function, arrays) if arrays else None
    checked = [check_array(function, name, value, placement) for name, value in named]
    if not all(is_operand(function, value) for _, value in named):
        # A sequence may contain arrays of another queue.
        common_placement(function, [(name, x) for (name, _), x in zip(named, checked, strict=True)])
    return checked


def named_arrays(function: str, arrays: Any) -> list[tuple[str, ndarray]]:
    """Return a sequence of arrays with names by position, after checking each."""
    if isinstance(arrays, np.ndarray):
        raise foreign_operand(function, "arrays", arrays)
    if not hasattr(arrays, "__getitem__"):
        raise ArgumentError(
            f"{function}: arrays, a {type(arrays).__name__}, must be a sequence; give a list or "
            f"a tuple: list(arrays)"
        )
    values = list(arrays)
    names = [f"arrays[{position}]" for position in range(len(values))]
    checked = check_arrays(function, *zip(names, values, strict=True))
    return list(zip(names, checked, strict=True))


def arrays_inside(name: str, sequence: Any) -> list[tuple[str, ndarray]]:
    """Return the arrays in nested sequences, named by their position."""
    pairs: list[tuple[str, ndarray]] = []
    if isinstance(sequence, range) or set(map(type, sequence)) <= _NUMBERS:
        return pairs
    for position, element in enumerate(sequence):
        if isinstance(element, ndarray):
            pairs.append((f"{name}[{position}]", element))
        elif isinstance(element, list | tuple):
            pairs += arrays_inside(f"{name}[{position}]", element)
    return pairs


def shared_inside(sequence: Any) -> Any:
    """Return nested sequences with arrays of other libraries as dparray arrays over the same
    memory.
    """
    if type(sequence) not in (list, tuple):
        return shared(sequence)
    # Numbers, the usual content of sequences, are not inspected one by one.
    kinds = set(map(type, sequence))
    if not any(kind in (list, tuple) or kind not in WEAK_TYPES for kind in kinds):
        return sequence
    return [shared_inside(element) for element in sequence]


def moved_inside(sequence: Any, queue: Queue) -> Any:
    """Return nested sequences with arrays of other queues and of NumPy copied to ``queue``."""
    if isinstance(sequence, np.ndarray):
        return from_host(sequence, queue, "device")
    if type(sequence) not in (list, tuple):
        return sequence.to_device(queue) if isinstance(sequence, ndarray) else sequence
    kinds = set(map(type, sequence))
    if not any(kind in (list, tuple) or kind not in WEAK_TYPES for kind in kinds):
        return sequence
    return [moved_inside(element, queue) for element in sequence]


def stack_nested(function: str, sequence: Any, placement: Placement, name: str = "obj") -> ndarray:
    """Return nested sequences of arrays and scalars, the parameter ``name``, as one array."""
    if not arrays_inside("", sequence):
        return from_host(host_values(function, sequence, placement.queue), *placement)
    parts: list[Any] = []
    for position, element in enumerate(sequence):
        inner = f"{name}[{position}]"
        if isinstance(element, list | tuple | range):
            parts.append(stack_nested(function, element, placement, inner))
        elif isinstance(element, ndarray):
            parts.append(element)
        elif isinstance(element, bool | int | float | complex | np.generic):
            parts.append(from_host(np.asarray(element), *placement))
        elif is_taken_from_host(element):
            parts.append(taken_from_host(function, inner, element, placement))
        else:
            raise foreign_operand(function, inner, element, placement.queue)
    if len({part.shape for part in parts}) != 1:
        raise ShapeError(
            f"{function}: the elements have the shapes {[part.shape for part in parts]}; "
            f"they must be equal"
        )
    small = compute_small(np.array, parts, joins=True)
    if small is not None:
        return small
    shape = (len(parts), *parts[0].shape)
    result = empty_on(placement, shape, _dtypes.promote([part.dtype for part in parts]))
    for position, part in enumerate(parts):
        result[position] = part
    return result


def host_values(
    function: str, obj: Any, queue: Queue, wanted: np.dtype[Any] | None = None
) -> np.ndarray:
    """Return a host array of the values, with the device's default dtype if Python types decide.

    Strings and objects become numbers if a dtype is requested, as in NumPy.
    """
    try:
        values = np.asarray(obj)
    except ValueError as error:
        raise ShapeError(f"{function}: the sequences do not form an array: {error}") from None
    if wanted is not None and values.dtype.kind in "OSU" and not isinstance(obj, Iterator):
        try:
            return np.asarray(obj, wanted)
        except OverflowError:
            raise
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{function}: {obj!r:.60} does not become {wanted}: {error}"
            ) from None
    if values.dtype.kind not in "biufc" and not _dtypes.is_bfloat16(values.dtype):
        raise DTypeError(
            f"{function}: {_shown(obj, values)} is not numeric (NumPy's dtype for it is "
            f"{values.dtype}); {_cure_of(function, obj, values)}supported dtypes are "
            f"{', '.join(_dtypes.NAMES)}"
        )
    if not isinstance(obj, HOST_TYPES):
        return values.astype(_dtypes.fit_device(values.dtype, traits_of(queue)), copy=False)
    return values


def _shown(obj: Any, values: np.ndarray) -> str:
    """Return a short description of host data: Python objects, or the class and shape of others."""
    if type(obj).__module__ == "builtins":
        return f"{type(obj).__name__} {obj!r:.60}"
    columns = [str(name) for name, dtype in zip(*_columns(obj), strict=True) if dtype.kind == "O"]
    where = f" with text or objects in {', '.join(columns[:5])}" if columns else ""
    return f"the {class_name(obj)} of shape {values.shape}{where}"


def _columns(table: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the names and dtypes of the columns of a pandas table; nothing for other objects."""
    if not hasattr(table, "select_dtypes"):
        return (), ()
    return list(table.columns), list(table.dtypes)


def _cure_of(function: str, obj: Any, values: np.ndarray) -> str:
    """Return advice if host values are not numbers, as far as possible."""
    if hasattr(obj, "select_dtypes"):  # pandas
        return "take its numeric columns: dp.asarray(df.select_dtypes('number')); "
    if isinstance(obj, Iterator):
        return "write dp.fromiter(x, dtype); "
    if values.dtype.names:
        field = values.dtype.names[0]
        return f"arrays have no fields: keep an array for each, such as dp.asarray(x[{field!r}]); "
    if values.dtype.kind in "SU" and function == "asarray":
        return "text becomes numbers with dtype=, bytes with dp.frombuffer(x, 'uint8'); "
    if values.dtype.kind == "O":
        whole = [one for one in values.flat if isinstance(one, int)]
        if any(not -(2**63) <= one < 2**64 for one in whole):
            return "integers have at most 64 bits here, and floats are dtype='float64'; "
        if function == "asarray":
            return "objects become numbers with dtype=; "
    return ""


def check_out(
    function: str, arrays: Sequence[tuple[str, ndarray]], out: Any, name: str = "out"
) -> None:
    """Check before any work that ``out``, if given, is an array on the inputs' queue."""
    if out is not None:
        common_placement(function, [*arrays, (name, checked_out(function, out))])


def checked_out(function: str, out: Any) -> ndarray:
    if isinstance(out, ndarray):
        return out
    raise HostConversionError(
        f"{function}: out must be an array to write into; got a {class_name(out)}"
    )


def check_fits(
    function: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    out: ndarray,
    casting: str = "same_kind",
    broadcasts: bool = False,
) -> None:
    """Check that a result fits ``out``, an array on its queue (:func:`check_out`).

    Args:
        function: the public function.
        shape, dtype: the result's.
        out: the destination.
        casting: the allowed conversions, as in NumPy.
        broadcasts: whether the result may broadcast to the shape of ``out``.

    Raises:
        ShapeError, DTypeError: it does not fit.
    """
    if shape != out.shape and not (
        broadcasts and _layout.broadcast_shapes(function, [shape, out.shape]) == out.shape
    ):
        raise ShapeError(
            f"{function}: the result of shape {shape} does not fit out of shape {out.shape}"
        )
    if dtype != out.dtype and not _dtypes.can_cast(dtype, out.dtype, casting):
        raise DTypeError(
            f"{function}: the result of dtype {dtype} does not fit out of dtype {out.dtype} by the "
            f"rule {casting!r}; write out = out.astype('{dtype}') first"
        )


def scalar_value(value: Any) -> Any:
    """Return a NumPy scalar as the equivalent Python scalar; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def checked_scalar(function: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a Python scalar as one that ``dtype`` can represent.

    Raises:
        OverflowError: an integer outside the dtype's range.
        DTypeError: a complex number for a real dtype, NaN or infinity for an integer.
    """
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if isinstance(value, complex):
        if kind != "c":
            raise DTypeError(f"{function}: the complex number {value} does not fit into {dtype}")
        return value
    if kind in "iu":
        try:
            value = int(value)
        except (ValueError, OverflowError):
            raise DTypeError(f"{function}: {value} does not fit into {dtype}") from None
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(
                f"{function}: {value} does not fit into {dtype} ({limits.min} ... {limits.max})"
            )
        return value
    return complex(value) if kind == "c" else float(value)


def typed_scalars(operands: Sequence[Any], traits: Traits) -> list[int]:
    """Return the positions of NumPy scalars, with dtypes that the device supports, among the
    operands.
    """
    return [
        position
        for position, value in enumerate(operands)
        if isinstance(value, np.generic) and _dtypes.fit_device(value.dtype, traits) == value.dtype
    ]


def coerce_operands(function: str, names: Sequence[str], operands: Sequence[Any]) -> list[Any]:
    """Return operands with sequences as arrays, placed with the arrays among them; scalars stay
    scalars.
    """
    named = [(name, shared(value)) for name, value in zip(names, operands, strict=True)]
    arrays = [each for each in named if isinstance(each[1], ndarray)]
    placement = common_placement(function, arrays, True) if arrays else None
    return [
        check_array(function, name, value, placement)
        if type(value) in SEQUENCES or is_taken_from_host(value)
        else value
        for name, value in named
    ]
