"""Arrays of other libraries of CUDA, over the same memory and with work pending on both sides."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as cuda

import dparray as dp
from dparray._driver import driver_of
from dparray._runtime import rounding
from dparray.memory import dlpack_capsules
from tests.cuda.standin import StandIn

VALUES = np.arange(24.0).reshape(4, 6)


@pytest.fixture
def gpu(driver: StandIn) -> dp.Device:
    """Return the first GPU of the stand-in, whose streams are late."""
    device = dp.Device("cuda:0")
    # Arrays of other tests are freed now: freeing memory waits for work that a test holds.
    driver_of(device.queue).wait_for_kept(device.queue)
    gc.collect()
    driver.configure(seed=5, delay=20_000)
    return device


class Foreign:
    """An array of another library, in its own memory and with work on its own stream."""

    def __init__(self, stream: Any, values: np.ndarray, is_read_only: bool = False) -> None:
        self.stream, self.handle = stream, int(stream.handle)
        self.shape, self.strides, self.dtype = values.shape, values.strides, values.dtype
        self.is_read_only, self.nbytes = is_read_only, values.nbytes
        self.pointer = int(cuda.cuMemAlloc(values.nbytes)[1])
        self.source = values.copy("K")
        self.write(self.source)

    def write(self, values: np.ndarray) -> None:
        """Write on the stream, without waiting."""
        self.source = values.copy("K")
        cuda.cuMemsetD8Async(self.pointer, 255, self.nbytes, self.handle)
        at = self.source.ctypes.data
        cuda.cuMemcpyHtoDAsync(self.pointer, at, self.nbytes, self.handle)

    def read(self, pointer: int) -> np.ndarray:
        """Read elements of another array on the stream."""
        found = np.empty(self.shape, self.dtype)
        cuda.cuMemcpyDtoHAsync(found.ctypes.data, pointer, self.nbytes, self.handle)
        cuda.cuStreamSynchronize(self.handle)
        return found

    def __del__(self) -> None:
        cuda.cuMemFree(self.pointer)


class WithInterface(Foreign):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, self.is_read_only),
            "strides": self.strides,
            "stream": self.handle,
            "version": 3,
        }


class WithDLPack(Foreign):
    """Of DLPack 1, or of the time before."""

    takes_version = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        if max_version is not None and not self.takes_version:
            raise TypeError("unexpected argument max_version")
        self.asked = stream
        _, event = cuda.cuEventCreate(0)
        cuda.cuEventRecord(event, self.handle)
        cuda.cuStreamWaitEvent(stream, event, 0)
        return dlpack_capsules.capsule_of(
            self, self.pointer, (2, 0), self.shape, self.strides, self.dtype, self.is_read_only,
            max_version is not None,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "convert"),
    [(WithInterface, dp.asarray), (WithDLPack, dp.asarray), (WithDLPack, dp.from_dlpack)],
)
def test_foreign_arrays_share_memory_after_their_work(
    gpu: dp.Device, stream: Any, kind: type[Foreign], convert: Any
) -> None:
    theirs = kind(stream, VALUES)
    x = convert(theirs)
    assert x.block.pointer == theirs.pointer
    assert x.device == gpu
    np.testing.assert_array_equal((x * 2).asnumpy(), VALUES * 2)
    x += 1  # they read what we wrote, in our order
    found = x.__cuda_array_interface__
    cuda.cuStreamSynchronize(found["stream"])
    np.testing.assert_array_equal(theirs.read(found["data"][0]), VALUES + 1)


def test_streams_that_capture_a_graph_are_refused(gpu: dp.Device, stream: Any) -> None:
    theirs, x = WithInterface(stream, VALUES), dp.asarray(VALUES, device=gpu)
    mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    assert cuda.cuStreamBeginCapture(stream.handle, mode) == (0,)
    with pytest.raises(dp.DeviceError, match="is capturing a CUDA graph"):
        dp.asarray(theirs)
    with pytest.raises(dp.DeviceError, match="is capturing a CUDA graph"):
        x.__dlpack__(stream=int(stream.handle))
    np.testing.assert_array_equal((x + 1).asnumpy(), VALUES + 1)  # other work goes on
    assert cuda.cuStreamEndCapture(stream.handle)[0] == 0
    np.testing.assert_array_equal((dp.asarray(theirs) + x).asnumpy(), VALUES * 2)


@pytest.mark.parametrize("takes_version", [True, False])
def test_dlpack_before_version_1(gpu: dp.Device, stream: Any, takes_version: bool) -> None:
    theirs = WithDLPack(stream, VALUES[::-1].T.copy("F"))
    theirs.takes_version = takes_version
    x = dp.from_dlpack(theirs)
    assert theirs.asked == gpu.queue.__cuda_stream__()[1]
    np.testing.assert_array_equal(x.asnumpy(), VALUES[::-1].T)


@pytest.mark.parametrize("kind", [WithInterface, WithDLPack])
def test_read_only_memory_is_copied(gpu: dp.Device, stream: Any, kind: type[Foreign]) -> None:
    theirs = kind(stream, VALUES, is_read_only=True)
    x = dp.asarray(theirs)
    assert x.block.pointer != theirs.pointer
    np.testing.assert_array_equal(x.asnumpy(), VALUES)
    with pytest.raises(ValueError, match="read-only"):
        dp.asarray(theirs, copy=False)


@pytest.mark.parametrize("kind", [WithInterface, WithDLPack])
def test_a_foreign_array_lives_as_long_as_ours(
    gpu: dp.Device, stream: Any, kind: type[Foreign]
) -> None:
    theirs = kind(stream, VALUES)
    alive = weakref.ref(theirs)
    x = dp.asarray(theirs)
    del theirs
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(x.asnumpy(), VALUES)
    del x
    driver_of(gpu.queue).wait_for_kept(gpu.queue)  # the copies above
    gc.collect()
    assert alive() is None


def test_wrong_interfaces_are_refused(gpu: dp.Device, stream: Any) -> None:
    theirs = WithInterface(stream, VALUES)
    theirs.shape = (4000, 6000)
    theirs.strides = (48000, 8)
    with pytest.raises(dp.ArgumentError, match=r"declares memory from .* shape \(4000, 6000\)"):
        dp.asarray(theirs)
    theirs = WithInterface(stream, VALUES)
    theirs.handle = 0
    with pytest.raises(dp.ArgumentError, match="stream 0"):
        dp.asarray(theirs)


@pytest.mark.parametrize(("usm_type", "kind"), [("device", 2), ("shared", 13), ("host", 3)])
def test_our_capsules(gpu: dp.Device, stream: Any, usm_type: str, kind: int) -> None:
    theirs = Foreign(stream, VALUES)
    x = dp.asarray(VALUES, device=gpu, usm_type=usm_type) + 1  # pending
    assert x.__dlpack_device__() == (kind, 0)
    capsule = x[1:, ::2].__dlpack__(stream=theirs.handle, max_version=(1, 0))
    found = dlpack_capsules.take(capsule)
    assert (found.shape, found.strides) == ((3, 3), (48, 16))
    assert found.device == (kind, 0)
    assert found.pointer == x.block.pointer + 48
    np.testing.assert_array_equal(theirs.read(x.block.pointer), VALUES + 1)
    alive = weakref.ref(x.block)
    del x
    gc.collect()
    assert alive() is not None
    del found, capsule
    gc.collect()
    assert alive() is None


def test_our_arrays_go_round(gpu: dp.Device) -> None:
    for dtype in ("bool", "int8", "uint16", "float16", "float32", "complex128", "int64"):
        x = dp.asarray(VALUES, dtype=dtype, device=gpu)

        class Shown:
            __dlpack__ = x.__dlpack__
            __dlpack_device__ = x.__dlpack_device__

        y = dp.from_dlpack(Shown())
        assert y.block.pointer == x.block.pointer
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
    x.__dlpack__()  # a capsule that nobody takes
    alive = weakref.ref(x.block)
    del x, y, Shown
    gc.collect()
    assert alive() is None


def test_a_consumer_that_refuses_a_capsule(gpu: dp.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    x = dp.asarray(VALUES, device=gpu)
    alive = weakref.ref(x.block)
    with pytest.raises((BufferError, RuntimeError), match="device"):  # by NumPy's version
        np.from_dlpack(x)
    del x
    gc.collect()
    assert not ignored
    assert alive() is None


def test_other_devices_of_dlpack(gpu: dp.Device) -> None:
    x = dp.asarray(VALUES, device=gpu)
    with dp.config.override(fallback="allow"):
        np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), VALUES)
    with pytest.raises(BufferError, match=r"DLPack device \(2, 0\), not \(2, 1\)"):
        x.__dlpack__(dl_device=(2, 1))
    with pytest.raises(dp.ArgumentError, match="stream=0"):
        x.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="read-only"):
        dp.broadcast_to(x[0], (3, 6)).__dlpack__()


# --- operands ------------------------------------------------------------------------------------


OPERATIONS: dict[str, Any] = {
    "operator": (lambda x, c: x + c, VALUES * 2),
    "scalar": (lambda x, c: dp.multiply(c, 2), VALUES * 2),
    "comparison": (lambda x, c: x == c, VALUES == VALUES),
    "ufunc": (lambda x, c: np.add(c, x), VALUES * 2),
    "where": (lambda x, c: dp.where(c > x, x, c), VALUES),
    "reduction": (lambda x, c: dp.sum(c, axis=0), VALUES.sum(0)),
    "joined": (lambda x, c: dp.concat([c, x]), np.concatenate([VALUES, VALUES])),
    "sequence": (lambda x, c: dp.asarray([c, x]), np.stack([VALUES, VALUES])),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operands_of_other_libraries_share_their_memory(
    gpu: dp.Device, stream: Any, name: str
) -> None:
    operate, expected = OPERATIONS[name]
    found = operate(dp.asarray(VALUES, device=gpu), WithInterface(stream, VALUES))
    assert isinstance(found, dp.ndarray)
    assert found.device == gpu
    np.testing.assert_array_equal(found.asnumpy(), expected)


def test_operands_are_read_before_later_work_of_their_owner(
    driver: StandIn, gpu: dp.Device, stream: Any
) -> None:
    x, y = dp.asarray(VALUES, device=gpu), dp.zeros(VALUES.shape, device=gpu)
    for seed in range(8):
        driver.configure(seed, delay=2000)
        theirs = WithInterface(stream, VALUES)
        with driver.held():  # all of this is submitted before any of it runs
            found = x * 2 + theirs
            y[...] = theirs
            x += theirs
            x -= theirs
            theirs.write(np.zeros_like(VALUES))
        np.testing.assert_array_equal(found.asnumpy(), VALUES * 3)
        np.testing.assert_array_equal(y.asnumpy(), VALUES)
        np.testing.assert_array_equal(x.asnumpy(), VALUES)


def test_operands_on_other_queues_are_refused(gpu: dp.Device, stream: Any) -> None:
    theirs = WithInterface(stream, VALUES)
    for device in (gpu.new_queue(), dp.Device("cuda:1")):
        with pytest.raises(dp.ExecutionPlacementError, match="to_device"):
            dp.asarray(VALUES, device=device) + theirs


def test_read_only_operands_are_not_written(gpu: dp.Device, stream: Any) -> None:
    theirs = WithInterface(stream, VALUES, is_read_only=True)
    np.testing.assert_array_equal((dp.ones(6, device=gpu) + theirs).asnumpy(), VALUES + 1)


class WithBoth(WithDLPack):
    """An array like PyTorch's: its interface names no stream, but its DLPack orders."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 2,
        }


