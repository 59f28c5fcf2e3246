"""The limits that decide which backend is worth its cost, and the switch that forces one.

All limits express one machine-independent trade-off: a launch costs tens of microseconds, compiling
a tenth of a second, and memory traffic more than arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dparray import _hooks, config
from dparray._evaluate import cost_model
from dparray._graph.ops import OPS

if TYPE_CHECKING:
    from dparray._evaluate.plan import KernelLaunch

#: An expression with at least this many elements is compiled immediately.
COMPILE_ELEMENTS = 1 << 17

#: A smaller one is compiled once this many elements went through a library's kernels.
COMPILE_TOTAL_ELEMENTS = 1 << 21

#: An expression is compiled in the background from this call on, on a GPU and wherever the host
#: takes more than this many times as long as the kernel is expected to.
COMPILE_CALLS, CLEARLY_SLOWER = 2, 1.5

#: A call of a library counts as at least this many elements: its extra cost over a launch.
MIN_CALL_ELEMENTS = 1 << 11

#: A new expression with at least this many elements is looked up in the disk cache.
LOAD_ELEMENTS = 1 << 13

#: A pending expression with more operations or leaves than these evaluates its operands first, so
#: that a loop of a million steps accumulates neither memory nor graph.
MAX_COST = 512
MAX_LEAVES = 24

#: At most this many pending reductions are computed along with one of the same memory.
MAX_SIBLINGS = 4

#: A value of at least this cost with outside references is stored when it is computed as part of
#: another value, since storing costs about this many additions.
STORING_COST = 8

#: Up to this many elements, the calling thread computes an addition immediately, if it may access
#: the memory. Set by the cost model or :func:`force`. Read at each use, never imported by name.
host_elements = 0
#: The same for reductions of all elements of memory, which NumPy does fast.
folded_elements = 0
#: The same for operations by cost; the dict object never changes.
at_once: dict[int, int] = {}
_forced = ""


def set_host_elements(count: int) -> None:
    """Set the largest size that is computed immediately."""
    global host_elements, folded_elements
    host_elements = count
    folded_elements = max(count, cost_model.elements_folded_at_once()) if count else 0
    costs = {1, *(op.cost for op in OPS.values())}
    at_once.update({each: min(count, cost_model.elements_at_once(each)) for each in costs})


def follow_model() -> None:
    """Set the limits of all threads from the latest cost model, unless a backend is forced."""
    if not _forced:
        set_host_elements(cost_model.elements_at_once())


def uses_kernels() -> bool:
    """Return whether generated kernels also compute what other backends could."""
    return _forced != "library" if _forced else config.fused_tier


def is_worth_compiling(size: int, total: int) -> bool:
    """Return whether to compile for ``size`` elements after ``total`` elements so far."""
    if _forced:
        return _forced == "fused"
    if not config.fused_tier:
        return False
    return size >= COMPILE_ELEMENTS or total >= COMPILE_TOTAL_ELEMENTS


def is_worth_loading(size: int) -> bool:
    """Return whether to look in the disk cache for the kernel of a new expression of ``size``
    elements.
    """
    return size >= LOAD_ELEMENTS and uses_kernels()


def may_compute_on_host() -> bool:
    """Return whether the calling thread computes in accessible memory while there is no kernel."""
    return _forced in ("", "host")


def chooses() -> bool:
    """Return whether the cost model chooses between backends, none being forced."""
    return not _forced


def compiles_in_background() -> bool:
    """Return whether another thread obtains kernels that the program need not wait for."""
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


def is_clearly_slower(launch: KernelLaunch) -> bool:
    """Return whether the host took much longer at each call so far than a kernel would."""
    return launch.host_calls > 0 and launch.host_seconds > CLEARLY_SLOWER * launch.kernel_seconds


def is_worth_asking(lost: float) -> bool:
    """Return whether to compile in the background, with ``lost`` seconds lost so far."""
    return config.fused_tier and lost >= cost_model.terms().compile / 8


def is_worth_asking_after(calls: int) -> bool:
    """Return whether to compile in the background at a call with this number."""
    return config.fused_tier and calls >= COMPILE_CALLS


def effective_call_size(size: int) -> int:
    """Return the number of elements that a call of a library over ``size`` counts as."""
    return max(size, MIN_CALL_ELEMENTS)


@contextmanager
def force(executor: str) -> Iterator[None]:
    """Let one executor compute everything that it can, in all threads, for tests and measurements.

    Args:
        executor: ``"host"``, the calling thread with NumPy; ``"fused"``, generated kernels, each
            compiled when it is met; ``"library"``, a library's ready kernels.

    Raises:
        ValueError: another word.
    """
    global _forced
    if executor not in ("host", "fused", "library"):
        raise ValueError(
            f"force: the backend must be 'host', 'fused' or 'library'; got {executor!r}"
        )
    before = _forced
    set_host_elements(1 << 40 if executor == "host" else 0)
    _forced = executor
    _hooks.option_was_set("executor")
    try:
        yield
    finally:
        _forced = before
        if before:
            set_host_elements(1 << 40 if before == "host" else 0)
        follow_model()
        _hooks.option_was_set("executor")


follow_model()
_hooks.when_set("cost_model", follow_model)
