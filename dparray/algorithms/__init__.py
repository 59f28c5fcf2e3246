"""Algorithms on arrays: the host functions that launch the hand-written kernels.

Every function runs on the queue of its inputs and returns without waiting. The documentation of a
function names a result that it must read, such as the number of elements that ``compact`` keeps.

In: arrays. Out: arrays on their queue. Imports: rows up to ``kernels``, so none of the NumPy
functions, which are built from these.
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
