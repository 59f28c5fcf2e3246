"""Time the first launches of a new process, in seconds; the benchmark ``launch`` runs this file.

Print two numbers: the first launch of a kernel that is in the disk cache, and the first launch of
another such kernel.
"""

from __future__ import annotations

import sys
import time

import dparray as dp
from dparray._kernel.launch import call_kernel
from tests.benchmarks.launch import add, add_in_groups


def main(filter_string: str) -> None:
    """Launch two kernels on a device and print the time of each launch."""
    x, y, out = (dp.ones(64, dtype="float32", device=filter_string) for _ in range(3))
    dp.synchronize(out)
    times = []
    for kernel, index_space in ((add, dp.Range(64)), (add_in_groups, dp.NdRange(64, 64))):
        started = time.perf_counter()
        call_kernel(kernel, index_space, x, y, out)
        times.append(time.perf_counter() - started)
        dp.synchronize(out)
    print(*times)


if __name__ == "__main__":
    main(sys.argv[1])
