"""The functions of the namespace, a chapter of NumPy's manual in each file.

In: arrays and Python scalars. Out: arrays. Imports kernels, arrays and everything below.
The edge of the namespace (guard, NumPy's keywords, names that are missing) stands here, too.
"""
