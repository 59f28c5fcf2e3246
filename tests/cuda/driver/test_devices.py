"""Devices, queues and memory of NVIDIA GPUs, and copies between all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.cli.doctor import links
from tests.cuda.standin import StandIn

KINDS = ("device", "shared", "host")


@pytest.fixture
def gpu(driver: StandIn) -> Any:
    """Return the first GPU of the stand-in."""
    return dp.Device("cuda:0")


# --- devices -------------------------------------------------------------------------------------


def test_devices_are_listed_after_sycls() -> None:
    names = [device.filter_string for device in dp.devices()]
    assert names[-2:] == ["cuda:0", "cuda:1"]
    assert all(":cpu:" in name for name in names[:-2])


def test_the_default_device_is_sycls() -> None:
    assert dp.default_device() == dp.devices()[0]
    with dp.config.override(device="cuda:1"):
        assert dp.zeros(3).device == dp.Device("cuda:1")


def test_strings_name_devices() -> None:
    assert dp.Device("cuda") == dp.Device("cuda:0") == dp.Device("gpu")
    assert dp.Device("cuda:1") != dp.Device("cuda:0")
    assert str(dp.Device("cuda:1")) == "cuda:1, default queue"
    with pytest.raises(dp.DeviceError, match=r"'cuda:2'; available: .*cuda:0, cuda:1"):
        dp.Device("cuda:2")
    with pytest.raises(dp.DeviceError, match="no device matches 'cuda:gpu:0'"):
        dp.Device("cuda:gpu:0")  # a name of SYCL's


def test_objects_of_other_libraries_name_devices(gpu: dp.Device, stream: Any) -> None:
    from cuda.core import Device

    assert dp.Device(Device(1)) == dp.Device("cuda:1")
    of_stream = dp.Device(stream)
    assert of_stream == dp.Device(stream) != gpu
    assert of_stream.queue.__cuda_stream__() == stream.__cuda_stream__()
    assert (dp.ones(3, device=of_stream) + 1).tolist() == [2, 2, 2]


def test_traits(gpu: dp.Device) -> None:
    traits = gpu.traits
    assert (gpu.driver, gpu.backend, gpu.device_type) == ("cuda", "cuda", "gpu")
    assert traits.target == ("ptx", "sm_75")
    assert traits.sub_groups == (32,)
    assert not traits.shares_memory
    assert gpu.usm_types == KINDS
    assert {"fp64", "fp16", "atomic64", "profiling"} <= traits.aspects
    with pytest.raises(dp.DeviceError, match="cuda:0 has no sub-devices"):
        gpu.create_sub_devices()


def test_a_new_queue_is_another_device(gpu: dp.Device) -> None:
    other = gpu.new_queue()
    x, y = dp.ones(3, device=gpu), dp.ones(3, device=other)
    with pytest.raises(dp.ExecutionPlacementError, match="to_device"):
        x + y
    assert (x + y.to_device(gpu)).tolist() == [2, 2, 2]
    assert "queue #" in str(other)


def test_sycls_objects_are_missing(gpu: dp.Device) -> None:
    x = dp.ones(3, device=gpu)
    for name in ("sycl_queue", "sycl_device", "sycl_context", "usm_data", "__usm_ndarray__"):
        assert not hasattr(x, name)
    assert not hasattr(x, "__sycl_usm_array_interface__")
    with pytest.raises(AttributeError, match=r"`\.queue`"):
        _ = x.sycl_queue
    assert not hasattr(dp.ones(3), "__cuda_array_interface__")


def test_the_interface_of_cudas_libraries(gpu: dp.Device) -> None:
    x = dp.reshape(dp.arange(12, dtype="float32", device=gpu), (3, 4)).T
    found = x.__cuda_array_interface__
    assert (found["shape"], found["typestr"], found["version"]) == ((4, 3), "<f4", 3)
    assert found["strides"] == (4, 16)
    assert found["stream"] == x.queue.__cuda_stream__()[1]
    assert found["data"] == (x.block.pointer + x.offset, False)


# --- memory and copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("usm_type", KINDS)
def test_all_kinds_of_memory(gpu: dp.Device, usm_type: str) -> None:
    values = np.arange(1000, dtype=np.int32)
    x = dp.asarray(values, device=gpu, usm_type=usm_type)
    assert x.usm_type == usm_type
    np.testing.assert_array_equal((x * 2).asnumpy(), values * 2)
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize("target", ["cpu", "cuda:0", "cuda:1", "another queue"])
@pytest.mark.parametrize("source", ["cpu", "cuda:0"])
def test_copies_between_devices(driver: StandIn, source: str, target: str) -> None:
    to = dp.Device("cuda:0").new_queue() if target == "another queue" else dp.Device(target)
    values = np.random.default_rng(1).random((40, 30))
    x = dp.asarray(values, device=source)
    moved = (x + 1).T.to_device(to)  # the work before it is pending, and the strides are not C's
    assert moved.device == to
    x += 5  # ordered after the copy
    np.testing.assert_array_equal(moved.asnumpy(), (values + 1).T)
    np.testing.assert_array_equal((moved * 2).asnumpy(), (values + 1).T * 2)


def test_large_copies_go_through_several_buffers(gpu: dp.Device) -> None:
    values = np.arange(5 << 20, dtype=np.float32)  # 20 MiB: more than two pinned buffers
    x = dp.asarray(values, device=gpu)
    np.testing.assert_array_equal(x.asnumpy(), values)


def test_the_source_may_change_after_a_copy(gpu: dp.Device) -> None:
    values = np.zeros(100_000)
    found = []
    for number in range(20):
        values[...] = number
        found.append(dp.asarray(values, device=gpu))
    assert [float(x[-1]) for x in found] == list(range(20))


def test_refused_allocations_are_memory_errors(gpu: dp.Device, driver: StandIn) -> None:
    dp.memory.release()
    driver.refuse("allocation", 1)
    before = driver.calls("allocation")
    dp.empty(3 << 20, device=gpu)  # The pool releases what it holds, and asks again.
    assert driver.calls("allocation") > before + 1
    with pytest.raises(dp.MemoryError, match="cuda:0"):
        dp.empty(1 << 40, dtype="int8", device=gpu)


def test_a_limit_is_a_memory_error_until_memory_is_dropped(gpu: dp.Device) -> None:
    dp.memory.release()
    kept = dp.full(1 << 20, 2.0, device=gpu)  # 8 MiB
    kept.block  # noqa: B018
    stats = dp.memory.stats(gpu)
    previous = dp.memory.set_limit(stats.in_use + stats.cached + (4 << 20), gpu)
    try:
        with pytest.raises(dp.MemoryError, match=r"cuda:0.*`dp\.memory\.set_limit") as caught:
            (kept + 1).block  # noqa: B018
        assert isinstance(caught.value, MemoryError)
        assert caught.value.device == gpu.filter_string
        assert caught.value.requested == kept.nbytes
        dp.full(1 << 20, 2.0, device="cuda:1").block  # noqa: B018  # it has no limit
        assert kept[:: 1 << 18].tolist() == [2.0] * 4
        del kept
        assert dp.full(1 << 20, 3.0, device=gpu)[-1].item() == 3.0
    finally:
        dp.memory.set_limit(previous, gpu)


def test_memory_is_given_back(gpu: dp.Device, driver: StandIn) -> None:
    before = driver.calls("free")
    dp.empty(8 << 20, device=gpu)
    dp.memory.release()
    assert driver.calls("free") > before


# --- contexts, forks, imports --------------------------------------------------------------------


def test_the_current_context_is_left_as_it_was(gpu: dp.Device) -> None:
    from cuda.bindings import driver as cuda

    def context() -> int:
        return int(cuda.cuCtxGetCurrent()[1])

    found = []

    def work(device: int | None) -> None:
        if device is not None:
            cuda.cuCtxSetCurrent(cuda.cuDevicePrimaryCtxRetain(device)[1])
        before = context()
        for other in ("cuda:0", "cuda:1"):
            x = dp.ones(100, device=other) + 1
            found.append(float(x.sum()) == 200 and float((x * 2).sum()) == 400)
        found.append(context() == before)

    for device in (None, 0, 1):
        thread = threading.Thread(target=work, args=(device,))
        thread.start()
        thread.join()
    assert found == [True] * 9


def _run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


HEAD = "from tests.cuda import standin; standin.install()\nimport sys, dparray as dp\n"


def test_a_program_of_sycls_loads_no_cuda_module() -> None:
    program = f"""{HEAD}
