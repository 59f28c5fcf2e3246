"""Vectors with the arithmetic of compiled kernels, for the simulator."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dparray._simulator import simulated_numbers
from dparray._simulator.memory import Engine, SimulatedArray
from dparray._simulator.simulated_numbers import loaded, plain_dtype
from dparray.kernel_api import vectors as rules

_BOOL = np.dtype(bool)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name + "_" if name in ("and", "or") else name)
    for name in (*rules.ARITHMETIC, *rules.BITWISE, *rules.SHIFTS, *rules.COMPARISONS)
}


def _converted(values: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert numbers to a dtype of vectors, each as by a cast; float16 is computed as float32."""
    with np.errstate(all="ignore"):
        cast = np.asarray(values).astype(dtype)
        return cast.astype("float32") if dtype == np.float16 else cast


class Vector:
    """``vec``: an immutable vector."""

    __slots__ = ("_elements",)
    __array_ufunc__ = None  # makes NumPy's scalars defer to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, elements: Any) -> None:
        self._elements: np.ndarray[Any, Any] = elements

    @property
    def dtype(self) -> Any:
        return self._elements.dtype

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"vec({', '.join(map(str, self._elements))})"

    def __bool__(self) -> bool:
        raise TypeError(rules.NO_TRUTH)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("vec: a kernel has no loop over the elements: loop over range(len(v))")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(rules.NO_ASSIGNMENT)

    def __getitem__(self, index: Any) -> Any:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"vec: the index is below {len(self)}; got {number}")
        return loaded(self._elements[number])

    def __getattr__(self, name: str) -> Any:
        at = rules.FIELDS.find(name)
        if len(name) != 1 or not 0 <= at < len(self):
            raise AttributeError(f"a vec of {len(self)} has no {name!r}")
        return self[at]

    def as_array(self) -> np.ndarray[Any, Any]:
        return self._elements

    def astype(self, dtype: Any) -> Vector:
        return Vector(_converted(self._elements, plain_dtype(dtype)))

    def sum(self) -> Any:
        elements = self._elements
        if elements.dtype.kind != "f":
            elements = elements.astype("uint64" if elements.dtype.kind == "u" else "int64")
        return self._folded(elements, lambda a, b: a + b)

    def min(self) -> Any:
        rules.checked_dtype("min", self.dtype)
        return self._folded(self._elements, lambda a, b: np.where(b < a, b, a))

    def max(self) -> Any:
        rules.checked_dtype("max", self.dtype)
        return self._folded(self._elements, lambda a, b: np.where(b > a, b, a))

    def any(self) -> Any:
        return np.bool_(self._elements.any())

    def all(self) -> Any:
        return np.bool_(self._elements.all())

    def _folded(self, elements: np.ndarray[Any, Any], combine: Callable[[Any, Any], Any]) -> Any:
        with np.errstate(all="ignore"):
            while len(elements) > 1:
                paired = len(elements) // 2 * 2
                rest = elements[paired:]
                elements = np.concatenate(
                    [combine(elements[:paired:2], elements[1:paired:2]), rest]
                )
        return loaded(elements[0])

    def __neg__(self) -> Vector:
        return self._unary("neg", np.negative)

    def __pos__(self) -> Vector:
        return self._unary("pos", np.positive)

    def __invert__(self) -> Vector:
        return self._unary("invert", np.invert)

    def __abs__(self) -> Vector:
        return self._unary("abs", np.abs)

    def _unary(self, operation: str, compute: Callable[[Any], Any]) -> Vector:
        rules.checked_dtype(operation, self.dtype)
        with np.errstate(all="ignore"):
            return Vector(compute(self._elements))


def _dtype(operand: Any) -> np.dtype[Any]:
    if isinstance(operand, Vector):
        return operand.dtype
    return np.asarray(operand).dtype


def _width(operands: Sequence[Any]) -> int:
    widths = [len(each) for each in operands if isinstance(each, Vector)]
    return rules.same_width(widths[0], widths[-1])


def _common(operation: str, operands: Sequence[Any]) -> Any:
    a, b = operands
    return rules.common_dtype(
        operation, _dtype(a), _dtype(b), vectors=(isinstance(a, Vector), isinstance(b, Vector))
    )


def _as_elements(operand: Any, dtype: Any, width: int) -> np.ndarray[Any, Any]:
    if isinstance(operand, Vector):
        return _converted(operand.as_array(), dtype)
    return np.full(width, _converted(operand, dtype))


def _combined(operation: str, a: Any, b: Any) -> Any:
    if not all(isinstance(each, (Vector, bool, int, float, np.generic)) for each in (a, b)):
        return NotImplemented
    compute = _OPERATORS[operation]
    width, common = _width((a, b)), _common(operation, (a, b))
    if common is None:  # integers without a common type
        exact = (_as_elements(each, _dtype(each), width).tolist() for each in (a, b))
        return Vector(np.array(list(map(compute, *exact)), bool))
    first, second = (_as_elements(each, common, width) for each in (a, b))
    with np.errstate(all="ignore"):
        return Vector(compute(first, second))


