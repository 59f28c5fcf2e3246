"""The kernel language and its compiler: Python functions become SPIR-V, and programs of a device.

In: a function, type keys of its arguments, options. Out: a compiled kernel, from memory, from disk
or compiled anew. Imports the runtime and the writers of source; the only folder that imports Numba.
"""
