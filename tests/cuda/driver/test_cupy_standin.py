"""The stand-in for CuPy behaves as CuPy does, in device memory of the stand-in driver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as cuda

from tests.cuda import cupy_standin


@pytest.fixture
def cupy(stream: Any) -> Any:
    return cupy_standin.install()


def test_functions_are_numpys(cupy: Any) -> None:
    host = np.random.default_rng(1).standard_normal((4, 4))
    x = cupy.asarray(host)
    np.testing.assert_array_equal(cupy.asnumpy(x), host)
    np.testing.assert_array_equal((x @ x.T + 1).get(), host @ host.T + 1)
    np.testing.assert_array_equal(cupy.sort(x, axis=0).get(), np.sort(host, axis=0))
    np.testing.assert_array_equal(cupy.linalg.inv(x).get(), np.linalg.inv(host))
    np.testing.assert_array_equal(cupy.fft.fft(x).get(), np.fft.fft(host))
    assert cupy.sum(x).shape == ()
    values, counts = cupy.unique(cupy.asarray([1, 1, 2]), return_counts=True)
    assert (values.get().tolist(), counts.get().tolist()) == ([1, 2], [2, 1])


def test_views_share_memory(cupy: Any) -> None:
    x = cupy.zeros((3, 4))
    x[1:, ::-2] = 5
    view = x.T[3]
    view += 1
    assert x.get()[:, 3].tolist() == [1, 6, 6]
    assert view.data.ptr == x.data.ptr + 24


def test_memory_of_others_and_streams(cupy: Any, stream: Any) -> None:
    address = int(cuda.cuMemAlloc(64)[1])
    cuda.cuMemsetD32Async(address, 7, 16, stream.handle)
    memory = cupy.cuda.UnownedMemory(address, 64, None, 0)
    with cupy.cuda.Stream.from_external(stream):
        x = cupy.ndarray((2, 3), "u4", cupy.cuda.MemoryPointer(memory, 8), (-4, 8))
        assert x.data.ptr == address + 8
        assert int(x.sum()) == 42


def test_the_allocator_of_the_thread_is_used(cupy: Any) -> None:
    asked = []

    def allocator(size: int) -> Any:
        asked.append(size)
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)

    with cupy.cuda.using_allocator(allocator):
        cupy.ones(10, dtype="f4")
    cupy.ones(10)
    assert asked == [40]


def test_nothing_is_converted_implicitly(cupy: Any) -> None:
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(cupy.ones(3))


def test_names_that_cupy_lacks_are_missing(cupy: Any) -> None:
    pytest.importorskip("cupy_backends", reason="CuPy is not installed")
    assert not hasattr(cupy, "histogram_bin_edges")
    assert not hasattr(cupy, "busday_count")


def test_singular_matrices_raise_only_on_request(cupy: Any) -> None:
    import cupyx

    with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        cupy.linalg.inv(cupy.zeros((2, 2)))
    with pytest.raises(AssertionError, match="errstate"):
        cupy.linalg.inv(cupy.zeros((2, 2)))
