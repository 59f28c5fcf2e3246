"""Which executor is worth its cost: the limits by name, and the switch that forces one.

All limits are about one machine-independent trade: a launch costs tens of microseconds, compiling
a tenth of a second, and memory traffic more than arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dparray import _hooks, config
from dparray._evaluate import cost_model
from dparray._graph.ops import OPS

#: A structure met with this many elements is compiled at once.
COMPILE_ELEMENTS = 1 << 17

#: A structure met with fewer is compiled once so many elements went through dpnp's kernels.
COMPILE_TOTAL_ELEMENTS = 1 << 21

#: A structure that a GPU meets is compiled in the background from this call on.
COMPILE_CALLS = 2

#: A call of dpnp counts as at least so many: that is what it costs more than a launch.
MIN_CALL_ELEMENTS = 1 << 11

#: A structure met for the first time with this many elements is looked up in the disk cache.
LOAD_ELEMENTS = 1 << 13

#: A pending expression with more operations or leaves than these computes its operands first, so
#: that a loop of a million steps holds neither memory nor graph.
MAX_WEIGHT = 512
MAX_LEAVES = 24

#: So many pending reductions are computed beside one of the same memory that is needed.
MAX_SIBLINGS = 4

#: A value of at least this weight that is referenced from outside is stored when it is computed for
#: another, since storing it costs about as much as this many additions.
STORING_WEIGHT = 8

#: Up to so many elements an addition is computed at the line that asks for it, by the calling
#: thread, where that may touch the memory: what the cost model says, or :func:`force`. Read where
#: it is used, never imported by name.
host_elements = 0
#: The same for folds of all elements of memory, which NumPy makes quickly.
folded_elements = 0
#: The same for operations by their weight, in one dict for ever.
at_once: dict[int, int] = {}
#: Whether generated kernels compute what something else could, too. Read where it is used.
uses_kernels = True
_forced = ""


def set_host_elements(count: int) -> None:
    """Set up to how many elements is computed at once."""
    global host_elements, folded_elements
    host_elements = count
    folded = cost_model.elements_folded_at_once(cost_model.terms())
    folded_elements = max(count, folded) if count else 0
    weights = {1, *(op.weight for op in OPS.values())}
    least = min(count, cost_model.MIN_AT_ONCE)
    at_once.update({each: max(least, int(count * cost_model.share_of(each))) for each in weights})


def follow_model() -> None:
    """Set the limits to what the cost model says, unless an executor is forced."""
    if not _forced:
        set_host_elements(cost_model.elements_at_once(cost_model.terms()))
        _hooks.option_was_set("executor")


def follow_fused_tier() -> None:
    """Set whether kernels are used to what the option says, unless an executor is forced."""
    global uses_kernels
    uses_kernels = _forced != "library" if _forced else config.fused_tier


def is_worth_compiling(size: int, total: int) -> bool:
    """Return whether to compile for ``size`` elements, ``total`` having been computed so far."""
    if _forced:
        return _forced == "fused"
    if not config.fused_tier:
        return False
    return size >= COMPILE_ELEMENTS or total >= COMPILE_TOTAL_ELEMENTS


def is_worth_loading(size: int) -> bool:
    """Return whether to look in the disk cache for the kernel of ``size`` elements, met the first
    time.
    """
    return size >= LOAD_ELEMENTS and uses_kernels


def may_compute_on_host() -> bool:
    """Return whether the calling thread computes what there is no kernel for yet, in memory it
    reaches.
    """
    return _forced in ("", "host")


def chooses() -> bool:
    """Return whether the cost model chooses between executors, none being forced."""
    return not _forced


def compiles_in_background() -> bool:
    """Return whether kernels that the program need not wait for are obtained by another thread."""
    return not _forced and config.background_compile


def is_worth_waiting(gain: float, lost: float = 0.0) -> bool:
    """Return whether the program waits until a kernel is compiled.

    One use pays for half the wait, or the calls without it have lost as much as the wait takes:
    at worst a program spends twice the time that it would have spent with perfect foresight.

    Args:
        gain: the seconds that one use gains.
        lost: the seconds that earlier calls lost.
    """
    compiling = cost_model.terms().compile
    return gain >= compiling / 2 or (gain > 0 and lost >= compiling)


def is_worth_asking(lost: float) -> bool:
    """Return whether to compile in the background, ``lost`` seconds having gone by without the
    kernel.
    """
    return config.fused_tier and lost >= cost_model.terms().compile / 8


def is_worth_asking_after(calls: int) -> bool:
    """Return whether to compile in the background for a GPU, ``calls`` having been made so far."""
    return config.fused_tier and calls >= COMPILE_CALLS


def effective_call_size(size: int) -> int:
    """As how many elements a call of dpnp counts that computes ``size``."""
    return max(size, MIN_CALL_ELEMENTS)


@contextmanager
def force(executor: str) -> Iterator[None]:
    """Let one executor compute everything that it can, in all threads, for tests and measurements.

    Args:
        executor: ``"host"``, the calling thread with NumPy; ``"fused"``, generated kernels, each
            compiled when it is met; ``"library"``, dpnp's ready kernels.

    Raises:
        ValueError: another word.
    """
    global _forced
    if executor not in ("host", "fused", "library"):
        raise ValueError(f"force: {executor!r} is no executor; give 'host', 'fused' or 'library'")
    before = _forced
    set_host_elements(1 << 40 if executor == "host" else 0)
    _forced = executor
    follow_fused_tier()
    _hooks.option_was_set("executor")
    try:
        yield
    finally:
        _forced = before
        if before:
            set_host_elements(1 << 40 if before == "host" else 0)
        follow_model()
        follow_fused_tier()
        _hooks.option_was_set("executor")


follow_model()
follow_fused_tier()
_hooks.when_set("cost_model", follow_model)
_hooks.when_set("fused_tier", follow_fused_tier)