x = dp.arange(100_000) + 1
float(x.sum()), x[::2].asnumpy(), x.to_device("cpu"), dp.Device("cpu"), dp.Device(x.sycl_queue)
dp.sort(x).tolist(), dp.fft.fft(x).asnumpy(), dp.linalg.inv(dp.eye(300)).asnumpy()
try:
    x + object()
except TypeError:
    print(sorted(name for name in sys.modules if name.partition(".")[0] == "cuda"))
"""
    done = _run(program)
    assert done.stdout == "[]\n", done.stderr


def test_a_program_of_cudas_loads_no_module_of_sycls() -> None:
    program = f"""{HEAD}
x = dp.arange(1000, device="cuda:0") + 1
print(float(x.sum()), x[::2].tolist()[:2], sorted({{"dpctl", "dpnp"}} & set(sys.modules)))
"""
    done = _run(program)
    assert done.stdout == "500500.0 [1, 3] []\n", done.stderr


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ("cuda.core", 'cuda-core is not installed: pip install "cuda-bindings==13.*"'),
        ("", "the NVIDIA driver is not installed (libcuda.so.1)"),
    ],
)
def test_what_is_missing_is_named(hidden: str, expected: str) -> None:
    program = f"""
import sys
if {hidden!r}:
    sys.modules[{hidden!r}] = None
