"""Triads with plain and non-temporal stores, which measure the peak memory bandwidth.

An ordinary store first reads its cache line. LLVM's non-temporal stores do not. Numba has no
functions for them, so the loop's body consists of LLVM instructions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

# Bytes of a store: a cache line, to which the output is aligned.
LINE = 64


def aligned(size: int, dtype: Any) -> np.ndarray:
    """Return uninitialized memory that begins with a cache line."""
    room = np.empty(size * np.dtype(dtype).itemsize + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size * np.dtype(dtype).itemsize].view(dtype)


def make_triad(numba: Any, is_temporal: bool) -> Callable[[Any, Any, Any], None]:
    """Return a function for `out = b + 3 * c` on all threads: whole aligned float32 cache lines."""
    from numba.core import types
    from numba.extending import intrinsic

    lanes = LINE // 4
    vector = ir.VectorType(ir.FloatType(), lanes)

    @intrinsic
    def line(typing: Any, out: Any, b: Any, c: Any, start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pointers = [
                builder.bitcast(
                    builder.gep(
                        context.make_array(kind)(context, builder, value).data, [values[3]]
                    ),
                    vector.as_pointer(),
                )
                for kind, value in zip(signature.args[:3], values[:3], strict=True)
            ]
            b, c = (builder.load(pointer, align=4) for pointer in pointers[1:])
            three = ir.Constant(vector, [3.0] * lanes)
            stored = builder.store(builder.fadd(b, builder.fmul(three, c)), pointers[0], align=LINE)
            if not is_temporal:
                one = ir.Constant(ir.IntType(32), 1)
                stored.set_metadata("nontemporal", builder.module.add_metadata([one]))
            return context.get_dummy_value()

        return types.void(out, b, c, start), generate

    prange = numba.prange

    def triad(b: Any, c: Any, out: Any) -> None:
        for number in prange(out.size // lanes):
            line(out, b, c, number * lanes)

    return numba.njit(parallel=True)(triad)
