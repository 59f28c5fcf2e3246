"""Element-wise functions, generated from the op table with template docstrings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import OPERATIONS, apply, as_operand, operate, ops
from dparray._array.ndarray import array_method, as_method, ndarray
from dparray._array.nodes import array_of_operation
from dparray._array.operands import (
    check_array,
    checked_scalar,
    coerce_operands,
    dispatch_override,
    foreign_operand,
    overriding,
    scalar_value,
)
from dparray._driver import traits_of
from dparray._functions.creation import zeros_like
from dparray._functions.inspection import result_type
from dparray._functions.operands import converted
from dparray._functions.options import (
    DEFAULT_CASTING,
    DEFAULT_ORDER,
    apply_with_options,
    check_casting,
)
from dparray._functions.public import public, ufunc
from dparray._graph.ops import OPS, WHERE, Op
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, DTypeError

_DEFAULT_SAMPLES = {1: ("[0.25, 1.0]",), 2: ("[0.25, 1.0]", "0.5")}

_TEMPLATE = """Return {summary}, element-wise.

    Args:
{arguments}
        out: an array to write to; its shape must be the broadcast shape and the result's dtype
            must fit.
        where: a mask; elsewhere ``out`` keeps its values, and a new result is zero.
        dtype: the dtype to compute in.
        casting: the allowed conversions to ``dtype`` and ``out``, as in NumPy.
        order: ``"F"`` for a new result in Fortran order; otherwise C order.
        subok: ignored; arrays have no subclasses.

    Returns:
        An array of the broadcast shape on the queue of the arrays, with the USM type coerced from
        the arrays' (device over shared over host). The dtype is that of NumPy's ``{ufunc}``:
        Python scalars are weak, NumPy scalars count as arrays. On a device without
        fp64, single precision replaces double.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        HostConversionError: an operand is a NumPy array.
        DTypeError: not defined for these dtypes, or ``casting`` forbids a conversion.
        ArgumentError: ``casting`` or ``order`` is unknown.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> dp.{name}(dp.asarray({first}){rest}).asnumpy()
        {result!r}
    """


def _documentation(op: Op) -> str:
    samples = op.samples or _DEFAULT_SAMPLES[op.arity]
    result = op.ufunc(np.asarray(eval(samples[0])), *map(eval, samples[1:]))
    names = ("x",) if op.arity == 1 else ("x1", "x2")
    with np.printoptions(precision=8):
        return _TEMPLATE.format(
            summary=op.summary,
            arguments="\n".join(f"        {name}: an array or a scalar." for name in names),
            ufunc=op.ufunc.__name__,
            name=op.name,
            first=samples[0],
            rest="".join(f", {sample}" for sample in samples[1:]),
            result=result,
        )


def _make(op: Op) -> Callable[..., ndarray]:
    """Create the public function of a row of the table."""
    function = ufunc(op.name, op.parameters, OPERATIONS[op], into=partial(apply, op), operation=op)
    function.__module__ = __name__
    function.__doc__ = _documentation(op)
    return function


def _make_all() -> dict[str, Callable[..., ndarray]]:
    functions = {}
    for op in OPS.values():
        function = _make(op)
        for name in (op.name, *op.aliases):
            functions[name] = function
    functions["rint"] = _make_rint()
    return functions


def _rint(x: Any, /) -> ndarray:
    """Round to the nearest integer, ties to even, as a float.

    Raises:
        HostConversionError: ``x`` is a NumPy array.

    Example:
        >>> dp.rint(dp.asarray([0.5, 1.5, 2.5])).asnumpy()
        array([0., 2., 2.])
    """
    if overriding((x,)) is not None:
        return dispatch_override("rint", (x,))
    x = check_array("rint", "x", x)
    if x.dtype.kind in "biu":
        dtype = _dtypes.resolve(np.rint, (x.dtype,))[-1]
        x = converted(x, _dtypes.fit_device(dtype, traits_of(x.queue)))
    return ops.round(x)


def _make_rint() -> Callable[..., ndarray]:
    """Round as NumPy's ``rint`` does, to floats; the Array API's ``round`` keeps integers."""
    function = ufunc("rint", ("x",), _rint)
    function.__module__, function.__doc__ = __name__, _rint.__doc__
    return function


FUNCTIONS = _make_all()
globals().update(FUNCTIONS)

# The public `round` accepts decimals.
__all__ = [
    *(name for name in FUNCTIONS if name != "round"),
    "angle",
    "clip",
    "imag",
    "real",
    "rsqrt",
    "where",
]


@array_method("conj")
def _conjugated(self: ndarray, out: ndarray | None = None) -> ndarray:
    """Return the complex conjugate, element-wise; a real array is returned unchanged, as in NumPy.

    Example:
        >>> dp.asarray([1 + 2j]).conj().asnumpy()
        array([1.-2.j])
    """
    return self if self.dtype.kind != "c" and out is None else FUNCTIONS["conj"](self, out)


ndarray.conjugate = _conjugated  # type: ignore[attr-defined]


@public()
def rsqrt(x: Any, /, out: ndarray | None = None) -> ndarray:
    """Return the reciprocal square root, ``1 / sqrt(x)``, element-wise.

    See :func:`sqrt` for dtype, placement and errors.

    Example:
        >>> dp.rsqrt(dp.asarray([0.25, 1.0])).asnumpy()
        array([2., 1.])
    """
    root = ops.sqrt(x)
    return apply(OPS["reciprocal"], root, out=root if out is None else out)


@public()
def real(x: Any, /) -> ndarray:
    """Return the real part: a view of a complex array, or a real array itself.

    Example:
        >>> dp.real(dp.asarray([1 + 2j])).asnumpy()
        array([1.])
    """
    return x if x.dtype.kind != "c" else _part(x, 0)


@public()
def imag(x: Any, /) -> ndarray:
    """Return the imaginary part: a view of a complex array, or zeros for a real one.

    Example:
        >>> dp.imag(dp.asarray([1 + 2j])).asnumpy()
        array([2.])
    """
    return zeros_like(x) if x.dtype.kind != "c" else _part(x, x.itemsize // 2)


def _part(x: ndarray, offset: int) -> ndarray:
    """Return the floats ``offset`` bytes into each element of a complex array."""
    dtype = np.dtype(f"f{x.itemsize // 2}")
    return x._view(x.shape, x.strides, x.offset + offset, dtype)


@public()
def angle(x: Any, /, deg: bool = False) -> ndarray:
    """Return the angle of complex numbers, from -pi to pi or from -180 to 180 degrees.

    Example:
        >>> dp.angle(dp.asarray([1j, -1 + 0j])).asnumpy()
        array([1.57079633, 3.14159265])
    """
    in_degrees = _layout.check_flag("angle", "deg", deg)
    imaginary = imag(x) if x.dtype.kind == "c" else 0
    turned = ops.atan2(imaginary, real(x))
    return ops.multiply(turned, 180 / np.pi) if in_degrees else turned


def _set_real(self: ndarray, value: Any) -> None:
    real(self)[...] = value


def _set_imag(self: ndarray, value: Any) -> None:
    if self.dtype.kind != "c":
        raise DTypeError(f"x.imag = ...: x of dtype {self.dtype} has no imaginary part to set")
    imag(self)[...] = value


def _attach_parts() -> None:
    ndarray.real = property(real, _set_real, doc="The real part.")  # type: ignore[assignment]
    ndarray.imag = property(imag, _set_imag, doc="The imaginary part.")  # type: ignore[assignment]


_attach_parts()


def _is_plain_selection(condition: ndarray, x1: Any, x2: Any) -> bool:
    """Return whether NumPy selects from these values: it wraps integers that overflow."""
    if x1 is None or x2 is None:
        return False
    return (type(x1) is not int or 0 <= x1 < 128) and (type(x2) is not int or 0 <= x2 < 128)


@public(
    operands=("condition", "x1", "x2"),
    small=np.where,
    when=_is_plain_selection,
    mode="broadcast",
    converts=False,
)
def where(
    condition: Any,
    x1: Any = None,
    x2: Any = None,
    /,
    out: ndarray | None = None,
    *,
    order: str = DEFAULT_ORDER,
) -> Any:
    """Return elements of ``x1`` where ``condition`` is true, and of ``x2`` elsewhere.

    Args:
        condition: an array; nonzero elements are true.
        x1: an array or a scalar.
        x2: an array or a scalar.
        out: an array to write the result to.
        order: ``"F"`` for a new result in Fortran order.

    Returns:
        An array of the broadcast shape and the promoted dtype on the queue of the arrays. With only
        a condition, the indices where it is true, as in :func:`nonzero`.

    Raises:
        ArgumentError: only one of ``x1`` and ``x2`` is given.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> x = dp.asarray([-1.0, 2.0])
        >>> dp.where(x > 0, x, 0).asnumpy()
        array([0., 2.])
    """
    if x1 is None and x2 is None:
        return check_array("where", "condition", condition).nonzero()  # type: ignore[attr-defined]
    if x1 is None or x2 is None:
        raise ArgumentError("where: give both x1 and x2, or neither")
    if out is not None or order is not DEFAULT_ORDER:
        return apply_with_options(
            *("where", ("condition", "x1", "x2"), where, (condition, x1, x2)),
            *(out, True, None, DEFAULT_CASTING, order),
        )
    if (
        type(condition) is type(x1) is type(x2) is ndarray
        and condition.shape == x1.shape == x2.shape
        and x1.dtype == x2.dtype
    ):
        named = (("condition", condition), ("x1", x1), ("x2", x2))
        placement = common_placement("where", named, True)
        signature = (_dtypes.bool, x1.dtype, x1.dtype, x1.dtype)
        return array_of_operation(WHERE, (condition, x1, x2), signature, x1.shape, placement)
    condition, x1, x2 = coerce_operands("where", ("condition", "x1", "x2"), (condition, x1, x2))
    named = (("condition", condition), ("x1", x1), ("x2", x2))
    placed = [(name, value) for name, value in named if isinstance(value, ndarray)]
    for name, value in named:
        if not isinstance(value, ndarray | bool | int | float | complex | np.generic):
            raise foreign_operand("where", name, value, placed[0][1].queue if placed else None)
    if not placed:
        condition = check_array("where", "condition", condition)
        placed = [("condition", condition)]
    placement = common_placement("where", placed, True)
    keys = [
        value.dtype if isinstance(value, ndarray) else _dtypes.promotion_key(value)
        for value in (x1, x2)
    ]
    values = [scalar_value(value) for value in (x1, x2)]
    if any(isinstance(key, np.dtype) for key in keys):
        dtype = _dtypes.promote(keys)
    else:
        traits = traits_of(placement.queue)
        dtype = _dtypes.promote(
            [_dtypes.default_for_scalar(type(value), traits) for value in values]
        )
    if "fp64" not in traits_of(placement.queue).aspects:
        dtype = _dtypes.fit_device(dtype, traits_of(placement.queue))
    shape = _layout.broadcast_shapes("where", [array.shape for _, array in placed])
    operands = [
        value if isinstance(value, ndarray) else checked_scalar("where", value, dtype)
        for value in values
    ]
    mask = condition if isinstance(condition, ndarray) else bool(condition)
    return operate(WHERE, (mask, *operands), (_dtypes.bool, dtype, dtype, dtype), shape, placement)


def _is_of_floats(value: Any) -> bool:
    return isinstance(value, ndarray | np.generic) and value.dtype.kind in "fc"


@as_method
@public(operands=("x", "min", "max"), small=np.clip, mode="broadcast", converts=False)
def clip(
    x: Any,
    min: Any = None,
    max: Any = None,
    out: ndarray | None = None,
    *,
    a_min: Any = None,
    a_max: Any = None,
    where: Any = True,
    dtype: Any = None,
    casting: str = DEFAULT_CASTING,
    order: str = "K",
    subok: bool = True,
) -> ndarray:
    """Limit values to the range from ``min`` to ``max``, either of which may be ``None``.

    Args:
        x: an array.
        min: the lower bound, an array or a scalar, or ``None``. A Python integer may be outside the
            range of an integer dtype.
        max: the upper bound, an array or a scalar, or ``None``.
        out: an array to write the result to.
        a_min, a_max: NumPy's older names for the bounds.
        where, dtype, casting, order, subok: as in every element-wise function.

    Returns:
        An array of the broadcast shape with the dtype that ``x`` and the bounds promote to.

    Raises:
        ShapeError: the shapes do not broadcast.

    Example:
        >>> dp.clip(dp.asarray([1, 5, 9]), 2, 6).asnumpy()
        array([2, 5, 6])
    """
    min, max = min if a_min is None else a_min, max if a_max is None else a_max
    check_casting("clip", casting)
    is_plain = where is True and dtype is None and casting == DEFAULT_CASTING and str(order) == "K"
    if out is not None or not is_plain:
        named = {"x": x, "min": min, "max": max}
        given = {name: value for name, value in named.items() if name == "x" or value is not None}
        return apply_with_options(
            *("clip", tuple(given), lambda *values: clip(**dict(zip(given, values, strict=True)))),
            *(tuple(given.values()), out, where, dtype, casting, order),
        )
    x = check_array("clip", "x", x)
    placed = [
        (name, value)
        for name, value in (("x", x), ("min", min), ("max", max))
        if isinstance(value, ndarray)
    ]
    common_placement("clip", placed, True)
    if x.dtype.kind in "iu":  # a bound that has no effect need not fit
        limits = np.iinfo(x.dtype)
        min = None if type(min) is int and min <= limits.min else min
        max = None if type(max) is int and max >= limits.max else max
    result = x
    bounds = [value for value in (min, max) if value is not None]
    has_floats = any(type(x) in (float, complex) or _is_of_floats(x) for x in bounds)
    if x.dtype.kind in "biu" and has_floats:
        # The kind of float is that of the other bound, if it has a dtype.
        kinds = [np.asarray(one).dtype if isinstance(one, list | tuple) else one for one in bounds]
        result = as_operand(x, result_type(x, *kinds))
    if min is not None and max is not None:
        # If two values are equal, the result is the second, the element, so that -0.0 keeps its
        # sign.
        return ops.minimum(max, ops.maximum(min, result))
    if min is not None:
        result = ops.maximum(result, min)
    if max is not None:
        result = ops.minimum(result, max)
    return x.copy("K") if result is x else result  # type: ignore[attr-defined, no-any-return]
