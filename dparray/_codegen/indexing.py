"""Index expressions in kernel source: collapsed dimensions, strides and their letter classes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from dparray._layout import (
    Layout,
    broadcast_strides,
    contiguous_strides,
    is_contiguous,
    order_of_axes,
)

MAX_NARROW = 1 << 31  # the largest number of elements that signed 32-bit indices can count


def element_strides(layouts: Sequence[Layout], shape: tuple[int, ...]) -> list[list[int]]:
    """Return the strides of each layout, broadcast to ``shape``, in elements."""
    walked = []
    for layout in layouts:
        itemsize = layout.dtype.itemsize
        strides = broadcast_strides("expression", layout.shape, layout.strides, shape)
        walked.append([stride // itemsize for stride in strides])
    return walked


def in_memory_order(
    shape: tuple[int, ...], layouts: Sequence[Layout], targets: Sequence[Layout]
) -> tuple[tuple[int, ...], Sequence[Layout]]:
    """Return a shape and layouts with the axes in the memory order of the outputs.

    Contiguous columns are then traversed linearly, as rows are.
    """
    if len(shape) < 2:
        return shape, layouts
    axes = order_of_axes(shape, *[layout.strides for layout in targets if layout.shape == shape])
    if axes is None:
        return shape, layouts
    turned = []
    for layout in layouts:
        strides = broadcast_strides("expression", layout.shape, layout.strides, shape)
        turned.append(
            layout._replace(
                shape=tuple([shape[axis] for axis in axes]),
                strides=tuple([strides[axis] for axis in axes]),
            )
        )
    return turned[0].shape, turned


def merge_axes(
    axes: Iterable[int], shape: tuple[int, ...], walked: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Return lengths and strides with adjacent axes collapsed where every layout allows it."""
    extents: list[int] = []
    columns: list[list[int]] = [[] for _ in walked]
    for axis in axes:
        extent = shape[axis]
        if extent == 1:
            continue
        if extents and all(
            column[-1] == strides[axis] * extent
            for column, strides in zip(columns, walked, strict=True)
        ):
            extents[-1] *= extent
            for column, strides in zip(columns, walked, strict=True):
                column[-1] = strides[axis]
        else:
            extents.append(extent)
            for column, strides in zip(columns, walked, strict=True):
                column.append(strides[axis])
    if not extents:
        return [1], [[0] for _ in walked]
    return extents, columns


# Strides of the innermost dimension that are constants of a kernel, and their letters. Devices then
# load and store vectors; if the stride is an argument they access single elements (measured: a
# fifth of the speed for a stride of 2).
_CONSTANT_STRIDES = {-1: "m", 2: "2", 3: "3", 4: "4"}

_STRIDES_OF_LETTERS = {letter: stride for stride, letter in _CONSTANT_STRIDES.items()}


def letters_of(column: Sequence[int], constant: int = 0) -> str:
    """Return the index class of a column of strides; ``"u"`` stands for a known constant."""
    known = {constant: "u"} | {0: "0", 1: "1"}
    outer = [known.get(stride, "s") for stride in column[:-1]]
    inner = [(_CONSTANT_STRIDES | known).get(stride, "s") for stride in column[-1:]]
    return "".join(outer + inner)


def stride_arguments(column: Sequence[int], constant: int = 0) -> tuple[int, ...]:
    """Return the strides that are kernel arguments, which :func:`letters_of` calls ``"s"``."""
    letters = letters_of(column, constant)
    return tuple(stride for stride, letter in zip(column, letters, strict=True) if letter == "s")


def jumping(column: Sequence[int], jumps: Sequence[tuple[int, int]]) -> tuple[str, tuple[int, ...]]:
    """Return the index class and the arguments of an array that jumps along some dimensions.

    Args:
        column: its strides, in elements.
        jumps: for each dimension, an index, and what is added to the array's index from there on.
    """
    letters, numbers = "", list[int]()
    for letter, stride, (cut, jump) in zip(letters_of(column), column, jumps, strict=True):
        letters += "j" if jump else letter
        numbers += [stride, cut, jump] if jump else [stride] if letter == "s" else []
    return letters, tuple(numbers)


def bounded(
    column: Sequence[int], bounds: Sequence[tuple[int, int] | None]
) -> tuple[str, tuple[int, ...]]:
    """Return the index class and the arguments of an array that is zero outside of bounds.

    Args:
        column: its strides, in elements.
        bounds: for each dimension its first index and its length, or ``None`` if it is whole.
    """
    letters, numbers = "", list[int]()
    for letter, stride, bound in zip(letters_of(column), column, bounds, strict=True):
        if bound is None:
            letters += letter
            numbers += [stride] if letter == "s" else []
        else:
            letters += "q" if letter == "1" else "p"
            numbers += [*[stride] * (letter != "1"), *bound]
    return letters, tuple(numbers)


