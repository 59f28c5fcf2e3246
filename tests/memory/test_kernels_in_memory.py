"""The number of compiled kernels in memory is limited."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dparray as dp
from dparray.memory.kernels import KernelMemory
from tests.support import execute

ROOT = Path(__file__).resolve().parents[2]


class Sized:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_the_least_recently_used_go_first() -> None:
    memory = KernelMemory(100)
    for name in "abc":
        memory.put(name, Sized(30))
    assert memory.get("a") is not None
    memory.put("d", Sized(30))
    assert [memory.get(name) is not None for name in "abcd"] == [True, False, True, True]
    memory.put("e", Sized(1000))
    assert [memory.get(name) is not None for name in "abcde"] == [False] * 4 + [True]
    assert memory.stats() == dp.memory.KernelStats(1, 1000, 100)
    memory.clear()
    assert memory.stats().count == 0


def test_the_number_of_kernels_is_limited() -> None:
    memory = KernelMemory()
    for number in range(1025):
        memory.put(str(number), Sized(1))
    assert memory.stats().count == 1024
    assert memory.get("0") is None
    assert memory.get("1") is not None


def test_kernels_that_grow_are_counted_when_others_come() -> None:
    memory = KernelMemory(100)
    grows = Sized(10)
    memory.put("a", grows)
    grows.nbytes = 95
    memory.put("b", Sized(10))
    assert memory.get("a") is None


@pytest.fixture
def small_limit() -> Iterator[int]:
    previous = dp.memory.set_kernel_limit(2 << 20)
    yield 2 << 20
    dp.memory.set_kernel_limit(previous)


def make(number: int) -> Any:
    scope: dict[str, Any] = {}
    execute(f"def add(item, x):\n    x[item.get_id(0)] += {number}\n", scope)
    return dp.kernel(scope["add"])


def test_kernels_that_are_used_go_on(small_limit: int) -> None:
    x = dp.zeros(2)
    first = make(1000)
    first[2](x)
    for number in range(12):
        make(number)[2](x)
        stats = dp.memory.kernel_stats()
        assert stats.nbytes <= small_limit
        assert 1 <= stats.count <= 5
    first[2](x)  # the reference keeps the kernel alive
    make(1000)[2](x)  # found on disk, or compiled again
    assert x.tolist() == [3066, 3066]


@pytest.mark.parametrize("limit", [-1, 2.5, None, True, "3"])
def test_a_limit_is_an_integer(limit: Any) -> None:
    with pytest.raises(dp.ShapeError, match="set_kernel_limit"):
        dp.memory.set_kernel_limit(limit)


PROGRAM = """
import dparray as dp
from tests.memory.test_kernels_in_memory import make
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
x = dp.zeros(2)
dp.memory.set_kernel_limit(4 << 20)
for number in range(15):
    make(number)[2](x).wait()
before = resident()
for number in range(60):
    make(100 + number)[2](x).wait()
print((resident() - before) / 60)
"""


@pytest.mark.slow
def test_a_process_that_compiles_many_kernels_does_not_leak() -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT), DPARRAY_NOTICES="0")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    # Without the limit, each kernel would take half a MiB. Some memory of the compiler and the
    # driver is never freed.
    assert float(done.stdout) < 200 << 10
