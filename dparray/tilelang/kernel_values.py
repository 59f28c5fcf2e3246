"""The arithmetic of contraction kernels in each dtype, as source in the kernel language.

Integers are computed in 64 bits and truncated to their width where it matters; Booleans are 0 and
1; float16 is a float32 rounded after every operation, stored as bits.
"""

from __future__ import annotations

import numpy as np

from dparray.tilelang.values import BOOL, FLOAT16, DType


def wide(dtype: DType) -> str:
    """Return the type that values of a dtype have in a kernel."""
    if dtype.kind == "f":
        return "float64" if dtype.itemsize == 8 else "float32"
    return "uint64" if dtype.kind == "u" else "int64"


def loaded(text: str, dtype: DType) -> str:
    """Return the value of an element."""
    if dtype == FLOAT16:
        return f"half_value({text})"
    return text if dtype.kind == "f" else f"{wide(dtype)}({text})"


def stored(text: str, dtype: DType) -> str:
    """Return the text that stores a value."""
    if dtype == FLOAT16:
        return f"half_bits({text})"
    if dtype == BOOL:
        return f"{text} != 0"
    return text if dtype.kind == "f" else f"{dtype.name}({text})"


def cut(text: str, dtype: DType) -> str:
    """Truncate a 64-bit integer or a float to a value of a dtype."""
    if dtype == FLOAT16:
        return f"half({text})"
    if dtype == BOOL:
        return f"int64(({text}) != 0)"
    if dtype.kind == "f":
        return text
    return text if dtype.itemsize == 8 else f"{wide(dtype)}({dtype.name}({text}))"


def converted(text: str, dtype: DType, wanted: DType) -> str:
    """Convert a value of a dtype to another one."""
    if dtype == wanted:
        return text
    if wanted == FLOAT16:
        return f"half(float32({text}))"
    if wanted.kind == "f":
        return text if wide(dtype) == wide(wanted) else f"{wide(wanted)}({text})"
    if wanted == BOOL:
        return f"int64({text} != 0)"
    if dtype.kind == "f":
        return f"{wide(wanted)}({wanted.name}({text}))"
    return f"{wide(wanted)}({wanted.name}({text}))"


def combined(sign: str, left: str, right: str, dtype: DType) -> str:
    """Return ``left * right`` or ``left + right`` in a dtype."""
    if dtype == BOOL:
        return f"({left} {'&' if sign == '*' else '|'} {right})"
    return cut(f"({left} {sign} {right})", dtype)


def start(aggregation: str, dtype: DType) -> str:
    """Return the initial value of an accumulator."""
    kind = wide(dtype)
    if aggregation in "+=":
        return f"{kind}(0)"
    if aggregation == "*":
        return f"{kind}(1)"
    if dtype.kind == "f":
        return f"{kind}({'-' if aggregation == '>' else ''}math.inf)"
    if dtype == BOOL:
        return f"{kind}({int(aggregation == '<')})"
    limits = np.iinfo(dtype)
    return f"{kind}({limits.min if aggregation == '>' else limits.max})"


def accumulated(
    aggregation: str, total: str, value: str, dtype: DType, propagates_nan: bool = False
) -> str:
    """Return the accumulator after a value."""
    if aggregation == "=":
        return value
    if aggregation in "><":
        if propagates_nan and dtype.kind == "f":
            is_new = f"{value} {aggregation} {total} or {value} != {value}"
            return f"{value} if {is_new} else {total}"
        return f"{value} if {value} {aggregation} {total} else {total}"
    if dtype == BOOL:
        return f"{total} {'|' if aggregation == '+' else '&'} {value}"
    if dtype == FLOAT16:
        return f"half({total} {aggregation} {value})"
    return f"{total} {aggregation} {value}"


def memory(dtype: DType) -> DType:
    """Return the dtype as which a kernel accesses memory."""
    return np.dtype(np.uint16) if dtype == FLOAT16 else dtype
