"""Set the environment of a test session; this file lists what every test configuration sets.

With ``--users-defaults`` a session sets none of `TESTS`: dparray then has the options of a user who
sets none, and an empty cache. Tests that count kernels take the fixture ``tests_options``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parents[1]


class Setting(NamedTuple):
    """A variable of the environment, its value, and why tests need it."""

    variable: str
    value: str
    reason: str


#: What a session sets, unless it has ``--users-defaults`` or the variable is set already.
TESTS = (
    Setting(
        "DPARRAY_BACKGROUND_COMPILE",
        "0",
        "Tests count kernels, so these must not depend on when another thread is done.",
    ),
    Setting(
        "DPARRAY_COST_MODEL",
        '{"launch": 1e-9}',
        "Arrays of 10,000 elements count as large, so that quick tests run kernels.",
    ),
    Setting("DPARRAY_KERNEL_STORE", "", "The kernels of `make kernels` are not used, either."),
    Setting("DPARRAY_NOTICES", "0", "`pytest -s` at a terminal shows no notices."),
    Setting(
        "SYCL_CACHE_PERSISTENT",
        "1",
        "dpnp's kernels take 50 to 250 ms to build in each context of each process, and 5 ms to "
        "load. SYCL stores them by a digest of kernel and driver version.",
    ),
    Setting("SYCL_CACHE_DIR", f"{_ROOT}/build/sycl-cache", "They outlive the session."),
    Setting(
        "SYCL_IN_MEM_CACHE_EVICTION_THRESHOLD",
        "1000000",
        "Each of these kernels takes 0.5 MB in memory, and 2 MB if it was built. SYCL counts 0.03 "
        "MB of them, and beyond this sum forgets those that were not used for longest.",
    ),
    Setting(
        "MALLOC_ARENA_MAX",
        "2",
        "Workers read it when they start. With a heap for each thread, the C library keeps 50 MB "
        "more that are free.",
    ),
    Setting(
        "OPENBLAS_THREAD_TIMEOUT",
        "4",
        "Otherwise OpenBLAS's threads spin for 2**26 cycles after each product of matrices.",
    ),
)

_NEW_CACHE = "a new cache: kernels of other programs have no influence, and theirs is not changed"
#: What files set by themselves, and why. ``tests/package/test_environment.py`` compares.
OTHERS = {
    "conftest.py": {
        "DPARRAY_CACHE_DIR": _NEW_CACHE,
        "DPARRAY_TEST_ALL": "--all, which `tests.support.examples` reads in workers, too",
        "DPARRAY_VERIFY_IR": "programs of the IR are verified after each stage",
        "OCL_ICD_FILENAMES": "the CPU driver and its copy, with DPARRAY_TEST_SECOND_PLATFORM",
        "PYTHONDONTWRITEBYTECODE": "removed: each process that a test starts would compile all of "
        "dparray's source files, which takes half of the time of an import",
    },
    "crashes.py": {"DPARRAY_TEST_CRASHES": "the folder where workers name the running test"},
    "benchmarks/_peers.py": {"DPARRAY_CACHE_DIR": "a new cache for one row"},
    "conformance/test_against_strict.py": {
        "ARRAY_API_STRICT_API_VERSION": "the version that is compared",
    },
    "conformance/test_scikit_learn.py": {
        "SCIPY_ARRAY_API": "scikit-learn requires it before SciPy is imported",
    },
    "conformance/test_standard_table.py": {
        "ARRAY_API_STRICT_API_VERSION": "the version that is compared",
    },
    "cuda/hardware.py": {
        "CUDA_HOME": "CuPy looks for an installed toolkit there",
        "CUDA_STANDIN": "--standin",
        "DPARRAY_CACHE_DIR": "kernels are there for the next run",
        "DPARRAY_DEVICE": "the device that is checked",
    },
    "cuda/on_cuda.py": {"DPARRAY_DEVICE": "the default device of the tests"},
    "cuda/standin.py": {
        "CUDA_STANDIN_ROOT": "the library imports the emulator from there",
        "LD_LIBRARY_PATH": "processes that a test starts load the stand-in, too",
    },
    "evaluate/random_statements.py": {
        "DPARRAY_CACHE_DIR": _NEW_CACHE,
        "DPARRAY_DEVICE": "the device of --device",
    },
    "gpu_driver/collect.py": {
        "CALLS_DEVICE": "the CPU device runs the calls",
        "DPARRAY_BACKGROUND_COMPILE": "every kernel is collected",
        "DPARRAY_CACHE_DIR": _NEW_CACHE,
        "DPARRAY_KERNEL_STORE": "every kernel is compiled",
    },
    "stress/stress.py": {
        "DPARRAY_CACHE_DIR": _NEW_CACHE,
        "DPARRAY_SOAK_SO_FAR": "carries counts into the next process",
    },
}


def set_for_tests() -> None:
    """Set the variables of `TESTS` that are not set."""
    for variable, value, _ in TESTS:
        os.environ.setdefault(variable, value)


def without_options() -> None:
    """Remove all options of dparray."""
    for variable in [each for each in os.environ if each.startswith("DPARRAY_")]:
        del os.environ[variable]
