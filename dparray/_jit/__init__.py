"""Whole functions, compiled: ``dp.jit`` and ``dp.prange``.

In: a Python function and the arguments of a call. Out: what the function returns, on the queue of
its arrays. A call is planned once for each signature (:mod:`dparray._jit.plan`): as one native
region (:mod:`dparray._jit.native`), or as a driver that runs array statements with dparray and
launches ``prange`` loops as kernels (:mod:`dparray._jit.driver`, :mod:`dparray._jit.regions`).

May import everything below the row of functions, and Numba's public ``njit``.
"""
