"""``@dp.elementwise`` and ``@dp.reduction``: array functions from scalar functions.

Both follow their data and are lazy, like every other function: the scalar function is a device
function that the kernels of expressions call.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import inspect
import itertools
import linecache
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import BuiltinFunctionType, FunctionType
from typing import Any, overload

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import full_scalar
from dparray._array.apply import astype_array, operate, operate_into, reduce_array
from dparray._array.assignment import write_out
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
    check_out,
    checked_scalar,
    dispatch_override,
    foreign_operand,
    overriding,
    scalar_value,
    shared,
)
from dparray._compiler.key import UnkeyedError, describe
from dparray._driver import traits_of
from dparray._driver.waiting import long_work
from dparray._evaluate.evaluate import compile_alone
from dparray._functions.creation import empty, full
from dparray._functions.manipulation import permute_dims, reshape
from dparray._functions.single_precision import in_single, takes_bfloat16
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import Op
from dparray._graph.reductions import REDUCTION_COST, Reduce, Reduction, combination
from dparray._language.device_function import DeviceFunction, may_loop
from dparray._language.references import Reference
from dparray._layout import broadcast_shapes, normalize_axes, reduced_shape
from dparray._placement import Placement, common_placement
from dparray.device import default_device
from dparray.exceptions import (
    ArgumentError,
    DTypeError,
    KernelArgumentError,
    KernelCompileError,
)

__all__ = ["ElementwiseFunction", "ReductionFunction", "elementwise", "reduction"]

_SEQUENCES = list | tuple | range
_WEAK = {bool: bool, int: int, float: float, complex: complex}


class _Scalar:
    """A scalar function, and the operations that call it.

    An operation captures the values to which the function refers when the operation is requested; a
    new operation is created after one of these is reassigned.
    """

    def __init__(self, function: DeviceFunction) -> None:
        self.function = function
        self.name = function.__name__
        if not (self.name.isidentifier() and self.name.isascii()):
            self.name = "function"
        self._references: tuple[Reference, ...] | None = None
        self._current: tuple[str, DeviceFunction] = ("", function)

    def current(self) -> tuple[str, DeviceFunction]:
        """Return the function with the values it refers to now, and a unique name."""
        if self._references is None or not all(each.is_current for each in self._references):
            copy, self._references = self.function.frozen()
            try:
                text = repr((describe(copy.py_func), sorted(copy.options.items())))
                digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
            except UnkeyedError:
                digest = f"u{next(_unkeyed)}"
            self._current = f"{self.name}_{digest}", copy
        return self._current


_DIGITS = 16
_unkeyed = itertools.count()


def _python_function(function: Any, who: str, count: int | None = None) -> Any:
    """Return the Python function from which to compile kernels, given a scalar function.

    A C function such as ``math.erf`` is called by a generated wrapper.

    Args:
        function: the argument of the caller.
        who: the public function, for the message.
        count: the number of operands, if known.

    Raises:
        KernelArgumentError: a kernel cannot call the function.
    """
    if isinstance(function, FunctionType | DeviceFunction):
        return function
    if isinstance(function, BuiltinFunctionType):
        name, module = function.__name__, sys.modules.get(str(function.__module__))
        with contextlib.suppress(ValueError):  # C functions may have no signature
            count = count or len(inspect.signature(function).parameters)
        if count and module in (math, builtins) and getattr(module, name, None) is function:
            operands = ", ".join("abcdefgh"[:count])
            prefix = "math." if module is math else ""
            scope: dict[str, Any] = {"__name__": __name__, "math": math}
            text = f"def {name}_({operands}):\n    return {prefix}{name}({operands})\n"
            file = f"<{who} of {prefix}{name}>"
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
            exec(compile(text, file, "exec"), scope)
            return scope[f"{name}_"]
    if isinstance(function, np.ufunc):
        raise KernelArgumentError(
            f"{who}: np.{function.__name__} works on host arrays; "
            f"dp.{function.__name__} works on dparray arrays, and `math` functions on elements"
        )
    raise KernelArgumentError(
        f"{who}: {function!r} of type {type(function).__name__} must be a Python function that a "
        "kernel can be compiled from; write one that calls it: lambda x: ..."
    )


class _SeveralResultsError(Exception):
    """Raised when a scalar function returned a tuple."""

    def __init__(self, count: int) -> None:
        self.count = count


class _UserLoops:
    """The potentially endless loops of user-defined functions in generated kernels."""

    def has_long_work(self) -> bool:
        """Return whether such a loop can run."""
        return True


_USER_LOOPS = _UserLoops()


class ElementwiseFunction:
    """An array function that applies a scalar function to each element; see :func:`elementwise`.

    Attributes:
        device_function: the scalar function, for use in kernels.
        parameters: the names of its parameters.
    """

    def __init__(self, function: Callable[..., Any], dtype: Any) -> None:
        function = _python_function(function, "elementwise")
        self._made_by = type(self), function, dtype
        self.device_function = (
            function if isinstance(function, DeviceFunction) else DeviceFunction(function, {})
        )
        self.py_func = self.device_function.py_func
        self.options = self.device_function.options
        if not (self.py_func.__module__ or "").startswith("dparray") and may_loop(self.py_func):
            long_work.add(_USER_LOOPS)  # kernels are generated with it from now on
        self.__name__ = self.py_func.__name__
        self.__qualname__ = self.py_func.__qualname__
        self.__module__ = self.py_func.__module__
        self.__doc__ = self.py_func.__doc__
        self._signature = inspect.signature(self.py_func)
        self.parameters = tuple(self._signature.parameters)
        if not self.parameters:
            raise KernelArgumentError(
                f"elementwise: {self.__name__} must have at least one operand; it is called "
                "with one element of each array"
            )
        named = inspect.Parameter.KEYWORD_ONLY
        # The prefix of each operand in a call of the function: the name of keyword-only ones.
        self._prefixes = tuple(
            f"{each.name}=" if each.kind is named else ""
            for each in self._signature.parameters.values()
        )
        # A function with several results is split into one for each; the first call finds out.
        self._parts: tuple[ElementwiseFunction, ...] | None = None
        if isinstance(dtype, list | tuple):
            self._parts = self._made_for_each(dtype)
            dtype = None
        self._dtype = None if dtype is None else _dtypes.as_dtype(dtype)
        self._scalar = _Scalar(self.device_function)
        # By the name of the current version of the function, and the kind of its result.
        self._ops: dict[tuple[str, str], Op] = {}
        self._tried: dict[tuple[str, tuple[np.dtype[Any], ...]], np.dtype[Any]] = {}
        self._compiled: set[tuple[Any, ...]] = set()

    def __repr__(self) -> str:
        return f"<dparray elementwise function {self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # functions are pickled by name

    def __call__(self, *operands: Any, out: Any = None, **named: Any) -> ndarray:
        """Apply the function to arrays, sequences and scalars, broadcast against each other.

        The result is pending like that of any operation, and is fused with the operations before
        and after it. Operands may be passed by name, and those with a default may be omitted. For
        several results, the return value and ``out`` are tuples.

        Raises:
            ArgumentError: ``out`` does not have one array for each result.
            ExecutionPlacementError: the arrays are on different queues.
            HostConversionError: an operand is a NumPy array.
            KernelArgumentError: too many or too few operands, or an unknown name.
            KernelCompileError: the function does not compile for these dtypes.
            ShapeError: the shapes do not broadcast, or do not match ``out``.
            DTypeError: the result cannot be stored in ``out``.
        """
        options = named if out is None else {**named, "out": out}
        if takes_bfloat16(operands, named):
            return in_single(self, operands, options)
        if self._parts is None and isinstance(out, tuple):
            self(*operands, **named)  # finds the number of results
        if self._parts is not None:
            return self._call_each(self._parts, operands, named, out)
        values = [shared(value) for value in self._bound(operands, named)]
        arrays = self._arrays(values)
        if any(isinstance(value, _SEQUENCES) for value in values):
            place = common_placement(self.__name__, arrays) if arrays else None
            values = [
                check_array(self.__name__, name, value, place)
                if isinstance(value, _SEQUENCES)
                else value
                for name, value in zip(self.parameters, values, strict=True)
            ]
            arrays = self._arrays(values)
        taken = dispatch_override(self, values, out=out)
        if taken is not NotImplemented:
            return taken
        for name, value in zip(self.parameters, values, strict=True):
            if not isinstance(value, ndarray | bool | int | float | complex | np.number | np.bool_):
                raise foreign_operand(self.__name__, name, value)
            if isinstance(value, np.generic):
                _dtypes.as_dtype(value.dtype)
        if out is not None:
            check_out(self.__name__, arrays, out)
        if not arrays:
            queue = default_device().queue if out is None else out.queue
            values[0] = full_scalar(values[0], queue)
            arrays = [(self.parameters[0], values[0])]
        placement = common_placement(self.__name__, arrays)
        shape = broadcast_shapes(self.__name__, [array.shape for _, array in arrays])
        dtypes = self._dtypes_of(values, arrays)
        for index, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
            if not isinstance(value, ndarray):
                values[index] = checked_scalar(self.__name__, scalar_value(value), dtype)
        try:
            op, dtype = self._operation(dtypes)
        except _SeveralResultsError as found:
            self._parts = self._made_for_each([None] * found.count)
            return self._call_each(self._parts, operands, named, out)
        signature = (*dtypes, _dtypes.fit_device(dtype, traits_of(placement.queue)))
        self._compile(op, values, signature, shape, placement)
        if out is None:
            return operate(op, values, signature, shape, placement)
        return operate_into(out, op, values, signature, shape, placement)

    def _arrays(self, values: Sequence[Any]) -> list[tuple[str, ndarray]]:
        """Return the arrays among the operands, with their names."""
        return [
            (name, value)
            for name, value in zip(self.parameters, values, strict=True)
            if isinstance(value, ndarray)
        ]

    @property
    def has_one_result(self) -> bool:
        """Whether it returns an array, not a tuple of arrays, as far as is known."""
        return self._parts is None

    def _made_for_each(self, dtypes: Sequence[Any]) -> tuple[ElementwiseFunction, ...]:
        """Create a function for each result; the compiler removes code for the others."""
        scope: dict[str, Any] = {"__name__": __name__, "function": self.device_function}
        given = ", ".join(
            f"{name}={name}" if prefix else name
            for name, prefix in zip(self.parameters, self._prefixes, strict=True)
        )
        made = []
        for number, dtype in enumerate(dtypes):
            name = f"{self.__name__}_{number}" if self.__name__.isidentifier() else f"_{number}"
            text = (
                f"def {name}({', '.join(self.parameters)}):\n"
                f"    return function({given})[{number}]\n"
            )
            file = f"<result {number} of {self.__qualname__}>"
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
            exec(compile(text, file, "exec"), scope)
            made.append(ElementwiseFunction(scope[name], dtype))
        return tuple(made)

    def _call_each(
        self,
        parts: tuple[ElementwiseFunction, ...],
        operands: tuple[Any, ...],
        named: Mapping[str, Any],
        out: Any,
    ) -> Any:
        """Return a tuple of results, instead of the usual single array."""
        if out is None:
            out = (None,) * len(parts)
        if not isinstance(out, tuple) or len(out) != len(parts):
            raise ArgumentError(
                f"{self.__name__}: has {len(parts)} results; out= must be a tuple of as many arrays"
            )
        values = self._bound(operands, named)
        return tuple(part(*values, out=each) for part, each in zip(parts, out, strict=True))

    def _bound(self, operands: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Bind the arguments of a call to the parameters, as Python does."""
        if not named and len(operands) == len(self.parameters) and not any(self._prefixes):
            return operands
        try:
            bound = self._signature.bind(*operands, **named)
        except TypeError as error:
            count = len(operands) + len(named)
            raise KernelArgumentError(
                f"{self.__name__}: takes {len(self.parameters)} operands "
                f"({', '.join(self.parameters)}); got {count}: {error}"
            ) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def bound_by_name(self, operands: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operand of each parameter by its name."""
        return dict(zip(self.parameters, self._bound(operands, named), strict=True))

    def _by_position(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a Python function that accepts all of these parameters by position."""
        if not any(self._prefixes):
            return function
        count = self._prefixes.count("")
        names = self.parameters[count:]
        return lambda *elements: function(
            *elements[:count], **dict(zip(names, elements[count:], strict=True))
        )

    def _dtypes_of(
        self, values: Sequence[Any], arrays: Sequence[tuple[str, ndarray]]
    ) -> tuple[np.dtype[Any], ...]:
        """Return the dtypes of arrays and NumPy scalars; the other operands are weak."""
        own = [array.dtype for _, array in arrays]
        return tuple(
            value.dtype if isinstance(value, ndarray | np.generic) else np.result_type(*own, value)
            for value in values
        )

    def _operation(self, dtypes: tuple[np.dtype[Any], ...]) -> tuple[Op, np.dtype[Any]]:
        """Return the operation on operands of these dtypes, and the dtype of its result."""
        name, function = self._scalar.current()
        dtype = self._dtype or self._tried.get((name, dtypes))
        if dtype is None:
            dtype = self._tried[name, dtypes] = self._result_dtype(dtypes)
        kind = self._kind(dtype, dtypes)
        op = self._ops.get((name, kind))
        if op is None:
            count = len(self.parameters)
            operands = (f"{one}{{{index}}}" for index, one in enumerate(self._prefixes))
            call = f"{name}({', '.join(operands)})"
            if kind in ("b", "i", "f"):
                call = f"of_kind({call}, '{kind}')"
            op = self._ops[name, kind] = Op(
                self._scalar.name,
                np.frompyfunc(self._by_position(function.py_func), count, 1),
                f"the function {self.__qualname__}",
                expression=f"bool({call})" if dtype.kind == "b" else call,
                kinds="biufc",
                cost=REDUCTION_COST,
                functions={name: function},
                made_by=self,
            )
        return op, dtype

    def _kind(self, dtype: np.dtype[Any], dtypes: Sequence[np.dtype[Any]]) -> str:
        """Return the kind of number the function must return in kernels.

        ``"any"``, or ``"truth"`` if an explicit dtype requests a conversion to Boolean.

        For uint64 with signed integers, kernels compute integers that wrap around, NumPy float64.
        """
        if self._dtype is not None:
            return "truth" if dtype.kind == "b" else "any"
        if dtype.kind in "biu":
            return "b" if dtype.kind == "b" else "i"
        return "f" if dtype.kind == "f" and all(each.kind in "biu" for each in dtypes) else "any"

    def _result_dtype(self, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
        """Return the result dtype by NumPy's rules, by calling the function with ones.

        If the result is a Python scalar, it is weak, as in an expression.
        """
        with np.errstate(all="ignore"):
            try:
                result = self._by_position(self.py_func)(*(dtype.type(1) for dtype in dtypes))
            except Exception as error:
                raise DTypeError(
                    f"{self.__name__}: cannot infer the result dtype by a call with ones of dtypes "
                    f"{', '.join(map(str, dtypes))} ({type(error).__name__}: {error}); give "
                    "dtype=: @dp.elementwise(dtype=...)"
                ) from error
        if isinstance(result, np.generic) or (type(result) is ndarray and not result.ndim):
            # The functions of dp.special, which are device functions in kernels, return arrays
            # here.
            return result.dtype
        if type(result) is tuple:
            raise _SeveralResultsError(len(result))
        if type(result) not in _WEAK:
            raise DTypeError(
                f"{self.__name__}: returns a {type(result).__name__}, but an element-wise function "
                "must return a number"
            )
        if type(result) is bool:
            return np.dtype(bool)
        return np.result_type(*dtypes, result)

    def _compile(
        self,
        op: Op,
        values: Sequence[Any],
        signature: tuple[np.dtype[Any], ...],
        shape: tuple[int, ...],
        placement: Placement,
    ) -> None:
        """Compile the operation immediately, so that errors come from the line that calls it."""
        key = (op, signature, "fp64" in traits_of(placement.queue).aspects)
        if prod(shape) and key not in self._compiled:
            labels = [
                f"{name}: {each}" for name, each in zip(self.parameters, signature, strict=False)
            ]
            _compile_alone(self.py_func, labels, op, values, signature, shape, *placement)
            self._compiled.add(key)


def _compile_alone(
    function: Callable[..., Any],
    labels: Sequence[str],
    op: Op | Reduce,
    values: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    queue: Any,
    usm_type: str,
) -> None:
    parts = tuple(v._node if isinstance(v, ndarray) else Scalar(v) for v in values)
    try:
        compile_alone(Node(op, parts, signature, shape, prod(shape), queue, usm_type))
    except KernelCompileError as error:
        # The kernel is dparray's; its author knows the function alone.
        _, _, rest = error.details.partition("\n")
        rest = rest.removeprefix(f"in the device function {function.__name__}:\n")
        text = f"function {function.__name__} does not compile for ({', '.join(labels)})\n{rest}"
        raise type(error)(text, details=text) from None


@overload
def elementwise(function: Callable[..., Any], *, dtype: Any = None) -> ElementwiseFunction: ...
@overload
def elementwise(
    function: None = None, *, dtype: Any = None
) -> Callable[[Callable[..., Any]], ElementwiseFunction]: ...
def elementwise(function: Any = None, *, dtype: Any = None) -> Any:
    """Create an array function from a scalar function.

    The result broadcasts its operands and follows them: same queue, coerced USM type. Its dtype
    follows NumPy's rules for the expression, with Python numbers weak; ``dtype`` overrides it. The
    result is pending and is fused with the operations before and after it. Global and captured
    variables have their values at the time of the call and are constants for the compiler; pass
    values that change often as operands.

    Args:
        function: a Python function of numbers in the kernel language, or a device function. A
            function that returns a tuple gives a tuple of arrays.
        dtype: the dtype of the result, for functions that cannot be called on the host; for several
            results, a tuple with one for each.

    Example:
        >>> @dp.elementwise
        ... def clipped_line(x, slope):
        ...     y = slope * x + 1
        ...     return y if y < 5 else 5.0
        >>> clipped_line(dp.asarray([0.0, 1.0, 9.0], dtype="float32"), 2).asnumpy()
        array([1., 3., 5.], dtype=float32)
        >>> @dp.elementwise
        ... def clipped(x, most):
        ...     return (most, True) if x > most else (x, False)
        >>> clipped(dp.asarray([1.0, 5.0]), 2.0)[1].tolist()
        [False, True]
    """
    if function is None:
        return lambda function: ElementwiseFunction(function, dtype)
    return ElementwiseFunction(function, dtype)


class ReductionFunction:
    """An array function that reduces elements along axes; see :func:`reduction`."""

    def __init__(self, combine: Callable[..., Any], identity: Any, map_: Any, dtype: Any) -> None:
        combine = _python_function(combine, "reduction", 2)
        self._made_by = type(self), combine, identity, map_, dtype
        self.combine = (
            combine if isinstance(combine, DeviceFunction) else DeviceFunction(combine, {})
        )
        self.identity = identity
        self.py_func = self.combine.py_func
        self.__name__ = self.py_func.__name__
        self.__qualname__ = self.py_func.__qualname__
        self.__module__ = self.py_func.__module__
        self.__doc__ = self.py_func.__doc__
        self._scalar = _Scalar(self.combine)
        self._rows: dict[tuple[str, str], Reduction] = {}  # by name and kind of number
        self._compiled: set[tuple[Any, ...]] = set()
        self._pairs: dict[np.dtype[Any], ElementwiseFunction] = {}
        self._map = None if map_ is None else ElementwiseFunction(map_, dtype)
        self._dtype = None if dtype is None else _dtypes.as_dtype(dtype)

    def __repr__(self) -> str:
        return f"<dparray reduction {self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # functions are pickled by name

    def __call__(
        self,
        *operands: Any,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        out: ndarray | None = None,
        **named: Any,
    ) -> ndarray:
        """Map the operands and reduce the results along ``axis``, or all of them.

        Operands of the map may be passed by name, and those with a default may be omitted.

        Raises:
            ExecutionPlacementError: the arrays are on different queues.
            AxisError: an axis is out of range.
            ArgumentError: an axis is not an integer.
            ShapeError: an axis occurs twice, or the result does not match ``out``.
            DTypeError: the identity does not match the elements, or the result does not match
                ``out``.
        """
        if overriding((*operands, *named.values(), out)) is not None:
            named |= {"axis": axis, "out": out, "keepdims": keepdims}
            return dispatch_override(self, operands, **named)
        if self._map is not None:
            x = self._map(*operands, **named)
        elif len(operands) == 1 and not named:
            x = check_array(self.__name__, "x", operands[0])
        else:
            raise KernelArgumentError(
                f"{self.__name__}: expects one array; got {len(operands) + len(named)} operands"
                f"{''.join(f', {name}= among them' for name in named)}. A reduction of several "
                "arrays requires map="
            )
        if out is not None:
            check_out(self.__name__, [("x", x)], out)
        if self._dtype is not None and x.dtype != self._dtype:
            x = astype_array(x, self._dtype)
        axes = tuple(range(x.ndim))
        if axis is not None:
            axes = tuple(sorted(normalize_axes(self.__name__, axis, x.ndim)))
        result = self._reduce(x, axes, keepdims)
        return write_out(self.__name__, result, out)

    def _reduce(self, x: ndarray, axes: tuple[int, ...], keepdims: bool) -> ndarray:
        identity = checked_scalar(self.__name__, scalar_value(self.identity), x.dtype)
        if identity != self.identity and x.dtype.kind not in "fc":
            raise DTypeError(
                f"{self.__name__}: the identity {self.identity} cannot be cast to {x.dtype}"
            )
        if x.size == 0:
            return full(
                reduced_shape(x.shape, axes, keepdims),
                identity,
                dtype=x.dtype,
                usm_type=x.usm_type,
                sycl_queue=x.queue,
            )
        # Combined in float32, and rounded once.
        if x.dtype == np.float16 or _dtypes.is_bfloat16(x.dtype):
            wide = astype_array(x, np.dtype(np.float32))
            return astype_array(self._reduce(wide, axes, keepdims), x.dtype)
        if x.dtype.kind == "c":
            return self._combined_pairs(x, axes, keepdims)
        row = self._row(x.dtype.kind)
        key = (row, x.dtype, "fp64" in traits_of(x.queue).aspects)
        if key not in self._compiled:
            attributes = (reduced_shape(x.shape, axes, keepdims), x.queue, x.usm_type)
            op, signature = Reduce(row, axes, keepdims), (x.dtype,) * 3
            labels = [f"{name}: {x.dtype}" for name in inspect.signature(self.py_func).parameters]
            _compile_alone(self.py_func, labels, op, (x, identity), signature, *attributes)
            self._compiled.add(key)
        return reduce_array(row, x, axes, keepdims, x.dtype, x.dtype, identity)

    def _combined_pairs(self, x: ndarray, axes: tuple[int, ...], keepdims: bool) -> ndarray:
        """Reduce complex numbers, for which a single kernel crashes Intel's CPU driver.

        The second half of the remaining elements is combined with the first until one is left.
        """
        kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
        count = prod(x.shape[axis] for axis in axes)
        left = reshape(permute_dims(x, (*axes, *kept)), (count, *(x.shape[axis] for axis in kept)))
        pair = self._pairs.get(x.dtype)
        if pair is None:
            pair = self._pairs[x.dtype] = ElementwiseFunction(self.combine, x.dtype)
        while count > 1:
            pairs = count // 2
            count -= pairs
            combined = empty(
                (count, *left.shape[1:]), x.dtype, usm_type=x.usm_type, sycl_queue=x.queue
            )
            combined[count - 1] = left[count - 1]
            pair(left[:pairs], left[count:], out=combined[:pairs])
            left = combined
        return reshape(left, reduced_shape(x.shape, axes, keepdims))

    def _row(self, kind: str) -> Reduction:
        """Return the reduction by the function with the values it refers to now."""
        name, function = self._scalar.current()
        row = self._rows.get((name, kind))
        if row is None:
            row = self._rows[name, kind] = combination(self._scalar.name, function, kind, self)
        return row


@overload
def reduction(
    combine: Callable[..., Any],
    *,
    identity: Any,
    map: Callable[..., Any] | None = None,
    dtype: Any = None,
) -> ReductionFunction: ...
@overload
def reduction(
    combine: None = None,
    *,
    identity: Any,
    map: Callable[..., Any] | None = None,
    dtype: Any = None,
) -> Callable[[Callable[..., Any]], ReductionFunction]: ...
def reduction(
    combine: Any = None,
    *,
    identity: Any,
    map: Any = None,
    dtype: Any = None,
) -> Any:
    """Create a reduction from a function that combines two values.

    The elements, or the results of ``map``, are combined in parallel, so the function must be
    associative and commutative. The order depends only on the shape and the device. The result
    follows its operands.

    Args:
        combine: a Python function of two numbers in the kernel language, or a device function.
        identity: the neutral element of the function, such as 0 for a sum; the result of an empty
            reduction.
        map: a scalar function of one or more operands that is applied first.
        dtype: the dtype to map and combine in; by default the dtype of the operand, or of the
            mapped value.

    Example:
        >>> @dp.reduction(identity=0.0, map=lambda x, y: (x - y) ** 2)
        ... def squared_distance(a, b):
        ...     return a + b
        >>> x = dp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> squared_distance(x, 1.0, axis=1).asnumpy()
        array([ 1., 13.])
        >>> squared_distance(x, x).item()
        0.0
    """
    if combine is None:
        return lambda combine: ReductionFunction(combine, identity, map, dtype)
    return ReductionFunction(combine, identity, map, dtype)
