"""The stand-in for libcuda.so.1 behaves as CUDA's manual says, below cuda-core and bindings."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as cuda
from cuda.core import Device, LaunchConfig, ObjectCode, StreamOptions, launch

HEAD = ".version 6.3\n.target sm_75\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .f32 %f<9>;
.reg .b64 %rd<20>;
"""


def compiled(body: str, parameters: str, outside: str = "") -> Any:
    """Return a kernel of this body, whose 64-bit parameters ``a``, ``b`` are in %rd1, %rd2."""
    declared = ", ".join(f".param .u64 {each}" for each in parameters)
    loads = "".join(f"ld.param.u64 %rd{at}, [{each}];\n" for at, each in enumerate(parameters, 1))
    text = f"{HEAD}{outside}.visible .entry k({declared})\n{{\n{REGISTERS}{loads}{body}\nret;\n}}\n"
    return ObjectCode.from_ptx(text.encode()).get_kernel("k")


def value(result: tuple[Any, ...]) -> Any:
    """Return the value of a call of cuda-bindings, which must succeed."""
    assert result[0] == cuda.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) > 1 else None


def code(result: tuple[Any, ...]) -> str:
    return str(result[0].name)


def allocated(nbytes: int) -> int:
    return int(value(cuda.cuMemAlloc(nbytes)))


def put(values: np.ndarray, stream: Any) -> int:
    address = allocated(values.nbytes)
    value(cuda.cuMemcpyAsync(address, values.ctypes.data, values.nbytes, stream.handle))
    return address


def got(address: int, dtype: str, count: int, stream: Any) -> np.ndarray:
    found = np.empty(count, dtype)
    value(cuda.cuMemcpyAsync(found.ctypes.data, address, found.nbytes, stream.handle))
    return found


#: Threads i of a block add a[i] to b[0].
ADDS = """mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.u32 %r2, [%rd4];
atom.global.add.u32 %r3, [%rd2], %r2;
"""
WRITES = "mov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;"


# --- devices and contexts -------------------------------------------------------------------------


def test_contexts_are_a_stack_of_each_thread(stream: Any) -> None:
    value(cuda.cuInit(0))
    first = value(cuda.cuCtxGetCurrent())
    other = value(cuda.cuDevicePrimaryCtxRetain(1))
    value(cuda.cuCtxPushCurrent(other))
    assert int(value(cuda.cuCtxGetDevice())) == 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(int(value(cuda.cuCtxGetCurrent()))))
    thread.start()
    thread.join()
    assert seen == [0]
    assert int(value(cuda.cuCtxPopCurrent())) == int(other)
    assert int(value(cuda.cuCtxGetCurrent())) == int(first)


def test_a_child_of_a_fork_has_no_driver(stream: Any) -> None:
    def ask(connection: Any) -> None:
        connection.send(code(cuda.cuDeviceGetCount()))

    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=ask, args=(there,))
    child.start()
    assert here.recv() == "CUDA_ERROR_NOT_INITIALIZED"
    child.join()


# --- memory ---------------------------------------------------------------------------------------


def test_the_host_reaches_pinned_and_managed_memory(stream: Any) -> None:
    managed = value(cuda.cuMemAllocManaged(64, 1))
    pinned = value(cuda.cuMemHostAlloc(64, 1))
    for address in (int(managed), int(pinned)):
        view = np.ctypeslib.as_array((ctypes.c_uint32 * 16).from_address(address))
        view[:] = 3
        launch(stream, LaunchConfig(grid=1, block=1), compiled(WRITES, "a"), address)
        stream.sync()
        assert (view[0], view[1]) == (7, 3)
    attributes = cuda.CUpointer_attribute
    asked = attributes.CU_POINTER_ATTRIBUTE_IS_MANAGED
    assert value(cuda.cuPointerGetAttribute(asked, managed))
    assert not value(cuda.cuPointerGetAttribute(asked, int(pinned)))
    kind = attributes.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    assert int(value(cuda.cuPointerGetAttribute(kind, int(pinned)))) == 1
    assert code(cuda.cuPointerGetAttribute(kind, id(stream))) == "CUDA_ERROR_INVALID_VALUE"
    value(cuda.cuMemFree(managed))
    value(cuda.cuMemFreeHost(pinned))


