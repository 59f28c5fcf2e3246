"""A second real device: a copy of the driver's library is a separate platform.

It has USM, its own context and its own DLPack number. The programs run in separate processes, since
the loader finds drivers once per process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import drivers_with_a_copy

pytestmark = pytest.mark.process

HEAD = """
import numpy as np
import dparray as dp
import dpctl, dpnp
first, second = (dp.Device(f"opencl:cpu:{number}") for number in range(2))
values = np.arange(60_000.0)
x, y = dp.asarray(values, device=first), dp.asarray(values, device=second)
"""

PROGRAMS = {
    "two places": """
assert len(dp.devices()) == 2 and first != second
assert first.sycl_context != second.sycl_context
assert str(first) != str(second) and first.filter_string != second.filter_string
assert x.__dlpack_device__() == y.__dlpack_device__() == (1, 0)  # the host reads both
try:
    x + y
except dp.ExecutionPlacementError as error:
    assert "different devices" in str(error)
    assert str(first) in str(error) and str(second) in str(error)
    exec(error.remedy, {"x1": x, "x2": y})
else:
    raise AssertionError("arrays of two devices were mixed")
""",
    "computing": """
@dp.kernel
def double(item, a):
    i = item.get_id(0)
    a[i] = 2 * a[i]
for array in (x, y):
    pending = array * 3 - 1
    double[dp.Range(array.size)](array)
    assert pending.device == array.device
    np.testing.assert_array_equal(pending.asnumpy(), values * 3 - 1)
    np.testing.assert_array_equal(array.asnumpy(), values * 2)
    np.testing.assert_array_equal(dp.sort(array[::-1]).asnumpy(), values * 2)
    assert float(array.sum()) == 2 * values.sum()
""",
    "moving": """
there = (x + 1).to_device(second)
assert there.device == second
np.testing.assert_array_equal((there + y).asnumpy(), 2 * values + 1)
np.testing.assert_array_equal(x[::7].to_device(second).asnumpy(), values[::7])
both = dp.asarray([x[:5], y[:5]], device=second)
assert both.device == second and both.shape == (2, 5)
assert dp.from_dlpack(dpnp.asarray(values, sycl_queue=second.sycl_queue)).device == second
assert dp.random.rand(4, device=second).device == second
with dp.use_device(second):
    assert dp.zeros(3).device == second
""",
}


@pytest.fixture(scope="module")
def two_drivers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the loader's value for the driver and a copy of it."""
    given = os.environ.get("OCL_ICD_FILENAMES", "")
    both = given if ":" in given else drivers_with_a_copy(tmp_path_factory.mktemp("second-driver"))
    if both is None:
        pytest.skip("the driver does not belong to this environment, so it is not copied")
    return both


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_two_platforms(two_drivers: str, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + PROGRAMS[program]],
        env=os.environ | {"OCL_ICD_FILENAMES": two_drivers},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_fixture_of_queues_has_it_on_request() -> None:
    """A few tests use it; ``DPARRAY_TEST_SECOND_PLATFORM=1`` before pytest adds it to all."""
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-k", "second-platform", str(tests / "functions" / "test_placement_rules.py")]
    done = subprocess.run(
        [*command, str(tests / "memory" / "test_sharing.py")],
        env={k: v for k, v in os.environ.items() if k != "OCL_ICD_FILENAMES" and "XDIST" not in k}
        | {"DPARRAY_TEST_SECOND_PLATFORM": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\d+ passed", done.stdout)
    assert "skipped" not in done.stdout.splitlines()[-1]
