"""Choose the float of a negated Boolean.

Defect of LLVM 22: the float of a negated Boolean, 0 or -1, is written as 0 or 1.
Tests: test_the_float_of_a_negated_boolean_is_minus_one,
    test_the_negative_of_a_python_boolean_is_minus_one_also_as_a_float.
"""

import re

_FLOATS_OF_SIGNS = re.compile(r"= sitofp i1 (?P<bit>\S+) to (?P<type>half|float|double)")
_MINUS_ONE = {"half": "0xHBC00", "float": "-1.000000e+00", "double": "-1.000000e+00"}
_ZERO = {"half": "0xH0000", "float": "0.000000e+00", "double": "0.000000e+00"}


def _choose_float(found: re.Match[str]) -> str:
    kind = found["type"]
    return f"= select i1 {found['bit']}, {kind} {_MINUS_ONE[kind]}, {kind} {_ZERO[kind]}"


def apply(text: str) -> str:
    return _FLOATS_OF_SIGNS.sub(_choose_float, text)