import dparray as dp
print([device.device_type for device in dp.devices()], dp.is_available("cuda:0"))
try:
    dp.Device("cuda:0")
except dp.DeviceError as error:
    print(error)
"""
    done = _run(program, LD_LIBRARY_PATH="")
    assert done.stdout.startswith("['cpu'] False\n"), done.stderr
    assert "no device matches 'cuda:0'; available: opencl:cpu:0" in done.stdout
    assert expected in done.stdout


def test_without_sycl_the_gpu_is_the_default_device() -> None:
    program = f"""
import sys
sys.modules["dpctl"] = None
{HEAD}
print(dp.zeros(3).device, dp.devices(), (dp.arange(5) * 2).tolist())
"""
    done = _run(program)
    assert done.stdout.startswith("cuda:0, default queue [Device(cuda:0"), done.stderr
    assert "[0, 2, 4, 6, 8]" in done.stdout


def test_dparray_doctor_lists_gpus_and_what_they_lack(driver: StandIn) -> None:
    found = links.check_cuda(libdevice=lambda: "libdevice.10.bc")
    assert found.startswith("the NVIDIA driver is for CUDA 13.")
    assert "cuda-core 1." in found
    assert "libdevice: libdevice.10.bc" in found
    for name in ("cuda:0", "cuda:1"):
        (line,) = (line for line in found.splitlines() if line.startswith(name))
        assert dp.Device(name).name in line
        assert "kernels compiled for sm_75; its compute capability is" in line
    assert "was tested on an H100 and an H200" in found
    with pytest.raises(links.Broken, match="missing: libdevice") as caught:
        links.check_cuda(libdevice=lambda: "")
    assert caught.value.remedy.startswith('pip install "cuda-bindings==13.*"')


def test_dparray_info_shows_gpus_or_what_is_missing() -> None:
    program = "from dparray.cli import info; print(info.as_text(info.gather()))"
    found = _run(program).stdout
    assert "cuda:0  Stand-in H100, gpu" in found
    assert "compiled for sm_75; its compute capability is 9.0" in found
    missing = _run(program, LD_LIBRARY_PATH="").stdout
    assert "driver cuda: the NVIDIA driver is not installed (libcuda.so.1)" in missing
    program = "from dparray.cli.doctor import links; print(links.check_cuda())"
    found = _run(program, LD_LIBRARY_PATH="").stdout
    assert found.startswith("not used: the NVIDIA driver is not installed (libcuda.so.1); install")


def test_a_forked_child_is_refused() -> None:
    program = f"""{HEAD}
import os
x = dp.ones(1000, device="cuda:0") + 1
float(x.sum())
child = os.fork()
if child == 0:
    status = 1
    try:
        dp.ones(3, device="cuda:0")
    except dp.ForkError:
        status = 7
    del x
    os._exit(status)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(x.sum()))
"""
    done = _run(program)
    assert done.stdout == "7 2000.0\n", done.stderr
