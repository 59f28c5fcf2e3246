"""Kernels compiled to PTX and emulated compute the CPU device's results, and ptxas accepts them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.cuda import packages
from tests.cuda.launches import Argument, Blocks, Checker, Launch, difference
from tests.kernel import random_kernels
from tests.support import force, forget_plans

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("kernel", "codegen")
    for path in (ROOT / "tests" / folder).glob("test_*.py")
)
PARTS = 8  # of the call list


@pytest.fixture
def checker(libdevice: None, new_cache: None) -> Iterator[Checker]:
    """Check all launches of a test, of kernels that were compiled before, too."""
    forget_plans()
    for name in [name for name in sys.modules if name.startswith("dparray.algorithms.")]:
        for function in vars(sys.modules[name]).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()  # It returns kernel functions, which keep their kernels.
    found = Checker(assembles=bool(packages.ptxas_path()))
    with found.installed():
        yield found
    assert not found.faults, "\n".join(found.faults)
    # Devices divide groups of several dimensions into sub-groups as they like.
    launches = found.counts["launches equal"] + found.counts["launches with other sub-groups"]
    assert launches, found.counts


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(200))
def test_random_kernels(checker: Checker, seed: int) -> None:
    random_kernels.compare(random_kernels.make_case(seed))


_X = np.random.default_rng(1).standard_normal((60, 50))
_EXPRESSIONS: dict[str, Any] = {
    "chain": lambda x: x * 2 + x - dp.exp(x),
    "sum": lambda x: x.sum(),
    "rows": lambda x: x.sum(axis=1),
    "columns": lambda x: x.max(axis=0),
    "softmax": lambda x: dp.exp(x - x.max(axis=1, keepdims=True)),
    "float16": lambda x: dp.sqrt(abs(x.astype("float16"))) * 2,
    "complex": lambda x: (x + 1j * x) * (x - 2j),
    "integers": lambda x: (x * 100).astype("int64") // 7 % 5,
    "transposed": lambda x: x.T + dp.ones((50, 60)),
    "scan": lambda x: dp.algorithms.inclusive_scan(x.ravel()),
    "variance": lambda x: x.var(axis=1),
    "matmul": lambda x: dp.exp(x) @ x.T,
}


@pytest.mark.parametrize("name", _EXPRESSIONS)
@pytest.mark.sample(3)
def test_expressions(checker: Checker, name: str) -> None:
    with force("fused"):
        found = _EXPRESSIONS[name](dp.asarray(_X.astype("float32")))
        assert found.asnumpy().size


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("file", FILES)
def test_the_launches_of_other_tests(file: str, libdevice: None) -> None:
    """Check the default sample of a file's tests; their own results are tested elsewhere."""
    _check("tests", file, "-q")


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("part", range(PARTS))
def test_the_calls_of_the_call_list(part: int, libdevice: None) -> None:
    _check("calls", "--first", str(part), "--every", str(PARTS))


def _check(*arguments: str) -> None:
    command = [sys.executable, "-m", "tests.cuda.check", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]


# --- the comparison -------------------------------------------------------------------------------


def _launch(x: np.ndarray) -> tuple[Launch, Blocks]:
    argument = Argument(x.ctypes.data, 0, x.nbytes, x.dtype)
    launch = Launch((1,), (1,), [argument], 0)
    return launch, Blocks(launch.arguments)


@pytest.mark.parametrize(
    ("dtype", "factor", "is_equal"),
    [("f4", 1e-6, True), ("f4", 1e-3, False), ("f8", 1e-12, True), ("f8", 1e-6, False)],
)
def test_memory_may_differ_by_rounding_only(dtype: str, factor: float, is_equal: bool) -> None:
    x = np.r_[np.linspace(1, 2, 10), np.nan, np.inf].astype(dtype)
    launch, blocks = _launch(x)
    other = (x * (1 + factor)).astype(dtype).view("u1")
    found = difference(launch, blocks, [other], blocks.read())
    assert (found == "") == is_equal
    integers = np.arange(5)
    launch, blocks = _launch(integers)
    assert "[3] is 4, not 3" in difference(
        launch, blocks, [(integers + (integers == 3)).view("u1")], blocks.read()
    )


def test_overlapping_arrays_share_memory() -> None:
    x = np.arange(20.0)
    at = x.ctypes.data
    arguments = [Argument(at, 0, 80, x.dtype), Argument(at + 72, 0, 88, x.dtype)]
    blocks = Blocks(arguments)
    assert blocks.bounds == [[at, at + 160]]
    assert blocks.place(at + 72) == (0, 72)
