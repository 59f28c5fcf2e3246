"""Prefix sums (scans) of an array whose chunks have been reduced.

Each work-item owns one chunk of consecutive elements. The host reduces every chunk first; here an
item combines the results of the chunks before its own, which is the value its chunk starts from,
and runs through the chunk. The array is read twice and written once: the "reduce-then-scan" of D.
Merrill and A. Grimshaw, "Parallel Scan for Stream Architectures" (2009).

Within a chunk, blocks of elements are combined as trees, so that the chain of dependent
operations has one operation for each block and the processor keeps up with its memory. (A scan in
local memory with a barrier in each step runs at a third of this speed on CPUs.)

Launch over ``NdRange(items, local)`` with at least ``ceil(x.size / chunk)`` items; the local size
is 1 on CPUs, where a work-group is a loop on one core. Needs no local memory and no barrier.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray.kernels.combine import Operation, loses_nan

__all__ = ["make_chunk_scan_kernel"]


@functools.cache
def make_chunk_scan_kernel(op: Operation, dtype: type, inclusive: bool) -> Callable[..., None]:
    """Scan each chunk of an array, starting from the results of the chunks before it.

    Args:
        op: the operation, its functions made into device functions.
        dtype: the NumPy scalar type to combine in.
        inclusive: whether ``out[i]`` includes ``x[i]``.

    Kernel parameters:
        x (n,): input of any real dtype.
        total (chunks,): input of ``dtype``: what each chunk combines to, NaN if there is one in it.
        out (n,): output of ``dtype``; it may be ``x``.
        chunk: elements in a chunk.
        initial: a scalar of ``dtype`` that comes before ``x[0]``.
    """
    if op.name in ("minimum", "maximum"):
        return _make_extreme_scan(op, dtype, inclusive)
    combine = op.combine

    def chunk_scan(nd_item: Any, x: Any, total: Any, out: Any, chunk: int, initial: Any) -> None:
        c = nd_item.get_global_id(0)
        count = min(chunk, x.size - c * chunk)
        if count <= 0:
            return
        carry = dtype(initial)
        for before in range(c):
            carry = dtype(combine(carry, total[np.uint64(before)]))
        i = np.uint64(c * chunk)
        for _ in range(count >> 2):
            a0 = dtype(x[i])
            a1 = dtype(x[i + np.uint64(1)])
            a2 = dtype(x[i + np.uint64(2)])
            a3 = dtype(x[i + np.uint64(3)])
            a01 = dtype(combine(a0, a1))
            b0 = dtype(combine(carry, a0))
            b1 = dtype(combine(carry, a01))
            b2 = dtype(combine(carry, dtype(combine(a01, a2))))
            out[i] = b0 if inclusive else carry
            carry = dtype(combine(carry, dtype(combine(a01, dtype(combine(a2, a3))))))
            out[i + np.uint64(1)] = b1 if inclusive else b0
            out[i + np.uint64(2)] = b2 if inclusive else b1
            out[i + np.uint64(3)] = carry if inclusive else b2
            i += np.uint64(4)
        for _ in range(count & 3):
            after = dtype(combine(carry, dtype(x[i])))
            out[i] = after if inclusive else carry
            carry = after
            i += np.uint64(1)

    return chunk_scan


def _make_extreme_scan(op: Operation, dtype: type, inclusive: bool) -> Callable[..., None]:
    """The scan of a minimum or maximum, which seldom changes from one block to the next."""
    combine = op.combine
    combine_nan = op.combine_nan
    has_nan = loses_nan(op.name, dtype)

    def extreme_scan(nd_item: Any, x: Any, total: Any, out: Any, chunk: int, initial: Any) -> None:
        c = nd_item.get_global_id(0)
        count = min(chunk, x.size - c * chunk)
        if count <= 0:
            return
        carry = dtype(initial)
        for before in range(c):
            carry = dtype(combine_nan(carry, total[np.uint64(before)]))
        i = np.uint64(c * chunk)
        # The chunk's result is NaN when an element is; then every element is looked at.
        blocks = count >> 3
        if has_nan and total[c] != total[c]:
            blocks = 0
        for _ in range(blocks):
            a0 = dtype(x[i])
            a1 = dtype(x[i + np.uint64(1)])
            a2 = dtype(x[i + np.uint64(2)])
            a3 = dtype(x[i + np.uint64(3)])
            a4 = dtype(x[i + np.uint64(4)])
            a5 = dtype(x[i + np.uint64(5)])
            a6 = dtype(x[i + np.uint64(6)])
            a7 = dtype(x[i + np.uint64(7)])
            a03 = combine(combine(a0, a1), combine(a2, a3))
            a47 = combine(combine(a4, a5), combine(a6, a7))
            last = dtype(combine(carry, combine(a03, a47)))
            if last == carry:
                out[i] = carry
                out[i + np.uint64(1)] = carry
                out[i + np.uint64(2)] = carry
                out[i + np.uint64(3)] = carry
                out[i + np.uint64(4)] = carry
                out[i + np.uint64(5)] = carry
                out[i + np.uint64(6)] = carry
                out[i + np.uint64(7)] = carry
            else:
                b0 = dtype(combine(carry, a0))
                b1 = dtype(combine(b0, a1))
                b2 = dtype(combine(b1, a2))
                b3 = dtype(combine(carry, a03))
                b4 = dtype(combine(b3, a4))
                b5 = dtype(combine(b4, a5))
                b6 = dtype(combine(b5, a6))
                out[i] = b0 if inclusive else carry
                out[i + np.uint64(1)] = b1 if inclusive else b0
                out[i + np.uint64(2)] = b2 if inclusive else b1
                out[i + np.uint64(3)] = b3 if inclusive else b2
                out[i + np.uint64(4)] = b4 if inclusive else b3
                out[i + np.uint64(5)] = b5 if inclusive else b4
                out[i + np.uint64(6)] = b6 if inclusive else b5
                out[i + np.uint64(7)] = last if inclusive else b6
                carry = last
            i += np.uint64(8)
        for _ in range(count - (blocks << 3)):
            after = dtype(combine_nan(carry, dtype(x[i])))
            out[i] = after if inclusive else carry
            carry = after
            i += np.uint64(1)

    return extreme_scan
