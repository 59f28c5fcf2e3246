"""Kernels in OpenCL C and SPIR-V: their arguments, their order, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

# isort: split
import dpctl
import dpnp

SOURCE = """
kernel void fill(global float *x, int value, double factor) {
    x[get_global_id(0)] = value * factor;
}
kernel void index(global int *x) {
    x[get_global_id(0) * get_global_size(1) + get_global_id(1)] =
        100 * get_global_id(0) + get_global_id(1);
}
kernel void reverse(global long *x, local long *part) {
    size_t i = get_local_id(0), n = get_local_size(0);
    part[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = part[n - 1 - i];
}
kernel void twice(global double *x) { x[get_global_id(0)] *= 2; }
"""


def kernel(name: str) -> Any:
    return dp.raw_kernel(SOURCE, name)


def test_arguments_of_one_launch_do_not_affect_the_next() -> None:
    source = """
    kernel void fill(global float *x, local char *part, float value) {
        x[get_global_id(0)] = value;
    }
    """
    fill, x = dp.raw_kernel(source, "fill"), dp.zeros(8, dtype="float32")
    local = dp.LocalAccessor(8, "int8")
    with pytest.raises(dp.KernelError, match=r"in groups of \(8,\).*np\.float32\(2\) for float"):
        fill[dp.NdRange(8, 8)](x, local, 2.0)  # Python's float is a double
    for value in (3, 4):
        fill[dp.NdRange(8, 8)](x, local, np.float32(value))
        assert x.asnumpy().tolist() == [value] * 8
    bits = np.asarray(5, np.float32).view(np.int32)[()]
    fill[dp.NdRange(8, 8)](x, local, bits)  # the same number of bytes
    assert x.asnumpy().tolist() == [5] * 8


@pytest.mark.parametrize("size", [8, 50_000])
def test_a_launch_comes_in_order(queue: Any, size: int) -> None:
    x = dp.zeros(size, sycl_queue=queue)
    before = x + 1  # pending: it reads memory that the kernel is about to write
    x += 3
    twice = kernel("twice")
    event = twice[size](x)
    twice[size](x, depends_on=event)
    after = x + 1
    assert event.queue == queue
    np.testing.assert_array_equal(after.asnumpy(), 13)
    np.testing.assert_array_equal(before.asnumpy(), 1)
    theirs = dpnp.ones(size, sycl_queue=queue)
    twice[size](theirs)
    twice[size - 2](x[2:])
    assert float(theirs.sum()) == 2 * size
    np.testing.assert_array_equal(x.asnumpy()[:4], [12, 12, 24, 24])


def test_arguments_are_those_of_the_kernel(queue: Any) -> None:
    x = dp.zeros(100, dtype="float32", sycl_queue=queue)
    kernel("fill")[dp.Range(100)](x, np.int32(3), 0.5)
    np.testing.assert_array_equal(x.asnumpy(), 1.5)
    y = dp.zeros((3, 4), dtype="int32", sycl_queue=queue)
    kernel("index")[3, 4](y)
    np.testing.assert_array_equal(y.asnumpy(), 100 * np.arange(3)[:, None] + np.arange(4))
    z = dp.arange(32, sycl_queue=queue)
    kernel("reverse")[dp.NdRange((32,), (8,))](z, dp.LocalAccessor(8, dtype=dp.int64))
    expected = np.arange(32).reshape(4, 8)[:, ::-1].ravel()
    np.testing.assert_array_equal(z.asnumpy(), expected)


def test_it_is_launched_as_any_kernel(queue: Any) -> None:
    x = dp.ones(8, sycl_queue=queue)
    first = dp.call_kernel(kernel("twice"), 8, x)
    dp.call_kernel_async(kernel("twice"), dp.Range(8), [first], x)
    assert x.tolist() == [4.0] * 8
    with pytest.raises(dp.KernelArgumentError, match="no names"):
        dp.call_kernel(kernel("twice"), 8, x=x)


def test_what_is_refused(queue: Any) -> None:
    x = dp.zeros(8, sycl_queue=queue)
    other = dp.zeros(8, dtype="float32", sycl_queue=dpctl.SyclQueue(queue.sycl_device))
    twice = kernel("twice")
    for attempt, kind, text in (
        (lambda: twice[8](), dp.KernelArgumentError, "at least one"),
        (lambda: twice[8](x, 1), dp.KernelArgumentError, "takes 1 argument; got 2"),
        (lambda: twice[4](x[::2]), dp.KernelArgumentError, "contiguous"),
        (lambda: twice[8](np.ones(8)), dp.HostConversionError, "NumPy"),
        (lambda: kernel("fill")[8](other, np.ones(1), 1.0), dp.HostConversionError, "NumPy"),
        (lambda: kernel("fill")[8](other, "a", 1.0), dp.KernelArgumentError, "str"),
        (lambda: kernel("fill")[8](other, x, 1.0), dp.ExecutionPlacementError, "one queue"),
        (lambda: twice[-1](x), dp.KernelRangeError, "positive"),
        (lambda: twice["a"](x), dp.KernelRangeError, "range"),
        (lambda: kernel("none")[8](x), dp.KernelCompileError, "no kernel of that name"),
        (lambda: dp.raw_kernel("kernel void f(", "f")[8](x), dp.KernelCompileError, "expected"),
        (lambda: dp.raw_kernel(b"text", "f"), dp.KernelArgumentError, "SPIR-V"),
        (lambda: dp.raw_kernel(3, "f"), dp.KernelArgumentError, "neither"),
        (lambda: dp.raw_kernel(SOURCE, ""), dp.KernelArgumentError, "name"),
        # A 4-byte int gets 8 bytes: the driver checks the size.
        (lambda: kernel("fill")[8](other, 3, 1.0), dp.KernelExecutionError, "rejected"),
    ):
        with pytest.raises(kind, match=text):
            attempt()
    np.testing.assert_array_equal(x.asnumpy(), 0)
    np.testing.assert_array_equal(other.asnumpy(), 0)


def test_spirv_is_launched(queue: Any) -> None:
    @dp.kernel
    def triple(item, x):
        i = item.get_id(0)
        x[i] = 3 * x[i]

    x = dp.arange(8, sycl_queue=queue)
    triple[8](x)
    (compiled,) = triple._kernels.values()
    again = dp.raw_kernel(compiled.module, compiled.entry)
    # First come the sizes of the range, which may be rounded up. An array of it consists of its
    # size, the size of an element, a pointer, the length and the stride.
    again[16](np.int64(8), np.int64(8), np.int64(8), x, np.int64(8), np.int64(8))
    np.testing.assert_array_equal(x.asnumpy(), 9 * np.arange(8))


def _words(*words: int) -> bytes:
    return np.array([0x07230203, 0x00010000, 0, 9, 0, *words], np.uint32).tobytes()


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("module", "text"),
    [
        (_words(17), "the instruction at word 5 has 0 words"),
        (_words(2 << 16 | 17, 4, 0, 0), "the instruction at word 7 has 0 words"),
        (_words(2 << 16 | 17, 4, 9 << 16 | 17), "the instruction at word 7 has 9 words"),
        (_words()[:16], "header"),
    ],
)
def test_damaged_modules_are_refused_before_a_driver_reads_them(
    module: bytes, text: str, swap: bool
) -> None:
    if swap:
        module = np.frombuffer(module, np.uint32).byteswap().tobytes()
    with pytest.raises(dp.KernelArgumentError, match=text):
        dp.raw_kernel(module, "k")


def test_modules_with_partial_words_are_refused() -> None:
    with pytest.raises(dp.KernelArgumentError, match="21 bytes"):
        dp.raw_kernel(_words() + b"x", "k")


@pytest.mark.parametrize(
    "source", [SOURCE, b"\x03\x02\x23\x07" + bytes(16)], ids=["text", "SPIR-V"]
)
def test_a_device_without_sycl_refuses_raw_kernels(source: str | bytes) -> None:
    x = dp.ones(3, device="host:cpu")
    with pytest.raises(dp.UnsupportedDeviceError, match=r"in Python, with @dp\.kernel"):
        dp.raw_kernel(source, "twice")[dp.Range(3)](x)
