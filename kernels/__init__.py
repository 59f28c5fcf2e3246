"""Device code: the kernels of dparray, written by hand, imported as ``dparray.kernels``.

One module for each family of algorithms. A kernel is made by a cached factory,
``make_<algorithm>_kernel(op, dtype, work_group_size)``, and takes its parameters in the order
inputs, outputs, scalars. Modules here import the kernel language, ``math`` and NumPy's scalar
types, and nothing of the host side.
"""
