"""``numpy.finfo`` and ``numpy.iinfo`` in device code: their attributes are constants.

Loaded with the compiler; nothing else imports it. Registers an implementation with Numba for the
target.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.errors import TypingError
from numba.np.numpy_support import as_dtype

from dparray._compiler.numba.registration import device_overload

_FIELDS: dict[Any, str] = {
    np.finfo: "bits eps epsneg max min nmant precision resolution smallest_normal tiny",
    np.iinfo: "bits max min",
}


def _limits_of(find: Callable[[Any], Any]) -> None:
    """Let device code query the limits of a type, given as a constant or by an element."""
    fields = _FIELDS[find].split()
    limits_of = namedtuple(find.__name__, fields)  # type: ignore[misc]

    @device_overload(find)
    def limits(dtype: Any) -> Any:
        python_type = getattr(dtype, "typing_key", None)
        scalar = getattr(dtype, "dtype", dtype)
        try:
            numpy_limits = find(python_type if python_type in (int, float) else as_dtype(scalar))
        except (ValueError, NotImplementedError):
            kinds = "floats" if find is np.finfo else "integers"
            raise TypingError(f"np.{find.__name__} takes types of {kinds}; got {scalar}") from None
        numbers = limits_of(*[getattr(numpy_limits, name) for name in fields])
        return lambda dtype: numbers


for _find in _FIELDS:
    _limits_of(_find)
