"""PlaidML's convolutions and pooling; the sizes of values must be known at the call."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

from dparray.plaidml.tile import LogicError, Shape, Value, binary_op, value_of


class AutoPadding(Enum):
    """The padding of borders: explicit, none, or such that stride 1 keeps the size."""

    EXPLICIT = 1
    VALID = 2
    SAME_UPPER = 3
    SAME_LOWER = 4


class ConvolutionDataFormat(Enum):
    """The position of the channels: the second or the last dimension."""

    CHANNELS_FIRST = 1
    CHANNELS_LAST = 2


class _Window(NamedTuple):
    """A window that moves along one axis: the size of the result, and the index in the input.

    ``place`` is a text of ``x0`` (where the result is) and ``k0`` (inside of the window), for the
    number of the axis.
    """

    size: int
    place: str


def _window(
    axis: int,
    size: int,
    length: int,
    step: int,
    padding: AutoPadding,
    pads: Sequence[int] | None,
    rate: int = 1,
) -> _Window:
    spread = rate * (length - 1) + 1
    if pads is None and padding in (AutoPadding.SAME_UPPER, AutoPadding.SAME_LOWER):
        count = -(-size // step)
        total = max(0, (count - 1) * step + spread - size)
        before = (total + (padding == AutoPadding.SAME_LOWER)) // 2
    else:
        before, after = pads or (0, 0)
        count = (size + before + after - spread) // step + 1
    if count < 1:
        raise LogicError(f"a window of {spread} elements does not fit the axis of {size} elements")
    return _Window(count, f"{step} * x{axis} + {rate} * k{axis} - {before}")


def _list(name: str, given: Any, count: int) -> list[int]:
    """Return one positive number for each dimension, by default 1."""
    values = [1] * count if not given else list(given)
    if len(values) != count or not all(isinstance(value, int) and value > 0 for value in values):
        raise LogicError(f"{name} must be {count} positive integers, not {given!r}")
    return values


def _pairs(pads: Any, count: int) -> list[Any]:
    """Return the padding before and after each dimension, given as all before, all after."""
    if pads is None:
        return [None] * count
    values = list(pads)
    values += [0] * (count - len(values))
    if len(values) < 2 * count:
        values += values[len(values) - count : count]
    if len(values) != 2 * count or not all(isinstance(value, int) for value in values):
        raise LogicError(f"pads must be {count} or {2 * count} integers, not {pads!r}")
    return list(zip(values[:count], values[count:], strict=True))


def _space(function: str, sizes: Sequence[Any]) -> list[int]:
    if not all(isinstance(size, int) for size in sizes):
        raise LogicError(
            f"{function}: the sizes {tuple(sizes)} must be known; declare the value with "
            "Value.from_dimensions"
        )
    return list(sizes)


def _joined(first: Sequence[Any], space: Sequence[Any], channel: Any, format: Any) -> list[Any]:
    """Arrange batch, space and channels in the order of a data format."""
    is_first = format == ConvolutionDataFormat.CHANNELS_FIRST
    return [*first, channel, *space] if is_first else [*first, *space, channel]


def _text(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))


def _letters(letter: str, count: int) -> list[str]:
    return [f"{letter}{axis}" for axis in range(count)]


def _check_format(function: str, format: Any) -> None:
    if not isinstance(format, ConvolutionDataFormat):
        raise LogicError(
            f"{function}: data_format must be ConvolutionDataFormat.CHANNELS_FIRST or "
            f"CHANNELS_LAST, not {format!r}"
        )


def _split(dims: Sequence[Any], format: Any) -> tuple[Any, list[Any], Any]:
    """Split a shape into batch, space and channels."""
    if format == ConvolutionDataFormat.CHANNELS_FIRST:
        return dims[0], list(dims[2:]), dims[1]
    return dims[0], list(dims[1:-1]), dims[-1]


def convolution(
    data: Any,
    kernel: Any,
    strides: Any = None,
    padding: AutoPadding = AutoPadding.EXPLICIT,
    pads: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    data_format: ConvolutionDataFormat | None = None,
    dilation_rate: Any = None,
    channelwise: bool = False,
) -> Value:
    """Return the convolution of a batch with a kernel of shape ``(*window, in, out)``.

    With ``channelwise`` the kernel is ``(*window, in, multiples)``, and each channel of the input
    gives ``multiples`` channels. ``kernel_shape`` is taken from the kernel.
    """
    _check_format("convolution", data_format)
    if group != 1:
        raise LogicError(f"convolution: group must be 1, not {group!r}, as in PlaidML")
    count = data.shape.ndims - 2
    if kernel.shape.ndims != count + 2:
        raise LogicError(
            f"convolution: the data has {data.shape.ndims} dimensions and the kernel "
            f"{kernel.shape.ndims}; the numbers must be equal"
        )
    batch, space, _ = _split(data.shape.dims, data_format)
    lengths = _space("convolution", kernel.shape.dims[:-2])
    steps = _list("strides", strides, count)
    rates = _list("dilation_rate", dilation_rate, count)
    windows = [
        _window(axis, size, *each)
        for axis, (size, *each) in enumerate(
            zip(
                _space("convolution", space),
                *(lengths, steps, [padding] * count, _pairs(pads, count), rates),
                strict=True,
            )
        )
    ]
    result, at, inside = [each.size for each in windows], _letters("x", count), _letters("k", count)
    filters, names = kernel.shape.dims[-1], ("C", "M") if channelwise else ("CI", "CO")
    out, out_size, size = ("co", "CO", filters)
    if channelwise:
        out, out_size, size = ("M * c + m", "C * M", kernel.shape.dims[-2] * filters)
    read, used = ("c", "c, m") if channelwise else ("ci", "ci, co")
    source = _joined(["n"], [window.place for window in windows], read, data_format)
    return value_of(
        f"function (I[{_text(_joined(['N'], _letters('L', count), names[0], data_format))}], "
        f"K[{_text([*_letters('W', count), *names])}]) -> (O) {{ "
        f"O[{_text(_joined(['n'], at, out, data_format))} : "
        f"{_text(_joined(['N'], result, out_size, data_format))}] = "
        f"+(I[{_text(source)}] * K[{_text([*inside, used])}]); }}",
        [("I", data), ("K", kernel)],
        Shape(data.shape.dtype, tuple(_joined([batch], result, size, data_format))),
        "convolution",
    )


def convolution_transpose(
    x: Any,
    kernel: Any,
    output_shape: Sequence[int],
    strides: Any,
    padding: AutoPadding,
    data_format: ConvolutionDataFormat,
) -> Value:
    """Return the transpose of the convolution that maps a value of ``output_shape`` to ``x``.

    The kernel is that of the convolution: ``(*window, channels of the result, channels of x)``.
    """
    name = "convolution_transpose"
    _check_format(name, data_format)
    count = x.shape.ndims - 2
    if kernel.shape.ndims != count + 2 or len(output_shape) != count + 2:
        raise LogicError(f"{name}: the numbers of dimensions of x, kernel and output_shape differ")
    _, space, _ = _split(output_shape, data_format)
    lengths = _space(name, kernel.shape.dims[:-2])
    steps = _list("strides", strides, count)
    windows = [
        _window(axis, size, length, step, padding, None)
        for axis, (size, length, step) in enumerate(
            zip(_space(name, space), lengths, steps, strict=True)
        )
    ]
    _, given, _ = _split(x.shape.dims, data_format)
    if [window.size for window in windows] != given:
        raise LogicError(
            f"{name}: the convolution of {tuple(output_shape)} gives the space "
            f"{[window.size for window in windows]}, and x has {given}; change output_shape"
        )
    at, inside = _letters("x", count), _letters("k", count)
    read = f"X[{_text(_joined(['n'], at, 'co', data_format))}] * K[{_text([*inside, 'ci, co'])}]"
    written = _joined(["n"], [window.place for window in windows], "ci", data_format)
    return value_of(
        f"function (X[{_text(_joined(['N'], _letters('L', count), 'CO', data_format))}], "
        f"K[{_text([*_letters('W', count), 'CI', 'CO'])}]) -> (O) {{ "
        f"O[{_text(written)} : {_text(_joined(['N'], space, 'CI', data_format))}] = "
        f"+({read}); }}",
        [("X", x), ("K", kernel)],
        Shape(x.shape.dtype, tuple(output_shape)),
        name,
    )


def _pooled(
    name: str, data: Any, kernel_shape: Any, pads: Any, strides: Any, padding: AutoPadding
) -> tuple[list[int], str, str]:
    """Return the sizes of the result, its index with the condition, and the data's index."""
    count = data.shape.ndims - 2
    lengths, steps = _list("kernel_shape", kernel_shape, count), _list("strides", strides, count)
    windows = [
        _window(axis, size, length, step, padding, pair)
        for axis, (size, length, step, pair) in enumerate(
            zip(
                *(_space(name, data.shape.dims[2:]), lengths, steps, _pairs(pads, count)),
                strict=True,
            )
        )
    ]
    sizes = [window.size for window in windows]
    head = f"{_text(['n', 'c', *_letters('x', count)])} : {_text(['N', 'C', *sizes])}"
    bounds = _text([f"k{axis} < {length}" for axis, length in enumerate(lengths)])
    return sizes, head, f"{_text(['n', 'c', *(window.place for window in windows)])}]), {bounds}"


