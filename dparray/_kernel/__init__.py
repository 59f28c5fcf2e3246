"""User-defined kernels: decorators, argument binding, launches and their events.

In: a Python function, a range and arguments. Out: an event. Imports: rows up to ``array``, and
``numba`` for ``numba_dpex``.
"""
