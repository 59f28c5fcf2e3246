"""The front end translates kernels of users and of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dparray as dp
from dparray.kernels import matrix


def test_the_kernels_of_the_package_are_translated() -> None:
    kernel = dp.kernel(matrix.make_matmul_kernel.__wrapped__(4, 4, np.float32))
    a, b, c = (dp.ones((1, 4, 4), "float32") for _ in range(3))
    dp.call_kernel(kernel, dp.NdRange(4, 4), a, b, c, dp.LocalAccessor(16, "float32"))
    assert c.tolist() == [[[4.0] * 4] * 4]


def test_a_module_of_a_user_may_be_called_kernels() -> None:
    def add_one(item: Any, x: Any) -> None:
        x[item.get_id(0)] += 1

    add_one.__module__ = "kernels.own"
    x = dp.ones(3)
    dp.call_kernel(dp.kernel(add_one), dp.Range(3), x)
    assert x.tolist() == [2, 2, 2]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
import dparray as dp

@dp.kernel
def add_one(item, x):
    x[item.get_id(0)] += 1

@dp.elementwise
def square(value):
    return value * value

x = dp.arange(5.0)
add_one[5](x)
dp.simulate(add_one, 5, np.zeros(5))
assert square(x).tolist() == [1, 4, 9, 16, 25]
assert float((dp.arange(200_000.0) * 2 + 1).sum()) == 200_000.0**2

@dp.jit
def total(x):
    for i in range(x.size):
        x[i] += 1
    return (x * 2).sum()

assert float(total(x)) == 40

@dp.jit
def rolled_copy(x):
    for i in range(x.size):
        x[i] += 1
    return np.roll(x, 1)

before = float(x.sum())
assert float(rolled_copy(x).sum()) == before + x.size
"""


def test_arrays_and_kernels_need_no_numba(tmp_path: Path) -> None:
    environment = os.environ | {"DPARRAY_CACHE_DIR": str(tmp_path)}
    script = tmp_path / "program.py"
    script.write_text(WITHOUT_NUMBA)
    command = [sys.executable, str(script)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
