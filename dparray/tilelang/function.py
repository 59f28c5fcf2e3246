"""Tile functions: compiled from text, called with arrays and numbers."""

from __future__ import annotations

import keyword
from collections import OrderedDict, namedtuple
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import is_made_by_host
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._array.operands import OVERRIDE, called_apart, dispatch_override
from dparray._placement import Placement, common_placement, placement_of
from dparray.device import default_device, queue_of
from dparray.exceptions import (
    ArgumentError,
    DTypeError,
    ExecutionPlacementError,
    HostConversionError,
    ShapeError,
)
from dparray.tilelang.bind import Bound, bind, check
from dparray.tilelang.explanation import TileExplanation, explained
from dparray.tilelang.invocation import Invocation
from dparray.tilelang.lowering import Plan, plan_of
from dparray.tilelang.parser import parse
from dparray.tilelang.values import DTYPES, Constant, DType, Tensor, floatx


class CacheInfo(NamedTuple):
    """Statistics of a function's cache of bound programs."""

    hits: int
    misses: int
    size: int


_MAX_PLANS = 256


class _OtherArray(ArgumentError):
    """An input is an array of a class with functions of its own, such as a differentiated one."""


class TileFunction:
    """A function of arrays in the Tile language, created by :func:`function`.

    A call runs on the queue of its arrays and returns immediately: element-wise results are
    pending, as in array code. Programs bound to shapes, dtypes and numbers are cached.

    Attributes:
        source: the program.
        inputs, outputs: the names, in order.
    """

    def __init__(self, source: str) -> None:
        if not isinstance(source, str):
            raise ArgumentError(
                f"tilelang.function: {source!r} of type {type(source).__name__}; give a string, "
                'tilelang.function("function (A) -> (B) { B = A; }")'
            )
        self.source = source
        self._program = parse(source)
        check(self._program)
        self.inputs = tuple(each.name.name for each in self._program.inputs)
        self.outputs = tuple(each.name for each in self._program.outputs)
        self._results = _results_of(self.outputs)
        self._plans: OrderedDict[Any, Plan] = OrderedDict()
        self._hits = self._misses = 0
        self._placed = Placement(None, "")
        self.__name__ = "_".join(self.outputs)

    # -- calling -----------------------------------------------------------------------------

    def __call__(self, /, *args: Any, out: Any = None, device: Any = None, **named: Any) -> Any:
        """Compute the outputs.

        Args:
            args, named: an array (dparray) or a Python number for each input.
            out: an array of the same shape, dtype and queue to write to; for several outputs a
                mapping by name, or a sequence in order, with ``None`` for new arrays.
            device: the device to compute on if no input is an array.

        Returns:
            The array; for several outputs a named tuple of arrays.

        Raises:
            TileError: the program does not match the inputs; the class names the kind of error.
            ExecutionPlacementError: the arrays are on different queues, and no
                :func:`dparray.placement` policy is active.
            HostConversionError: an input is a NumPy array.
            ArgumentError: inputs are missing or unknown.
        """
        try:
            return self._called(args, out, device, named)
        except ExecutionPlacementError:
            result = called_apart(self, args, {**named, "out": out, "device": device})
            if result is NotImplemented:
                raise
            return result
        except _OtherArray:
            return dispatch_override(self, args, **{**named, "out": out})

    def _called(
        self, args: tuple[Any, ...], out: Any, device: Any, named: Mapping[str, Any]
    ) -> Any:
        values = args if len(args) == len(self.inputs) and not named else self._ordered(args, named)
        key, arrays = self._key(values)
        placement = self._placement(arrays, device, values)
        targets = None if out is None else self._targets(out, key, values, placement)
        plan = self._plan(key, values)
        results = plan.run(placement, arrays)
        if targets is not None:
            for at, target in enumerate(targets):
                if target is not None:
                    assign(target, results[at], "tilelang")
                    results[at] = target
        return results[0] if self._results is None else self._results(*results)

    def _ordered(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        if len(args) > len(self.inputs):
            raise ArgumentError(
                f"tile function: {len(args)} inputs were given; it has {len(self.inputs)}: "
                f"{', '.join(self.inputs)}"
            )
        found = dict(zip(self.inputs, args, strict=False))
        for name, value in named.items():
            if name not in self.inputs or name in found:
                what = "is given twice" if name in found else "is not one of its inputs"
                raise ArgumentError(
                    f"tile function: {name!r} {what}; they are {', '.join(self.inputs)}"
                )
            found[name] = value
        missing = [name for name in self.inputs if name not in found]
        if missing:
            raise ArgumentError(
                f"tile function: {', '.join(missing)} missing; its inputs are "
                f"{', '.join(self.inputs)}"
            )
        return [found[name] for name in self.inputs]

    def _key(self, values: Sequence[Any]) -> tuple[Any, list[ndarray]]:
        """Return the key of a bound program, and the arrays among the inputs."""
        key: list[Any] = [floatx()]
        arrays: list[ndarray] = []
        for at, value in enumerate(values):
            if type(value) is ndarray:
                arrays.append(value)
                key += (value.shape, value.dtype)
            elif hasattr(type(value), OVERRIDE):
                raise _OtherArray(
                    f"tile function: input {self.inputs[at]} is a {type(value).__name__}; inputs "
                    "must be dparray arrays or Python numbers here"
                )
            else:
                number = _number(self.inputs[at], value)
                key += (type(number), repr(number))
        return tuple(key), arrays

    def _placement(
        self, arrays: Sequence[ndarray], device: Any, values: Sequence[Any]
    ) -> Placement:
        if not arrays:
            if device is None:
                queue = default_device().queue
            else:
                queue = queue_of(device)
            return Placement(queue, "device")
        first = arrays[0]
        for each in arrays:
            if each.queue is not first.queue or each.usm_type != first.usm_type:
                named = zip(self.inputs, values, strict=True)
                return common_placement(
                    "tile function", [pair for pair in named if isinstance(pair[1], ndarray)]
                )
        known = self._placed
        if known.queue is not first.queue or known.usm_type != first.usm_type:
            known = self._placed = placement_of(first)
        return known

    def _plan(self, key: Any, values: Sequence[Any]) -> Plan:
        plan = self._plans.get(key)
        if plan is not None:
            self._hits += 1
            return plan
        self._misses += 1
        plan = plan_of(
            self._bound(
                [_value_of(name, each) for name, each in zip(self.inputs, values, strict=True)]
            )
        )
        if len(self._plans) >= _MAX_PLANS:
            self._plans.popitem(last=False)
        self._plans[key] = plan
        return plan

    def _bound(self, values: Sequence[Tensor | Constant]) -> Bound:
        return bind(self._program, dict(zip(self.inputs, values, strict=True)))

    # -- out ---------------------------------------------------------------------------------

    def _targets(
        self, out: Any, key: Any, values: Sequence[Any], placement: Placement
    ) -> list[ndarray | None]:
        """Return the arrays to write to, checked before anything is computed."""
        if isinstance(out, Mapping):
            unknown = [name for name in out if name not in self.outputs]
            if unknown:
                raise ArgumentError(
                    f"tile function: out={unknown[0]!r} is not one of its outputs; they are "
                    f"{', '.join(self.outputs)}"
                )
            given = [out.get(name) for name in self.outputs]
        else:
            given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(self.outputs):
            raise ArgumentError(
                f"tile function: {len(given)} arrays to write to, {len(self.outputs)} outputs; "
                "give a mapping by name, or None for those to be made"
            )
        kept = [each for each in given if each is not None]
        for at, each in enumerate(kept):
            if any(each is other for other in kept[:at]):
                raise ArgumentError(
                    "tile function: out= has one array for two outputs; give one for each"
                )
        shapes = self._infer([_value_of(n, v) for n, v in zip(self.inputs, values, strict=True)])
        for name, target in zip(self.outputs, given, strict=True):
            if target is not None:
                _check_target(name, target, *shapes[name], placement)
        return given

    # -- without arrays ----------------------------------------------------------------------

    def infer(self, /, *args: Any, **named: Any) -> dict[str, tuple[tuple[int, ...], DType]]:
        """Return shapes and dtypes of the outputs, without arrays.

        Args:
            args, named: for each input a pair of shape and dtype, an array, or a number.

        Returns:
            For each output a pair of shape and dtype.

        Raises:
            TileError: the program does not match the inputs.
            ArgumentError: inputs are missing or unknown.

        Example:
            >>> from dparray import tilelang
            >>> f = tilelang.function("function (A[N, M]) -> (B) { B[j: M] = +(A[i, j]); }")
            >>> f.infer(A=((3, 4), "float32"))
            {'B': ((4,), dtype('float32'))}
        """
        values = self._ordered(args, named)
        return self._infer(
            [_described(name, each) for name, each in zip(self.inputs, values, strict=True)]
        )

    def _infer(
        self, values: Sequence[Tensor | Constant]
    ) -> dict[str, tuple[tuple[int, ...], DType]]:
        bound = self._bound(values)
        return {
            name: (tuple(getattr(each, "shape", ())), each.dtype)  # type: ignore[misc]
            for name, each in bound.outputs.items()
        }

    def submit(
        self, /, *args: Any, out: Any = None, device: Any = None, **named: Any
    ) -> Invocation:
        """Compute the outputs immediately: submit all work, and return before it ends.

        Args:
            args, out, device, named: as in a call.

        Returns:
            An :class:`Invocation` with the outputs by name, ``wait()``, ``done()`` and the event.

        Raises:
            TileError, ExecutionPlacementError, HostConversionError, ArgumentError: as in a call.
        """
        return self.submitted(*args, out=out, device=device, **named)

    def submitted(
        self, /, *args: Any, out: Any = None, device: Any = None, **named: Any
    ) -> Invocation:
        """Submit the call as :meth:`submit` does, under an alternative name."""
        results = self(*args, out=out, device=device, **named)
        return Invocation(self.outputs, results if self._results is not None else [results])

    def explain(self, /, *args: Any, **named: Any) -> TileExplanation:
        """Return how a call would be computed, without computing or compiling anything.

        Args:
            args, named: as in a call.

        Example:
            >>> f = dp.tilelang.function("function (A[N, M]) -> (B) { B[j: M] = +(A[i, j]); }")
            >>> f.explain(dp.ones((3, 4))).contractions[0].kind
            'reduction'
        """
        values = self._ordered(args, named)
        key, arrays = self._key(values)
        placement = self._placement(arrays, None, values)
        plan = self._plan(key, values)
        count = len(plan.instructions) - len(plan.contractions)
        is_host = is_made_by_host(0, placement.queue, placement.usm_type)
        return explained(plan.contractions, count, is_host)

    __dparray_explain__ = explain

    def cache_info(self) -> CacheInfo:
        """Return how often a call found a cached bound program."""
        return CacheInfo(self._hits, self._misses, len(self._plans))

    def cache_clear(self) -> None:
        """Clear the cache of bound programs; compiled kernels stay cached."""
        self._plans.clear()
        self._hits = self._misses = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return TileFunction, (self.source,)

    def __repr__(self) -> str:
        return f"<tile function ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"


def _results_of(names: tuple[str, ...]) -> Any:
    if len(names) == 1:
        return None
    plain = [name.replace("'", "_") for name in names]
    is_plain = all(name.isidentifier() and not keyword.iskeyword(name) for name in plain)
    return namedtuple("Outputs", plain, rename=not is_plain or len(set(plain)) < len(plain))


def _number(name: str, value: Any) -> int | float:
    """Return the Python number of an input."""
    if isinstance(value, np.ndarray):
        raise HostConversionError(
            f"tile function: input {name} is a NumPy array, which is on the host; copy it to "
            f"the device first: {name}=dp.asarray({name})"
        )
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, ndarray):
        return value  # type: ignore[return-value]
    raise ArgumentError(
        f"tile function: input {name} is {value!r} of type {type(value).__name__}; inputs must be "
        f"dparray arrays or Python numbers: {name}=dp.asarray(...)"
    )


