"""The first call of a Tile function in a process whose disk cache knows its kernel, in seconds.

The benchmark ``tile`` runs this file.
"""

from __future__ import annotations

import sys
import time

import dparray as dp
from tests.benchmarks.tile import SHIFT


def main(filter_string: str) -> None:
    """Make and call a function whose kernel the disk cache knows, and print what it took."""
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
