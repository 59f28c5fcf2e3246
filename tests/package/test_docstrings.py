"""Every public name says what it does, and its example runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import dparray as dp

NAMESPACES = {"dparray": dp}
NAMESPACES["dparray.lib.stride_tricks"] = dp.lib.stride_tricks
NAMESPACES |= {
    f"dparray.{name}": getattr(dp, name)
    for name in (
        *("algorithms", "config", "device", "fft", "kernel_api", "linalg", "memory", "random"),
        *("sharding", "special", "testing"),
    )
}

# What IPython calls for `%load_ext dparray`.
EXTENSION = {"load_ipython_extension", "unload_ipython_extension"}


def public() -> Iterator[tuple[str, Any]]:
    """Functions and classes that are ours, under the name they are used by."""
    for place, namespace in NAMESPACES.items():
        for name in sorted(getattr(namespace, "__all__", None) or dir(namespace)):
            value = getattr(namespace, name)
            own = (getattr(value, "__module__", None) or "").startswith("dparray")
            if name.startswith("_") or inspect.ismodule(value) or not own or not callable(value):
                continue
            if isinstance(value, type) and issubclass(value, BaseException):
                continue
            if name in EXTENSION:
                continue
            yield f"{place}.{name}", value


@pytest.mark.parametrize(("name", "value"), [pytest.param(*item, id=item[0]) for item in public()])
def test_the_docstring_has_an_example_that_runs(name: str, value: Any) -> None:
    text = inspect.getdoc(value) or ""
    assert ">>> " in text, f"{name} has no example"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


@pytest.mark.parametrize("name", sorted(dir(dp.ndarray)))
def test_every_method_is_documented(name: str) -> None:
    if not name.startswith("_"):
        slots = {"block", "dtype", "offset", "shape", "size", "strides", "sycl_queue", "usm_type"}
        assert name in slots or inspect.getdoc(getattr(dp.ndarray, name))
