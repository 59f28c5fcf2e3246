"""Whole functions, compiled: ``dp.jit`` and ``dp.prange``.

A call is planned once for each signature (``function``), as a native region (``host_code``) or as a
driver. A driver (``driver``) runs array statements with dparray, and ``prange``
loops as kernels (``regions``). ``README.md`` has the details.

In: a Python function and the arguments of a call. Out: the result, on the queue of the arrays.
Imports: rows up to ``functions``.
"""
