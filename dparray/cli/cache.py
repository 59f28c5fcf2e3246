"""``dparray cache``: what the disk cache of compiled kernels holds."""

from __future__ import annotations

import argparse
import json

from dparray._compiler import cache, store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray cache``."""
    parser.add_argument("--clear", action="store_true", help="remove everything from it")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.epilog = (
        "It lies in DPARRAY_CACHE_DIR, or in the user's cache folder. A kernel that is not there "
        "is compiled again."
    )


def run(arguments: argparse.Namespace) -> int:
    """Print where the cache is and what it holds, or clear it."""
    base = cache.base_directory()
    directory = None if base is None else str(base)
    if arguments.clear:
        removed = cache.clear()
        if arguments.json:
            print(json.dumps({"directory": directory, "removed": removed}, indent=2))
            return 0
        kept_in = directory or f"no folder: {cache.missing_reason()}"
        print(f"removed {removed} {'entry' if removed == 1 else 'entries'} from {kept_in}")
        return 0
    stats = cache.stats()
    if arguments.json:
        print(json.dumps(stats._asdict() | {"directory": directory}, indent=2))
        return 0
    print(f"folder   {directory or 'none: ' + cache.missing_reason()}")
    print(f"entries  {stats.entries} (kernels, and what drivers built of them)")
    regions = f"{stats.regions} ({stats.region_bytes / 2**20:.1f} MiB of native code by dp.jit)"
    print(f"regions  {regions}")
    print(f"size     {stats.nbytes / 2**20:.1f} MiB of at most {stats.limit / 2**20:.0f} MiB")
    print(f"besides  {store.count()} kernels that dparray brings")
    return 0
