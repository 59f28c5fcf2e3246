"""What NumPy keeps in ``numpy.lib``: :mod:`dparray.lib.stride_tricks`."""

from dparray.lib import stride_tricks as stride_tricks
