"""Builds the compiled short way of small arrays: ``python -m dparray._array.build_short``.

The build of a wheel, an editable install and ``make venv`` do it where there is a C compiler. The
file lies beside its source, `short.c`, and `dparray/_array/short.py` loads it. It takes a C
compiler, the headers of Python and NumPy, and a second. What it makes is for all Pythons from 3.10
on and NumPy 2; where it is not made, the same is done in Python.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("short.c")
FILE = "_short.abi3.so"


def build(folder: Path) -> Path:
    """Compile the module into a folder, and return its file.

    Raises:
        OSError: there is no C compiler.
        subprocess.CalledProcessError: it refuses; ``stderr`` says why.
    """
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    headers = [f"-I{np.get_include()}", f"-I{sysconfig.get_path('include')}"]
    made, file = folder / f".{FILE}", folder / FILE
    # A module that was made from another source is not loaded.
    headers.append(f'-DMADE_FROM="{zlib.crc32(SOURCE.read_bytes()):08x}"')
    options = ["-O2", "-fPIC", "-shared", *headers, str(SOURCE), "-o", str(made)]
    subprocess.run([*compiler, *options], check=True, capture_output=True, text=True)
    made.replace(file)  # a process that has the old one keeps it
    return file


def main() -> int:
    """Build it beside its source."""
    try:
        print(build(SOURCE.parent))
    except OSError as error:
        print(f"no C compiler: {error}; small arrays stay computed by way of Python")
        return 1
    except subprocess.CalledProcessError as error:
        print(error.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
