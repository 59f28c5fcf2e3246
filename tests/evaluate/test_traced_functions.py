"""Known functions of large arrays take few calls of Python functions, on every driver.

The limits are the numbers of 30 November 2026, with a few calls to spare for what varies; fewer are
wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from tests.evaluate.tracing import IS_COMPILED, in_a_new_process, traced
from tests.support import wait_for_compiler

pytestmark = [
    pytest.mark.usefixtures("tests_options"),
    pytest.mark.skipif(not IS_COMPILED, reason="the fast path is not built"),
]


@pytest.fixture(scope="module", autouse=True)
def _process_of_its_own(request: pytest.FixtureRequest) -> None:
    in_a_new_process(request)


class Operands(NamedTuple):
    """Arrays of 200,000 elements: two of numbers, a mask, and indices."""

    x: Any
    y: Any
    mask: Any
    at: Any


def functions(a: Operands) -> Any:
    return (dp.sqrt(dp.abs(dp.exp(a.x) * a.y)) - dp.maximum(dp.sin(a.y), 0.5)).asnumpy()


def assign(a: Operands) -> None:
    a.x[1:-1] = a.y[1:-1]
    dp.synchronize(a.x)


def update(a: Operands) -> None:
    a.x[1:-1] += a.y[1:-1]
    dp.synchronize(a.x)


def assign_by_mask(a: Operands) -> None:
    a.x[a.mask] = 1.0
    dp.synchronize(a.x)


def assign_element(a: Operands) -> None:
    a.x[3] = 1.0


#: Statements, each with its value read: the maximum numbers of calls and of files on CPU devices,
#: and the same on a CUDA device.
STATEMENTS: dict[str, tuple[Callable[[Operands], Any], tuple[int, int], tuple[int, int]]] = {
    "x + y": (lambda a: (a.x + a.y).asnumpy(), (28, 11), (34, 18)),
    "functions": (functions, (45, 14), (48, 20)),
    "x.sum()": (lambda a: a.x.sum().item(), (39, 17), (49, 22)),
    "x": (lambda a: a.x.asnumpy(), (13, 5), (24, 14)),
    "x[3]": (lambda a: float(a.x[3]), (1, 1), (40, 18)),
    "x[1:-1]": (lambda a: a.x[1:-1].asnumpy(), (3, 3), (29, 14)),
    "x[::2]": (lambda a: a.x[::2].asnumpy(), (3, 3), (56, 28)),
    "x[mask]": (lambda a: a.x[a.mask].asnumpy(), (42, 15), (82, 24)),
    "x[at]": (lambda a: a.x[a.at].asnumpy(), (48, 17), (137, 36)),
    "x[3] = 1": (assign_element, (1, 1), (34, 18)),
    "x[1:-1] = y[1:-1]": (assign, (64, 25), (49, 25)),
    "x[1:-1] += y[1:-1]": (update, (65, 27), (63, 29)),
    "x[mask] = 1": (assign_by_mask, (70, 22), (155, 39)),
    "concatenate": (lambda a: dp.concatenate([a.x, a.y]).asnumpy(), (56, 21), (77, 32)),
    "cumsum": (lambda a: dp.cumsum(a.x).asnumpy(), (121, 37), (87, 29)),
    "median": (lambda a: dp.median(a.x).item(), (61, 15), (72, 23)),
    "pad": (lambda a: dp.pad(a.x, 3).asnumpy(), (88, 31), (152, 35)),
    "roll": (lambda a: dp.roll(a.x, 3).asnumpy(), (47, 19), (72, 30)),
    "sort": (lambda a: dp.sort(a.x).asnumpy(), (57, 19), (185, 43)),
    "stack": (lambda a: dp.stack([a.x, a.y]).asnumpy(), (75, 21), (138, 33)),
    "take": (lambda a: dp.take(a.x, a.at).asnumpy(), (46, 17), (172, 41)),
    "where": (lambda a: dp.where(a.mask, a.x, a.y).asnumpy(), (42, 17), (51, 24)),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_known_statement_takes_few_calls(name: str) -> None:
    statement, on_cpu, on_cuda = STATEMENTS[name]
    operands = Operands(*(dp.asarray(np.ones(200_000, each)) for each in ("f4", "f4", "?", "i8")))
    calls = []
    for _ in range(10):  # The first calls choose how to compute.
        _, files = traced(lambda: statement(operands))
        calls.append(files)
        wait_for_compiler()
    files = min(calls, key=len)
    most_calls, most_files = on_cuda if operands.x.device.traits.kind == "gpu" else on_cpu
    assert "_evaluate/schedule.py" not in files
    # A tenth more: the calls that ask whether work is complete vary with the order of work.
    assert len(files) <= 1.1 * most_calls + 1, "\n".join(files)
    assert len(set(files)) <= 1.1 * most_files + 1, sorted(set(files))