def _add_methods() -> None:
    def forward(name: str) -> Callable[..., Any]:
        return lambda self, other: _combined(name, self, other)

    def reflected(name: str) -> Callable[..., Any]:
        return lambda self, other: _combined(name, other, self)

    for name in _OPERATORS:
        setattr(Vector, f"__{name}__", forward(name))
        if name not in rules.COMPARISONS:
            setattr(Vector, f"__r{name}__", reflected(name))


_add_methods()


# --- functions of kernels -------------------------------------------------------------------------


def _choosing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a ``min`` or ``max`` that also takes vectors."""

    def choose(*values: Any) -> Any:
        if not any(isinstance(each, Vector) for each in values):
            return function(*values)
        if len(values) != 2:
            raise TypeError(f"vec: {name} takes 2 operands; got {len(values)}")
        common, width = _common(name, values), _width(values)
        a, b = (_as_elements(each, common, width) for each in values)
        return Vector(np.where(b < a if name == "min" else b > a, b, a))

    return choose


def _of_each(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function of ``math`` that also takes vectors."""

    def compute(*values: Any) -> Any:
        if not any(isinstance(each, Vector) for each in values):
            return function(*values)
        if name in rules.ROUNDING:
            rules.checked_dtype(name, _dtype(values[0]))
        common, width = _common("truediv", (values[0], values[-1])), _width(values)
        operands = [_as_elements(each, common, width) for each in values]
        kind = bool if name in rules.PREDICATES else common
        return Vector(np.array([function(*each) for each in zip(*operands, strict=True)], kind))

    return compute


BUILTINS = simulated_numbers.BUILTINS | {
    name: _choosing(simulated_numbers.BUILTINS[name], name) for name in ("min", "max")
}
MATH = {
    function: _of_each(meaning, function.__name__)
    if function.__name__ in (*rules.UNARY, *rules.BINARY, *rules.ROUNDING, *rules.PREDICATES)
    else meaning
    for function, meaning in simulated_numbers.MATH.items()
}


def make(*elements: Any) -> Vector:
    """Create a vector, as ``vec`` does in a kernel."""
    rules.width_of("vec", len(elements))
    common = np.result_type(*map(_dtype, elements))
    return Vector(np.array([_converted(each, common) for each in elements]))


def full(width: Any, value: Any, dtype: Any) -> Vector:
    """Create a vector with equal elements, as ``vec_full`` does in a kernel."""
    count = rules.width_of("vec_full", int(width))
    return Vector(np.full(count, _converted(value, plain_dtype(dtype))))


def where(condition: Any, a: Any, b: Any) -> Vector:
    """Select elements of two vectors, as ``vec_where`` does in a kernel."""
    if not isinstance(condition, Vector) or condition.dtype != _BOOL:
        raise TypeError(
            "vec_where: the condition must be a vector of Booleans, such as v > 0; got "
            f"{condition!r}"
        )
    vectors = [each for each in (a, b) if isinstance(each, Vector)]
    if not vectors:
        raise TypeError(f"vec_where: takes a vector and a vector or a number; got {a} and {b}")
    for each in vectors:
        _width((condition, each))
    common, width = _common("where", (a, b)), len(condition)
    chosen = (_as_elements(each, common, width) for each in (a, b))
    return Vector(np.where(condition.as_array(), *chosen))


def load(engine: Engine, array: Any, index: Any, width: Any) -> Vector:
    """Load a vector, as ``vec_load`` does in a kernel; every element is read and checked."""
    count = rules.width_of("vec_load", int(width))
    places = _places(engine, "vec_load", array, index, count)
    return Vector(_converted([array[place] for place in places], array.dtype))


def store(engine: Engine, array: Any, index: Any, vector: Any) -> None:
    """Store a vector, as ``vec_store`` does in a kernel; every element is written and checked."""
    if not isinstance(vector, Vector):
        raise TypeError(
            f"vec_store: takes a vector, such as dp.vec_full(4, 0, x.dtype); got {vector!r}"
        )
    places = _places(engine, "vec_store", array, index, len(vector))
    for place, value in zip(places, vector.as_array(), strict=True):
        array[place] = value


def _places(engine: Engine, what: str, array: Any, index: Any, count: int) -> list[tuple[Any, ...]]:
    if not isinstance(array, SimulatedArray):
        raise TypeError(f"{what}: the first argument must be an array of the kernel; got {array!r}")
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{what}: the array must have Booleans, integers or floats; got {array.dtype}"
        )
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != array.ndim:
        raise TypeError(f"{what}: takes {array.ndim} indices of {array.name}; got {len(indices)}")
    first = operator.index(indices[-1])
    extent = int(array.shape[-1])
    if first < 0:
        first += extent
    if not 0 <= first <= extent - count:
        raise engine.fault(
            f"asks for {count} elements of {array.name} from index "
            f"{', '.join(str(int(each)) for each in indices)} on, outside its shape "
            f"{tuple(map(int, array.shape))}",
            f"test the index against {array.name}.shape[{array.ndim - 1}] - {count} first",
        )
    return [(*indices[:-1], first + at) for at in range(count)]
