"""``dparray cache``: show or clear the disk cache of compiled kernels."""

from __future__ import annotations

import argparse
import json

from dparray._compiler import cache, store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray cache``."""
    parser.add_argument("--clear", action="store_true", help="remove all entries")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.epilog = (
        "The cache is in DPARRAY_CACHE_DIR, or in the user's cache folder. A missing kernel "
        "is compiled again."
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the location and the content of the cache, or clear it."""
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
    print(f"entries  {stats.entries} (kernels, and device binaries from drivers)")
    regions = f"{stats.regions} ({stats.region_bytes / 2**20:.1f} MiB of native code by dp.jit)"
    print(f"regions  {regions}")
    print(f"size     {stats.nbytes / 2**20:.1f} MiB of at most {stats.limit / 2**20:.0f} MiB")
    print(f"bundled  {store.count()} precompiled kernels")
    return 0
