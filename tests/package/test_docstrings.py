"""Each public name has a docstring with an example that runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import dparray as dp

pytestmark = pytest.mark.static

NAMESPACES = {"dparray": dp}
NAMESPACES["dparray.lib.stride_tricks"] = dp.lib.stride_tricks
NAMESPACES |= {
    f"dparray.{name}": getattr(dp, name)
    for name in (
        *("algorithms", "config", "device", "fft", "kernel_api", "linalg", "memory", "random"),
        *("sharding", "special", "testing"),
    )
}

# IPython calls it for `%load_ext dparray`.
EXTENSION = {"load_ipython_extension", "unload_ipython_extension"}


def public(place: str) -> Iterator[tuple[str, Any]]:
    """Return public functions and classes of a namespace that dparray defines, with full names."""
    namespace = NAMESPACES[place]
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


def failure(name: str, value: Any) -> str:
    """The problem with the examples of a docstring, which find ``dp``, or nothing."""
    text = inspect.getdoc(value) or ""
    if ">>> " not in text:
        return f"{name} has no example"
    test = doctest.DocTestParser().get_doctest(text, {"dp": dp}, name, None, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=output.append)
    return "".join(output) if runner.failures else ""


#: The examples of special functions compile for a minute.
SLOW = {"dparray.special": pytest.mark.slow}


@pytest.mark.parametrize(
    "namespace", [pytest.param(name, marks=SLOW.get(name, ())) for name in NAMESPACES]
)
def test_each_docstring_has_an_example_that_runs(namespace: str) -> None:
    failures = [failure(*each) for each in public(namespace)]
    assert failures
    assert not any(failures), "\n".join(filter(None, failures))


def test_each_method_is_documented() -> None:
    slots = {"block", "dtype", "offset", "shape", "size", "strides", "queue", "usm_type"}
    public_names = [name for name in dir(dp.ndarray) if not name.startswith("_")]
    documented = {name for name in public_names if inspect.getdoc(getattr(dp.ndarray, name))}
    assert set(public_names) - documented <= slots
