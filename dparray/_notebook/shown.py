"""The classes with rich displays in notebooks.

The classes belong to lower layers and know nothing about notebooks. The module that makes the
displays is imported at the first use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from dparray._array.ndarray import ndarray
from dparray._functions.user_functions import ElementwiseFunction, ReductionFunction
from dparray._imports import when_imported
from dparray._kernel.function import KernelFunction
from dparray._language.device_function import DeviceFunction
from dparray.device import Device, DeviceList
from dparray.exceptions import ExecutionPlacementError
from dparray.memory.stats import MemoryStats

_CARDS: dict[type, str] = {
    ndarray: "array_html",
    Device: "device_html",
    DeviceList: "devices_html",
    MemoryStats: "memory_html",
    KernelFunction: "kernel_html",
    DeviceFunction: "function_html",
    ElementwiseFunction: "function_html",
    ReductionFunction: "function_html",
    ExecutionPlacementError: "placement_html",
}


def _show_as(shown: Any, card: str) -> None:
    def _repr_html_(self: Any) -> str:
        text: str = getattr(importlib.import_module("dparray._notebook.cards"), card)(self)
        return text

    shown._repr_html_ = _repr_html_


def _print_text(self: Any, printer: Any, cycle: bool) -> None:
    """Print the table in IPython's terminal, not the constructor call that ``repr`` returns."""
    printer.text(str(self))


def _show_explanations(explain: ModuleType) -> None:
    _show_as(explain.Explanation, "explanation_html")
    explain.Explanation._repr_pretty_ = _print_text


for _class, _card in _CARDS.items():
    _show_as(_class, _card)
MemoryStats._repr_pretty_ = _print_text  # type: ignore[attr-defined]
when_imported("dparray._explain.explain", _show_explanations)
