"""Functions that native code calls: checks of shapes, elements at a mask, sums of products, and
operations on integers.

Numba computes ``x += y``, ``np.add(x, y, out)`` and ``x[mask]`` without comparing the shapes, and
reads and writes outside of arrays that do not fit. It visits the elements of ``x[mask]`` one by
one. It allocates an array for ``x[at]`` in ``v @ x[at]``, which takes longer than the product for
the short rows of sparse matrices, and an array for ``x * y`` in ``np.sum(x * y, axis=1)``.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from dparray._jit.source import copied

APART = "__apart__"
_APART_OF_ONE = "__apart_of_one__"
_FITTED = "__fitted__"
_MASK = "__mask__"
_SELECTED = "__selected__"
_PRODUCT = "__product__"
_DOT = "__dot__"
SUM_OF_PRODUCT = "__sum_of_product__"
#: Replaces ``SUM_OF_PRODUCT`` with ``fastmath=True``, which allows any order of the additions.
REORDERED_SUM = "__reordered_sum__"
_OTHER_LENGTH = "a Boolean index must have the length of the axis it indexes"
#: Numba compares the annotations with those of the function that is replaced.
_HEAD = "def sum_of_product(left: Any, right: Any, axes: Any) -> Any:\n "
#: How many elements of a mask are read together; those of most masks have no true one.
_BLOCK = 64
#: The code of element-wise functions of integers ``x`` and ``y``, as NumPy computes them. ``dtype``
#: is that of the result, of which ``bits`` is the size; ``wide`` has its sign and 64 bits. Sums of
#: ``uint64`` wrap around; Numba lets LLVM assume that those of signed integers do not. The
#: comparisons are of ``uint64`` with signed integers, which Numba compares as ``float64``.
INTEGER_CODE = {
    **{
        name: f"return dtype(uint64(x) {sign} uint64(y))"
        for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"), ("bitwise_and", "&"),
                           ("bitwise_or", "|"), ("bitwise_xor", "^"))
    },
    "floor_divide": "return dtype(uint64(0) - uint64(x)) if signed and dtype(y) == dtype(-1) else "
                    "dtype(wide(dtype(x)) // wide(dtype(y)))",
    "remainder": "return dtype(wide(dtype(x)) % wide(dtype(y)))",
    "left_shift": "return dtype(uint64(x) << uint64(dtype(y))) if uint64(dtype(y)) < bits else "
                  "dtype(0)",
    "right_shift": "return dtype(wide(dtype(x)) >> wide(dtype(y))) if uint64(dtype(y)) < bits else "
                   "dtype(-(wide(dtype(x)) < 0))",
    "power": """
 factor, exponent, found = uint64(dtype(x)), wide(dtype(y)), uint64(1)
 if exponent < 0:
  exponent &= wide(1)
  if dtype(x) != dtype(1) and (not signed or dtype(x) != dtype(-1)):
   return dtype(0)
 while exponent:
  if exponent & wide(1):
   found *= factor
  factor *= factor
  exponent >>= wide(1)
 return dtype(found)""",
    "square": "return dtype(uint64(x) * uint64(x))",
    "negative": "return dtype(uint64(0) - uint64(x))",
    "invert": "return dtype(~uint64(x))",
    "absolute": "return dtype(uint64(0) - uint64(x)) if x < 0 else dtype(x)",
    "sign": "return dtype(int64(x > 0) - int64(x < 0))",
    "less": "return x < 0 or (y >= 0 and uint64(x) < uint64(y))",
    "less_equal": "return x < 0 or (y >= 0 and uint64(x) <= uint64(y))",
    "greater": "return y < 0 or (x >= 0 and uint64(x) > uint64(y))",
    "greater_equal": "return y < 0 or (x >= 0 and uint64(x) >= uint64(y))",
    "equal": "return x >= 0 and y >= 0 and uint64(x) == uint64(y)",
    "not_equal": "return x < 0 or y < 0 or uint64(x) != uint64(y)",
}  # fmt: skip
NO_BROADCAST = "the value does not broadcast to the shape of its target"


def fitted_to(target: ast.expr, value: ast.expr) -> ast.expr:
    """Return an expression of a value that raises unless it broadcasts to a target."""
    return _call(value, _FITTED, loaded(target), value)


def operation_of(name: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """Return an operation on values whose types only Numba knows."""
    return _call(left, f"__any_{name}__", left, right)


def apart_from(target: ast.expr, value: ast.expr, are_arguments: bool) -> ast.expr:
    """Return an expression of a value, copied if it overlaps a target and has other elements.

    Args:
        target: the target.
        value: the value.
        are_arguments: whether they belong to different arguments. Those of parallel code do not
            overlap, so it leaves the call out.
    """
    return _call(value, APART if are_arguments else _APART_OF_ONE, loaded(target), value)


def mask_of(array: ast.expr, axis: int, mask: ast.expr) -> ast.expr:
    """Return an expression of an index that raises if it is a mask of another length."""
    return _call(mask, _MASK, loaded(array), ast.Constant(axis), mask)


def selected_by(array: ast.expr, mask: ast.expr) -> ast.expr:
    """Return an expression of ``array[mask]``, both vectors, that raises if the lengths differ."""
    return _call(array, _SELECTED, array, mask)


def product_with(vector: ast.expr, values: ast.expr, at: ast.expr) -> ast.expr:
    """Return an expression of ``vector @ values[at]`` without an array for ``values[at]``."""
    return _call(vector, _PRODUCT, vector, values, at)


def dot_of(left: ast.expr, right: ast.expr) -> ast.expr:
    """Return an expression of the product of two vectors of one dtype, without copies of them."""
    return _call(left, _DOT, left, right)


def sum_of_product(left: ast.expr, right: ast.expr, axes: list[int]) -> ast.expr:
    """Return an expression of ``left * right``, summed along one axis after the other."""
    return _call(left, SUM_OF_PRODUCT, left, right, ast.Constant(str(axes)))


def integer_call(name: str, dtype: np.dtype[Any], *operands: ast.expr) -> ast.expr:
    """Return an expression of a universal function of integers, computed in a dtype."""
    return _call(operands[0], f"__{name}_{dtype}__", *operands)


def loaded(node: ast.expr) -> ast.expr:
    """Return an expression that reads what another one reads or assigns."""
    node = copied(node)
    if isinstance(node, ast.Name | ast.Subscript | ast.Attribute):
        node.ctx = ast.Load()
    return node


def _call(place: ast.expr, name: str, *arguments: ast.expr) -> ast.expr:
    made = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    return ast.fix_missing_locations(ast.copy_location(made, place))


def _apart(target: Any, value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _fitted(target: Any, value: Any) -> Any:
    return value


def _ends(array: Any) -> Any:
    """Return the addresses of the first byte of an array and after its last one."""
    start = end = np.int64(array.ctypes.data)
    for axis in range(array.ndim):
        reach = (array.shape[axis] - 1) * array.strides[axis]
        start, end = start + min(reach, 0), end + max(reach, 0)
    return start, end + array.itemsize


def _mask(array: Any, axis: int, mask: Any) -> Any:
    return mask


def _selected(array: Any, mask: Any) -> Any:
    return array[mask]


def _product(vector: Any, values: Any, at: Any) -> Any:
    if vector.size != at.size:
        raise ValueError("incompatible array sizes for the product of two vectors")
    total = vector.dtype.type(0)
    for position in range(at.size):
        total += vector[position] * values[at[position]]
    return total


def _dot(left: Any, right: Any) -> Any:
    return np.dot(left, right)


def _contiguous_dot(left: Any, right: Any) -> Any:
    return np.dot(left, right)


def _strided_dot(left: Any, right: Any) -> Any:
    if left.size != right.size:
        raise ValueError("incompatible array sizes for the product of two vectors")
    whole = left.size - left.size % 4
    a = b = c = d = left.dtype.type(0)
    for at in range(0, whole, 4):
        a += left[at] * right[at]
        b += left[at + 1] * right[at + 1]
        c += left[at + 2] * right[at + 2]
        d += left[at + 3] * right[at + 3]
    for at in range(whole, left.size):
        a += left[at] * right[at]
    return (a + b) + (c + d)


def _sum_of_product(left: Any, right: Any, axes: str) -> Any:
    found = left * right
    for axis in ast.literal_eval(axes):
        found = np.sum(found, axis=axis)
    return found


def _reordered_sum(left: Any, right: Any, axes: str) -> Any:
    return _sum_of_product(left, right, axes)


def _code_of_sum(left: int, right: int, axes: list[int], in_order: bool) -> str:
    """Return the code of ``_sum_of_product`` without an array for the product, by dimensions.

    The code adds in the order of the separate sums if ``in_order``, otherwise in memory order. Each
    sum is a vector along the last axis, unless that is summed, too. The code is empty if an axis
    does not exist, or an operand has none.
    """
    ndim, top = max(left, right), (len(axes) - 1 if in_order else 0)
    kept = list(range(ndim))
    summed = [kept.pop(axis) for axis in axes if -len(kept) <= axis < len(kept)]
    if len(summed) < len(axes) or not left or not right:
        return ""
    has_vectors = ndim - 1 in kept
    outer = kept[: len(kept) - has_vectors]
    place = f"found[{''.join(f'i{axis}, ' for axis in outer)}{':' * has_vectors}]"
    each, k = (f"for k in range(shape[{ndim - 1}]): ", "[k]") if has_vectors else ("", "")
    lines = [
        "shape = np.broadcast_shapes(left.shape, right.shape)",
        f"found = np.zeros(({''.join(f'shape[{axis}], ' for axis in kept)}), left.dtype)",
        "zero = left.dtype.type(0)",
    ]
    if has_vectors:
        lines += [f"sum{at} = np.empty(shape[{ndim - 1}], left.dtype)" for at in range(top)]
    loops = [*outer, *(reversed(summed) if in_order else sorted(summed))]
    for depth, axis in enumerate(loops):
        pad, at = " " * depth, top - (depth - len(outer))
        if 0 <= at <= top:
            is_part = at == top and has_vectors
            lines.append(pad + (f"sum{at} = {place}" if is_part else f"{each}sum{at}{k} = zero"))
        lines.append(f"{pad}for i{axis} in range(shape[{axis}]):")
    pad = " " * len(loops)
    elements = []
    for name, start in (("left", ndim - left), ("right", ndim - right)):
        index = [
            f"i{axis} if {name}.shape[{axis - start}] > 1 else 0, "
            for axis in range(start, ndim - has_vectors)
        ]
        elements.append(f"{name}[{''.join(index)}")
    x, y = elements
    if has_vectors:  # compilers vectorize a loop only if it does not choose the index
        lines += [
            f"{pad}if left.shape[-1] == right.shape[-1]:",
            f"{pad} {each}sum0[k] += {x}k] * {y}k]",
            f"{pad}elif left.shape[-1] == 1:",
            f"{pad} {each}sum0[k] += {x}0] * {y}k]",
            f"{pad}else:",
            f"{pad} {each}sum0[k] += {x}k] * {y}0]",
        ]
    else:
        lines.append(f"{pad}sum0 += {x}] * {y}]")
    for at in range(top):
        lines.append(f"{' ' * (len(loops) - at - 1)}{each}sum{at + 1}{k} += sum{at}{k}")
    if not has_vectors and kept:
        lines.append(f"{' ' * len(outer)}{place} = sum{top}")
    return _HEAD + "\n ".join([*lines, "return found" if kept else f"return sum{top}"])


@functools.cache
def integer_function(name: str) -> Callable[..., Any] | None:
    """Return the function of a name that :func:`integer_call` uses, or ``None`` for other names.

    Numba computes it in the loop of the array expression around it.
    """
    code, _, kind = name.strip("_").rpartition("_")
    if code not in INTEGER_CODE or name != f"__{code}_{kind}__":
        return None
    dtype: Any = np.dtype(kind).type
    names = {
        "dtype": dtype,
        "uint64": np.uint64,
        "int64": np.int64,
        "bits": np.uint64(8 * dtype().nbytes),
        "signed": kind[0] == "i",
        "wide": np.int64 if kind[0] == "i" else np.uint64,
    }
    parameters = ", ".join(("x", "y")[: vars(np)[code].nin])
    exec(f"def function({parameters}):\n {INTEGER_CODE[code]}", names)
    return importlib.import_module("numba").vectorize(names["function"])


#: The operators of integers that may leave the range of their dtype.
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "floor_divide": "//", "left_shift": "<<",
          "right_shift": ">>"}  # fmt: skip


def _any_operation(numba: Any, extending: Any, name: str) -> Callable[..., Any]:
    """Return an operation that gives narrow integers NumPy's dtype, and others Numba's."""
    head, space = "(x: Any, y: Any) -> Any: return", {"Any": Any}
    exec(f"def plain{head} x {_SIGNS[name]} y\ndef operation{head} plain(x, y)", space)

    @extending.overload(space["operation"], prefer_literal=True)
    def typed(x: Any, y: Any) -> Any:
        are_integers = all(isinstance(each, numba.types.Integer) for each in (x, y))
        kinds = [
            int if isinstance(each, numba.types.IntegerLiteral) else np.dtype(str(each))
            for each in (x, y) if are_integers
        ]  # fmt: skip
        if kinds and kinds != [int, int]:
            dtype = getattr(np, name).resolve_dtypes((*kinds, None))[-1]
            if dtype.kind in "iu" and dtype.itemsize < 8:
                function = integer_function(f"__{name}_{dtype}__")
                names = {"function": function, "Any": Any}
                exec(f"def own{head} function(x, y)", names)
                return names["own"]
        return space["plain"]

    return cast("Callable[..., Any]", space["operation"])


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions that generated code calls, by name."""
    numba = importlib.import_module("numba")
    extending = importlib.import_module("numba.extending")
    array_type, boolean = numba.types.Array, numba.types.boolean

    ends = extending.register_jitable(_ends)

    @extending.overload(_apart)
    def typed_apart(target: Any, value: Any) -> Any:
        if not isinstance(target, array_type) or not isinstance(value, array_type):
            return _fitted  # Numba refuses a lambda, whose parameters have no annotations

        are_alike = target.ndim == value.ndim and target.dtype == value.dtype

        def checked(target: Any, value: Any) -> Any:
            (start, end), (other, other_end) = ends(target), ends(value)
            if end <= other or other_end <= start or value.size <= 1 or target.size <= 1:
                return value
            is_same = target.ctypes.data == value.ctypes.data
            if are_alike and is_same and target.strides == value.strides:
                return value
            return value.copy()

        return checked

    @extending.overload(_fitted)
    def typed_fitted(target: Any, value: Any) -> Any:
        if not isinstance(target, array_type) or not isinstance(value, array_type):
            return _fitted

        has_more = value.ndim > target.ndim

        def checked(target: Any, value: Any) -> Any:
            # Numba would infer no type for a function that always raises.
            if has_more and value.size >= 0:
                raise ValueError(NO_BROADCAST)
            for axis in range(value.ndim):
                size = value.shape[value.ndim - 1 - axis]
                if size not in (1, target.shape[target.ndim - 1 - axis]):
                    raise ValueError(NO_BROADCAST)
            return value

        return checked

    @extending.overload(_mask)
    def typed_mask(array: Any, axis: int, mask: Any) -> Any:
        is_mask = isinstance(mask, array_type) and mask.dtype == boolean
        if not isinstance(array, array_type) or not is_mask:
            return _mask

        def checked(array: Any, axis: int, mask: Any) -> Any:
            for at in range(mask.ndim):
                if mask.shape[at] != array.shape[axis + at]:
                    raise IndexError(_OTHER_LENGTH)
            return mask

        return checked

    @extending.overload(_selected)
    def typed_selected(array: Any, mask: Any) -> Any:
        def selected(array: Any, mask: Any) -> Any:
            if mask.size != array.size:
                raise IndexError(_OTHER_LENGTH)
            count = 0
            for at in range(mask.size):
                count += mask[at]
            # Each element is written, and overwritten by the next one where the mask is false.
            found = np.empty(count + 1, array.dtype)
            place = 0
            whole = mask.size // _BLOCK * _BLOCK
            for start in range(0, whole, _BLOCK):
                has_some = np.uint8(0)
                for at in range(_BLOCK):
                    has_some |= np.uint8(mask[start + at])
                if has_some:
                    for at in range(_BLOCK):
                        found[place] = array[start + at]
                        place += mask[start + at]
            for at in range(whole, mask.size):
                found[place] = array[at]
                place += mask[at]
            return found[:count]

        return selected

    @extending.overload(_dot)
    def typed_dot(left: Any, right: Any) -> Any:
        # Numba copies strided vectors for BLAS, which it takes from SciPy.
        is_contiguous = left.layout == right.layout == "C"
        return _contiguous_dot if is_contiguous and find_spec("scipy") else _strided_dot

    @extending.overload(_product)
    def typed_product(vector: Any, values: Any, at: Any) -> Any:
        return _product

    def sum_for(left: Any, right: Any, axes: Any, in_order: bool) -> Any:
        found = ast.literal_eval(axes.literal_value)
        code = "left * right"
        for axis in found:
            code = f"np.sum({code}, axis={axis})"
        code = f"{_HEAD}return {code}"
        are_arrays = isinstance(left, array_type) and isinstance(right, array_type)
        if are_arrays and left.dtype == right.dtype and isinstance(left.dtype, numba.types.Float):
            code = _code_of_sum(left.ndim, right.ndim, found, in_order) or code
        names = {"np": np}
        exec(code, names)
        return names["sum_of_product"]

    @extending.overload(_sum_of_product, prefer_literal=True)
    def typed_sum_of_product(left: Any, right: Any, axes: Any) -> Any:
        return sum_for(left, right, axes, True)

    @extending.overload(_reordered_sum, prefer_literal=True)
    def typed_reordered_sum(left: Any, right: Any, axes: Any) -> Any:
        return sum_for(left, right, axes, False)

    return {
        **{f"__any_{name}__": _any_operation(numba, extending, name) for name in _SIGNS},
        APART: _apart,
        _APART_OF_ONE: _apart,
        _FITTED: _fitted,
        _MASK: _mask,
        _SELECTED: _selected,
        _PRODUCT: _product,
        _DOT: _dot,
        SUM_OF_PRODUCT: _sum_of_product,
        REORDERED_SUM: _reordered_sum,
    }