#: The names of the arguments of a dimension, by its letter.
_ENDS = {
    "s": ("",),
    "j": ("", "_cut", "_jump"),
    "p": ("", "_cut", "_count"),
    "q": ("_cut", "_count"),
}


def stride_names(letters: str, prefix: str) -> list[str]:
    """Return the names of the arguments that an index class needs."""
    named = [letter for letter in letters if letter in _ENDS]
    return [f"{prefix}{number}{end}" for number, each in enumerate(named) for end in _ENDS[each]]


def bounds_test(letters: str, index: str, stride: str) -> str:
    """Return the condition that an element is inside of the bounds of its array; empty if none.

    Vectors of 32 bits are compared twice as fast as those of 64; negative indices become large.
    """
    terms = []
    for dimension, letter in enumerate(letters):
        if letter in "pq":
            factor = _argument(letters, dimension, stride)
            terms.append(f"uint32({index}{dimension} - {factor}_cut) < uint32({factor}_count)")
    return " and ".join(terms)


def _argument(letters: str, dimension: int, stride: str) -> str:
    """Return the name of the arguments of a dimension, without their ends."""
    return f"{stride}{sum(letter in _ENDS for letter in letters[:dimension])}"


def fits_32_bits(extents: Sequence[int], columns: Iterable[Sequence[int]], work_items: int) -> bool:
    """Return whether signed 32-bit integers can hold the indices of elements and work-items."""
    sizes = [math.prod(extents), work_items]
    sizes += [
        sum((extent - 1) * abs(stride) for extent, stride in zip(extents, column, strict=True))
        for column in columns
    ]
    return max(sizes) < MAX_NARROW


def index_terms(
    letters: str, index: str, stride: str, constant: int = 0, is_narrow: bool = False
) -> str:
    """Return the sum of products that is an element's index; empty if all letters are ``"0"``.

    Args:
        letters: the result of :func:`letters_of`, with ``constant``, of :func:`jumping` or of
            :func:`bounded`.
        stride: the prefix of the names of stride arguments.
        is_narrow: whether products are computed in 32 bits.
    """
    terms, products = [], []
    for dimension, letter in enumerate(letters):
        name = f"{index}{dimension}"
        factor = _argument(letters, dimension, stride)
        if letter in "pq":
            name = f"({name} - {factor}_cut)"
        if letter in "1q":
            terms.append(name)
        elif letter in "sjp":
            products.append((name, factor))
            if letter == "j":
                is_after = f"int64({name}) >= int64({factor}_cut)"
                terms.append(f"({factor}_jump if {is_after} else uint64(0))")
        elif letter != "0":
            known = constant if letter == "u" else _STRIDES_OF_LETTERS[letter]
            products.append((name, f"uint64({known % 2**64})"))
        if products and not is_narrow:
            terms.append(" * ".join(products.pop()))
    text = " + ".join(terms)
    for name, factor in products:
        text = f"multiply_add_32({name}, {factor}, {text or 'uint64(0)'})"
    return text


def product(first: str, second: str, is_narrow: bool) -> str:
    """Return the text of the product of two indices, computed in 32 bits if ``is_narrow``."""
    return f"multiply_add_32({first}, {second}, uint64(0))" if is_narrow else f"{first} * {second}"


_QUOTIENT = re.compile(r"\b([a-z]\w*) // ([a-z]\w*)\b(?!\()")


def divided(line: str, is_narrow: bool) -> str:
    """Return a line with the quotients of indices in it computed in 32 bits if ``is_narrow``.

    Intel's GPUs have no division of 64 bits: their compiler writes a loop over bits.
    """
    return _QUOTIENT.sub(r"uint64(uint32(\1)) // uint64(uint32(\2))", line) if is_narrow else line


def division(
    dividend: str, divisor: str, quotient: str, remainder: str, is_narrow: bool
) -> list[str]:
    """Return the lines that divide an index."""
    return [
        divided(f"{quotient} = {dividend} // {divisor}", is_narrow),
        f"{remainder} = {dividend} - {product(quotient, divisor, is_narrow)}",
    ]


def collapse(
    layouts: Sequence[Layout], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[str]]:
    """Return the fewest dimensions that traverse all layouts, with their strides in elements.

    Returns:
        The lengths of the collapsed dimensions, and the stride arguments and class of each layout.
    """
    if all(
        layout.shape == shape and is_contiguous(shape, layout.strides, layout.dtype.itemsize)
        for layout in layouts
    ):
        return (math.prod(shape),), [()] * len(layouts), ["c"] * len(layouts)
    extents, columns = merge_axes(range(len(shape)), shape, element_strides(layouts, shape))
    expected = list(contiguous_strides(tuple(extents), 1))
    arguments = [() if each == expected else stride_arguments(each) for each in columns]
    classes = ["c" if each == expected else letters_of(each) for each in columns]
    return tuple(extents), arguments, classes