def max_pool(data: Any, padding: AutoPadding, kernel_shape: Any, pads: Any, strides: Any) -> Value:
    """Return the largest element in each window of ``(batch, channels, *space)``."""
    sizes, head, read = _pooled("max_pool", data, kernel_shape, pads, strides, padding)
    names = _text(["N", "C", *_letters("L", len(sizes))])
    return value_of(
        f"function (I[{names}]) -> (O) {{ O[{head}] = >(I[{read}; }}",
        [("I", data)],
        Shape(data.shape.dtype, (*data.shape.dims[:2], *sizes)),
        "max_pool",
    )


def average_pool(
    data: Any,
    kernel_shape: Any,
    pads: Any,
    strides: Any,
    padding: AutoPadding = AutoPadding.EXPLICIT,
) -> Value:
    """Return the mean of each window of ``(batch, channels, *space)``, without the padding."""
    sizes, head, read = _pooled("average_pool", data, kernel_shape, pads, strides, padding)
    names = _text(["N", "C", *_letters("L", len(sizes))])
    kind = data.shape.dtype
    if kind >> 4 != 3:  # not a float dtype
        kind = binary_op(data, 1.0, "L / R").shape.dtype
    return value_of(
        f"function (I[{names}]) -> (O) {{ E = I == I ? 1.0 : 1.0; S[{head}] = +(I[{read}; "
        f"T[{head}] = +(E[{read}; O = S / T; }}",
        [("I", data)],
        Shape(kind, (*data.shape.dims[:2], *sizes)),
        "average_pool",
    )


