"""Which operations become which kernel: the rules and limits, by name.

All limits are about one machine-independent trade: a launch costs tens of microseconds, compiling
a tenth of a second, and memory traffic more than arithmetic.
"""

from __future__ import annotations

from dparray._codegen import can_generate
from dparray._expr import Node

#: Up to this many elements the calling thread is faster than a launch (`dparray bench tiers`).
HOST_ELEMENTS = 8192

#: A structure met with this many elements is compiled at once.
COMPILE_ELEMENTS = 1 << 17

#: A structure met with fewer is compiled once so many elements went through the library's kernels.
COMPILE_TOTAL_ELEMENTS = 1 << 21

#: A call of the library counts as at least so many: that is what it costs more than a launch.
LEAST_CALL_ELEMENTS = 1 << 11

#: A structure met for the first time with this many elements is looked up in the disk cache.
LOAD_ELEMENTS = 1 << 13

#: A pending expression with more operations or leaves than these computes its operands first, so
#: that a loop of a million steps holds neither memory nor graph.
MOST_WEIGHT = 512
MOST_LEAVES = 24


#: A value of at least this weight that somebody holds is stored when it is computed for another,
#: since storing it costs about as much as this many additions.
STORING_WEIGHT = 8


def is_worth_storing(node: Node) -> bool:
    """Whether a value that is needed twice costs more to compute again than to store."""
    return node.weight >= STORING_WEIGHT


def is_worth_compiling(size: int, total: int) -> bool:
    """Whether to compile for ``size`` elements, ``total`` having been computed so far."""
    return size >= COMPILE_ELEMENTS or total >= COMPILE_TOTAL_ELEMENTS


def counted_elements(size: int) -> int:
    """As how many elements a call of the library counts that computes ``size``."""
    return max(size, LEAST_CALL_ELEMENTS)


def must_be_stored_first(node: Node, size: int) -> bool:
    """Whether an inner node gets memory of its own instead of being computed where it is used.

    It does where no kernel can be generated for it, and where it is smaller than the result: then
    storing it costs less than computing it anew for each element it is broadcast to.
    """
    return not can_generate(node) or node.size < size
