"""Slots: placeholders for arrays and scalars in an expression that is being scheduled."""

from __future__ import annotations

from typing import Any, NamedTuple

from dparray._layout import Layout


class SlotBlock:
    """A placeholder for the memory of a slot, in the layouts of a scheduled expression.

    Attributes:
        slot: the slot's number.
        memory: the placeholder itself, or ``None`` for positions, which have no memory.
        is_overwritten: whether the expression is written to the same memory.
    """

    __slots__ = ("is_overwritten", "memory", "readers", "slot")

    queue = None
    segment = None
    usm_type = ""
    nbytes = pointer = 0
    host_bytes = None

    def __init__(self, slot: int, is_positions: bool = False, is_overwritten: bool = False) -> None:
        self.slot = slot
        self.memory = None if is_positions else self
        self.readers: Any = None
        self.is_overwritten = is_overwritten


def slot_of(layout: Layout) -> int:
    """Return the slot of a layout."""
    block = layout.block
    assert type(block) is SlotBlock
    return block.slot


def is_overwritten(layout: Layout) -> bool:
    """Return whether a layout overlaps the memory that the expression is written to."""
    return type(layout.block) is SlotBlock and layout.block.is_overwritten


class ScalarSlot(NamedTuple):
    """A placeholder for the value of a scalar."""

    number: int
