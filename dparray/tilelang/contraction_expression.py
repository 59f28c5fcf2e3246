"""A contraction as an expression of one element, which generated kernels compute.

The source is that of its own kernel without the tile: the code that finds the output's index and
stores the result is omitted, and operands are indexed by one number, with strides as arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dparray.tilelang import kernel_values as of
from dparray.tilelang.contraction import Contracted
from dparray.tilelang.kernel_text import Writer
from dparray.tilelang.values import BOOL, DType

#: Names that the writer uses: local variables, indices of the output, numbers, arrays.
_LOCAL = re.compile(r"\b(?:(?:[wrv]\d+)|(?:x\d+_\d+)|sum0|seen)\b")
_INDEX = re.compile(r"\bi(\d+)\b")
_NUMBER = re.compile(r"\bn(\d+)\b")
_ARRAY = re.compile(r"\ba(\d+)\[")


class Expression(NamedTuple):
    """The expression of an element.

    Attributes:
        text: the expression of the operands ``{0}``, ...: the arrays, the default if there is one,
            the indices along ``axes`` of the output, then the numbers.
        axes: the axes whose index it needs.
        numbers: the values of the numbers.
    """

    text: str
    axes: tuple[int, ...]
    numbers: tuple[int, ...]


def expression_of(
    contracted: Contracted, dtypes: Sequence[DType], strides: Sequence[Sequence[int]]
) -> Expression:
    """Return the expression of a contraction with a valid set.

    Args:
        contracted: the contraction.
        dtypes: the dtypes of the operands, and last of the default if there is one.
        strides: the strides of each operand, in elements.
    """
    return _Expression(contracted, dtypes, strides).expression()


class _Expression(Writer):
    def __init__(
        self,
        contracted: Contracted,
        dtypes: Sequence[DType],
        strides: Sequence[Sequence[int]],
    ) -> None:
        super().__init__(contracted, dtypes, strides, is_alone=False)
        self.depth = 0

    def expression(self) -> Expression:
        self.body_of_element()
        dtype = self.contracted.dtype
        arrays = len(self.contracted.space.operands)
        result = "sum0"
        if self.has_flag:
            other = f"{of.wide(dtype)}(0)"
            if self.contracted.has_default:
                other = f"{of.wide(dtype)}({{{arrays}}})"
            result = f"(sum0 if seen else {other})"
        lines = [*self.lines, f"{result} != 0" if dtype == BOOL else result]
        text = "\n".join(lines)
        axes = tuple(sorted({int(each) for each in _INDEX.findall(text)}))
        first = arrays + self.contracted.has_default
        text = _LOCAL.sub(lambda match: f"{{t}}{match[0]}", text)
        text = _ARRAY.sub(lambda match: f"{{{match[1]}:array}}[", text)
        text = _NUMBER.sub(lambda match: f"{{{first + len(axes) + int(match[1])}}}", text)
        text = _INDEX.sub(lambda match: f"{{{first + axes.index(int(match[1]))}}}", text)
        return Expression(text, axes, tuple(self.numbers))
