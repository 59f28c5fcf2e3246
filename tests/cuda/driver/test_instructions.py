"""Kernels for GPUs execute few instructions for an element, and load many bytes before they store.

The emulator counts PTX instructions. These bounds hold without a disassembler, which
``test_forms.py`` uses where it is installed. If threads diverge, the instructions of all their
branches count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import background
from tests.cuda import cupy_standin, hardware_times, packages
from tests.cuda.ptx_emulator import Module, Run
from tests.cuda.standin import StandIn

_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
#: Groups from the middle of a grid, which stand for all groups of a kernel without loops over it.
_SAMPLED = 16


class Launch(NamedTuple):
    """A launch: its kernel, its threads, and the instructions that each of them executes."""

    entry: str
    threads: int
    instructions: float
    module: Module


class Counter:
    """Count the instructions of launches, of which it may run some groups only."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.is_sampling = False
        self._run_all = Module.launch

    def launch(
        self, module: Module, entry: str, grid: Any, block: Any, *rest: Any, **options: Any
    ) -> int:
        """Replace :meth:`Module.launch`."""
        groups, threads = prod(grid), prod(grid) * prod(block)
        if self.is_sampling:
            executed = self._run_some(module, entry, grid, block, *rest, **options)
            turns = float(executed)
        else:
            executed = self._run_all(module, entry, grid, block, *rest, **options)
            at_once = max(1, options.get("lanes", 1 << 16) // prod(block))
            turns = executed / -(-groups // at_once)
        self.launches.append(Launch(entry, threads, turns, module))
        return executed

    def _run_some(
        self,
        module: Module,
        entry: str,
        grid: Any,
        block: Any,
        arguments: Any,
        memory: Any,
        *,
        shared: int = 0,
        addresses: Any = None,
        **_: Any,
    ) -> int:
        block, grid = (*block, 1, 1)[:3], (*grid, 1, 1)[:3]
        count = min(_SAMPLED, prod(grid))
        numbers = np.arange(count) + (prod(grid) - count) // 2
        run = Run(module, entry, grid, block, numbers, memory, addresses or {}, shared)
        run.pass_arguments(arguments)
        return run.run(1_000_000)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Return a counter of all launches of the stand-in."""
    found = Counter()
    monkeypatch.setattr(Module, "launch", lambda *args, **kwargs: found.launch(*args, **kwargs))
    return found


@pytest.fixture
def gpu(driver: StandIn) -> dp.Device:
    """Return the first GPU of the stand-in."""
    cupy_standin.install()
    return dp.Device("cuda:0")


class Bound(NamedTuple):
    """The bounds of a computation, with a tenth to spare.

    Attributes:
        shape: the shape of its operands.
        instructions: the largest number of PTX instructions for an element, in all kernels.
        nbytes: the bytes that a thread of some kernel loads before it stores.
        registers: of a thread, in every kernel.
        dtype: the dtype of the operands.
        samples: whether some groups stand for all, since no kernel waits for other groups, and no
            value is read.
    """

    shape: tuple[int, ...]
    instructions: float
    nbytes: int
    registers: int = 40
    dtype: str = "f4"
    samples: bool = True


_LONG, _SHORT, _SQUARE = (1 << 22,), (1 << 18,), (2048, 2048)

#: The rows of the benchmark. If only some groups of a kernel run, its counters stay unfinished, so
#: rows whose kernels wait for other groups come first.
BOUNDS = {
    "cumulative sum": Bound(_SHORT, 31.6, 72, 64, samples=False),
    "mask": Bound(_SHORT, 50.6, 72, samples=False),
    "chain float32": Bound(_LONG, 22.5, 16),
    "copy": Bound(_LONG, 7.2, 16),
    "row norms": Bound(_SQUARE, 13.1, 40),
    "softmax": Bound(_SQUARE, 44.3, 64),
    "column sums": Bound(_SQUARE, 4.7, 128),
    "2-D stencil by slices": Bound(_SQUARE, 54.6, 128),
    "3-D stencil by slices": Bound((160, 160, 160), 140.7, 112),
    "Black-Scholes float32": Bound(_LONG, 177, 12),
    "Black-Scholes float16": Bound(_LONG, 250, 6, dtype="f2"),
    "Black-Scholes float64": Bound(_LONG, 262, 24, dtype="f8"),
    "transposition": Bound(_SQUARE, 10.6, 128),
    "time step of 10 operations": Bound(_SQUARE, 42.4, 16),
    "histogram": Bound((1 << 24,), 14.4, 4),
}


def loaded_before_a_store(text: str) -> int:
    """Return the bytes that a kernel loads from global memory before its first store there."""
    nbytes = 0
    for kind, words in re.findall(r"\b(ld|st|red|atom)\.(?:\w+\.)*?global((?:\.\w+)+)", text):
        if kind != "ld":
            break
        vector = re.search(r"\.v(\d)", words)
        size = re.search(r"\.[bsuf](8|16|32|64)\b", words)
        assert size
        nbytes += _BYTES[size[1]] * (int(vector[1]) if vector else 1)
    return nbytes


def check(
    bound: Bound, function: Callable[..., Any], operands: int, counter: Counter, driver: StandIn
) -> None:
    """Compare the launches of a computation with its bounds."""
    device = dp.Device("cuda:0")
    counter.is_sampling = bound.samples
    arrays = [dp.full(bound.shape, 1.25, dtype=bound.dtype, device=device) for _ in range(operands)]
    dp.eval(*arrays)
    device.wait()
    for _ in range(3):  # The first calls choose how to compute.
        counter.launches.clear()
        result = function(*arrays)
        for each in result if type(result) is tuple else (result,):
            dp.eval(each)
        device.wait()
        background.wait()
    counter.is_sampling = False
    total = sum(each.threads * each.instructions for each in counter.launches)
    assert 0 < total / arrays[0].size <= bound.instructions
    nbytes = []
    for each in counter.launches:
        (text,) = [found.text for found in driver.modules if found.module is each.module]
        usage = packages.assembled(text.encode(), packages.PROCESSORS[-1])
        assert usage.spilled == usage.stack == 0
        assert usage.registers <= bound.registers
        nbytes.append(loaded_before_a_store(text))
    assert max(nbytes) >= bound.nbytes


@pytest.mark.parametrize(("dtype", "instructions", "registers"), [("i4", 54, 40), ("i8", 64, 56)])
def test_a_scan_of_integers_in_one_pass_executes_few_instructions(
    dtype: str,
    instructions: float,
    registers: int,
    gpu: dp.Device,
    counter: Counter,
    driver: StandIn,
) -> None:
    bound = Bound(_SHORT, instructions, 0, registers, dtype, samples=False)
    check(bound, lambda x: dp.cumsum(x, dtype=dtype), 1, counter, driver)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_row_of_the_benchmark_executes_few_instructions(
    name: str, gpu: dp.Device, counter: Counter, driver: StandIn
) -> None:
    (row,) = [case for case in hardware_times.cases(1 << 10, 32, 8) if case.name == name]
    check(BOUNDS[name], row.function(dp), len(row.arrays), counter, driver)
