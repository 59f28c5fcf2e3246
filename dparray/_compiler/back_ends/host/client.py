"""The back end for the host processor: optimized LLVM IR, which the driver compiles."""

from __future__ import annotations

import functools
import re
from typing import Any

from llvmlite import binding as llvm

from dparray._compiler.back_ends.host.division import as_floats
from dparray._compiler.back_ends.host.functions import is_joint
from dparray._compiler.back_ends.host.mathematics import APART
from dparray._compiler.back_ends.host.translation import LOCAL_MEMORY, translated
from dparray._compiler.back_ends.host.unrolling import with_marked_loops
from dparray._compiler.targets import EmissionError
from dparray._driver.interface import Target
from dparray._ir.instructions import Function
from dparray._ir.passes import finish
from dparray._ir.speculation import load_early

_MAX_UNROLLINGS = 3
_UNDEFINED = re.compile(r"^declare [^@\n]*@\"?(_Z\w+)\"?\(", re.MULTILINE)


def start() -> None:
    """Prepare LLVM; it is loaded already."""
    _machine()


def prepare(function: Function) -> None:
    """Load early what LLVM would gather."""
    load_early(function)
    finish(function, "loads")


@functools.cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )


def optimised(text: str, target: Target, contracts: bool = False) -> tuple[str, bytes]:
    """Return the optimized text of a module, and the bytes that the driver compiles.

    Args:
        text: the compiler's LLVM IR, not optimized.
        target: its target.
        contracts: whether products and sums may be contracted.

    Raises:
        EmissionError: it calls functions that hosts do not have.
    """
    head, portable = translated(text, contracts)
    layout = f'target datalayout = "{_machine().target_data}"\n'
    layout += f'target triple = "{llvm.get_process_triple()}"\n'
    module = llvm.parse_assembly(layout + portable)
    for function in module.functions:
        is_kept = function.name == head.entry or function.name.startswith(APART)
        if not function.is_declaration and not is_kept:
            function.linkage = "internal"
    _optimise(module)
    result = str(module)
    changed = as_floats(with_marked_loops(result))
    # Once an outer loop is unrolled, the lengths of inner loops may be constants.
    for _ in range(_MAX_UNROLLINGS):
        if changed == result:
            break
        module = llvm.parse_assembly(changed)
        _optimise(module)
        result = str(module)
        changed = with_marked_loops(result)
    # No address wraps around. Without that mark, LLVM gathers elements at constant strides.
    result = re.sub(r"= getelementptr (?!inbounds|nusw|nuw)", "= getelementptr nusw ", result)
    undefined = {
        name for name in _UNDEFINED.findall(result) if not is_joint(name) and name != LOCAL_MEMORY
    }
    if undefined:
        raise EmissionError(f"it calls {', '.join(sorted(undefined))}, which hosts do not have")
    return result, (head.line() + result).encode()


def _optimise(module: Any) -> None:
    """Run LLVM's passes without those that make vectors, and name all values.

    Switches become branches, and work-items are vectorized by the driver. A loop ends in blocks of
    its own: another loop may be left by some work-items at a time, and must not begin there.
    """
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.loop_interleaving = tuning.slp_vectorization = False
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(_machine(), tuning)
    builder.getModulePassManager().run(module, builder)
    cleaning = llvm.create_new_module_pass_manager()
    cleaning.add_lower_switch_pass()
    cleaning.add_loop_simplify_pass()
    cleaning.add_instruction_namer_pass()
    cleaning.add_global_dead_code_eliminate_pass()
    cleaning.add_strip_dead_prototype_pass()
    cleaning.run(module, builder)


def needs(module: bytes) -> set[str]:
    """Return the aspects that a device must have: all hosts have them."""
    return set()


def without_float64(module: bytes) -> bytes:
    """Return the module: all hosts have float64."""
    return module


def readable(text: str, module: bytes) -> str:
    """Return the module, which is text."""
    return module.decode()
