"""NumPy names and parameters that the namespace does not have, and the reasons.

Those of names are in ``missing_names.json``.
``dp.char`` and similar names raise ``AttributeError``, as any missing name does; the message names
the alternative.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from collections.abc import Callable, Mapping
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


_FIELDS = "arrays have no fields to order by"
_SUBCLASSES = "arrays have no subclasses"
_PICKLES = "files contain numbers only and are never unpickled"

#: Parameters of NumPy functions that dparray does not have, and the reasons. An argument that is
#: NumPy's default is ignored.
PARAMETERS = {
    "like": "choose the placement with device= or sycl_queue=",
    "subok": _SUBCLASSES,
    "order": _FIELDS,
    "casting": "convert the result: x.astype(dtype)",
    "interpolation": "it is called method= now",
    "newshape": "it is called shape= now",
    "encoding": _PICKLES,
    "fix_imports": _PICKLES,
    "max_header_size": _PICKLES,
    "einsum_call": "it is for NumPy's own use",
    "style": "NumPy no longer uses it",
    "ndmax": "lists become arrays of numbers at every depth",
    "max_work": "comparing allocations is exact and fast",
    "legacy": "NumPy's other generators are not reproduced",
}

#: Parameters that the newest NumPy removed.
FORMER = frozenset({"interpolation", "newshape"})

#: Positional parameters of NumPy functions without a signature.
_UNDOCUMENTED = {
    "arange": ("start", "stop", "step", "dtype"),
    "bincount": ("x", "weights", "minlength"),
    "can_cast": ("from_", "to", "casting"),
    "copyto": ("dst", "src", "casting", "where"),
    "dot": ("a", "b", "out"),
    "lexsort": ("keys", "axis"),
    "may_share_memory": ("a", "b", "max_work"),
    "packbits": ("a", "axis", "bitorder"),
    "putmask": ("a", "mask", "values"),
    "ravel_multi_index": ("multi_index", "dims", "mode", "order"),
    "shares_memory": ("a", "b", "max_work"),
    "unpackbits": ("a", "axis", "count", "bitorder"),
    "unravel_index": ("indices", "shape", "order"),
}
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def parameters_of(function: Callable[..., Any]) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Return the positional parameters of a NumPy function, and the defaults of all."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        names = _UNDOCUMENTED.get(function.__name__, ())
        missing = dict.fromkeys(names, inspect.Parameter.empty)
        return names, missing | {"like": None, "subok": False}
    return (
        tuple(p.name for p in parameters if p.kind in BY_POSITION),
        {p.name: p.default for p in parameters},
    )


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
