"""Run random programs on small arrays: each line and its result is printed.

Arguments: `compiled` or `python` to choose the implementation; the seed; the number of programs.
"""

from __future__ import annotations

import operator
import random
import sys
import warnings
from typing import Any

import numpy as np

import dparray as dp
from dparray._functions import install_fastpath

OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.matmul, operator.getitem, operator.pow),
]
SINGLE = [operator.neg, operator.pos, operator.abs, operator.invert]
IN_PLACE = [
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv),
    *(operator.iand, operator.ilshift),
]
CONVERSIONS = [float, int, bool, complex, operator.index, len]
DTYPES = ["float64", "float64", "float32", "int64", "int32", "uint8", "bool", "complex64"]
SCALARS = [
    *(2, 0, -1, 0.5, True, 1j, 10**30, float("inf"), None, "a"),
    *(np.float64(1.5), np.float32(2), np.int64(3), np.bool_(True)),
]


def entry(draw: random.Random, extent: int) -> Any:
    """Return one entry of an index, in most cases within bounds."""
    first, last = draw.randrange(-extent - 1, extent + 1), draw.randrange(-extent, extent + 1)
    element: Any = draw.choice([first, np.int64(first), dp.asarray(first)])
    parts = [slice(first, last), slice(None), slice(None, None, -1), slice(element, None, 2)]
    return draw.choice([element, first, *parts, None, ...])


def index(draw: random.Random, shape: tuple[int, ...]) -> Any:
    """Return a valid or invalid index."""
    count = draw.randrange(len(shape) + 2)
    entries = [entry(draw, draw.choice(shape or (1,))) for _ in range(count)]
    return entries[0] if count == 1 else tuple(entries)


def told(value: Any) -> str:
    """Describe a result down to its bits; for views also the layout."""
    if isinstance(value, dp.ndarray):
        values = value.asnumpy()
        parts = (value.dtype.name, value.shape, value.usm_type, values.tobytes().hex())
        return repr((*parts, value.strides if value.size else ()))
    return f"{type(value).__name__} {value!r}"


def outcome(function: Any, *args: Any) -> Any:
    """Return the result or the error as text."""
    try:
        return function(*args)
    except Exception as error:
        return error


def main(kind: str, seed: int, programs: int) -> None:
    """Print the results of several programs."""
    assert install_fastpath.is_installed == (kind == "compiled")
    warnings.simplefilter("error")  # divisions by zero do not warn
    draw = random.Random(seed)
    for turn in range(programs):
        shape = tuple(draw.randrange(1, 6) for _ in range(draw.randrange(4)))
        values = np.random.default_rng(turn).integers(0, 4, shape).astype(draw.choice(DTYPES))
        pool = [dp.asarray(values)]
        for _ in range(12):
            x = draw.choice(pool)
            other = draw.choice(pool) if draw.random() < 0.6 else draw.choice(SCALARS)
            what = draw.randrange(7)
            if what == 0:
                result = outcome(operator.getitem, x, index(draw, x.shape))
            elif what == 1:
                pair = (x, other) if draw.random() < 0.7 else (other, x)
                result = outcome(draw.choice(OPERATORS), *pair)
            elif what == 2:
                result = outcome(draw.choice(IN_PLACE), x, other)
            elif what == 3:
                result = outcome(operator.setitem, x, index(draw, x.shape), other)
            elif what == 4:  # the steps of `x[1:] += 1`
                at = index(draw, x.shape)
                part = outcome(operator.getitem, x, at)
                result = outcome(operator.setitem, x, at, outcome(operator.iadd, part, other))
            elif what == 5:
                result = outcome(draw.choice(SINGLE), x)
            else:
                result = outcome(draw.choice(CONVERSIONS), x)
            print(turn, what, told(result), *map(told, pool))
            if isinstance(result, dp.ndarray):
                pool.append(result)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
