"""Coefficients of the approximations in :mod:`dparray.kernels.special`.

`coefficients.json` is made by `tests/reference/special_coefficients.py`: interpolation in
Chebyshev's nodes with mpmath, by polynomials or quotients of two, for single precision by shorter
ones. In each table the first key is the precision.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def _as_tuples(value: Any) -> Any:
    """JSON has lists; kernels refer to tuples, which are constants."""
    if isinstance(value, dict):
        return {key: _as_tuples(each) for key, each in value.items()}
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


_TABLES = _as_tuples(json.loads(Path(__file__).with_suffix(".json").read_text("ascii")))
#: For each name: the numerator and, if there is one, the denominator.
FITS: dict[str, Any] = _TABLES["fits"]
#: Zeros, as the sum of two floats.
ZEROS: dict[str, Any] = _TABLES["zeros"]
#: d(k, n) of Temme's expansion of the incomplete gamma functions (DLMF 8.12).
TEMME: dict[str, Any] = _TABLES["temme"]
