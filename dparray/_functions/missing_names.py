"""NumPy names that the namespace does not have, and the reasons, in ``missing_names.json``.

``dp.char`` and similar names raise ``AttributeError``, as any missing name does; the message names
the alternative.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray.exceptions import DTypeError

#: By reason the names of the namespace, and the attributes of arrays, that are missing: NumPy's
#: first, then those of CuPy, JAX, PyTorch, numba-dpex and dpctl.
_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_REASONS = {name: reason for reason, names in _TABLE["names"].items() for name in names}
ATTRIBUTES = {name: reason for reason, names in _TABLE["attributes"].items() for name in names}


def _removed(name: str) -> str | None:
    """Return NumPy's own message about a name that it removed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(np, name)
    except AttributeError as error:
        text = str(error).replace("`np.", "`dp.").replace("`numpy.", "`dp.").partition("\n")
        about = text[2] if text[0].startswith("module") else text[0]
        return about.partition(". The aliases")[0] or None
    return None


def __getattr__(name: str) -> Any:
    if name == "bfloat16":  # available if ml_dtypes is installed
        try:
            return _dtypes.bfloat16().type
        except DTypeError as error:
            raise AttributeError(str(error), name=name) from None
    reason = _REASONS.get(name) or (None if name.startswith("_") else _removed(name))
    because = "" if reason is None else f": {reason}"
    message = f"module 'dparray' has no attribute {name!r}{because}"
    # With name and obj, the interpreter suggests the name that was probably meant.
    raise AttributeError(message, name=name, obj=sys.modules["dparray"])
