"""Coefficients of the approximations in :mod:`dparray.kernels.special`.

`tests/reference/special_coefficients.py` computes `coefficients.json` with mpmath: interpolation in
Chebyshev nodes, by polynomials or quotients of two; single precision has shorter ones. In each
table the first key is the precision.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def _as_tuples(value: Any) -> Any:
    """Convert the lists of JSON to tuples, which are constants in kernels."""
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
