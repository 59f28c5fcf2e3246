"""Time the first call of a Tile function whose kernel is in the disk cache, in seconds.

The benchmark ``tile`` runs this file in a new process.
"""

from __future__ import annotations

import sys
import time

import dparray as dp
from tests.benchmarks.tile import SHIFT


def main(filter_string: str) -> None:
    """Make and call a function whose kernel is in the disk cache, and print the time."""
    dp.config.host_tier = False
    x = dp.zeros(64, dtype="float32", device=filter_string) + 1
    dp.synchronize(x)
    started = time.perf_counter()
    result = dp.tilelang.function(SHIFT)(x)
    seconds = time.perf_counter() - started
    dp.synchronize(result)
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1])
