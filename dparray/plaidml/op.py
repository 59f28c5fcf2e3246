"""Operations on values, under PlaidML's names and with its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as _product
from typing import Any

from dparray.plaidml.devices import DType
from dparray.plaidml.tile import LogicError, Shape, Value, binary_op, unary_op, value_of, written
from dparray.plaidml.windowed import (
    AutoPadding,
    ConvolutionDataFormat,
    average_pool,
    convolution,
    convolution_transpose,
    image_patches,
    max_pool,
)

__all__ = ["AutoPadding", "ConvolutionDataFormat", "abs", "argmax", "average_pool"]
__all__ += ["binary_crossentropy", "cast", "ceiling", "clip", "clip_max", "clip_min"]
__all__ += ["concatenate", "convolution", "convolution_transpose", "cos", "cumulative_sum", "dot"]
__all__ += ["elu", "equal", "equal_argmax", "exp", "expand_dims", "flatten", "floor", "gather"]
__all__ += ["gemm", "hard_sigmoid", "hardmax", "identity", "image_patches", "log", "log_softmax"]
__all__ += ["matmul", "max_pool", "max_reduce", "maximum", "mean", "min_reduce", "minimum"]
__all__ += ["not_equal", "pow", "prod", "relu", "reshape", "sigmoid", "sin", "slice_tensor"]
__all__ += ["softmax", "sqrt", "square", "squeeze", "summation", "tanh", "transpose", "unsqueeze"]
__all__ += ["variance"]


# Element-wise.


def _unary(name: str, text: str, summary: str) -> Callable[[Any], Value]:
    def function(data: Any) -> Value:
        return unary_op(data, text)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


abs = _unary("abs", "abs(I)", "Return the absolute value.")
ceiling = _unary("ceiling", "ceil(I)", "Return the smallest integer that is not less.")
floor = _unary("floor", "floor(I)", "Return the largest integer that is not greater.")
cos = _unary("cos", "cos(I)", "Return the cosine.")
sin = _unary("sin", "sin(I)", "Return the sine.")
exp = _unary("exp", "exp(I)", "Return the exponential function.")
log = _unary("log", "log(I)", "Return the natural logarithm.")
tanh = _unary("tanh", "tanh(I)", "Return the hyperbolic tangent.")
sigmoid = _unary("sigmoid", "sigmoid(I)", "Return the logistic function.")


def sqrt(x: Any) -> Value:
    """Return the square root."""
    return unary_op(x, "sqrt(I)")


def square(x: Any) -> Value:
    """Return the square."""
    return unary_op(x, "I * I")


def identity(x: Any) -> Value:
    """Return the values."""
    return unary_op(x, "I")


def hard_sigmoid(x: Any, slope: float) -> Value:
    """Return ``slope * x + 0.5``, limited to 0 and 1."""
    return clip(Value.from_python_value(x) * slope + 0.5, 0.0, 1.0)


def relu(x: Any, alpha: Any = None, max_value: Any = None) -> Value:
    """Return the value where it is positive, else 0, or ``alpha`` times the value."""
    found = unary_op(x, "relu(I)") if alpha is None else binary_op(x, alpha, "L < 0 ? R * L : L")
    return found if max_value is None else clip_max(found, max_value)


def elu(x: Any, alpha: float = 1.0) -> Value:
    """Return the value where it is positive, else ``alpha * (exp(x) - 1)``."""
    return binary_op(x, float(alpha), "L < 0 ? R * exp(L) - R : L")


def cast(x: Any, dtype: DType) -> Value:
    """Convert to another type."""
    value = Value.from_python_value(x)
    if value.shape.dtype == dtype:
        return value
    kind = {1: "as_int", 2: "as_uint", 3: "as_float"}.get(dtype >> 4)
    if kind is None:
        return not_equal(value, 0)
    return value_of(
        f"function (I) -> (O) {{ O = {kind}(I, {8 << (dtype & 3)}); }}",
        [("I", value)],
        Shape(dtype, value.shape.dims),
        "cast",
    )


def equal(left: Any, right: Any) -> Value:
    """Return whether elements are equal; ``==`` of values is identity."""
    return binary_op(left, right, "L == R", DType.BOOLEAN)


def not_equal(left: Any, right: Any) -> Value:
    """Return whether elements differ."""
    return binary_op(left, right, "L != R", DType.BOOLEAN)


def maximum(x: Any, y: Any) -> Value:
    """Return the larger of two elements."""
    return binary_op(x, y, "max(L, R)")


def minimum(x: Any, y: Any) -> Value:
    """Return the smaller of two elements."""
    return binary_op(x, y, "min(L, R)")


def pow(x: Any, p: Any) -> Value:
    """Raise to a power."""
    return binary_op(x, p, "pow(L, R)")


def clip(value: Any, min_val: Any, max_val: Any) -> Value:
    """Limit to a range; ``None`` omits a limit."""
    found = Value.from_python_value(value)
    found = found if min_val is None else clip_min(found, min_val)
    return found if max_val is None else clip_max(found, max_val)


def clip_min(value: Any, min_val: Any) -> Value:
    """Limit to at least a number."""
    return maximum(value, min_val)


def clip_max(value: Any, max_val: Any) -> Value:
    """Limit to at most a number."""
    return minimum(value, max_val)


def binary_crossentropy(
    target: Any, output: Any, epsilon: float, from_logits: bool = False
) -> Value:
    """Return the cross-entropy of probabilities, or of logits, with targets from 0 to 1."""
    given = sigmoid(output) if from_logits else output
    limited = clip(given, float(epsilon), 1.0 - epsilon)
    return binary_op(target, limited, "-L * log(R) - (1 - L) * log(1 - R)")


# Reductions.


def summation(value: Any, axes: Any = None, keepdims: bool = False, floatx: Any = None) -> Value:
    """Return the sum over axes, all if ``None``; Booleans are counted in ``floatx``."""
    return _reduced(value, axes, keepdims, "+", floatx)


def prod(value: Any, axes: Any = None, keepdims: bool = False, floatx: Any = None) -> Value:
    """Return the product over axes, all if ``None``."""
    return _reduced(value, axes, keepdims, "*", floatx)


def max_reduce(x: Any, axes: Any = None, keepdims: bool = False) -> Value:
    """Return the maximum over axes, all if ``None``."""
    return _reduced(x, axes, keepdims, ">")


def min_reduce(x: Any, axes: Any = None, keepdims: bool = False) -> Value:
    """Return the minimum over axes, all if ``None``."""
    return _reduced(x, axes, keepdims, "<")


def mean(x: Any, axes: Any = None, keepdims: bool = False, floatx: Any = None) -> Value:
    """Return the mean over axes, all if ``None``."""
    value = _numbers(Value.from_python_value(x), floatx)
    return _reduced(value, axes, keepdims, "+", divides=True)


def variance(x: Any, axes: Any = None, keepdims: bool = False, floatx: Any = None) -> Value:
    """Return the mean of the squared distances from the mean."""
    value = _numbers(Value.from_python_value(x), floatx)
    return mean(square(value - mean(value, axes, True)), axes, keepdims)


def argmax(x: Any, axis: int = -1) -> Value:
    """Return the first position of the maximum along an axis, which is removed."""
    (at,) = _axes(x, axis)
    names, indices = _names(x), _indices(x)
    kept, item = _without(indices, [at]), ", ".join(indices)
    head = written(kept, _without(names, [at]))
    return value_of(
        # A comparison gives 0 for other elements, so the maximum of the distance from the end finds
        # the first position.
        f"function (I[{', '.join(names)}]) -> (O) {{ M[{head}] = >(I[{item}]); "
        f"P = {names[at]} - index(I, {at}); "
        f"F[{head}] = >(I[{item}] == M[{', '.join(kept)}] ? P[{item}]); "
        f"O = as_int({names[at]} - F, 32); }}",
        [("I", x)],
        Shape(DType.INT32, tuple(_without(x.shape.dims, [at]))),
        "argmax",
    )


def equal_argmax(lhs: Any, rhs: Any) -> Value:
    """Return whether two values have their maxima at the same positions of the last axis."""
    return equal(argmax(lhs), argmax(rhs))


def softmax(x: Any, axis: int | None = None) -> Value:
    """Divide exponentials by their sum over the axes from ``axis`` on, from 1 if
    ``None``.
    """
    over = list(range(x.shape.ndims))[1 if axis is None else axis :]
    powers = exp(x - max_reduce(x, over, True))
    return powers / summation(powers, over, True)


def log_softmax(x: Any, axis: int | None = None) -> Value:
    """Return the logarithm of :func:`softmax`."""
    over = list(range(x.shape.ndims))[1 if axis is None else axis :]
    moved = x - max_reduce(x, over, True)
    return moved - log(summation(exp(moved), over, True))


def hardmax(x: Any, axis: int | None = None) -> Value:
    """Return 1 where an element is the maximum over the axes from ``axis`` on, from 1 if ``None``,
    and 0 elsewhere.
    """
    over = list(range(x.shape.ndims))[1 if axis is None else axis :]
    return cast(binary_op(x, max_reduce(x, over, True), "L == R"), x.shape.dtype)


def cumulative_sum(x: Any, axis: int = 0) -> Value:
    """Return the sums up to each element along an axis."""
    (at,) = _axes(x, axis)
    names, indices = _names(x), _indices(x)
    read = [f"{index} - k" if n == at else index for n, index in enumerate(indices)]
    return value_of(
        f"function (I[{', '.join(names)}]) -> (O) {{ O[{', '.join(indices)} : {', '.join(names)}] "
        f"= +(I[{', '.join(read)}]), k < {names[at]}; }}",
        [("I", x)],
        x.shape,
        "cumulative_sum",
    )


# Products.


def dot(x: Any, y: Any) -> Value:
    """Return the products over the last axis of ``x`` and the last but one of ``y``."""
    return _dot(x, y, 0)


def matmul(a: Any, b: Any) -> Value:
    """Return matrix products; leading axes are those of both operands."""
    if a.shape.ndims != b.shape.ndims or a.shape.ndims < 2:
        raise LogicError(
            f"matmul: operands of {a.shape.ndims} and {b.shape.ndims} dimensions; give both the "
            "same number, at least 2: reshape or unsqueeze one"
        )
    return _dot(a, b, a.shape.ndims - 2)


def gemm(
    a: Any,
    b: Any,
    c: Any,
    alpha: float | None = None,
    beta: float | None = None,
    broadcast: bool = True,
    transA: bool = False,  # PlaidML's spelling
    transB: bool = False,
) -> Value:
    """Return ``alpha * a @ b + beta * c`` for matrices."""
    product = dot(transpose(a) if transA else a, transpose(b) if transB else b)
    if alpha is not None:
        product = product * float(alpha)
    return product + (c if beta is None else Value.from_python_value(c) * float(beta))


def _dot(x: Value, y: Value, batch: int) -> Value:
    left = [f"i{axis}" for axis in range(x.shape.ndims - 1)]
    sizes = [f"A{axis}" for axis in range(x.shape.ndims)]
    if y.shape.ndims == 1:
        right, other = ["z"], ["B0"]
        kept: list[int] = []
    else:
        right = [f"j{axis}" for axis in range(y.shape.ndims)]
        right[-2] = "z"
        right[:batch] = left[:batch]
        other = [f"B{axis}" for axis in range(y.shape.ndims)]
        kept = [*range(batch, y.shape.ndims - 2), y.shape.ndims - 1]
    out = [*left, *(right[axis] for axis in kept)]
    ends = [*sizes[:-1], *(other[axis] for axis in kept)]
    dims = (*x.shape.dims[:-1], *(y.shape.dims[axis] for axis in kept))
    head = written(out, ends)
    kind = binary_op(x, 0, "L + R").shape.dtype if x.shape.dtype != y.shape.dtype else x.shape.dtype
    return value_of(
        f"function (A[{', '.join(sizes)}], B[{', '.join(other)}]) -> (O) {{ "
        f"O[{head}] = +(A[{', '.join([*left, 'z'])}] * B[{', '.join(right)}]); }}",
        [("A", x), ("B", y)],
        Shape(kind, dims),
        "dot",
    )


# Shapes.


def reshape(x: Any, dims: Sequence[Any]) -> Value:
    """Change the shape: -1 is the remaining size, 0 or ``None`` keeps the size in that position."""
    own = x.shape.dims
    wanted = [own[n] if size in (0, None) else size for n, size in enumerate(dims)]
    if -1 in wanted:
        if wanted.count(-1) > 1:
            raise LogicError(f"reshape: {tuple(dims)} has more than one -1")
        _check_known("reshape", x)
        rest = _product([size for size in wanted if size != -1])
        wanted[wanted.index(-1)] = _product(own) // rest if rest else 0
    if any(not isinstance(size, int) for size in wanted):
        raise LogicError(f"reshape: {tuple(wanted)} has sizes that are not known; give integers")
    if None not in own and _product(own) != _product(wanted):
        raise LogicError(
            f"reshape: {tuple(own)} has {_product(own)} elements, {tuple(wanted)} has "
            f"{_product(wanted)}"
        )
    return value_of(
        f"function (I) -> (O) {{ O = reshape(I, {', '.join(map(str, wanted))}); }}",
        [("I", x)],
        Shape(x.shape.dtype, tuple(wanted)),
        "reshape",
    )


def flatten(data: Any) -> Value:
    """Return a matrix: the first axis, and the other axes merged."""
    _check_known("flatten", data)
    first, *others = data.shape.dims
    return reshape(data, (first, _product(others)))


def squeeze(x: Any, axes: Any) -> Value:
    """Remove axes of size 1."""
    return reshape(x, _without(x.shape.dims, _axes(x, axes)))


def unsqueeze(x: Any, axes: Sequence[int]) -> Value:
    """Insert axes of size 1 at these positions of the result."""
    dims = iter(x.shape.dims)
    count = x.shape.ndims + len(axes)
    return reshape(x, [1 if axis in axes else next(dims) for axis in range(count)])


def expand_dims(x: Any, axis: int = -1) -> Value:
    """Insert an axis of size 1."""
    return unsqueeze(x, [axis % (x.shape.ndims + 1)])


def transpose(x: Any, pattern: Sequence[int] | None = None) -> Value:
    """Permute the axes, reversed if ``pattern`` is ``None``."""
    order = list(pattern) if pattern is not None else list(range(x.shape.ndims))[::-1]
    names, indices = _names(x), _indices(x)
    out = written([indices[n] for n in order], [names[n] for n in order])
    return value_of(
        f"function (I[{', '.join(names)}]) -> (O) {{ O[{out}] = =(I[{', '.join(indices)}]); }}",
        [("I", x)],
        Shape(x.shape.dtype, tuple(x.shape.dims[n] for n in order)),
        "transpose",
    )


def slice_tensor(data: Any, axes: Any = None, ends: Any = None, starts: Any = None) -> Value:
    """Return the elements from ``starts`` to ``ends`` along axes."""
    if not ends or not starts or len(starts) != len(ends):
        raise LogicError("slice_tensor: give starts and ends, one of each for each axis")
    key = [slice(None)] * data.shape.ndims
    for axis, start, end in zip(axes or range(len(starts)), starts, ends, strict=True):
        key[axis] = slice(start, end)
    found: Value = data[tuple(key)]
    return found


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Value:
    """Concatenate values along an axis whose sizes are known."""
    (at,) = _axes(tensors[0], axis)
    sizes = [tensor.shape.dims[at] for tensor in tensors]
    if any(not isinstance(size, int) for size in sizes):
        raise LogicError(f"concatenate: sizes {sizes} along axis {axis}; give known sizes")
    inputs, lines, before = [], [], 0
    indices = ", ".join(_indices(tensors[0]))
    for number, (each, size) in enumerate(zip(tensors, sizes, strict=True)):
        names = [
            f"T{number}N{axis}" if axis == at else f"N{axis}" for axis in range(each.shape.ndims)
        ]
        ends = [str(sum(sizes)) if n == at else name for n, name in enumerate(names)]
        out = [
            f"{index} + {before}" if n == at else index for n, index in enumerate(_indices(each))
        ]
        inputs.append(f"T{number}[{', '.join(names)}]")
        lines.append(f"P{number}[{', '.join(out)} : {', '.join(ends)}] = =(T{number}[{indices}]);")
        before += size
    total = " + ".join(f"P{number}" for number in range(len(tensors)))
    dims = list(tensors[0].shape.dims)
    dims[at] = before
    return value_of(
        f"function ({', '.join(inputs)}) -> (O) {{ {' '.join(lines)} O = {total}; }}",
        [(f"T{number}", tensor) for number, tensor in enumerate(tensors)],
        Shape(tensors[0].shape.dtype, tuple(dims)),
        "concatenate",
    )


def gather(value: Any, indices: Any) -> Value:
    """Return the rows of ``value`` at positions."""
    return value_of(
        "function (V, I) -> (O) { O = gather(V, I); }",
        [("V", value), ("I", indices)],
        Shape(value.shape.dtype, (*indices.shape.dims, *value.shape.dims[1:])),
        "gather",
    )


# Texts.


def _names(value: Value) -> list[str]:
    return [f"N{axis}" for axis in range(value.shape.ndims)]


def _indices(value: Value) -> list[str]:
    return [f"i{axis}" for axis in range(value.shape.ndims)]


def _without(values: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    return [value for axis, value in enumerate(values) if axis not in axes]


def _axes(value: Value, axes: Any) -> list[int]:
    """Return axes as positions; all if ``None``."""
    count = value.shape.ndims
    given = range(count) if axes is None else [axes] if isinstance(axes, int) else axes
    for axis in given:
        if not -count <= axis < count:
            raise LogicError(f"axis {axis} of a value of {count} dimensions")
    return sorted({axis % count for axis in given})


def _check_known(name: str, value: Value) -> None:
    if any(not isinstance(size, int) for size in value.shape.dims):
        raise LogicError(f"{name}: a value of {value.shape.dims}; all sizes must be known")


def _numbers(value: Value, floatx: DType | None) -> Value:
    is_boolean = value.shape.dtype == DType.BOOLEAN
    return cast(value, floatx or DType.FLOAT32) if is_boolean else value


def _reduced(
    x: Any, axes: Any, keepdims: bool, sign: str, floatx: Any = None, divides: bool = False
) -> Value:
    value = Value.from_python_value(x)
    over = _axes(value, axes) if value.shape.ndims else []
    if not over:
        return value
    if sign in "+*":
        value = _numbers(value, floatx)
    names, indices, dims = _names(value), _indices(value), list(value.shape.dims)
    if keepdims:
        out = [f"k{n}" if n in over else index for n, index in enumerate(indices)]
        ends = ["1" if n in over else name for n, name in enumerate(names)]
        dims = [1 if n in over else size for n, size in enumerate(dims)]
    else:
        out, ends, dims = (_without(each, over) for each in (indices, names, dims))
    head = written(out, ends)
    line = f"S[{head}] = {sign}(I[{', '.join(indices)}]);"
    last = f"O = S / ({' * '.join(names[n] for n in over)});" if divides else "O = S;"
    kind = value.shape.dtype
    if divides and kind >> 4 != 3:
        kind = binary_op(value, 1.0, "L / R").shape.dtype
    return value_of(
        f"function (I[{', '.join(names)}]) -> (O) {{ {line} {last} }}",
        [("I", value)],
        Shape(kind, tuple(dims)),
        "reduction",
    )
