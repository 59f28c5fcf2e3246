"""Threads that launch one kernel for the first time: launched kernels are never freed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._kernel import function as functions
from tests.standin import Device, Queue, StandIn
from tests.support import run_in_threads

SOURCE = """
.version 7.1
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 fill_x, .param .u32 fill_value)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [fill_x];
    ld.param.u32 %r1, [fill_value];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r2, %r2, %r3, %r4;
    cvt.rn.f32.s32 %f1, %r1;
    mul.wide.s32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
"""


def compiled_kernel() -> Any:
    @dp.kernel
    def fill(item: dp.Item, x: Any, value: Any) -> None:
        x[item.get_id(0)] = value

    return fill


@pytest.mark.parametrize("make", [compiled_kernel, lambda: dp.raw_kernel(SOURCE, "fill")])
def test_threads_that_build_a_kernel_launch_the_kept_one(make: Any, standin: StandIn) -> None:
    """Two threads build it at the same time, for different ranges, and both continue with it.

    Only one of the two kernels is kept. The other's address was stored with its thread's range, so
    that the next launch of that range ended the process; the stand-in raises.
    """
    standin.found = Device("standin:0"), Device("standin:1")
    device, elsewhere = map(Queue, standin.found)
    kernel = make()
    # compile it
    kernel[dp.Range(10)](dp.zeros(10, dtype="float32", device=elsewhere), np.int32(7))
    arrays = [dp.zeros(size, dtype="float32", device=device) for size in (1000, 2000)]
    dp.eval(*arrays)
    before = len(standin.loaded)

    def work(number: int) -> None:
        kernel[dp.Range(arrays[number].size)](arrays[number], np.int32(7))

    standin.on_load = threading.Barrier(2, timeout=60).wait
    run_in_threads(work, 2)
    standin.run(device)  # work keeps its kernel
    assert len(standin.loaded) == before + 2
    for x in arrays:
        kernel[dp.Range(x.size)](x, np.int32(8))
        assert (x.asnumpy() == 8).all()
    assert len(standin.loaded) == before + 2


SCALE = 2.0


def test_a_kernel_compiled_meanwhile_with_another_value_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a thread compiles it, its global gets a new value and it is launched elsewhere.

    The thread's kernel had the old value, but was stored with the others and not marked as old.
    """

    @dp.kernel
    def scaled(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * SCALE

    is_compiled, may_go_on = threading.Event(), threading.Event()
    obtain = functions.compile.obtain_kernel

    def obtained(function: Any, types: Any, *rest: Any) -> Any:
        found = obtain(function, types, *rest)
        if threading.current_thread().name == "compiles":
            is_compiled.set()
            assert may_go_on.wait(60)
        return found

    monkeypatch.setattr(functions.compile, "obtain_kernel", obtained)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    x, y = dp.ones(10, dtype="float32"), dp.ones(10, dtype="float64")
    scaled[dp.Range(10)](y)
    z = dp.ones(10, dtype="float32")
    thread = threading.Thread(target=lambda: scaled[dp.Range(10)](x), name="compiles")
    thread.start()
    assert is_compiled.wait(60)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    scaled[dp.Range(10)](y)
    may_go_on.set()
    thread.join()
    scaled[dp.Range(10)](z)
    assert (x.asnumpy() == 2).all()
    assert (y.asnumpy() == 6).all()
    assert (z.asnumpy() == 3).all()


def test_a_kernel_may_be_forgotten_while_it_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread finds the old value between a launch's reads of the kernel and its order."""

    @dp.kernel
    def scaled(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * SCALE

    x, y = dp.ones(10, dtype="float32"), dp.ones(10, dtype="float64")
    compile_ = functions.KernelFunction._compile

    def compiled(kernel: Any, *given: Any) -> Any:
        found = compile_(kernel, *given)
        monkeypatch.setattr(functions.KernelFunction, "_compile", compile_)
        monkeypatch.setitem(globals(), "SCALE", 3.0)
        scaled[dp.Range(10)](y)
        return found

    monkeypatch.setitem(globals(), "SCALE", 2.0)
    monkeypatch.setattr(functions.KernelFunction, "_compile", compiled)
    for _ in range(2):
        scaled[dp.Range(10)](x)
    assert (x.asnumpy() == 6).all()
    assert (y.asnumpy() == 3).all()


def test_threads_that_check_a_kernel_at_the_same_time_both_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second thread arrives while the first one makes the checking copy."""

    @dp.kernel
    def beyond(item: dp.Item, x: Any) -> None:
        x[item.get_id(0) + 5] = 1

    is_made, is_checked = threading.Event(), threading.Event()
    failures = []
    made = functions.KernelFunction

    def work() -> None:
        try:
            beyond[dp.Range(10)](dp.zeros(10, dtype="float32")).wait()
        except dp.KernelExecutionError as error:
            failures.append(error)

    def making(*given: Any, **named: Any) -> Any:
        found = made(*given, **named)
        if threading.current_thread() is threads[0]:
            is_made.set()
            assert is_checked.wait(60)
        return found

    monkeypatch.setattr(functions, "KernelFunction", making)
    threads = [threading.Thread(target=work) for _ in range(2)]
    monkeypatch.setattr(dp.config, "debug", True)  # of the process: threads do not see a block's
    threads[0].start()
    assert is_made.wait(60)
    threads[1].start()
    threads[1].join()
    is_checked.set()
    threads[0].join()
    assert len(failures) == 2
