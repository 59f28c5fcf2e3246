"""NumPy's functions of arrays, for functions of the host.

Element-wise functions are those of numbers, at each position. Others are loops over elements.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dparray._ir.types import BOOL, F64, I64, U64, Type
from dparray._language import array_functions, intrinsics
from dparray._language.builtins.registry import Handler, known
from dparray._language.errors import Refusal
from dparray._language.memory import WHOLE, dtype_of, element_type
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Constant,
    Elements,
    Number,
    Tuple,
    is_number,
)

#: The functions of arrays by their names in NumPy, and the methods among them.
FUNCTIONS: dict[str, Handler] = {}
METHODS: dict[str, Handler] = {}
#: Functions of Python and of the language that are element-wise for arrays.
_ELEMENTWISE = frozenset({"where", "clip", "round", "around"})
#: The number of rows of the second factor that a product reads together.
_ROWS_AT_ONCE = 4
_SIZES_DIFFER = "the sizes of the factors of a product differ"
_EMPTY = "zero-size array to reduction operation {} which has no identity"


def of_arrays(function: Any) -> Handler | None:
    """Return what translates a call of a function with arrays; ``None`` if nothing does."""
    is_class = isinstance(function, type) and issubclass(function, np.generic)
    if is_class or isinstance(function, np.dtype):
        return partial(_astype, dtype=Constant(function))
    if function is len:
        return _len
    name = _name_in_numpy(function)
    if isinstance(function, np.ufunc) or function is abs or name in _ELEMENTWISE:
        return partial(_elementwise, function)
    return FUNCTIONS.get(name)


def creates(function: Any) -> Handler | None:
    """Return what translates a function that makes an array of numbers; ``None`` if none does."""
    return _CREATION.get(_name_in_numpy(function))


def _name_in_numpy(function: Any) -> str:
    """Return the name of a function of NumPy or of a library like it; empty for any other."""
    module = str(getattr(function, "__module__", ""))
    package = "" if module == array_functions.__name__ else module.partition(".")[0]
    is_numpy = package in ("numpy", "dparray", "dpnp")
    return getattr(function, "__name__", "") if is_numpy else ""


def has_array(values: Any) -> bool:
    """Return whether there is an array among values."""
    return any(isinstance(each, Array | Elements) for each in values)


def _handles(*names: str, is_method: bool = True) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            FUNCTIONS[name] = handler
            if is_method:
                METHODS[name] = handler
        return handler

    return register


# --- element by element ---------------------------------------------------------------------------


def _elementwise(function: Any, front: Any, node: Any, *operands: Any, **named: Any) -> Any:
    out = named.pop("out", None)
    if isinstance(function, np.ufunc) and len(operands) > function.nin:
        *rest, out = operands
        operands = tuple(rest)
    if isinstance(function, np.ufunc) and (function.nout > 1 or len(operands) != function.nin):
        raise Refusal(f"{function.__name__} of arrays is not available here", node)
    if set(named) - {"decimals", "a_min", "a_max"}:
        raise Refusal("the keywords of this function are not available here", node)
    called = Constant(function)

    def element(*numbers: Any) -> Any:
        return front.call(called, list(numbers), named, node)

    made = front.combined(element, operands)
    if out is None:
        return made
    front.store_like(out, made, node)
    return out


@_handles("astype")
def _astype(front: Any, node: Any, value: Any, dtype: Any) -> Any:
    kind = Constant(np.dtype(known(dtype, "a dtype")).type)
    if kind.value is np.float16:
        raise Refusal("arrays of float16 are not available here", node)
    return front.combined(lambda number: front.call(kind, [number], {}, node), [value])


@_handles("copy", "array")
def _copy(front: Any, node: Any, value: Any, dtype: Any = NONE) -> Any:
    if dtype != NONE:
        return _astype(front, node, value, dtype)
    return front.combined(lambda number: number, [value])


def copied(front: Any, array: Array) -> Array:
    """Return a copy of an array, in C order."""
    copy: Array = front.whole(front.combined(lambda number: number, [array]))
    return copy


# --- new arrays -----------------------------------------------------------------------------------


def _kind(front: Any, dtype: Any, default: Any = F64) -> tuple[Type, bool]:
    if dtype == NONE:
        return default, False
    found = known(dtype, "a dtype")
    if np.dtype(found).kind not in "biufc" or np.dtype(found) == np.float16:
        raise Refusal(f"arrays of {np.dtype(found)} are not available here")
    kind, is_complex = element_type(found)
    return kind, is_complex


def _shape(front: Any, shape: Any) -> list[Any]:
    is_known = isinstance(shape, Constant) and isinstance(shape.value, tuple)
    items: list[Any] = [shape]
    if isinstance(shape, Tuple) or is_known:
        items = front.items_of(shape, None)
    return items


def _filled(front: Any, shape: list[Any], kind: Type, is_complex: bool, value: Any) -> Array:
    if value == NONE:
        return front.new_array(shape, kind, is_complex)
    if isinstance(value, Constant) and value.value == 0:
        return front.new_array(shape, kind, is_complex, True)
    made = front.new_array(shape, kind, is_complex)
    front.fill(made, Elements(made.shape, lambda index: value), ())
    return made


def _new(first: Any, front: Any, node: Any, shape: Any, dtype: Any = NONE, **named: Any) -> Array:
    if set(named) - {"order"}:
        raise Refusal("the keywords of this function are not available here", node)
    return _filled(front, _shape(front, shape), *_kind(front, dtype), first)


def _full(
    front: Any, node: Any, shape: Any, fill_value: Any, dtype: Any = NONE, **named: Any
) -> Array:
    if named:
        raise Refusal("the keywords of this function are not available here", node)
    if dtype == NONE and isinstance(fill_value, Complex):
        return _filled(front, _shape(front, shape), fill_value.real.type, True, fill_value)
    default = F64 if isinstance(fill_value, Complex) else front.type_of(fill_value)
    return _filled(front, _shape(front, shape), *_kind(front, dtype, default), fill_value)


def _like(first: Any, front: Any, node: Any, value: Any, dtype: Any = NONE) -> Array:
    source = front.elements(value)
    kind, is_complex = front.kind_of(source) if dtype == NONE else _kind(front, dtype)
    return _filled(front, list(source.shape), kind, is_complex, first)


@_handles("full_like", is_method=False)
def _full_like(front: Any, node: Any, value: Any, fill_value: Any, dtype: Any = NONE) -> Array:
    return _like(fill_value, front, node, value, dtype)


def _arange(front: Any, node: Any, *bounds: Any, dtype: Any = NONE) -> Array:
    if len(bounds) not in (1, 2, 3):
        raise Refusal("arange takes one to three numbers", node)
    if len(bounds) == 1:
        bounds = (Constant(0, True), *bounds)
    start, stop, step = (*bounds, Constant(1, True))[:3]
    are_known = all(
        front.type_of(each) == I64 or (front.is_weak(each) and front.type_of(each).is_integer)
        for each in bounds
    )
    if not are_known:
        raise Refusal("arange of other numbers than int64 is not available here", node)
    count = front.call(
        Constant(len), [front.call(Constant(range), [start, stop, step], {}, node)], {}, node
    )
    kind, is_complex = _kind(front, dtype, I64)
    made = front.new_array([count], kind, is_complex)

    def value(index: Sequence[Number]) -> Any:
        moved = front.binary(ast.Mult, index[0], step, node)
        return front.binary(ast.Add, start, moved, node)

    front.fill(made, Elements(made.shape, value), ())
    return made


def _identity(front: Any, node: Any, size: Any, dtype: Any = NONE) -> Array:
    return _eye(front, node, size, size, dtype=dtype)


def _eye(
    front: Any,
    node: Any,
    rows: Any,
    columns: Any = NONE,
    k: Any = Constant(0),
    dtype: Any = NONE,
) -> Array:
    if k != Constant(0):
        raise Refusal("eye with another diagonal is not available here", node)
    made = front.new_array([rows, rows if columns == NONE else columns], *_kind(front, dtype), True)
    least = front.op("min", I64, *(each.op for each in made.shape))

    def one(index: list[Number]) -> None:
        front.write(made, front.address_of(made, [index[0]] * 2), Constant(1))

    front.each([Number(least, is_natural=True)], one)
    return made


_CREATION: dict[str, Handler] = {
    "eye": _eye,
    "identity": _identity,
    "zeros": partial(_new, Constant(0)),
    "ones": partial(_new, Constant(1)),
    "empty": partial(_new, NONE),
    "full": _full,
    "arange": _arange,
}
for _name, _first in (("zeros", Constant(0)), ("ones", Constant(1)), ("empty", NONE)):
    FUNCTIONS[f"{_name}_like"] = partial(_like, _first)


# --- reductions -----------------------------------------------------------------------------------


def _number_of(front: Any, shape: Sequence[Any]) -> Any:
    count: Any = Constant(1)
    for each in shape:
        count = each if count == Constant(1) else front.made("mul", I64, count, each, True)
    return count


def _reordered(front: Any, node: Any, value: Any) -> Any:
    return front.call(Constant(intrinsics.reordered), [value], {}, node)


def _plus(front: Any, node: Any, total: Any, value: Any) -> Any:
    return _reordered(front, node, front.binary(ast.Add, total, value, node))


def _times(front: Any, node: Any, total: Any, value: Any) -> Any:
    return _reordered(front, node, front.binary(ast.Mult, total, value, node))


def _extreme(name: str, front: Any, node: Any, best: Any, value: Any) -> Any:
    return front.call(Constant(getattr(np, f"{name}imum")), [best, value], {}, node)


def _either(front: Any, node: Any, found: Any, value: Any) -> Any:
    return Number(front.op("or", BOOL, front.truth(found).op, front.truth(value).op))


def _both(front: Any, node: Any, found: Any, value: Any) -> Any:
    return Number(front.op("and", BOOL, front.truth(found).op, front.truth(value).op))


class _Fold(NamedTuple):
    """A reduction.

    Attributes:
        name: of NumPy's function.
        start: its value without any element; ``None`` if it has none.
        step: combines it with an element.
    """

    name: str
    start: Any
    step: Callable[..., Any]

    def first(self, front: Any, kind: Any, element: Any) -> Any:
        """Return the value before the first element, as numbers of the type of the result."""
        if isinstance(element, Complex):
            own = element.real.type
            return Complex(front.to(Constant(self.start), own), front.to(Constant(0), own))
        return front.to(Constant(self.start), kind)


_FOLDS = {
    "sum": _Fold("add", 0, _plus),
    "prod": _Fold("multiply", 1, _times),
    "min": _Fold("minimum", None, partial(_extreme, "min")),
    "max": _Fold("maximum", None, partial(_extreme, "max")),
    "any": _Fold("logical_or", False, _either),
    "all": _Fold("logical_and", True, _both),
}


def _result_kind(front: Any, name: str, kind: Type, is_complex: bool, dtype: Any) -> Type:
    """Return the type in which a reduction computes."""
    if dtype != NONE:
        return _kind(front, dtype)[0]
    if name in ("any", "all"):
        return BOOL
    if name in ("sum", "prod") and (kind.is_integer or kind == BOOL) and not is_complex:
        return U64 if kind.kind == "u" else I64
    return kind


def _fold(
    name: str,
    front: Any,
    node: Any,
    value: Any,
    axis: Any = NONE,
    dtype: Any = NONE,
    keepdims: Any = Constant(False),
) -> Any:
    source = front.elements(value)
    fold = _FOLDS[name]
    kind, is_complex = front.kind_of(source)
    wanted = _result_kind(front, name, kind, is_complex, dtype)
    axes = _axes(axis, len(source.shape), node)

    def element(index: Sequence[Number]) -> Any:
        found = source.at(index)
        if name in ("any", "all"):
            return front.truth(found)
        return found if is_complex else front.to(found, wanted)

    if fold.start is None:
        for number in axes:
            length = front.to(source.shape[number], I64).op
            some = front.op("gt", BOOL, length, front.constant(0, I64))
            front.require(some, "ValueError", _EMPTY.format(fold.name))

    def combined(total: Any, index: Sequence[Number]) -> Any:
        step = fold.step(front, node, total, element(index))
        return step if is_complex else front.to(step, wanted)

    def start(index: Sequence[Number]) -> Any:
        if fold.start is not None:
            return fold.first(front, wanted, source.at(index) if is_complex else None)
        return element(index)

    zero = front.number(Constant(0))
    if len(axes) == len(source.shape):
        before = front.is_even

        def total(is_even: bool) -> Any:
            front.is_even = is_even
            first = start([zero] * len(source.shape))
            found = front.folded_over(source.shape, first, combined)
            front.is_even = before
            return found

        found = front.evenly(source, total)
        if known(keepdims, "keepdims"):
            return Elements((Constant(1),) * len(source.shape), lambda index: found)
        return found
    kept = [number for number in range(len(source.shape)) if number not in axes]
    shape = [source.shape[number] for number in kept]
    whole = front.whole(source) if source.even or axes != [len(source.shape) - 1] else source
    source = front.elements(whole)
    made = front.new_array(shape, wanted, is_complex)

    def place(own: Sequence[Number], others: Sequence[Number]) -> list[Number]:
        mixed = dict(zip(kept, own, strict=True)) | dict(zip(axes, others, strict=True))
        return [mixed[number] for number in range(len(source.shape))]

    zeros = [zero] * len(axes)
    lengths = [source.shape[number] for number in axes]
    if axes == [len(source.shape) - 1]:

        def row(index: list[Number]) -> None:
            first = start(place(index, zeros))
            found = front.folded_over(
                lengths, first, lambda total, inner: combined(total, place(index, inner))
            )
            front.write(made, front.address_of(made, index), found)

        front.each(shape, row)
    else:
        front.each(
            shape,
            lambda index: front.write(
                made, front.address_of(made, index), start(place(index, zeros))
            ),
        )

        def update(index: list[Number]) -> None:
            own = [index[number] for number in kept]
            address = front.address_of(made, own)
            front.write(made, address, combined(front.read(made, address), index))

        front.each(source.shape, update)
    if known(keepdims, "keepdims"):
        return _with_axes(front, made, axes, node)
    return made


def _with_axes(front: Any, array: Array, axes: Sequence[int], node: Any) -> Array:
    """Return a view with axes of one element."""
    count = len(array.shape) + len(axes)
    entries = [NONE if number in axes else WHOLE for number in range(count)]
    view: Array = front.view(array, entries, node)
    return view


def _axes(axis: Any, ndim: int, node: Any) -> list[int]:
    if axis == NONE:
        return list(range(ndim))
    found = known(axis, "an axis")
    axes = found if isinstance(found, tuple) else (found,)
    if not all(type(each) is int and -ndim <= each < ndim for each in axes):
        raise Refusal("an axis is not one of the array's", node)
    return sorted(each % ndim for each in axes)


for _name in _FOLDS:
    _handles(_name)(partial(_fold, _name))
for _name in ("min", "max"):
    FUNCTIONS[f"a{_name}"] = FUNCTIONS[_name]


@_handles("mean")
def _mean(
    front: Any, node: Any, value: Any, axis: Any = NONE, keepdims: Any = Constant(False)
) -> Any:
    source = front.elements(value)
    kind, is_complex = front.kind_of(source)
    dtype = NONE if kind.is_float or is_complex else Constant(np.float64)
    total = _fold("sum", front, node, source, axis, dtype, keepdims)
    axes = _axes(axis, len(source.shape), node)
    count = _number_of(front, [source.shape[number] for number in axes])
    count = front.python(front.to(count, I64))
    return _apply(front, node, ast.Div, total, count)


def _apply(front: Any, node: Any, operation: type, first: Any, second: Any) -> Any:
    """Return a binary operation of numbers or arrays."""
    if has_array((first, second)):
        return front.combined(lambda a, b: front.binary(operation, a, b, node), [first, second])
    return front.binary(operation, first, second, node)


@_handles("var")
def _var(
    front: Any,
    node: Any,
    value: Any,
    axis: Any = NONE,
    ddof: Any = Constant(0),
    keepdims: Any = Constant(False),
) -> Any:
    source = front.elements(front.named(value))
    if front.kind_of(source)[1]:
        raise Refusal("the variance of complex numbers is not available here", node)
    mean = front.named(_mean(front, node, source, axis, Constant(axis != NONE)))
    distances = _apply(front, node, ast.Sub, source, mean)
    squares = front.combined(lambda a: front.binary(ast.Mult, a, a, node), [distances])
    total = _fold("sum", front, node, squares, axis, NONE, keepdims)
    axes = _axes(axis, len(source.shape), node)
    count = _number_of(front, [source.shape[number] for number in axes])
    count = front.python(front.made("sub", I64, count, front.to(ddof, I64)))
    return _apply(front, node, ast.Div, total, count)


@_handles("std")
def _std(front: Any, node: Any, *operands: Any, **named: Any) -> Any:
    variance = _var(front, node, *operands, **named)
    root = Constant(math.sqrt)
    if has_array((variance,)):
        return front.combined(lambda a: front.call(root, [a], {}, node), [variance])
    return front.call(root, [variance], {}, node)


def _position(name: str, front: Any, node: Any, value: Any, axis: Any = NONE) -> Any:
    """Return the position of the first extreme element of a vector; the first NaN is one."""
    source = front.elements(value)
    if len(source.shape) != 1 or _axes(axis, 1, node) != [0]:
        raise Refusal(f"{name} of several axes is not available here", node)
    if front.kind_of(source)[1]:
        raise Refusal(f"{name} of complex numbers is not available here", node)
    length = front.to(source.shape[0], I64).op
    some = front.op("gt", BOOL, length, front.constant(0, I64))
    front.require(some, "ValueError", f"attempt to get {name} of an empty sequence")
    array = front.elements(front.named(source))
    zero = front.to(Constant(0), I64)
    first = Tuple((zero, array.at([zero])))

    def step(best: Tuple, index: list[Number]) -> Tuple:
        at, value = best.items
        found = array.at(index)
        better = front.compare(ast.Gt if name == "argmax" else ast.Lt, found, value, node)
        if front.type_of(found).is_float:
            own = front.truth(front.compare(ast.Eq, value, value, node))
            nan = front.truth(front.compare(ast.NotEq, found, found, node))
            new_nan = front.op("and", BOOL, own.op, nan.op)
            better = Number(front.op("or", BOOL, front.truth(better).op, new_nan))
        test = front.truth(better).op
        kind = front.type_of(found)
        return Tuple(
            (
                Number(front.op("select", I64, test, front.to(index[0], I64).op, at.op)),
                Number(front.op("select", kind, test, found.op, front.to(value, kind).op)),
            )
        )

    return front.folded_over(array.shape, first, step).items[0]


for _name in ("argmin", "argmax"):
    _handles(_name)(partial(_position, _name))


@_handles("dot", "vdot", "inner", "matmul")
def product(front: Any, node: Any, first: Any, second: Any) -> Any:
    """Return the product of vectors and matrices."""
    if is_number(first) or is_number(second):
        return _apply(front, node, ast.Mult, first, second)
    a, b = front.elements(first), front.elements(second)
    if len(a.shape) in (1, 2) and len(b.shape) == 2:
        return _by_rows(front, node, a, b)
    if (len(a.shape), len(b.shape)) == (1, 1):
        products = front.combined(
            lambda x, y: front.binary(ast.Mult, x, y, node), [_as_long(front, a, b), b]
        )
        return _sum(front, node, products)
    if (len(a.shape), len(b.shape)) == (2, 1):
        row = _as_long(front, Elements(a.shape[1:], lambda index: index[0]), b)
        matrix = Elements((a.shape[0], row.shape[0]), a.at, a.reads, a.even)
        products = front.combined(lambda x, y: front.binary(ast.Mult, x, y, node), [matrix, b])
        return _sum(front, node, products, Constant(1))
    raise Refusal("a product of arrays of more than two axes is not available here", node)


def _sum(front: Any, node: Any, products: Elements, axis: Any = NONE) -> Any:
    """Return the sum of products, which have its type."""
    kind, is_complex = front.kind_of(products)
    if kind == BOOL:
        raise Refusal("a product of arrays of booleans is not available here", node)
    dtype = NONE if is_complex else Constant(dtype_of(kind, False).type)
    return _fold("sum", front, node, products, axis, dtype)


def _by_rows(front: Any, node: Any, a: Elements, b: Elements) -> Array:
    """Return the product of a vector or matrix and a matrix: sums of rows of the second factor."""
    *rows, depth = a.shape
    same = front.op("eq", BOOL, *(front.to(each, I64).op for each in (depth, b.shape[0])))
    front.require_shape(same, _SIZES_DIFFER)
    a, b = (front.elements(front.whole(each)) for each in (a, b))
    kinds = [front.kind_of(each)[0] for each in (a, b)]
    if BOOL in kinds:
        raise Refusal("a product of arrays of booleans is not available here", node)
    zero = front.number(Constant(0))

    def term(x: Any, inner: Any, column: Any) -> Any:
        return front.binary(ast.Mult, x, b.at([inner, column]), node)

    shape = [*rows, b.shape[1]]
    first = Elements(tuple(shape), lambda index: term(a.at([*index[:-1], zero]), zero, index[-1]))
    made = front.new_array(shape, *front.kind_of(first), True)

    def add(index: Sequence[Number], inner: Sequence[Any]) -> None:
        """Add the products with some rows of the second factor, in order."""
        factors = [a.at([*index, each]) for each in inner]

        def add_column(columns: list[Number]) -> None:
            address = front.address_of(made, [*index, *columns])
            total = front.read(made, address)
            for x, each in zip(factors, inner, strict=True):
                total = front.binary(ast.Add, total, term(x, each, columns[0]), node)
            front.write(made, address, total)

        front.each(b.shape[1:], add_column)

    def moved(number: Any, by: Any) -> Any:
        return front.made("add", I64, number, by, True)

    bits = _ROWS_AT_ONCE.bit_length() - 1
    whole = front.binary(ast.RShift, front.to(depth, I64), Constant(bits), node)
    done = front.made("mul", I64, whole, Constant(_ROWS_AT_ONCE), True)

    def add_block(index: list[Number]) -> None:
        start = front.made("mul", I64, index[-1], Constant(_ROWS_AT_ONCE), True)
        add(index[:-1], [moved(start, Constant(each)) for each in range(_ROWS_AT_ONCE)])

    front.each([*rows, replace(whole, is_natural=True)], add_block)
    rest = replace(front.made("sub", I64, depth, done), is_natural=True)
    front.each([*rows, rest], lambda index: add(index[:-1], [moved(done, index[-1])]))
    return made


def _as_long(front: Any, a: Elements, b: Elements) -> Elements:
    """Return the first of two vectors, which must have one length."""
    if front.is_same(a.shape[0], b.shape[0]):
        return a
    lengths = (front.to(each.shape[0], I64).op for each in (a, b))
    same = front.op("eq", BOOL, *lengths)
    front.require_shape(same, _SIZES_DIFFER)
    return Elements(b.shape, a.at, a.reads, a.even)


# --- functions in the language --------------------------------------------------------------------


def _written(
    name: str, ndims: Sequence[int], front: Any, node: Any, *operands: Any, **named: Any
) -> Any:
    """Call a function of :mod:`dparray._language.array_functions`."""
    if named.pop("axis", Constant(-1)) != Constant(-1) or named:
        raise Refusal(f"the keywords of {name} are not available here", node)
    arrays = [front.whole(each) for each in operands]
    found = [len(each.shape) if isinstance(each, Array) else 0 for each in arrays]
    if found != list(ndims):
        raise Refusal(f"{name} of arrays of {found} dimensions is not available here", node)
    return front.call(Constant(getattr(array_functions, name)), arrays, {}, node)


def _of_matrices(name: str, front: Any, node: Any, *operands: Any) -> Any:
    arrays = [front.whole(each) for each in operands]
    kinds = {front.kind_of(front.elements(each)) for each in arrays}
    if len(kinds) > 1 or not all(kind.is_float for kind, _ in kinds):  # NumPy converts them
        raise Refusal(f"{name} takes arrays of one floating-point type here", node)
    if name == "solve" and len(arrays) == 2 and len(arrays[1].shape) == 1:
        return _written("solve_vector", [2, 1], front, node, *arrays)
    return _written(name, [2] * len(arrays), front, node, *arrays)


def _sort(front: Any, node: Any, value: Any, **named: Any) -> Any:
    array = front.whole(value)
    if array.is_complex:
        raise Refusal("sort of complex numbers is not available here", node)
    name = "sort_rows" if len(array.shape) == 2 else "sort"
    return _written(name, [len(array.shape)], front, node, array, **named)


FUNCTIONS["sort"] = _sort
FUNCTIONS["argsort"] = partial(_written, "argsort", [1])
for _name in ("inv", "det", "solve"):
    FUNCTIONS[_name] = partial(_of_matrices, _name)


# --- forms ----------------------------------------------------------------------------------------


def _len(front: Any, node: Any, value: Any) -> Any:
    return front.python(front.to(value.shape[0], I64))


@_handles("ravel", "flatten")
def _flatten(front: Any, node: Any, value: Any) -> Array:
    array = front.whole(value)
    if array.strides is not None or (
        isinstance(value, Array) and getattr(node.func, "attr", "") == "flatten"
    ):
        array = copied(front, array)
    size = front.to(_number_of(front, array.shape), I64)
    return Array(array.pointer, (size,), None, array.is_readonly, array.is_complex)


@_handles("reshape")
def _reshape(front: Any, node: Any, value: Any, *shape: Any) -> Array:
    array = front.whole(value)
    if array.strides is not None:
        array = copied(front, array)
    sizes = _shape(front, shape[0] if len(shape) == 1 else Tuple(shape))
    if any(isinstance(each, Constant) and each.value < 0 for each in sizes):
        raise Refusal("a length of -1 is not available here", node)
    extents = [front.to(each, I64) for each in sizes]
    counts = (front.to(_number_of(front, each), I64).op for each in (array.shape, extents))
    same = front.op("eq", BOOL, *counts)
    for each in extents:
        natural = front.op("ge", BOOL, each.op, front.constant(0, I64))
        same = front.op("and", BOOL, same, natural)
    front.require_shape(same, "an array is reshaped to another number of elements")
    kept = tuple(Number(each.op, is_natural=True) for each in extents)
    return Array(array.pointer, kept, None, array.is_readonly, array.is_complex)


@_handles("transpose")
def _transpose(front: Any, node: Any, value: Any, axes: Any = NONE) -> Any:
    if axes != NONE:
        raise Refusal("the axes of transpose are not available here", node)
    return front.attribute(front.whole(value), "T", node)


@_handles("fill")
def _fill(front: Any, node: Any, value: Any, number: Any) -> Constant:
    front.store(value, number, node)
    return NONE
