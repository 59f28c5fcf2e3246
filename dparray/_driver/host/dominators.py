"""Find the blocks that each way to a block passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def dominators(
    starts: set[str], before: Callable[[str], Sequence[str]], names: list[str]
) -> dict[str, set[str]]:
    """Return the dominators of each block.

    Args:
        starts: the blocks without any before them.
        before: returns the blocks before one.
        names: all blocks.
    """
    of_block = {name: {name} if name in starts else set(names) for name in names}
    changed = True
    while changed:
        changed = False
        for name in names:
            if name in starts:
                continue
            sets = [of_block[each] for each in before(name) if each in of_block]
            new = {name} | (set.intersection(*sets) if sets else set())
            if new != of_block[name]:
                of_block[name], changed = new, True
    return of_block
