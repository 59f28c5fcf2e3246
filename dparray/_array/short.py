"""The compiled short way of small arrays, `short.c`, where there is one; loaded once.

It lies below the class of arrays, which inherits its slots: Python calls them without looking for a
method. `dparray/_functions/compiled.py` hands the Python functions over and puts it to use.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent


def _load() -> ModuleType | None:
    """The compiled module; ``None`` where there is none for this Python and of this source."""
    named = os.environ.get("DPARRAY_COMPILED", "")
    file = Path(named) if named else _FOLDER / "_short.abi3.so"
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    if named == "0" or not has_lock or not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location("_short", file)
    assert spec is not None and spec.loader is not None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # of another platform, or a NumPy before 2
        return None
    source = zlib.crc32((_FOLDER / "short.c").read_bytes())
    return module if getattr(module, "made_from", None) == f"{source:08x}" else None


module = _load()
#: The base class of arrays.
Base: type = object if module is None else module.Base
