"""Reproducers of bugs found with Intel's GPU driver; skipped where it is not unpacked."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from products import driver, environment

pytestmark = pytest.mark.skipif(driver() is None, reason="run .ci/gpu-driver for the GPU driver")

SETUP = "import calls\nnames = calls.names()\nglobals().update(names)\nfinish = calls.finish\n"
PROGRAMS = {
    "rows of a 64 KiB device": """
x = dp.ones((65536, 1000), dtype=f32)
dp.eval(x)
finish([x.sum(axis=1), x.argmax(axis=1), x.mean(axis=1) + x.var(axis=1)])
""",
    "print without fp64": "finish(dp.call_kernel(prints, dp.Range(16), x))",
    "scans over a plane": """
out = dp.zeros(1000, dtype="int64")
finish(dp.call_kernel(scans2d, dp.NdRange((16, 16), (8, 8)), L, out))
""",
    "pairwise distances": "finish(dp.algorithms.pairwise_distance(m, m))",
    "convolutions": "finish(dp.algorithms.convolve_dense(m, s[:3, :3]))",
    "integer powers": "finish(i.astype('int8') ** i.astype('int8'))",
    "membership": """
out = dp.zeros(1000, dtype="int8")
finish(dp.call_kernel(one_of_many, dp.Range(1000), i.astype("int8"), out))
""",
}


@pytest.mark.parametrize("product", ["tgllp", "pvc"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_driver_takes(name: str, product: str, tmp_path: Path) -> None:
    # One of 100 runs ends with a segmentation fault in a dpnp function.
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", SETUP + PROGRAMS[name]],
            env=environment(product, tmp_path),
            capture_output=True,
            text=True,
            timeout=300,
        )
        in_dpnp = re.search(r'\nCurrent thread [^\n]*\n  File "[^"]*/dpnp/', done.stderr)
        if done.returncode != -signal.SIGSEGV or not in_dpnp:
            break
        print(done.stderr)
    assert done.returncode == 0, done.stderr[-2000:]