def test_interfaces_without_a_stream_are_ordered_by_dlpack(
    driver: StandIn, gpu: dp.Device, stream: Any
) -> None:
    kept = []  # memory is freed after its work, which is held
    for seed in range(8):
        driver.configure(seed, delay=2000)
        with driver.held():
            theirs = WithBoth(stream, VALUES)
            kept.append(theirs)
            x, y = dp.asarray(theirs), dp.ones(VALUES.shape, device=gpu) + theirs
            assert x.block.pointer == theirs.pointer
        np.testing.assert_array_equal(x.asnumpy(), VALUES)
        np.testing.assert_array_equal(y.asnumpy(), VALUES + 1)


# --- arguments of kernels -------------------------------------------------------------------------


@dp.kernel
def add_to(item: Any, x: Any, y: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    y[i, j] += x[i, j]


class OfTheHost(WithBoth):
    """An array like PyTorch's on the CPU: the interface of its class raises."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("not on a GPU")


@pytest.mark.parametrize("kind", [WithInterface, WithBoth])
@pytest.mark.parametrize("writes", ["theirs", "ours", "theirs, of a view"])
def test_kernels_take_arrays_of_other_libraries(
    gpu: dp.Device, stream: Any, kind: type[Foreign], writes: str
) -> None:
    theirs = kind(stream, VALUES)
    x = dp.asarray(VALUES, device=gpu) * 3  # pending
    if writes == "ours":
        dp.call_kernel(add_to, VALUES.shape, theirs, x)
        np.testing.assert_array_equal(x.asnumpy(), VALUES * 4)
        return
    if writes == "theirs":
        event = add_to[VALUES.shape](x, theirs)
    else:
        event = dp.call_kernel(add_to, VALUES.shape, y=theirs, x=dp.flip(x))
    event.wait()
    expected = VALUES + (VALUES * 3 if writes == "theirs" else VALUES[::-1, ::-1] * 3)
    np.testing.assert_array_equal(theirs.read(theirs.pointer), expected)


@pytest.mark.parametrize("limit", [rounding.INDEX_LIMIT, 16], ids=["one launch", "in pieces"])
def test_kernels_are_ordered_with_the_streams_of_their_arguments(
    monkeypatch: pytest.MonkeyPatch, driver: StandIn, gpu: dp.Device, stream: Any, limit: int
) -> None:
    monkeypatch.setattr(rounding, "INDEX_LIMIT", limit)
    kept = []  # memory is freed after its work, which is held
    for seed in range(8):
        driver.configure(seed, delay=2000)
        theirs, total = WithInterface(stream, VALUES), dp.asarray(VALUES, device=gpu)
        kept.append(theirs)
        with driver.held():  # all of this is submitted before any of it runs
            dp.call_kernel(add_to, VALUES.shape, theirs, total)
            dp.call_kernel(add_to, VALUES.shape, total, theirs)
            theirs.write(np.zeros_like(VALUES))
        np.testing.assert_array_equal(total.asnumpy(), VALUES * 2)
        np.testing.assert_array_equal(theirs.read(theirs.pointer), np.zeros_like(VALUES))


def test_compiled_functions_take_arrays_of_other_libraries(gpu: dp.Device, stream: Any) -> None:
    @dp.jit
    def added(x: Any, y: Any) -> Any:
        for i in dp.prange(x.shape[0]):
            y[i] += x[i]
        return y * 2

    theirs = WithInterface(stream, VALUES[0])
    found = added(dp.ones(6, device=gpu), theirs)
    np.testing.assert_array_equal(found.asnumpy(), (VALUES[0] + 1) * 2)
    np.testing.assert_array_equal(theirs.read(theirs.pointer), VALUES[0] + 1)


def test_pending_views_are_computed_before_a_kernel_writes(gpu: dp.Device, stream: Any) -> None:
    theirs = WithInterface(stream, VALUES)
    pending = dp.asarray(theirs) * 2
    dp.call_kernel(add_to, VALUES.shape, dp.ones(VALUES.shape, device=gpu), theirs)
    np.testing.assert_array_equal(pending.asnumpy(), VALUES * 2)


def test_kernels_refuse_arguments_of_other_libraries(gpu: dp.Device, stream: Any) -> None:
    theirs, shape = WithInterface(stream, VALUES), VALUES.shape
    for device in (gpu.new_queue(), dp.Device("cuda:1")):
        with pytest.raises(dp.ExecutionPlacementError, match="to_device"):
            dp.call_kernel(add_to, shape, theirs, dp.zeros(shape, device=device))
    unwritable = WithInterface(stream, VALUES, is_read_only=True)
    x = dp.zeros(shape, device=gpu)
    dp.call_kernel(add_to, shape, unwritable, x)
    np.testing.assert_array_equal(x.asnumpy(), VALUES)
    with pytest.raises(dp.KernelCompileError, match="read-only"):
        dp.call_kernel(add_to, shape, x, unwritable)
    with pytest.raises(dp.KernelArgumentError, match=r"argument 'x' .*dp.asarray\(values\)"):
        dp.call_kernel(add_to, shape, OfTheHost(stream, VALUES), x)


def test_arguments_live_until_the_kernel_has_run(
    driver: StandIn, gpu: dp.Device, stream: Any
) -> None:
    theirs, total = WithInterface(stream, VALUES), dp.asarray(VALUES, device=gpu)
    alive = weakref.ref(theirs)
    with driver.held():
        dp.call_kernel(add_to, VALUES.shape, theirs, total)
        del theirs
        gc.collect()
        assert alive() is not None
    np.testing.assert_array_equal(total.asnumpy(), VALUES * 2)
    driver_of(gpu.queue).wait_for_kept(gpu.queue)
    gc.collect()
    assert alive() is None