def test_a_stray_access_of_the_host_is_a_fault() -> None:
    program = """if True:
        import ctypes
        from tests.cuda import standin
        standin.install()
        from cuda.bindings import driver as cuda
        from cuda.core import Device
        Device(0).set_current()
        address = int(cuda.cuMemAlloc(64)[1])
        print("allocated", flush=True)
        print((ctypes.c_char * 64).from_address(address).raw)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("allocated\n", -11), done.stderr


def test_freed_and_foreign_memory_is_refused(stream: Any) -> None:
    address = allocated(64)
    value(cuda.cuMemFree(address))
    assert code(cuda.cuMemFree(address)) == "CUDA_ERROR_INVALID_VALUE"
    assert code(cuda.cuMemsetD8Async(address, 0, 1, stream.handle)) == "CUDA_ERROR_INVALID_VALUE"
    assert code(cuda.cuMemAlloc(1 << 40)) == "CUDA_ERROR_OUT_OF_MEMORY"


# --- kernels --------------------------------------------------------------------------------------


def test_a_kernel_with_atomics(stream: Any) -> None:
    values = np.arange(256, dtype="u4")
    a, b = put(values, stream), put(np.zeros(1, "u4"), stream)
    kernel = compiled(ADDS, "ab")
    assert kernel.num_arguments == 2
    launch(stream, LaunchConfig(grid=3, block=256), kernel, a, b)
    assert got(b, "u4", 1, stream)[0] == 3 * values.sum()


def test_large_shared_memory_must_be_asked_for(stream: Any) -> None:
    kernel = compiled(WRITES, "a")
    function = cuda.CUfunction(int(kernel.handle))
    a = put(np.zeros(1, "u4"), stream)
    holder = ctypes.c_uint64(a)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(holder))

    def launched(nbytes: int) -> str:
        place = ctypes.addressof(params)
        return code(
            cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, nbytes, stream.handle, place, 0)
        )

    assert launched(100 << 10) == "CUDA_ERROR_INVALID_VALUE"
    attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert code(cuda.cuFuncSetAttribute(function, attribute, 228 << 10)) == (
        "CUDA_ERROR_INVALID_VALUE"
    )
    value(cuda.cuFuncSetAttribute(function, attribute, 100 << 10))
    assert launched(100 << 10) == "CUDA_SUCCESS"


def test_modules_that_are_no_ptx_are_rejected_with_a_log(stream: Any) -> None:
    assert code(cuda.cuLibraryLoadData(b"\x7fELF", [], [], 0, [], [], 0)) == (
        "CUDA_ERROR_NO_BINARY_FOR_GPU"
    )
    text = f"{HEAD}.visible .entry k()\n{{\n-;\n}}\n".encode()
    log = bytes(200)  # cuda-bindings passes its address
    options = cuda.CUjit_option
    chosen = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    result = cuda.cuLibraryLoadData(text, chosen, [log, len(log)], 2, [], [], 0)
    assert code(result) == "CUDA_ERROR_INVALID_PTX"
    assert b"cannot read" in log


def test_kernels_print_when_they_have_run(stream: Any, capfd: pytest.CaptureFixture[str]) -> None:
    body = """.local .align 8 .b8 buffer[8];
    mov.u64 %rd2, buffer;
    cvta.local.u64 %rd3, %rd2;
    mov.u32 %r1, 42;
    st.local.u32 [%rd2], %r1;
    mov.u64 %rd4, words;
    cvta.global.u64 %rd5, %rd4;
    { .param .b64 one; st.param.b64 [one], %rd5;
    .param .b64 two; st.param.b64 [two], %rd3;
    .param .b32 back;
    call.uni (back), vprintf, (one, two);
    ld.param.b32 %r2, [back]; }
    """
    octets = ", ".join(map(str, b"it is %d\n\0"))
    outside = (
        ".extern .func (.param .b32 back) vprintf(.param .b64 a, .param .b64 b);\n"
        f".global .align 1 .b8 words[10] = {{{octets}}};\n"
    )
    launch(stream, LaunchConfig(grid=1, block=1), compiled(body, "", outside))
    stream.sync()
    assert capfd.readouterr().out == "it is 42\n"


# --- order ----------------------------------------------------------------------------------------


def test_work_comes_late_and_events_say_when(driver: Any, stream: Any) -> None:
    driver.configure(seed=1, delay=300_000)
    pinned = int(value(cuda.cuMemHostAlloc(4, 0)))
    view = ctypes.c_uint32.from_address(pinned)
    view.value = 1
    launch(stream, LaunchConfig(grid=1, block=1), compiled(WRITES, "a"), pinned)
    event = stream.record()
    assert not event.is_done
    assert view.value == 1
    event.sync()
    assert event.is_done
    assert view.value == 7


@pytest.mark.parametrize("waits", [False, True])
def test_streams_are_ordered_by_events_alone(driver: Any, stream: Any, waits: bool) -> None:
    """Without a wait, the copy of the other stream comes first in some of the orders."""
    other = Device(0).create_stream()
    kernel = compiled(WRITES, "a")
    seen = set()
    for seed in range(1, 13):
        driver.configure(seed=seed, delay=100)
        a = put(np.zeros(1, "u4"), stream)
        stream.sync()
        launch(stream, LaunchConfig(grid=1, block=1), kernel, a)
        if waits:
            other.wait(stream.record())
        seen.add(int(got(a, "u4", 1, other)[0]))
    assert seen == ({7} if waits else {0, 7})


def test_the_default_stream_waits_for_blocking_streams(driver: Any, stream: Any) -> None:
    blocking = Device(0).create_stream(options=StreamOptions(nonblocking=False))
    driver.configure(seed=3, delay=10_000)
    a = put(np.zeros(1, "u4"), blocking)
    launch(blocking, LaunchConfig(grid=1, block=1), compiled(WRITES, "a"), a)
    found = np.empty(1, "u4")
    value(cuda.cuMemcpyDtoH(found.ctypes.data, a, 4))
    assert found[0] == 7


def test_a_wait_that_keeps_the_interpreter_lock_ends(stream: Any) -> None:
    """dparray's C code may call the driver so; a launch of the stand-in needs that lock."""
    a = put(np.zeros(1, "u4"), stream)
    launch(stream, LaunchConfig(grid=1, block=1), compiled(WRITES, "a"), a)
    library = ctypes.PyDLL("libcuda.so.1")
    assert library.cuStreamSynchronize(ctypes.c_void_p(int(stream.handle))) == 0
    assert got(a, "u4", 1, stream)[0] == 7


