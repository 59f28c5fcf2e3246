"""Preparation of Numba's modules for LLVM's passes: data layout, linkage, OpenCL function names."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding as llvm

from dparray._compiler.abi import TRIPLE, mangled


@functools.cache
def data_layout() -> str:
    """Return the sizes, alignments and native widths of the target."""
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine()
    return str(machine.target_data)


def _functions_of_opencl() -> dict[str, str]:
    """Return the C functions that Numba calls, with their OpenCL names."""
    unary = (
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor "
        "lgamma log log10 log1p log2 rint round sin sinh sqrt tan tanh tgamma trunc"
    )
    binary = "atan2 copysign fmax fmin fmod hypot nextafter pow"
    found = {}
    for code, suffix in (("d", ""), ("f", "f")):
        for name in unary.split():
            found[name + suffix] = mangled(name, code)
        for name in binary.split():
            found[name + suffix] = mangled(name, 2 * code)
        found[f"ldexp{suffix}"] = mangled("ldexp", f"{code}i")
    found |= {f"numba_{name}": theirs for name, theirs in found.items()}
    for suffix in ("", "f"):
        found[f"numba_gamma{suffix}"] = found[f"tgamma{suffix}"]
        found[f"numba_fixed_fmod{suffix}"] = found[f"fmod{suffix}"]
    return found


_OPENCL_FUNCTIONS = _functions_of_opencl()
_ENVIRONMENTS = "_ZN08NumbaEnv"  # the prefix of variables that hold Python objects


def finished(module: Any, entry: str) -> str:
    """Return the unoptimized text of a linked module in which only the entry point is visible.

    The helper process optimizes it: structures stay values unless they are split (SROA) and their
    parts are followed (InstCombine), and the back end knows no values of structures.
    """
    for function in module.functions:
        if not function.is_declaration:
            if function.name != entry:
                function.linkage = "internal"
        elif function.name in _OPENCL_FUNCTIONS:
            function.name = _OPENCL_FUNCTIONS[function.name]
            function.calling_convention = "spir_func"
            function.add_function_attribute("nounwind")
    for variable in module.global_variables:
        if variable.name.startswith(_ENVIRONMENTS) or not variable.is_declaration:
            variable.linkage = "internal"
    return str(module)
