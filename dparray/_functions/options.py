"""The options of NumPy's ufuncs: ``out``, ``where``, ``dtype``, ``casting``, ``order``.

Generalized ufuncs, such as ``matmul``, have ``axes`` in place of ``where``: the last axes of each
operand hold the vectors or matrices, unless it names others. The function is repeated over the axes
before them, with broadcasting.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import cast_unsafe, choose_elements, real_parts, with_axes
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
    check_arrays,
    check_fits,
    check_out,
    coerce_operands,
    dispatch_override,
)
from dparray._functions.operands import as_mask, converted
from dparray._placement import common_placement, placement_of
from dparray.exceptions import ArgumentError, DTypeError

#: NumPy's defaults; other values are checked.
DEFAULT_CASTING, DEFAULT_ORDER = "same_kind", "K"
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
_ORDERS = ("C", "F", "A", "K")


def apply_with_options(
    function: str,
    parameters: tuple[str, ...],
    compute: Callable[..., ndarray],
    operands: tuple[Any, ...],
    out: Any,
    where: Any,
    dtype: Any,
    casting: str,
    order: str,
) -> ndarray:
    """Call an element-wise function with the options of NumPy's ufuncs.

    Args:
        function: the public function.
        parameters: the names of its operands.
        compute: the function that computes the result.
        operands: arrays and scalars.
        out: an array to write to, a tuple with that array, or ``None``.
        where: a mask, or ``True``.
        dtype: the dtype to which arrays are converted first, or ``None``.
        casting: the allowed conversions to ``dtype`` and to ``out``.
        order: the memory order of a new result.
    """
    outs = (only_out(function, out),)
    made = compute_with_options(
        function,
        parameters,
        lambda *given: (compute(*given),),
        *(operands, outs, where, dtype, casting, order),
    )
    return made[0]


def compute_with_options(
    function: str,
    parameters: tuple[str, ...],
    compute: Callable[..., tuple[ndarray, ...]],
    operands: tuple[Any, ...],
    outs: tuple[Any, ...],
    where: Any,
    dtype: Any,
    casting: str,
    order: str,
) -> tuple[ndarray, ...]:
    """Call a function of one or more results with the options of NumPy's ufuncs.

    Nothing is written before all results are known to fit. ``outs`` has an array or ``None`` for
    each result; for the other arguments see :func:`apply_with_options`.
    """
    taken = dispatch_override(function, operands, **_named_options(outs, where, dtype))
    if taken is not NotImplemented:
        return taken if isinstance(taken, tuple) else (taken,)
    check_casting(function, casting)
    order = check_order(function, order)
    operands = tuple(coerce_operands(function, parameters, operands))
    if not any(isinstance(value, ndarray) for value in operands):
        given = next((out for out in outs if isinstance(out, ndarray)), None)
        place = None if given is None else placement_of(given)
        operands = (check_array(function, parameters[0], operands[0], place), *operands[1:])
    if dtype is not None:
        signature = _signature_for(function, operands, dtype, casting)
        operands = tuple(
            in_dtype(function, value, each, casting)
            for value, each in zip(operands, signature, strict=True)
        )
        # A scalar takes the dtype of the arrays; without arrays, it becomes an array of its own
        # dtype.
        arrays = [value for value in operands if isinstance(value, ndarray)]
        place, dtypes = placement_of(arrays[0]), {value.dtype for value in arrays}
        operands = tuple(
            value
            if isinstance(value, ndarray) or each in dtypes
            else from_host(np.asarray(value, each), *place)
            for value, each in zip(operands, signature, strict=True)
        )
    elif casting in ("no", "equiv"):
        _check_unconverted(function, operands, casting)
    placed = [
        (name, value)
        for name, value in zip(parameters, operands, strict=True)
        if isinstance(value, ndarray)
    ]
    mask = None
    if where is not True:
        mask = as_mask(function, where, placement_of(placed[0][1]))
        placed.append(("where", mask))
    for at, out in enumerate(outs, 1):
        check_out(function, placed, out, "out" if len(outs) == 1 else f"out{at}")
    common_placement(function, placed)
    results = compute(*operands)
    values = []
    for result, out in zip(results, outs, strict=True):
        if out is not None:
            check_fits(function, result.shape, result.dtype, out, casting, broadcasts=True)
            result = cast_unsafe(result, out.dtype)
        if mask is not None:
            result = choose_elements(function, mask, result, 0 if out is None else out)
        if out is not None:
            check_fits(function, result.shape, out.dtype, out, broadcasts=True)
        values.append(result)
    for value, out in zip(values, outs, strict=True):
        if out is not None:
            assign(out, value, function)
    return tuple(
        ordered(value, order, operands) if out is None else out
        for value, out in zip(values, outs, strict=True)
    )


def apply_for_two_results(
    function: str,
    parameters: tuple[str, ...],
    compute: Callable[..., tuple[ndarray, ...]],
    operands: tuple[Any, ...],
    outs: tuple[Any, Any],
    out: Any,
    where: Any,
    dtype: Any,
    casting: str,
    order: str,
) -> tuple[ndarray, ...]:
    """Call a function of two results, whose outputs ``outs`` by position or ``out`` may name."""
    if out is not None:
        if type(out) is not tuple or len(out) != 2:
            raise ArgumentError(
                f"{function}: there are two results; out= must be (first, second), or None for one"
            )
        if outs[0] is not None or outs[1] is not None:
            raise ArgumentError(f"{function}: out must not be given both by position and by name")
        outs = out
    return compute_with_options(
        function, parameters, compute, operands, outs, where, dtype, casting, order
    )


def _named_options(outs: tuple[Any, ...], where: Any, dtype: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults, as the caller wrote them."""
    out = None if not any(each is not None for each in outs) else outs
    named = {"out": out[0] if out is not None and len(out) == 1 else out}
    return named | {"where": where, "dtype": dtype}


