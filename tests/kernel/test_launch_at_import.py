"""A program computes while its module is imported: no thread may wait for the import lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

_HEAD = "import math\nimport dparray as dp\n"
PROGRAMS = {
    "kernel": """
@dp.device_func
def shifted(x):
    return x + 17

@dp.kernel
def fill(item, out):
    out[item.get_id(0)] = shifted(item.get_id(0))

x = dp.zeros(3)
dp.call_kernel(fill, dp.Range(3), x)
assert x.tolist() == [17, 18, 19]
""",
    "jit": """
@dp.jit
def shifted(x):
    return x + 17

@dp.jit
def fill(out):
    for i in dp.prange(out.shape[0]):
        out[i] = shifted(i)
    for i in range(1, out.shape[0]):
        out[i] += out[i - 1]

x = dp.zeros(3)
fill(x)
assert x.tolist() == [17, 35, 54]
""",
    "elementwise": """
@dp.elementwise
def shifted(x):
    return x + 17.0 if x > 0 else x

x = shifted(dp.ones(100_000))
assert x[5].item() == 18
""",
    "arrays": """
x = dp.sqrt(dp.ones(1_000_000) * 4 + 5).sum()
assert float(x) == 3_000_000
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sample(1)
def test_a_module_computes_while_it_is_imported(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_HEAD + PROGRAMS[name])
    run = subprocess.run(
        [sys.executable, "-c", "import program"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
        env={**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
