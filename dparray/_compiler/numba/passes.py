"""Make passes of Numba's pipeline from functions of its state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.compiler_machinery import AnalysisPass, FunctionPass, register_pass
from numba.core.ir_utils import build_definitions


def change(*, mutates_blocks: bool = False) -> Callable[[Callable[[Any], bool]], type]:
    """Make a pass of a function that changes the representation of a function if it returns true.

    Args:
        mutates_blocks: whether it adds or removes blocks or jumps.
    """

    def make(function: Callable[[Any], bool]) -> type:
        def run_pass(self: Any, state: Any) -> bool:
            is_changed = function(state)
            if is_changed:
                state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            return is_changed

        cls = _pass_class(FunctionPass, function, run_pass)
        return register_pass(mutates_CFG=mutates_blocks, analysis_only=False)(cls)

    return make


def analysis(function: Callable[[Any], None]) -> type:
    """Make a pass of a function that only reads the representation of a function."""

    def run_pass(self: Any, state: Any) -> bool:
        function(state)
        return False

    cls = _pass_class(AnalysisPass, function, run_pass)
    return register_pass(mutates_CFG=False, analysis_only=True)(cls)


def _pass_class(base: Any, function: Callable[..., Any], run_pass: Callable[..., Any]) -> type:
    name = function.__name__.strip("_")
    members = {
        "_name": f"dparray_{name}",
        "__init__": lambda self: base.__init__(self),  # abstract in Numba's class
        "run_pass": run_pass,
    }
    return type(name, (base,), members)
