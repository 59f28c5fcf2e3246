"""The kernels of expressions: loaded or compiled where that is worth its cost.

They are kept by structure: neither shapes nor scalar values are part of it, so a loop that changes
them compiles nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dparray import kernel_api
from dparray._codegen import elementwise, reduction_steps, reduction_text
from dparray._codegen.reduction_steps import ReductionStructure
from dparray._compiler import compile
from dparray._evaluate import limits
from dparray._evaluate.plan import KernelLaunch

_LANGUAGE = {
    name: getattr(kernel_api, name)
    for name in ("group_barrier", "AtomicRef", "MemoryOrder", "MemoryScope")
}


def source_of(structure: Any) -> str:
    """The text of the kernel of a structure."""
    if type(structure) is ReductionStructure:
        return reduction_text.source_of(structure)
    return elementwise.source_of(structure)


def types_of(structure: Any) -> tuple[str, ...]:
    """The type keys of the kernel's parameters, the item first."""
    if type(structure) is ReductionStructure:
        return "nditem:1", *reduction_steps.types_of(structure)
    return f"item:{1 + structure.has_rows}", *elementwise.types_of(structure)


def names_of(launch: KernelLaunch) -> Mapping[str, Any]:
    """What the text of the kernel refers to."""
    if type(launch.structure) is ReductionStructure:
        return {**launch.functions, **_LANGUAGE}
    return launch.functions


def options(fp_contract: bool) -> dict[str, bool]:
    """The compiler's options for generated kernels."""
    return {"fp_contract": True} if fp_contract else {}


def obtain(launch: KernelLaunch) -> Any:
    """The kernel of a launch, loaded or compiled if need be; ``None`` if that is not worth it yet.

    Raises:
        KernelCompileError: a function in it does not compile.
    """
    entry = launch.entry
    if entry.kernel is not None:
        return entry.kernel
    is_first = entry.elements == 0
    entry.elements += limits.counted_elements(launch.size)
    compiles = launch.must_compile or limits.is_worth_compiling(launch.size, entry.elements)
    if not compiles and not (is_first and limits.is_worth_loading(launch.size)):
        return None
    entry.source = source_of(launch.structure)
    function = elementwise.function_of(entry.source, names_of(launch))
    types, given = types_of(launch.structure), options(launch.fp_contract)
    kernel = compile.recall_kernel(function, types, given)
    if kernel is not None:
        entry.origin = "disk"
    elif compiles:
        kernel = compile.obtain_kernel(function, types, given)
        entry.origin = "compiled"
    entry.kernel = kernel
    return kernel
