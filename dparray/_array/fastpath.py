"""The compiled fast path of small arrays, `_fastpath.c`, where it is built; loaded once.

Arrays inherit its slots, so that Python calls them without a method lookup.
`dparray/_functions/install_fastpath.py` registers the general path with it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import zlib
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent
#: The line that adds the module to an installation.
BUILD = "install a C compiler, then run `python -m dparray._array.build_fastpath`"
_FILE = "_fastpath.pyd" if sys.platform == "win32" else "_fastpath.abi3.so"


def _load() -> tuple[ModuleType | None, str]:
    """Return the compiled module; ``None`` if there is none for this Python and this source, and
    the reason if the installation lacks it.

    Raises:
        ImportError: ``DPARRAY_COMPILED`` names a file that is not such a module.
    """
    named = os.environ.get("DPARRAY_COMPILED", "")
    # Objects of a free-threaded Python have another layout, even if its lock is enabled.
    is_free_threaded = "t" in getattr(sys, "abiflags", "")
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    if named == "0" or is_free_threaded or not has_lock:
        return None, ""
    file = Path(named) if named else _FOLDER / _FILE
    module, reason = _load_file(file)
    if module is None and named:
        raise ImportError(
            f"DPARRAY_COMPILED={named}: {reason}; unset the variable to load the module that the "
            "install built, or set it to 0 to do without"
        )
    return module, reason


def _load_file(file: Path) -> tuple[ModuleType | None, str]:
    """Return the module in a file, or ``None`` and the reason."""
    if not file.is_file():
        return None, "there is no such file"
    loader = importlib.machinery.ExtensionFileLoader("_fastpath", str(file))
    spec = importlib.util.spec_from_loader("_fastpath", loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:  # built for another platform or a NumPy before 2, or not a library
        return None, f"it cannot be loaded ({error})"
    # The same digest as in build_fastpath, which is not imported because of its compiler tools.
    sources = sorted(_FOLDER.glob("_fastpath*.c"))
    digest = f"{zlib.crc32(b''.join(each.read_bytes() for each in sources)):08x}"
    if getattr(module, "made_from", None) != digest:
        return None, "it was built from another source; build it by make fastpath"
    return module, ""


module, missing_reason = _load()
#: The base class of arrays.
Base: type = object if module is None else module.Base
