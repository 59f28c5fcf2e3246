"""Algorithms on arrays: host functions for the hand-written kernels of ``dparray.kernels``.

Every function runs on the queue of its inputs and returns without waiting, unless its
documentation says that it reads a result (the number of elements that ``compact`` keeps).
"""

from dparray.algorithms._clustering import kmeans_assign, kmeans_update
from dparray.algorithms._scan import exclusive_scan, inclusive_scan
from dparray.algorithms._stencil import convolve_separable

__all__ = [
    "convolve_separable",
    "exclusive_scan",
    "inclusive_scan",
    "kmeans_assign",
    "kmeans_update",
]