def test_memory_is_freed_after_the_work_that_uses_it(driver: Any, stream: Any) -> None:
    driver.messages.clear()
    driver.configure(seed=1, delay=50_000)
    a = put(np.zeros(1, "u4"), stream)
    launch(stream, LaunchConfig(grid=1, block=1), compiled(WRITES, "a"), a)
    value(cuda.cuMemFree(a))
    stream.sync()
    assert not driver.messages


# --- failures -------------------------------------------------------------------------------------


def test_a_chosen_call_is_refused(driver: Any, stream: Any) -> None:
    driver.refuse("allocation", 2)
    allocated(16)
    assert code(cuda.cuMemAlloc(16)) == "CUDA_ERROR_OUT_OF_MEMORY"
    allocated(16)
    driver.refuse("module", 1, "INVALID_PTX")
    text = f"{HEAD}.visible .entry k()\n{{\nret;\n}}\n".encode()
    assert code(cuda.cuLibraryLoadData(text, [], [], 0, [], [], 0)) == "CUDA_ERROR_INVALID_PTX"
    before = driver.calls("copy")
    got(put(np.zeros(1), stream), "f8", 1, stream)
    assert driver.calls("copy") == before + 2


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("mov.u64 %rd2, 64;\nst.global.u32 [%rd2], %r1;", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("st.global.u32 [%rd1+4], %r1;", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("st.global.u32 [%rd1+1], %r1;", "CUDA_ERROR_MISALIGNED_ADDRESS"),
        ("trap;", "CUDA_ERROR_LAUNCH_FAILED"),
    ],
)
def test_a_fault_makes_the_context_unusable(
    driver: Any, stream: Any, body: str, error: str
) -> None:
    a = put(np.zeros(1, "u4"), stream)
    kernel = compiled(body, "a")
    launch(stream, LaunchConfig(grid=1, block=1), kernel, a)
    assert code(cuda.cuStreamSynchronize(stream.handle)) == error
    assert code(cuda.cuMemAlloc(16)) == error
    assert code(cuda.cuStreamQuery(stream.handle)) == error
    assert "kernel k" in driver.messages.pop()
    driver.repair(0)
    value(cuda.cuStreamSynchronize(stream.handle))


