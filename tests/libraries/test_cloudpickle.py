"""Compiled functions of a notebook travel by cloudpickle, as Dask sends them to its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dparray as dp

cloudpickle = pytest.importorskip("cloudpickle")

_NOTEBOOK = '''
import linecache, math, sys
import cloudpickle
import numpy as np
import dparray as dp

cells = ["""
K = 2.0
def helper(x):
    return x * K
@dp.device_func
def device(x):
    return x * K
def outer(k):
    @dp.jit
    def captured(x):
        return helper(x) * k
    return captured
captured = outer(0.5)
""", """
@dp.jit
def loop(x):
    for i in range(x.shape[0]):
        x[i] = helper(x[i])
    return x
@dp.jit
def power(n):
    return 1.0 if n < 1 else K * power(n - 1)
@dp.jit
def parallel(x):
    for i in dp.prange(x.shape[0]):
        x[i] = device(x[i])
    return x
@dp.kernel
def kernel(item, x):
    i = item.get_id(0)
    x[i] = device(x[i])
@dp.elementwise
def both(x):
    return device(x), x + 1
add = dp.reduction(lambda a, b: a + b, identity=0.0, map=device)
error_function = dp.elementwise(math.erf)
"""]
for number, cell in enumerate(cells):
    file = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[file] = len(cell), None, cell.splitlines(True), file
    exec(compile(cell, file, "exec"))

def report():
    x = dp.asarray([1.0, 2.0])
    print(loop(x.copy()).tolist(), power(3), parallel(x.copy()).tolist(), captured(x).tolist())
    y = x.copy()
    kernel[2](y).wait()
    print(y.tolist(), [each.tolist() for each in both(x)], float(add(x)))
    print(error_function(x).tolist())

report()
with open(sys.argv[1], "wb") as file:
    cloudpickle.dump((loop, power, parallel, kernel, both, add, captured, error_function), file)
    cloudpickle.dump(report, file)
'''
_WORKER = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    functions = pickle.load(file)
    pickle.load(file)()
print([type(each).__name__ for each in functions])
"""


@pytest.mark.process
@pytest.mark.slow
def test_compiled_functions_of_a_notebook_run_in_another_process(tmp_path: Path) -> None:
    printed = []
    for name, text in (("notebook", _NOTEBOOK), ("worker", _WORKER)):
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        run = subprocess.run(
            [sys.executable, str(file), str(tmp_path / "sent")],
            env={**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path / name)},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        file.unlink()
        printed.append(run.stdout)
    assert printed[0].startswith("[2.0, 4.0] 8.0 [2.0, 4.0] [1.0, 2.0]\n[2.0, 4.0] ")
    sent, _, kinds = printed[1].rpartition("[")
    assert sent == printed[0]
    names = ["JitFunction"] * 3 + ["KernelFunction", "ElementwiseFunction", "ReductionFunction"]
    assert kinds == f"{[*names, 'JitFunction', 'ElementwiseFunction']}"[1:] + "\n"


@pytest.mark.parametrize("module", [dp, dp.config, dp.device, dp.fft, dp.random])
def test_modules_travel_by_name(module: Any) -> None:
    assert cloudpickle.loads(cloudpickle.dumps(module)) is module
