"""Make dparray the only library on which scikit-learn's array-API tests run."""

from __future__ import annotations

from collections.abc import Iterator

import compared_on_the_host
from sklearn.utils import _array_api


def namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    yield "dparray"


def combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, None, str]]:
    yield from (("dparray", None, "float64"), ("dparray", None, "float32"))


compared_on_the_host.install()
_array_api.yield_namespaces = namespaces
_array_api.yield_namespace_device_dtype_combinations = combinations
