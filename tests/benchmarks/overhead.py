"""The cost of a call on few elements above the launch of its kernel.

Laziness and the host backend are off, so that every call launches a kernel, and nothing waits for
it. The launch alone uses the same kernel with the same arguments. Each function is called often
enough before that its kernel is compiled. ``dparray bench`` times calls that the host computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import dpnp

import dparray as dp
from dparray import _hooks, config
from dparray._evaluate.limits import COMPILE_TOTAL_ELEMENTS, MIN_CALL_ELEMENTS
from dparray._runtime.launch import launch
from tests.benchmarks._registry import Benchmark, Row, Settings, finish, row
from tests.benchmarks._timer import Candidate

#: Limit of a call's cost above the launch.
ABOVE = 10e-6
_ELEMENTS = 64
_CALLS_BEFORE = COMPILE_TOTAL_ELEMENTS // MIN_CALL_ELEMENTS + 1

#: Calls with two float arrays, a mask, and an array for the result.
CALLS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "add": lambda xp, x, y, mask, out: xp.add(x, y),
    "add, out=": lambda xp, x, y, mask, out: xp.add(x, y, out=out),
    "x + 1": lambda xp, x, y, mask, out: x + 1.0,
    "exp": lambda xp, x, y, mask, out: xp.exp(x),
    "less": lambda xp, x, y, mask, out: xp.less(x, y),
    "where": lambda xp, x, y, mask, out: xp.where(mask, x, y),
    "astype": lambda xp, x, y, mask, out: x.astype("int32"),
    "x[...] = y": lambda xp, x, y, mask, out: out.__setitem__(..., y),
    "sum": lambda xp, x, y, mask, out: xp.sum(x),
    "max": lambda xp, x, y, mask, out: xp.max(x),
}


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each function with its launch and dpnp's function."""
    with config.override(lazy=False, host_tier=False):
        for case, call in CALLS.items():
            yield _row(settings, case, call)


def _operands(make: Callable[[int, str], Any], size: int) -> tuple[Any, Any, Any, Any]:
    return make(size, "f4"), make(size, "f4"), make(size, "bool"), make(size, "f4")


def _row(settings: Settings, case: str, call: Callable[..., Any]) -> Row:
    queue = settings.device.sycl_queue

    def ours(size: int, dtype: str) -> Any:
        return dp.ones(size, dtype=dtype, device=settings.device)

    def theirs(size: int, dtype: str) -> Any:
        return dpnp.ones(size, dtype=dtype, sycl_queue=queue)

    arrays, neighbors = _operands(ours, _ELEMENTS), _operands(theirs, _ELEMENTS)
    for _ in range(_CALLS_BEFORE):
        call(dp, *arrays)
    launches, _kept = _launches(lambda: call(dp, *arrays))

    def by_itself() -> None:
        for each in launches:
            launch(**each)

    def wait() -> None:
        finish(settings)

    measured = row(
        settings,
        case,
        _ELEMENTS,
        {
            "dparray": Candidate(lambda: call(dp, *arrays), after=wait),
            "launch": Candidate(by_itself, after=wait),
            "dpnp": Candidate(lambda: call(dpnp, *neighbors), after=wait),
        },
    )
    return replace(measured, limit=measured.timings["launch"].median + ABOVE)


def _launches(call: Callable[[], Any]) -> tuple[list[dict[str, Any]], Any]:
    """Return the arguments of a call's launches, and its result, whose memory they write."""
    found: list[dict[str, Any]] = []

    def note(event: str, **values: Any) -> None:
        if event == "launch":
            names = ("kernel", "global_range", "local_range", "arguments", "queue")
            found.append({name: values[name] for name in names})

    unsubscribe = _hooks.subscribe(note)
    try:
        result = call()
    finally:
        unsubscribe()
    if not found:
        raise RuntimeError("the call launched no kernel of dparray")
    return found, result


BENCHMARK = Benchmark("overhead", "an eager call on few elements, beside its launch", rows)
