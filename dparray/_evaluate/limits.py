"""Which executor is worth its cost: the limits by name, and the switch that forces one.

All limits are about one machine-independent trade: a launch costs tens of microseconds, compiling
a tenth of a second, and memory traffic more than arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Up to this many elements the calling thread is faster than a launch.
HOST_ELEMENTS = 8192

#: A structure met with this many elements is compiled at once.
COMPILE_ELEMENTS = 1 << 17

#: A structure met with fewer is compiled once so many elements went through dpnp's kernels.
COMPILE_TOTAL_ELEMENTS = 1 << 21

#: A call of dpnp counts as at least so many: that is what it costs more than a launch.
LEAST_CALL_ELEMENTS = 1 << 11

#: A structure met for the first time with this many elements is looked up in the disk cache.
LOAD_ELEMENTS = 1 << 13

#: A pending expression with more operations or leaves than these computes its operands first, so
#: that a loop of a million steps holds neither memory nor graph.
MOST_WEIGHT = 512
MOST_LEAVES = 24

#: So many pending reductions are computed beside one of the same memory that is needed.
MOST_SIBLINGS = 4

#: A value of at least this weight that is referenced from outside is stored when it is computed for
#: another, since storing it costs about as much as this many additions.
STORING_WEIGHT = 8

#: What :func:`force` has set; read where it is used, never imported by name.
host_elements = HOST_ELEMENTS
_forced = ""
_when_forced: list[Callable[[], None]] = []


def is_worth_compiling(size: int, total: int) -> bool:
    """Whether to compile for ``size`` elements, ``total`` having been computed so far."""
    if _forced:
        return _forced == "fused"
    return size >= COMPILE_ELEMENTS or total >= COMPILE_TOTAL_ELEMENTS


def is_worth_loading(size: int) -> bool:
    """Whether to look in the disk cache for the kernel of ``size`` elements, met the first time."""
    return size >= LOAD_ELEMENTS and _forced != "library"


def counted_elements(size: int) -> int:
    """As how many elements a call of dpnp counts that computes ``size``."""
    return max(size, LEAST_CALL_ELEMENTS)


@contextmanager
def force(executor: str) -> Iterator[None]:
    """Let one executor compute everything that it can, in all threads, for tests and measurements.

    Args:
        executor: ``"host"``, the calling thread with NumPy; ``"fused"``, generated kernels, each
            compiled when it is met; ``"library"``, dpnp's ready kernels.

    Raises:
        ValueError: another word.
    """
    global host_elements, _forced
    if executor not in ("host", "fused", "library"):
        raise ValueError(f"force: {executor!r} is no executor; give 'host', 'fused' or 'library'")
    before = host_elements, _forced
    host_elements, _forced = (1 << 30 if executor == "host" else 0), executor
    _forget_plans()
    try:
        yield
    finally:
        host_elements, _forced = before
        _forget_plans()


def when_forced(action: Callable[[], None]) -> None:
    """Call ``action`` whenever an executor is forced, or no longer."""
    _when_forced.append(action)


def _forget_plans() -> None:
    for action in _when_forced:
        action()
