"""Run programs and write their pictures: ``python -m dparray.examples mandelbrot``."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

import dparray as dp
from dparray._notebook.pictures import png
from dparray.examples import NAMES


def main(arguments: list[str] | None = None) -> int:
    """Run the programs of the command line; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m dparray.examples",
        description="Run small programs and write their pictures as PNG files.",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*NAMES, "all"])
    parser.add_argument("--folder", type=Path, default=Path(), help="for the pictures")
    parser.add_argument("--source", action="store_true", help="print the program instead")
    options = parser.parse_args(arguments)
    for name in NAMES if "all" in options.names else options.names:
        module = importlib.import_module(f"dparray.examples.{name}")
        if options.source:
            print(Path(str(module.__file__)).read_text(encoding="utf-8"))
            continue
        started = time.perf_counter()
        pixels = dp.asnumpy(module.picture())
        seconds = time.perf_counter() - started
        file = options.folder / f"{name}.png"
        file.write_bytes(png(pixels))
        print(f"{file}: {seconds:.2f} s on {dp.default_device()}, compilation included")
    return 0


if __name__ == "__main__":
    sys.exit(main())
