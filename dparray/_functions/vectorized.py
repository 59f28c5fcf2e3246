"""``vectorize``: NumPy's decorator for array functions from functions of numbers or vectors."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays
from dparray._functions import bits, elementwise, mathematics
from dparray._functions.manipulation import broadcast_to
from dparray._functions.user_functions import ElementwiseFunction
from dparray._placement import Placement, common_placement
from dparray.exceptions import (
    ArgumentError,
    KernelArgumentError,
    ShapeError,
)

__all__ = ["vectorize"]

_CORES = re.compile(r"\(([^()]*)\)")
_SIGNATURE = re.compile(r"\([^()]*\)(,\([^()]*\))*->\([^()]*\)(,\([^()]*\))*")


def vectorize(
    pyfunc: Any = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Any = None,
    cache: bool = False,
    signature: str | None = None,
) -> Any:
    """Create an array function from a scalar function; NumPy's name for :func:`elementwise`.

    The function is compiled for the device, so it must be in the kernel language. With a
    ``signature`` it is instead a function of arrays, which Python calls for each vector or matrix
    in its operands.

    Args:
        pyfunc: a Python function of numbers, or a NumPy ufunc, which stands for dparray's function.
        otypes: the dtype of the result, or a list or string with one for each result.
        doc: the docstring.
        excluded: positions and names of parameters that are passed unchanged: numbers or tuples of
            numbers, which are constants for the compiler.
        cache: ignored; compiled functions are always cached.
        signature: the axes of vectors and matrices, as ``"(n),(n)->()"``.

    Raises:
        ArgumentError: ``signature`` is invalid.
        KernelArgumentError: a kernel cannot be compiled from ``pyfunc``.

    Example:
        >>> @dp.vectorize
        ... def step(x, at):
        ...     return 1.0 if x > at else 0.0
        >>> step(dp.asarray([1.0, 3.0]), 2.0).asnumpy()
        array([0., 1.])
        >>> ranges = dp.vectorize(lambda x: dp.max(x) - dp.min(x), signature="(n)->()")
        >>> ranges(dp.asarray([[1, 5], [2, 4]])).asnumpy()
        array([4, 2])
    """
    if pyfunc is None:
        return lambda function: vectorize(function, otypes, doc, excluded, cache, signature)
    left_out = frozenset(excluded or ())
    if signature is not None:
        made: Any = _OfArrays(pyfunc, signature, _result_dtypes(otypes), left_out)
    else:
        dtypes = _result_dtypes(otypes) or [None]
        dtype = dtypes[0] if len(dtypes) == 1 else tuple(dtypes)
        ours = _function_like(pyfunc)
        if ours is not None:
            return ours
        made = (
            _WithConstants(pyfunc, dtype, left_out)
            if left_out
            else ElementwiseFunction(pyfunc, dtype)
        )
    if doc is not None:
        made.__doc__ = doc
    return made


def _result_dtypes(otypes: Any) -> list[Any] | None:
    """Return the dtypes of the results, if they are given."""
    if otypes is None:
        return None
    is_letters = isinstance(otypes, str) and all(one in np.typecodes["All"] for one in otypes)
    several = is_letters or isinstance(otypes, list | tuple)
    return [_dtypes.as_dtype(one) for one in (otypes if several else [otypes])]


def _function_like(pyfunc: Any) -> Callable[..., Any] | None:
    """Return the dparray function for a NumPy ufunc."""
    if not isinstance(pyfunc, np.ufunc):
        return None
    for module in (elementwise, mathematics, bits):
        if pyfunc.__name__ in module.__all__:
            found: Callable[..., Any] = getattr(module, pyfunc.__name__)
            return found
    return None


class _WithConstants:
    """A scalar function with constant parameters: one kernel for each combination of values."""

    def __init__(self, pyfunc: Callable[..., Any], dtype: Any, excluded: frozenset[Any]) -> None:
        self._of_all = ElementwiseFunction(pyfunc, dtype)  # raises for invalid functions
        self.__name__, self.__doc__ = self._of_all.__name__, self._of_all.__doc__
        self._dtype = dtype
        parameters = tuple(self._of_all.parameters)
        positions = {at for at in excluded if isinstance(at, int)}
        self._constant = {
            name for at, name in enumerate(parameters) if at in positions or name in excluded
        }
        unknown = [
            at for at in excluded if at not in parameters and at not in range(len(parameters))
        ]
        if unknown:
            raise ArgumentError(
                f"vectorize: excluded {unknown[0]!r} is not a parameter of {self.__name__}: "
                f"{', '.join(parameters)}"
            )
        self._made: dict[Any, ElementwiseFunction] = {}

    def __call__(self, *operands: Any, **named: Any) -> ndarray:
        values = self._of_all.bound_by_name(operands, named)
        constants = {name: _constant(name, values.pop(name)) for name in self._constant}
        key = tuple((name, type(value), value) for name, value in sorted(constants.items()))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._with(constants)
        return made(*values.values())

    def _with(self, constants: Mapping[str, Any]) -> ElementwiseFunction:
        """Return the function of the other parameters."""
        parameters = self._of_all.parameters
        scope: dict[str, Any] = {"__name__": __name__, "function": self._of_all.device_function}
        scope |= {f"constant_{name}": value for name, value in constants.items()}
        given = ", ".join(f"constant_{name}" if name in constants else name for name in parameters)
        open_ones = ", ".join(name for name in parameters if name not in constants)
        text = f"def with_constants({open_ones}):\n    return function({given})\n"
        file = f"<vectorize of {self.__name__}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), scope)
        return ElementwiseFunction(scope["with_constants"], self._dtype)


def _constant(name: str, value: Any) -> Any:
    """Return a kernel constant: a number, or a tuple of numbers.

    Raises:
        KernelArgumentError: the value is neither.
    """
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(_constant(name, one) for one in value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | complex):
        raise KernelArgumentError(
            f"vectorize: {name} is excluded, so it must be a number or a tuple of numbers; got "
            f"{type(value).__name__}"
        )
    return value


class _OfArrays:
    """A function of vectors and matrices, which Python calls for each of those in its operands."""

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        signature: str,
        dtypes: list[Any] | None,
        excluded: frozenset[Any],
    ) -> None:
        if not callable(pyfunc):
            raise KernelArgumentError(f"vectorize: {pyfunc!r} must be a function")
        text = "".join(signature.split()) if isinstance(signature, str) else ""
        if not _SIGNATURE.fullmatch(text):
            raise ArgumentError(
                f"vectorize: signature must have the form '(m,n),(n)->(m)'; got {signature!r}"
            )
        before, after = text.split("->")
        self._inputs, self._outputs = (
            [tuple(filter(None, core.split(","))) for core in _CORES.findall(side)]
            for side in (before, after)
        )
        if dtypes is not None and len(dtypes) != len(self._outputs):
            raise ArgumentError(
                f"vectorize: otypes names {len(dtypes)} results, but {signature!r} has "
                f"{len(self._outputs)}"
            )
        self._function, self._dtypes, self._excluded = pyfunc, dtypes, excluded
        self.__name__ = getattr(pyfunc, "__name__", "function")
        self.__doc__ = pyfunc.__doc__

    def __call__(self, *operands: Any, **named: Any) -> Any:
        name = self.__name__
        unknown = sorted(set(named) - self._excluded)
        if unknown:
            raise ArgumentError(f"{name}: {unknown[0]}= is not excluded; give it by position")
        positions = [at for at in range(len(operands)) if at not in self._excluded]
        if len(positions) != len(self._inputs):
            raise ArgumentError(
                f"{name}: expects {len(self._inputs)} arrays by its signature; got {len(positions)}"
            )
        arrays = check_arrays(name, *((f"operand {at}", operands[at]) for at in positions))
        placement = common_placement(
            name, [(f"operand {at}", x) for at, x in zip(positions, arrays, strict=True)]
        )
        extents: dict[str, int] = {}
        for x, core in zip(arrays, self._inputs, strict=True):
            _learn(name, extents, core, x.shape[max(x.ndim - len(core), 0) :])
        loops = [x.shape[: x.ndim - len(c)] for x, c in zip(arrays, self._inputs, strict=True)]
        shape = _layout.broadcast_shapes(name, loops)
        arrays = [
            broadcast_to(x, (*shape, *x.shape[x.ndim - len(core) :]))
            for x, core in zip(arrays, self._inputs, strict=True)
        ]
        made: list[ndarray] | None = None
        if 0 in shape:
            made = self._empty(placement, shape, extents, [])
        for at in np.ndindex(shape):
            given = list(operands)
            for position, x in zip(positions, arrays, strict=True):
                given[position] = x[at]
            found = self._function(*given, **named)
            parts = list(found) if isinstance(found, tuple) else [found]
            if len(parts) != len(self._outputs):
                raise ShapeError(
                    f"{name}: returned {len(parts)} results; its signature has {len(self._outputs)}"
                )
            parts = [check_array(name, "a result", part, placement) for part in parts]
            for part, core in zip(parts, self._outputs, strict=True):
                if part.ndim != len(core):
                    raise ShapeError(
                        f"{name}: a result of shape {part.shape} lacks the axes ({','.join(core)})"
                    )
                _learn(name, extents, core, part.shape)
            if made is None:
                made = self._empty(placement, shape, extents, parts)
            for target, part in zip(made, parts, strict=True):
                target[at] = part
        results = tuple(made or ())
        return results[0] if len(results) == 1 else results

    def _empty(
        self,
        placement: Placement,
        shape: tuple[int, ...],
        extents: Mapping[str, int],
        parts: Sequence[ndarray],
    ) -> list[ndarray]:
        """Allocate the results; ``parts`` are those of the first call."""
        dtypes = self._dtypes or [part.dtype for part in parts]
        unknown = [axis for core in self._outputs for axis in core if axis not in extents]
        if unknown or not dtypes:
            raise ShapeError(
                f"{self.__name__}: the operands are empty, so the results are unknown; "
                f"give otypes=, and only axes that the operands have"
            )
        return [
            empty_on(placement, (*shape, *(extents[axis] for axis in core)), dtype)
            for core, dtype in zip(self._outputs, dtypes, strict=True)
        ]


def _learn(
    function: str, extents: dict[str, int], core: Sequence[str], found: Sequence[int]
) -> None:
    """Record the lengths of named axes; each name stands for one length."""
    if len(found) != len(core):
        raise ShapeError(f"{function}: an operand does not have the axes ({','.join(core)})")
    for axis, extent in zip(core, found, strict=True):
        if extents.setdefault(axis, extent) != extent:
            raise ShapeError(
                f"{function}: axis {axis} must have one length; got {extents[axis]} and {extent}"
            )