def image_patches(
    images: Any,
    ksizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int] = (1, 1, 1, 1),
    padding: AutoPadding = AutoPadding.VALID,
) -> Value:
    """Return the windows of images of shape (batch, rows, columns, channels), each as one axis.

    Sizes, strides and rates have a number for each dimension, as in TensorFlow; the first and the
    last are 1.
    """
    if images.shape.ndims != 4:
        raise LogicError(f"image_patches: images have 4 dimensions, not {images.shape.ndims}")
    lengths, steps, apart = (
        _list(name, each, 4)[1:3]
        for name, each in (("ksizes", ksizes), ("strides", strides), ("rates", rates))
    )
    batch, rows, columns, depth = images.shape.dims
    _space("image_patches", (rows, columns, depth))
    windows = [
        _window(axis, size, lengths[axis], steps[axis], padding, None, apart[axis])
        for axis, size in enumerate((rows, columns))
    ]
    sizes = [window.size for window in windows]
    length = lengths[0] * lengths[1] * depth
    return value_of(
        f"function (I[N, R, C, D]) -> (O) {{ P[n, x0, x1, k0, k1, d : N, {_text(sizes)}, "
        f"{_text(lengths)}, D] = +(I[n, {windows[0].place}, {windows[1].place}, d]); "
        f"O = reshape(P, N, {_text(sizes)}, {length}); }}",
        [("I", images)],
        Shape(images.shape.dtype, (batch, *sizes, length)),
        "image_patches",
    )
