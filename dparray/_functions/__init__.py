"""The functions of the namespace, with one file per chapter of NumPy's manual.

The boundary of the namespace (error boundary, NumPy keywords, missing names) is also here.
In: arrays and Python scalars. Out: arrays. Imports: rows up to ``functions``, and ``dask``.
"""
