"""The options of NumPy's ufuncs: ``out``, ``where``, ``dtype``, ``casting``, ``order``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import cast_unsafe, choose_elements, real_parts
from dparray._array.assignment import assign
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
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


def _named_options(outs: tuple[Any, ...], where: Any, dtype: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults, as the caller wrote them."""
    out = None if not any(each is not None for each in outs) else outs
    named = {"out": out[0] if out is not None and len(out) == 1 else out}
    return named | {"where": where, "dtype": dtype}


def with_options(compute: Callable[..., ndarray]) -> Callable[..., ndarray]:
    """Add the options of NumPy's ufuncs to a function of one or two arrays."""
    name, arity = compute.__name__, compute.__code__.co_argcount
    parameters = compute.__code__.co_varnames[:arity]
    of_numpy = getattr(np, name, None)
    by_numpy = of_numpy if isinstance(of_numpy, np.ufunc) else None

    def compute_quickly(*operands: Any) -> ndarray:
        if any(isinstance(x, list | tuple) for x in operands):
            operands = tuple(coerce_operands(name, parameters, operands))
        if by_numpy is not None:
            small = compute_small(by_numpy, *operands, broadcasts=True)
            if small is not None:
                return small
        return compute(*operands)

    function = taking_options(name, arity, compute_quickly)
    function.__doc__, function.__module__ = compute.__doc__, compute.__module__
    return function


def with_options_of_two(compute: Callable[..., tuple[ndarray, ndarray]]) -> Callable[..., Any]:
    """Add the options of NumPy's ufuncs to a function with two results.

    The ``out=`` arrays are a tuple, in which ``None`` means a new array, or positional arguments.
    """
    name, arity = compute.__name__, compute.__code__.co_argcount
    parameters = ("x",) if arity == 1 else ("x1", "x2")

    def run(
        operands: tuple[Any, ...],
        outs: tuple[Any, Any],
        out: Any,
        where: Any,
        dtype: Any,
        casting: str,
        order: str,
    ) -> tuple[ndarray, ...]:
        if out is not None:
            if type(out) is not tuple or len(out) != 2:
                raise ArgumentError(
                    f"{name}: there are two results; out= must be (first, second), or None for one"
                )
            if outs[0] is not None or outs[1] is not None:
                raise ArgumentError(f"{name}: out must not be given both by position and by name")
            outs = out
        if (
            where is True
            and dtype is None
            and casting is DEFAULT_CASTING
            and order is DEFAULT_ORDER
            and outs[0] is outs[1] is None
        ):
            return compute(*operands)
        return compute_with_options(
            name, parameters, compute, operands, outs, where, dtype, casting, order
        )

    function: Callable[..., Any]
    if arity == 1:

        def unary(
            x: Any,
            out1: ndarray | None = None,
            out2: ndarray | None = None,
            /,
            *,
            out: tuple[ndarray | None, ndarray | None] | None = None,
            where: Any = True,
            dtype: Any = None,
            casting: str = DEFAULT_CASTING,
            order: str = DEFAULT_ORDER,
            subok: bool = True,
        ) -> tuple[ndarray, ...]:
            return run((x,), (out1, out2), out, where, dtype, casting, order)

        function = unary
    else:

        def binary(
            x1: Any,
            x2: Any,
            out1: ndarray | None = None,
            out2: ndarray | None = None,
            /,
            *,
            out: tuple[ndarray | None, ndarray | None] | None = None,
            where: Any = True,
            dtype: Any = None,
            casting: str = DEFAULT_CASTING,
            order: str = DEFAULT_ORDER,
            subok: bool = True,
        ) -> tuple[ndarray, ...]:
            return run((x1, x2), (out1, out2), out, where, dtype, casting, order)

        function = binary
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = compute.__doc__, compute.__module__
    return function


def taking_options(
    name: str,
    arity: int,
    compute: Callable[..., ndarray],
    compute_into: Callable[..., ndarray] | None = None,
) -> Callable[..., ndarray]:
    """Return a function of one or two arrays with the options of NumPy's ufuncs.

    Args:
        name: the public function.
        arity: the number of operands.
        compute: the function that computes the result.
        compute_into: the function for ``out=``; derived from ``compute`` by default.
    """
    function: Callable[..., ndarray]
    if arity == 1:

        def unary(
            x: Any,
            /,
            out: ndarray | None = None,
            *,
            where: Any = True,
            dtype: Any = None,
            casting: str = DEFAULT_CASTING,
            order: str = DEFAULT_ORDER,
            subok: bool = True,
        ) -> ndarray:
            if (
                where is True
                and dtype is None
                and casting is DEFAULT_CASTING
                and order is DEFAULT_ORDER
            ):
                if out is None:
                    return compute(x)
                if compute_into is not None and not isinstance(out, tuple):
                    return compute_into(x, out=out)
            return apply_with_options(
                name, ("x",), compute, (x,), out, where, dtype, casting, order
            )

        function = unary
    else:

        def binary(
            x1: Any,
            x2: Any,
            /,
            out: ndarray | None = None,
            *,
            where: Any = True,
            dtype: Any = None,
            casting: str = DEFAULT_CASTING,
            order: str = DEFAULT_ORDER,
            subok: bool = True,
        ) -> ndarray:
            if (
                where is True
                and dtype is None
                and casting is DEFAULT_CASTING
                and order is DEFAULT_ORDER
            ):
                if out is None:
                    return compute(x1, x2)
                if compute_into is not None and not isinstance(out, tuple):
                    return compute_into(x1, x2, out=out)
            return apply_with_options(
                name, ("x1", "x2"), compute, (x1, x2), out, where, dtype, casting, order
            )

        function = binary
    function.__name__ = function.__qualname__ = name
    return function


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
