"""Whole functions, compiled: ``dp.jit`` and ``dp.prange``.

Takes a Python function and the arguments of a call; returns the result of the function, on the
queue of its arrays. A call is planned once for each signature (:mod:`dparray._jit.plan`): as one
native region (:mod:`dparray._jit.native`), or as a driver that runs array statements with dparray
and launches ``prange`` loops as kernels (:mod:`dparray._jit.driver`, :mod:`dparray._jit.regions`).

May import everything below the functions layer, and Numba's public ``njit``.
"""
