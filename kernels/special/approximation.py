"""Polynomials and rational functions of `coefficients` as device functions of one precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dparray.kernels.special.coefficients import FITS, TEMME, ZEROS

#: Makes a device function of a Python function.
Device = Callable[[Callable[..., Any]], Callable[..., Any]]
Functions = Mapping[str, Callable[..., Any]]


def has_double_precision(dtype: type) -> bool:
    return bool(dtype(0).itemsize == 8)


def fitted(dtype: type, name: str) -> Any:
    return FITS["float64" if has_double_precision(dtype) else "float32"][name]


def zeros_of(dtype: type, name: str) -> list[Any]:
    pairs = ZEROS["float64" if has_double_precision(dtype) else "float32"][name]
    return [dtype(part) for pair in pairs for part in pair]


def make_from_text(text: str, names: dict[str, Any], device: Device) -> Callable[..., Any]:
    """Make the device function ``value`` from source that refers to constants by these names."""
    scope: dict[str, Any] = {"__name__": __name__, "__dparray_text__": text, **names}
    exec(compile(text, "<dparray polynomial>", "exec"), scope)
    return device(scope["value"])


def _nested(names: Sequence[str], variable: str) -> str:
    """Return the text of Horner's rule for coefficients from the constant one on."""
    return f" + {variable} * (".join(names) + ")" * (len(names) - 1)


def make_polynomial(dtype: type, coefficients: Sequence[float], device: Device) -> Any:
    """Return the polynomial with these coefficients, the constant one first."""
    names = {f"c{k}": dtype(value) for k, value in enumerate(coefficients)}
    return make_from_text(f"def value(x):\n    return {_nested(list(names), 'x')}\n", names, device)


def make_approximation(dtype: type, name: str, device: Device) -> Any:
    """Return the approximation that `coefficients` has under a name."""
    parts = fitted(dtype, name)
    names: dict[str, Any] = {}
    texts = []
    for letter, part in zip("pq", parts, strict=False):
        here = {f"{letter}{k}": dtype(value) for k, value in enumerate(part)}
        names |= here
        texts.append(f"({_nested(list(here), 'x')})")
    return make_from_text(f"def value(x):\n    return {' / '.join(texts)}\n", names, device)


def make_temme_sum(dtype: type, device: Device) -> Any:
    """Return the double series of N. M. Temme's expansion, in powers of eta and of 1/a."""
    rows = TEMME["float64" if has_double_precision(dtype) else "float32"]
    names: dict[str, Any] = {}
    texts = []
    for k, row in enumerate(rows):
        here = {f"c{k}_{n}": dtype(value) for n, value in enumerate(row)}
        names |= here
        texts.append(f"({_nested(list(here), 'x')})")
    return make_from_text(f"def value(x, y):\n    return {_nested(texts, 'y')}\n", names, device)