def test_reads_of_memory_that_nothing_has_written_are_noticed() -> None:
    program = """if True:
        from tests.cuda.driver.test_standin import ADDS, Device, LaunchConfig, allocated, compiled
        from tests.cuda.driver.test_standin import code, cuda, launch, np, put
        Device(0).set_current()
        stream = Device(0).create_stream()
        a, b = allocated(8), put(np.zeros(1, "u4"), stream)
        cuda.cuMemsetD8Async(a, 1, 4, stream.handle)
        for count in (1, 2):
            launch(stream, LaunchConfig(grid=1, block=count), compiled(ADDS, "ab"), a, b)
            print(code(cuda.cuStreamSynchronize(stream.handle)))
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_STANDIN_WRITTEN": "1"},
    )
    assert done.stdout.split() == ["CUDA_SUCCESS", "CUDA_ERROR_LAUNCH_FAILED"], done.stderr
    assert "where nothing was written" in done.stderr


def test_a_kernel_does_not_reach_another_device_without_peer_access(
    driver: Any, stream: Any
) -> None:
    a = put(np.zeros(1, "u4"), stream)
    Device(1).set_current()
    other = Device(1).create_stream()
    kernel = compiled(WRITES, "a")
    launch(other, LaunchConfig(grid=1, block=1), kernel, a)
    assert code(cuda.cuStreamSynchronize(other.handle)) == "CUDA_ERROR_ILLEGAL_ADDRESS"
    driver.messages.clear()
    driver.repair(1)
    value(cuda.cuCtxEnablePeerAccess(value(cuda.cuDevicePrimaryCtxRetain(0)), 0))
    launch(other, LaunchConfig(grid=1, block=1), kernel, a)
    other.sync()
    value(cuda.cuCtxDisablePeerAccess(value(cuda.cuDevicePrimaryCtxRetain(0))))
    Device(0).set_current()
    assert got(a, "u4", 1, stream)[0] == 7


def test_a_lost_device_fails_in_every_call_and_waits_end(driver: Any, stream: Any) -> None:
    driver.configure(seed=1, delay=100_000)
    a = put(np.zeros(1, "u4"), stream)
    launch(stream, LaunchConfig(grid=1, block=1), compiled(WRITES, "a"), a)
    driver.lose(0)
    assert code(cuda.cuStreamSynchronize(stream.handle)) == "CUDA_ERROR_UNKNOWN"
    assert code(cuda.cuMemAlloc(16)) == "CUDA_ERROR_UNKNOWN"
    assert code(cuda.cuDevicePrimaryCtxRetain(0)) == "CUDA_ERROR_UNKNOWN"
    assert code(cuda.cuDevicePrimaryCtxRetain(1)) == "CUDA_SUCCESS"


def test_callbacks_of_the_host_are_refused(stream: Any) -> None:
    assert code(cuda.cuLaunchHostFunc(stream.handle, 0, 0)) == "CUDA_ERROR_NOT_SUPPORTED"
