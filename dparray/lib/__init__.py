"""The part of ``numpy.lib`` that arrays have: :mod:`dparray.lib.stride_tricks`.

In: arrays. Out: views. Imports: rows up to ``functions``.
"""

from dparray.lib import stride_tricks as stride_tricks
