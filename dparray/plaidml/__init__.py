"""PlaidML's Python interface, version 0, on dparray's arrays.

A script written for PlaidML runs with ``import dparray.plaidml as plaidml``; a :class:`Tensor` is
an array of dparray (``tensor.array``) with its lock. In: PlaidML's calls. Out: tensors. Imports:
rows up to ``satellites``, and ``keras`` for ``plaidml.keras``.
"""

import importlib
from typing import Any

from dparray.plaidml import exceptions, op, tile
from dparray.plaidml.devices import (
    Context,
    Device,
    DeviceConfig,
    Dimension,
    DType,
    Shape,
    Tensor,
    devices,
    open_first_device,
    set_floatx,
)
from dparray.plaidml.exceptions import PlaidMLError
from dparray.plaidml.functions import Function, Invocation, Invoker, run
from dparray.plaidml.tile import load_function
from dparray.plaidml.views import View

__all__ = [
    "Context",
    "DType",
    "Device",
    "DeviceConfig",
    "Dimension",
    "Function",
    "Invocation",
    "Invoker",
    "PlaidMLError",
    "Shape",
    "Tensor",
    "View",
    "devices",
    "exceptions",
    "load_function",
    "op",
    "open_first_device",
    "run",
    "set_floatx",
    "tile",
]


def __getattr__(name: str) -> Any:
    """Import ``dparray.plaidml.keras`` at its first use."""
    if name == "keras":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
