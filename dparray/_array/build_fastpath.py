"""Build the compiled fast path of small arrays: ``python -m dparray._array.build_fastpath``.

Building a wheel, an editable install and ``make venv`` run it if there is a C compiler. The module
is written next to its sources, `_fastpath*.c`, and `dparray/_array/fastpath.py` loads it. The build
needs a C compiler, the headers of Python and NumPy, and a second. The module works with every
Python from 3.10 on and NumPy 2. Without it arrays use the general path, which is slower for small
ones.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path

import numpy as np

#: The source file that includes the others.
SOURCE = Path(__file__).with_name("_fastpath.c")
FILE = "_fastpath.pyd" if sys.platform == "win32" else "_fastpath.abi3.so"
#: The compiler's options that are the same for all systems.
OPTIONS = ("-O2", "-std=gnu11", "-fPIC", "-shared", "-pthread")


def source_digest() -> str:
    """Return a digest of all sources, which is stored in the module, so that an outdated module is
    not loaded.
    """
    sources = sorted(SOURCE.parent.glob("_fastpath*.c"))
    return f"{zlib.crc32(b''.join(each.read_bytes() for each in sources)):08x}"


def build(folder: Path) -> Path:
    """Compile the module into a folder, and return its file.

    Raises:
        OSError: there is no C compiler.
        subprocess.CalledProcessError: the compiler failed; ``stderr`` has its message.
    """
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    headers = [f"-I{np.get_include()}", f"-I{sysconfig.get_path('include')}"]
    temporary, file = folder / f".{FILE}", folder / FILE
    headers.append(f'-DMADE_FROM="{source_digest()}"')
    options = [*OPTIONS, *headers, str(SOURCE), "-o", str(temporary)]
    subprocess.run([*compiler, *options], check=True, capture_output=True, text=True)
    temporary.replace(file)  # A running process keeps the old file.
    return file


def main() -> int:
    """Build it next to its source."""
    try:
        print(build(SOURCE.parent))
    except OSError as error:
        print(f"no C compiler: {error}; small arrays go the general way, which is slower")
        return 1
    except subprocess.CalledProcessError as error:
        print(error.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
