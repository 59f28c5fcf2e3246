"""The modules that `import dparray` imports, and those imported later, in any order."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dparray as dp

pytestmark = pytest.mark.process


def run(program: str) -> list[str]:
    """Return the lines that a program prints in a separate process."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


EVERYDAY = """
import sys
import dparray as dp
x = dp.arange(3_000_000, dtype="float32")
y = (x * 2 + 1).sum() + x[::2].max() + dp.where(x > 5, x, 0).mean()
float(y)
few = x[:1000]
dp.sort(few)[:3].tolist(), dp.cumsum(few)[-1].item(), dp.nonzero(few), dp.unique(few), few[few > 7]
(x.reshape(1000, -1) @ dp.ones(3000)).tolist(), dp.linalg.inv(dp.eye(3)).tolist(), x.asnumpy()
print(sorted({"dpnp", "numba", "asyncio", "unittest", "IPython"} & set(sys.modules)))
"""


def test_programs_of_arrays_import_neither_dpnp_nor_numba() -> None:
    assert run(EVERYDAY) == ["[]"]


def test_parts_that_are_imported_later_are_names_as_all_others() -> None:
    program = """
import sys
import dparray as dp
late = ["fft", "onnx", "random", "special", "testing", "sharding", "tilelang", "plaidml"]
print([name for name in late if "dparray." + name in sys.modules])
print(set(late) | {"explain", "profile", "simulate", "placement"} <= set(dir(dp)) & set(dp.__all__))
print(dp.explain.__module__, dp.fft.fft(dp.ones(2)).tolist(), dp.explain is dp.explain)
from dparray import random, simulate
import dparray.special
print(random is dp.random, simulate is dp.simulate, dparray.special is dp.special)
try:
    dp.fft.fft("text")
except dp.DparrayError as error:
    print("guarded")
try:
    dp.explian
except AttributeError as error:
    print(error)
"""
    found = run(program)
    assert found[:5] == [
        "[]",
        "True",
        "dparray [(2+0j), 0j] True",
        "True True True",
        "guarded",
    ]
    assert "no attribute 'explian'" in found[5]


MEETING = """
{first}
{second}
queue = dpctl.SyclQueue("cpu")
ours = dparray.arange(1000, dtype="int64", sycl_queue=queue)
theirs = dpnp.arange(1000, dtype="int64", sycl_queue=queue)
for _ in range(20):
    ours += 1  # work of both in turn, on one queue, in one order
    total = theirs + ours
    theirs += ours
    ours = dparray.asarray(theirs) - dparray.arange(1000, sycl_queue=queue)
print(type(total).__name__, type(theirs + ours).__module__, int(ours[0]), int(theirs[1]))
try:
    ours + dparray.arange(1000, sycl_queue=dpctl.SyclQueue("cpu"))
except dpnp.exceptions.ExecutionPlacementError as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_dpnp_may_come_before_and_after(is_first: bool) -> None:
    statements = ["import dparray, dpctl", "dparray.ones(3).sum().item(); import dpnp"]
    if is_first:
        # If the parent of a process has imported dparray, its first user of SYCL finds the driver.
        statements = ["import dpnp, dpctl", "import dparray"]
    first, second = statements
    expected = run(MEETING.format(first="import dparray, dpctl", second="import dpnp"))
    assert run(MEETING.format(first=first, second=second)) == expected
    assert expected[0].startswith("ndarray dparray ")
    assert expected[1] == "ExecutionPlacementError"


@pytest.mark.slow
def test_the_order_of_running_work_is_passed_to_a_late_dpnp() -> None:
    program = """
import dparray as dp

@dp.kernel
def slow(item, x, rounds):
    i = item.get_id(0)
    value = x[i]
    for _ in range(rounds):
        value = value * 1.0000001 + 1.0
    x[i] = 0.0 if value < 0.0 else 5.0

x = dp.zeros(4)
dp.call_kernel(slow, dp.Range(4), x, 1)
x[:] = 0.0
event = dp.call_kernel(slow, dp.Range(4), x, 300_000_000)
import dpnp
print(float((dpnp.asarray(x.__usm_ndarray__) * 2).sum()))
"""
    assert run(program) == ["40.0"]


@pytest.mark.slow
def test_a_policy_of_placement_gathers_operands_from_its_first_use() -> None:
    program = """
import dpctl, dparray as dp
a = dp.asarray([3.0, 1.0], device=dpctl.SyclQueue("cpu"))
b = dp.asarray([2.0], device=dpctl.SyclQueue("cpu"))
with dp.placement("fastest"):
    print(dp.concat([a, b]).tolist(), (a + b).tolist())
"""
    assert run(program) == ["[3.0, 1.0, 2.0] [5.0, 3.0]"]


def test_rich_displays_work_before_their_module_is_imported() -> None:
    assert "<" in dp.arange(3)._repr_html_()
    assert "<" in dp.explain(dp.arange(3) + 1)._repr_html_()


_WITHOUT_DRIVERS = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"dpctl", "dpnp"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
import numpy as np
import dparray as dp

@dp.kernel
def increment(item, x):
    x[item.get_id(0)] += 1

values = np.zeros(3)
dp.simulate(increment, dp.Range(3), values)
print(values.tolist(), [device.filter_string for device in dp.devices()])
print((dp.zeros(3) + 1).tolist())
try:
    dp.Device("opencl:cpu:0")
except dp.DeviceError as error:
    print(error)
"""


_OF_POSIX = ("curses", "fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios")
_ELSEWHERE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
for name in {absent}:
    sys.modules.pop(name, None)
import os
del os.fork, os.register_at_fork, os.sched_getaffinity
import dparray as dp

@dp.kernel
def increment(item, x):
    x[item.get_id(0)] += 1

x = dp.ones(3)
dp.call_kernel(increment, dp.Range(3), x)
print(x.tolist(), dp.exp(dp.zeros(20_000)).sum().item())
"""


def test_the_base_installation_needs_no_module_of_posix_alone() -> None:
    assert run(_ELSEWHERE.format(absent={*_OF_POSIX, "dpctl", "dpnp"})) == [
        "[2.0, 2.0, 2.0] 20000.0"
    ]


def test_without_sycl_the_host_computes_and_its_devices_are_missing() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DRIVERS], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "[1.0, 1.0, 1.0] ['host:cpu']",
        "[1.0, 1.0, 1.0]",
        "device: no device matches 'opencl:cpu:0'; available: host:cpu. opencl:cpu:0 needs more: "
        'dpctl is not installed: pip install "dpctl==0.22.*" "dpnp==0.20.*" '
        '"intel-opencl-rt>=2025.1", for CPUs and Intel GPUs',
    ]
