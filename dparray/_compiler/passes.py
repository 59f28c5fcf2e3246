"""LLVM's passes over a kernel's module, and what of its text the SPIR-V back end must not see.

The back end writes what it cannot write as something else or ends the process; each rule here
stands for such a case, with a test in ``tests/compiler/test_backend_rules.py``.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from llvmlite import binding as llvm

TRIPLE = "spirv64-unknown-unknown"

#: Without it LLVM says that the source is C++ for OpenCL, and Intel's CPU driver does not vectorise
#: ranges of two dimensions of that: a stencil takes 16 times as long.
OPENCL_VERSION = "!opencl.ocl.version = !{!0}\n!0 = !{i32 3, i32 0}\n"

SPEED = 2  # how much LLVM optimises, of 0 to 3


@functools.cache
def _machine() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(opt=SPEED)


@functools.cache
def data_layout() -> str:
    """Sizes, alignments and native widths of the target."""
    return str(_machine().target_data)


# --- functions ------------------------------------------------------------------------------------


def _mangled(name: str, codes: str) -> str:
    return f"_Z{len(name)}{name}{codes}"


def _functions_of_opencl() -> dict[str, str]:
    """OpenCL's names of the C functions that Numba calls."""
    unary = (
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor "
        "lgamma log log10 log1p log2 rint round sin sinh sqrt tan tanh tgamma trunc"
    )
    binary = "atan2 copysign fmax fmin fmod hypot nextafter pow"
    found = {}
    for code, suffix in (("d", ""), ("f", "f")):
        for name in unary.split():
            found[name + suffix] = _mangled(name, code)
        for name in binary.split():
            found[name + suffix] = _mangled(name, 2 * code)
        found[f"ldexp{suffix}"] = _mangled("ldexp", f"{code}i")
    found |= {f"numba_{name}": theirs for name, theirs in found.items()}
    for suffix in ("", "f"):
        found[f"numba_gamma{suffix}"] = found[f"tgamma{suffix}"]
        found[f"numba_fixed_fmod{suffix}"] = found[f"fmod{suffix}"]
    return found


_OPENCL_FUNCTIONS = _functions_of_opencl()
_ENVIRONMENTS = "_ZN08NumbaEnv"  # begins the names of variables that hold Python objects


def finished(module: Any, entry: str) -> str:
    """The text of a linked module, optimised, with one function: the entry point.

    Structures stay values unless they are split (SROA) and their parts are followed (InstCombine),
    and the back end knows no values of structures; so modules are optimised always.
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
    _optimise(module)
    return _writable(str(module))


def _optimise(module: Any) -> None:
    # LLVM's own vectors and unrolled loops are not those of the device.
    tuning = llvm.create_pipeline_tuning_options(speed_level=SPEED)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    tuning.loop_unrolling = tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(_machine(), tuning)
    builder.getModulePassManager().run(module, builder)
    cleaning = llvm.create_new_module_pass_manager()
    cleaning.add_global_dead_code_eliminate_pass()
    cleaning.add_strip_dead_prototype_pass()
    cleaning.run(module, builder)


# --- text -----------------------------------------------------------------------------------------

# SPIR-V has no poison, so these are conjunctions and disjunctions. Intel's CPU driver makes slower
# code of a condition that has both forms: a stencil takes 1.8 times as long.
_CONJUNCTIONS = re.compile(r"= select i1 ([^\s,]+), i1 ([^\s,]+), i1 false$", re.MULTILINE)
_DISJUNCTIONS = re.compile(r"= select i1 ([^\s,]+), i1 true, i1 ([^\s,]+)$", re.MULTILINE)

# The float of a truth value that LLVM has taken the negative of: 0 or -1, where the back end makes
# 0 and 1.
_FLOATS_OF_SIGNS = re.compile(r"= sitofp i1 (?P<bit>\S+) to (?P<type>half|float|double)")
_MINUS_ONE = {"half": "0xHBC00", "float": "-1.000000e+00", "double": "-1.000000e+00"}
_ZERO = {"half": "0xH0000", "float": "0.000000e+00", "double": "0.000000e+00"}


def _choose_float(found: re.Match[str]) -> str:
    kind = found["type"]
    return f"= select i1 {found['bit']}, {kind} {_MINUS_ONE[kind]}, {kind} {_ZERO[kind]}"


def _writable(text: str) -> str:
    """The text of a module as the back end writes it rightly."""
    text = _CONJUNCTIONS.sub(r"= and i1 \1, \2", text)
    text = _DISJUNCTIONS.sub(r"= or i1 \1, \2", text)
    return _FLOATS_OF_SIGNS.sub(_choose_float, text)
