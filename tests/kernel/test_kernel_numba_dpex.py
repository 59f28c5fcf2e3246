"""A script written for numba-dpex runs with ``import dparray`` added."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import dparray

import dpctl.tensor as dpt
import dpnp
import numba_dpex as ndpx
from numba_dpex import kernel_api as kapi


@ndpx.device_func
def square(x):
    return x * x


@ndpx.kernel
def vecadd(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + square(b[i])


N = 64
a = dpnp.ones(N)
b = dpnp.full(N, 3.0)
c = dpnp.zeros_like(a)
assert ndpx.call_kernel(vecadd, kapi.Range(N), a, b, c) is None
assert (dpnp.asnumpy(c) == 10).all()

host_event, event = ndpx.call_kernel_async(vecadd, ndpx.Range(N), (), c, b, c)
event.wait()
host_event.wait()
assert (dpnp.asnumpy(c) == 19).all()

d = dpt.zeros(N)
ndpx.call_kernel(vecadd, kapi.Range(N), dpt.ones(N), dpt.ones(N), d)
assert (dpt.asnumpy(d) == 2).all()
print("done")
"""


def test_a_numba_dpex_script_runs(tmp_path: Path) -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


def test_importing_dparray_imports_no_numba() -> None:
    program = (
        "import sys, dparray, numba_dpex, numba_dpex.kernel_api as k; "
        "from numba_dpex import kernel_api; "
        "assert k.Item is dparray.Item; print('numba' in sys.modules)"
    )
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT}/dparray/_kernel/shims")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_a_script_that_imports_only_numba_dpex_runs() -> None:
    program = (
        "import numba_dpex, dpnp\n"
        "from numba_dpex import kernel_api as kapi\n"
        "import numba_dpex.core.exceptions\n"
        "def fill(item, x):\n"
        "    x[item.get_id(0)] = 3\n"
        "x = dpnp.zeros(4)\n"
        "numba_dpex.call_kernel(numba_dpex.kernel(fill), kapi.Range(4), x)\n"
        "numba_dpex.kernel(fill)[kapi.Range(4)](x)\n"
        "import dparray\n"
        "assert numba_dpex.Range is not None and kapi.Item is dparray.Item\n"
        "print(float(x.sum()))\n"
    )
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT}/dparray/_kernel/shims")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "12.0"


def test_kernels_of_both_makers_are_interchangeable() -> None:
    import numba_dpex
    from numba_dpex import kernel_api as kapi

    def fill(item: Any, x: Any, value: Any) -> None:
        x[item.get_id(0)] = value

    x = dp.zeros(4)
    dp.call_kernel(numba_dpex.kernel(fill), kapi.Range(4), x, 5)
    assert x.tolist() == [5.0] * 4
    numba_dpex.call_kernel(dp.kernel(fill), dp.Range(4), x, 6)
    assert x.tolist() == [6.0] * 4


def test_names_of_the_language_are_the_same_objects() -> None:
    from numba_dpex import kernel_api as kapi

    for name in ("AtomicRef", "Group", "Item", "MemoryOrder", "NdItem", "PrivateArray"):
        assert getattr(dp, name) is getattr(kapi, name)
    assert dp.group_barrier is kapi.group_barrier
    assert issubclass(dp.Range, kapi.Range)
    assert issubclass(dp.NdRange, kapi.NdRange)
    assert issubclass(dp.LocalAccessor, kapi.LocalAccessor)


def test_its_placement_error_is_caught_by_its_own_class() -> None:
    import numba_dpex
    from numba_dpex.core.exceptions import ExecutionQueueInferenceError

    @numba_dpex.kernel
    def add(item: Any, a: Any, b: Any) -> None:
        a[0] += b[0]

    a = dp.ones(1)
    b = dp.ones(1, sycl_queue=dpctl.SyclQueue(a.sycl_device))
    with pytest.raises(ExecutionQueueInferenceError):
        numba_dpex.call_kernel(add, dp.Range(1), a, b)
    with pytest.raises(dp.ExecutionPlacementError):
        numba_dpex.call_kernel(add, dp.Range(1), a, b)


def test_its_argument_error_is_caught_by_its_own_class() -> None:
    import numba_dpex
    from numba_dpex.core.exceptions import UnsupportedKernelArgumentError

    @numba_dpex.kernel
    def fill(item: Any, a: Any) -> None:
        a[item.get_id(0)] = 1

    with pytest.raises(UnsupportedKernelArgumentError, match="NumPy array"):
        numba_dpex.call_kernel(fill, dp.Range(4), np.ones(4))


def test_dpjit_and_prange_are_those_of_dparray() -> None:
    import numba_dpex

    @numba_dpex.dpjit
    def first(x: Any) -> Any:
        for i in numba_dpex.prange(x.size):
            x[i] *= 2
        return x

    @numba_dpex.dpjit(parallel=True)
    def second(x: Any) -> Any:
        return x + 1

    assert first(dp.arange(3)).tolist() == [0, 2, 4]
    assert second(dp.arange(3)).tolist() == [1, 2, 3]
    with pytest.raises(dp.HostConversionError, match=r"dp\.asarray"):
        second(np.zeros(1))
