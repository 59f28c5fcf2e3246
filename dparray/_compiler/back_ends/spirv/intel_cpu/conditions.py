"""Write conditions in one form, as conjunctions and disjunctions. SPIR-V has no poison.

Defect of Intel's CPU driver (version not recorded): conditions in two forms, of which one is a
    choice, make a stencil take 1.8 times as long.
Tests: test_conditions_have_one_form.
"""

import re

_CONJUNCTIONS = re.compile(r"= select i1 ([^\s,]+), i1 ([^\s,]+), i1 false$", re.MULTILINE)
_DISJUNCTIONS = re.compile(r"= select i1 ([^\s,]+), i1 true, i1 ([^\s,]+)$", re.MULTILINE)


def apply(text: str) -> str:
    text = _CONJUNCTIONS.sub(r"= and i1 \1, \2", text)
    return _DISJUNCTIONS.sub(r"= or i1 \1, \2", text)
