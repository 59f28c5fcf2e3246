"""Algorithms on arrays: host functions for the hand-written kernels of ``dparray.kernels``.

Every function runs on the queue of its inputs and returns without waiting, unless its
documentation says that it reads a result (the number of elements that ``compact`` keeps).

In: arrays. Out: arrays on their queue. Imports arrays, launches of kernels and everything below,
but no function of NumPy's names: those are made of these.
"""

from dparray.algorithms.clustering import kmeans_assign, kmeans_update
from dparray.algorithms.compaction import compact
from dparray.algorithms.points import pairwise_distance
from dparray.algorithms.random import philox_bits, philox_normal, philox_uniform
from dparray.algorithms.reduction import reduce
from dparray.algorithms.scan import exclusive_scan, inclusive_scan
from dparray.algorithms.segments import csr_matvec, segmented_reduce
from dparray.algorithms.sort import sort_by_key, stable_argsort
from dparray.algorithms.stencil import convolve_dense, convolve_separable

__all__ = [
    "compact",
    "convolve_dense",
    "convolve_separable",
    "csr_matvec",
    "exclusive_scan",
    "inclusive_scan",
    "kmeans_assign",
    "kmeans_update",
    "pairwise_distance",
    "philox_bits",
    "philox_normal",
    "philox_uniform",
    "reduce",
    "segmented_reduce",
    "sort_by_key",
    "stable_argsort",
]
