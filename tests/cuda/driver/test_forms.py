"""The kernels for GPUs have the form that they were written in, and take few calls of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray.kernel_api import AtomicRef, MemoryOrder
from tests.cuda import cupy_standin, packages
from tests.cuda.standin import StandIn
from tests.evaluate.tracing import IS_COMPILED, traced
from tests.support import wait_for_compiler


@pytest.fixture
def gpu(driver: StandIn) -> dp.Device:
    """Return the first GPU of the stand-in."""
    cupy_standin.install()
    return dp.Device("cuda:0")


Call = Callable[[], Any]


def calls_on(gpu: dp.Device, size: int = 1 << 16) -> dict[str, Call]:
    """Return functions that launch the kernels."""
    generator = np.random.default_rng(0)
    x = dp.asarray(2 * generator.random(size, "f4"), device=gpu)
    whole = dp.asarray(generator.integers(0, 9, size), device=gpu)
    narrow, mask = whole.astype("i4"), x > 1
    square = x[: 1 << 14].reshape(128, 128).copy()
    many = narrow.repeat(2)  # fewer are counted by the library
    dp.eval(narrow, mask, square, many)
    return {
        "sum of float32": lambda: dp.cumsum(x),
        "sum of int64": lambda: dp.cumsum(whole),
        "sum of int32": lambda: dp.cumsum(narrow, dtype="i4"),
        "mask": lambda: x[mask],
        "indices": lambda: dp.nonzero(mask),
        "histogram": lambda: dp.histogram(x, 100, (0.0, 2.0)),
        "counts": lambda: dp.bincount(many),
        "transposition": lambda: square.T.copy(),
        "median": lambda: dp.median(x),
        "median of rows": lambda: dp.median(square, 1),
    }


class Form(NamedTuple):
    """The expected machine code of a kernel.

    Attributes:
        call: the function that launches it.
        kernel: its name.
        load: the instruction of its loads.
        loads: how many of them come before the first store or atomic operation on elements.
        registers: of a thread, at most.
        stores: the first instructions that later loads may not pass.
    """

    call: str
    kernel: str
    load: str
    loads: int
    registers: int
    stores: str = r"STG|STS|ATOMS|REDG"


_FORMS = (
    Form("sum of float32", "tile_total", "LDG.E", 16, 32),
    Form("sum of float32", "tile_scan", "LDG.E", 16, 64),
    Form("sum of int64", "one_pass_scan", "LDG.E.64", 16, 64, r"STG|STS\\.64|REDG"),
    Form("sum of int32", "one_pass_scan", "LDG.E", 16, 48, r"STG|STS$|REDG"),
    Form("mask", "mask_count", "LDG.E.64", 8, 48, r"STG|REDG"),
    Form("mask", "tile_select", "LDG.E", 8, 40, r"STG"),
    Form("histogram", "local_count", "LDG.E", 16, 40, r"ATOMS|REDG"),
    Form("transposition", "transpose", "LDG.E", 16, 48),
    Form("counts", "local_count", "LDG.E", 16, 40, r"ATOMS|REDG"),
    Form("median", "rank", "LDG.E", 8, 48, r"ATOMS|REDG"),
)


@pytest.mark.parametrize("form", _FORMS, ids=lambda form: f"{form.call}-{form.kernel}")
def test_the_machine_code_has_its_loads_first_and_spills_nothing(
    form: Form, gpu: dp.Device, driver: StandIn
) -> None:
    calls_on(gpu)[form.call]()
    gpu.wait()
    texts = [each.text for each in driver.modules if f"kernel_{form.kernel}" in each.entries]
    ptx = texts[-1].encode()
    usage = packages.assembled(ptx, "sm_90")
    assert usage.spilled == usage.stack == 0
    assert usage.registers <= form.registers
    code = packages.machine_code(ptx)
    last = next(at for at, name in enumerate(code) if re.match(form.stores, name))
    assert code[:last].count(form.load) >= form.loads, code[:last]


@dp.kernel
def scaled(item: Any, x: Any, out: Any, factor: Any) -> None:
    """Multiply by a number."""
    i = item.get_id(0)
    out[i] = x[i] * factor


def statements_on(gpu: dp.Device) -> dict[str, Call]:
    """Return launches, statements on slices, and reads of values."""
    x, y, out = (dp.asarray(np.ones(1 << 16, "f4"), device=gpu) for _ in range(3))
    square, border = (dp.asarray(np.ones((256, 256), "f4"), device=gpu) for _ in range(2))

    def add() -> None:
        x[1:-1] += y[1:-1]

    def shift() -> None:
        out[2:] = x[:-2]

    def step() -> None:
        border[1:-1, 1:-1] = square[:-2, 1:-1] + square[2:, 1:-1]

    def element() -> None:
        x[3] = 1.0

    return {
        "launch": lambda: dp.call_kernel(scaled, dp.Range(1 << 16), x, out, 2.0),
        "x[1:-1] += y": add,
        "out[2:] = x": shift,
        "out[1:-1] = x + y": step,
        "x[3] = 1": element,
        "x[3].item()": lambda: x[3].item(),
        "x[3].asnumpy()": lambda: x[3].asnumpy(),
        "x[1:5].asnumpy()": lambda: x[1:5].asnumpy(),
        "x.asnumpy()": lambda: x.asnumpy(),
    }


@pytest.mark.skipif(not IS_COMPILED, reason="other calls without the compiled module")
@pytest.mark.parametrize(
    ("name", "most"),
    [
        *(
            ("histogram", 50),
            ("mask", 60),
            ("median", 60),
            ("median of rows", 235),
            ("sum of float32", 90),
            ("sum of int64", 70),
        ),
        *(("launch", 12), ("x[1:-1] += y", 60), ("out[2:] = x", 45), ("out[1:-1] = x + y", 60)),
        *(("x[3] = 1", 40), ("x[3].item()", 50), ("x[3].asnumpy()", 50)),
        *(("x[1:5].asnumpy()", 33), ("x.asnumpy()", 30)),
    ],
)
def test_a_known_call_takes_few_calls_of_python(name: str, most: int, gpu: dp.Device) -> None:
    call = (calls_on(gpu) | statements_on(gpu))[name]
    counted = []
    for number in range(6):  # Sometimes events of earlier work are read, too.
        files = traced(call)[1] if number > 2 else call()
        gpu.wait()
        wait_for_compiler()
        counted += [files] if number > 2 else []
    files = min(counted, key=len)
    assert len(files) <= most, files


@dp.kernel
def pass_on(nd_item: Any, x: Any, flags: Any, out: Any, order: Any) -> None:
    """Let each group but the first wait for the value of the one before it."""
    group = nd_item.get_group().get_group_id(0)
    value = x[group]
    if group > 0:
        ready = AtomicRef(flags, group - 1, memory_order=MemoryOrder.ACQUIRE)
        while ready.load() == 0:
            pass
        value += out[group - 1]
    out[group] = value
    if order == 0:
        AtomicRef(flags, group, memory_order=MemoryOrder.RELAXED).store(1)
    elif order == 1:
        AtomicRef(flags, group, memory_order=MemoryOrder.RELEASE).store(1)
    else:
        AtomicRef(flags, group, memory_order=MemoryOrder.ACQ_REL).fetch_add(1)


def test_late_stores_show_a_missing_release(gpu: dp.Device, driver: StandIn) -> None:
    values = np.arange(1, 11)
    x = dp.asarray(values, device=gpu)

    def is_right(order: int) -> bool:
        flags, out = (dp.zeros(10, dtype="i8", device=gpu) for _ in range(2))
        dp.eval(flags, out)
        gpu.wait()
        dp.call_kernel(pass_on, dp.NdRange(10, 1), x, flags, out, order)
        gpu.wait()
        return out.asnumpy().tolist() == values.cumsum().tolist()

    try:
        found = []
        for driver.late in range(3):
            found.append([is_right(order) for order in range(3)])
    finally:
        driver.late = None
    relaxed, *ordered = map(all, zip(*found, strict=True))
    assert not relaxed
    assert ordered == [True, True]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "name", ["sum of int64", "sum of int32", "mask", "indices", "histogram", "median"]
)
def test_groups_that_wait_for_others_are_right_with_late_stores(
    name: str, seed: int, gpu: dp.Device, driver: StandIn
) -> None:
    call = calls_on(gpu, 40_009)[name]
    expected = call()
    gpu.wait()
    driver.late = seed
    found = call()
    gpu.wait()
    driver.late = None
    pairs = zip(found, expected, strict=True) if type(found) is tuple else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
