"""Cost of launching a kernel with three array arguments and almost no work."""

from __future__ import annotations

from collections.abc import Iterator

import dpnp

import dparray as dp
from dparray._kernel.decorators import kernel
from dparray._kernel.launch import call_kernel
from dparray.kernel_api import NdRange, Range
from tests.benchmarks._registry import Benchmark, Row, Settings, finish, row
from tests.benchmarks._timer import Candidate

#: Limit of a launch on the host with three array arguments, without waiting for the result.
LIMIT = 20e-6
_ELEMENTS = 64
#: Number of launches in flight behind a kernel of some tens of milliseconds when one is timed.
AHEAD = 100
_TURNS = 20_000_000


@kernel
def add(item, x, y, out):  # type: ignore[no-untyped-def]
    """Write ``x + y`` to ``out``."""
    i = item.get_id(0)
    out[i] = x[i] + y[i]


@kernel
def add_in_groups(item, x, y, out):  # type: ignore[no-untyped-def]
    """Write ``x + y`` to ``out``, by work-groups."""
    i = item.get_global_id(0)
    out[i] = x[i] + y[i]


@kernel
def hold(item, x, turns):  # type: ignore[no-untyped-def]
    """Take time."""
    value = x[item.get_id(0)]
    for _ in range(turns):
        value = value * 1.0000001 + 1e-9
    x[item.get_id(0)] = value


def rows(settings: Settings) -> Iterator[Row]:
    """Yield launches without waiting, alone and behind others, then launches with waiting."""
    device = settings.device
    held = dp.ones(1, device=device, dtype="float32")
    x, y, out = (dp.ones(_ELEMENTS, dtype="float32", device=device) for _ in range(3))
    theirs = [dpnp.ones(_ELEMENTS, dtype="f4", sycl_queue=device.sycl_queue) for _ in range(3)]

    def wait() -> None:
        finish(settings)

    def over_range() -> None:
        call_kernel(add, Range(_ELEMENTS), x, y, out)

    def over_groups() -> None:
        call_kernel(add_in_groups, NdRange(_ELEMENTS, _ELEMENTS), x, y, out)

    def dpnp_add() -> None:
        dpnp.add(theirs[0], theirs[1], out=theirs[2])

    for case, call in (("Range", over_range), ("NdRange", over_groups)):
        candidates = {
            "dparray": Candidate(call, after=wait),
            "dpnp_out": Candidate(dpnp_add, after=wait),
        }
        yield row(settings, f"submit, {case}", _ELEMENTS, candidates, limit=LIMIT)

    def others() -> None:
        call_kernel(hold, Range(1), held, _TURNS)
        for _ in range(AHEAD):
            over_range()

    # dpnp would first wait for the launches in flight.
    behind = {"dparray": Candidate(over_range, before=others, after=wait)}
    yield row(settings, f"submit, Range, {AHEAD} pending", _ELEMENTS, behind, limit=LIMIT)

    def with_wait(call):  # type: ignore[no-untyped-def]
        def both() -> None:
            call()
            wait()

        return both

    for case, call in (("Range", over_range), ("NdRange", over_groups)):
        candidates = {
            "dparray": Candidate(with_wait(call)),
            "dpnp_out": Candidate(with_wait(dpnp_add)),
        }
        yield row(settings, f"submit and wait, {case}", _ELEMENTS, candidates)


BENCHMARK = Benchmark("launch", "launching a kernel with three array arguments", rows)
