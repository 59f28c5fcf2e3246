"""Matrices in device code: their functions by the number of rows.

Loaded with the rest of the device code; importing it registers the implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from dparray._compiler.numba.registration import device_overload
from dparray._compiler.numba.types import VectorType
from dparray._language import small_matrices


def _implementation(name: str, m: Any) -> Callable[..., Any] | None:
    rows = m.types if isinstance(m, types.BaseTuple) else ()
    if not all(isinstance(each, VectorType) and each.width == len(rows) for each in rows):
        return None
    return getattr(small_matrices, f"{name}_{len(rows)}", None)


def _register(function: Callable[[Any], Any]) -> None:
    device_overload(function)(lambda m: _implementation(function.__name__, m))


for _function in (small_matrices.inv, small_matrices.det, small_matrices.transpose):
    _register(_function)


@device_overload(small_matrices.matmul)
def _matmul(m: Any, n: Any) -> Callable[..., Any] | None:
    if isinstance(n, VectorType):
        return _implementation("apply", m)
    return _implementation("product", m) if _implementation("product", n) else None
