"""The Tile language: tensor operations written as index arithmetic, on any device.

:func:`function` makes a function of arrays from a program; it finds the range of every index::

    conv = dp.tilelang.function('''
        function (I[N, L, C], K[T, C, F]) -> (O) {
            O[n, x, f: N, L - T + 1, F] = +(I[n, x + t, c] * K[t, c, f]);
        }''')

The language is that of PlaidML, version 0. In: a program and arrays. Out: arrays. Imports the
functions of NumPy's names, kernels and what is below.
"""

from dparray.exceptions import (
    TileError,
    TileIndexError,
    TileNameError,
    TileShapeError,
    TileSyntaxError,
    TileTypeError,
)
from dparray.tilelang.function import TileFunction, function
from dparray.tilelang.invocation import Invocation
from dparray.tilelang.layers import avg_pool, conv, dense, max_pool
from dparray.tilelang.values import TileWarning, floatx, set_floatx

__all__ = [
    "Invocation",
    "TileError",
    "TileFunction",
    "TileIndexError",
    "TileNameError",
    "TileShapeError",
    "TileSyntaxError",
    "TileTypeError",
    "TileWarning",
    "avg_pool",
    "conv",
    "dense",
    "floatx",
    "function",
    "max_pool",
    "set_floatx",
]