def _value_of(name: str, value: Any) -> Tensor | Constant:
    if isinstance(value, ndarray):
        return _tensor(name, value.shape, value.dtype)
    number = _number(name, value)
    return Constant(number, isinstance(number, float))


def _described(name: str, value: Any) -> Tensor | Constant:
    """Return the tensor or number that was passed to ``infer`` for an input."""
    if not isinstance(value, tuple | list):
        return _value_of(name, value)
    shape, dtype = value if len(value) == 2 else (None, None)
    if not isinstance(shape, tuple | list) or not all(
        isinstance(size, int | np.integer) and size >= 0 for size in shape
    ):
        raise ArgumentError(
            f"tile function: infer was given {name}={value!r}; it takes a shape and a dtype, "
            f'{name}=((2, 3), "float32"), an array, or a number'
        )
    return _tensor(name, tuple(int(size) for size in shape), _dtypes.as_dtype(dtype))


def _tensor(name: str, shape: tuple[int, ...], dtype: DType) -> Tensor:
    if _dtypes.is_bfloat16(dtype):
        raise DTypeError(
            f"tile function: input {name} is bfloat16, which the language does not support; "
            f"pass {name}.astype('float32')"
        )
    if dtype not in DTYPES:
        raise DTypeError(
            f"tile function: input {name} is {dtype}; the language has bool, integers of 8 to 64 "
            f"bits and floats of 16 to 64; split complex arrays: {name}.real, {name}.imag"
        )
    return Tensor(shape, dtype)


