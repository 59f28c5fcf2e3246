"""Choose minima and maxima of integers by comparisons.

Defect of Intel's CPU driver (version not recorded): the back end writes them as calls of OpenCL
    functions, and the driver treats the result of a function as different in each work-item: a loop
    up to the minimum of two uniform numbers runs with masks (a convolution takes 4 times as long).
Tests: test_extremes_of_integers_are_choices, test_no_kernel_calls_a_function_for_a_minimum.
"""

import re

from dparray._compiler.back_ends.spirv.text import ORDERS

_EXTREMES = re.compile(
    r"^  (?P<name>%\S+) = (?:tail )?call (?P<type>i\d+) @llvm\.(?P<which>[su]m(?:in|ax))"
    r"\.i\d+\(i\d+ (?:range\([^)]*\) )?(?P<a>[^\s,]+), i\d+ (?:range\([^)]*\) )?(?P<b>[^\s,)]+)\)"
    r".*$",
    re.MULTILINE,
)


def _chosen(found: re.Match[str]) -> str:
    a, b, kind = found["a"], found["b"], found["type"]
    is_first = f"%dparray.order.{found.start()}"
    order = ORDERS[found["which"]]
    return (
        f"  {is_first} = icmp {order} {kind} {a}, {b}\n"
        f"  {found['name']} = select i1 {is_first}, {kind} {a}, {kind} {b}"
    )


def apply(text: str) -> str:
    return _EXTREMES.sub(_chosen, text)
