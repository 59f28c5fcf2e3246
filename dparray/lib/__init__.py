"""The part of ``numpy.lib`` that arrays have: :mod:`dparray.lib.stride_tricks`.

In: arrays. Out: views. Imports the functions of NumPy's names and what is below.
"""

from dparray.lib import stride_tricks as stride_tricks
