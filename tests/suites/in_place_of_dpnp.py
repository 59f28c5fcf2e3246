"""Stand in for ``dpnp`` in dpnp's tests: dparray, and a few names that their helpers need."""

from __future__ import annotations

import sys
import types
from typing import Any

from numpy.exceptions import AxisError

import dparray

# isort: split
import dpnp
import dpnp.dpnp_utils
import dpnp.exceptions
import dpnp.tensor
from dpnp import is_cuda_backend

__all__ = ["default_float_type", "is_cuda_backend"]

config = types.SimpleNamespace(__DPNP_RAISE_EXCEPION_ON_NUMPY_FALLBACK__=1)
tensor = dpnp.tensor


def _module(name: str, values: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(f"{__name__}.{name}")
    vars(module).update((k, v) for k, v in values.items() if not k.startswith("__"))
    sys.modules[module.__name__] = module
    return module


def default_float_type(device: Any = None, sycl_queue: Any = None) -> Any:
    """Return dpnp's default type, also for a device of dparray's."""
    return dpnp.default_float_type(getattr(device, "sycl_device", device), sycl_queue)


def is_supported_array_type(value: Any) -> bool:
    """Return whether it is an array of the library under test."""
    return isinstance(value, dparray.ndarray)


def convert_item(item: Any) -> Any:
    """Convert arrays to NumPy arrays, also in lists, before the suite compares them."""
    if isinstance(item, dparray.ndarray):
        return item.asnumpy()
    if isinstance(item, (list, tuple)):
        return type(item)(map(convert_item, item))
    return item


# The tests require NumPy to raise the same error.
_errors = vars(dpnp.exceptions) | vars(dparray.exceptions) | {"AxisError": AxisError}
_module("exceptions", _errors)
_module("dpnp_array", {"dpnp_array": dparray.ndarray})
_module("dpnp_utils", vars(dpnp.dpnp_utils) | {"convert_item": convert_item})
for _name in ("fft", "linalg"):
    sys.modules[f"{__name__}.{_name}"] = getattr(dparray, _name)
# CuPy's helpers store and restore the states of its generators.
_states = types.SimpleNamespace(_dpnp_random_states={})
random = _module("random", vars(dparray.random) | {"dpnp_iface_random": _states})
exceptions = sys.modules[f"{__name__}.exceptions"]
scipy = types.SimpleNamespace(linalg=dparray.linalg, special=dparray.special)


def __getattr__(name: str) -> Any:
    return getattr(dparray, name)
