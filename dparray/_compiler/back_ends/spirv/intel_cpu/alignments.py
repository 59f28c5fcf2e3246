"""Align private memory to at most 64 bytes, as the widest registers are.

LLVM aligns private memory like its longest vector.

Defect of Intel's CPU driver 2026.2: in kernels with a barrier or a group algorithm, the driver
    saves values needed afterwards for each work-item. It loses the address of memory aligned to
    more than 64 bytes, and the kernel writes to address 0.
Tests: test_private_memory_of_long_vectors_outlasts_a_barrier.
"""

import re

_ALIGNMENTS = re.compile(r"(?<=, align )(?:128|256|512|1024)$", re.MULTILINE)


def apply(text: str) -> str:
    return _ALIGNMENTS.sub("64", text)
