"""Let NumPy's assertions take dparray arrays: the suites compare with them and expect a copy.

Everything else stays as users have it: no array becomes a NumPy array implicitly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import dparray

_ASSERTIONS = (
    "assert_allclose",
    "assert_almost_equal",
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_equal",
    "assert_array_less",
    "assert_equal",
)


def _host(value: Any) -> Any:
    if isinstance(value, dparray.ndarray):
        return value.asnumpy()
    if type(value) in (list, tuple):
        return type(value)(map(_host, value))
    return value


def _on_the_host(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def compare(*arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        return function(*map(_host, arguments), **{k: _host(v) for k, v in keywords.items()})

    return compare


def install() -> None:
    """Wrap NumPy's assertions, before the suites import them by name."""
    for name in _ASSERTIONS:
        wrapped = _on_the_host(getattr(np.testing, name))
        setattr(np.testing, name, wrapped)
