"""Known functions of large arrays take few calls of Python functions, on every driver.

The limits are the numbers of 28 November 2026, with a few calls to spare for what varies; fewer are
wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import background
from tests.evaluate.tracing import IS_COMPILED, in_a_new_process, traced

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
    "x + y": (lambda a: (a.x + a.y).asnumpy(), (36, 11), (107, 21)),
    "functions": (functions, (50, 13), (114, 23)),
    "x.sum()": (lambda a: a.x.sum().item(), (68, 23), (85, 21)),
    "x": (lambda a: a.x.asnumpy(), (15, 5), (39, 15)),
    "x[3]": (lambda a: float(a.x[3]), (1, 1), (74, 20)),
    "x[1:-1]": (lambda a: a.x[1:-1].asnumpy(), (4, 3), (60, 17)),
    "x[::2]": (lambda a: a.x[::2].asnumpy(), (4, 3), (111, 32)),
    "x[mask]": (lambda a: a.x[a.mask].asnumpy(), (96, 22), (415, 46)),
    "x[at]": (lambda a: a.x[a.at].asnumpy(), (77, 19), (415, 46)),
    "x[3] = 1": (assign_element, (1, 1), (67, 23)),
    "x[1:-1] = y[1:-1]": (assign, (81, 26), (103, 27)),
    "x[1:-1] += y[1:-1]": (update, (69, 27), (138, 31)),
    "x[mask] = 1": (assign_by_mask, (85, 24), (188, 41)),
    "concatenate": (lambda a: dp.concatenate([a.x, a.y]).asnumpy(), (86, 21), (185, 36)),
    "cumsum": (lambda a: dp.cumsum(a.x).asnumpy(), (160, 40), (330, 47)),
    "median": (lambda a: dp.median(a.x).item(), (65, 15), (506, 56)),
    "pad": (lambda a: dp.pad(a.x, 3).asnumpy(), (105, 33), (273, 41)),
    "roll": (lambda a: dp.roll(a.x, 3).asnumpy(), (76, 20), (129, 34)),
    "sort": (lambda a: dp.sort(a.x).asnumpy(), (81, 20), (210, 40)),
    "stack": (lambda a: dp.stack([a.x, a.y]).asnumpy(), (105, 22), (198, 37)),
    "take": (lambda a: dp.take(a.x, a.at).asnumpy(), (73, 19), (401, 47)),
    "where": (lambda a: dp.where(a.mask, a.x, a.y).asnumpy(), (90, 20), (79, 26)),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_known_statement_takes_few_calls(name: str) -> None:
    statement, on_cpu, on_cuda = STATEMENTS[name]
    operands = Operands(*(dp.asarray(np.ones(200_000, each)) for each in ("f4", "f4", "?", "i8")))
    calls = []
    for _ in range(10):  # The first calls choose how to compute.
        _, files = traced(lambda: statement(operands))
        calls.append(files)
        background.wait()
    files = min(calls, key=len)
    most_calls, most_files = on_cuda if operands.x.device.traits.kind == "gpu" else on_cpu
    assert "_evaluate/schedule.py" not in files
    # A tenth more: the calls that ask whether work is complete vary with the order of work.
    assert len(files) <= 1.1 * most_calls + 1, "\n".join(files)
    assert len(set(files)) <= 1.1 * most_files + 1, sorted(set(files))