def only_out(function: str, out: Any) -> Any:
    """Return ``out``, unpacked from NumPy's tuple of one.

    Raises:
        ArgumentError: it is a tuple of another length.
    """
    if type(out) is not tuple:
        return out
    if len(out) != 1:
        raise ArgumentError(
            f"{function}: there is one result, but out is a tuple of {len(out)}; give out=array"
        )
    return out[0]


def check_casting(function: str, casting: Any) -> None:
    """Raise unless a value is one of NumPy's casting rules.

    Raises:
        ArgumentError: the rule is unknown.
    """
    _check_choice(function, "casting", casting, _CASTINGS)


def check_order(function: str, order: Any) -> str:
    """Return NumPy's name of a memory order, also for ``None`` and lowercase letters.

    Raises:
        ArgumentError: the order is unknown.
    """
    order = _layout.as_order(order, DEFAULT_ORDER)
    _check_choice(function, "order", order, _ORDERS)
    return order


def _check_choice(function: str, name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if type(value) is not str or value not in allowed:
        raise ArgumentError(
            f"{function}: {name} must be one of {', '.join(allowed)}; got {value!r}"
        )


#: The kinds of Python numbers; each includes those before it.
_PYTHONS = (bool, int, float, complex)


def in_dtype(function: str, value: Any, dtype: Any, casting: str) -> Any:
    """Return an operand in the dtype to compute in; Python scalars are weak."""
    wanted = _dtypes.as_dtype(dtype)
    if not isinstance(value, ndarray | np.generic):
        rank = next((at for at, kind in enumerate(_PYTHONS) if isinstance(value, kind)), 0)
        if rank <= "bifc".find(wanted.kind.replace("u", "i")):
            return value
        if casting != "unsafe":
            raise DTypeError(
                f"{function}: {value!r} cannot be cast to {wanted} with casting={casting!r}; "
                "use casting='unsafe' to truncate it"
            )
        with np.errstate(all="ignore"):
            return np.asarray(value if wanted.kind == "b" else value.real).astype(wanted)[()]
    if value.dtype.kind == "c" and wanted.kind != "c" and casting != "unsafe":
        raise DTypeError(
            f"{function}: {value.dtype} cannot be cast to {wanted}; use dp.real(x) or dp.abs(x)"
        )
    if not _dtypes.can_cast(value.dtype, wanted, casting):
        raise DTypeError(
            f"{function}: {value.dtype} cannot be cast to {wanted} with casting={casting!r}; use "
            f"`x.astype('{wanted}')`"
        )
    if isinstance(value, np.generic):
        with np.errstate(all="ignore"):
            return wanted.type(value.real if wanted.kind not in "bc" else value)
    if value.dtype.kind == "c" and wanted.kind == "b":
        return cast_unsafe(value, wanted)
    return converted(value if wanted.kind == "c" else real_parts(value), wanted)


def _signature_for(function: str, operands: tuple[Any, ...], dtype: Any, casting: str) -> list[Any]:
    """Return the dtypes of operands for which results have ``dtype``: others for predicates.

    If NumPy has no loop with such results, the operands must have ``dtype`` themselves.
    """
    wanted = _dtypes.as_dtype(dtype)
    if function.startswith("logical_") and wanted.kind == "b":  # for operands of any dtype
        return [
            getattr(x, "dtype", next((kind for kind in _PYTHONS if isinstance(x, kind)), wanted))
            for x in operands
        ]
    ufunc = getattr(np, function, None)
    if isinstance(ufunc, np.ufunc) and ufunc.nin == len(operands):
        truth = np.dtype(bool)  # Python numbers are identified by their type, except Booleans
        keys = [getattr(x, "dtype", truth if isinstance(x, bool) else type(x)) for x in operands]
        signature = (None,) * ufunc.nin + (wanted,) * ufunc.nout
        try:
            found = ufunc.resolve_dtypes(
                (*keys, *(None,) * ufunc.nout),
                signature=signature,
                casting=casting,  # type: ignore[arg-type]
            )
        except (TypeError, ValueError):
            pass
        else:
            return list(found[: ufunc.nin])
    return [wanted] * len(operands)


def _check_unconverted(function: str, operands: tuple[Any, ...], casting: str) -> None:
    """Raise if NumPy's ufunc would compute arrays in a dtype other than their own."""
    ufunc = getattr(np, function, None)
    if not isinstance(ufunc, np.ufunc):
        return
    keys = [
        value.dtype if isinstance(value, ndarray | np.generic) else type(value)
        for value in operands
    ]
    if any(key not in (bool, int, float, complex) for key in keys if isinstance(key, type)):
        return  # there are no operands
    for value, wanted in zip(operands, _dtypes.resolve(ufunc, tuple(keys)), strict=False):
        if isinstance(value, ndarray | np.generic):
            in_dtype(function, value, wanted, casting)


def _in_new_memory(values: ndarray, axes: tuple[int, ...] | None) -> ndarray:
    """Return a copy whose axes have a given order in memory."""
    copy = empty_on(placement_of(values), values.shape, values.dtype, axes)
    assign(copy, values)
    return copy


def ordered(result: ndarray, order: str, operands: Sequence[Any]) -> ndarray:
    """Return a new result in the requested order, copied if necessary."""
    if order == "K" or result.ndim < 2:
        return result
    if order == "A":
        arrays = [x for x in operands if isinstance(x, ndarray)]
        by_rows, by_columns = (
            all(_layout.is_contiguous(x.shape, x.strides, x.itemsize, one) for x in arrays)
            for one in ("C", "F")
        )
        order = "F" if by_columns and not by_rows else "C"
    if _layout.is_contiguous(result.shape, result.strides, result.itemsize, order):
        return result
    return _in_new_memory(result, _layout.order_like(result.shape, (), 0, order))


def are_default(axes: Any, dtype: Any, casting: Any, order: Any) -> bool:
    """Return whether no option except ``out=`` is given."""
    return axes is None and dtype is None and casting is DEFAULT_CASTING and order is DEFAULT_ORDER


def spreads_over(shape: tuple[int, ...], out: tuple[int, ...], core: int) -> bool:
    """Return whether vectors or matrices of ``count`` axes fill an array of their layout."""
    return len(out) > len(shape) and shape[len(shape) - core :] == out[len(out) - core :]


def product_with_options(
    function: str,
    cores: Callable[[ndarray, ndarray], tuple[int, int, int]],
    compute: Callable[[ndarray, ndarray], ndarray],
    operands: tuple[Any, Any],
    out: Any,
    axes: Any,
    dtype: Any,
    casting: str,
    order: Any,
) -> ndarray:
    """Compute a product of vectors or matrices with the options of NumPy's ufuncs.

    Args:
        function: the public function.
        cores: the number of axes of the vectors or matrices of both operands and the result.
        compute: the function that computes the product along the last axes.
        operands: the arguments as given by the caller.
        out: an array to write to, or a tuple with that array, or ``None``.
        axes: the positions of those axes in the operands and the result, or ``None``.
        dtype: the dtype to which the operands are converted first, or ``None``.
        casting: the allowed conversions to ``dtype`` and to ``out``.
        order: ``"F"`` for a new result in Fortran order.

    Raises:
        ArgumentError, AxisError: ``axes`` is invalid.
        DTypeError: ``casting`` forbids a conversion.
        ShapeError: the result does not match ``out``.
    """
    check_casting(function, casting)
    order = check_order(function, order)
    out = only_out(function, out)
    x1, x2 = check_arrays(function, ("x1", operands[0]), ("x2", operands[1]))
    named = (("x1", x1), ("x2", x2))
    check_out(function, named, out)
    if dtype is not None:
        x1, x2 = (in_dtype(function, x, dtype, casting) for x in (x1, x2))
    counts = cores(x1, x2)
    third: tuple[int, ...] = ()
    if axes is not None:
        first, second, third = _axes_of(function, axes, counts)
        x1, x2 = _with_last(function, x1, first), _with_last(function, x2, second)
    result = compute(x1, x2)
    if third:
        order_of_axes = list(range(result.ndim - len(third)))
        positions = _layout.normalize_axes(function, third, result.ndim)
        for position, axis in sorted(zip(positions, range(-len(third), 0), strict=True)):
            order_of_axes.insert(position, result.ndim + axis)
        result = with_axes(result, order_of_axes)
    if out is None:
        return ordered(result, order, (x1, x2))
    spreads = not third and spreads_over(result.shape, out.shape, counts[2])
    check_fits(function, result.shape, result.dtype, out, casting, spreads)
    assign(out, cast_unsafe(result, out.dtype), function)
    return out


def _axes_of(
    function: str, axes: Any, counts: tuple[int, int, int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the axes of the operands and the result, each as a tuple."""
    given = list(axes) if isinstance(axes, list | tuple) else None
    if given is not None and len(given) == 2 and counts[2] == 0:
        given.append(())
    if given is None or len(given) != 3:
        raise ArgumentError(
            f"{function}: axes must be a list of the axes of x1, x2 and the result; got {axes!r}"
        )
    entries = []
    for name, entry, count in zip(("x1", "x2", "the result"), given, counts, strict=True):
        try:
            numbers = tuple(
                operator.index(at) for at in (entry if isinstance(entry, list | tuple) else [entry])
            )
        except TypeError:
            raise ArgumentError(
                f"{function}: axes of {name} must be integers; got {entry!r}"
            ) from None
        if len(numbers) != count:
            raise ArgumentError(
                f"{function}: axes of {name} must be {count} integers; got {entry!r}"
            )
        entries.append(numbers)
    return entries[0], entries[1], entries[2]


def _with_last(function: str, x: ndarray, axes: tuple[int, ...]) -> ndarray:
    """Return the view of an array with some axes as its last ones."""
    last = _layout.normalize_axes(function, axes, x.ndim)
    return with_axes(x, [axis for axis in range(x.ndim) if axis not in last] + list(last))


def single_axis(function: str, axis: Any, axes: Any) -> Any:
    """Return ``axes=`` for two vectors along the same axis.

    Raises:
        ArgumentError: both are given.
    """
    if axis is None:
        return axes
    if axes is not None:
        raise ArgumentError(f"{function}: give either axis= or axes=, not both")
    return [axis, axis, ()]


def with_kept_axis(function: str, result: ndarray, axis: Any, axes: Any) -> ndarray:
    """Return the products of vectors with the axis of the vectors kept, with length 1."""
    kept = -1 if axis is None else axis
    if axes is not None and len(axes) == 3 and axes[2] != ():
        kept = axes[2][0] if isinstance(axes[2], list | tuple) else axes[2]
    at = _layout.normalize_axis(function, kept, result.ndim + 1)
    shape, strides = result.shape, result.strides
    return result._view(
        (*shape[:at], 1, *shape[at:]), (*strides[:at], 0, *strides[at:]), result.offset
    )
