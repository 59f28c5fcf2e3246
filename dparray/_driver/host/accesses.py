"""Find accesses of one work-item that LLVM might move across each other.

In a loop whose iterations are marked as unordered, LLVM joins strided loads, or strided stores, of
one iteration. It does not check whether another access between them uses the same memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dparray._driver.host.analysis import Function
from dparray._driver.host.reading import Block, Instruction, size_of

_POINTER = re.compile(r"(?:load|store) (?:volatile )?(.+?)(?: \S+)?, ptr (%[^\s,]+)")
_ADDRESS = re.compile(r"getelementptr (?:inbounds |nuw |nusw )*(.+?), ptr (\S+), i\d+ (\S+)")
_SUM = re.compile(r"(?:add|sub|or disjoint) (?:nuw |nsw )*i\d+ (\S+), (\S+)")


class Access(NamedTuple):
    """A load or store.

    Attributes:
        is_store: whether it is a store.
        base: the object, or an address that is computed in another way than by an index.
        indices: the variable parts of the address.
        offset: the bytes that are added to these.
        is_dense: whether neighboring work-items access neighboring elements, or the same one.
    """

    is_store: bool
    base: str
    indices: tuple[str, ...]
    offset: int
    is_dense: bool


def may_be_moved(function: Function, blocks: Sequence[Block]) -> bool:
    """Return whether LLVM might move an access of a loop's body across one to the same memory."""
    each_access = [_access(function, one) for block in blocks for one in block.body]
    accesses = [each for each in each_access if each is not None]
    for at, first in enumerate(accesses):
        overlaps, offsets = False, set[int]()
        for each in [] if first.is_dense else accesses[at + 1 :]:
            if each[:3] == first[:3] and (
                overlaps or not offsets.isdisjoint((first.offset, each.offset))
            ):
                return True
            if each[1:3] == first[1:3]:
                offsets |= {each.offset} if each.is_store or first.is_store else set()
            elif each.is_store or first.is_store:
                objects = {first.base, each.base}
                is_private = any(_is(function, base, "alloca") for base in objects)
                overlaps = overlaps or len(objects) == 1 or not is_private
    return False


def _is(function: Function, name: str, opcode: str) -> bool:
    return name in function.defs and function.defs[name][1].opcode == opcode


def _access(function: Function, one: Instruction) -> Access | None:
    pointer = _POINTER.match(one.text)
    if pointer is None:
        return None
    kind, base = pointer.groups()
    indices, offset, stride = list[str](), 0, 0
    while _is(function, base, "getelementptr"):
        address = _ADDRESS.fullmatch(function.defs[base][1].text)
        if address is None:
            break
        element, base, index = address.groups()
        while sum_ := _SUM.fullmatch(_text(function, index)):
            if not sum_[2].lstrip("-").isdigit():
                break
            index = sum_[1]
            sign = -1 if "sub" in sum_[0] else 1
            offset += sign * int(sum_[2]) * size_of(element)
        if index.startswith("%"):
            indices.append(f"{element} {index}")
            stride += _stride(function, index) * (1 if element == kind else 2)
        else:
            offset += int(index) * size_of(element)
    is_private = _is(function, base, "alloca") and base not in function.interleaved
    is_dense = base in function.interleaved or (stride < 2 and not is_private)
    return Access(one.opcode == "store", base, tuple(sorted(indices)), offset, is_dense)


def _text(function: Function, value: str) -> str:
    return function.defs[value][1].text if value in function.defs else ""


def _stride(function: Function, value: str) -> int:
    """Return how much an integer differs between neighboring work-items, 2 for more than 1."""
    if value in (f"%dp.{code}{function.ndim - 1}" for code in "gl"):
        return 1
    if value not in function.divergent:
        return 0
    if sum_ := _SUM.fullmatch(_text(function, value)):
        return _stride(function, sum_[1]) + _stride(function, sum_[2])
    return 2
