"""The order in which rules change a module's text, and the drivers that need them.

A rule is a module with a function or with LLVM options. Its docstring has the defect, the versions
that have it, and the tests that fail without the rule; the page on the design lists them.
"""

import re
from collections.abc import Callable

from dparray._compiler.abi import INTEL_CPU, LOW_BITS
from dparray._compiler.back_ends.spirv import (
    expansions,
    floats_of_booleans,
    meetings,
    odd_integers,
    vectors,
    wide_integers,
)
from dparray._compiler.back_ends.spirv.intel_cpu import (
    alignments,
    complements,
    conditions,
    early_returns,
    extremes,
    loops,
    opaque,
    pointer_loops,
    private_choices,
    same_place,
    sines,
)
from dparray._compiler.back_ends.spirv.intel_gpu import carries

OPTIONS = (
    *pointer_loops.OPTIONS,
    *carries.OPTIONS,
    *wide_integers.OPTIONS,
    # Short loops are unrolled here, since their counts may be hidden from the driver: otherwise
    # the nearest of 16 points in space takes twice as long.
    "--unroll-full-max-count=8",
    "--unroll-threshold=64",
    "--unroll-max-percent-threshold-boost=100",
    "--unroll-allow-peeling=false",
)

_CALLED_LOW_BITS = re.compile(
    rf"= (?:tail )?call spir_func i32 @{re.escape(LOW_BITS)}\(i64 ([^)]+)\).*$", re.MULTILINE
)
_DECLARED_LOW_BITS = re.compile(rf"^declare .*@{re.escape(LOW_BITS)}\(.*\n", re.MULTILINE)


def _with_plain_low_bits(text: str) -> str:
    if LOW_BITS not in text:
        return text
    return _CALLED_LOW_BITS.sub(r"= trunc i64 \1 to i32", _DECLARED_LOW_BITS.sub("", text))


# The rules, in their order, with the driver that needs them.
_RULES: tuple[tuple[str, Callable[[str], str]], ...] = (
    *(("", rule) for rule in (_with_plain_low_bits, meetings.remove, odd_integers.apply)),
    *((INTEL_CPU, rule.apply) for rule in (alignments, early_returns, same_place, complements)),
    *((INTEL_CPU, rule.apply) for rule in (private_choices, extremes, conditions, sines)),
    *(("", rule) for rule in (vectors.divide, vectors.extend, vectors.truncate)),
    *((INTEL_CPU, rule) for rule in (loops.apply, opaque.declare)),
    *(("", rule) for rule in (floats_of_booleans.apply, expansions.apply)),
)


def writable(text: str, compiler: str) -> str:
    """Return a module's text in a form that LLVM writes correctly and a driver compiles correctly.

    Compilers without rules of their own get no rules against another one. Those hide values by
    opaque calls, which costs speed, and no other compiler is known to have the defects.

    Args:
        text: the module, after LLVM's passes.
        compiler: that of the target.
    """
    for needed_by, rule in _RULES:
        if needed_by in ("", compiler):
            text = rule(text)
    return text
