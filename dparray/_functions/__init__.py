"""The functions of the namespace, with one file per chapter of NumPy's manual.

Takes arrays and Python scalars; returns arrays. Imports kernels, arrays and the layers below them.
The boundary of the namespace (error boundary, NumPy keywords, missing names) is also here.
"""
