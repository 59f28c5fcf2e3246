"""A patch of llvmlite, whose pass managers are never freed.

Reason: `FunctionPassManager` and `ModulePassManager` inherit the method that frees them from two
classes, and Python finds the one that does nothing first. Numba makes a pass manager for each
function of a module, so a process that compiles grew by 1 MB a function. The patch changes no code
that is compiled, here or by users of Numba.
"""

from __future__ import annotations

from typing import Any

from dparray._imports import when_imported


def _free_pass_managers(module: Any) -> None:
    for kind in (module.FunctionPassManager, module.ModulePassManager):
        kind._dispose = module.NewPassManager._dispose


when_imported("llvmlite.binding.newpassmanagers", _free_pass_managers)
