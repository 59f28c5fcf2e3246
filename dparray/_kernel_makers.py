"""``@dp.elementwise`` and ``@dp.reduction``: array functions made of scalar functions.

Both follow data like every other function. The scalar function is compiled as a device function
into a kernel that is written once for each number of dimensions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import prod
from types import FunctionType
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array import (
    astype_array,
    check_array,
    check_out,
    checked_scalar,
    empty_on,
    foreign_operand,
    ndarray,
    reduce_array,
    scalar_value,
)
from dparray._compiler import DeviceFunction
from dparray._creation import full
from dparray._evaluate import evaluate
from dparray._layout import broadcast_shapes, reduced_shape
from dparray._manipulation import broadcast_to, reshape
from dparray._placement import common_placement
from dparray._reduction_ops import combination
from dparray.device import default_device
from dparray.exceptions import (
    AxisError,
    DTypeError,
    KernelArgumentError,
    ShapeError,
    UnsupportedFeatureError,
)
from dparray.kernel import KernelFunction, kernel
from dparray.kernel_api import Range

__all__ = ["ElementwiseFunction", "ReductionFunction", "elementwise", "reduction", "vectorize"]

_RANGE_DIMENSIONS = 3
_WEAK = {bool: bool, int: int, float: float, complex: complex}


class ElementwiseFunction:
    """An array function that applies a scalar function to every element; see :func:`elementwise`.

    Attributes:
        device_function: the scalar function, for use in kernels.
    """

    def __init__(self, function: Callable[..., Any], dtype: Any) -> None:
        self.device_function = (
            function if isinstance(function, DeviceFunction) else DeviceFunction(function, {})
        )
        self.py_func = self.device_function.py_func
        self.options = self.device_function.options
        self.__name__ = self.py_func.__name__
        self.__qualname__ = self.py_func.__qualname__
        self.__module__ = self.py_func.__module__
        self.__doc__ = self.py_func.__doc__
        self._parameters = tuple(inspect.signature(self.py_func).parameters)
        self._dtype = None if dtype is None else np.dtype(dtype)
        self._kernels: dict[tuple[int, int], KernelFunction] = {}

    def __repr__(self) -> str:
        return f"<dparray elementwise function {self.__qualname__}>"

    def __call__(self, *operands: Any, out: ndarray | None = None) -> ndarray:
        """Apply the function to arrays and scalars, broadcast against each other.

        Raises:
            ExecutionPlacementError: the arrays are on different queues.
            HostConversionError: an operand is a NumPy array.
            KernelArgumentError: too many operands or too few.
            ShapeError: the shapes do not broadcast, or not to ``out``.
            DTypeError: the result does not fit ``out``.
        """
        if len(operands) != len(self._parameters):
            raise KernelArgumentError(
                f"{self.__name__}: takes {len(self._parameters)} operands "
                f"({', '.join(self._parameters)}); got {len(operands)}"
            )
        values = [scalar_value(value) for value in operands]
        arrays = [
            (name, value)
            for name, value in zip(self._parameters, values, strict=True)
            if isinstance(value, ndarray)
        ]
        for name, value in zip(self._parameters, values, strict=True):
            if not isinstance(value, ndarray | bool | int | float | complex | np.generic):
                raise foreign_operand(self.__name__, name, value)
        if out is not None:
            check_out(self.__name__, arrays, out)
        if not arrays:
            queue = default_device().sycl_queue if out is None else out.sycl_queue
            values[0] = full((), values[0], sycl_queue=queue)
            arrays = [(self._parameters[0], values[0])]
        placement = common_placement(self.__name__, arrays)
        shape = broadcast_shapes(self.__name__, [array.shape for _, array in arrays])
        values = [
            self._operand(name, value, arrays)
            for name, value in zip(self._parameters, values, strict=True)
        ]
        dtype = self._dtype or self._result_dtype(values)
        dtype = _dtypes.fit_device(dtype, placement.queue.sycl_device)
        if out is None:
            out = empty_on(placement, shape, dtype)
        elif broadcast_shapes(self.__name__, [shape, out.shape]) != out.shape:
            raise ShapeError(
                f"{self.__name__}: the result of shape {shape} does not fit out of {out.shape}"
            )
        elif not np.can_cast(dtype, out.dtype, "same_kind"):
            raise DTypeError(
                f"{self.__name__}: the result of dtype {dtype} does not fit out of dtype "
                f"{out.dtype}"
            )
        if out.size:
            self._launch(values, out)
        return out

    def _operand(self, name: str, value: Any, arrays: Sequence[tuple[str, ndarray]]) -> Any:
        """An array, or a scalar in the dtype it takes beside the arrays."""
        if isinstance(value, ndarray):
            return value
        if isinstance(value, np.generic):
            return value
        beside = np.result_type(*(array.dtype for _, array in arrays), value)
        return beside.type(checked_scalar(self.__name__, value, beside))

    def _result_dtype(self, values: Sequence[Any]) -> np.dtype[Any]:
        """What NumPy's rules give for the function: it is tried on ones of the operands' dtypes.

        A Python scalar as the result is as weak as one in an expression.
        """
        dtypes = [value.dtype for value in values]
        with np.errstate(all="ignore"):
            try:
                result = self.py_func(*(dtype.type(1) for dtype in dtypes))
            except Exception as error:
                raise DTypeError(
                    f"{self.__name__}: its dtype cannot be found by trying it on ones of dtypes "
                    f"{', '.join(map(str, dtypes))} ({type(error).__name__}: {error}); give it: "
                    "@dp.elementwise(dtype=...)"
                ) from error
        if isinstance(result, np.generic):
            return result.dtype
        if type(result) not in _WEAK:
            raise DTypeError(
                f"{self.__name__}: returns a {type(result).__name__}; an elementwise function "
                "returns a number"
            )
        if type(result) is bool:
            return np.dtype(bool)
        return np.result_type(*dtypes, result)

    def _launch(self, values: Sequence[Any], out: ndarray) -> None:
        shown = [
            broadcast_to(value, out.shape) if isinstance(value, ndarray) else value
            for value in values
        ]
        target = out
        contiguous = all(
            _is_contiguous(array) for array in (out, *shown) if isinstance(array, ndarray)
        )
        if contiguous and out.ndim != 1:
            target = reshape(out, (-1,))
            shown = [reshape(v, (-1,)) if isinstance(v, ndarray) else v for v in shown]
        arrays = tuple(isinstance(value, ndarray) for value in shown)
        made = self._kernel(target.ndim, arrays)
        made[_range_of(target.shape)](target, *shown)

    def _kernel(self, ndim: int, arrays: tuple[bool, ...]) -> KernelFunction:
        key = (ndim, sum(is_array << place for place, is_array in enumerate(arrays)))
        made = self._kernels.get(key)
        if made is None:
            made = self._kernels[key] = kernel(_elementwise_kernel(self, ndim, arrays))
        return made


def _is_contiguous(x: ndarray) -> bool:
    stride = x.itemsize
    for extent, actual in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if extent != 1 and actual != stride:
            return False
        stride *= extent
    return True


def _range_of(shape: tuple[int, ...]) -> Range:
    return Range(*shape) if 1 <= len(shape) <= _RANGE_DIMENSIONS else Range(prod(shape))


def _elementwise_kernel(
    function: ElementwiseFunction, ndim: int, arrays: tuple[bool, ...]
) -> FunctionType:
    """The kernel that applies the function, as generated source."""
    names = [f"a{i}" for i in range(len(arrays))]
    body = []
    if ndim <= _RANGE_DIMENSIONS:
        indices = [f"i{axis}" for axis in range(ndim)]
        body = [f"{index} = item.get_id({axis})" for axis, index in enumerate(indices)]
    else:
        # More dimensions than a range has: one number, taken apart from the last axis on.
        indices = [f"i{axis}" for axis in range(ndim)]
        body = ["rest = item.get_id(0)"]
        for axis in reversed(range(ndim)):
            body.append(f"i{axis} = rest % out.shape[{axis}]")
            body.append(f"rest = rest // out.shape[{axis}]")
    place = f"[{', '.join(indices)}]" if indices else "[()]"
    operands = [name + place if array else name for name, array in zip(names, arrays, strict=True)]
    body.append(f"out{place} = function({', '.join(operands)})")
    name = f"elementwise_{function.__name__}" if function.__name__.isidentifier() else "elementwise"
    text = "\n    ".join([f"def {name}(item, out, {', '.join(names)}):", *body])
    scope: dict[str, Any] = {"function": function.device_function}
    exec(compile(text, f"<{name}>", "exec"), scope)
    return scope[name]


def elementwise(function: Any = None, *, dtype: Any = None) -> Any:
    """Make an array function of a scalar function.

    The result broadcasts its operands and follows them: same queue, coerced USM type. Its dtype
    is what NumPy's rules give for the expression, with Python numbers weak; ``dtype`` overrules.

    Args:
        function: a Python function of numbers in the kernel language, or a device function.
        dtype: the dtype of the result, for functions that cannot be tried on the host.

    Example:
        >>> import dparray as dp
        >>> @dp.elementwise
        ... def clipped_line(x, slope):
        ...     y = slope * x + 1
        ...     return y if y < 5 else 5.0
        >>> clipped_line(dp.asarray([0.0, 1.0, 9.0], dtype="float32"), 2).asnumpy()
        array([1., 3., 5.], dtype=float32)
    """
    if function is None:
        return lambda function: ElementwiseFunction(function, dtype)
    return ElementwiseFunction(function, dtype)


def vectorize(
    pyfunc: Any = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Any = None,
    cache: bool = False,
    signature: str | None = None,
) -> Any:
    """Make an array function of a scalar function: NumPy's name for :func:`elementwise`.

    The function is compiled for the device, so it is written in the kernel language.

    Args:
        pyfunc: a Python function of numbers.
        otypes: the result's dtype: one, or a list or string of one.
        doc: its docstring.
        excluded, signature: not supported.
        cache: without effect: compiled functions are kept anyway.

    Raises:
        UnsupportedFeatureError: ``excluded`` or ``signature`` is given, or several results.

    Example:
        >>> import dparray as dp
        >>> @dp.vectorize
        ... def step(x, at):
        ...     return 1.0 if x > at else 0.0
        >>> step(dp.asarray([1.0, 3.0]), 2.0).asnumpy()
        array([0., 1.])
    """
    if excluded or signature is not None:
        raise UnsupportedFeatureError(
            "vectorize: excluded= and signature= are not supported; write a function of arrays, or "
            "a kernel"
        )
    if pyfunc is None:
        return lambda function: vectorize(function, otypes, doc, excluded, cache, signature)
    if isinstance(otypes, str | list | tuple):
        if len(otypes) != 1:
            raise UnsupportedFeatureError("vectorize: a function has one result; otypes names more")
        otypes = otypes[0]
    made = ElementwiseFunction(pyfunc, None if otypes is None else _dtypes.as_dtype(otypes))
    if doc is not None:
        made.__doc__ = doc
    return made


class ReductionFunction:
    """An array function that combines elements along axes; see :func:`reduction`."""

    def __init__(self, combine: Callable[..., Any], identity: Any, map_: Any, dtype: Any) -> None:
        self.combine = (
            combine if isinstance(combine, DeviceFunction) else DeviceFunction(combine, {})
        )
        self.identity = identity
        self.py_func = self.combine.py_func
        self.__name__ = self.py_func.__name__
        self.__qualname__ = self.py_func.__qualname__
        self.__module__ = self.py_func.__module__
        self.__doc__ = self.py_func.__doc__
        name = self.__name__ if self.__name__.isidentifier() else "combine"
        self._row = combination(name, self.combine)
        self._map = None if map_ is None else ElementwiseFunction(map_, dtype)
        self._dtype = None if dtype is None else np.dtype(dtype)

    def __repr__(self) -> str:
        return f"<dparray reduction {self.__qualname__}>"

    def __call__(
        self,
        *operands: Any,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        out: ndarray | None = None,
    ) -> ndarray:
        """Map the operands and combine the results along ``axis``, or all of them.

        Raises:
            ExecutionPlacementError: the arrays are on different queues.
            AxisError: there is no such axis, or it is given twice.
            ShapeError, DTypeError: the result does not fit ``out``.
        """
        if self._map is not None:
            x = self._map(*operands)
        elif len(operands) == 1:
            x = check_array(self.__name__, "x", operands[0])
        else:
            raise KernelArgumentError(
                f"{self.__name__}: takes one array; got {len(operands)} operands. A reduction of "
                "several arrays needs map="
            )
        if out is not None:
            check_out(self.__name__, [("x", x)], out)
        if self._dtype is not None and x.dtype != self._dtype:
            x = astype_array(x, self._dtype)
        axes = _checked_axes(self.__name__, axis, x.ndim)
        result = self._reduce(x, axes, keepdims)
        if out is None:
            return result
        if out.shape != result.shape:
            raise ShapeError(
                f"{self.__name__}: the result of shape {result.shape} does not fit out of "
                f"{out.shape}"
            )
        if not np.can_cast(result.dtype, out.dtype, "same_kind"):
            raise DTypeError(
                f"{self.__name__}: the result of dtype {result.dtype} does not fit out of dtype "
                f"{out.dtype}"
            )
        out[...] = result
        return out

    def _reduce(self, x: ndarray, axes: tuple[int, ...], keepdims: bool) -> ndarray:
        if x.size == 0:
            return full(
                reduced_shape(x.shape, axes, keepdims),
                x.dtype.type(self.identity),
                dtype=x.dtype,
                usm_type=x.usm_type,
                sycl_queue=x.sycl_queue,
            )
        if x.dtype.kind not in "iuf" or x.dtype == np.float16:
            raise DTypeError(
                f"{self.__name__}: combines integers and floats of at least 32 bits; the mapped "
                f"dtype is {x.dtype}. Give dtype= for another one"
            )
        identity = checked_scalar(self.__name__, scalar_value(self.identity), x.dtype)
        result = reduce_array(self._row, x, axes, keepdims, x.dtype, x.dtype, identity)
        evaluate(result._node)  # so that the compiler's errors come here
        return result


def _checked_axes(function: str, axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = []
    for given in axis if isinstance(axis, tuple | list) else (axis,):
        if not -ndim <= given < ndim:
            raise AxisError(f"{function}: axis {given} is out of bounds for {ndim} dimensions")
        axes.append(given % ndim)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{function}: axis {axis} names an axis twice")
    return tuple(sorted(axes))


def reduction(
    combine: Any = None,
    *,
    identity: Any,
    map: Any = None,
    dtype: Any = None,
) -> Any:
    """Make a reduction of a function that combines two values.

    The elements, or what ``map`` makes of them, are combined in many places at once, so the
    function must be associative and commutative; the order depends on the shape and the device
    alone. The result follows its operands.

    Args:
        combine: a Python function of two numbers in the kernel language, or a device function.
        identity: the number that changes nothing when it is combined, such as 0 in a sum; the
            result of an empty reduction.
        map: a scalar function of one or more operands that is applied first.
        dtype: what to map and combine in; by default the dtype of the operand, or of the mapped
            value.

    Example:
        >>> import dparray as dp
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