def _check_target(
    name: str, target: Any, shape: tuple[int, ...], dtype: DType, placement: Placement
) -> None:
    if isinstance(target, np.ndarray) or not isinstance(target, ndarray):
        raise HostConversionError(
            f"tile function: out for {name} is a {type(target).__name__}; give a dparray array: "
            f"dp.empty({shape}, {dtype.name!r})"
        )
    if target.shape != shape:
        raise ShapeError(
            f"tile function: out for {name} has shape {target.shape}, the result {shape}; give "
            f"dp.empty({shape}, {dtype.name!r})"
        )
    if _dtypes.as_dtype(target.dtype) != dtype:
        raise DTypeError(
            f"tile function: out for {name} is {target.dtype}, but the result is {dtype}; give "
            f"dp.empty({shape}, {dtype.name!r})"
        )
    if target.queue != placement.queue:
        common_placement("tile function", [("inputs", _Place(*placement)), (f"out {name}", target)])


class _Place(NamedTuple):
    sycl_queue: Any
    usm_type: str


def function(source: str) -> TileFunction:
    """Create a function of arrays from a program in the Tile language.

    The text is checked here; everything that depends on shapes and dtypes is checked at the call.
    Results are arrays on the queue of the inputs, with their USM type. Element-wise results are
    pending, as in array code, and are fused with operations before and after.

    Args:
        source: ``function (inputs) -> (outputs) { statements }``.

    Returns:
        A :class:`TileFunction`.

    Raises:
        TileSyntaxError: the text is not in the language.
        TileNameError: a name is not defined, or defined twice.
        TileShapeError, TileTypeError, TileIndexError: errors that the text alone shows.

    Example:
        >>> product = dp.tilelang.function('''
        ...     function (A[N, K], B[K, M]) -> (C) { C[i, j: N, M] = +(A[i, k] * B[k, j]); }
        ... ''')
        >>> a = dp.ones((2, 3), dtype="float32")
        >>> product(a, a.T).tolist()
        [[3.0, 3.0], [3.0, 3.0]]
    """
    return TileFunction(source)
