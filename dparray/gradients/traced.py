"""Traced arrays, and the tape that they are recorded on.

Each transformation in progress is a :class:`Level`. A :class:`Traced` array belongs to one: it has
a value, which is an array or a traced array of an outer level, and an origin. In reverse mode the
origin is a :class:`Node` of the tape and the number of its result, in forward mode the tangent.
Nothing in this module depends on an operation; `calls.py` applies the rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from operator import attrgetter
from typing import Any

from dparray._array.ndarray import ndarray
from dparray.exceptions import GradientError
from dparray.gradients.public import dp

#: The threads in which calls are being recorded, once for each recording.
recordings: list[int] = []

#: Numbers nodes and levels in the order of their creation.
serial = itertools.count()


class Level:
    """A transformation in progress, from ``with`` to its end.

    Attributes:
        depth: orders the levels of all threads: inner ones are deeper.
        is_forward: whether origins are tangents.
        recording: what records the calls instead (``replay.py``); origins are then numbers.
        is_tape: whether origins are nodes.
        is_alive: whether the transformation is in progress.
    """

    __slots__ = ("depth", "is_alive", "is_forward", "is_tape", "recording")

    def __init__(self, is_forward: bool = False, recording: Any = None) -> None:
        self.depth, self.is_forward, self.is_alive = next(serial), is_forward, True
        self.recording, self.is_tape = recording, not is_forward and recording is None

    def __enter__(self) -> Level:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_alive = False


class Spec:
    """Shape, dtype and placement of an array, without its memory."""

    __slots__ = ("dtype", "queue", "shape", "usm_type")

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype = x.shape, x.dtype
        self.queue, self.usm_type = x.queue, x.usm_type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def reshaped(self, shape: Sequence[int]) -> Spec:
        """Return the same dtype and placement with another shape."""
        spec = Spec(self)
        spec.shape = tuple(shape)
        return spec

    def changed(self, shape: tuple[int, ...], dtype: Any) -> Spec:
        """Return the same placement with another shape and dtype."""
        spec = self.reshaped(shape)
        spec.dtype = dtype
        return spec

    def zeros(self) -> ndarray:
        """Return zeros of this shape, dtype and placement."""
        return dp.zeros(
            self.shape, dtype=self.dtype, sycl_queue=self.queue, usm_type=self.usm_type or "device"
        )


class Node:
    """A recorded call, or an input: who receives cotangents, and how they follow from its own.

    Attributes:
        parents: the origins of its differentiated operands.
        specs: those of its results.
        is_single: whether it has one result.
        serial: orders the nodes of all threads.
    """

    __slots__ = ("is_single", "parents", "serial", "specs")

    def __init__(self, parents: Sequence[Origin], specs: Sequence[Spec]) -> None:
        self.parents, self.specs, self.is_single = parents, specs, len(specs) == 1
        self.serial = next(serial)

    def pull(self, cotangents: list[Any]) -> Sequence[Any]:
        """Return the cotangents of the parents, from those of the results; inputs have none."""
        return ()


class Constant(Node):
    """The origin of an array that depends on no input."""

    __slots__ = ()


Origin = tuple[Node, int]


def _of_value(name: str) -> property:
    return property(attrgetter(f"_value.{name}"))


class Traced:
    """An array inside a transformation.

    A traced array may be a view of another one, its root. A write to either rebinds the root to a
    new value, and views are computed again from it when they are next used.
    """

    __slots__ = (
        *("__weakref__", "_level", "_origin", "_root", "_steps", "_uncertain", "_value"),
        "_version",
    )

    # More than 0 that of NumPy's arrays, so that `numpy_array * traced` asks this class.
    __array_priority__ = 30.0
    __hash__ = None  # type: ignore[assignment]  # as `==` compares elements

    def __init__(self, value: Any, level: Level, origin: Any) -> None:
        self._value, self._level, self._origin = value, level, origin
        self._root: Traced | None = None
        self._version = 0
        self._steps: tuple[Any, ...] = ()
        self._uncertain: tuple[Any, ...] = ()

    # Without functions of Python, since each operation reads some of them.
    shape, dtype, ndim, size = map(_of_value, ("shape", "dtype", "ndim", "size"))
    nbytes, itemsize, is_pending = map(_of_value, ("nbytes", "itemsize", "is_pending"))
    queue, device, usm_type = map(_of_value, ("queue", "device", "usm_type"))
    sycl_queue = queue

    def __len__(self) -> int:
        return len(self._value)

    def __repr__(self) -> str:
        return f"Traced({self._value!r})"

    def __bool__(self) -> bool:
        return bool(on_host(self))

    def __index__(self) -> int:
        return on_host(self).__index__()

    def __float__(self) -> float:
        on_host(self)
        raise GradientError(
            "float(x), int(x) and functions of math lose the gradient of x; use dparray's function "
            "of the same name, or take a constant: float(dp.stop_gradient(x))"
        )

    __int__ = __complex__ = __float__

    def __array__(self, *_: Any, **__: Any) -> Any:
        on_host(self)
        raise GradientError(
            "a differentiated array cannot become a NumPy array, which has no gradient; use "
            "dparray's functions, or take a constant: dp.asnumpy(dp.stop_gradient(x))"
        )

    def __copy__(self) -> Any:
        return dp.copy(self)

    def __deepcopy__(self, _: Any) -> Any:
        return dp.copy(self)

    def __reduce__(self) -> Any:
        raise GradientError("a differentiated array cannot be pickled: its gradient would be lost")


def on_host(x: Any) -> Any:
    """Return a value whose elements are read.

    Raises:
        GradientError: calls are recorded, and other values would make others.
    """
    x = value_of(x)
    if type(x) is Traced:
        raise GradientError(
            "jit: a derivative is recorded and replayed, but it reads a value on the host, as a "
            "condition does; leave off dp.jit, or compile the inner function: dp.grad(dp.jit(f))"
        )
    return x


def is_differentiated(x: Any) -> bool:
    """Return whether a value is traced by a transformation, and not only recorded."""
    return type(x) is Traced and x._level.recording is None


def stored(x: Any) -> Any:
    """Return the array of all levels, for its layout."""
    while type(x) is Traced:
        check(x)
        x = x._value
    return x


def value_of(x: Any) -> Any:
    """Return a value without its origins, through all levels but those that record."""
    while type(x) is Traced and x._level.recording is None:
        if x._root is not None and x._version != x._root._version:
            refresh(x)
        x = x._value
    return x


def alias(x: Traced) -> Traced:
    """Return the present value of a traced array, which later writes do not change."""
    check(x)
    return Traced(x._value, x._level, x._origin)


def check(x: Traced) -> None:
    """Compute a view again after its root was written.

    Raises:
        GradientError: the transformation has ended.
    """
    if not x._level.is_alive:
        raise GradientError(
            "this array belongs to a transformation that has ended: it left the function of "
            "dp.grad through a global variable, a closure or an attribute; return it with "
            "has_aux=True instead"
        )
    if x._root is not None and x._version != x._root._version:
        refresh(x)


def refresh(x: Traced) -> None:
    """Compute a view from the present value of its root."""
    root = x._root
    assert root is not None
    now = alias(root)
    for step in x._steps:
        now = step.apply(now)
    x._value, x._level, x._origin = now._value, now._level, now._origin
    x._version = root._version


def leaves_of(values: Any) -> Iterator[Traced]:
    """Yield the traced arrays among values and in the lists, tuples and dicts among them."""
    for x in values:
        kind = type(x)
        if kind is Traced:
            yield x
        elif kind is list or kind is tuple or kind is dict:
            yield from leaves_of(x.values() if kind is dict else x)


def innermost(values: Any) -> Level | None:
    """Return the innermost level among values and in the lists, tuples and dicts among them."""
    level: Level | None = None
    for x in leaves_of(values):
        check(x)
        if level is None or x._level.depth > level.depth:
            level = x._level
    return level


def lowered(x: Any, level: Level | None) -> Any:
    """Return an operand with the arrays of a level replaced by their values."""
    kind = type(x)
    if kind is Traced:
        return x._value if x._level is level else x
    if kind is list or kind is tuple:
        return kind([lowered(inner, level) for inner in x])
    return x


def is_of(x: Any, level: Level) -> bool:
    """Return whether a value is an array of a level."""
    return type(x) is Traced and x._level is level


def constants(value: Any) -> Any:
    """Return a value whose traced arrays, also in lists, tuples and dicts, are plain arrays."""
    if type(value) is Traced:
        check(value)
        return value_of(value)
    if type(value) in (list, tuple):
        return type(value)([constants(x) for x in value])
    if type(value) is dict:
        return {key: constants(x) for key, x in value.items()}
    return value


def is_float(x: Any) -> bool:
    """Return whether a value is an array of floats or complex numbers."""
    return type(x) in (ndarray, Traced) and x.dtype.kind in "fcV"
